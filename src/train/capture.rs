//! The gradients of the raw scores of every layer, for one batch.

use burn::module::AutodiffModule;
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{ElementConversion, Tensor};

use super::task::TracedTask;
use crate::attention::{AttentionModule, HasAttention};
use crate::bilinear::{BilinearError, BilinearForm, ScoreGradients, WeightGradients};

/// Why the gradients of raw scores cannot be had, or what is asked of them does not hold.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// A model without self-attention.
    #[error("the model shows no self-attention layer: there is no W_qk to watch")]
    NoAttention,
    /// A layer that shows no raw scores.
    #[error(
        "the raw scores of {layer} are not to be had: only layers that are a SelfAttention of this library, and are \
         traced in the forward pass of the task, give their gradient"
    )]
    NotTraced {
        /// Which layer.
        layer: String,
    },
    /// A layer that the loss does not depend on.
    #[error("the loss does not depend on the raw scores of {layer}: it has no gradient there")]
    NoGradient {
        /// Which layer.
        layer: String,
    },
    /// Numbers that are not finite, or shapes that do not fit.
    #[error("{layer}: {source}")]
    Layer {
        /// Which layer.
        layer: String,
        /// What is wrong.
        source: BilinearError,
    },
    /// An identity that takes raw scores to be `Q Kᵀ` of linear projections, asked of a layer where they are not.
    #[error(
        "{layer}: {quantity} does not follow from the gradient of the raw scores, as these differ from \
         (X W_q + b_q)(X W_k + b_k)ᵀ by {deviation:.1e} of their norm: rotary positions or a normaliser on queries or \
         keys come between; take the gradient from autodiff"
    )]
    NotBilinear {
        /// Which layer.
        layer: String,
        /// What was asked for.
        quantity: &'static str,
        /// `‖Â − Q Kᵀ‖ / ‖Â‖`.
        deviation: f64,
    },
}

/// What one forward and one backward pass say of a model's attention.
pub struct Capture<B: AutodiffBackend> {
    /// The mean loss of the batch, in nats.
    pub loss: f64,
    /// Each self-attention layer, in order.
    pub layers: Vec<LayerCapture<B::InnerBackend>>,
    /// The gradients of everything else, by autodiff.
    pub gradients: B::Gradients,
}

// By hand, as the gradients of a backend cannot be shown.
impl<B: AutodiffBackend> std::fmt::Debug for Capture<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Capture")
            .field("loss", &self.loss)
            .field("layers", &self.layers)
            .finish_non_exhaustive()
    }
}

/// One layer of a [`Capture`].
#[derive(Debug, Clone)]
pub struct LayerCapture<B: Backend> {
    /// The path of the module within the model.
    pub module: String,
    /// Its bilinear form.
    pub form: BilinearForm<B>,
    /// Its tokens and the gradient of its raw scores.
    pub gradients: ScoreGradients<B>,
    /// Its queries with their bias, `[batch, n_heads, n, head_dim]`.
    pub queries: Tensor<B, 4>,
    /// Its keys with their bias, `[batch, n_kv_heads, n, head_dim]`.
    pub keys: Tensor<B, 4>,
    /// Its raw scores, `[batch, n_heads, n, n]`.
    pub scores: Tensor<B, 4>,
    /// Its weights after the softmax, `[batch, n_heads, n, n]`.
    pub weights: Tensor<B, 4>,
    /// `‖Â − Q Kᵀ‖ / ‖Â‖`, with `Q` and `K` the projections of `X` by the stored weights.
    deviation: f64,
}

/// Above this the raw scores are not those of the stored projections: f32 products of a few thousand terms agree
/// within 1e-5, while a rotation or a normaliser changes the scores themselves.
const DEVIATION: f64 = 1e-3;

impl<B: Backend> LayerCapture<B> {
    /// How far the raw scores are from those of the stored projections, `‖Â − Q Kᵀ‖ / ‖Â‖`.
    pub fn deviation(&self) -> f64 {
        self.deviation
    }

    /// `∂L/∂W_q` and `∂L/∂W_k` from the gradient of the raw scores:
    /// [`ScoreGradients::weight_gradients`], with the biases in Q and K.
    ///
    /// # Errors
    /// [`CaptureError::NotBilinear`] where the raw scores are not those of the stored projections.
    pub fn weight_gradients(&self) -> Result<WeightGradients<B>, CaptureError> {
        if self.deviation.is_nan() || self.deviation > DEVIATION {
            return Err(CaptureError::NotBilinear {
                layer: self.module.clone(),
                quantity: "the gradient of W_q and W_k",
                deviation: self.deviation,
            });
        }
        self.gradients
            .weight_gradients(self.queries.clone(), self.keys.clone())
            .map_err(|source| self.wrong(source))
    }

    fn wrong(&self, source: BilinearError) -> CaptureError {
        CaptureError::Layer {
            layer: self.module.clone(),
            source,
        }
    }
}

/// Runs the batch of a task through a model and back, and keeps what concerns its attention.
///
/// `step` and `part` address the dropout, as in [`Task::loss`](super::Task::loss). The loss is multiplied by `share`
/// before the backward pass: the batch's weight within its update, or 1. Costs one training step without its
/// optimiser.
///
/// # Errors
/// [`CaptureError::NoAttention`], [`NotTraced`](CaptureError::NotTraced) for layers that are Burn's own,
/// [`NoGradient`](CaptureError::NoGradient), and [`Layer`](CaptureError::Layer) where weights, tokens or gradients
/// are not finite.
pub fn capture<B, T>(
    task: &T,
    model: &T::Model,
    batch: T::Batch,
    (step, part): (usize, usize),
    share: f64,
) -> Result<Capture<B>, CaptureError>
where
    B: AutodiffBackend,
    T: TracedTask<B>,
    <T::Model as AutodiffModule<B>>::InnerModule: HasAttention<B::InnerBackend>,
{
    let inner = model.valid();
    let modules = inner.attention_layers();
    if modules.is_empty() {
        return Err(CaptureError::NoAttention);
    }
    // Before anything runs: a weight that is not finite spoils the gradients of all layers, but is in one.
    let forms: Vec<_> = modules
        .iter()
        .map(|layer| {
            layer.attention.form().map_err(|source| CaptureError::Layer {
                layer: layer.module.clone(),
                source,
            })
        })
        .collect::<Result<_, _>>()?;
    let (loss, traces) = task.loss_traced(model, batch, step, part);
    let value: f64 = loss.clone().into_scalar().elem();
    let gradients = loss.mul_scalar(share).backward();
    let layers = modules
        .into_iter()
        .zip(forms)
        .map(|(layer, form)| {
            let named = |source| CaptureError::Layer {
                layer: layer.module.clone(),
                source,
            };
            let not_traced = || CaptureError::NotTraced {
                layer: layer.module.clone(),
            };
            let trace = traces
                .iter()
                .find(|trace| trace.module == layer.module)
                .ok_or_else(not_traced)?;
            let AttentionModule::SelfAttention(attention) = layer.attention else {
                return Err(not_traced());
            };
            let beta = trace
                .output
                .scores_grad(&gradients)
                .ok_or_else(|| CaptureError::NoGradient {
                    layer: layer.module.clone(),
                })?;
            let x = trace.input.clone().inner();
            let scores = trace.output.scores.clone().inner();
            let expected = attention.forward_detailed(x.clone(), None, None).scores;
            let norm =
                |x: Tensor<B::InnerBackend, 4>| -> f64 { x.square().sum().sqrt().into_scalar().elem() };
            let size = norm(scores.clone());
            let difference = norm(expected - scores.clone());
            Ok(LayerCapture {
                form,
                gradients: ScoreGradients::new(x, beta).map_err(named)?,
                queries: trace.output.queries.clone().inner(),
                keys: trace.output.keys.clone().inner(),
                scores,
                weights: trace.output.weights.clone().inner(),
                deviation: if difference == 0.0 { 0.0 } else { difference / size },
                module: layer.module,
            })
        })
        .collect::<Result<_, _>>()?;
    Ok(Capture {
        loss: value,
        layers,
        gradients,
    })
}
