use serde::{Deserialize, Serialize};

use super::BilinearError;

/// Which sums the directionality score compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Variant {
    /// The sums of the norms above the threshold, which uses the population standard deviation: the text of
    /// the structure paper.
    Definition,
    /// The sums of what the norms have above the threshold, which uses the sample standard deviation: what
    /// produced every published table.
    Excess,
}

/// The directionality score: its variant and its threshold.
///
/// # Formula
/// With `t = mean + γ·std` of the norms of the rows, `r̄` sums over the rows whose norm exceeds `t`; `c̄` the
/// same over columns; `d = (r̄ − c̄) / (r̄ + c̄)` in [−1, 1]. Negative means that columns dominate. `d = 0`
/// where nothing exceeds. What is summed, and which standard deviation is meant, is the [`Variant`].
///
/// Where all norms are equal up to rounding (an orthogonal matrix) the rounding alone would give ±1, so a
/// spread below a few ε of the mean counts as none.
///
/// # Source
/// arXiv 2502.10927, Definition of the directionality score, with γ = 2.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Directionality {
    /// Which sums are compared.
    pub variant: Variant,
    /// How many standard deviations above the mean the threshold lies.
    pub gamma: f64,
}

impl Directionality {
    /// The threshold of the paper, `γ = 2`.
    pub const GAMMA: f64 = 2.0;

    /// [`Variant::Definition`] with `γ = 2`.
    pub const fn definition() -> Self {
        Self {
            variant: Variant::Definition,
            gamma: Self::GAMMA,
        }
    }

    /// [`Variant::Excess`] with `γ = 2`.
    pub const fn excess() -> Self {
        Self {
            variant: Variant::Excess,
            gamma: Self::GAMMA,
        }
    }

    /// The same variant at another threshold.
    pub const fn with_gamma(mut self, gamma: f64) -> Self {
        self.gamma = gamma;
        self
    }

    /// The score of a matrix with these norms of rows and columns.
    ///
    /// # Errors
    /// [`BilinearError::Gamma`] where γ is not finite.
    pub fn of_norms(&self, rows: &[f64], columns: &[f64]) -> Result<f64, BilinearError> {
        if !self.gamma.is_finite() {
            return Err(BilinearError::Gamma(self.gamma));
        }
        let (r, c) = (self.outlying(rows), self.outlying(columns));
        let sum = r + c;
        Ok(if sum > 0.0 { (r - c) / sum } else { 0.0 })
    }

    /// The sum over the norms that exceed the threshold.
    fn outlying(&self, norms: &[f64]) -> f64 {
        let n = norms.len() as f64;
        let mean = norms.iter().sum::<f64>() / n;
        let squares: f64 = norms.iter().map(|x| (x - mean).powi(2)).sum();
        let std = match self.variant {
            Variant::Definition => (squares / n).sqrt(),
            Variant::Excess => (squares / (n - 1.0).max(1.0)).sqrt(),
        };
        if std <= SPREAD_FLOOR * mean {
            return 0.0;
        }
        let threshold = mean + self.gamma * std;
        let above = norms.iter().filter(|&&x| x > threshold);
        match self.variant {
            Variant::Definition => above.sum(),
            Variant::Excess => above.map(|x| x - threshold).sum(),
        }
    }
}

/// Norms come from f32 sums of a few thousand terms, which leaves them a few ε apart where they are equal.
/// The norms of a random matrix differ by about `1/√(2n)`, thousands of times more.
const SPREAD_FLOOR: f64 = 32.0 * f32::EPSILON as f64;

#[cfg(test)]
mod tests {
    use super::*;

    fn both(rows: &[f64], columns: &[f64], gamma: f64) -> (f64, f64) {
        let d = |d: Directionality| d.with_gamma(gamma).of_norms(rows, columns).unwrap();
        (d(Directionality::definition()), d(Directionality::excess()))
    }

    #[test]
    fn by_hand() {
        // Rows: mean 2, squares 9 + 3 = 12, population std √3, sample std 2; γ = 1 leaves only the 5 above.
        // Columns are equal: none above. So d = 1 in both variants.
        let (rows, equal) = ([5.0, 1.0, 1.0, 1.0], [2.0; 4]);
        assert_eq!(both(&rows, &equal, 1.0), (1.0, 1.0));
        assert_eq!(both(&equal, &rows, 1.0), (-1.0, -1.0));
        // Columns [9, 1, 1, 1]: mean 3, squares 48, population std √12, sample std 4. Definition sums 5 and 9;
        // excess sums 5 − (2 + 2) = 1 and 9 − (3 + 4) = 2.
        let columns = [9.0, 1.0, 1.0, 1.0];
        let (definition, excess) = both(&rows, &columns, 1.0);
        assert!((definition - (5.0 - 9.0) / 14.0).abs() < 1e-15, "{definition}");
        assert!((excess - (1.0 - 2.0) / 3.0).abs() < 1e-15, "{excess}");
        // At γ = 2 nothing exceeds: 2 + 2√3 > 5.
        assert_eq!(both(&rows, &columns, 2.0), (0.0, 0.0));
    }

    #[test]
    fn degenerate_norms_have_no_direction() {
        assert_eq!(both(&[0.0; 3], &[0.0; 3], 2.0), (0.0, 0.0));
        assert_eq!(both(&[7.0], &[7.0], 2.0), (0.0, 0.0));
        // One ε apart, in one place: rounding of an orthogonal matrix.
        let mut rows = [1.0; 64];
        rows[5] += f64::from(f32::EPSILON);
        assert_eq!(both(&rows, &[1.0; 64], 2.0), (0.0, 0.0));
    }

    #[test]
    fn gamma_must_be_finite() {
        let d = Directionality::excess().with_gamma(f64::NAN);
        assert!(matches!(
            d.of_norms(&[1.0], &[1.0]),
            Err(BilinearError::Gamma(g)) if g.is_nan()
        ));
    }
}
