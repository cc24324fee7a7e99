use burn::nn::attention::MultiHeadAttention;
use burn::tensor::backend::Backend;

use super::SelfAttention;
use crate::bilinear::{BilinearError, BilinearForm, Heads};

/// Biases are not part of the form.
impl<B: Backend> TryFrom<&SelfAttention<B>> for BilinearForm<B> {
    type Error = BilinearError;

    fn try_from(attention: &SelfAttention<B>) -> Result<Self, Self::Error> {
        Self::new(
            attention.query.weight.val(),
            attention.key.weight.val(),
            attention.heads(),
        )
    }
}

/// Biases are not part of the form.
impl<B: Backend> TryFrom<&MultiHeadAttention<B>> for BilinearForm<B> {
    type Error = BilinearError;

    fn try_from(attention: &MultiHeadAttention<B>) -> Result<Self, Self::Error> {
        Self::new(
            attention.query.weight.val(),
            attention.key.weight.val(),
            Heads::multi(attention.n_heads),
        )
    }
}
