//! Checkpoints of a run, from which it goes on as if it had never stopped.
//!
//! A checkpoint is a folder `step-000000123` with `model.safetensors`, `optimiser.safetensors`, `average.safetensors`
//! where weights are averaged, `updates.safetensors` where updates are watched, and `state.json`, which has the rest
//! and the SHA-256 of each file. It is written under another name, synced to the disk and renamed: one that has its
//! name is whole.
//!
//! The step is also the position in the data and the state of every generator: batches, corruption and dropout
//! are addressed by seed, step and place.

mod files;
mod moments;
mod store;
mod weights;

pub(crate) use files::sha256;
pub(super) use files::{DRAFT, folder_of, replace, sync_folder};
pub(super) use moments::RunOptimiser;
pub use store::{Checkpoint, CheckpointConfig, CheckpointInfo, Checkpoints};
pub(super) use weights::{Named, fitting};
