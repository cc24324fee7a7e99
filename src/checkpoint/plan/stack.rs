//! The layers of one stack.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::error_context::Context;
use super::super::family::{Alternatives, Config, Layout, Pattern, Place, Size, Stack, StackKind};
use super::shapes::{HEAD_DIM, HEADS, KV_HEADS};
use super::{CheckpointError, LayerPlan, Options, Store};
use crate::bilinear::{Heads, RotaryPairs};

/// Finds the layers of one entry of a family.
pub(super) struct StackPlanner<'a> {
    pub(super) context: Context<'a>,
    pub(super) store: &'a Store,
    pub(super) options: &'a Options,
    pub(super) stack: &'a Stack,
    pub(super) config: Config<'a>,
    entry: usize,
}

const LAYERS: &[&str] = &["num_hidden_layers", "n_layer", "n_layers", "num_layers"];
const HIDDEN: &[&str] = &["hidden_size", "n_embd", "d_model", "dim"];

impl<'a> StackPlanner<'a> {
    pub fn new(stack: &'a Stack, entry: usize, store: &'a Store, options: &'a Options) -> Self {
        let config = Config::new(store.config(), stack.config.as_deref(), &stack.defaults);
        Self {
            context: Context(store),
            store,
            options,
            stack,
            config,
            entry,
        }
    }

    /// The layers of the stack in the file; `first` is the index of its layer 0.
    pub fn layers(&self, first: usize) -> Result<Vec<LayerPlan>, CheckpointError> {
        let Some((alternative, places)) = self.find()? else {
            return Ok(Vec::new());
        };
        self.check_sizes()?;
        let inner = places.iter().map(|place| place.inner + 1).max().unwrap_or(1);
        places
            .into_iter()
            .map(|place| {
                let index = first + (place.layer - self.skipped(place.layer)) * inner + place.inner;
                self.layer(alternative, place, index)
            })
            .collect()
    }

    /// Refuses sizes of the configuration that are no sizes: taken for missing, they would be guessed.
    fn check_sizes(&self) -> Result<(), CheckpointError> {
        let (stack, options) = (self.stack, self.options);
        let sizes: [(_, &[&str], _, _); 7] = [
            (&stack.heads, HEADS, options.heads.is_some(), "--n-heads"),
            (
                &stack.kv_heads,
                KV_HEADS,
                options.kv_heads.is_some(),
                "--n-kv-heads",
            ),
            (
                &stack.head_dim,
                HEAD_DIM,
                options.head_dim.is_some(),
                "--head-dim",
            ),
            (&stack.layers, LAYERS, false, ""),
            (&stack.hidden, HIDDEN, false, ""),
            (&stack.rotary_dim, &[], false, ""),
            (&stack.repeats, &[], false, ""),
        ];
        for (alternatives, usual, stated, flag) in sizes {
            if let (false, Some((key, value))) = (stated, self.config.misgiven(alternatives, usual)) {
                return Err(self.context.misgiven(&key, value, flag));
            }
        }
        Ok(())
    }

    /// Which of the query patterns the file follows, and where.
    fn find(&self) -> Result<Option<(usize, Vec<Place<'_>>)>, CheckpointError> {
        for (i, text) in self.stack.query.all().enumerate() {
            let pattern = Pattern::new(text);
            let mut places: Vec<_> = self.store.names().filter_map(|name| pattern.find(name)).collect();
            places.sort();
            let (Some(first), Some(last)) = (places.first(), places.last()) else {
                continue;
            };
            if first.prefix != last.prefix {
                let mut prefixes: Vec<_> = places.iter().map(|place| place.prefix.to_owned()).collect();
                prefixes.dedup();
                return Err(self.context.ambiguous(text, prefixes));
            }
            return Ok(Some((i, places)));
        }
        Ok(None)
    }

    /// The configuration's number of self-attention layers.
    pub fn declared(&self) -> Option<usize> {
        let declared = self.declared_numbers()?.value;
        Some(declared - self.skipped(declared))
    }

    /// The configuration's number of layers of the pattern, of whatever kind.
    fn declared_numbers(&self) -> Option<Size> {
        self.config.size(&self.stack.layers, LAYERS)
    }

    /// Which part of a model the stack is. An encoder's architecture under a causal mask is a decoder: BERT's family
    /// says so by `is_decoder`, which models of two stacks set for other ends.
    pub(super) fn kind(&self) -> StackKind {
        let is = |key| self.config.value(key).and_then(Value::as_bool) == Some(true);
        match self.stack.stack {
            StackKind::Encoder if is("is_decoder") && !is("is_encoder_decoder") => StackKind::Decoder,
            kind => kind,
        }
    }

    /// How many layers before `layer` are not self-attention.
    fn skipped(&self, layer: usize) -> usize {
        let list = self
            .stack
            .skip
            .as_ref()
            .and_then(|key| self.config.value(key)?.as_array());
        let numbers = list.into_iter().flatten().filter_map(|number| number.as_u64());
        numbers
            .filter(|&number| number < layer as u64)
            .collect::<BTreeSet<_>>()
            .len()
    }

    fn layer(
        &self,
        alternative: usize,
        place: Place<'_>,
        index: usize,
    ) -> Result<LayerPlan, CheckpointError> {
        let stack = self.stack;
        let query = self.nth(&stack.query, alternative, place);
        let key = if stack.key.is_empty() {
            query.clone()
        } else {
            self.nth(&stack.key, alternative, place)
        };
        if let Some(declared) = self.declared_numbers()
            && place.layer >= declared.value
        {
            let why = format!("this is layer {}", place.layer);
            return Err(self
                .context
                .disagrees(&declared, &query, &self.matrix(&query)?, why));
        }
        let (projection, shape, d_model) = match stack.layout {
            Layout::Separate => self.separate(&query, &key)?,
            Layout::Fused | Layout::FusedColumns | Layout::FusedGroups => self.fused(&query)?,
            Layout::Latent => self.latent(&query, &key, place)?,
        };
        if let Some(hidden) = self.config.size(&stack.hidden, HIDDEN)
            && hidden.value != d_model
        {
            let why = format!("which reads {d_model} inputs");
            return Err(self
                .context
                .disagrees(&hidden, &query, &self.matrix(&query)?, why));
        }
        let gain = |alternatives: &Alternatives| self.first_present(alternatives, place);
        let norm = gain(&stack.norm).or_else(|| {
            if place.layer == 0 {
                gain(&stack.first_norm)
            } else {
                None
            }
        });
        let published = [&stack.published_query, &stack.published_key].map(|p| self.first_present(p, place));
        Ok(LayerPlan {
            stack: self.kind(),
            index,
            number: place.layer,
            module: module(&query, &key),
            repeats: self
                .config
                .size(&stack.repeats, &[])
                .map_or(1, |size| size.value.max(1)),
            heads: Heads::grouped(shape.heads.value, shape.kv_heads.value),
            head_dim: shape.head_dim,
            d_model,
            layout: stack.layout,
            projection,
            // An embedding narrower than the model is projected up after its norm, which then does not come before
            // the attention.
            norm: norm.filter(|name| place.layer > 0 || self.length(name) == Some(d_model)),
            query_norm: gain(&stack.query_norm),
            key_norm: gain(&stack.key_norm),
            gain_offset: stack.gain_offset,
            rotary: stack
                .rotary
                .holding(&self.config)
                .next()
                .map(|convention| match convention {
                    "interleaved" => RotaryPairs::Interleaved,
                    _ => RotaryPairs::Half,
                }),
            entry: self.entry,
            published: match published {
                [Some(query), Some(key)] => Some((query, key)),
                _ => None,
            },
        })
    }

    /// The name that the alternative gives; the last where there are fewer.
    pub(super) fn nth(&self, alternatives: &Alternatives, alternative: usize, place: Place<'_>) -> String {
        let text = alternatives
            .all()
            .nth(alternative)
            .or_else(|| alternatives.all().last())
            .unwrap_or_default();
        Pattern::new(text).at(place).unwrap_or_default()
    }

    /// The first of the alternatives that the file holds; a norm may go by the old name of its gain.
    pub(super) fn first_present(&self, alternatives: &Alternatives, place: Place<'_>) -> Option<String> {
        alternatives
            .holding(&self.config)
            .filter_map(|text| Pattern::new(text).at(place))
            .find_map(|name| {
                let old = name.strip_suffix("weight").map(|stem| format!("{stem}gamma"));
                [Some(name), old]
                    .into_iter()
                    .flatten()
                    .find(|name| self.store.info(name).is_some())
            })
    }

    fn length(&self, tensor: &str) -> Option<usize> {
        self.store.info(tensor).map(|info| info.elements())
    }

    /// A tensor's shape, which must be a matrix's.
    pub(super) fn matrix(&self, tensor: &str) -> Result<[usize; 2], CheckpointError> {
        self.context.matrix(tensor)
    }
}

/// The module that holds both projections: what their names share.
fn module(query: &str, key: &str) -> String {
    let parents = |name: &str| name.split('.').map(str::to_owned).collect::<Vec<_>>();
    let (query, key) = (parents(query), parents(key));
    let shared = query.iter().zip(&key).take_while(|(a, b)| a == b).count();
    // A fused projection shares its whole name; its module is what holds it.
    let shared = shared.min(query.len().saturating_sub(2));
    query[..shared].join(".")
}
