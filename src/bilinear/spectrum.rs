use burn::tensor::Tensor;
use burn::tensor::backend::Backend;
use faer::Mat;
use serde::{Deserialize, Serialize};

use super::kernel::host;
use super::{BilinearError, BilinearForm};

/// The singular values and the eigenvalues of a form, without the `d_model − r` zeros of its rank `r`.
#[derive(Debug, Clone, PartialEq)]
pub struct Spectrum {
    /// The singular values, largest first; as many as the inner width of the form (or `d_model`, if smaller).
    pub singular_values: Vec<f64>,
    /// The eigenvalues as real and imaginary part, largest modulus first; as many as the inner width.
    pub eigenvalues: Vec<(f64, f64)>,
}

/// The eigenvalues of a form in a few numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct EigenvalueSummary {
    /// The largest modulus.
    pub spectral_radius: f64,
    /// `Σ Re λ / Σ |λ|` in [−1, 1]: 1 where all are positive reals, 0 for a skew-symmetric form.
    pub positivity: f64,
    /// `Σ |Im λ| / Σ |λ|` in [0, 1]: 0 where all are real, as for every symmetric form.
    pub imaginary: f64,
}

impl Spectrum {
    /// The eigenvalues in a few numbers; `None` where all are 0.
    pub fn summary(&self) -> Option<EigenvalueSummary> {
        let moduli: f64 = self.eigenvalues.iter().map(modulus).sum();
        (moduli > 0.0).then(|| EigenvalueSummary {
            spectral_radius: self.eigenvalues.iter().map(modulus).fold(0.0, f64::max),
            positivity: self.eigenvalues.iter().map(|z| z.0).sum::<f64>() / moduli,
            imaginary: self.eigenvalues.iter().map(|z| z.1.abs()).sum::<f64>() / moduli,
        })
    }
}

fn modulus(z: &(f64, f64)) -> f64 {
    z.0.hypot(z.1)
}

impl<B: Backend> BilinearForm<B> {
    /// The spectrum of the form, of one head as `form.head(h)?.spectrum()`.
    ///
    /// Solved on the host in f64 at the inner width `r`: `2 d r²` operations and a problem of size `r × r`,
    /// which suits heads; a whole layer of many heads has a wide `r`.
    ///
    /// # Formula
    /// With `A = Q_A R_A` and `B = Q_B R_B`, the singular values of `A Bᵀ` are those of `R_A R_Bᵀ`, and its
    /// non-zero eigenvalues those of `Bᵀ A`.
    ///
    /// # Errors
    /// [`BilinearError::NoConvergence`].
    pub fn spectrum(&self) -> Result<Spectrum, BilinearError> {
        let (q, k) = self.reduced();
        let (a, b) = (to_host(q), to_host(k));
        let size = a.ncols();
        let failed = |what| move |_| BilinearError::NoConvergence { what, size };

        let core = a.qr().thin_R() * b.qr().thin_R().transpose();
        let mut singular_values = core.singular_values().map_err(|_| BilinearError::NoConvergence {
            what: "singular value decomposition",
            size,
        })?;
        singular_values.sort_by(|x, y| y.total_cmp(x));

        let product = b.transpose() * &a;
        let mut eigenvalues: Vec<_> = product
            .eigenvalues()
            .map_err(failed("eigenvalue decomposition"))?
            .into_iter()
            .map(|z| (z.re, z.im))
            .collect();
        eigenvalues.sort_by(|x, y| modulus(y).total_cmp(&modulus(x)));
        Ok(Spectrum {
            singular_values,
            eigenvalues,
        })
    }
}

/// A head-major factor `[r, d]` as a matrix `[d, r]` in f64.
fn to_host<B: Backend>(factor: Tensor<B, 2>) -> Mat<f64> {
    let [r, d] = factor.dims();
    let values = host(factor);
    Mat::from_fn(d, r, |i, j| values[j * d + i])
}
