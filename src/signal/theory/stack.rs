use super::error::{NoClosedForm, TheoryError};
use super::feed_forward::FeedForwardLaw;
use super::gaussian::GaussianTokens;
use super::gradient::ProjectionLaw;
use crate::attention::{AttentionInit, SelfAttentionConfig};
use crate::model::{NormPlacement, TextTransformerConfig};

/// What the theory needs to know of a model at initialisation.
#[derive(Debug, Clone, PartialEq)]
pub struct Stack {
    /// The tokens at the input of the first block.
    pub tokens: GaussianTokens,
    /// Whether a layer norm made them, so that their norms are all equal.
    pub normed_input: bool,
    /// The projections of every attention.
    pub attention: ProjectionLaw,
    /// Every feed-forward branch.
    pub feed_forward: FeedForwardLaw,
    /// Where the layer norms stand.
    pub norm: NormPlacement,
    /// Their ε.
    pub norm_epsilon: f64,
    /// `α₁` of each layer.
    pub attention_strengths: Vec<f64>,
    /// `α₂` of each layer.
    pub feed_forward_strengths: Vec<f64>,
    /// Whether positions see only themselves and earlier ones.
    pub causal: bool,
}

impl Stack {
    /// The propagation paper's own: single heads as wide as the tokens, linear feed-forward, no norms, unit gains.
    pub fn plain(tokens: GaussianTokens, layers: usize, [alpha_1, alpha_2]: [f64; 2]) -> Self {
        Self {
            tokens,
            normed_input: false,
            attention: ProjectionLaw::single(tokens.d),
            feed_forward: FeedForwardLaw::Linear {
                gain: 1.0,
                hidden: None,
            },
            norm: NormPlacement::None,
            norm_epsilon: 0.0,
            attention_strengths: vec![alpha_1; layers],
            feed_forward_strengths: vec![alpha_2; layers],
            causal: false,
        }
    }

    /// A text transformer as it is built, on sequences of `length` tokens drawn uniformly from its vocabulary.
    ///
    /// # Errors
    /// [`TheoryError::Model`] for a configuration that cannot be built; [`TheoryError::Invalid`] for a length that does
    /// not fit it; [`NoClosedForm::Scheme`] where attention does not start from independent draws.
    pub fn of_text(config: &TextTransformerConfig, length: usize) -> Result<Self, TheoryError> {
        config.check()?;
        if length > config.max_positions {
            return Err(TheoryError::invalid(
                "length",
                length,
                "at most max_positions of the model",
            ));
        }
        let projections = SelfAttentionConfig {
            n_kv_heads: config.n_kv_heads,
            head_dim: config.head_dim,
            ..SelfAttentionConfig::new(config.d_model, config.n_heads)
        }
        .projections()
        .map_err(crate::model::ModelError::from)?;
        let attention = ProjectionLaw::of_init(
            &config.attention_init,
            &projections,
            config.init_std,
            config.inverse_temperature.at(0),
        )
        .ok_or(NoClosedForm::Scheme {
            scheme: scheme(&config.attention_init),
        })?;
        // Token and position embeddings add up; a token that comes twice shares half of its variance with itself.
        let normed_input = config.norm == NormPlacement::Post;
        let variance = if normed_input {
            1.0
        } else {
            2.0 * config.init_std.powi(2)
        };
        let correlation = 0.5 / config.vocab_size as f64;
        Ok(Self {
            tokens: GaussianTokens::new(length, config.d_model, variance, correlation)?,
            normed_input,
            attention,
            feed_forward: FeedForwardLaw::of_text(config),
            norm: config.norm,
            norm_epsilon: config.norm_epsilon,
            attention_strengths: config.attention_strength.of_layers(config.n_layers)?,
            feed_forward_strengths: config.feed_forward_strength.of_layers(config.n_layers)?,
            causal: false,
        })
    }

    /// The same for other tokens at the input, such as those of a text that was measured.
    ///
    /// # Errors
    /// As [`GaussianTokens::new`].
    pub fn with_input(mut self, variance: f64, correlation: f64) -> Result<Self, TheoryError> {
        self.tokens = GaussianTokens::new(self.tokens.n, self.tokens.d, variance, correlation)?;
        Ok(self)
    }

    /// The same as a decoder, which the theory does not cover, or as an encoder.
    pub fn with_causal(mut self, causal: bool) -> Self {
        self.causal = causal;
        self
    }

    /// The same with these strengths of both branches in every layer.
    pub fn with_strengths(mut self, [alpha_1, alpha_2]: [f64; 2]) -> Self {
        self.attention_strengths.fill(alpha_1);
        self.feed_forward_strengths.fill(alpha_2);
        self
    }

    /// The number of blocks.
    pub fn layers(&self) -> usize {
        self.attention_strengths.len()
    }

    /// Refuses what cannot be, and then what the theory does not cover.
    pub(super) fn check(&self) -> Result<(), TheoryError> {
        if self.layers() == 0 {
            return Err(TheoryError::invalid("layers", 0, "at least 1"));
        }
        if self.feed_forward_strengths.len() != self.layers() {
            return Err(TheoryError::invalid(
                "feed_forward_strengths",
                format!("a list of {}", self.feed_forward_strengths.len()),
                "a number for each layer, as attention_strengths",
            ));
        }
        if self.tokens.variance == 0.0 {
            return Err(TheoryError::invalid("input variance", 0, "above 0"));
        }
        for (field, alphas) in [
            ("attention_strengths", &self.attention_strengths),
            ("feed_forward_strengths", &self.feed_forward_strengths),
        ] {
            for &alpha in alphas {
                TheoryError::check_scale(field, alpha)?;
            }
        }
        if self.causal {
            return Err(NoClosedForm::Causal.into());
        }
        Ok(())
    }
}

fn scheme(init: &AttentionInit) -> &'static str {
    match init {
        AttentionInit::Independent(_) => "independent",
        AttentionInit::Tied(_) => "tied",
        AttentionInit::Control(_) => "control",
        AttentionInit::Mimetic(_) => "mimetic",
    }
}
