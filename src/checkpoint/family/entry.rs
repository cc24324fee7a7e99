//! What an entry of the registry says. The data are in `families.toml`, whose header explains each key.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::condition::Alternatives;

/// A family of models: one entry of the registry.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Family {
    /// What the family is called.
    pub name: String,
    /// The `model_type`s of `config.json` that it answers for.
    #[serde(default)]
    pub types: Vec<String>,
    /// The paper, or where else the architecture is described.
    #[serde(default)]
    pub reference: String,
    /// What a report should say about the family.
    pub note: Option<String>,
    /// The family whose stacks these are, where it has none of its own.
    pub(in crate::checkpoint) like: Option<String>,
    /// Runs of self-attention layers.
    #[serde(default, rename = "stack")]
    pub stacks: Vec<Stack>,
}

/// A run of self-attention layers of a model, and where its queries and keys are.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Stack {
    /// Which part of the model it is.
    pub stack: StackKind,
    /// How queries and keys lie in the file.
    pub layout: Layout,
    /// Name patterns of the query projection, or of the fused one.
    pub query: Alternatives,
    /// Name patterns of the key projection.
    #[serde(default)]
    pub key: Alternatives,
    /// Latent attention: the projection down to the query's latent.
    #[serde(default)]
    pub query_down: Alternatives,
    /// Latent attention: the projection down to the key's latent and to its rotary part.
    #[serde(default)]
    pub key_down: Alternatives,
    /// The norm whose output the attention reads.
    #[serde(default)]
    pub norm: Alternatives,
    /// The same for layer 0, where none of `norm` is there.
    #[serde(default)]
    pub first_norm: Alternatives,
    /// The gain of a normaliser on the queries (latent attention: on their latent).
    #[serde(default)]
    pub query_norm: Alternatives,
    /// The gain of a normaliser on the keys (latent attention: on their latent).
    #[serde(default)]
    pub key_norm: Alternatives,
    /// What is added to every gain: 1 where norms multiply by 1 + weight.
    #[serde(default)]
    pub gain_offset: f32,
    /// How positions rotate queries and keys, if they do.
    #[serde(default)]
    pub rotary: Alternatives,
    /// How many entries of a head rotate; unset, a share of the head that the configuration gives.
    #[serde(default)]
    pub rotary_dim: Alternatives,
    /// The object inside `config.json` that holds the stack's values.
    pub config: Option<String>,
    /// The number of query heads.
    #[serde(default)]
    pub heads: Alternatives,
    /// The number of key heads; unset, that of query heads.
    #[serde(default)]
    pub kv_heads: Alternatives,
    /// The width of a head; unset, what the shape gives.
    #[serde(default)]
    pub head_dim: Alternatives,
    /// The number of layers.
    #[serde(default)]
    pub layers: Alternatives,
    /// The width of the model.
    #[serde(default)]
    pub hidden: Alternatives,
    /// How often a layer is applied.
    #[serde(default)]
    pub repeats: Alternatives,
    /// The configuration's list of layers of this pattern that are not self-attention.
    pub skip: Option<String>,
    /// What the structure paper's code read as the query.
    #[serde(default)]
    pub published_query: Alternatives,
    /// What the structure paper's code read as the key.
    #[serde(default)]
    pub published_key: Alternatives,
    /// Values that `config.json` may leave out.
    #[serde(default)]
    pub defaults: Map<String, Value>,
}

/// Which part of a model a stack of layers is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StackKind {
    /// The only stack of an encoder, or the encoder of two.
    #[default]
    Encoder,
    /// The only stack of a decoder, or the decoder of two.
    Decoder,
    /// The text tower of a model of several kinds of input.
    Text,
    /// The vision tower of such a model.
    Vision,
}

impl StackKind {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Encoder => "encoder",
            Self::Decoder => "decoder",
            Self::Text => "text",
            Self::Vision => "vision",
        }
    }
}

impl std::str::FromStr for StackKind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let all = [Self::Encoder, Self::Decoder, Self::Text, Self::Vision];
        all.into_iter()
            .find(|stack| stack.name() == name)
            .ok_or_else(|| format!("unknown stack {name:?}: one of encoder, decoder, text, vision"))
    }
}

/// How queries and keys lie in the file. No shape can tell a wrong choice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// Two `Linear` weights `[out, in]`.
    #[default]
    Separate,
    /// One `Linear` weight `[q; k; v]`.
    Fused,
    /// One `Conv1D` weight `[in, q | k | v]`.
    FusedColumns,
    /// One `Linear` weight: for each key head its query heads, the key, the value. One query head to a key head
    /// is the per-head interleaving of GPT-NeoX, a single key head is multi-query attention.
    FusedGroups,
    /// Multi-head latent attention.
    Latent,
}

impl Layout {
    /// All layouts.
    pub const ALL: [Self; 5] = [
        Self::Separate,
        Self::Fused,
        Self::FusedColumns,
        Self::FusedGroups,
        Self::Latent,
    ];

    /// Its name in the registry and in flags.
    pub fn name(self) -> &'static str {
        match self {
            Self::Separate => "separate",
            Self::Fused => "fused",
            Self::FusedColumns => "fused-columns",
            Self::FusedGroups => "fused-groups",
            Self::Latent => "latent",
        }
    }

    /// The layout in words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Separate => "separate query and key, Linear [out, in]",
            Self::Fused => "one Linear [q; k; v]",
            Self::FusedColumns => "one Conv1D [in, q | k | v]",
            Self::FusedGroups => "one Linear, per key head its queries, key and value",
            Self::Latent => "latent: low-rank factors, multiplied out",
        }
    }
}

impl std::str::FromStr for Layout {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|layout| layout.name() == name)
            .ok_or_else(|| {
                format!(
                    "unknown layout {name:?}: one of {}",
                    Self::ALL.map(Self::name).join(", ")
                )
            })
    }
}
