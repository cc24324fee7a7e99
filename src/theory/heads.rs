//! A score of every head of trained models, as a figure.

use super::{Matrix, TextEvidence};
use crate::report::plot::{Axis, Colour, Curves, Figure, Series};

/// A line a model, heads in order layer by layer.
pub(super) fn figure(
    evidence: &TextEvidence,
    title: &str,
    label: &str,
    score: impl Fn(&Matrix) -> f64,
) -> Figure {
    let series = evidence.models.iter().enumerate().map(|(index, model)| {
        let heads = model.layers.iter().flat_map(|layer| layer.head_forms());
        let scores: Vec<f64> = heads.map(|head| score(&head)).collect();
        let at: Vec<f64> = (0..scores.len()).map(|head| head as f64).collect();
        Series::new(&model.name, &at, &scores, Colour::Category(index))
    });
    Curves::new(title, Axis::integer("head, layer by layer"), Axis::linear(label))
        .with_all(series)
        .figure()
}
