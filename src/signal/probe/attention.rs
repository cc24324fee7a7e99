//! What is measured on the weights of the attention.

use burn::tensor::Tensor;
use burn::tensor::backend::Backend;

use super::ProbeError;
use super::error::Place;
use super::stream::host;
use crate::attention::AttentionMask;

/// The attention of one layer, means over sequences and heads.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct AttentionSignal {
    /// The distance of the weights from uniform ones over the keys that a query may see, `‖A − U‖_F` of a head; U is
    /// `11ᵀ/n` without a mask.
    pub distance: f64,
    /// The mean of its square, of which the theory speaks.
    pub squared_distance: f64,
    /// The entropy of a row, in nats.
    pub entropy: f64,
    /// What it would be for uniform weights: `log n` without a mask.
    pub uniform_entropy: f64,
}

impl AttentionSignal {
    /// Measures the weights `[batch, n_heads, n, n]` of a layer.
    ///
    /// # Errors
    /// [`ProbeError::NotFinite`] with the layer.
    pub fn of_layer<B: Backend>(
        layer: usize,
        weights: Tensor<B, 4>,
        mask: Option<&AttentionMask<B>>,
    ) -> Result<Self, ProbeError> {
        let [batch, heads, n, _] = weights.dims();
        let (uniform, visible) = uniform(n, mask, &weights.device());
        let masks = uniform.dims()[0];
        let difference = weights.clone() - uniform.reshape([masks, 1, n, n]);
        let squares = host(difference.powi_scalar(2).sum_dim(3).sum_dim(2));
        // 0 log 0 is 0.
        let logs = weights.clone().clamp_min(1e-30).log();
        let entropies = host((weights * logs).sum_dim(3).neg());
        if squares.iter().chain(&entropies).any(|value| !value.is_finite()) {
            return Err(Place::Layer(layer).not_finite("the weights of the attention"));
        }
        let count = (batch * heads) as f64;
        Ok(Self {
            distance: squares.iter().map(|square| square.sqrt()).sum::<f64>() / count,
            squared_distance: squares.iter().sum::<f64>() / count,
            entropy: entropies.iter().sum::<f64>() / entropies.len() as f64,
            uniform_entropy: visible.iter().map(|keys| keys.ln()).sum::<f64>() / visible.len() as f64,
        })
    }
}

/// Uniform weights `[1 or batch, n, n]`, and the number of keys of each query.
fn uniform<B: Backend>(
    n: usize,
    mask: Option<&AttentionMask<B>>,
    device: &B::Device,
) -> (Tensor<B, 3>, Vec<f64>) {
    let Some(mask) = mask else {
        return (Tensor::full([1, n, n], 1.0 / n as f64, device), vec![n as f64]);
    };
    let visible: Tensor<B, 3> = mask.hidden().bool_not().float();
    // A query that sees nothing has weights of 0, and an entropy of 0.
    let keys = visible.clone().sum_dim(2).clamp_min(1.0);
    (visible / keys.clone(), host(keys))
}
