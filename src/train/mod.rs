//! Training: the loop, its schedule, its optimiser, its observers, and runs side by side.
//!
//! The loop of [`fit`] is by steps, not epochs, as pretraining is. What is trained on is a [`Task`]; who
//! watches is an [`Observer`]; who keeps the whole state, so that a run can go on after it was killed, a
//! [`Keeper`]. Every random number is addressed by seed, step and place.
//!
//! A [`recipe`] says all that a run needs; the [folder of a run](run) holds all that came of it.

mod average;
mod capture;
mod checkpoints;
mod clip;
mod config;
mod devices;
mod experiment;
mod fit;
mod image_task;
mod input;
mod launch;
#[cfg(feature = "learner")]
pub mod learner;
mod observer;
mod optimiser;
pub mod recipe;
pub mod run;
mod schedule;
mod state;
mod task;
mod translation;
mod updates;

pub use average::{AverageConfig, WeightAverage};
pub use capture::{Capture, CaptureError, LayerCapture, capture};
pub(crate) use checkpoints::sha256;
pub use checkpoints::{Checkpoint, CheckpointConfig, CheckpointInfo, Checkpoints};
pub use clip::{clip_global_norm, global_norm};
pub use config::{TrainConfig, TrainError};
pub use devices::Devices;
pub use experiment::{Arm, Experiment, Run, RunEvent, in_pool, side_by_side};
pub use fit::{KeepNothing, Keeper, fit, fit_from};
pub use image_task::{ImageData, ImageTask};
pub use input::{ImageInput, Input, Preview, PreviewFile, TextInput};
pub use launch::Launch;
pub use observer::{Evaluation, Event, HeldOutRow, Observer, ScoreRow, ScoreWatch, StepRow};
pub use optimiser::{AdamWByRank, Moments, adamw};
pub use recipe::{Recipe, RecipeFile};
pub use run::{RunFolder, RunInfo, RunLog, RunStatus, TensorBoard};
pub use schedule::{Decay, Schedule};
pub use state::{Best, TrainState};
pub use task::{Task, TextData, TextTask, TracedTask};
pub use translation::{TranslationBatch, TranslationData};
pub use updates::{UpdateRow, UpdateWatch};

#[cfg(all(test, feature = "flex"))]
mod golden;
#[cfg(all(test, feature = "flex"))]
mod tests;
