//! A branch on the residual stream, as the blocks of every model have it.

use burn::module::Param;
use burn::nn::LayerNorm;
use burn::tensor::Tensor;
use burn::tensor::backend::Backend;

use super::config::NormPlacement;
use crate::attention::{Noise, dropout};

/// How a branch joins the stream: `x + α · branch(x)`, with dropout on the branch and a norm before the branch or
/// after the sum.
pub(super) struct Residual<'a, B: Backend> {
    /// The norm of the branch, if the model has any.
    pub norm: Option<&'a LayerNorm<B>>,
    /// Where it stands.
    pub placement: NormPlacement,
    /// Rate of the dropout on the branch.
    pub dropout: f64,
    /// The strength α of the branch, where it is not trained.
    pub strength: f64,
    /// The trained strengths of all branches, and which is this one's.
    pub trained: Option<(&'a Param<Tensor<B, 1>>, usize)>,
}

impl<B: Backend> Residual<'_, B> {
    /// Adds the branch to the stream; `noise` is of this branch's place.
    pub fn add(
        &self,
        x: Tensor<B, 3>,
        noise: Option<&Noise>,
        branch: impl FnOnce(Tensor<B, 3>) -> Tensor<B, 3>,
    ) -> Tensor<B, 3> {
        let input = match self.norm {
            Some(norm) if self.placement == NormPlacement::Pre => norm.forward(x.clone()),
            _ => x.clone(),
        };
        let mut y = dropout(branch(input), self.dropout, noise);
        if let Some((strengths, which)) = self.trained {
            y = y * strengths.val().slice(which..which + 1).unsqueeze();
        } else if self.strength != 1.0 {
            y = y.mul_scalar(self.strength);
        }
        match self.norm {
            Some(norm) if self.placement == NormPlacement::Post => norm.forward(x + y),
            _ => x + y,
        }
    }
}
