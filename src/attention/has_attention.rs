use burn::nn::attention::MultiHeadAttention;
use burn::tensor::backend::Backend;

use super::SelfAttention;
use crate::bilinear::{BilinearError, BilinearForm};

/// A self-attention module, of ours or of Burn's.
#[derive(Debug, Clone, Copy)]
pub enum AttentionModule<'a, B: Backend> {
    /// Of this library.
    SelfAttention(&'a SelfAttention<B>),
    /// Of `burn-nn`, used as self-attention.
    MultiHead(&'a MultiHeadAttention<B>),
}

impl<B: Backend> AttentionModule<'_, B> {
    /// The bilinear form of the module.
    ///
    /// # Errors
    /// As [`BilinearForm::new`].
    pub fn form(&self) -> Result<BilinearForm<B>, BilinearError> {
        match *self {
            Self::SelfAttention(attention) => attention.try_into(),
            Self::MultiHead(attention) => attention.try_into(),
        }
    }
}

impl<'a, B: Backend> From<&'a SelfAttention<B>> for AttentionModule<'a, B> {
    fn from(attention: &'a SelfAttention<B>) -> Self {
        Self::SelfAttention(attention)
    }
}

impl<'a, B: Backend> From<&'a MultiHeadAttention<B>> for AttentionModule<'a, B> {
    fn from(attention: &'a MultiHeadAttention<B>) -> Self {
        Self::MultiHead(attention)
    }
}

/// One self-attention layer of a model, and where it stands.
#[derive(Debug, Clone)]
pub struct AttentionLayer<'a, B: Backend> {
    /// The stack that it belongs to: `encoder`, `decoder`, `text` or `vision`.
    pub stack: String,
    /// Its place among the self-attention layers of the stack, from 0.
    pub index: usize,
    /// The path of the module within the model, such as `blocks.3.attention`.
    pub module: String,
    /// The module itself.
    pub attention: AttentionModule<'a, B>,
}

impl<'a, B: Backend> AttentionLayer<'a, B> {
    /// The self-attention layer of a stack, at a place in it, by the path of its module.
    pub fn new(
        stack: impl Into<String>,
        index: usize,
        module: impl Into<String>,
        attention: impl Into<AttentionModule<'a, B>>,
    ) -> Self {
        Self {
            stack: stack.into(),
            index,
            module: module.into(),
            attention: attention.into(),
        }
    }
}

/// A model that shows its self-attention layers, so that they can be scored and probed.
///
/// Cross-attention is left out: its two sides live in different spaces.
pub trait HasAttention<B: Backend> {
    /// The self-attention layers, stack by stack and in order.
    fn attention_layers(&self) -> Vec<AttentionLayer<'_, B>>;
}
