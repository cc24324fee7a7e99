//! What is probed: a recipe, a trained model, or a model described by flags.

use std::path::Path;

use anyhow::{Context, bail};
use burn::tensor::Device;
use burn::tensor::backend::AutodiffBackend;

use crate::cli::text_model::TextModel;
use crate::data::{Tokenizer, bundled};
use crate::model::TextTransformerConfig;
use crate::objective::{ObjectiveMode, Visibility};
use crate::signal::Survey;
use crate::signal::probe::{ProbeError, TextProbe};
use crate::train::recipe::{ModelSection, Options, TokenizerSection};
use crate::train::{Recipe, RecipeFile};

/// A model by the file or folder that describes it.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) name: String,
    pub(super) config: TextTransformerConfig,
    /// Tokens of a sequence.
    pub(super) length: Option<usize>,
    /// Whether its objective hides later positions.
    pub(super) causal: bool,
    /// The model itself, where it is trained.
    pub(super) trained: Option<TextModel>,
    /// The tokenizer of the recipe that describes it.
    pub(super) tokenizer: Option<TokenizerSection>,
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
    /// Reads a recipe file, or a trained model.
    ///
    /// # Errors
    /// What is neither, a recipe that cannot be run or is on images, a run without a checkpoint.
    pub(super) fn open(path: &Path, which: &Which<'_>) -> anyhow::Result<Self> {
        if path.is_dir() {
            let trained = TextModel::open(path, which.step)?;
            return Ok(Self {
                name: trained.name.clone(),
                config: trained.config.clone(),
                length: trained.length,
                causal: is_causal(trained.objective, trained.length),
                trained: Some(trained),
                tokenizer: None,
            });
        }
        let options = Options {
            small: which.small,
            arms: which.arm.map(str::to_owned).into_iter().collect(),
            ..Options::default()
        };
        let is_recipe = path.extension().is_some_and(|extension| extension == "toml");
        if !is_recipe {
            let what = if path.exists() {
                "is no recipe"
            } else {
                "is not there"
            };
            bail!(
                "'{}' {what}: name a recipe (.toml), the folder of a run of `wqk train`, or that of a BERT with \
                 its config.json",
                path.display()
            );
        }
        let file = RecipeFile::load(path, &options)?;
        let runs = file.runs()?;
        let recipe = runs.first().context("the recipe has no run")?;
        if matches!(recipe.model, ModelSection::Vision(_)) {
            bail!(
                "'{}' describes a vision model, and probes are of models of text: name a recipe with model.kind = \
                 \"text\", or describe a stack of the same shape by --layers, --width and --heads",
                path.display()
            );
        }
        let length = recipe.data.length();
        Ok(Self {
            name: match file.arms().len() {
                0 | 1 => path.display().to_string(),
                arms => format!(
                    "{}, arm {} of {arms} (--arm names another)",
                    path.display(),
                    recipe.name
                ),
            },
            config: recipe.text_model(vocabulary(recipe, which)?, path)?,
            length,
            causal: recipe
                .objective
                .is_some_and(|objective| is_causal(objective, length)),
            trained: None,
            tokenizer: recipe.tokenizer.clone(),
        })
    }
}

fn is_causal(objective: ObjectiveMode, length: Option<usize>) -> bool {
    objective.attention_mask(length.unwrap_or(2)) != Visibility::Full
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

/// Measures a trained model; the seeds draw tokens and directions.
///
/// # Errors
/// Weights that do not fit the configuration; as [`TextProbe::of_model`].
pub(super) fn measure<B: AutodiffBackend>(
    trained: &TextModel,
    probe: &TextProbe,
    seeds: impl Iterator<Item = u64>,
    device: &Device<B>,
) -> anyhow::Result<Survey> {
    let model = trained.model::<B>(device)?;
    let signals = seeds
        .map(|seed| probe.of_model(&model, seed))
        .collect::<Result<Vec<_>, ProbeError>>()?;
    Survey::of(&signals).context("no seeds: give --seeds of at least 1")
}
