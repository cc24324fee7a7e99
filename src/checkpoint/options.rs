use std::num::NonZeroUsize;
use std::path::PathBuf;

use super::family::{Alternatives, Family, Layout, Stack, StackKind};

/// How to read a checkpoint. The default reads what `config.json` says, as the plain form of each layer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// The family, by name or `model_type`, in place of `config.json`'s.
    pub family: Option<String>,
    /// The number of query heads, in place of `config.json`'s.
    pub heads: Option<usize>,
    /// The number of key heads, in place of `config.json`'s.
    pub kv_heads: Option<usize>,
    /// The width of a head, in place of `config.json`'s.
    pub head_dim: Option<usize>,
    /// A pattern for the query (or fused) projection of a family that is not listed, such as
    /// `layers.{l}.attn.wq`.
    pub query_pattern: Option<String>,
    /// The same for the key projection, where it is another tensor.
    pub key_pattern: Option<String>,
    /// How the projections of `query_pattern` lie.
    pub layout: Option<Layout>,
    /// What the layers of `query_pattern` are called in reports; an encoder if unset.
    pub stack: Option<StackKind>,
    /// Reads rotary layers as the form between a query and a key that stands this many positions after it.
    /// 0 is the plain form.
    pub offset: i64,
    /// Folds the gain of the preceding norm in, on both sides.
    pub fold_norm: bool,
    /// The folder of a LoRA adapter to merge with the weights.
    pub adapter: Option<PathBuf>,
    /// How many layers are read and scored at the same time, each with its queries and keys in memory. Unset: 2, or
    /// 1 where a layer takes copies in between. Backends with threads of their own (libtorch) do better with 1.
    pub layers_at_once: Option<NonZeroUsize>,
}

impl Options {
    /// The family that `query_pattern` describes.
    pub(super) fn described(&self) -> Option<Result<Family, String>> {
        let query = self.query_pattern.as_ref()?;
        let layout = self.layout.unwrap_or(match self.key_pattern {
            Some(_) => Layout::Separate,
            None => Layout::Fused,
        });
        let patterns = || Some(query).into_iter().chain(&self.key_pattern);
        if let Some(bad) = patterns().find(|pattern| !pattern.contains("{l}")) {
            return Some(Err(format!(
                "the pattern {bad:?} has no {{l}} for the layer's number"
            )));
        }
        let fits = match layout {
            Layout::Separate => self.key_pattern.is_some(),
            Layout::Fused | Layout::FusedColumns | Layout::FusedGroups => self.key_pattern.is_none(),
            Layout::Latent => false,
        };
        if !fits {
            return Some(Err(format!(
                "the layout {} {}",
                layout.name(),
                match layout {
                    Layout::Separate => "needs a --k-pattern",
                    Layout::Latent => "cannot be described by flags",
                    _ => "takes no --k-pattern",
                }
            )));
        }
        let stack = Stack {
            stack: self.stack.unwrap_or_default(),
            layout,
            query: Alternatives::one(query),
            key: self
                .key_pattern
                .as_ref()
                .map(Alternatives::one)
                .unwrap_or_default(),
            ..Stack::default()
        };
        let name = self.family.clone().unwrap_or_else(|| "described by flags".into());
        Some(Ok(Family {
            name,
            stacks: vec![stack],
            ..Family::default()
        }))
    }
}
