//! Checkpoints that are not part of this repository: found under `WQK_SHARED`, or `../shared`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use wqk::checkpoint::{LayerReport, Options, Settings, open};

use crate::{B, Triple, deviation, score};

/// The folder of that name; says why a test does nothing where it is not there.
pub fn shared(name: &str) -> Option<PathBuf> {
    let root = std::env::var_os("WQK_SHARED").map(PathBuf::from);
    let root = root.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"));
    let path = root.join(name);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: {} is not there", path.display());
    None
}

#[derive(Deserialize)]
struct Expected {
    layers: Vec<ExpectedLayer>,
}

#[derive(Deserialize)]
struct ExpectedLayer {
    module: String,
    n_heads: usize,
    n_kv_heads: usize,
    head_dim: usize,
    #[serde(flatten)]
    scores: Scores,
    heads: Vec<Scores>,
}

#[derive(Deserialize)]
struct Scores {
    symmetry: f64,
    /// By the definition.
    directionality: f64,
    directionality_excess: f64,
}

impl Scores {
    fn triple(&self) -> Triple {
        [self.symmetry, self.directionality, self.directionality_excess]
    }
}

/// The stack of a module of the library's tree, where a model has more than one.
fn stack_of(module: &str) -> &'static str {
    let decoder_first = ["decoder.", "model.decoder.", "decoder_layers"];
    match module {
        m if m.contains("vision_model") => "vision",
        m if m.contains("text_model") => "text",
        m if decoder_first.iter().any(|d| m.starts_with(d)) => "decoder",
        _ => "encoder",
    }
}

#[test]
fn the_shared_zoo() {
    let Some(zoo) = shared("zoo") else { return };
    let mut folders: Vec<PathBuf> = std::fs::read_dir(zoo)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    folders.sort();
    for folder in folders {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let expected: Expected =
            serde_json::from_slice(&std::fs::read(folder.join("expected.json")).unwrap()).unwrap();
        let report = score(&folder, &Options::default(), false);
        assert_eq!(report.layers.len(), expected.layers.len(), "{name}");
        let one_stack = report.layers.iter().all(|l| l.stack == report.layers[0].stack);
        let mut counts = BTreeMap::new();
        let mut worst = 0.0f64;
        for layer in &expected.layers {
            let stack = if one_stack {
                report.layers[0].stack.name()
            } else {
                stack_of(&layer.module)
            };
            let index = counts.entry(stack).or_insert(0usize);
            let found = report
                .layers
                .iter()
                .find(|l| l.stack.name() == stack && l.index == *index)
                .unwrap_or_else(|| panic!("{name}: no {stack} {index}"));
            *index += 1;
            let s = &found.scores;
            assert_eq!(
                (s.n_heads, s.n_kv_heads, s.head_dim),
                (layer.n_heads, layer.n_kv_heads, layer.head_dim),
                "{name}: {}",
                layer.module
            );
            let heads: Vec<Triple> = layer.heads.iter().map(Scores::triple).collect();
            worst = worst.max(deviation(found, &layer.scores.triple(), &heads, &layer.module));
        }
        println!(
            "{name}: {}, {} layers, {worst:.1e}",
            report.family,
            report.layers.len()
        );
        assert!(worst < 1e-4, "{name}: {worst:.1e}");
    }
}

/// A layer of `oracle/real_scores.json`.
#[derive(Deserialize)]
struct RealLayer {
    #[serde(flatten)]
    scores: RealScores,
    published_symmetry_raw: Option<f64>,
    published_directionality: Option<f64>,
    heads: Vec<RealScores>,
}

#[derive(Deserialize)]
struct RealScores {
    symmetry: f64,
    directionality_excess: f64,
    /// By the definition's sums, but with the sample standard deviation.
    directionality_paper: f64,
}

impl RealScores {
    fn triple(&self) -> Triple {
        [
            self.symmetry,
            self.directionality_paper,
            self.directionality_excess,
        ]
    }
}

/// Takes the definition's directionality from the scores at another γ.
fn with_definition_of(layer: &LayerReport, other: &LayerReport) -> LayerReport {
    let mut layer = layer.clone();
    layer.scores.directionality.definition = other.scores.directionality.definition;
    let heads = layer.scores.heads.iter_mut().flatten();
    for (head, other) in heads.zip(other.scores.heads.iter().flatten()) {
        head.directionality.definition = other.directionality.definition;
    }
    layer
}

#[derive(Deserialize)]
struct RealModel {
    #[serde(default)]
    layers: Vec<RealLayer>,
    #[serde(default)]
    layers_by_index: BTreeMap<usize, RealLayer>,
    reference_code: Option<ReferenceCode>,
}

#[derive(Deserialize)]
struct ReferenceCode {
    symmetry: Vec<f64>,
    directionality_excess: Vec<f64>,
}

#[test]
fn real_checkpoints() {
    let (Some(models), Some(oracle)) = (shared("models"), shared("oracle/real_scores.json")) else {
        return;
    };
    let oracle: BTreeMap<String, RealModel> =
        serde_json::from_slice(&std::fs::read(oracle).unwrap()).unwrap();
    for (name, expected) in oracle {
        let folder = models.join(name.split('/').next().unwrap());
        let report = score(&folder, &Options::default(), true);
        let layers: BTreeMap<usize, RealLayer> = if expected.layers_by_index.is_empty() {
            expected.layers.into_iter().enumerate().collect()
        } else {
            expected.layers_by_index
        };
        let found: Vec<usize> = report.layers.iter().map(|l| l.index).collect();
        assert_eq!(
            found,
            layers.keys().copied().collect::<Vec<_>>(),
            "{name}: layers"
        );
        let checkpoint = open(&folder, &Options::default()).unwrap();
        for (i, (layer, expected)) in report.layers.iter().zip(layers.values()).enumerate() {
            let heads: Vec<Triple> = expected.heads.iter().map(RealScores::triple).collect();
            // The oracle's definition takes the sample deviation, √(n/(n−1)) of ours: another γ gives its threshold.
            let n = layer.scores.d_model as f64;
            let settings = Settings {
                gamma: 2.0 * (n / (n - 1.0)).sqrt(),
                per_head: true,
                ..Settings::default()
            };
            let other = checkpoint
                .score::<B>(&settings, &Default::default(), |_| ())
                .unwrap();
            let layer = &with_definition_of(layer, &other.layers[i]);
            let worst = deviation(layer, &expected.scores.triple(), &heads, &name);
            assert!(worst < 1e-4, "{name} {}: {worst:.1e}", layer.index);
            if let (Some(s), Some(d)) = (expected.published_symmetry_raw, expected.published_directionality) {
                // The published symmetry is the share of the symmetric part, (1 + s) / 2.
                let deviation = ((1.0 + layer.scores.symmetry.unwrap()) / 2.0 - s)
                    .abs()
                    .max((layer.scores.directionality.excess - d).abs());
                println!(
                    "{name} {}: {worst:.1e} from the oracle, {deviation:.1e} from the published",
                    layer.index
                );
                assert!(
                    deviation < 1e-5,
                    "{name} {}: {deviation:.1e} from the published value",
                    layer.index
                );
            }
        }
        if let Some(reference) = expected.reference_code {
            for (i, layer) in report.layers.iter().enumerate() {
                let published = layer.as_published.as_ref().unwrap();
                let d = published.directionality.unwrap().excess;
                assert!(
                    (published.symmetry.unwrap() - reference.symmetry[i]).abs() < 1e-4,
                    "{name} {i}"
                );
                assert!(
                    (d - reference.directionality_excess[i]).abs() < 1e-4,
                    "{name} {i}: {d}"
                );
            }
        }
    }
}

#[test]
fn a_pickle_scores_as_the_same_weights_in_safetensors() {
    let Some(models) = shared("models/rxnmapper-albert") else {
        return;
    };
    let safetensors = score(&models, &Options::default(), false);
    let folder = tempfile::tempdir().unwrap();
    for file in ["config.json", "original/pytorch_model.bin"] {
        let name = Path::new(file).file_name().unwrap();
        std::fs::copy(models.join(file), folder.path().join(name)).unwrap();
    }
    let pickle = score(folder.path(), &Options::default(), false);
    assert_eq!(safetensors.layers, pickle.layers);
    assert_eq!(safetensors.digest, pickle.digest);
    assert_eq!(safetensors.layers[0].repeats, 12);
}

#[test]
fn layers_can_be_read_one_by_one() {
    let Some(folder) = shared("models/stories260K") else {
        return;
    };
    let checkpoint = wqk::checkpoint::open(folder, &Options::default()).unwrap();
    let device = Default::default();
    let layers: Vec<_> = checkpoint
        .layers::<B>(&device)
        .map(|layer| layer.unwrap())
        .collect();
    assert_eq!(layers.len(), 5);
    assert_eq!(layers[4].form.heads_layout(), wqk::bilinear::Heads::grouped(8, 4));
}
