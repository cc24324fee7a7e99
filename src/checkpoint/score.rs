//! Scores of a checkpoint, as a report that serialises to the JSON schema of `wqk score`.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use burn::tensor::backend::Backend;
use serde::{Deserialize, Serialize};

use super::digests::Digests;
use super::family::StackKind;
use super::lanes::in_lanes;
use super::plan::Projection;
use super::published::Published;
use super::significance::LayerSignificance;
use super::{Checkpoint, CheckpointError, Options};
use crate::bilinear::{Directionality, LayerScores, Summary};

/// The version of the JSON schema. Fields are only ever added to it.
pub const SCHEMA: u32 = 1;

/// Scores of several checkpoints with the same settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The version of this program.
    pub version: String,
    /// One entry a checkpoint.
    pub models: Vec<ModelReport>,
    /// What the scores mean.
    pub settings: Settings,
}

impl Report {
    /// A report of these models.
    pub fn new(models: Vec<ModelReport>, settings: Settings) -> Self {
        Self {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            models,
            settings,
        }
    }
}

/// What the scores of a report mean.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// The γ of the directionality's threshold.
    pub gamma: f64,
    /// Whether every head is scored too.
    pub per_head: bool,
    /// The rotary offset of key from query.
    pub offset: i64,
    /// Whether the preceding norm's gain is folded in.
    pub fold_norm: bool,
    /// Whether the value of the structure paper's code is given beside the right one.
    pub as_published: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            gamma: Directionality::GAMMA,
            per_head: false,
            offset: 0,
            fold_norm: false,
            as_published: false,
        }
    }
}

impl Settings {
    /// These settings with the offset and folding that a checkpoint is opened with.
    pub fn with_options(self, options: &Options) -> Self {
        Self {
            offset: options.offset,
            fold_norm: options.fold_norm,
            ..self
        }
    }
}

/// The scores of one checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelReport {
    /// The name of the folder or file.
    pub name: String,
    /// The training step, where the checkpoint is one of a series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<f64>,
    /// The family.
    pub family: String,
    /// The number of parameters in the file.
    pub parameters: u64,
    /// SHA-256 of the weights that were read, in hexadecimal.
    pub digest: String,
    /// One entry a self-attention layer.
    pub layers: Vec<LayerReport>,
    /// Over the layers of each stack.
    pub summary: BTreeMap<StackKind, StackSummary>,
    /// What a reader of the scores should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The scores of one layer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LayerReport {
    /// The part of the model.
    pub stack: StackKind,
    /// Counts the self-attention layers of the stack from 0.
    pub index: usize,
    /// The module's name in the file.
    pub module: String,
    /// How often the layer is applied.
    #[serde(default = "once")]
    pub repeats: usize,
    /// The scores.
    #[serde(flatten)]
    pub scores: LayerScores,
    /// The norm whose gain was folded in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folded_norm: Option<String>,
    /// What the structure paper's code gives, where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_published: Option<Published>,
    /// How far the scores lie from those of random matrices, where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub significance: Option<LayerSignificance>,
}

fn once() -> usize {
    1
}

/// Median and quartiles over the layers of a stack, of the whole layers' scores.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StackSummary {
    /// The number of layers.
    pub layers: usize,
    /// Of the symmetry; absent where no layer has one.
    pub symmetry: Option<Summary>,
    /// Of the directionality.
    pub directionality: DirectionalitySummary,
}

/// Median and quartiles of both variants of directionality.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DirectionalitySummary {
    /// Of the definition.
    pub definition: Option<Summary>,
    /// Of the excess.
    pub excess: Option<Summary>,
}

/// The summary of each stack.
pub fn summarise(layers: &[LayerReport]) -> BTreeMap<StackKind, StackSummary> {
    let mut stacks: BTreeMap<StackKind, Vec<&LayerScores>> = BTreeMap::new();
    for layer in layers {
        stacks.entry(layer.stack).or_default().push(&layer.scores);
    }
    let over = |layers: &[&LayerScores], score: fn(&LayerScores) -> Option<f64>| {
        Summary::of(layers.iter().filter_map(|layer| score(layer)))
    };
    stacks
        .into_iter()
        .map(|(stack, layers)| {
            let summary = StackSummary {
                layers: layers.len(),
                symmetry: over(&layers, |l| l.symmetry),
                directionality: DirectionalitySummary {
                    definition: over(&layers, |l| Some(l.directionality.definition)),
                    excess: over(&layers, |l| Some(l.directionality.excess)),
                },
            };
            (stack, summary)
        })
        .collect()
}

impl Checkpoint {
    /// Scores every layer, [`Options::layers_at_once`] at a time.
    ///
    /// The offset and the folding are those that the checkpoint was opened with; `settings` says the rest.
    /// `progress` sees each layer when it is done, which need not be in order.
    ///
    /// Cost: the queries and keys of the layers at work, in f32, and panels of a fixed number of rows. The
    /// digest is taken of the same bytes while they are at hand.
    ///
    /// # Errors
    /// A layer that cannot be read or scored.
    pub fn score<B: Backend>(
        &self,
        settings: &Settings,
        device: &B::Device,
        progress: impl FnMut(&LayerReport) + Send,
    ) -> Result<ModelReport, CheckpointError> {
        let digests = Digests::new(self);
        let progress = Mutex::new(progress);
        let layers = in_lanes(self.len(), self.lanes(), |i| {
            let layer = self.score_layer::<B>(i, settings, device, &digests)?;
            (progress.lock().unwrap_or_else(PoisonError::into_inner))(&layer);
            Ok::<_, CheckpointError>(layer)
        })?;
        Ok(ModelReport {
            name: self.name().to_owned(),
            step: None,
            family: self.family().name.clone(),
            parameters: self.parameters(),
            digest: digests.finish()?,
            summary: summarise(&layers),
            layers,
            notes: self.notes().to_vec(),
        })
    }

    /// How many layers are in memory at the same time.
    fn lanes(&self) -> usize {
        // Latent attention and rotation hold copies of queries or keys in between.
        let copies = self.options.offset != 0
            || self
                .layers
                .iter()
                .any(|layer| matches!(layer.projection, Projection::Latent(_)));
        match self.options.layers_at_once {
            Some(layers) => layers.get(),
            None if copies => 1,
            None => 2,
        }
    }

    /// Scores the layer at a position of the checkpoint's list, and hashes its tensors.
    fn score_layer<B: Backend>(
        &self,
        i: usize,
        settings: &Settings,
        device: &B::Device,
        digests: &Digests<'_>,
    ) -> Result<LayerReport, CheckpointError> {
        let (layer, digest) = rayon::join(|| self.layer::<B>(i, device), || digests.add(i));
        let layer = layer?;
        digest?;
        let extractor = self.extractor::<B>(i, device);
        let scores = extractor.check(layer.form.measure(settings.gamma, settings.per_head))?;
        drop(layer.form);
        let as_published = match settings.as_published {
            true => Some(Published::of(&extractor, settings.gamma)?),
            false => None,
        };
        Ok(LayerReport {
            stack: layer.stack,
            index: layer.index,
            module: layer.module,
            repeats: layer.repeats,
            scores,
            folded_norm: layer.folded_norm,
            as_published,
            significance: None,
        })
    }
}
