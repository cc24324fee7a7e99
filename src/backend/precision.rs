//! The number type in which matrices are multiplied.

use std::fmt;

use burn::nn::Linear;
use burn::tensor::backend::Backend;
use burn::tensor::{DType, Device, FloatDType, Tensor};
use serde::{Deserialize, Serialize};

/// The number type in which a model multiplies matrices.
///
/// Weights, sums along the stream, norms, softmax, loss and optimiser are in f32 whatever it is, as under PyTorch's
/// autocast: only the two sides of a product are rounded, forward and backward. Half precision in IEEE's format
/// is not among the choices: its range asks for a scaled loss.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// Single precision.
    #[default]
    F32,
    /// 8 bits of significand and the range of f32.
    Bf16,
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
        })
    }
}

impl Precision {
    /// Whether the backend can multiply in it on this device.
    pub fn is_supported<B: Backend>(self, device: &Device<B>) -> bool {
        match self {
            Self::F32 => true,
            Self::Bf16 => B::supports_dtype(device, DType::BF16),
        }
    }

    /// The product of two matrices, or of each pair of two batches of them, in f32.
    pub fn matmul<B: Backend, const D: usize>(self, a: Tensor<B, D>, b: Tensor<B, D>) -> Tensor<B, D> {
        match self {
            Self::F32 => a.matmul(b),
            Self::Bf16 => {
                let rounded = |x: Tensor<B, D>| x.cast(FloatDType::BF16);
                rounded(a).matmul(rounded(b)).cast(FloatDType::F32)
            }
        }
    }

    /// A linear map of the last axis, whose bias is added in f32.
    pub fn linear<B: Backend, const D: usize>(self, linear: &Linear<B>, x: Tensor<B, D>) -> Tensor<B, D> {
        match self {
            Self::F32 => linear.forward(x),
            Self::Bf16 => {
                let y = self.matmul(x, linear.weight.val().unsqueeze());
                match &linear.bias {
                    Some(bias) => y + bias.val().unsqueeze(),
                    None => y,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use burn::module::Param;
    use burn::tensor::TensorData;
    use burn::tensor::backend::AutodiffBackend;

    use super::*;
    use crate::backend::Autodiff;
    use crate::random;

    /// Output and gradients (of input, weight, bias) of a linear map under `mean(y²)`.
    fn through<B: AutodiffBackend>(precision: Precision, device: &Device<B>) -> Vec<Vec<f32>> {
        let mut rng = random::stream(3, ["precision"]);
        let mut normal = |shape: &[usize]| {
            let values = random::normal(&mut rng, shape.iter().product(), 1.0);
            TensorData::new(values, shape.to_vec())
        };
        let x = Tensor::<B, 3>::from_data(normal(&[2, 5, 64]), device).require_grad();
        let linear = Linear {
            weight: Param::from_data(normal(&[64, 32]), device),
            bias: Some(Param::from_data(normal(&[32]), device)),
        };
        let y = precision.linear(&linear, x.clone());
        let grads = y.clone().powi_scalar(2).mean().backward();
        let bias = linear.bias.as_ref().expect("set above").val();
        let values = |data: TensorData| {
            assert_eq!(data.dtype, DType::F32);
            data.to_vec::<f32>().expect("f32")
        };
        vec![
            values(y.into_data()),
            values(x.grad(&grads).expect("tracked").into_data()),
            values(linear.weight.val().grad(&grads).expect("tracked").into_data()),
            values(bias.grad(&grads).expect("tracked").into_data()),
        ]
    }

    fn bf16_rounds_products_and_nothing_else<B: AutodiffBackend>() {
        let device = Default::default();
        assert!(Precision::Bf16.is_supported::<B>(&device));
        let exact = through::<B>(Precision::F32, &device);
        let rounded = through::<B>(Precision::Bf16, &device);
        for (exact, rounded) in exact.iter().zip(&rounded) {
            let norm = |values: &mut dyn Iterator<Item = f32>| {
                values.map(|v| f64::from(v).powi(2)).sum::<f64>().sqrt()
            };
            let off =
                norm(&mut exact.iter().zip(rounded).map(|(a, b)| a - b)) / norm(&mut exact.iter().copied());
            // Each rounding is at most 2⁻⁹ of its value; a gradient passes through five of them at most (input,
            // weight, output of the map, then gradient and the other side). Had nothing been rounded it would be 0.
            assert!((1e-4..5.0 / 512.0).contains(&off), "{off}");
        }
    }

    #[cfg(feature = "flex")]
    #[test]
    fn bf16_rounds_products_and_nothing_else_on_flex() {
        bf16_rounds_products_and_nothing_else::<Autodiff<crate::backend::Flex>>();
    }

    #[cfg(feature = "tch")]
    #[test]
    fn bf16_rounds_products_and_nothing_else_on_tch() {
        bf16_rounds_products_and_nothing_else::<Autodiff<crate::backend::Tch>>();
    }

    #[cfg(feature = "ndarray")]
    #[test]
    fn ndarray_has_no_bf16() {
        use crate::backend::NdArray;
        assert!(!Precision::Bf16.is_supported::<NdArray>(&Default::default()));
    }
}
