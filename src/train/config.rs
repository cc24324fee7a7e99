//! The settings of a run, checked before it starts, and what can go wrong in one.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::average::AverageConfig;
use super::capture::CaptureError;
use super::schedule::{Decay, Schedule};
use crate::bilinear::BilinearError;
use crate::data::DataError;
use crate::data::vision::ImageError;
use crate::model::ModelError;
use crate::objective::ObjectiveError;

/// Settings of a training run.
///
/// The defaults are those of the structure paper (experimental details) but for the number of steps:
/// AdamW at 5e-5 with β = (0.9, 0.999), ε = 1e-8 and decay 0.01, 200 warm-up steps, linear decay,
/// sequences in batches of 32 accumulated 8 times. Gradients are clipped at a global norm of 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainConfig {
    /// Number of parameter updates.
    pub steps: usize,
    /// Sequences in one forward pass.
    pub batch_size: usize,
    /// Forward passes to one update.
    pub accumulation: usize,
    /// Highest learning rate.
    pub learning_rate: f64,
    /// Steps over which the rate rises.
    pub warmup_steps: usize,
    /// The share of the highest rate from which it rises; without it the first step of the rise is as high as
    /// the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warmup_from: Option<f64>,
    /// How the rate falls after them.
    pub decay: Decay,
    /// Decoupled weight decay on matrices.
    pub weight_decay: f64,
    /// Decay of AdamW's first moment.
    pub beta_1: f64,
    /// Decay of AdamW's second moment.
    pub beta_2: f64,
    /// The ε of AdamW.
    pub epsilon: f64,
    /// Largest global norm of the gradients; 0 leaves them as they are.
    pub clip_norm: f64,
    /// Steps between evaluations on held-out data; 0 evaluates at the end only.
    pub eval_every: usize,
    /// An average of the weights, which is evaluated beside them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average: Option<AverageConfig>,
    /// The seed of everything random in the run. In a recipe it is one of `seeds`.
    #[serde(skip)]
    pub seed: u64,
}

impl Default for TrainConfig {
    fn default() -> Self {
        Self {
            steps: 200_000,
            batch_size: 32,
            accumulation: 8,
            learning_rate: 5e-5,
            warmup_steps: 200,
            warmup_from: None,
            decay: Decay::Linear,
            weight_decay: 0.01,
            beta_1: 0.9,
            beta_2: 0.999,
            epsilon: 1e-8,
            clip_norm: 1.0,
            eval_every: 0,
            average: None,
            seed: 0,
        }
    }
}

impl TrainConfig {
    /// The learning-rate schedule.
    pub fn schedule(&self) -> Schedule {
        Schedule {
            peak: self.learning_rate,
            warmup: self.warmup_steps,
            warmup_from: self.warmup_from,
            steps: self.steps,
            decay: self.decay,
        }
    }

    /// Refuses settings that cannot train.
    ///
    /// # Errors
    /// [`TrainError::Invalid`] with the setting, its value and what it must be.
    pub fn check(&self) -> Result<(), TrainError> {
        let refuse = |field, value: String, must| Err(TrainError::Invalid { field, value, must });
        for (field, value) in [
            ("steps", self.steps),
            ("batch_size", self.batch_size),
            ("accumulation", self.accumulation),
        ] {
            if value == 0 {
                return refuse(field, value.to_string(), "at least 1");
            }
        }
        for (field, value) in [
            ("batch_size", self.batch_size),
            ("accumulation", self.accumulation),
        ] {
            if value > 1 << 20 {
                return refuse(field, value.to_string(), "at most 1048576");
            }
        }
        for (field, value) in [("learning_rate", self.learning_rate), ("epsilon", self.epsilon)] {
            if !(value.is_finite() && value > 0.0) {
                return refuse(field, value.to_string(), "finite and above 0");
            }
        }
        for (field, value) in [("weight_decay", self.weight_decay), ("clip_norm", self.clip_norm)] {
            if !(value.is_finite() && value >= 0.0) {
                return refuse(field, value.to_string(), "finite and not negative");
            }
        }
        for (field, value) in [("beta_1", self.beta_1), ("beta_2", self.beta_2)] {
            if !(0.0..1.0).contains(&value) {
                return refuse(field, value.to_string(), "at least 0 and below 1");
            }
        }
        if let Some(from) = self.warmup_from
            && !(0.0..=1.0).contains(&from)
        {
            return refuse("warmup_from", from.to_string(), "at least 0 and at most 1");
        }
        match &self.average {
            Some(average) if !(0.0..1.0).contains(&average.decay) => refuse(
                "average.decay",
                average.decay.to_string(),
                "at least 0 and below 1",
            ),
            Some(average) if average.every == 0 => refuse("average.every", "0".to_owned(), "at least 1"),
            _ => Ok(()),
        }
    }
}

/// What can go wrong in a run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// A setting outside its range.
    #[error("training settings: {field} is {value}, but must be {must}")]
    Invalid {
        /// The setting.
        field: &'static str,
        /// What it holds.
        value: String,
        /// What it may hold.
        must: &'static str,
    },
    /// The data's vocabulary does not fit the model.
    #[error(
        "the tokenizer has {tokens} tokens, but the model's vocabulary is {vocab_size}: set vocab_size to at least {tokens}"
    )]
    Vocabulary {
        /// Tokens of the tokenizer.
        tokens: usize,
        /// Tokens of the model.
        vocab_size: usize,
    },
    /// Sequences longer than the model has positions.
    #[error(
        "sequences of {length} tokens do not fit the model's {positions} positions: shorten them or raise max_positions"
    )]
    Length {
        /// Tokens in a sequence.
        length: usize,
        /// Positions of the model.
        positions: usize,
    },
    /// The loss or the gradients stopped being finite.
    #[error(
        "{what} is {value} at step {step}: lower the learning rate, warm up longer or clip the gradients"
    )]
    Diverged {
        /// `loss` or `gradient norm`.
        what: &'static str,
        /// Its value.
        value: f64,
        /// The step, from 0.
        step: usize,
    },
    /// The model cannot be built.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The objective cannot be applied.
    #[error(transparent)]
    Objective(#[from] ObjectiveError),
    /// The data cannot be read.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The images cannot be read.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The images to evaluate on are of other classes than those to train on.
    #[error(
        "{train} classes to train on and {test} to evaluate on, or of other names: give folders of the same classes"
    )]
    Classes {
        /// Classes to train on.
        train: usize,
        /// Classes to evaluate on.
        test: usize,
    },
    /// A layer cannot be scored.
    #[error("scoring {layer} at step {step}: {source}")]
    Score {
        /// Which layer.
        layer: String,
        /// The step, from 0.
        step: usize,
        /// Why.
        source: BilinearError,
    },
    /// The updates of the layers cannot be watched.
    #[error("watching the updates at step {step}: {source}")]
    Updates {
        /// Updates done.
        step: usize,
        /// Why.
        source: CaptureError,
    },
    /// A log or a checkpoint cannot be written.
    #[error(
        "cannot write {path} ({source}): make room or make it writable, then resume from the last checkpoint",
        path = .path.display()
    )]
    Log {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A recipe that cannot be run.
    #[error("{file}: {field}: {problem}", file = .file.display())]
    Recipe {
        /// The file.
        file: PathBuf,
        /// The section and field.
        field: String,
        /// What it holds, and what it must be.
        problem: String,
    },
    /// The folder of a run that cannot be used.
    #[error("{path}: {problem}", path = .path.display())]
    Folder {
        /// The folder, or the file in it.
        path: PathBuf,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// A checkpoint that is incomplete, damaged or of another model.
    #[error("{path}: damaged checkpoint, {problem}: {remedy}", path = .path.display())]
    Checkpoint {
        /// Its folder.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
        /// What to do.
        remedy: String,
    },
    /// A run was stopped: by its user, its watcher or the failure of another.
    #[error("the run was stopped at step {step}")]
    Stopped {
        /// Updates done.
        step: usize,
    },
}

impl TrainError {
    pub(super) fn unwritable(path: &Path, source: std::io::Error) -> Self {
        Self::Log {
            path: path.to_owned(),
            source,
        }
    }

    pub(super) fn unreadable(path: &Path, source: std::io::Error) -> Self {
        Self::folder(
            path,
            format!("cannot be read ({source}): check the path and its permissions"),
        )
    }

    pub(super) fn folder(path: &Path, problem: impl Into<String>) -> Self {
        Self::Folder {
            path: path.to_owned(),
            problem: problem.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_the_papers() {
        let c = TrainConfig::default();
        c.check().unwrap();
        assert_eq!(c.batch_size * c.accumulation, 256);
        assert_eq!(
            (c.learning_rate, c.warmup_steps, c.weight_decay),
            (5e-5, 200, 0.01)
        );
    }

    #[test]
    fn impossible_settings_name_the_field() {
        for (config, field) in [
            (
                TrainConfig {
                    steps: 0,
                    ..Default::default()
                },
                "steps",
            ),
            (
                TrainConfig {
                    learning_rate: f64::NAN,
                    ..Default::default()
                },
                "learning_rate",
            ),
            (
                TrainConfig {
                    beta_2: 1.0,
                    ..Default::default()
                },
                "beta_2",
            ),
        ] {
            let message = config.check().unwrap_err().to_string();
            assert!(message.contains(field), "{message}");
        }
    }
}
