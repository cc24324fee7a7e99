//! Several checkpoints of one model side by side.

use serde::Serialize;

use super::number::{score, spread};
use crate::checkpoint::family::StackKind;
use crate::checkpoint::{LayerReport, ModelReport};
use crate::report::table::{Align, Table};

/// What changed from one checkpoint of a model to another.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// The layers that both have, in the order of the first.
    pub layers: Vec<LayerDifference>,
    /// How many layers one of them has and the other lacks.
    pub missing: usize,
    /// Why the two may not be one model at two times, a line each.
    pub notes: Vec<String>,
}

/// The scores of a layer before and after.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LayerDifference {
    /// The stack.
    pub stack: StackKind,
    /// The layer's place in it.
    pub index: usize,
    /// The head; none for the whole layer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<usize>,
    /// The symmetry before and after.
    pub symmetry: [Option<f64>; 2],
    /// The directionality (excess) before and after.
    pub excess: [Option<f64>; 2],
    /// The directionality (definition) before and after.
    pub definition: [Option<f64>; 2],
}

/// Compares the layers, and the heads where both were scored by head, of two checkpoints of one model.
pub fn difference(before: &ModelReport, after: &ModelReport) -> Difference {
    let mut layers = Vec::new();
    let (mut common, mut reshaped) = (0, None);
    for old in &before.layers {
        let Some(new) = after
            .layers
            .iter()
            .find(|new| new.stack == old.stack && new.index == old.index)
        else {
            continue;
        };
        common += 1;
        if reshaped.is_none() && shape(old) != shape(new) {
            reshaped = Some((old, new));
        }
        layers.push(LayerDifference {
            stack: old.stack,
            index: old.index,
            head: None,
            symmetry: [old.scores.symmetry, new.scores.symmetry],
            excess: [&old, &new].map(|layer| Some(layer.scores.directionality.excess)),
            definition: [&old, &new].map(|layer| Some(layer.scores.directionality.definition)),
        });
        let heads = |layer: &LayerReport| layer.scores.heads.clone().unwrap_or_default();
        for (head, (a, b)) in heads(old).into_iter().zip(heads(new)).enumerate() {
            layers.push(LayerDifference {
                stack: old.stack,
                index: old.index,
                head: Some(head),
                symmetry: [a.symmetry, b.symmetry],
                excess: [a, b].map(|h| Some(h.directionality.excess)),
                definition: [a, b].map(|h| Some(h.directionality.definition)),
            });
        }
    }
    let missing = before.layers.len() + after.layers.len() - 2 * common;
    let mut notes = Vec::new();
    if before.family != after.family {
        notes.push(format!(
            "they are of different families, {} and {}: the scores are not of one model at two times",
            before.family, after.family
        ));
    }
    if let Some((old, new)) = reshaped {
        let words = |layer| {
            let [d_model, n_heads, n_kv_heads, head_dim] = shape(layer);
            format!("width {d_model} with {n_heads} heads on {n_kv_heads} key heads of {head_dim}")
        };
        notes.push(format!(
            "their layers differ in shape, as {} layer {}, {} and {}: what random scores come to differs too",
            old.stack.name(),
            old.index,
            words(old),
            words(new)
        ));
    }
    match missing {
        0 => {}
        1 => notes.push("1 layer is in one of the two only".to_owned()),
        n => notes.push(format!("{n} layers are in one of the two only")),
    }
    Difference {
        layers,
        missing,
        notes,
    }
}

/// Width, heads, key heads and their width.
fn shape(layer: &LayerReport) -> [usize; 4] {
    let scores = &layer.scores;
    [scores.d_model, scores.n_heads, scores.n_kv_heads, scores.head_dim]
}

impl Difference {
    /// A row a layer or head: before, after, and what was added.
    pub fn table(&self) -> Table {
        let mut table = Table::new([
            ("stack", Align::Left),
            ("layer", Align::Right),
            ("head", Align::Right),
            ("symmetry before", Align::Right),
            ("after", Align::Right),
            ("change", Align::Right),
            ("d (excess) before", Align::Right),
            ("after", Align::Right),
            ("change", Align::Right),
        ]);
        for layer in &self.layers {
            let head = layer.head.map_or_else(String::new, |h| h.to_string());
            let mut cells = vec![layer.stack.name().to_owned(), layer.index.to_string(), head];
            for [before, after] in [layer.symmetry, layer.excess] {
                let change = before.zip(after).map(|(a, b)| b - a);
                cells.extend([score(before), score(after), score(change)]);
            }
            table.push(cells);
        }
        table
    }
}

/// Median and quartiles over layers at each step, a row a stack of a revision, in the order of the steps.
pub fn steps_table(revisions: &[(f64, &ModelReport)]) -> String {
    let mut revisions = revisions.to_vec();
    revisions.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut table = Table::new([
        ("step", Align::Right),
        ("stack", Align::Left),
        ("symmetry", Align::Right),
        ("directionality (excess)", Align::Right),
        ("directionality (definition)", Align::Right),
    ]);
    for (step, model) in revisions {
        for (stack, summary) in &model.summary {
            table.push([
                step.to_string(),
                stack.name().to_owned(),
                spread(summary.symmetry),
                spread(summary.directionality.excess),
                spread(summary.directionality.definition),
            ]);
        }
    }
    format!(
        "\nmedian [quartiles] over layers by training step\n{}",
        table.to_text()
    )
}
