use super::{BilinearError, Directionality};

/// What the scores of a square matrix `M` are made of: `Tr(MM)` and the squared norms of rows and columns.
///
/// Sums over the whole matrix are in f64.
#[derive(Debug, Clone, PartialEq)]
pub struct Moments {
    /// `Tr(MM)`.
    pub(super) trace: f64,
    /// The squared norm of each row.
    pub(super) rows: Vec<f64>,
    /// The squared norm of each column.
    pub(super) columns: Vec<f64>,
}

impl Moments {
    pub(super) fn zeros(d_model: usize) -> Self {
        Self {
            trace: 0.0,
            rows: vec![0.0; d_model],
            columns: vec![0.0; d_model],
        }
    }

    /// `Tr(MM) = ‖M_s‖² − ‖M_n‖²`, with `M_s` and `M_n` the symmetric and the skew part.
    pub fn trace_of_square(&self) -> f64 {
        self.trace
    }

    /// The Frobenius norm `‖M‖`.
    pub fn frobenius_norm(&self) -> f64 {
        self.squared_norm().sqrt()
    }

    /// The Frobenius norm of the symmetric part `(M + Mᵀ)/2`.
    pub fn symmetric_norm(&self) -> f64 {
        ((self.squared_norm() + self.trace) / 2.0).max(0.0).sqrt()
    }

    /// The Frobenius norm of the skew part `(M − Mᵀ)/2`.
    pub fn skew_norm(&self) -> f64 {
        ((self.squared_norm() - self.trace) / 2.0).max(0.0).sqrt()
    }

    /// The norm of each row.
    pub fn row_norms(&self) -> Vec<f64> {
        self.rows.iter().map(|x| x.sqrt()).collect()
    }

    /// The norm of each column.
    pub fn column_norms(&self) -> Vec<f64> {
        self.columns.iter().map(|x| x.sqrt()).collect()
    }

    /// The symmetry score `s = Tr(MM) / ‖M‖²`, in [−1, 1]: 1 symmetric, −1 skew-symmetric.
    ///
    /// `None` for the zero matrix, for which it does not exist.
    ///
    /// # Source
    /// arXiv 2502.10927. Its printed definition carries a factor 2, against its own proposition (the range)
    /// and its own tables; this is the formula that the published numbers follow.
    pub fn symmetry(&self) -> Option<f64> {
        let norm = self.squared_norm();
        // Trace and norm are rounded apart, so a symmetric matrix may come out an ε above 1.
        (norm > 0.0).then(|| (self.trace / norm).clamp(-1.0, 1.0))
    }

    /// The directionality score.
    ///
    /// # Errors
    /// [`BilinearError::Gamma`] where γ is not finite.
    pub fn directionality(&self, directionality: Directionality) -> Result<f64, BilinearError> {
        directionality.of_norms(&self.row_norms(), &self.column_norms())
    }

    pub(super) fn squared_norm(&self) -> f64 {
        self.rows.iter().sum()
    }

    /// Multiplies the matrix by a number, given its square.
    pub(super) fn scale(&mut self, square: f64) {
        self.trace *= square;
        for x in self.rows.iter_mut().chain(&mut self.columns) {
            *x *= square;
        }
    }

    /// Whether squares of f32 entries hold this norm with all their digits: far from underflow and finite.
    pub(super) fn in_range(&self) -> bool {
        (1e-20..1e30).contains(&self.squared_norm())
    }
}
