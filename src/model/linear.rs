//! Linear maps whose weights are drawn on the host.

use burn::module::Param;
use burn::nn::Linear;
use burn::tensor::backend::Backend;
use burn::tensor::{Device, TensorData};

use crate::random::{self, Rng};

/// A linear map with weights `[input, output]` from N(0, std²) and, if wanted, a bias of zeros.
pub(super) fn normal_linear<B: Backend>(
    input: usize,
    output: usize,
    bias: bool,
    std: f64,
    rng: &mut Rng,
    device: &Device<B>,
) -> Linear<B> {
    let weight = TensorData::new(random::normal(rng, input * output, std), [input, output]);
    Linear {
        weight: Param::from_data(weight, device),
        bias: bias.then(|| Param::from_data(TensorData::zeros::<f32, _>([output]), device)),
    }
}
