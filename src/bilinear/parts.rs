//! Each position's, and each token's, part in the gradient of `W_qk`.

use std::collections::BTreeMap;

use burn::tensor::Tensor;
use burn::tensor::backend::Backend;

use super::kernel::host;
use super::{BilinearError, BilinearForm, Heads};

/// The gradient `G` taken apart by position: a matrix `left_p right_pᵀ` of rank one for each, which sum to `G`.
///
/// Made by [`HeadGradient::query_parts`](super::HeadGradient::query_parts) and
/// [`key_parts`](super::HeadGradient::key_parts).
///
/// # Source
/// arXiv 2502.10927, proposition on different implicit updates for context and prediction. Its third formula is
/// headed "column" but indexed as a row; the sums are as here.
#[derive(Debug, Clone)]
pub struct PositionParts<B: Backend> {
    /// `[batch, n, d_model]`.
    left: Tensor<B, 3>,
    /// `[batch, n, d_model]`.
    right: Tensor<B, 3>,
}

impl<B: Backend> PositionParts<B> {
    pub(super) fn new(left: Tensor<B, 3>, right: Tensor<B, 3>) -> Self {
        Self { left, right }
    }

    /// The part of one position of one sequence.
    ///
    /// # Errors
    /// [`BilinearError::NoSuchPosition`].
    pub fn part(&self, sequence: usize, position: usize) -> Result<BilinearForm<B>, BilinearError> {
        let [batch, n, d] = self.left.dims();
        if sequence >= batch || position >= n {
            return Err(BilinearError::NoSuchPosition {
                at: [sequence, position],
                of: [batch, n],
            });
        }
        let column = |x: &Tensor<B, 3>| {
            x.clone()
                .slice([sequence..sequence + 1, position..position + 1, 0..d])
                .reshape([d, 1])
        };
        BilinearForm::new(column(&self.left), column(&self.right), Heads::multi(1))
    }

    /// The sum over all positions, `[d_model, d_model]`, which is `G`.
    pub fn sum(&self) -> Tensor<B, 2> {
        let [batch, n, d] = self.left.dims();
        let flat = |x: &Tensor<B, 3>| x.clone().reshape([batch * n, d]);
        flat(&self.left).transpose().matmul(flat(&self.right))
    }

    /// The Frobenius norm of each part, `[batch, n]`, flat: `‖left_p‖ ‖right_p‖`.
    pub fn norms(&self) -> Vec<f64> {
        let norms = |x: &Tensor<B, 3>| host(x.clone().square().sum_dim(2));
        norms(&self.left)
            .iter()
            .zip(norms(&self.right))
            .map(|(l, r)| (l * r).sqrt())
            .collect()
    }

    /// Each part's share `⟨part, G⟩ / ‖G‖²` of the gradient, `[batch, n]`, flat; they sum to 1, and can be
    /// negative. `None` where `G` is zero.
    pub fn shares(&self) -> Option<Vec<f64>> {
        let [batch, n, d] = self.left.dims();
        let sum = self.sum();
        let square: f64 = host(sum.clone()).iter().map(|x| x * x).sum();
        let along = self
            .left
            .clone()
            .reshape([batch * n, d])
            .matmul(sum)
            .reshape([batch, n, d]);
        let products = host((along * self.right.clone()).sum_dim(2));
        (square > 0.0).then(|| products.iter().map(|x| x / square).collect())
    }
}

/// Sums values that belong to positions by the token of each: the token's view of what
/// [`PositionParts`] says of positions. Positions without a token, such as those that predict nothing, are left out.
///
/// Which token a position stands for is a question of its own. As a key it stands for the token that it holds. As
/// a query it holds one token and predicts another: with next-token training the one after it, with masking the
/// one that its `[MASK]` stands for.
///
/// # Examples
/// ```
/// use wqk::bilinear::by_token;
/// let shares = by_token(&[0.5, 0.2, 0.3], &[Some(7), None, Some(7)]);
/// assert_eq!(shares[&7], 0.8);
/// ```
pub fn by_token(values: &[f64], tokens: &[Option<u32>]) -> BTreeMap<u32, f64> {
    let mut sums = BTreeMap::new();
    for (value, token) in values.iter().zip(tokens) {
        if let Some(token) = token {
            *sums.entry(*token).or_insert(0.0) += value;
        }
    }
    sums
}
