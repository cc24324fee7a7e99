//! Every entry of the registry against a model that `transformers` built, saved and ran.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use wqk::checkpoint::family::families;
use wqk::checkpoint::{ModelReport, Options};

use crate::{Triple, deviation, score, weights};

/// Scores are f32 sums over 24 to 48 wide matrices against f64 ones; the models were drawn so that no norm lies
/// within 1e-5 of a threshold, where rounding could decide.
const TOLERANCE: f64 = 1e-4;

#[derive(Deserialize)]
pub struct Layer {
    stack: String,
    index: usize,
    n_heads: usize,
    n_kv_heads: usize,
    head_dim: usize,
    d_model: usize,
    calls: usize,
    plain: Option<Measured>,
    fold_norm: Option<Measured>,
    #[serde(default)]
    offsets: BTreeMap<String, Measured>,
}

#[derive(Deserialize)]
struct Measured {
    layer: Triple,
    heads: Vec<Triple>,
}

pub fn models() -> Vec<(String, Value, Vec<Layer>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/zoo");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
        .collect();
    files.sort();
    files
        .into_iter()
        .map(|path| {
            let model: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
            let layers = serde_json::from_value(model["layers"].clone()).unwrap();
            (model["name"].as_str().unwrap().to_owned(), model, layers)
        })
        .collect()
}

/// The largest deviation of a report from what `expected` picks of each layer. Also compares what a report says of
/// the layers.
fn compare(
    name: &str,
    report: &ModelReport,
    layers: &[Layer],
    expected: impl Fn(&Layer) -> Option<&Measured>,
) -> f64 {
    let mut worst = 0.0f64;
    for layer in layers {
        let what = format!("{name}: {} {}", layer.stack, layer.index);
        let found = report
            .layers
            .iter()
            .find(|l| l.stack.name() == layer.stack && l.index == layer.index)
            .unwrap_or_else(|| panic!("{what} is not in the report"));
        let s = &found.scores;
        assert_eq!(
            (s.n_heads, s.n_kv_heads, s.head_dim, s.d_model, found.repeats),
            (
                layer.n_heads,
                layer.n_kv_heads,
                layer.head_dim,
                layer.d_model,
                layer.calls
            ),
            "{what}: heads, key heads, head width, model width, repeats"
        );
        if let Some(measured) = expected(layer) {
            worst = worst.max(deviation(found, &measured.layer, &measured.heads, &what));
        }
    }
    worst
}

#[test]
fn every_family_scores_as_its_own_library_runs_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut families_seen = BTreeSet::new();
    let mut failed = Vec::new();
    for (name, model, layers) in models() {
        let path = folder.path().join(&name);
        std::fs::create_dir(&path).unwrap();
        weights::write(&model, &path);

        let report = score(&path, &Options::default(), false);
        assert_eq!(report.layers.len(), layers.len(), "{name}: number of layers");
        families_seen.insert(report.family.clone());
        let plain = compare(&name, &report, &layers, |l| l.plain.as_ref());

        let fold = Options {
            fold_norm: true,
            ..Options::default()
        };
        let report = score(&path, &fold, false);
        for (layer, found) in
            layers
                .iter()
                .filter(|l| l.fold_norm.is_some())
                .zip(report.layers.iter().filter(|r| {
                    layers
                        .iter()
                        .any(|l| l.stack == r.stack.name() && l.index == r.index && l.fold_norm.is_some())
                }))
        {
            assert!(
                found.folded_norm.is_some(),
                "{name}: {} {} folds nothing",
                layer.stack,
                layer.index
            );
        }
        let folded = compare(&name, &report, &layers, |l| l.fold_norm.as_ref());

        let mut turned = 0.0f64;
        let offsets: BTreeSet<&String> = layers.iter().flat_map(|l| l.offsets.keys()).collect();
        for offset in &offsets {
            let options = Options {
                offset: offset.parse().unwrap(),
                ..Options::default()
            };
            let report = score(&path, &options, false);
            turned = turned.max(compare(&name, &report, &layers, |l| l.offsets.get(*offset)));
        }
        println!(
            "{name}: {}, plain {plain:.1e}, norm folded {folded:.1e}, {} offsets {turned:.1e}",
            report.family,
            offsets.len()
        );
        if plain.max(folded).max(turned) > TOLERANCE {
            failed.push(format!(
                "{name} (plain {plain:.1e}, folded {folded:.1e}, offsets {turned:.1e})"
            ));
        }
    }
    assert!(failed.is_empty(), "beyond {TOLERANCE}: {}", failed.join(", "));
    // The code of MobileLLM is not part of the library; its layout is LLaMA's, which is tested.
    let untested: Vec<_> = families()
        .iter()
        .map(|f| &f.name)
        .filter(|f| !families_seen.contains(*f) && *f != "MobileLLM")
        .collect();
    assert!(untested.is_empty(), "families without a model: {untested:?}");
}
