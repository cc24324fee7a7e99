//! A trained text model by the folder that it is in: a run of `wqk train`, or a BERT as `transformers` writes it.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use burn::tensor::Device;
use burn::tensor::backend::Backend;

use crate::checkpoint::pretrained::{TextWeights, read_text};
use crate::data::{Document, Documents, Tokenizer, bundled};
use crate::model::{TextTransformer, TextTransformerConfig};
use crate::objective::ObjectiveMode;
use crate::train::recipe::{DataSection, ModelSection};
use crate::train::{Checkpoint, Recipe, RunFolder};

/// A model, with what belongs to it.
#[derive(Debug)]
pub(super) struct TextModel {
    /// Its folder, and the step of a checkpoint.
    pub(super) name: String,
    pub(super) config: TextTransformerConfig,
    /// What it was trained for.
    pub(super) objective: ObjectiveMode,
    /// Tokens of the sequences that it was trained on, where that is known.
    pub(super) length: Option<usize>,
    /// What a user should know.
    pub(super) notes: Vec<String>,
    tokenizer: Option<PathBuf>,
    weights: Weights,
}

#[derive(Debug)]
enum Weights {
    Run {
        checkpoint: Checkpoint,
        recipe: Box<Recipe>,
    },
    Pretrained {
        folder: PathBuf,
        weights: Box<TextWeights>,
    },
}

impl TextModel {
    /// Reads the folder of a run, of its checkpoint after `step` updates or the latest, or of a BERT.
    ///
    /// # Errors
    /// One line for what is neither, for a folder of several runs, and for a model of images.
    pub(super) fn open(path: &Path, step: Option<usize>) -> anyhow::Result<Self> {
        let name = path.display();
        if !path.is_dir() {
            bail!(
                "'{name}' is no folder: name that of a run of `wqk train`, or of a BERT with its config.json"
            );
        }
        if let Some(run) = run_above(path) {
            bail!(
                "'{name}' is a part of the run '{run}': name that, and with --step N one of its checkpoints",
                run = run.display()
            );
        }
        if path.join("config.json").exists() && !path.join("run.json").exists() {
            if step.is_some() {
                bail!("'{name}' is no run of `wqk train`, and has no steps: leave out --step");
            }
            return Self::pretrained(path);
        }
        match runs(path)?.as_slice() {
            [run] => Self::of_run(run, step),
            runs => {
                let names: Vec<String> = runs.iter().map(|run| run.path().display().to_string()).collect();
                bail!("'{name}' holds several runs: name one of {}", names.join(", "))
            }
        }
    }

    fn of_run(run: &RunFolder, step: Option<usize>) -> anyhow::Result<Self> {
        let recipe = run.recipe()?;
        let name = run.path().display();
        if matches!(recipe.model, ModelSection::Vision(_)) {
            bail!(
                "'{name}' is a run on images, and this takes models of text: name a run on text; scores come from \
                 `wqk export` and `wqk score`"
            );
        }
        let (Some(tokenizer), Some(objective)) = (run.tokenizer()?, recipe.objective) else {
            bail!("the run '{name}' has no tokenizer.json: restore it from where the run was made");
        };
        let checkpoint = run.checkpoint(step)?;
        let vocabulary = Tokenizer::from_file(&tokenizer)?.vocabulary().size;
        Ok(Self {
            name: format!("{name} at step {}", checkpoint.info().step),
            config: recipe.text_model(vocabulary, &run.recipe_file())?,
            objective,
            length: recipe.data.length(),
            notes: Vec::new(),
            tokenizer: Some(tokenizer),
            weights: Weights::Run {
                checkpoint,
                recipe: Box::new(recipe),
            },
        })
    }

    fn pretrained(folder: &Path) -> anyhow::Result<Self> {
        let weights = read_text(folder)?;
        let objective = match weights.causal {
            true => ObjectiveMode::autoregressive(),
            false => ObjectiveMode::masked(0.15)?,
        };
        let tokenizer = ["tokenizer.json", "vocab.txt"].map(|name| folder.join(name));
        Ok(Self {
            name: folder.display().to_string(),
            config: weights.config.clone(),
            objective,
            length: None,
            notes: weights.notes.clone(),
            tokenizer: tokenizer.into_iter().find(|path| path.exists()),
            weights: Weights::Pretrained {
                folder: folder.to_owned(),
                weights: Box::new(weights),
            },
        })
    }

    /// Where the weights are.
    pub(super) fn path(&self) -> &Path {
        match &self.weights {
            Weights::Run { checkpoint, .. } => checkpoint.path(),
            Weights::Pretrained { folder, .. } => folder,
        }
    }

    /// The model as it is now.
    ///
    /// # Errors
    /// Weights that do not fit the configuration.
    pub(super) fn model<B: Backend>(&self, device: &Device<B>) -> anyhow::Result<TextTransformer<B>> {
        Ok(match &self.weights {
            Weights::Run { checkpoint, .. } => checkpoint
                .model(self.config.init::<B>(0, device)?)?
                .at_step(checkpoint.info().step),
            Weights::Pretrained { weights, .. } => weights.model(device)?,
        })
    }

    /// The model as its training began: known of runs, which draw it from their seed.
    ///
    /// # Errors
    /// A model that cannot be built.
    pub(super) fn start<B: Backend>(&self, device: &Device<B>) -> anyhow::Result<Option<TextTransformer<B>>> {
        Ok(match &self.weights {
            Weights::Run { recipe, .. } => Some(self.config.init::<B>(recipe.seed, device)?),
            Weights::Pretrained { .. } => None,
        })
    }

    /// Its own tokenizer, unless a file of another is given.
    ///
    /// # Errors
    /// Where it has none, or one of more tokens than the model.
    pub(super) fn tokenizer(&self, given: Option<&Path>) -> anyhow::Result<Tokenizer> {
        let Some(file) = given.or(self.tokenizer.as_deref()) else {
            bail!(
                "'{}' has no tokenizer.json and no vocab.txt: name one of its model by --tokenizer FILE",
                self.name
            );
        };
        let tokenizer = Tokenizer::from_file(file)?;
        tokenizer.check_fits(self.config.vocab_size)?;
        Ok(tokenizer)
    }

    /// The text that it was trained on, if that is known and at hand, and else the bundled one; with its name.
    ///
    /// # Errors
    /// Text that cannot be found.
    pub(super) fn documents(&self) -> anyhow::Result<(Documents, String)> {
        if let Weights::Run { recipe, .. } = &self.weights
            && let DataSection::Text { corpus, .. } = &recipe.data
        {
            let documents = corpus
                .documents(Path::new(""))
                .context("the text of the run is not at hand: name one by --text FILE")?;
            return Ok((documents, "the text that it was trained on".to_owned()));
        }
        Ok((bundled::documents()?, bundled::NAME.to_owned()))
    }
}

/// The runs of a folder, with a line for what is none.
fn runs(path: &Path) -> anyhow::Result<Vec<RunFolder>> {
    if path.join("run.json").exists() || has_runs(path) {
        return Ok(RunFolder::find(path)?);
    }
    bail!(
        "'{}' is neither a run of `wqk train` (it has no run.json) nor a BERT (it has no config.json): name the folder \
         of one",
        path.display()
    )
}

fn has_runs(path: &Path) -> bool {
    std::fs::read_dir(path).is_ok_and(|mut entries| {
        entries.any(|entry| entry.is_ok_and(|entry| entry.path().join("run.json").exists()))
    })
}

/// The run in whose folder a path lies: its checkpoints, or one of them.
fn run_above(path: &Path) -> Option<&Path> {
    path.ancestors().skip(1).take(2).find(|folder| {
        let has = |name| folder.join(name).is_file();
        !folder.as_os_str().is_empty() && has("run.json") && has("recipe.toml")
    })
}

/// The tokens of documents, one after the other with separators between, as many as asked for or as there are.
///
/// # Errors
/// Text that cannot be read or tokenised.
pub(super) fn tokens(
    documents: impl Iterator<Item = Result<Document, crate::data::DataError>>,
    tokenizer: &Tokenizer,
    count: usize,
) -> anyhow::Result<Vec<u32>> {
    let mut tokens = Vec::new();
    for document in documents {
        if tokens.len() >= count {
            break;
        }
        if !tokens.is_empty() {
            tokens.extend(tokenizer.vocabulary().sep);
        }
        tokens.extend(tokenizer.encode(&document?.with_title())?);
    }
    tokens.truncate(count);
    Ok(tokens)
}
