use burn::tensor::Tensor;
use burn::tensor::backend::Backend;

use super::{AttentionMask, AttentionOutput, Noise, SelfAttention};

/// What went into one self-attention layer of a model during a forward pass, and what it computed.
#[derive(Debug, Clone)]
pub struct AttentionTrace<B: Backend> {
    /// The path of the module within the model, such as `blocks.3.attention`.
    pub module: String,
    /// The tokens `X` as the layer was given them, `[batch, n, d_model]`.
    pub input: Tensor<B, 3>,
    /// What the layer computed, with the tap for the gradient of its raw scores.
    pub output: AttentionOutput<B>,
}

impl<B: Backend> SelfAttention<B> {
    /// The forward pass in detail, as [`forward_detailed`](Self::forward_detailed), with its input and its place.
    pub fn trace(
        &self,
        module: impl Into<String>,
        x: Tensor<B, 3>,
        mask: Option<&AttentionMask<B>>,
        noise: Option<&Noise>,
    ) -> AttentionTrace<B> {
        AttentionTrace {
            module: module.into(),
            input: x.clone(),
            output: self.forward_detailed(x, mask, noise),
        }
    }
}
