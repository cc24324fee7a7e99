//! What an experiment found: the figures, tables and files of its report.
//!
//! A folder with `index.html`, which opens from disk, the curves as SVG, and the numbers behind them:
//! `steps.csv` (a row for each update of each run), `held_out.csv`, `scores.csv` (a row for each layer of
//! each scoring), `heads.csv` (the heads at the end of each run) and `settings.json`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use super::html::{Page, Section};
use super::plot::{Axis, Colour, Curves, Figure, Grid, Series};
use super::table::{Align, Table};
use crate::bilinear::{LayerScores, Summary};
use crate::train::{Run, ScoreRow};

/// A score of a layer, and how reports call it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Score {
    /// Symmetry of the whole layer.
    Symmetry,
    /// Directionality of the whole layer, variant `Excess`.
    Directionality,
}

impl Score {
    const fn label(self) -> &'static str {
        match self {
            Self::Symmetry => "symmetry",
            Self::Directionality => "directionality (excess)",
        }
    }

    /// The score of one layer; no symmetry for a zero matrix.
    pub fn of(self, scores: &LayerScores) -> Option<f64> {
        match self {
            Self::Symmetry => scores.symmetry,
            Self::Directionality => Some(scores.directionality.excess),
        }
    }
}

/// The runs of an experiment, by arm.
#[derive(Debug, Clone, Copy)]
pub struct Findings<'a> {
    runs: &'a [Run],
}

impl<'a> Findings<'a> {
    /// Looks at runs.
    pub fn new(runs: &'a [Run]) -> Self {
        Self { runs }
    }

    /// Names of the arms, in their first order.
    pub fn arms(&self) -> Vec<&'a str> {
        let mut arms: Vec<&str> = Vec::new();
        for run in self.runs {
            if !arms.contains(&run.arm.as_str()) {
                arms.push(&run.arm);
            }
        }
        arms
    }

    /// The runs of one arm.
    pub fn of(&self, arm: &str) -> impl Iterator<Item = &'a Run> {
        self.runs.iter().filter(move |run| run.arm == arm)
    }

    /// For each run of an arm, the median over layers of a score at the end.
    pub fn finals(&self, arm: &str, score: Score) -> Vec<f64> {
        self.of(arm)
            .filter_map(|run| median(ScoreRow::latest(&run.scores), score))
            .collect()
    }

    /// The lowest final median score of the runs of `high` and the highest of those of `low`: the arms are apart
    /// where the first is above the second. `None` where a side has no score.
    pub fn closest(&self, high: &str, low: &str, score: Score) -> Option<(f64, f64)> {
        let lowest = self.finals(high, score).into_iter().reduce(f64::min)?;
        let highest = self.finals(low, score).into_iter().reduce(f64::max)?;
        Some((lowest, highest))
    }

    /// The end of every run in a table: a row a run.
    pub fn table(&self) -> Table {
        let mut table = Table::new([
            ("arm", Align::Left),
            ("seed", Align::Right),
            ("held-out loss", Align::Right),
            ("symmetry", Align::Right),
            ("directionality (excess)", Align::Right),
            ("symmetry of heads", Align::Right),
            ("seconds", Align::Right),
        ]);
        for run in self.runs {
            let last = ScoreRow::latest(&run.scores);
            let heads = Summary::of(
                last.iter()
                    .flat_map(|row| row.scores.heads.iter().flatten())
                    .filter_map(|head| head.symmetry),
            );
            table.push([
                run.arm.clone(),
                run.seed.to_string(),
                run.held_out
                    .last()
                    .map_or(String::new(), |row| format!("{:.3}", row.final_loss())),
                number(median(last, Score::Symmetry)),
                number(median(last, Score::Directionality)),
                number(heads.map(|s| s.median)),
                format!("{:.0}", run.seconds),
            ]);
        }
        table
    }

    /// Held-out loss over updates: median and range over seeds.
    pub fn loss_figure(&self) -> Figure {
        let series = self.arms().into_iter().enumerate().map(|(i, arm)| {
            let losses = |run: &'a Run| run.held_out.iter().map(|row| (row.step, row.final_loss()));
            let points = by_step(self.of(arm).flat_map(losses));
            let line = |f: fn(&[f64]) -> f64| points.values().map(|v| f(v)).collect::<Vec<_>>();
            let x: Vec<f64> = points.keys().map(|&step| step as f64).collect();
            let median = |v: &[f64]| Summary::of(v.iter().copied()).map_or(f64::NAN, |s| s.median);
            Series::new(arm, &x, &line(median), colour(arm, i)).with_band(
                &line(|v| v.iter().copied().fold(f64::INFINITY, f64::min)),
                &line(|v| v.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
            )
        });
        Curves::new(
            "Held-out loss",
            Axis::linear("updates"),
            Axis::linear("loss (nats per predicted token)"),
        )
        .with_all(series)
        .figure()
    }

    /// A score over updates: median and quartiles over the layers of all seeds (the layout of the structure
    /// paper's Figure 3a and b).
    pub fn score_figure(&self, score: Score) -> Figure {
        let series = self.arms().into_iter().enumerate().map(|(i, arm)| {
            let rows = self.of(arm).flat_map(|run| &run.scores);
            summary_series(arm, rows, score, colour(arm, i))
        });
        let title = format!("Median {}", score.label());
        Curves::new(title, Axis::linear("updates"), Axis::linear(score.label()))
            .with_all(series)
            .figure()
    }

    /// A score over updates layer by layer, an arm a panel (Figure 3c and d): median over seeds.
    pub fn layer_figure(&self, score: Score) -> Figure {
        let arms = self.arms();
        let mut grid = Grid::new(
            format!("{} of each layer", capital(score.label())),
            arms.len().clamp(1, 3),
        );
        for arm in arms {
            let layers = self
                .of(arm)
                .flat_map(|run| &run.scores)
                .map(|row| row.layer + 1)
                .max()
                .unwrap_or(0);
            let series = (0..layers).map(|layer| {
                let rows = self
                    .of(arm)
                    .flat_map(|run| &run.scores)
                    .filter(|row| row.layer == layer);
                summary_series(
                    &format!("layer {layer}"),
                    rows,
                    score,
                    Colour::of_layer(layer, layers),
                )
            });
            grid = grid.with(
                Curves::new(arm, Axis::linear("updates"), Axis::linear(score.label())).with_all(series),
            );
        }
        grid.figure()
    }

    /// All figures with the names of their files.
    pub fn figures(&self) -> Vec<(&'static str, Figure)> {
        vec![
            ("loss.svg", self.loss_figure()),
            ("symmetry.svg", self.score_figure(Score::Symmetry)),
            ("directionality.svg", self.score_figure(Score::Directionality)),
            ("symmetry_layers.svg", self.layer_figure(Score::Symmetry)),
            (
                "directionality_layers.svg",
                self.layer_figure(Score::Directionality),
            ),
        ]
    }
}

/// The words around the figures.
#[derive(Debug, Clone)]
pub struct Story {
    /// Title of the page.
    pub title: String,
    /// What was done and found, in a few sentences.
    pub lead: String,
    /// What was trained on, and how it was cut into tokens.
    pub text: String,
    /// Names and values of the settings, as the page shows them. In `settings.json` names have underscores for
    /// spaces, and values that are numbers, or lists of them, are that.
    pub settings: Vec<(String, String)>,
    /// Version, backend, digests.
    pub provenance: Vec<(String, String)>,
}

/// Writes a report into a folder that exists.
///
/// # Errors
/// Whatever the system says, for the first file that cannot be written.
pub fn write(folder: &Path, story: &Story, findings: &Findings<'_>) -> std::io::Result<()> {
    let figures = findings.figures();
    for (name, figure) in &figures {
        std::fs::write(folder.join(name), figure.to_svg())?;
    }
    std::fs::write(
        folder.join("index.html"),
        page(story, findings, &figures).to_html(),
    )?;
    csv(
        &folder.join("steps.csv"),
        findings.runs,
        |run| {
            run.steps.iter().map(move |row| {
                (
                    &run.arm,
                    run.seed,
                    row.step,
                    row.loss,
                    row.learning_rate,
                    row.gradient_norm,
                    row.seconds,
                )
            })
        },
        &[
            "arm",
            "seed",
            "step",
            "loss",
            "learning_rate",
            "gradient_norm",
            "seconds",
        ],
    )?;
    csv(
        &folder.join("held_out.csv"),
        findings.runs,
        |run| {
            run.held_out
                .iter()
                .map(move |row| (&run.arm, run.seed, row.step, row.final_loss()))
        },
        &["arm", "seed", "step", "loss"],
    )?;
    csv(
        &folder.join("scores.csv"),
        findings.runs,
        |run| {
            run.scores.iter().map(move |row| {
                let d = row.scores.directionality;
                (
                    &run.arm,
                    run.seed,
                    row.step,
                    row.layer,
                    row.scores.symmetry,
                    d.excess,
                    d.definition,
                )
            })
        },
        &[
            "arm",
            "seed",
            "step",
            "layer",
            "symmetry",
            "directionality_excess",
            "directionality_definition",
        ],
    )?;
    csv(
        &folder.join("heads.csv"),
        findings.runs,
        |run| {
            ScoreRow::latest(&run.scores).iter().flat_map(move |row| {
                row.scores
                    .heads
                    .iter()
                    .flatten()
                    .enumerate()
                    .map(move |(head, scores)| {
                        let d = scores.directionality;
                        (
                            &run.arm,
                            run.seed,
                            row.step,
                            row.layer,
                            head,
                            scores.symmetry,
                            d.excess,
                            d.definition,
                        )
                    })
            })
        },
        &[
            "arm",
            "seed",
            "step",
            "layer",
            "head",
            "symmetry",
            "directionality_excess",
            "directionality_definition",
        ],
    )?;
    let settings: serde_json::Map<String, serde_json::Value> = story
        .settings
        .iter()
        .chain(&story.provenance)
        .map(|(name, value)| (name.replace([' ', '-'], "_"), typed(value)))
        .collect();
    std::fs::write(
        folder.join("settings.json"),
        serde_json::to_vec_pretty(&settings)?,
    )
}

fn page(story: &Story, findings: &Findings<'_>, figures: &[(&'static str, Figure)]) -> Page {
    let [
        (_, loss),
        (_, symmetry),
        (_, directionality),
        (_, symmetry_layers),
        (_, directionality_layers),
        ..,
    ] = figures
    else {
        return Page::new(&story.title).with_lead(&story.lead);
    };
    Page::new(&story.title)
        .with_lead(&story.lead)
        .with(
            Section::new("What emerges")
                .text(
                    "Each layer of attention compares tokens by one matrix, W_qk = W_q W_kᵀ. Symmetry is 1 where \
                     that comparison is mutual and near 0 at random; directionality is negative where a few \
                     columns (the token looked at) stand out, positive where rows (the token that looks) do. At \
                     the start directionality is not 0 but scattered about it, the more widely the narrower the \
                     model: see the definitions in the book.",
                )
                .figures([symmetry, directionality], "Median over the layers of all seeds, with quartiles.")
                .figures([symmetry_layers, directionality_layers], "Each layer; median over seeds, with quartiles."),
        )
        .with(
            Section::new("Loss")
                .figure(
                    loss,
                    "Median over seeds, with the range. The losses of different objectives are not comparable: \
                     a masked token is predicted from both sides, a next token from one.",
                )
                .text(&story.text),
        )
        .with(
            Section::new("Each run at its end")
                .table(
                    &findings.table(),
                    "Symmetry and directionality (excess) are medians over whole layers; of heads, over all heads.",
                ),
        )
        .with(Section::new("Settings").settings(story.settings.iter().map(|(n, v)| (n, v))))
        .with(Section::new("Files").files([
            ("steps.csv", "loss, learning rate and gradient norm of every update"),
            ("held_out.csv", "held-out loss"),
            ("scores.csv", "both scores of every layer over the runs"),
            ("heads.csv", "both scores of every head at the end"),
            ("settings.json", "settings and provenance"),
        ]))
        .with_provenance(story.provenance.iter().map(|(n, v)| (n.clone(), v.clone())))
}

/// The medians over layers of symmetry and directionality (variant `Excess`) at the end of a run.
pub fn final_medians(run: &Run) -> (Option<f64>, Option<f64>) {
    let last = ScoreRow::latest(&run.scores);
    (median(last, Score::Symmetry), median(last, Score::Directionality))
}

fn median(rows: &[ScoreRow], score: Score) -> Option<f64> {
    Summary::of(rows.iter().filter_map(|row| score.of(&row.scores))).map(|s| s.median)
}

fn by_step(points: impl Iterator<Item = (usize, f64)>) -> BTreeMap<usize, Vec<f64>> {
    let mut steps: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for (step, value) in points {
        steps.entry(step).or_default().push(value);
    }
    steps
}

fn summary_series<'r>(
    label: &str,
    rows: impl Iterator<Item = &'r ScoreRow>,
    score: Score,
    colour: Colour,
) -> Series {
    let points = by_step(rows.filter_map(|row| Some((row.step, score.of(&row.scores)?))));
    let (mut x, mut y, mut low, mut high) = (vec![], vec![], vec![], vec![]);
    for (step, values) in points {
        if let Some(summary) = Summary::of(values) {
            x.push(step as f64);
            y.push(summary.median);
            low.push(summary.q25);
            high.push(summary.q75);
        }
    }
    Series::new(label, &x, &y, colour).with_band(&low, &high)
}

fn colour(arm: &str, index: usize) -> Colour {
    match Colour::of_stack(arm) {
        Colour::Category(_) => Colour::Category(index),
        known => known,
    }
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| format!("{value:.3}"))
}

/// A text as what it says: a number, a list of numbers, or a text.
fn typed(text: &str) -> serde_json::Value {
    // Longer ones are digests, which may happen to consist of digits.
    const LONGEST: usize = 20;
    let number = |text: &str| -> Option<serde_json::Value> {
        let is_number = text.len() <= LONGEST && text.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        is_number.then(|| serde_json::from_str(text).ok()).flatten()
    };
    let list = || -> Option<Vec<_>> {
        text.contains(", ")
            .then(|| text.split(", ").map(number).collect())?
    };
    number(text)
        .or_else(|| list().map(Into::into))
        .unwrap_or_else(|| text.into())
}

fn csv<'r, R: Serialize, I: Iterator<Item = R>>(
    path: &Path,
    runs: &'r [Run],
    rows: impl Fn(&'r Run) -> I,
    header: &[&str],
) -> std::io::Result<()> {
    let mut writer = csv::Writer::from_path(path)?;
    writer.write_record(header)?;
    for row in runs.iter().flat_map(rows) {
        writer.serialize(row)?;
    }
    writer.flush()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_keep_their_types() {
        for (text, value) in [
            ("64", json!(64)),
            ("0.001", json!(0.001)),
            ("0, 1, 2", json!([0, 1, 2])),
            ("linear decay", json!("linear decay")),
            ("3 layers, 2", json!("3 layers, 2")),
            ("0.1.0", json!("0.1.0")),
            ("", json!("")),
        ] {
            assert_eq!(typed(text), value, "{text}");
        }
        let digest = "0123456789".repeat(6);
        assert_eq!(typed(&digest), json!(digest));
    }
}
