//! What a text transformer is made of, checked before anything is built.

use burn::config::Config;
use serde::{Deserialize, Serialize};

use super::strength::Strength;
use super::temperature::InverseTemperature;
use crate::attention::{AttentionError, AttentionInit, SelfAttentionConfig};

/// Where the layer norms stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NormPlacement {
    /// After each residual sum, and after the embeddings, as BERT.
    Post,
    /// Before each branch, and before the prediction head, as GPT-2.
    Pre,
    /// Nowhere: the form that the theory of both papers treats.
    None,
}

/// The point-wise function inside the feed-forward and the prediction head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Activation {
    /// Gaussian error linear unit, exact (by the error function).
    Gelu,
    /// Rectified linear unit.
    Relu,
    /// The identity: a feed-forward of two linear maps.
    Linear,
}

/// What stands in the place of the feed-forward network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FeedForwardKind {
    /// Two linear maps with an activation between them.
    Mlp,
    /// One linear map `[d_model, d_model]`, the form of the propagation paper's theory.
    Linear,
    /// No branch at all: attention-only blocks.
    None,
}

/// A model that cannot be built, or an input that it cannot take.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A size or rate outside its range.
    #[error("model configuration: {field} is {value}, but must be {must}")]
    Invalid {
        /// The field of the configuration.
        field: &'static str,
        /// What it holds.
        value: String,
        /// What it may hold.
        must: String,
    },
    /// More than the memory of this machine holds.
    #[error(
        "a model of {parameters} parameters takes {needed}, but the memory is {memory}: choose a smaller d_model, \
         n_layers or vocabulary"
    )]
    TooLarge {
        /// Their number.
        parameters: String,
        /// What they take.
        needed: String,
        /// What there is.
        memory: String,
    },
    /// The attention of a block cannot be built.
    #[error(transparent)]
    Attention(#[from] AttentionError),
}

/// Configuration of a [`TextTransformer`](crate::model::TextTransformer).
///
/// The defaults are BERT's as the structure paper trains it (supplementary table of configurations):
/// post-norm, GELU, dropout 0.1, ε 1e-12, 512 positions, tied output embedding. Encoder and decoder
/// differ by [`ObjectiveMode`](crate::objective::ObjectiveMode) alone, not by anything here.
///
/// # Examples
/// ```
/// use wqk::model::{NormPlacement, TextTransformerConfig};
/// let bert = TextTransformerConfig::base();
/// assert_eq!((bert.n_layers, bert.d_model, bert.n_heads), (12, 768, 12));
/// let bare = TextTransformerConfig::bare(1000, 64, 6, 4);
/// assert_eq!(bare.norm, NormPlacement::None);
/// ```
#[derive(Config, Debug, PartialEq)]
pub struct TextTransformerConfig {
    /// Number of distinct tokens.
    pub vocab_size: usize,
    /// Width of the residual stream.
    pub d_model: usize,
    /// Number of blocks.
    pub n_layers: usize,
    /// Number of query heads.
    pub n_heads: usize,
    /// Number of key and value heads; as many as query heads if not given.
    pub n_kv_heads: Option<usize>,
    /// Width of a head; `d_model / n_heads` if not given.
    pub head_dim: Option<usize>,
    /// Width inside the feed-forward; `4 d_model` if not given.
    pub d_ff: Option<usize>,
    /// Longest sequence: the number of learned positions.
    #[config(default = 512)]
    pub max_positions: usize,
    /// Dropout after the embeddings and on each branch.
    #[config(default = 0.1)]
    pub dropout: f64,
    /// Dropout on the attention weights, after the softmax.
    #[config(default = 0.1)]
    pub attention_dropout: f64,
    /// Where the layer norms stand.
    #[config(default = "NormPlacement::Post")]
    pub norm: NormPlacement,
    /// The ε of the layer norms.
    #[config(default = 1e-12)]
    pub norm_epsilon: f64,
    /// The activation of feed-forward and prediction head.
    #[config(default = "Activation::Gelu")]
    pub activation: Activation,
    /// What stands for the feed-forward.
    #[config(default = "FeedForwardKind::Mlp")]
    pub feed_forward: FeedForwardKind,
    /// Whether linear maps and the output have biases.
    #[config(default = true)]
    pub bias: bool,
    /// Whether the prediction head has BERT's dense map, activation and norm before the vocabulary.
    #[config(default = true)]
    pub head_transform: bool,
    /// How the query and key projections start.
    #[config(default = "AttentionInit::default()")]
    pub attention_init: AttentionInit,
    /// Standard deviation of all other weights at initialisation.
    #[config(default = 0.02)]
    pub init_std: f64,
    /// Factor on each attention branch, `α₁` of the propagation paper.
    #[config(default = "Strength::ONE")]
    pub attention_strength: Strength,
    /// Factor on each feed-forward branch, `α₂` of the propagation paper.
    #[config(default = "Strength::ONE")]
    pub feed_forward_strength: Strength,
    /// Whether these factors are trained with the weights, from where they start.
    #[config(default = false)]
    pub train_strengths: bool,
    /// Factor on the logits of the attention, fixed or rising over training.
    #[config(default = "InverseTemperature::ONE")]
    pub inverse_temperature: InverseTemperature,
}

/// The vocabulary of bert-base-uncased, which the structure paper's models use.
const BERT_VOCABULARY: usize = 30_522;

impl TextTransformerConfig {
    /// The structure paper's BERT-Mini: 4 layers, 256 wide, 4 heads.
    pub fn mini() -> Self {
        Self::new(BERT_VOCABULARY, 256, 4, 4)
    }

    /// The structure paper's BERT: 12 layers, 768 wide, 12 heads.
    pub fn base() -> Self {
        Self::new(BERT_VOCABULARY, 768, 12, 12)
    }

    /// The structure paper's BERT-Large: 24 layers, 1024 wide, 16 heads.
    pub fn large() -> Self {
        Self::new(BERT_VOCABULARY, 1024, 24, 16)
    }

    /// The bare form that the theory of both papers treats: no norm, no bias, no dropout, one linear map
    /// for the feed-forward, an output tied to the embedding with nothing before it.
    pub fn bare(vocab_size: usize, d_model: usize, n_layers: usize, n_heads: usize) -> Self {
        Self::new(vocab_size, d_model, n_layers, n_heads)
            .with_norm(NormPlacement::None)
            .with_bias(false)
            .with_dropout(0.0)
            .with_attention_dropout(0.0)
            .with_activation(Activation::Linear)
            .with_feed_forward(FeedForwardKind::Linear)
            .with_head_transform(false)
    }

    /// Width inside the feed-forward.
    pub fn ff_width(&self) -> usize {
        self.d_ff.unwrap_or(self.d_model.saturating_mul(4))
    }

    /// Refuses what cannot be built.
    ///
    /// # Errors
    /// [`ModelError::Invalid`] with the field, its value and what it must be; [`ModelError::Attention`] for head
    /// counts that do not divide.
    pub fn check(&self) -> Result<(), ModelError> {
        // Far above any model that was ever built: beyond them a size is a slip, and would end in want of memory.
        let sizes = [
            ("vocab_size", self.vocab_size, 1 << 26),
            ("d_model", self.d_model, 1 << 18),
            ("n_layers", self.n_layers, 1 << 14),
            ("n_heads", self.n_heads, 1 << 18),
            ("max_positions", self.max_positions, 1 << 26),
            ("d_ff", self.ff_width(), 1 << 20),
            ("head_dim", self.head_dim.unwrap_or(1), 1 << 18),
        ];
        for (field, value, largest) in sizes {
            if !(1..=largest).contains(&value) {
                return Err(invalid(
                    field,
                    value,
                    &format!("at least 1 and at most {largest}"),
                ));
            }
        }
        SelfAttentionConfig {
            n_kv_heads: self.n_kv_heads,
            head_dim: self.head_dim,
            ..SelfAttentionConfig::new(self.d_model, self.n_heads)
        }
        .projections()?;
        for (field, rate) in [
            ("dropout", self.dropout),
            ("attention_dropout", self.attention_dropout),
        ] {
            if !(0.0..1.0).contains(&rate) {
                return Err(invalid(field, rate, "at least 0 and below 1"));
            }
        }
        for (field, value) in [("init_std", self.init_std), ("norm_epsilon", self.norm_epsilon)] {
            if !value.is_finite() || value < 0.0 {
                return Err(invalid(field, value, "finite and not negative"));
            }
        }
        self.attention_strength
            .check("attention_strength", self.n_layers)?;
        self.feed_forward_strength
            .check("feed_forward_strength", self.n_layers)?;
        self.inverse_temperature.check()
    }
}

pub(super) fn invalid(field: &'static str, value: impl ToString, must: &str) -> ModelError {
    ModelError::Invalid {
        field,
        value: value.to_string(),
        must: must.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_the_papers() {
        // Supplementary table of BERT configurations: hidden, intermediate, heads, layers.
        for (config, want) in [
            (TextTransformerConfig::mini(), (256, 1024, 4, 4)),
            (TextTransformerConfig::base(), (768, 3072, 12, 12)),
            (TextTransformerConfig::large(), (1024, 4096, 16, 24)),
        ] {
            assert_eq!(
                (config.d_model, config.ff_width(), config.n_heads, config.n_layers),
                want
            );
            assert_eq!((config.vocab_size, config.max_positions), (30_522, 512));
            assert_eq!((config.dropout, config.attention_dropout), (0.1, 0.1));
            assert_eq!(
                (config.activation, config.norm_epsilon),
                (Activation::Gelu, 1e-12)
            );
        }
    }

    #[test]
    fn impossible_sizes_name_the_field() {
        for (config, field) in [
            (TextTransformerConfig::new(10, 8, 0, 2), "n_layers"),
            (TextTransformerConfig::new(0, 8, 1, 2), "vocab_size"),
            (
                TextTransformerConfig::new(10, 8, 1, 2).with_dropout(1.0),
                "dropout",
            ),
            (
                TextTransformerConfig::new(10, 8, 1, 2).with_init_std(f64::NAN),
                "init_std",
            ),
            (
                TextTransformerConfig::new(10, 8, 3, 2)
                    .with_attention_strength(Strength::PerLayer(vec![1.0])),
                "attention_strength",
            ),
            (
                TextTransformerConfig::new(10, 8, 3, 2).with_inverse_temperature(f64::NAN.into()),
                "inverse_temperature",
            ),
        ] {
            let message = config.check().unwrap_err().to_string();
            assert!(message.contains(field), "{message}");
        }
    }
}
