use burn::nn::DropoutConfig;
use burn::tensor::backend::Backend;
use burn::tensor::{Tensor, TensorData};
use rand_chacha::rand_core::Rng as _;

use crate::random;

/// Where the random choices of one training step come from: a seed, the step, and a place in the model.
///
/// Backends draw from generators of their own, which a run cannot resume or compare between them. A mask that
/// is drawn on the host from its address is the same on every backend, and after a restart.
///
/// # Examples
/// ```
/// use wqk::attention::Noise;
/// let step = Noise::new(7, 1200);
/// let layer = step.at("layer 3");
/// assert_eq!(layer.at("weights"), Noise::new(7, 1200).at("layer 3").at("weights"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Noise {
    seed: u64,
    place: Vec<String>,
}

impl Noise {
    /// The noise of a step of the run with this seed.
    pub fn new(seed: u64, step: u64) -> Self {
        Self {
            seed,
            place: vec!["noise".to_owned(), step.to_string()],
        }
    }

    /// The noise of a place within this one.
    pub fn at(&self, place: impl Into<String>) -> Self {
        let mut inner = self.clone();
        inner.place.push(place.into());
        inner
    }

    /// The generator of this place.
    pub fn rng(&self) -> random::Rng {
        random::stream(self.seed, &self.place)
    }
}

/// Sets entries to 0 with probability `rate` and divides the others by `1 − rate`.
///
/// With a [`Noise`] the choice is drawn on the host and always applies; without, Burn's own dropout acts, on
/// autodiff backends only. A `rate` of 0 does nothing.
///
/// `rate` must be in [0, 1), which is for the configuration of the caller to check.
pub fn dropout<B: Backend, const D: usize>(
    x: Tensor<B, D>,
    rate: f64,
    noise: Option<&Noise>,
) -> Tensor<B, D> {
    let Some(noise) = noise else {
        return DropoutConfig::new(rate).init().forward(x);
    };
    if rate == 0.0 {
        return x;
    }
    let shape = x.shape();
    let mut rng = noise.rng();
    let dropped = (rate * 2f64.powi(32)) as u32;
    let kept = (1.0 / (1.0 - rate)) as f32;
    let mask: Vec<f32> = (0..shape.num_elements())
        .map(|_| if rng.next_u32() < dropped { 0.0 } else { kept })
        .collect();
    let mask = Tensor::from_data(TensorData::new(mask, shape), &x.device());
    x * mask
}
