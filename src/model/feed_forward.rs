//! The position-wise feed-forward network, in its usual form and in the one of the theory.

use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::activation::{gelu, relu};
use burn::tensor::backend::Backend;
use burn::tensor::{Device, Tensor};

use super::config::{Activation, FeedForwardKind, TextTransformerConfig};
use super::linear::normal_linear;
use crate::backend::Precision;
use crate::random;

impl Activation {
    /// Applies the function entry by entry.
    pub fn forward<B: Backend, const D: usize>(self, x: Tensor<B, D>) -> Tensor<B, D> {
        match self {
            Self::Gelu => gelu(x),
            Self::Relu => relu(x),
            Self::Linear => x,
        }
    }
}

/// A feed-forward branch: `F(X) = f(X W_1 + b_1) W_2 + b_2`, or one linear map `X W_1`.
#[derive(Module, Debug)]
pub struct FeedForward<B: Backend> {
    /// The first map, `[d_model, d_ff]`; `[d_model, d_model]` where it is the only one.
    pub inner: Linear<B>,
    /// The second map, `[d_ff, d_model]`; none in the linear form.
    pub outer: Option<Linear<B>>,
    #[module(skip)]
    activation: Activation,
    #[module(skip)]
    pub(super) precision: Precision,
}

impl<B: Backend> FeedForward<B> {
    /// Builds the branch that a configuration asks for; `None` where it asks for none.
    ///
    /// The weights come from streams under `place`, so that they do not depend on what else is drawn.
    pub(super) fn init(
        config: &TextTransformerConfig,
        seed: u64,
        layer: &str,
        device: &Device<B>,
    ) -> Option<Self> {
        let std = config.init_std;
        let linear = |name: &str, input, output| {
            let mut rng = random::stream(seed, ["init", layer, name]);
            normal_linear(input, output, config.bias, std, &mut rng, device)
        };
        let (d, f) = (config.d_model, config.ff_width());
        match config.feed_forward {
            FeedForwardKind::None => None,
            FeedForwardKind::Linear => Some(Self {
                inner: linear("ff inner", d, d),
                outer: None,
                activation: Activation::Linear,
                precision: Precision::F32,
            }),
            FeedForwardKind::Mlp => Some(Self {
                inner: linear("ff inner", d, f),
                outer: Some(linear("ff outer", f, d)),
                activation: config.activation,
                precision: Precision::F32,
            }),
        }
    }

    /// Applies the branch.
    ///
    /// # Shape
    /// `[batch, n_tokens, d_model]` to the same.
    pub fn forward(&self, x: Tensor<B, 3>) -> Tensor<B, 3> {
        let x = self.activation.forward(self.precision.linear(&self.inner, x));
        match &self.outer {
            Some(outer) => self.precision.linear(outer, x),
            None => x,
        }
    }
}
