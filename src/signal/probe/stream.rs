//! What is measured on the residual stream.

use burn::tensor::Tensor;
use burn::tensor::backend::Backend;
use faer::{Mat, Side};

use super::ProbeError;
use super::error::Place;

/// The residual stream at one place, means over the sequences of a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamSignal {
    /// `N = ‖X‖_F²` of a sequence.
    pub norm: f64,
    /// `C = ‖Σ_k x_k‖²` of a sequence.
    pub inner_products: f64,
    /// The mean cosine of two different tokens of a sequence.
    pub cosine: f64,
    /// `‖X − 1x̄ᵀ‖_F/‖X‖_F`, the share of the stream that is not common to all tokens: 0 at rank collapse.
    ///
    /// Rank one alone is not collapse: `X = a xᵀ` with unequal a keeps its query and key gradients.
    pub residual: f64,
    /// `‖X‖_F²/‖X‖₂²`, from 1 to the number of tokens.
    pub stable_rank: f64,
    /// The norms of all tokens of all sequences.
    pub token_norms: Vec<f64>,
}

impl StreamSignal {
    /// Measures a stream `[batch, n, d_model]`.
    ///
    /// Costs a Gram matrix `[n, n]` for each sequence on the device, and its eigenvalues on the host.
    ///
    /// # Errors
    /// [`ProbeError::NotFinite`] with the layer.
    pub fn of_layer<B: Backend>(layer: usize, x: Tensor<B, 3>) -> Result<Self, ProbeError> {
        Self::measure(Place::Layer(layer), "the tokens after the block", x)
    }

    /// The same for the input of the first block.
    ///
    /// # Errors
    /// [`ProbeError::InputNotFinite`].
    pub fn of_input<B: Backend>(x: Tensor<B, 3>) -> Result<Self, ProbeError> {
        Self::measure(Place::Input, "the tokens", x)
    }

    fn measure<B: Backend>(
        place: Place,
        quantity: &'static str,
        x: Tensor<B, 3>,
    ) -> Result<Self, ProbeError> {
        let [batch, n, _] = x.dims();
        let gram = host(x.clone().matmul(x.clone().swap_dims(1, 2)));
        // By differences of tokens, not of sums, which would cancel close to collapse.
        let centred = x.clone() - x.mean_dim(1);
        let centred = host(centred.powi_scalar(2).sum_dim(2).sum_dim(1));
        if gram.iter().chain(&centred).any(|value| !value.is_finite()) {
            return Err(place.not_finite(quantity));
        }
        let mut signal = Self {
            norm: 0.0,
            inner_products: 0.0,
            cosine: 0.0,
            residual: 0.0,
            stable_rank: 0.0,
            token_norms: Vec::with_capacity(batch * n),
        };
        let share = 1.0 / batch as f64;
        for (gram, centred) in gram.chunks(n * n).zip(centred) {
            let norms: Vec<f64> = (0..n).map(|i| gram[i * n + i].max(0.0).sqrt()).collect();
            let norm: f64 = norms.iter().map(|norm| norm * norm).sum();
            let mut cosines = 0.0;
            for (i, j) in (0..n).flat_map(|i| (0..i).map(move |j| (i, j))) {
                let product = norms[i] * norms[j];
                if product > 0.0 {
                    cosines += gram[i * n + j] / product;
                }
            }
            signal.norm += share * norm;
            signal.inner_products += share * gram.iter().sum::<f64>();
            signal.cosine += share * 2.0 * cosines / (n * (n - 1)).max(1) as f64;
            if norm > 0.0 {
                signal.residual += share * (centred / norm).sqrt();
                signal.stable_rank += share * norm / largest_eigenvalue(gram, n).unwrap_or(norm);
            }
            signal.token_norms.extend(norms);
        }
        Ok(signal)
    }
}

/// `None` where the decomposition does not converge, which it does for finite entries.
fn largest_eigenvalue(gram: &[f64], n: usize) -> Option<f64> {
    let gram = Mat::from_fn(n, n, |i, j| gram[i * n + j]);
    let eigenvalues = gram.self_adjoint_eigenvalues(Side::Lower).ok()?;
    eigenvalues.into_iter().max_by(f64::total_cmp)
}

pub(super) fn host<B: Backend, const D: usize>(x: Tensor<B, D>) -> Vec<f64> {
    x.into_data().iter::<f64>().collect()
}
