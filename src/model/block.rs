//! One transformer block: attention and feed-forward, each a branch on the residual stream.

use burn::module::{Module, Param};
use burn::nn::{LayerNorm, LayerNormConfig};
use burn::tensor::backend::Backend;
use burn::tensor::{Device, Tensor, TensorData};

use super::config::{ModelError, NormPlacement, TextTransformerConfig};
use super::feed_forward::FeedForward;
use super::residual::Residual;
use crate::attention::{AttentionMask, AttentionTrace, Noise, SelfAttention, SelfAttentionConfig};
use crate::backend::Precision;
use crate::random;

/// The two layer norms of a block.
#[derive(Module, Debug)]
pub struct Normalisation<B: Backend> {
    /// Beside the attention branch.
    pub attention: LayerNorm<B>,
    /// Beside the feed-forward branch.
    pub feed_forward: LayerNorm<B>,
}

/// A block: `Z = X + α₁ S(X)`, `X' = Z + α₂ F(Z)`, with layer norms as the configuration places them.
///
/// Post-norm normalises each sum; pre-norm normalises the input of each branch.
#[derive(Module, Debug)]
pub struct Block<B: Backend> {
    /// The attention branch S.
    pub attention: SelfAttention<B>,
    /// The feed-forward branch F, if there is one.
    pub feed_forward: Option<FeedForward<B>>,
    /// The layer norms, if there are any.
    pub norms: Option<Normalisation<B>>,
    #[module(skip)]
    placement: NormPlacement,
    #[module(skip)]
    dropout: f64,
    /// `α₁` and `α₂` where they are trained, `[2]`.
    pub trained_strengths: Option<Param<Tensor<B, 1>>>,
    #[module(skip)]
    strengths: [f64; 2],
}

/// The path of the attention module of a block within its model.
pub(super) fn attention_path(index: usize) -> String {
    format!("blocks.{index}.attention")
}

impl<B: Backend> Block<B> {
    pub(super) fn init(
        config: &TextTransformerConfig,
        seed: u64,
        index: usize,
        device: &Device<B>,
    ) -> Result<Self, ModelError> {
        let layer = format!("layer {index}");
        let attention = SelfAttentionConfig {
            n_kv_heads: config.n_kv_heads,
            head_dim: config.head_dim,
            dropout: config.attention_dropout,
            bias: config.bias,
            inverse_temperature: config.inverse_temperature.at(0),
            init: config.attention_init,
            std: config.init_std,
            ..SelfAttentionConfig::new(config.d_model, config.n_heads)
        }
        .init(device, &mut random::stream(seed, ["init", &layer, "attention"]))?;
        let strengths = [&config.attention_strength, &config.feed_forward_strength]
            .map(|strength| strength.of_layer(index, config.n_layers));
        let norm = || {
            LayerNormConfig::new(config.d_model)
                .with_epsilon(config.norm_epsilon)
                .init(device)
        };
        Ok(Self {
            attention,
            feed_forward: FeedForward::init(config, seed, &layer, device),
            norms: (config.norm != NormPlacement::None).then(|| Normalisation {
                attention: norm(),
                feed_forward: norm(),
            }),
            placement: config.norm,
            dropout: config.dropout,
            trained_strengths: config
                .train_strengths
                .then(|| Param::from_data(TensorData::from(strengths.map(|alpha| alpha as f32)), device)),
            strengths,
        })
    }

    /// Applies the block.
    ///
    /// `noise` keys the dropout to one place of one step; without it Burn's own dropout acts where
    /// autodiff is on.
    ///
    /// # Shape
    /// `[batch, n_tokens, d_model]` to the same.
    pub fn forward(
        &self,
        x: Tensor<B, 3>,
        mask: Option<&AttentionMask<B>>,
        noise: Option<&Noise>,
    ) -> Tensor<B, 3> {
        let weights_noise = noise.map(|n| n.at("attention weights"));
        self.apply(x, noise, |x| {
            self.attention.forward_with(x, mask, weights_noise.as_ref())
        })
    }

    /// The same, and what went on in the attention of the block, which is called `module`.
    pub fn forward_traced(
        &self,
        x: Tensor<B, 3>,
        mask: Option<&AttentionMask<B>>,
        noise: Option<&Noise>,
        module: String,
        traces: &mut Vec<AttentionTrace<B>>,
    ) -> Tensor<B, 3> {
        let weights_noise = noise.map(|n| n.at("attention weights"));
        self.apply(x, noise, |x| {
            let trace = self.attention.trace(module, x, mask, weights_noise.as_ref());
            let output = trace.output.output.clone();
            traces.push(trace);
            output
        })
    }

    /// All blocks of a model, first to last, with what went on in the attention of each.
    pub(super) fn trace_all(
        blocks: &[Self],
        mut x: Tensor<B, 3>,
        mask: Option<&AttentionMask<B>>,
        noise: Option<&Noise>,
    ) -> (Tensor<B, 3>, Vec<AttentionTrace<B>>) {
        let mut traces = Vec::with_capacity(blocks.len());
        for (index, block) in blocks.iter().enumerate() {
            let noise = noise.map(|n| n.at(format!("layer {index}")));
            x = block.forward_traced(x, mask, noise.as_ref(), attention_path(index), &mut traces);
        }
        (x, traces)
    }

    /// Both branches, with the attention given.
    fn apply(
        &self,
        x: Tensor<B, 3>,
        noise: Option<&Noise>,
        attention: impl FnOnce(Tensor<B, 3>) -> Tensor<B, 3>,
    ) -> Tensor<B, 3> {
        let x = self.branch(x, 0, noise, attention);
        match &self.feed_forward {
            Some(feed_forward) => self.branch(x, 1, noise, |x| feed_forward.forward(x)),
            None => x,
        }
    }

    /// What the attention of the block is given: the stream, or its layer norm where that comes first.
    ///
    /// # Shape
    /// `[batch, n_tokens, d_model]` to the same.
    pub fn attention_input(&self, x: Tensor<B, 3>) -> Tensor<B, 3> {
        match &self.norms {
            Some(norms) if self.placement == NormPlacement::Pre => norms.attention.forward(x),
            _ => x,
        }
    }

    pub(super) fn set_precision(&mut self, precision: Precision) {
        self.attention.set_precision(precision);
        if let Some(feed_forward) = &mut self.feed_forward {
            feed_forward.precision = precision;
        }
    }

    pub(super) fn set_no_dropout(&mut self) {
        self.dropout = 0.0;
        self.attention.set_no_dropout();
    }

    /// `α₁` and `α₂`, the factors on the two branches, as they are now.
    pub fn strengths(&self) -> [f64; 2] {
        match &self.trained_strengths {
            Some(strengths) => {
                let now: Vec<f64> = strengths.val().into_data().iter::<f64>().collect();
                [now[0], now[1]]
            }
            None => self.strengths,
        }
    }

    /// Adds branch 0 (attention) or 1 (feed-forward) to the stream.
    fn branch(
        &self,
        x: Tensor<B, 3>,
        which: usize,
        noise: Option<&Noise>,
        branch: impl FnOnce(Tensor<B, 3>) -> Tensor<B, 3>,
    ) -> Tensor<B, 3> {
        let norm = self
            .norms
            .as_ref()
            .map(|n| if which == 0 { &n.attention } else { &n.feed_forward });
        let place = ["attention branch", "feed-forward branch"][which];
        let residual = Residual {
            norm,
            placement: self.placement,
            dropout: self.dropout,
            strength: self.strengths[which],
            trained: self
                .trained_strengths
                .as_ref()
                .map(|strengths| (strengths, which)),
        };
        residual.add(x, noise.map(|n| n.at(place)).as_ref(), branch)
    }
}
