use burn::tensor::backend::Backend;
use burn::tensor::{Int, Tensor};

use super::ProbeError;
use crate::attention::{AttentionMask, HasAttention};
use crate::model::TextTransformer;

/// One block during a forward pass.
#[derive(Debug)]
pub struct BlockSignal<'a, B: Backend> {
    /// The residual stream before the block, `[batch, n, d_model]`.
    pub before: Tensor<B, 3>,
    /// What the attention of the block is given: the stream, or its layer norm, `[batch, n, d_model]`.
    pub attention_input: Tensor<B, 3>,
    /// The weights of the attention after the softmax, `[batch, n_heads, n, n]`.
    pub weights: Tensor<B, 4>,
    /// Which keys a query may see; none where it may see all.
    pub mask: Option<&'a AttentionMask<B>>,
    /// The residual stream after the block, `[batch, n, d_model]`.
    pub after: Tensor<B, 3>,
}

/// A model whose signal can be followed from block to block: what a probe needs to know of it.
///
/// Block i is that of the i-th attention layer.
pub trait Propagates<B: Backend>: HasAttention<B> {
    /// What the model takes.
    type Input;

    /// Runs the model block by block and shows each to `see`.
    ///
    /// # Errors
    /// Those of `see`.
    fn propagate(
        &self,
        input: &Self::Input,
        see: &mut dyn FnMut(BlockSignal<'_, B>) -> Result<(), ProbeError>,
    ) -> Result<(), ProbeError>;

    /// The residual stream after the last block, `[batch, n, d_model]`, without dropout.
    fn output(&self, input: &Self::Input) -> Tensor<B, 3>;

    /// The output of the attention of one layer for tokens `x`, with the mask of the input and without dropout.
    fn attend(&self, layer: usize, x: Tensor<B, 3>, input: &Self::Input) -> Tensor<B, 3>;
}

/// Sequences for a text transformer.
#[derive(Debug, Clone)]
pub struct TextInput<B: Backend> {
    /// Token ids, `[batch, n]`.
    pub tokens: Tensor<B, 2, Int>,
    /// The mask of an objective; none for one that sees everything.
    pub mask: Option<AttentionMask<B>>,
}

/// On autodiff backends the model must be one [without dropout](TextTransformer::without_dropout).
impl<B: Backend> Propagates<B> for TextTransformer<B> {
    type Input = TextInput<B>;

    fn propagate(
        &self,
        input: &TextInput<B>,
        see: &mut dyn FnMut(BlockSignal<'_, B>) -> Result<(), ProbeError>,
    ) -> Result<(), ProbeError> {
        let mask = input.mask.as_ref();
        let mut x = self.embed(input.tokens.clone(), None);
        for block in &self.blocks {
            let before = x.clone();
            let attention_input = block.attention_input(x.clone());
            let weights = block
                .attention
                .forward_detailed(attention_input.clone(), mask, None)
                .weights;
            x = block.forward(x, mask, None);
            see(BlockSignal {
                before,
                attention_input,
                weights,
                mask,
                after: x.clone(),
            })?;
        }
        Ok(())
    }

    fn output(&self, input: &TextInput<B>) -> Tensor<B, 3> {
        let x = self.embed(input.tokens.clone(), None);
        self.blocks
            .iter()
            .fold(x, |x, block| block.forward(x, input.mask.as_ref(), None))
    }

    fn attend(&self, layer: usize, x: Tensor<B, 3>, input: &TextInput<B>) -> Tensor<B, 3> {
        self.blocks[layer].attention.forward(x, input.mask.as_ref())
    }
}
