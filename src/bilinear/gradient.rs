//! The gradient of a loss in the raw scores, and what follows from it for `W_qk`.

use burn::tensor::Tensor;
use burn::tensor::backend::Backend;

use super::form::is_finite;
use super::kernel::host;
use super::{BilinearError, BilinearForm, Heads, PositionParts, WeightGradients};

/// The gradient `β = ∂L/∂Â` of a loss in the raw scores of one layer, with the tokens that it was given.
///
/// Everything is per head and per sequence; sums run over the sequences of the batch.
///
/// # Source
/// arXiv 2502.10927, proposition on the implicit weight update as a sum of rank-1 matrices. Its proof leaves the
/// softmax out; with it every row of β sums to 0.
#[derive(Debug, Clone)]
pub struct ScoreGradients<B: Backend> {
    /// `[batch, n, d_model]`.
    x: Tensor<B, 3>,
    /// `[batch, n_heads, n, n]`.
    beta: Tensor<B, 4>,
}

impl<B: Backend> ScoreGradients<B> {
    /// The tokens of a layer and the gradient in its raw scores.
    ///
    /// # Shape
    /// - `x`: `[batch, n, d_model]`
    /// - `beta`: `[batch, n_heads, n, n]`, queries by keys
    ///
    /// # Errors
    /// [`BilinearError::Gradients`] for shapes that do not belong together, [`BilinearError::NotFiniteGradients`]
    /// for NaN or infinite entries.
    pub fn new(x: Tensor<B, 3>, beta: Tensor<B, 4>) -> Result<Self, BilinearError> {
        let ([batch, n, d], shape) = (x.dims(), beta.dims());
        if batch * n * d == 0 || shape[1] == 0 || shape != [batch, shape[1], n, n] {
            return Err(BilinearError::Gradients(Box::new((x.dims(), shape))));
        }
        for (argument, finite) in [("x", is_finite(&x)), ("beta", is_finite(&beta))] {
            if !finite {
                return Err(BilinearError::NotFiniteGradients(argument));
            }
        }
        Ok(Self {
            x: x.detach(),
            beta: beta.detach(),
        })
    }

    /// Query heads.
    pub fn n_heads(&self) -> usize {
        self.beta.dims()[1]
    }

    /// The tokens, `[batch, n, d_model]`.
    pub fn x(&self) -> Tensor<B, 3> {
        self.x.clone()
    }

    /// The gradient of every head, `[batch, n_heads, n, n]`.
    pub fn beta(&self) -> Tensor<B, 4> {
        self.beta.clone()
    }

    /// The gradient of one query head.
    ///
    /// # Errors
    /// [`BilinearError::NoSuchHead`].
    pub fn head(&self, head: usize) -> Result<HeadGradient<B>, BilinearError> {
        let [batch, n_heads, n, _] = self.beta.dims();
        if head >= n_heads {
            return Err(BilinearError::NoSuchHead { index: head, n_heads });
        }
        let beta = self.beta.clone().slice([0..batch, head..head + 1, 0..n, 0..n]);
        Ok(HeadGradient {
            x: self.x.clone(),
            beta: beta.reshape([batch, n, n]),
        })
    }

    /// The sum over the heads, whose `G` is `Σ_h G_h`.
    pub fn total(&self) -> HeadGradient<B> {
        let [batch, _, n, _] = self.beta.dims();
        HeadGradient {
            x: self.x.clone(),
            beta: self.beta.clone().sum_dim(1).reshape([batch, n, n]),
        }
    }

    /// The gradients in the weights that follow from those in the scores.
    ///
    /// # Formula
    /// `∂L/∂W_q,h = Xᵀ B_h K_g` and `∂L/∂W_k,g = Σ_{h in g} Xᵀ B_hᵀ Q_h`. The bias of the keys makes no
    /// difference to the first, because the rows of `B_h` sum to 0; that of the queries does to the second.
    ///
    /// They hold where the raw scores are `Q Kᵀ` with `Q` and `K` linear in `X`: not under rotary positions, nor
    /// with a normaliser on queries or keys, whose Jacobian would come between.
    ///
    /// # Shape
    /// - `queries`: `[batch, n_heads, n, head_dim]`, with their bias
    /// - `keys`: `[batch, n_kv_heads, n, head_dim]`, with theirs
    ///
    /// # Errors
    /// [`BilinearError::Projected`] for shapes that are not those of the scores.
    pub fn weight_gradients(
        &self,
        queries: Tensor<B, 4>,
        keys: Tensor<B, 4>,
    ) -> Result<WeightGradients<B>, BilinearError> {
        let [batch, n_heads, n, _] = self.beta.dims();
        let d = self.x.dims()[2];
        let (q, k) = (queries.dims(), keys.dims());
        let heads = Heads::grouped(n_heads, k[1]);
        heads.check()?;
        if q != [batch, n_heads, n, q[3]] || k != [batch, k[1], n, q[3]] {
            return Err(BilinearError::Projected(Box::new([q, k, self.beta.dims()])));
        }
        let (r, groups, per_group) = (q[3], k[1], heads.heads_per_group());
        // Each head with the keys of its group.
        let keys = keys
            .reshape([batch, groups, 1, n, r])
            .expand([batch, groups, per_group, n, r])
            .reshape([batch, n_heads, n, r]);
        let to_queries = self.beta.clone().matmul(keys);
        let to_keys = self
            .beta
            .clone()
            .swap_dims(2, 3)
            .matmul(queries)
            .reshape([batch, groups, per_group, n, r])
            .sum_dim(2)
            .reshape([batch, groups, n, r]);
        let x = self.x.clone().reshape([batch * n, d]).transpose();
        let back = |y: Tensor<B, 4>, heads: usize| {
            x.clone()
                .matmul(y.swap_dims(1, 2).reshape([batch * n, heads * r]))
        };
        Ok(WeightGradients {
            query: back(to_queries, n_heads),
            key: back(to_keys, groups),
        })
    }
}

/// The gradient in the raw scores of one head, or the sum over the heads of a layer.
#[derive(Debug, Clone)]
pub struct HeadGradient<B: Backend> {
    /// `[batch, n, d_model]`.
    x: Tensor<B, 3>,
    /// `[batch, n, n]`.
    beta: Tensor<B, 3>,
}

impl<B: Backend> HeadGradient<B> {
    /// `β`, `[batch, n, n]`, queries by keys.
    pub fn beta(&self) -> Tensor<B, 3> {
        self.beta.clone()
    }

    /// `G = Σ Xᵀ B X = Σ_ij β_ij x_i x_jᵀ`, `[d_model, d_model]`: the gradient in `W_qk`, were it the parameter.
    ///
    /// `2 batch·n·d (n + d)` operations.
    pub fn gradient(&self) -> Tensor<B, 2> {
        let (x, bx) = self.factors();
        x.transpose().matmul(bx)
    }

    /// The same as a form, for its scores and norms: factored as `Xᵀ` and `(B X)ᵀ` where the batch has fewer tokens
    /// than the model is wide, multiplied out where it has more.
    ///
    /// # Errors
    /// [`BilinearError::NotFinite`] where a product overflows.
    pub fn form(&self) -> Result<BilinearForm<B>, BilinearError> {
        let (x, bx) = self.factors();
        let [tokens, d] = x.dims();
        if tokens < d {
            BilinearForm::new(x.transpose(), bx.transpose(), Heads::multi(1))
        } else {
            BilinearForm::from_matrix(x.transpose().matmul(bx))
        }
    }

    /// `X` and `B X`, the sequences under each other.
    fn factors(&self) -> (Tensor<B, 2>, Tensor<B, 2>) {
        let [batch, n, d] = self.x.dims();
        let bx = self.beta.clone().matmul(self.x.clone());
        (self.x.clone().reshape([batch * n, d]), bx.reshape([batch * n, d]))
    }

    /// The part of each position in `G` as a query: `x_p Σ_j β_pj x_jᵀ`.
    pub fn query_parts(&self) -> PositionParts<B> {
        PositionParts::new(self.x.clone(), self.beta.clone().matmul(self.x.clone()))
    }

    /// The part of each position in `G` as a key, which is as context: `Σ_i β_ip x_i x_pᵀ`.
    pub fn key_parts(&self) -> PositionParts<B> {
        let by_key = self.beta.clone().swap_dims(1, 2).matmul(self.x.clone());
        PositionParts::new(by_key, self.x.clone())
    }

    /// How the error signals of the two directions of a pair of positions agree.
    pub fn pairs(&self) -> PairSymmetry {
        let [_, n, _] = self.beta.dims();
        PairSymmetry::of(&host(self.beta.clone()), n)
    }
}

/// How `β_ij` and `β_ji` agree over the pairs `i ≠ j` of all sequences.
///
/// # Source
/// arXiv 2502.10927, theorem on symmetry, which takes `β_ij ≈ β_ji` for granted under bidirectional training, and
/// its remark on masked language modelling, where only masked queries carry an error. That argument holds in the
/// last layer alone: in the others every position passes an error on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairSymmetry {
    /// Of the pairs whose query carries an error (`β` is not 0 along its row), the share whose key carries one
    /// too as a query; `None` without such pairs.
    ///
    /// In the last layer of a masked model with m of N positions masked it is `(m − 1)/(N − 1)`.
    pub mutual: Option<f64>,
    /// The share of `Σ β²` in these mutual pairs; `None` where all are 0.
    pub mutual_weight: Option<f64>,
    /// `Σ β_ij β_ji / Σ β_ij²`, in [−1, 1]: the symmetry score of β off its diagonal; `None` where all are 0.
    pub symmetry: Option<f64>,
    /// The share of mutual pairs with `β_ij β_ji > 0`, and so equal signs; `None` without mutual pairs.
    pub same_sign: Option<f64>,
}

impl PairSymmetry {
    /// From `β` of some sequences, `[sequences, n, n]`, flat.
    pub fn of(beta: &[f64], n: usize) -> Self {
        let (mut pairs, mut mutual, mut same) = (0usize, 0usize, 0usize);
        let (mut squares, mut mutual_squares, mut products) = (0.0, 0.0, 0.0);
        for beta in beta.chunks_exact((n * n).max(1)) {
            let carries: Vec<bool> = beta
                .chunks_exact(n)
                .map(|row| row.iter().any(|&b| b != 0.0))
                .collect();
            for i in (0..n).filter(|&i| carries[i]) {
                for j in (0..n).filter(|&j| j != i) {
                    let (there, back) = (beta[i * n + j], beta[j * n + i]);
                    pairs += 1;
                    squares += there * there;
                    products += there * back;
                    if carries[j] {
                        mutual += 1;
                        mutual_squares += there * there;
                        same += usize::from(there * back > 0.0);
                    }
                }
            }
        }
        let share = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
        Self {
            mutual: share(mutual as f64, pairs as f64),
            mutual_weight: share(mutual_squares, squares),
            symmetry: share(products, squares),
            same_sign: share(same as f64, mutual as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_by_hand() {
        // Queries 0 and 2 carry errors, 1 does not. Pairs (0,1), (0,2), (2,0), (2,1): two of four are mutual, with
        // squares 4 + 1 of 4 + 4 + 1 + 9 = 18; products 2·(2·1) = 4.
        let beta = [-4.0, 2.0, 2.0, 0.0, 0.0, 0.0, 1.0, 3.0, -4.0];
        let pairs = PairSymmetry::of(&beta, 3);
        assert_eq!(pairs.mutual, Some(0.5));
        assert_eq!(pairs.mutual_weight, Some(5.0 / 18.0));
        assert_eq!(pairs.symmetry, Some(4.0 / 18.0));
        assert_eq!(pairs.same_sign, Some(1.0));
        let none = PairSymmetry::of(&[0.0; 9], 3);
        assert_eq!((none.mutual, none.symmetry), (None, None));
    }

    /// The closed form for masked positions, where β is anything but 0 on masked rows.
    #[test]
    fn mutual_share_is_that_of_masked_pairs() {
        let (n, masked) = (7, [0, 2, 3]);
        let beta: Vec<f64> = (0..n * n)
            .map(|at| {
                if masked.contains(&(at / n)) {
                    1.0 + at as f64
                } else {
                    0.0
                }
            })
            .collect();
        // (m − 1)/(N − 1) = 2/6.
        assert_eq!(PairSymmetry::of(&beta, n).mutual, Some(2.0 / 6.0));
    }
}
