//! Recipes: an experiment as one TOML file.
//!
//! ```toml
//! name = "mini"                            # how the run is called, where there are no arms
//! seeds = [0, 1, 2]                        # each arm is run with each of them
//!
//! [model]                                  # kind, size, and any field of the configuration that differs
//! kind = "text"
//! size = "mini"
//!
//! [objective]                              # text: masked, autoregressive, masked_causal, prefix_lm
//! kind = "masked"
//! rate = 0.15
//!
//! [init]                                   # independent, tied (symmetric), control, mimetic
//! scheme = "tied"
//!
//! [data]
//! kind = "text"
//! paths = ["data/wikipedia/*.parquet"]
//! length = 512
//!
//! [tokenizer]
//! kind = "file"
//! path = "data/bert-base-uncased/vocab.txt"
//!
//! [train]                                  # the paper's values are the defaults
//! [score]
//! every = 1000
//! [updates]                                # takes every 100th update apart; without the section none
//! every = 100
//! [checkpoint]
//! every = 1000
//! [log]
//! tensorboard = true                       # an event file in the folder of the run
//!
//! [[arms]]                                 # each lays model, objective, init or train over the sections above
//! name = "encoder"
//!
//! [small]                                  # what `--small` lays over all of the above
//! seeds = [0]
//! ```
//!
//! `extends = "other.toml"` takes everything that a recipe does not set from another, beside it. Fields that no
//! section knows are refused. Paths are relative to the folder in which the command runs.

mod fault;
mod file;
mod model;
mod sections;
mod table;

use std::path::Path;

use serde::{Deserialize, Serialize};
use toml::Table;

pub use file::{Options, RecipeFile};
pub use model::{ModelFields, ModelSection};
pub(super) use sections::HELD_OUT;
pub use sections::{
    AverageSection, DataSection, LogSection, ScoreSection, TokenizerSection, TrainSection, UpdatesSection,
};

use super::checkpoints::{CheckpointConfig, sha256};
use super::config::{TrainConfig, TrainError};
use crate::attention::AttentionInit;
use crate::data::vision::Augmentation;
use crate::model::{TextTransformerConfig, ViTConfig};
use crate::objective::ObjectiveMode;

/// The recipe of one run: one arm, one seed, every setting. Made by [`RecipeFile::runs`], or read from the folder
/// of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recipe {
    /// The arm.
    #[serde(default = "sections::unnamed")]
    pub name: String,
    /// The seed of weights, order of the data, corruption and dropout.
    #[serde(rename = "seeds", with = "sections::one_seed")]
    pub seed: u64,
    /// What is trained.
    pub model: ModelSection,
    /// What it predicts; none for images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective: Option<ObjectiveMode>,
    /// How its queries and keys start.
    #[serde(default)]
    pub init: AttentionInit,
    /// What it learns from.
    pub data: DataSection,
    /// How text becomes tokens; none for images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<TokenizerSection>,
    /// What is done to images before they are trained on; nothing where it is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub augmentation: Option<Augmentation>,
    /// Schedule, batches, optimiser.
    #[serde(default)]
    pub train: TrainSection,
    /// When layers are scored.
    #[serde(default)]
    pub score: ScoreSection,
    /// Which updates are taken apart; none where it is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updates: Option<UpdatesSection>,
    /// An average of the weights, which is evaluated beside them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub average: Option<AverageSection>,
    /// When checkpoints are written.
    #[serde(default)]
    pub checkpoint: CheckpointConfig,
    /// What is logged beside the tables of the run.
    #[serde(default)]
    pub log: LogSection,
}

impl Recipe {
    /// Reads the recipe of one run as it was resolved: `recipe.toml` in the folder of a run.
    ///
    /// # Errors
    /// [`TrainError::Recipe`] with the file, the field, its value and what to do; also for several seeds or arms.
    pub fn from_toml(text: &str, file: &Path) -> Result<Self, TrainError> {
        let table: Table = text
            .parse()
            .map_err(|error: toml::de::Error| file::problem(file, "", error.message()))?;
        Self::from_table(&table, file)
    }

    fn from_table(table: &Table, file: &Path) -> Result<Self, TrainError> {
        let recipe: Self =
            fault::read(table).map_err(|(field, problem)| file::problem(file, &field, &problem))?;
        if let Some((field, known)) = table::unheeded(table, &recipe.to_table(), "") {
            let problem = match field.strip_prefix("data.") {
                Some(field) if !field.contains('.') => recipe.data.unknown_field(),
                _ => unknown_field(&known),
            };
            return Err(file::problem(file, &field, &problem));
        }
        recipe.check(file)?;
        Ok(recipe)
    }

    fn to_table(&self) -> Table {
        // Every field has a form in TOML: names, numbers, lists and tables.
        Table::try_from(self).unwrap_or_default()
    }

    /// The recipe as `recipe.toml`, every setting spelt out.
    pub fn to_toml(&self) -> String {
        toml::to_string(&self.to_table()).unwrap_or_default()
    }

    /// SHA-256 of [`to_toml`](Self::to_toml).
    pub fn sha256(&self) -> String {
        sha256(self.to_toml().as_bytes())
    }

    /// The first field in which another recipe differs, with this recipe's value and the other's.
    pub fn difference(&self, other: &Self) -> Option<(String, String, String)> {
        table::difference(&self.to_table(), &other.to_table(), "")
    }

    /// How the folder of the run is called: `ARM-seedN`.
    pub fn folder_name(&self) -> String {
        format!("{}-seed{}", self.name, self.seed)
    }

    /// Refuses what cannot be run, before any data are read.
    ///
    /// # Errors
    /// [`TrainError::Recipe`] with `file`, the field, its value and what to do.
    pub fn check(&self, file: &Path) -> Result<(), TrainError> {
        let refuse = |field: &str, problem: &str| Err(file::problem(file, field, problem));
        if !is_name(&self.name) {
            let problem = format!(
                "{:?} cannot be part of the name of a folder: choose another",
                self.name
            );
            return refuse("name", &problem);
        }
        self.train
            .check()
            .map_err(|(field, problem)| file::problem(file, &field, &problem))?;
        if self.checkpoint.keep_last == 0 {
            return refuse("checkpoint.keep_last", "0, but must be at least 1");
        }
        if self.updates.is_some_and(|updates| updates.every == 0) {
            return refuse(
                "updates.every",
                "0, but must be at least 1: leave the section out to take no update apart",
            );
        }
        if !self.score.gamma.is_finite() {
            return refuse(
                "score.gamma",
                &format!("{}, but must be finite: 2 is the paper's", self.score.gamma),
            );
        }
        // Any number of sequences shows what the numbers themselves are worth.
        if let Err(TrainError::Invalid { field, value, must }) = self.config(1 << 32).check() {
            let section = if field.starts_with("average") { "" } else { "train" };
            return refuse(
                &table::join(section, field),
                &format!("{value}, but must be {must}"),
            );
        }
        self.data
            .check()
            .map_err(|(field, problem)| file::problem(file, &field, &problem))?;
        match (&self.model, self.data.is_text()) {
            (ModelSection::Text(_), true) => self.check_text(file),
            (ModelSection::Vision(_), false) => self.check_vision(file),
            (ModelSection::Text(_), false) => {
                refuse("data.kind", "images, but a model of text: choose text or bundled")
            }
            (ModelSection::Vision(_), true) => refuse(
                "data.kind",
                "text, but a model of images: choose cifar10 or images",
            ),
        }
    }

    fn check_text(&self, file: &Path) -> Result<(), TrainError> {
        let refuse = |field: &str, problem: &str| Err(file::problem(file, field, problem));
        for (field, set) in [
            ("objective", self.objective.is_some()),
            ("tokenizer", self.tokenizer.is_some()),
        ] {
            if !set {
                return refuse(field, "not set: a run on text needs it");
            }
        }
        if self.augmentation.is_some() {
            return refuse("augmentation", "for images: a run on text has none");
        }
        if self.objective == Some(ObjectiveMode::PseudoLikelihood) {
            let problem = "pseudo_likelihood is for evaluation: choose masked or autoregressive";
            return refuse("objective.kind", problem);
        }
        // The size of the vocabulary is known once the tokenizer is; any will do for the other fields.
        let config = self.text_model(TextTransformerConfig::mini().vocab_size, file)?;
        config
            .check()
            .map_err(|error| file::problem(file, "model", &error.to_string()))?;
        match self.data.length() {
            Some(length) if length > config.max_positions => {
                let problem = format!(
                    "{length}, but the model has {} positions: shorten the sequences or raise model.max_positions",
                    config.max_positions
                );
                refuse("data.length", &problem)
            }
            _ => Ok(()),
        }
    }

    fn check_vision(&self, file: &Path) -> Result<(), TrainError> {
        for (field, set) in [
            ("objective", self.objective.is_some()),
            ("tokenizer", self.tokenizer.is_some()),
        ] {
            if set {
                return Err(file::problem(file, field, "for text: a run on images has none"));
            }
        }
        if let Some(augmentation) = &self.augmentation {
            augmentation
                .check()
                .map_err(|error| file::problem(file, "augmentation", &error.to_string()))?;
        }
        let n_classes = ViTConfig::imagenet().n_classes;
        self.vision_model(n_classes, file)?
            .check()
            .map_err(|error| file::problem(file, "model", &error.to_string()))
    }

    /// The settings of the loop over `sequences` sequences or images, by which epochs become updates.
    pub fn config(&self, sequences: usize) -> TrainConfig {
        let config = self.train.config(sequences, self.seed);
        TrainConfig {
            average: self
                .average
                .map(|average| average.config(&config, self.train.epochs, sequences)),
            ..config
        }
    }

    /// The model of a run on text.
    ///
    /// # Errors
    /// [`TrainError::Recipe`] where the section `[model]` cannot be one.
    pub fn text_model(&self, vocabulary: usize, file: &Path) -> Result<TextTransformerConfig, TrainError> {
        self.of_kind("text", matches!(self.model, ModelSection::Text(_)), file)?
            .text(vocabulary, self.init)
            .map_err(|(field, problem)| file::problem(file, &table::join("model", &field), &problem))
    }

    /// The model of a run on images.
    ///
    /// # Errors
    /// As [`text_model`](Self::text_model).
    pub fn vision_model(&self, n_classes: usize, file: &Path) -> Result<ViTConfig, TrainError> {
        self.of_kind("vision", matches!(self.model, ModelSection::Vision(_)), file)?
            .vision(n_classes, self.init)
            .map_err(|(field, problem)| file::problem(file, &table::join("model", &field), &problem))
    }

    fn of_kind(&self, kind: &str, is_it: bool, file: &Path) -> Result<&ModelFields, TrainError> {
        let (ModelSection::Text(fields) | ModelSection::Vision(fields)) = &self.model;
        match is_it {
            true => Ok(fields),
            false => Err(file::problem(
                file,
                "model.kind",
                &format!("a model of another kind than {kind}, which is what is asked for here"),
            )),
        }
    }
}

/// Whether a text can be the name of an arm: part of the name of a folder, and of a line on a terminal.
pub(super) fn is_name(text: &str) -> bool {
    !(text.is_empty()
        || text.starts_with('.')
        || text.contains(['/', '\\'])
        || text.contains(char::is_control))
}

/// What to say of a field that nobody knows.
fn unknown_field(known: &[String]) -> String {
    match known {
        [] => "no such field here: remove it".to_owned(),
        known => format!(
            "no such field here: remove it, or was one of {} meant",
            known.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests;
