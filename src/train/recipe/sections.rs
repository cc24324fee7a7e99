//! The sections of a recipe.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::backend::Precision;
use crate::bilinear::Directionality;
use crate::data::CorpusSpec;
use crate::train::average::AverageConfig;
use crate::train::config::TrainConfig;
use crate::train::schedule::Decay;

pub(super) fn unnamed() -> String {
    "run".to_owned()
}

/// One seed, written as a list of one.
pub(super) mod one_seed {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(seed: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        [*seed].serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        let [seed] = <[u64; 1]>::deserialize(deserializer)?;
        Ok(seed)
    }
}

/// Schedule, batches, optimiser: [`TrainConfig`] without its seed, in updates or in epochs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainSection {
    /// Updates; 200,000 where neither they nor epochs are set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<usize>,
    /// Passes over the training data, instead of `steps`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epochs: Option<f64>,
    /// Sequences or images in one forward pass.
    pub batch_size: usize,
    /// Forward passes to one update.
    pub accumulation: usize,
    /// Devices that share the forward passes of an update.
    pub devices: usize,
    /// Number type of the matrix products; all else is in f32.
    pub precision: Precision,
    /// Highest learning rate.
    pub learning_rate: f64,
    /// Updates over which the rate rises; 200 where neither they nor `warmup_epochs` are set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warmup_steps: Option<usize>,
    /// Passes over the training data in which the rate rises, instead of `warmup_steps`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warmup_epochs: Option<f64>,
    /// The share of the highest rate from which it rises.
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
    /// Updates between evaluations on held-out data; 0 evaluates at the end only.
    pub eval_every: usize,
}

impl Default for TrainSection {
    fn default() -> Self {
        let config = TrainConfig::default();
        Self {
            steps: None,
            epochs: None,
            batch_size: config.batch_size,
            accumulation: config.accumulation,
            devices: 1,
            precision: Precision::F32,
            learning_rate: config.learning_rate,
            warmup_steps: None,
            warmup_epochs: None,
            warmup_from: None,
            decay: config.decay,
            weight_decay: config.weight_decay,
            beta_1: config.beta_1,
            beta_2: config.beta_2,
            epsilon: config.epsilon,
            clip_norm: config.clip_norm,
            eval_every: 1000,
        }
    }
}

impl TrainSection {
    /// The settings of a run with this seed over `sequences` sequences or images.
    ///
    /// An epoch is as many updates as it takes to see every one of them, the last update perhaps going beyond.
    pub fn config(&self, sequences: usize, seed: u64) -> TrainConfig {
        let default = TrainConfig::default();
        let per_epoch = sequences.div_ceil(self.batch_size.saturating_mul(self.accumulation).max(1));
        let updates = |epochs: f64| (epochs * per_epoch as f64).round() as usize;
        TrainConfig {
            steps: self.steps.or(self.epochs.map(updates)).unwrap_or(default.steps),
            batch_size: self.batch_size,
            accumulation: self.accumulation,
            learning_rate: self.learning_rate,
            warmup_steps: self
                .warmup_steps
                .or(self.warmup_epochs.map(updates))
                .unwrap_or(default.warmup_steps),
            warmup_from: self.warmup_from,
            decay: self.decay,
            weight_decay: self.weight_decay,
            beta_1: self.beta_1,
            beta_2: self.beta_2,
            epsilon: self.epsilon,
            clip_norm: self.clip_norm,
            eval_every: self.eval_every,
            average: None,
            seed,
        }
    }

    pub(super) fn check(&self) -> Result<(), (String, String)> {
        let refuse = |field: &str, problem: String| Err((format!("train.{field}"), problem));
        for (steps, steps_set, epochs, value) in [
            ("steps", self.steps.is_some(), "epochs", self.epochs),
            (
                "warmup_steps",
                self.warmup_steps.is_some(),
                "warmup_epochs",
                self.warmup_epochs,
            ),
        ] {
            let Some(value) = value else { continue };
            if steps_set {
                return refuse(
                    epochs,
                    format!("{value}, but {steps} is set too: set one of them"),
                );
            }
            if !(value.is_finite() && value >= 0.0) {
                return refuse(epochs, format!("{value}, but must be finite and not negative"));
            }
        }
        if self.devices == 0 || !self.accumulation.is_multiple_of(self.devices) {
            return refuse(
                "devices",
                format!(
                    "{}, but must divide the {} forward passes of an update: set train.accumulation to a multiple",
                    self.devices, self.accumulation
                ),
            );
        }
        Ok(())
    }
}

/// When layers are scored, and how.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScoreSection {
    /// Updates between scorings; 0 scores at the start and the end alone.
    pub every: usize,
    /// Threshold factor γ of the directionality.
    pub gamma: f64,
    /// Whether each head is scored too.
    pub heads: bool,
}

impl Default for ScoreSection {
    fn default() -> Self {
        Self {
            every: 1000,
            gamma: Directionality::GAMMA,
            heads: false,
        }
    }
}

/// Which updates are taken apart: see [`UpdateWatch`](crate::train::UpdateWatch).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UpdatesSection {
    /// Updates between those that are taken apart; the first and the last always are.
    pub every: usize,
}

impl Default for UpdatesSection {
    fn default() -> Self {
        Self { every: 100 }
    }
}

/// What is logged beside the tables of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogSection {
    /// An event file of TensorBoard in the folder of the run.
    pub tensorboard: bool,
}

/// An exponential average of the weights.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AverageSection {
    /// The share of the average that each step keeps.
    pub decay: f64,
    /// Updates between its steps.
    pub every: usize,
    /// Updates before it begins; the warm-up where it is not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<usize>,
    /// Adjusts the decay to batch and epochs, as torchvision does: see
    /// [`AverageConfig::adjusted`](crate::train::AverageConfig::adjusted).
    pub adjust: bool,
}

impl Default for AverageSection {
    fn default() -> Self {
        let AverageConfig { decay, every, .. } = AverageConfig::default();
        Self {
            decay,
            every,
            from: None,
            adjust: false,
        }
    }
}

impl AverageSection {
    /// The average of a run with these settings over `sequences` sequences or images.
    pub(super) fn config(&self, train: &TrainConfig, epochs: Option<f64>, sequences: usize) -> AverageConfig {
        let config = AverageConfig {
            decay: self.decay,
            every: self.every,
            from: self.from.unwrap_or(train.warmup_steps),
        };
        if !self.adjust {
            return config;
        }
        let batch = train.batch_size.saturating_mul(train.accumulation);
        let seen = train.steps.saturating_mul(batch) as f64 / sequences.max(1) as f64;
        let epochs = epochs.unwrap_or(seen).round() as usize;
        config.adjusted(batch, epochs)
    }
}

/// How text becomes tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum TokenizerSection {
    /// A `tokenizer.json` or a `vocab.txt`.
    File {
        /// Where it is.
        path: PathBuf,
    },
    /// The 4,096 word pieces that travel in the program.
    Bundled,
    /// The most frequent characters of the training text.
    Characters {
        /// How many.
        #[serde(default = "alphabet")]
        alphabet: usize,
    },
    /// One token a byte.
    Bytes,
}

fn alphabet() -> usize {
    95
}

/// What a model learns from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
#[non_exhaustive]
pub enum DataSection {
    /// The Wikipedia text that travels in the program.
    Bundled {
        /// Tokens in a sequence.
        length: usize,
        /// The share of the sequences, at the end, that is held out. Default: 0.01.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        held_out: Option<f64>,
    },
    /// Text of one's own.
    Text {
        /// Which files, and what in them is the text; relative paths start where the command runs.
        #[serde(flatten)]
        corpus: CorpusSpec,
        /// Tokens in a sequence.
        length: usize,
        /// The share of the sequences, at the end, that is held out. Default: 0.01.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        held_out: Option<f64>,
        /// Other files to hold out, instead of a share.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        validation: Option<CorpusSpec>,
    },
    /// CIFAR-10 in its official binary files; evaluated on its test images.
    Cifar10 {
        /// Their folder, or the one that holds `cifar-10-batches-bin`.
        path: PathBuf,
        /// The first so many images to train on only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        train_images: Option<usize>,
        /// The first so many images to test on only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        test_images: Option<usize>,
    },
    /// Images in folders, one for each class, as ImageNet has them.
    Images {
        /// The folder of the class folders to train on.
        train: PathBuf,
        /// The folder of those to evaluate on, with the same classes.
        validation: PathBuf,
        /// To how many pixels the shorter side is scaled.
        #[serde(default = "shorter_side")]
        shorter_side: usize,
    },
}

fn shorter_side() -> usize {
    256
}

/// The share that is held out where a recipe says nothing.
pub(in crate::train) const HELD_OUT: f64 = 0.01;

impl DataSection {
    /// Whether it is text.
    pub fn is_text(&self) -> bool {
        matches!(self, Self::Bundled { .. } | Self::Text { .. })
    }

    /// Its kind, as a recipe has it, and the fields of that kind.
    fn fields(&self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::Bundled { .. } => ("bundled", &["length", "held_out"]),
            Self::Text { .. } => (
                "text",
                &[
                    "paths",
                    "format",
                    "field",
                    "title",
                    "on_bad",
                    "length",
                    "held_out",
                    "validation",
                ],
            ),
            Self::Cifar10 { .. } => ("cifar10", &["path", "train_images", "test_images"]),
            Self::Images { .. } => ("images", &["train", "validation", "shorter_side"]),
        }
    }

    /// What to say of a field that it has not.
    pub(super) fn unknown_field(&self) -> String {
        let (kind, fields) = self.fields();
        let fields = fields.join(", ");
        format!(
            "no such field where data.kind is {kind}, which has {fields}: choose one of these, or another kind"
        )
    }

    /// Tokens in a sequence, of text.
    pub fn length(&self) -> Option<usize> {
        match self {
            Self::Bundled { length, .. } | Self::Text { length, .. } => Some(*length),
            Self::Cifar10 { .. } | Self::Images { .. } => None,
        }
    }

    pub(super) fn check(&self) -> Result<(), (String, String)> {
        let refuse = |field: &str, problem: String| Err((format!("data.{field}"), problem));
        let (length, held_out) = match self {
            Self::Bundled { length, held_out } | Self::Text { length, held_out, .. } => (length, held_out),
            Self::Images { shorter_side: 0, .. } => {
                return refuse("shorter_side", "0, but must be at least 1".to_owned());
            }
            Self::Cifar10 {
                train_images,
                test_images,
                ..
            } => {
                return match [("train_images", train_images), ("test_images", test_images)]
                    .into_iter()
                    .find(|(_, images)| **images == Some(0))
                {
                    Some((field, _)) => refuse(field, "0, but must be at least 1".to_owned()),
                    None => Ok(()),
                };
            }
            Self::Images { .. } => return Ok(()),
        };
        if *length < 2 {
            return refuse("length", format!("{length}, but must be at least 2"));
        }
        let Some(share) = held_out else { return Ok(()) };
        if !(*share > 0.0 && *share < 1.0) {
            return refuse(
                "held_out",
                format!("{share}, but must be a share between 0 and 1, such as 0.01"),
            );
        }
        match self {
            Self::Text {
                validation: Some(_), ..
            } => refuse(
                "held_out",
                format!("{share}, but validation is set too: set one of them"),
            ),
            _ => Ok(()),
        }
    }
}
