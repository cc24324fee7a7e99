use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::activation::softmax;
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{Tensor, TensorData};
use serde::{Deserialize, Serialize};

use super::init::{self, Projections};
use super::{AttentionError, AttentionInit, AttentionMask, Noise, dropout};
use crate::backend::Precision;
use crate::bilinear::{BilinearError, BilinearForm, Heads};
use crate::random::Rng;

/// The settings of a [`SelfAttention`] layer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SelfAttentionConfig {
    /// The width of the model.
    pub d_model: usize,
    /// Query heads.
    pub n_heads: usize,
    /// Key and value heads; as many as query heads by default.
    pub n_kv_heads: Option<usize>,
    /// The width of a head; `d_model / n_heads` by default.
    pub head_dim: Option<usize>,
    /// The rate of dropout on the weights, after the softmax. Default: 0.
    pub dropout: f64,
    /// Whether the four projections have biases, which start at 0. Default: true.
    pub bias: bool,
    /// A factor on the logits, beside `1/√head_dim`. Default: 1.
    pub inverse_temperature: f64,
    /// The standard deviation of the weights, where `init` sets no other. Default: 0.02, as BERT and GPT-2.
    pub std: f64,
    /// How the weights start. Default: independent.
    pub init: AttentionInit,
}

impl SelfAttentionConfig {
    /// Multi-head attention with the defaults of every other setting.
    pub fn new(d_model: usize, n_heads: usize) -> Self {
        Self {
            d_model,
            n_heads,
            n_kv_heads: None,
            head_dim: None,
            dropout: 0.0,
            bias: true,
            inverse_temperature: 1.0,
            std: 0.02,
            init: AttentionInit::default(),
        }
    }

    /// Sets the number of key and value heads: grouped-query attention.
    pub fn with_n_kv_heads(mut self, n_kv_heads: usize) -> Self {
        self.n_kv_heads = Some(n_kv_heads);
        self
    }

    /// Sets the width of a head.
    pub fn with_head_dim(mut self, head_dim: usize) -> Self {
        self.head_dim = Some(head_dim);
        self
    }

    /// Sets the rate of dropout.
    pub fn with_dropout(mut self, dropout: f64) -> Self {
        self.dropout = dropout;
        self
    }

    /// Sets whether the projections have biases.
    pub fn with_bias(mut self, bias: bool) -> Self {
        self.bias = bias;
        self
    }

    /// Sets the factor on the logits.
    pub fn with_inverse_temperature(mut self, inverse_temperature: f64) -> Self {
        self.inverse_temperature = inverse_temperature;
        self
    }

    /// Sets the standard deviation of the weights.
    pub fn with_std(mut self, std: f64) -> Self {
        self.std = std;
        self
    }

    /// Sets how the weights start.
    pub fn with_init(mut self, init: impl Into<AttentionInit>) -> Self {
        self.init = init.into();
        self
    }

    /// The layout of the heads.
    pub fn heads(&self) -> Heads {
        Heads::grouped(self.n_heads, self.n_kv_heads.unwrap_or(self.n_heads))
    }

    /// The shapes of the projections.
    ///
    /// # Errors
    /// Widths of 0, heads that do not divide, or a model width that does not divide among them where no head
    /// width is set.
    pub fn projections(&self) -> Result<Projections, AttentionError> {
        let heads = self.heads();
        heads.check()?;
        if self.d_model == 0 {
            return Err(AttentionError::Zero("d_model"));
        }
        let head_dim = match self.head_dim {
            Some(0) => return Err(AttentionError::Zero("head_dim")),
            Some(head_dim) => head_dim,
            None if self.d_model.is_multiple_of(self.n_heads) => self.d_model / self.n_heads,
            None => {
                return Err(AttentionError::HeadWidth {
                    d_model: self.d_model,
                    n_heads: self.n_heads,
                });
            }
        };
        Ok(Projections {
            d_model: self.d_model,
            heads,
            head_dim,
        })
    }

    /// The layer, with weights drawn on the host from `rng`.
    ///
    /// Two calls with equal generators give equal weights, on every backend. What is not set by the
    /// initialisation is drawn alike for all of them: the arms of a comparison share values, outputs and, where
    /// they can, queries.
    ///
    /// # Errors
    /// As [`projections`](Self::projections); a dropout rate outside [0, 1), an inverse temperature or standard
    /// deviation that is negative or not finite.
    pub fn init<B: Backend>(
        &self,
        device: &B::Device,
        rng: &mut Rng,
    ) -> Result<SelfAttention<B>, AttentionError> {
        let projections = self.projections()?;
        if !(0.0..1.0).contains(&self.dropout) {
            return Err(AttentionError::OutOfRange {
                name: "dropout",
                value: self.dropout,
                range: "in [0, 1)",
            });
        }
        AttentionError::check_scale("inverse_temperature", self.inverse_temperature)?;
        let weights = init::draw(&self.init, &projections, self.std, rng)?;
        let linear = |matrix: init::Matrix| Linear {
            bias: self
                .bias
                .then(|| Param::from_data(TensorData::zeros::<f32, _>([matrix.shape[1]]), device)),
            weight: Param::from_data(TensorData::new(matrix.values, matrix.shape), device),
        };
        Ok(SelfAttention {
            query: linear(weights.query),
            key: linear(weights.key),
            value: linear(weights.value),
            output: linear(weights.output),
            n_heads: projections.heads.n_heads(),
            n_kv_heads: projections.heads.n_kv_heads(),
            head_dim: projections.head_dim,
            dropout: self.dropout,
            inverse_temperature: self.inverse_temperature,
            precision: Precision::F32,
        })
    }
}

/// Scaled dot-product self-attention, multi-head or grouped.
///
/// `softmax(τ Q Kᵀ/√head_dim) V W_o` with the rows of `X` as tokens, per head, the heads side by side before the
/// output projection. Dropout acts on the weights, after the softmax.
///
/// Made by [`SelfAttentionConfig::init`].
#[derive(Module, Debug)]
pub struct SelfAttention<B: Backend> {
    /// `[d_model, n_heads * head_dim]`.
    pub query: Linear<B>,
    /// `[d_model, n_kv_heads * head_dim]`.
    pub key: Linear<B>,
    /// `[d_model, n_kv_heads * head_dim]`.
    pub value: Linear<B>,
    /// `[n_heads * head_dim, d_model]`.
    pub output: Linear<B>,
    n_heads: usize,
    n_kv_heads: usize,
    head_dim: usize,
    dropout: f64,
    inverse_temperature: f64,
    #[module(skip)]
    precision: Precision,
}

/// What a layer computed, in detail.
#[derive(Debug, Clone)]
pub struct AttentionOutput<B: Backend> {
    /// The output, `[batch, n, d_model]`.
    pub output: Tensor<B, 3>,
    /// The queries with their bias, `[batch, n_heads, n, head_dim]`.
    pub queries: Tensor<B, 4>,
    /// The keys with their bias, `[batch, n_kv_heads, n, head_dim]`.
    pub keys: Tensor<B, 4>,
    /// The raw scores `Â = Q Kᵀ`, without scale or mask, `[batch, n_heads, n, n]`.
    pub scores: Tensor<B, 4>,
    /// The weights after the softmax and before dropout, `[batch, n_heads, n, n]`.
    pub weights: Tensor<B, 4>,
    /// A zero that was added to the raw scores: a leaf, where the scores themselves are none.
    tap: Tensor<B, 4>,
}

impl<B: AutodiffBackend> AttentionOutput<B> {
    /// The gradient of the loss in the raw scores, `∂L/∂Â`, `[batch, n_heads, n, n]`.
    ///
    /// `None` where the loss does not depend on this layer.
    pub fn scores_grad(&self, gradients: &B::Gradients) -> Option<Tensor<B::InnerBackend, 4>> {
        self.tap.grad(gradients)
    }
}

impl<B: Backend> SelfAttention<B> {
    /// The layout of the heads.
    pub fn heads(&self) -> Heads {
        Heads::grouped(self.n_heads, self.n_kv_heads)
    }

    /// The width of a head.
    pub fn head_dim(&self) -> usize {
        self.head_dim
    }

    /// The factor on the logits beside `1/√head_dim`.
    pub fn inverse_temperature(&self) -> f64 {
        self.inverse_temperature
    }

    /// Sets the factor on the logits, as a schedule over training does.
    pub fn set_inverse_temperature(&mut self, inverse_temperature: f64) {
        self.inverse_temperature = inverse_temperature;
    }

    /// Sets the number type of the products.
    pub fn set_precision(&mut self, precision: Precision) {
        self.precision = precision;
    }

    /// Takes away the dropout, for measurements on autodiff backends.
    pub fn set_no_dropout(&mut self) {
        self.dropout = 0.0;
    }

    /// The bilinear form of the layer.
    ///
    /// # Errors
    /// [`BilinearError::NotFinite`] where training has gone astray.
    pub fn form(&self) -> Result<BilinearForm<B>, BilinearError> {
        self.try_into()
    }

    /// The output of the layer, with Burn's own dropout on autodiff backends.
    ///
    /// # Shape
    /// - `x`: `[batch, n, d_model]`
    /// - output: `[batch, n, d_model]`
    pub fn forward(&self, x: Tensor<B, 3>, mask: Option<&AttentionMask<B>>) -> Tensor<B, 3> {
        self.forward_with(x, mask, None)
    }

    /// The same with dropout from a [`Noise`], if one is given, which must be of this layer's place.
    pub fn forward_with(
        &self,
        x: Tensor<B, 3>,
        mask: Option<&AttentionMask<B>>,
        noise: Option<&Noise>,
    ) -> Tensor<B, 3> {
        // The scale goes to the queries, which are fewer than the logits.
        let query = self.linear(&self.query, x.clone()).mul_scalar(self.scale());
        let logits = self.products(query, self.linear(&self.key, x.clone()));
        let weights = self.weights(logits, mask);
        self.mix(weights, x, noise)
    }

    /// Attention to another sequence: queries from `x`, keys and values from `memory`.
    ///
    /// Its form lives between two spaces and is never scored.
    ///
    /// # Shape
    /// - `x`: `[batch, n, d_model]`, `memory`: `[batch, m, d_model]`
    /// - a mask hides keys of `memory`, `[1 or batch, n, m]`
    /// - output: `[batch, n, d_model]`
    pub fn forward_cross(
        &self,
        x: Tensor<B, 3>,
        memory: Tensor<B, 3>,
        mask: Option<&AttentionMask<B>>,
        noise: Option<&Noise>,
    ) -> Tensor<B, 3> {
        let query = self.linear(&self.query, x).mul_scalar(self.scale());
        let logits = self.products(query, self.linear(&self.key, memory.clone()));
        let weights = self.weights(logits, mask);
        self.mix(weights, memory, noise)
    }

    /// The same with the raw scores and the weights, in such a way that autodiff gives the gradient of the raw
    /// scores: see [`AttentionOutput::scores_grad`].
    pub fn forward_detailed(
        &self,
        x: Tensor<B, 3>,
        mask: Option<&AttentionMask<B>>,
        noise: Option<&Noise>,
    ) -> AttentionOutput<B> {
        let queries = self.split(self.linear(&self.query, x.clone()), self.n_heads);
        let keys = self.split(self.linear(&self.key, x.clone()), self.n_kv_heads);
        let scores = self.by_group(queries.clone(), keys.clone().swap_dims(2, 3));
        let tap = Tensor::zeros(scores.shape(), &scores.device()).require_grad();
        let logits = (scores.clone() + tap.clone()).mul_scalar(self.scale());
        let weights = self.weights(logits, mask);
        AttentionOutput {
            output: self.mix(weights.clone(), x, noise),
            queries,
            keys,
            scores,
            weights,
            tap,
        }
    }

    fn linear(&self, map: &Linear<B>, x: Tensor<B, 3>) -> Tensor<B, 3> {
        self.precision.linear(map, x)
    }

    fn scale(&self) -> f64 {
        self.inverse_temperature / (self.head_dim as f64).sqrt()
    }

    /// `Q Kᵀ` per head, `[batch, n_heads, n, n]`.
    fn products(&self, query: Tensor<B, 3>, key: Tensor<B, 3>) -> Tensor<B, 4> {
        self.by_group(
            self.split(query, self.n_heads),
            self.split(key, self.n_kv_heads).swap_dims(2, 3),
        )
    }

    fn weights(&self, logits: Tensor<B, 4>, mask: Option<&AttentionMask<B>>) -> Tensor<B, 4> {
        match mask {
            None => softmax(logits, 3),
            Some(mask) => mask.blank(softmax(mask.apply(logits), 3)),
        }
    }

    fn mix(&self, weights: Tensor<B, 4>, x: Tensor<B, 3>, noise: Option<&Noise>) -> Tensor<B, 3> {
        let [batch, _, n, _] = weights.dims();
        let value = self.split(self.linear(&self.value, x), self.n_kv_heads);
        let weights = dropout(weights, self.dropout, noise);
        let mixed = self.by_group(weights, value).swap_dims(1, 2);
        self.linear(
            &self.output,
            mixed.reshape([batch, n, self.n_heads * self.head_dim]),
        )
    }

    /// `[batch, n, heads * head_dim]` as `[batch, heads, n, head_dim]`.
    fn split(&self, x: Tensor<B, 3>, heads: usize) -> Tensor<B, 4> {
        let [batch, n, _] = x.dims();
        x.reshape([batch, n, heads, self.head_dim]).swap_dims(1, 2)
    }

    /// The product of each query head's matrix with that of its key head.
    fn by_group(&self, query_side: Tensor<B, 4>, key_side: Tensor<B, 4>) -> Tensor<B, 4> {
        if self.n_heads == self.n_kv_heads {
            return self.precision.matmul(query_side, key_side);
        }
        let [batch, heads, n, inner] = query_side.dims();
        let [_, groups, _, m] = key_side.dims();
        let query_side = query_side.reshape([batch, groups, heads / groups, n, inner]);
        let key_side = key_side.reshape([batch, groups, 1, inner, m]);
        self.precision
            .matmul(query_side, key_side)
            .reshape([batch, heads, n, m])
    }
}
