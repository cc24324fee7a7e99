use burn::tensor::Tensor;
use burn::tensor::backend::Backend;

use super::kernel;
use super::{BilinearError, Directionality, Heads, Moments, Path};

/// The bilinear form `W_qk = W_q W_kᵀ` of an attention layer, or of one of its heads, kept factored.
///
/// `W_qk = Σ_h W_q,h W_k,g(h)ᵀ`, which is `[d_model, d_model]`; only its factors are stored, as views of the
/// weights that were given. Where query heads share a key head their sum comes first,
/// `Σ_g (Σ_{h in g} W_q,h) W_k,gᵀ`, so that the inner width of a layer is `n_kv_heads · head_dim`.
///
/// Biases, relative positions and the preceding norm are not part of it.
#[derive(Debug, Clone)]
pub struct BilinearForm<B: Backend> {
    /// `W_qᵀ`, `[n_heads · head_dim, d_model]`: see [`kernel`].
    pub(super) q: Tensor<B, 2>,
    /// `W_kᵀ`, `[n_kv_heads · head_dim, d_model]`.
    pub(super) k: Tensor<B, 2>,
    pub(super) heads: Heads,
}

impl<B: Backend> BilinearForm<B> {
    /// The form of a query and a key matrix.
    ///
    /// Reads every entry once, to refuse those that are not finite. Matrices that lie as `[out, in]` (PyTorch)
    /// are given as their transposed view, which costs nothing.
    ///
    /// # Shape
    /// - `w_q`: `[d_model, n_heads * head_dim]`
    /// - `w_k`: `[d_model, n_kv_heads * head_dim]`
    ///
    /// # Errors
    /// No heads or heads that do not divide; matrices without entries, of widths that are not those of the
    /// heads, of different heights; NaN or infinite entries.
    pub fn new(w_q: Tensor<B, 2>, w_k: Tensor<B, 2>, heads: Heads) -> Result<Self, BilinearError> {
        heads.check()?;
        let matrices = [("w_q", &w_q, heads.n_heads()), ("w_k", &w_k, heads.n_kv_heads())];
        for (argument, matrix, heads) in matrices {
            let shape = matrix.dims();
            if shape.contains(&0) {
                return Err(BilinearError::Empty { argument, shape });
            }
            if !shape[1].is_multiple_of(heads) {
                return Err(BilinearError::Width {
                    argument,
                    shape,
                    heads,
                });
            }
        }
        let ([d_q, width_q], [d_k, width_k]) = (w_q.dims(), w_k.dims());
        if d_q != d_k || width_q / heads.n_heads() != width_k / heads.n_kv_heads() {
            return Err(BilinearError::Mismatch {
                w_q: w_q.dims(),
                w_k: w_k.dims(),
                n_heads: heads.n_heads(),
                n_kv_heads: heads.n_kv_heads(),
            });
        }
        for (argument, matrix, _) in matrices {
            if !is_finite(matrix) {
                return Err(BilinearError::NotFinite {
                    argument,
                    shape: matrix.dims(),
                });
            }
        }
        Ok(Self {
            q: w_q.transpose(),
            k: w_k.transpose(),
            heads,
        })
    }

    /// The width of the model, and of the form.
    pub fn d_model(&self) -> usize {
        self.q.dims()[1]
    }

    /// The width of a head.
    pub fn head_dim(&self) -> usize {
        self.q.dims()[0] / self.heads.n_heads()
    }

    /// The layout of the heads.
    pub fn heads_layout(&self) -> Heads {
        self.heads
    }

    /// The query matrix, `[d_model, n_heads * head_dim]`.
    pub fn w_q(&self) -> Tensor<B, 2> {
        self.q.clone().transpose()
    }

    /// The key matrix, `[d_model, n_kv_heads * head_dim]`.
    pub fn w_k(&self) -> Tensor<B, 2> {
        self.k.clone().transpose()
    }

    /// The form of query head `head` alone.
    ///
    /// # Errors
    /// [`BilinearError::NoSuchHead`].
    pub fn head(&self, head: usize) -> Result<Self, BilinearError> {
        if head < self.heads.n_heads() {
            Ok(self.head_unchecked(head))
        } else {
            Err(BilinearError::NoSuchHead {
                index: head,
                n_heads: self.heads.n_heads(),
            })
        }
    }

    /// The forms of all query heads, in order.
    pub fn heads(&self) -> impl ExactSizeIterator<Item = Self> + '_ {
        (0..self.heads.n_heads()).map(|head| self.head_unchecked(head))
    }

    fn head_unchecked(&self, head: usize) -> Self {
        let (r, d) = (self.head_dim(), self.d_model());
        let block = |x: &Tensor<B, 2>, i: usize| x.clone().slice([i * r..(i + 1) * r, 0..d]);
        Self {
            q: block(&self.q, head),
            k: block(&self.k, self.heads.group_of(head)),
            heads: Heads::multi(1),
        }
    }

    /// `W_qk` itself, `[d_model, d_model]`.
    ///
    /// Costs `2 d_model² n_kv_heads head_dim` operations. The scores do not need it.
    pub fn full(&self) -> Tensor<B, 2> {
        let (q, k) = self.reduced();
        q.transpose().matmul(k)
    }

    /// The symmetric part `(M + Mᵀ)/2` of the form, `[d_model, d_model]`.
    pub fn symmetric_part(&self) -> Tensor<B, 2> {
        let full = self.full();
        (full.clone() + transposed(full)) / 2.0
    }

    /// The skew part `(M − Mᵀ)/2` of the form, `[d_model, d_model]`.
    pub fn skew_part(&self) -> Tensor<B, 2> {
        let full = self.full();
        (full.clone() - transposed(full)) / 2.0
    }

    /// The raw scores `X W_qk Xᵀ = Q Kᵀ` of some tokens, `[n, n]`, summed over the heads.
    ///
    /// # Shape
    /// - `x`: `[n, d_model]`
    ///
    /// # Errors
    /// [`BilinearError::Tokens`].
    pub fn scores(&self, x: Tensor<B, 2>) -> Result<Tensor<B, 2>, BilinearError> {
        if x.dims()[1] != self.d_model() {
            return Err(BilinearError::Tokens {
                shape: x.dims(),
                d_model: self.d_model(),
            });
        }
        let (q, k) = self.reduced();
        let keys = k.matmul(x.clone().transpose());
        Ok(x.matmul(q.transpose()).matmul(keys))
    }

    /// The factors with the query heads of each group summed: both `[n_kv_heads * head_dim, d_model]`.
    pub(super) fn reduced(&self) -> (Tensor<B, 2>, Tensor<B, 2>) {
        let (groups, per_group) = (self.heads.n_kv_heads(), self.heads.heads_per_group());
        let q = self.q.clone();
        if per_group == 1 {
            return (q, self.k.clone());
        }
        let (r, d) = (self.head_dim(), self.d_model());
        let q = q
            .reshape([groups, per_group, r * d])
            .sum_dim(1)
            .reshape([groups * r, d]);
        (q, self.k.clone())
    }

    /// The path that [`moments`](Self::moments) takes, by [`Path::choose`].
    pub fn path(&self) -> Path {
        Path::choose(self.d_model(), self.heads.n_kv_heads() * self.head_dim())
    }

    /// What the scores of the form are made of.
    pub fn moments(&self) -> Moments {
        self.moments_by(self.path())
    }

    /// The same by a path of the caller's choice.
    pub fn moments_by(&self, path: Path) -> Moments {
        let (q, k) = self.detached().reduced();
        let moments = kernel::layer(q.clone(), k.clone(), path);
        if moments.in_range() {
            return moments;
        }
        // The squares of so large or small entries leave f32. Powers of two change no digit.
        let ((q, q_square), (k, k_square)) = (normalised(q), normalised(k));
        let mut moments = kernel::layer(q, k, path);
        moments.scale(q_square * k_square);
        moments
    }

    /// The moments of every head, in order.
    ///
    /// Heads are narrow, so this takes the factored path, many heads at a time and the Gram matrices of a key
    /// head shared, unless a head is so wide that the dense path is faster.
    pub fn head_moments(&self) -> Vec<Moments> {
        let this = self.detached();
        if Path::choose(self.d_model(), self.head_dim()) == Path::Dense {
            return this.heads().map(|head| head.moments()).collect();
        }
        let (n_heads, n_kv_heads) = (self.heads.n_heads(), self.heads.n_kv_heads());
        let mut moments = kernel::heads_factored(this.q.clone(), this.k.clone(), n_heads, n_kv_heads);
        for (head, moments) in moments.iter_mut().enumerate() {
            if !moments.in_range() {
                *moments = this.head_unchecked(head).moments();
            }
        }
        moments
    }

    /// The symmetry score of the form, `Tr(MM)/‖M‖²`: see [`Moments::symmetry`].
    ///
    /// # Errors
    /// [`BilinearError::Zero`] for the zero matrix.
    pub fn symmetry(&self) -> Result<f64, BilinearError> {
        self.moments().symmetry().ok_or(BilinearError::Zero)
    }

    /// The directionality score of the form: see [`Directionality`].
    ///
    /// # Errors
    /// [`BilinearError::Gamma`] where γ is not finite.
    pub fn directionality(&self, directionality: Directionality) -> Result<f64, BilinearError> {
        self.moments().directionality(directionality)
    }

    /// The Frobenius norm `‖W_qk‖`.
    pub fn frobenius_norm(&self) -> f64 {
        self.moments().frobenius_norm()
    }

    /// The norm of each row of `W_qk`.
    pub fn row_norms(&self) -> Vec<f64> {
        self.moments().row_norms()
    }

    /// The norm of each column of `W_qk`.
    pub fn column_norms(&self) -> Vec<f64> {
        self.moments().column_norms()
    }

    /// The same form outside any autodiff graph: scores are read, not trained through.
    pub(super) fn detached(&self) -> Self {
        Self {
            q: self.q.clone().detach(),
            k: self.k.clone().detach(),
            heads: self.heads,
        }
    }
}

/// Whether all entries are finite, in one reading pass: NaN and infinity survive any sum.
pub(super) fn is_finite<B: Backend, const D: usize>(x: &Tensor<B, D>) -> bool {
    let x = x.clone().detach();
    let sum = kernel::host(x.clone().sum())[0];
    // A sum of finite entries may overflow; then each entry has to be looked at.
    sum.is_finite() || x.into_data().iter::<f64>().all(f64::is_finite)
}

/// The matrix divided by a power of two near its largest entry, and the square of that power.
fn normalised<B: Backend>(x: Tensor<B, 2>) -> (Tensor<B, 2>, f64) {
    let largest = kernel::host(x.clone().abs().max())[0];
    if largest == 0.0 {
        return (x, 1.0);
    }
    let power = largest.log2().floor();
    // In two steps: the reciprocal of a power below f32's range would not fit in one.
    let half = (power / 2.0).trunc();
    let x = x.mul_scalar((-half).exp2()).mul_scalar((half - power).exp2());
    (x, (2.0 * power).exp2())
}

/// The transpose of a square matrix in memory of its own.
///
/// On burn-tch 0.21 a transpose is a view that its original does not know of: adding the two is tried in place, which
/// libtorch refuses, and Burn panics. Flattening a view makes libtorch copy it.
fn transposed<B: Backend>(square: Tensor<B, 2>) -> Tensor<B, 2> {
    let [n, _] = square.dims();
    square.transpose().reshape([n * n]).reshape([n, n])
}
