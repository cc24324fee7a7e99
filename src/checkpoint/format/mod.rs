//! Reading the tensors of a checkpoint: which tensors there are, and the values of the few one asks for.
//!
//! A [`Store`] holds every tensor of a checkpoint by name, over one file or many shards, in
//! safetensors or in PyTorch's format. Files are memory-mapped; opening one reads headers only, and
//! reading a tensor touches that tensor's bytes only.
//!
//! Checkpoints are untrusted input. Nothing in them is executed, every length and offset is checked
//! against the file before it is used, and whatever is wrong with a file is a [`FormatError`] that
//! names the file, the fault and the remedy.

mod config;
mod decode;
mod dtype;
mod error;
mod folder;
#[cfg(any(fuzzing, test))]
pub mod fuzz;
mod index;
mod json;
mod map;
mod pickle;
mod quantised;
mod safetensors;
mod store;
mod tensor;
mod torch;
mod zip;

pub use dtype::Dtype;
pub use error::FormatError;
pub(super) use error::{Quoted, Short};
#[cfg(feature = "hub")]
pub(super) use index::shards;
pub(super) use json::brief;
pub use store::Store;
pub use tensor::TensorInfo;

#[cfg(test)]
mod tests;
