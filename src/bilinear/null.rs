use serde::{Deserialize, Serialize};

/// The law of the symmetry score of a random matrix.
///
/// # Formula
/// For an `n × n` matrix whose entries are independent with one sign-symmetric law, or a product of Gaussian
/// factors of any inner width and head grouping, the mean is `1/n` and the standard deviation about `√2/n`.
///
/// # Source
/// The appendix of the structure paper (arXiv 2502.10927) bounds the spread by `8/n`. `√2/n` is what the
/// moments give: `Tr(MM)` is the sum of `M_ii²` and of `2 M_ij M_ji` over pairs, `n²/2` uncorrelated terms of
/// variance `4σ⁴`, over `‖M‖² ≈ n²σ²`.
///
/// # Examples
/// ```
/// use wqk::bilinear::SymmetryNull;
/// let null = SymmetryNull::new(768);
/// assert!(null.z(0.1) > 50.0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SymmetryNull {
    /// The mean, `1/n`.
    pub mean: f64,
    /// The standard deviation, `√2/n`.
    pub std: f64,
}

impl SymmetryNull {
    /// The law for matrices of `d_model` rows and columns.
    pub fn new(d_model: usize) -> Self {
        let n = d_model.max(1) as f64;
        Self {
            mean: 1.0 / n,
            std: std::f64::consts::SQRT_2 / n,
        }
    }

    /// How many standard deviations a score lies above the mean.
    pub fn z(&self, symmetry: f64) -> f64 {
        (symmetry - self.mean) / self.std
    }
}
