//! Our models from and to folders of Hugging Face's `transformers`: BERT and the vision transformer.
//!
//! What is read is checked whole before any of it is applied: every tensor that the model needs is there with the
//! shape that `config.json` gives it, and none is left over. What is written loads by `from_pretrained` without a
//! word of missing or surplus weights, and gives the same logits.
//!
//! # Examples
//! ```no_run
//! use wqk::backend::Flex;
//! use wqk::checkpoint::pretrained;
//!
//! let bert = pretrained::load_text::<Flex>("bert-base-uncased", &Default::default())?;
//! println!("{} layers, causal: {}", bert.config.n_layers, bert.causal);
//! # Ok::<(), pretrained::PretrainedError>(())
//! ```

mod bert;
mod config;
mod error;
mod export;
mod names;
mod parameters;
mod vit;

use std::path::Path;

use burn::tensor::Device;
use burn::tensor::backend::Backend;

use super::format::Store;
use crate::model::{TextTransformer, TextTransformerConfig, ViT, ViTConfig};

pub use error::PretrainedError;
pub use export::{ExportedText, ExportedViT, HubFile, check_target, export_text, export_vit};
pub use parameters::{Parameter, Parameters};

/// A text transformer that was read from a folder.
#[derive(Debug, Clone)]
pub struct PretrainedText<B: Backend> {
    /// The model.
    pub model: TextTransformer<B>,
    /// What it is made of.
    pub config: TextTransformerConfig,
    /// Whether `config.json` says that it is a decoder: its attention then wants a causal mask.
    pub causal: bool,
    /// What a user of it should know, such as tensors that our model has no use for.
    pub notes: Vec<String>,
}

/// A text transformer that was read from a folder, before a backend is chosen for it.
#[derive(Debug, Clone)]
pub struct TextWeights {
    /// What it is made of.
    pub config: TextTransformerConfig,
    /// Whether `config.json` says that it is a decoder: its attention then wants a causal mask.
    pub causal: bool,
    /// What a user of it should know, such as tensors that our model has no use for.
    pub notes: Vec<String>,
    parameters: Parameters,
}

impl TextWeights {
    /// The model on a device.
    ///
    /// # Errors
    /// As [`load_text`].
    pub fn model<B: Backend>(&self, device: &Device<B>) -> Result<TextTransformer<B>, PretrainedError> {
        // The seed does not matter: every weight is replaced.
        self.parameters.clone().into_module(self.config.init(0, device)?)
    }
}

/// A vision transformer that was read from a folder.
#[derive(Debug, Clone)]
pub struct PretrainedViT<B: Backend> {
    /// The model.
    pub model: ViT<B>,
    /// What it is made of.
    pub config: ViTConfig,
    /// Names of the classes.
    pub classes: Vec<String>,
    /// What a user of it should know.
    pub notes: Vec<String>,
}

/// Reads a BERT: a folder with `config.json` and weights, with or without its prediction head.
///
/// Our model has no segments: the embedding of the first one is added to the positions, which gives the same sums
/// for all input of a single segment. Without a head, logits are taken by the tied embedding alone.
///
/// # Errors
/// [`PretrainedError`] for files that cannot be read, a model of another family or with parts that ours has not, a
/// tensor that is missing, left over or of another shape (by its name).
pub fn load_text<B: Backend>(
    folder: impl AsRef<Path>,
    device: &Device<B>,
) -> Result<PretrainedText<B>, PretrainedError> {
    let read = read_text(folder)?;
    Ok(PretrainedText {
        model: read.model(device)?,
        config: read.config,
        causal: read.causal,
        notes: read.notes,
    })
}

/// Reads a BERT as [`load_text`] does, to be put on a device later.
///
/// # Errors
/// As [`load_text`].
pub fn read_text(folder: impl AsRef<Path>) -> Result<TextWeights, PretrainedError> {
    bert::read(&Store::open(folder.as_ref())?)
}

/// Reads a vision transformer with its classifier.
///
/// # Errors
/// As [`load_text`].
pub fn load_vit<B: Backend>(
    folder: impl AsRef<Path>,
    device: &Device<B>,
) -> Result<PretrainedViT<B>, PretrainedError> {
    let store = Store::open(folder.as_ref())?;
    let read = vit::read(&store)?;
    let model = read.config.init(0, device)?;
    Ok(PretrainedViT {
        model: read.parameters.into_module(model)?,
        config: read.config,
        classes: read.classes,
        notes: read.notes,
    })
}

#[cfg(all(test, feature = "flex"))]
mod tests;
