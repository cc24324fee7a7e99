//! Scores of checkpoints against independent programs: every entry of the registry against models that PyPI
//! `transformers` built and ran (`tests/zoo/make.py`), and, where they are at hand, a second set of such models and
//! real checkpoints.

mod backends;
mod described;
mod published;
mod shared;
mod weights;
mod zoo;

use wqk::checkpoint::{LayerReport, ModelReport, Options, Settings, open};

type B = wqk::backend::Flex;

/// Scores a checkpoint with every head.
fn score(path: &std::path::Path, options: &Options, as_published: bool) -> ModelReport {
    let settings = Settings {
        per_head: true,
        as_published,
        ..Settings::default()
    };
    let checkpoint = open(path, options).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    checkpoint
        .score::<B>(&settings, &Default::default(), |_| ())
        .unwrap()
}

/// One form's expected scores: symmetry, directionality by the definition and by the excess.
type Triple = [f64; 3];

/// The scores of a layer and of its heads.
fn triples(layer: &LayerReport) -> (Triple, Vec<Triple>) {
    let scores = &layer.scores;
    let one = |s: Option<f64>, d: wqk::bilinear::DirectionalityScores| [s.unwrap(), d.definition, d.excess];
    let heads = scores
        .heads
        .iter()
        .flatten()
        .map(|h| one(h.symmetry, h.directionality))
        .collect();
    (one(scores.symmetry, scores.directionality), heads)
}

/// The largest deviation of a layer's scores from the expected ones.
fn deviation(layer: &LayerReport, expected: &Triple, heads: &[Triple], what: &str) -> f64 {
    let (found, found_heads) = triples(layer);
    assert_eq!(found_heads.len(), heads.len(), "{what}: number of heads");
    let pairs = std::iter::once((&found, expected)).chain(found_heads.iter().zip(heads));
    pairs
        .flat_map(|(a, b)| a.iter().zip(b).map(|(a, b)| (a - b).abs()))
        .fold(0.0, f64::max)
}
