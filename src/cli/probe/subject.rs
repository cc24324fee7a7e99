//! What is probed: a recipe, a run with its checkpoint, or a model described by flags.

use std::path::Path;

use anyhow::Context;
use burn::tensor::Device;
use burn::tensor::backend::AutodiffBackend;

use crate::data::{Tokenizer, bundled};
use crate::model::TextTransformerConfig;
use crate::objective::Visibility;
use crate::signal::Survey;
use crate::signal::probe::{ProbeError, TextProbe};
use crate::train::recipe::{Options, TokenizerSection};
use crate::train::{Checkpoint, Recipe, RecipeFile, RunFolder};

/// A model by the file or folder that describes it.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) name: String,
    pub(super) config: TextTransformerConfig,
    /// Tokens of a sequence.
    pub(super) length: Option<usize>,
    /// Whether its objective hides later positions.
    pub(super) causal: bool,
    /// Trained weights.
    pub(super) checkpoint: Option<Checkpoint>,
}

/// Which model of a recipe, or which checkpoint of a run.
#[derive(Debug, Clone, Default)]
pub(super) struct Which<'a> {
    pub(super) arm: Option<&'a str>,
    pub(super) small: bool,
    pub(super) step: Option<usize>,
    pub(super) vocabulary: Option<usize>,
}

impl Subject {
    /// Reads a recipe file, or the folder of a run with its latest checkpoint.
    ///
    /// # Errors
    /// What is neither, a recipe that cannot be run, a run without a checkpoint.
    pub(super) fn open(path: &Path, which: &Which<'_>) -> anyhow::Result<Self> {
        if path.is_dir() {
            let run = RunFolder::open(path)
                .with_context(|| format!("'{}' is a folder, but not of a run", path.display()))?;
            let recipe = run.recipe()?;
            let checkpoint = run.checkpoint(which.step)?;
            let vocabulary = match run.tokenizer() {
                Some(file) => Tokenizer::from_file(file)?.vocabulary().size,
                None => vocabulary(&recipe, which)?,
            };
            let step = checkpoint.info().step;
            return Ok(Self {
                name: format!("{} at step {step}", path.display()),
                checkpoint: Some(checkpoint),
                ..Self::of(&recipe, vocabulary, &run.recipe_file())?
            });
        }
        let options = Options {
            small: which.small,
            arms: which.arm.map(str::to_owned).into_iter().collect(),
            ..Options::default()
        };
        let file = RecipeFile::load(path, &options)?;
        let runs = file.runs()?;
        let recipe = runs.first().context("the recipe has no run")?;
        let mut subject = Self::of(recipe, vocabulary(recipe, which)?, path)?;
        subject.name = match file.arms().len() {
            0 | 1 => path.display().to_string(),
            arms => format!(
                "{}, arm {} of {arms} (--arm names another)",
                path.display(),
                recipe.name
            ),
        };
        Ok(subject)
    }

    fn of(recipe: &Recipe, vocabulary: usize, file: &Path) -> anyhow::Result<Self> {
        let length = recipe.data.length();
        let visibility = recipe
            .objective
            .map(|objective| objective.attention_mask(length.unwrap_or(2)));
        Ok(Self {
            name: String::new(),
            config: recipe.text_model(vocabulary, file)?,
            length,
            causal: visibility.is_some_and(|visibility| visibility != Visibility::Full),
            checkpoint: None,
        })
    }
}

/// The size of the vocabulary, without reading the text.
fn vocabulary(recipe: &Recipe, which: &Which<'_>) -> anyhow::Result<usize> {
    /// Padding, unknown, beginning, end and mask.
    const SPECIAL: usize = 5;
    if let Some(vocabulary) = which.vocabulary {
        return Ok(vocabulary);
    }
    Ok(match &recipe.tokenizer {
        Some(TokenizerSection::File { path }) => {
            let tokenizer = Tokenizer::from_file(path)
                .context("the recipe's tokenizer cannot be read; --vocabulary N probes without it")?;
            tokenizer.vocabulary().size
        }
        Some(TokenizerSection::Bundled) => bundled::tokenizer()?.vocabulary().size,
        Some(TokenizerSection::Characters { alphabet }) => alphabet + SPECIAL,
        _ => 256 + SPECIAL,
    })
}

/// Measures the trained weights of a checkpoint; the seeds draw tokens and directions.
///
/// # Errors
/// Weights that do not fit the recipe; as [`TextProbe::of_model`].
pub(super) fn trained<B: AutodiffBackend>(
    checkpoint: &Checkpoint,
    config: &TextTransformerConfig,
    probe: &TextProbe,
    seeds: impl Iterator<Item = u64>,
    device: &Device<B>,
) -> anyhow::Result<Survey> {
    let model = checkpoint.model(config.init::<B>(0, device)?)?;
    let model = model.at_step(checkpoint.info().step);
    let signals = seeds
        .map(|seed| probe.of_model(&model, seed))
        .collect::<Result<Vec<_>, ProbeError>>()?;
    Survey::of(&signals).context("no seeds: give --seeds of at least 1")
}
