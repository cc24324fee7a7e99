//! Training: the loop, its schedule, its optimiser, its observers, and runs side by side.
//!
//! The loop of [`fit`] is by steps, not epochs, as pretraining is. What is trained on is a [`Task`]; who
//! watches is an [`Observer`]. Every random number is addressed by seed, step and place.

mod average;
mod clip;
mod config;
mod experiment;
mod fit;
mod log;
mod observer;
mod optimiser;
mod schedule;
mod task;

pub use average::{AverageConfig, WeightAverage};
pub use clip::{clip_global_norm, global_norm};
pub use config::{TrainConfig, TrainError};
pub use experiment::{Arm, Experiment, Run, RunEvent};
pub use fit::fit;
pub use log::RunLog;
pub use observer::{Event, Observer, ScoreRow, ScoreWatch, StepRow};
pub use optimiser::{AdamWByRank, adamw};
pub use schedule::{Decay, Schedule};
pub use task::{Task, TextData, TextTask};

#[cfg(all(test, feature = "flex"))]
mod tests;
