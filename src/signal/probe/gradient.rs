//! What is measured on the gradients of queries, keys and values.

use burn::nn::Linear;
use burn::tensor::backend::AutodiffBackend;
use burn::tensor::{ElementConversion, Tensor, TensorData};

use super::error::Place;
use super::{ProbeError, Propagates};
use crate::attention::AttentionModule;
use crate::random;
use crate::signal::theory::AttentionGradients;

/// Squared norms of gradients in the weights of one attention layer, a mean over the sequences of a batch.
///
/// Each is the gradient of a random linear function `⟨R, ·⟩` with R of independent standard normal entries, so that its
/// expectation over R is the squared Frobenius norm of a Jacobian.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct GradientSignal {
    /// Of the layer's own output, given its input: what the theory predicts.
    pub own: AttentionGradients,
    /// Of the residual stream after the last block.
    pub whole: AttentionGradients,
}

/// Measures the gradients of every attention layer.
///
/// `inputs` are what each attention is given, from a forward pass without autodiff.
///
/// # Errors
/// [`ProbeError::NotFinite`] with the layer and the gradient.
pub(super) fn measure<B: AutodiffBackend, M: Propagates<B>>(
    model: &M,
    input: &M::Input,
    inputs: Vec<Tensor<B::InnerBackend, 3>>,
    seed: u64,
) -> Result<Vec<GradientSignal>, ProbeError> {
    let layers = model.attention_layers();
    let whole = gradients(model.output(input), seed, "output");
    inputs
        .into_iter()
        .zip(&layers)
        .enumerate()
        .map(|(layer, (x, attention))| {
            let batch = x.dims()[0] as f64;
            let output = model.attend(layer, Tensor::from_inner(x), input);
            let own = gradients(output, seed, &format!("layer {layer}"));
            let [own, whole] =
                [&own, &whole].map(|gradients| squares::<B>(layer, &attention.attention, gradients, batch));
            Ok(GradientSignal {
                own: own?,
                whole: whole?,
            })
        })
        .collect()
}

/// The gradients of `⟨R, y⟩`.
fn gradients<B: AutodiffBackend>(y: Tensor<B, 3>, seed: u64, place: &str) -> B::Gradients {
    let shape = y.dims();
    let mut rng = random::stream(seed, ["probe", "direction", place]);
    let direction = TensorData::new(random::normal(&mut rng, shape.iter().product(), 1.0), shape);
    let direction = Tensor::from_data(direction, &y.device());
    (y * direction).sum().backward()
}

fn squares<B: AutodiffBackend>(
    layer: usize,
    attention: &AttentionModule<'_, B>,
    gradients: &B::Gradients,
    batch: f64,
) -> Result<AttentionGradients, ProbeError> {
    let [query, key, value] = match attention {
        AttentionModule::SelfAttention(a) => [&a.query, &a.key, &a.value],
        AttentionModule::MultiHead(a) => [&a.query, &a.key, &a.value],
    };
    let square = |linear: &Linear<B>, quantity| {
        // A weight that the output does not depend on has no gradient: 0.
        let square = linear.weight.grad(gradients).map_or(0.0, |gradient| {
            gradient.powi_scalar(2).sum().into_scalar().elem::<f64>()
        });
        if square.is_finite() {
            Ok(square / batch)
        } else {
            Err(Place::Layer(layer).not_finite(quantity))
        }
    };
    Ok(AttentionGradients {
        query: square(query, "the gradients of the query weights")?,
        key: square(key, "the gradients of the key weights")?,
        value: square(value, "the gradients of the value weights")?,
    })
}
