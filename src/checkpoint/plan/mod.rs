//! From a registry entry, a configuration and the shapes in a file to the layers to read.

mod listing;
mod shapes;
mod stack;

use std::collections::BTreeSet;
use std::ops::Range;

use super::CheckpointError;
use super::family::{Family, Layout, StackKind};
use super::format::Store;
use super::options::Options;
use crate::bilinear::{Heads, RotaryPairs};

pub(super) use listing::attention_like;
use stack::StackPlanner;

/// One self-attention layer of a checkpoint: where its queries and keys are.
#[derive(Debug, Clone)]
pub(super) struct LayerPlan {
    pub stack: StackKind,
    /// Counts self-attention layers of the stack.
    pub index: usize,
    /// The layer's number in the file.
    pub number: usize,
    pub module: String,
    pub repeats: usize,
    pub heads: Heads,
    pub head_dim: usize,
    pub d_model: usize,
    pub layout: Layout,
    pub projection: Projection,
    /// The gain of the norm before the attention.
    pub norm: Option<String>,
    pub query_norm: Option<String>,
    pub key_norm: Option<String>,
    pub gain_offset: f32,
    pub rotary: Option<RotaryPairs>,
    /// Which of the family's stacks, for its configuration.
    pub entry: usize,
    /// What the structure paper's code read instead, where that is other tensors.
    pub published: Option<(String, String)>,
}

/// The tensors that make a layer's queries and keys.
#[derive(Debug, Clone)]
pub(super) enum Projection {
    /// Rows of `Linear` weights.
    Rows { query: Rows, key: Rows },
    /// Columns of one `Conv1D` weight.
    Columns {
        tensor: String,
        query: Range<usize>,
        key: Range<usize>,
    },
    /// Multi-head latent attention.
    Latent(Latent),
}

/// Rows of a tensor, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rows {
    pub tensor: String,
    pub ranges: Vec<Range<usize>>,
}

/// The factors of latent attention; they are multiplied out when read.
#[derive(Debug, Clone)]
pub(super) struct Latent {
    /// `[query rank, d_model]`; absent where queries are projected directly.
    pub query_down: Option<String>,
    /// `[n_heads (plain + rotary), query rank or d_model]`.
    pub query: String,
    /// `[key rank + rotary, d_model]`.
    pub key_down: String,
    /// `[n_heads (plain + value), key rank]`.
    pub key: String,
    pub rank: usize,
    pub plain: usize,
    pub rotary: usize,
    pub value: usize,
}

impl Rows {
    /// Rows that lie side by side.
    pub fn new(tensor: &str, range: Range<usize>) -> Self {
        Self {
            tensor: tensor.to_owned(),
            ranges: std::iter::once(range).collect(),
        }
    }
}

impl Projection {
    /// The tensors that are read.
    pub fn tensors(&self) -> Vec<&str> {
        match self {
            Self::Rows { query, key } if query.tensor == key.tensor => vec![&query.tensor],
            Self::Rows { query, key } => vec![&query.tensor, &key.tensor],
            Self::Columns { tensor, .. } => vec![tensor],
            Self::Latent(latent) => {
                let down = latent.query_down.as_deref();
                down.into_iter()
                    .chain([latent.query.as_str(), &latent.key_down, &latent.key])
                    .collect()
            }
        }
    }
}

/// The layers of all stacks, and what a report should say about them.
pub(super) fn plan(
    family: &Family,
    store: &Store,
    options: &Options,
) -> Result<(Vec<LayerPlan>, Vec<String>), CheckpointError> {
    let mut layers: Vec<LayerPlan> = Vec::new();
    let mut notes = Vec::new();
    for (entry, stack) in family.stacks.iter().enumerate() {
        // Entries of the same stack follow one another.
        let planner = StackPlanner::new(stack, entry, store, options);
        let earlier = layers.iter().filter(|l| l.stack == planner.kind());
        let first = earlier.map(|l| l.index + 1).max().unwrap_or(0);
        let found = planner.layers(first)?;
        let present = found.iter().map(|l| l.number).collect::<BTreeSet<_>>().len();
        if let Some(declared) = planner.declared()
            && (1..declared).contains(&present)
        {
            notes.push(format!(
                "{present} of {declared} {} layers are in the file",
                planner.kind().name()
            ));
        }
        layers.extend(found);
    }
    notes.extend(family.note.clone());
    Ok((layers, notes))
}
