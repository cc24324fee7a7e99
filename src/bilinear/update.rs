//! How the form changes when its factors do.

use burn::tensor::Tensor;
use burn::tensor::backend::Backend;

use super::kernel::host;
use super::{BilinearError, BilinearForm};

/// The gradients of a loss in the query and the key matrix of a layer.
#[derive(Debug, Clone)]
pub struct WeightGradients<B: Backend> {
    /// `∂L/∂W_q`, `[d_model, n_heads * head_dim]`.
    pub query: Tensor<B, 2>,
    /// `∂L/∂W_k`, `[d_model, n_kv_heads * head_dim]`.
    pub key: Tensor<B, 2>,
}

impl<B: Backend> BilinearForm<B> {
    /// The form of the matrix `M` itself, as one head with factors `M` and the identity.
    ///
    /// # Errors
    /// As [`new`](Self::new), and where `matrix` is not square.
    pub fn from_matrix(matrix: Tensor<B, 2>) -> Result<Self, BilinearError> {
        let [rows, columns] = matrix.dims();
        let identity = Tensor::eye(columns, &matrix.device());
        if rows != columns {
            return Err(BilinearError::Mismatch {
                w_q: [rows, columns],
                w_k: identity.dims(),
                n_heads: 1,
                n_kv_heads: 1,
            });
        }
        Self::new(matrix, identity, super::Heads::multi(1))
    }

    /// The exact change of the form from this one to `after`, whatever the optimiser did.
    ///
    /// # Formula
    /// `ΔW_qk,h = ΔW_q,h W_k,gᵀ + W_q,h ΔW_k,gᵀ + ΔW_q,h ΔW_k,gᵀ`, kept factored: its factors are
    /// `[ΔW_q,h | W_q,h]` and `[W_k,g + ΔW_k,g | ΔW_k,g]`, twice as wide as a head. So it costs no matrix
    /// product, and every score, norm and head of it is had as of any other form.
    ///
    /// # Errors
    /// [`BilinearError::Change`] where the two forms differ in shape.
    pub fn update_to(&self, after: &Self) -> Result<Self, BilinearError> {
        self.same_layout(after)?;
        let (q, k) = (after.q.clone() - self.q.clone(), after.k.clone() - self.k.clone());
        Ok(self.widened(q, self.q.clone(), after.k.clone(), k))
    }

    /// The first-order change of the form where its factors move by `−rate` times their gradients: that of plain
    /// gradient descent, up to the term of order `rate²`.
    ///
    /// # Formula
    /// `−η Σ_h (∂L/∂W_q,h W_k,gᵀ + W_q,h (∂L/∂W_k,g)ᵀ)`; with one head a group and `G` the gradient in the form
    /// itself, `−η (W_q W_qᵀ G + G W_k W_kᵀ)`.
    ///
    /// # Errors
    /// [`BilinearError::Change`] where the gradients have other shapes than the weights.
    pub fn first_order_update(
        &self,
        gradients: &WeightGradients<B>,
        rate: f64,
    ) -> Result<Self, BilinearError> {
        // Scaled before it is transposed: on libtorch a transpose is a view that scaling in place would write through.
        let step = |gradient: &Tensor<B, 2>| gradient.clone().mul_scalar(-rate).transpose();
        let (q, k) = (step(&gradients.query), step(&gradients.key));
        for (change, weight) in [(&q, &self.q), (&k, &self.k)] {
            if change.dims() != weight.dims() {
                return Err(BilinearError::Change {
                    before: weight.dims(),
                    after: change.dims(),
                });
            }
        }
        Ok(self.widened(q, self.q.clone(), self.k.clone(), k))
    }

    /// The inner product `Tr(M Nᵀ)` of this form `M` with another, `N`.
    ///
    /// # Formula
    /// With `M = A Bᵀ` and `N = C Dᵀ`: the sum over the entries of `(AᵀC) ∘ (BᵀD)`, so that neither form is
    /// multiplied out. `2 d r s` operations each for inner widths r and s; the sum is in f64.
    ///
    /// # Errors
    /// [`BilinearError::Change`] where the widths of the model differ.
    pub fn inner_product(&self, other: &Self) -> Result<f64, BilinearError> {
        if self.d_model() != other.d_model() {
            return Err(BilinearError::Change {
                before: [self.d_model(); 2],
                after: [other.d_model(); 2],
            });
        }
        let ((a, b), (c, d)) = (self.detached().reduced(), other.detached().reduced());
        let left = host(a.matmul(c.transpose()));
        let right = host(b.matmul(d.transpose()));
        Ok(left.iter().zip(&right).map(|(x, y)| x * y).sum())
    }

    /// The cosine between this form and another as vectors of their entries; `None` where either is zero.
    ///
    /// # Errors
    /// As [`inner_product`](Self::inner_product).
    pub fn cosine(&self, other: &Self) -> Result<Option<f64>, BilinearError> {
        let norms = self.frobenius_norm() * other.frobenius_norm();
        let product = self.inner_product(other)?;
        Ok((norms > 0.0).then(|| (product / norms).clamp(-1.0, 1.0)))
    }

    fn same_layout(&self, other: &Self) -> Result<(), BilinearError> {
        if self.q.dims() == other.q.dims() && self.k.dims() == other.k.dims() && self.heads == other.heads {
            return Ok(());
        }
        Err(BilinearError::Change {
            before: self.q.dims(),
            after: other.q.dims(),
        })
    }

    /// The form with factors `[q₁ | q₂]` and `[k₁ | k₂]` in every head.
    fn widened(&self, q1: Tensor<B, 2>, q2: Tensor<B, 2>, k1: Tensor<B, 2>, k2: Tensor<B, 2>) -> Self {
        let (r, d) = (self.head_dim(), self.d_model());
        let join = |a: Tensor<B, 2>, b: Tensor<B, 2>, heads: usize| {
            Tensor::cat(vec![a.reshape([heads, r, d]), b.reshape([heads, r, d])], 1)
                .reshape([heads * 2 * r, d])
        };
        Self {
            q: join(q1, q2, self.heads.n_heads()),
            k: join(k1, k2, self.heads.n_kv_heads()),
            heads: self.heads,
        }
    }
}
