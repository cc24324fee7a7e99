//! Signal propagation as it is, on a model: at initialisation, in training or from a checkpoint.
//!
//! Forward quantities are measured without autodiff, so that a probe in training leaves no graph behind.
//!
//! # Examples
//! ```
//! # use wqk::backend::{BackendKind, with_backend};
//! # let kind = BackendKind::default_compiled().unwrap();
//! # with_backend!(kind, None, |B, device| {
//! use wqk::backend::Autodiff;
//! use wqk::model::TextTransformerConfig;
//! use wqk::signal::probe::TextProbe;
//!
//! let model = TextTransformerConfig::bare(100, 32, 6, 4).with_init_std(0.18);
//! let signal = TextProbe::new(16).at_init::<Autodiff<B>>(&model, 0, &device)?;
//! let cosines: Vec<f64> = signal.layers.iter().map(|layer| layer.stream.cosine).collect();
//! assert!(cosines[5] > cosines[0]);
//! # Ok::<(), wqk::signal::probe::ProbeError>(())
//! # }).unwrap()?;
//! # Ok::<(), wqk::signal::probe::ProbeError>(())
//! ```

mod attention;
mod error;
mod gradient;
mod propagates;
mod stream;
mod text;

use burn::module::AutodiffModule;
use burn::tensor::backend::{AutodiffBackend, Backend};

pub use attention::AttentionSignal;
pub use error::ProbeError;
pub use gradient::GradientSignal;
pub use propagates::{BlockSignal, Propagates, TextInput};
pub use stream::StreamSignal;
pub use text::TextProbe;

/// What was measured on a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelSignal {
    /// The input of the first block.
    pub input: StreamSignal,
    /// The blocks, first to last.
    pub layers: Vec<LayerSignal>,
}

impl ModelSignal {
    /// The stream at the input, and after each block.
    pub fn streams(&self) -> impl Iterator<Item = &StreamSignal> {
        let after = self.layers.iter().map(|layer| &layer.stream);
        std::iter::once(&self.input).chain(after)
    }
}

/// What was measured on one block.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerSignal {
    /// The stream after the block.
    pub stream: StreamSignal,
    /// The attention of the block.
    pub attention: AttentionSignal,
    /// The gradients in its weights; none from a forward probe.
    pub gradients: Option<GradientSignal>,
}

/// Measures the forward pass of a model.
///
/// # Errors
/// [`ProbeError::NoAttention`]; [`ProbeError::NotFinite`] with layer and quantity.
pub fn probe_forward<B: Backend, M: Propagates<B>>(
    model: &M,
    input: &M::Input,
) -> Result<ModelSignal, ProbeError> {
    forward(model, input, &mut |_| ())
}

/// Measures the forward pass and the gradients of a model, which must be without dropout.
///
/// `input` and `inner_input` are the same input on the backend and on its inner one; `seed` draws the linear functions
/// whose gradients are taken.
///
/// # Errors
/// As [`probe_forward`].
pub fn probe<B, M>(
    model: &M,
    input: &M::Input,
    inner_input: &<M::InnerModule as Propagates<B::InnerBackend>>::Input,
    seed: u64,
) -> Result<ModelSignal, ProbeError>
where
    B: AutodiffBackend,
    M: AutodiffModule<B> + Propagates<B>,
    M::InnerModule: Propagates<B::InnerBackend>,
{
    let mut inputs = Vec::new();
    let mut signal = forward(&model.valid(), inner_input, &mut |block| {
        inputs.push(block.attention_input.clone());
    })?;
    let gradients = gradient::measure(model, input, inputs, seed)?;
    for (layer, gradients) in signal.layers.iter_mut().zip(gradients) {
        layer.gradients = Some(gradients);
    }
    Ok(signal)
}

fn forward<B: Backend, M: Propagates<B>>(
    model: &M,
    input: &M::Input,
    also: &mut dyn FnMut(&BlockSignal<'_, B>),
) -> Result<ModelSignal, ProbeError> {
    if model.attention_layers().is_empty() {
        return Err(ProbeError::NoAttention);
    }
    let mut first = None;
    let mut layers = Vec::new();
    model.propagate(input, &mut |block| {
        let layer = layers.len();
        if first.is_none() {
            first = Some(StreamSignal::of_input(block.before.clone())?);
        }
        also(&block);
        layers.push(LayerSignal {
            attention: AttentionSignal::of_layer(layer, block.weights, block.mask)?,
            stream: StreamSignal::of_layer(layer, block.after)?,
            gradients: None,
        });
        Ok(())
    })?;
    let input = first.ok_or(ProbeError::NoAttention)?;
    Ok(ModelSignal { input, layers })
}
