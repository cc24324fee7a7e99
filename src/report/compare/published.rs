//! Curves that others published, to be drawn in beside one's own.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use crate::plain::plain;

/// A file of published training curves: JSON with two objects, each by the name of the run.
///
/// ```json
/// {
///   "loss_csv": { "bert--encoder--wikipedia--symmetric-init": { "steps": [200, 400], "loss": [9.6, 7.4] } },
///   "scores": { "bert-encoder-wikipedia": { "steps": [1000, 2000], "n_layers": 12,
///       "symmetry_median": [0.01, 0.02], "directionality_median": [-0.1, -0.2],
///       "symmetry_layers": [[0.01, 0.02, …], …], "directionality_layers": [[…], …] } }
/// }
/// ```
///
/// Names are `SIZE--MODE--DATA` of a loss, with `--symmetric-init` for the symmetric arm, and
/// `SIZE-MODE-DATA` of scores: size `bert_small` (4 layers), `bert` (12) or `bert_large` (24), mode `encoder`
/// or `decoder`, data `wikipedia`, `jigsaw` or `red_pajama`. A name of another form is drawn nowhere.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Published {
    /// Losses.
    #[serde(default, rename = "loss_csv")]
    pub loss: BTreeMap<String, PublishedLoss>,
    /// Scores.
    #[serde(default)]
    pub scores: BTreeMap<String, PublishedScores>,
}

/// A published loss.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct PublishedLoss {
    /// Updates done.
    pub steps: Vec<usize>,
    /// Mean training loss since the point before.
    pub loss: Vec<f64>,
}

/// Published scores.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct PublishedScores {
    /// Updates done.
    pub steps: Vec<usize>,
    /// Number of layers.
    pub n_layers: usize,
    /// Median over layers.
    pub symmetry_median: Vec<f64>,
    /// Median over layers, variant `Excess`.
    pub directionality_median: Vec<f64>,
    /// Each layer at each step.
    #[serde(default)]
    pub symmetry_layers: Vec<Vec<f64>>,
    /// Each layer at each step, variant `Excess`.
    #[serde(default)]
    pub directionality_layers: Vec<Vec<f64>>,
}

impl Published {
    /// Reads a file.
    ///
    /// # Errors
    /// In one line, what the file is or lacks.
    pub fn read(path: &Path) -> Result<Self, String> {
        let refuse = |problem: String| format!("{}: {problem}", path.display());
        let content = crate::files::read(path).map_err(|error| {
            refuse(format!(
                "cannot be read ({error}): check the path and its permissions"
            ))
        })?;
        let published: Self = serde_json::from_slice(&content).map_err(|error| {
            refuse(format!(
                "not a file of published curves ({}): see `wqk compare --help`",
                plain(&error.to_string())
            ))
        })?;
        published
            .check()
            .map_err(|(name, problem)| refuse(format!("{name}: {problem}")))?;
        Ok(published)
    }

    fn check(&self) -> Result<(), (String, String)> {
        let unequal = |name: &str, steps: usize, what: &str, values: usize| {
            let problem = format!("{steps} steps, but {values} values of {what}: give one for each step");
            Err((name.to_owned(), problem))
        };
        for (name, curve) in &self.loss {
            if curve.steps.len() != curve.loss.len() {
                return unequal(name, curve.steps.len(), "loss", curve.loss.len());
            }
        }
        for (name, curve) in &self.scores {
            for (what, values) in [
                ("symmetry_median", curve.symmetry_median.len()),
                ("directionality_median", curve.directionality_median.len()),
            ] {
                if curve.steps.len() != values {
                    return unequal(name, curve.steps.len(), what, values);
                }
            }
            for layers in curve.symmetry_layers.iter().chain(&curve.directionality_layers) {
                if layers.len() != curve.n_layers {
                    let problem = format!("{} layers, but {} values in a step", curve.n_layers, layers.len());
                    return Err((name.clone(), problem));
                }
            }
        }
        if self.loss.is_empty() && self.scores.is_empty() {
            return Err((
                "`loss_csv` and `scores`".to_owned(),
                "both absent: nothing could be drawn".to_owned(),
            ));
        }
        Ok(())
    }

    /// The loss of a run like one's own.
    pub fn loss_of(&self, layers: usize, mode: &str, data: &str, symmetric: bool) -> Option<&PublishedLoss> {
        let end = if symmetric { "--symmetric-init" } else { "" };
        let name = format!("{}--{mode}--{}{end}", size(layers)?, slug(data));
        self.loss.get(&name)
    }

    /// The scores of a run like one's own: its data and mode, and its number of layers if it was published.
    pub fn scores_of(&self, layers: usize, mode: &str, data: &str) -> Option<&PublishedScores> {
        let named = |size: &str| self.scores.get(&format!("{size}-{mode}-{}", slug(data)));
        size(layers).and_then(named).or_else(|| named("bert"))
    }
}

fn size(layers: usize) -> Option<&'static str> {
    match layers {
        4 => Some("bert_small"),
        12 => Some("bert"),
        24 => Some("bert_large"),
        _ => None,
    }
}

/// `Red Pajama` as it stands in names; a note in brackets does not count.
fn slug(data: &str) -> String {
    let name = data.split(" (").next().unwrap_or(data);
    name.to_lowercase().replace(' ', "_")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The published curves among the shared data, where they are at hand.
    pub(in super::super) fn shared() -> Option<Published> {
        let root = std::env::var_os("WQK_SHARED").map_or_else(
            || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"),
            std::path::PathBuf::from,
        );
        let path = root.join("oracle/trajectories.json");
        if !path.exists() {
            eprintln!("skipped: no published curves at {}", path.display());
            return None;
        }
        Some(Published::read(&path).unwrap())
    }

    #[test]
    fn runs_find_their_like() {
        let Some(published) = shared() else { return };
        assert_eq!((published.loss.len(), published.scores.len()), (24, 12));
        let loss = published.loss_of(4, "encoder", "Red Pajama", true).unwrap();
        assert_eq!(
            loss,
            &published.loss["bert_small--encoder--red_pajama--symmetric-init"]
        );
        assert!(published.loss_of(7, "encoder", "Wikipedia", true).is_none());
        let scores = published.scores_of(2, "decoder", "Wikipedia (bundled)").unwrap();
        assert_eq!(scores, &published.scores["bert-decoder-wikipedia"]);
        assert!(published.scores_of(12, "decoder", "CIFAR-10").is_none());
    }

    #[test]
    fn what_is_wrong_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.json");
        for (content, said) in [
            ("[1]", "not a file of published curves"),
            ("{}", "nothing could be drawn"),
            (
                r#"{"loss_csv": {"a": {"steps": [1, 2], "loss": [3]}}}"#,
                "a: 2 steps, but 1 values of loss",
            ),
            (
                r#"{"scores": {"b": {"steps": [1], "n_layers": 2, "symmetry_median": [0], "directionality_median": [0], "symmetry_layers": [[1]]}}}"#,
                "b: 2 layers, but 1 values in a step",
            ),
        ] {
            std::fs::write(&path, content).unwrap();
            let error = Published::read(&path).unwrap_err();
            assert!(
                error.contains(said) && error.contains("p.json") && !error.contains('\n'),
                "{error}"
            );
        }
        assert!(
            Published::read(&folder.path().join("none"))
                .unwrap_err()
                .contains("cannot be read")
        );
    }
}
