//! What a run would read and build, before it is read and built.

use std::path::{Path, PathBuf};

use burn::tensor::Device;
use burn::tensor::backend::AutodiffBackend;

use super::images::{AnyImages, find};
use super::text::{here, no_text, tokenizer};
use crate::data::vision::{Augmentation, Cifar10, Normalisation, evaluation_batch};
use crate::data::{Tokenizer, bundled};
use crate::objective::{ObjectiveMode, Vocabulary};
use crate::random;
use crate::train::checkpoints::sha256;
use crate::train::config::TrainError;
use crate::train::image_task::{ImageData, ImageTask};
use crate::train::launch::{check_size, others, precision};
use crate::train::recipe::{DataSection, Recipe, TokenizerSection};
use crate::train::task::check_fits;

/// The data and the tokenizer of a recipe: found, opened and tried, but not read whole.
#[derive(Debug)]
pub struct Preview {
    files: Vec<PreviewFile>,
    found: Found,
}

/// A file or folder that a run would read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviewFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its size in bytes; none of a folder of images.
    pub bytes: Option<u64>,
    /// The number of its images, of a folder of images.
    pub images: Option<usize>,
}

#[derive(Debug)]
enum Found {
    Text {
        vocabulary: Vocabulary,
        /// None where only reading all text would show the tokenizer; the vocabulary is then the largest that it can
        /// have.
        tokenizer_sha256: Option<String>,
        /// Tokens of the first document.
        tokens: Vec<u32>,
    },
    Images {
        train: AnyImages,
        test: AnyImages,
    },
}

impl Preview {
    /// Finds the data of a recipe as a run would. Of text every file is opened and the first document read and
    /// tokenised, of images every folder is listed.
    ///
    /// # Errors
    /// As [`Input::open`](super::Input::open), as far as it shows without reading everything.
    pub fn of(recipe: &Recipe) -> Result<Self, TrainError> {
        match recipe.data.is_text() {
            true => Self::of_text(recipe),
            false => Self::of_images(recipe),
        }
    }

    fn of_text(recipe: &Recipe) -> Result<Self, TrainError> {
        let (sizes, first) = match &recipe.data {
            DataSection::Bundled { .. } => (Vec::new(), bundled::documents()?.next()),
            DataSection::Text {
                corpus, validation, ..
            } => {
                let mut sizes = corpus.inspect(here())?;
                if let Some(validation) = validation {
                    sizes.extend(validation.inspect(here())?);
                }
                (sizes, corpus.documents(here())?.next())
            }
            DataSection::Cifar10 { .. } | DataSection::Images { .. } => return Err(no_text(recipe)),
        };
        // A corpus without a document is an error of its own.
        let first = first
            .transpose()?
            .map_or(String::new(), |first| first.with_title());
        // A tokenizer of characters takes the most frequent ones, for which all text has to be read.
        let unread = match &recipe.tokenizer {
            Some(TokenizerSection::Characters { alphabet }) if !sizes.is_empty() => Some(*alphabet),
            _ => None,
        };
        let tokenizer = match unread {
            Some(alphabet) => Tokenizer::characters([Ok(&first)], alphabet)?,
            None => tokenizer(recipe)?,
        };
        let mut vocabulary = tokenizer.vocabulary().clone();
        vocabulary.size = unread.map_or(vocabulary.size, Tokenizer::size_of_characters);
        let tokenizer_sha256 = match unread {
            Some(_) => None,
            None => Some(sha256(tokenizer.to_json()?.as_bytes())),
        };
        let mut files: Vec<PreviewFile> = sizes.into_iter().map(PreviewFile::file).collect();
        if let Some(TokenizerSection::File { path }) = &recipe.tokenizer {
            let bytes = std::fs::metadata(path).map_or(0, |about| about.len());
            files.push(PreviewFile::file((path.clone(), bytes)));
        }
        Ok(Self {
            files,
            found: Found::Text {
                tokens: tokenizer.encode(&first)?,
                vocabulary,
                tokenizer_sha256,
            },
        })
    }

    fn of_images(recipe: &Recipe) -> Result<Self, TrainError> {
        let (train, test) = find(recipe)?;
        let files = match &recipe.data {
            DataSection::Cifar10 { path, .. } => Cifar10::paths(path)
                .into_iter()
                .map(|path| {
                    let bytes = std::fs::metadata(&path).map_or(0, |about| about.len());
                    PreviewFile::file((path, bytes))
                })
                .collect(),
            DataSection::Images {
                train: of_train,
                validation,
                ..
            } => [(of_train, &train), (validation, &test)]
                .map(|(path, images)| PreviewFile {
                    path: path.clone(),
                    bytes: None,
                    images: Some(images.len()),
                })
                .to_vec(),
            DataSection::Bundled { .. } | DataSection::Text { .. } => Vec::new(),
        };
        Ok(Self {
            files,
            found: Found::Images { train, test },
        })
    }

    /// The files and folders that would be read, in their order, the tokenizer's last.
    pub fn files(&self) -> &[PreviewFile] {
        &self.files
    }

    /// Number of images to train on. How many sequences there are only shows when text is tokenised.
    pub fn images(&self) -> Option<usize> {
        match &self.found {
            Found::Text { .. } => None,
            Found::Images { train, .. } => Some(train.len()),
        }
    }

    /// Tokens of the vocabulary, or classes of the images.
    pub fn outputs(&self) -> usize {
        match &self.found {
            Found::Text { vocabulary, .. } => vocabulary.size,
            Found::Images { train, .. } => train.classes().len(),
        }
    }

    /// Whether they are known. Otherwise they are the most that there can be.
    pub fn is_known(&self) -> bool {
        let unknown = matches!(
            &self.found,
            Found::Text {
                tokenizer_sha256: None,
                ..
            }
        );
        !unknown
    }

    /// SHA-256 of the tokenizer, where it is known.
    pub fn tokenizer_sha256(&self) -> Option<&str> {
        match &self.found {
            Found::Text { tokenizer_sha256, .. } => tokenizer_sha256.as_deref(),
            Found::Images { .. } => None,
        }
    }

    /// Tries a recipe with these data: its objective and model on the first of them, the memory, the devices. Gives the
    /// number of parameters.
    ///
    /// # Errors
    /// What would end a run before its first update.
    pub fn parameters<B: AutodiffBackend>(
        &self,
        recipe: &Recipe,
        file: &Path,
        device: &Device<B>,
    ) -> Result<u64, TrainError> {
        let config = recipe.config(self.images().unwrap_or(1));
        config.check()?;
        let parameters = match &self.found {
            Found::Text {
                vocabulary, tokens, ..
            } => {
                let model = recipe.text_model(vocabulary.size, file)?;
                model.check()?;
                let length = recipe.data.length().unwrap_or(2);
                check_fits(vocabulary.size, model.vocab_size, length, model.max_positions)?;
                if let Some(objective) = recipe.objective {
                    try_objective(objective, vocabulary, tokens, length)?;
                }
                model.n_parameters()
            }
            Found::Images { train, test } => {
                let model = recipe.vision_model(train.classes().len(), file)?;
                model.check()?;
                let data = ImageData {
                    train: train.as_ref(),
                    test: test.as_ref(),
                    normalisation: &Normalisation::IMAGENET,
                };
                let augmentation = recipe.augmentation.unwrap_or_else(Augmentation::none);
                ImageTask::new(data, augmentation, model.image_size, &config)?;
                for images in [train, test] {
                    evaluation_batch(images.as_ref(), 0..1, data.normalisation, model.image_size)?;
                }
                model.n_parameters()
            }
        };
        check_size::<B>(parameters)?;
        precision::<B>(recipe, file, device)?;
        others::<B>(device, recipe.train.devices, file)?;
        // What cannot be counted was refused.
        Ok(parameters.unwrap_or(u64::MAX))
    }
}

impl PreviewFile {
    fn file((path, bytes): (PathBuf, u64)) -> Self {
        Self {
            path,
            bytes: Some(bytes),
            images: None,
        }
    }
}

/// Prepares a sequence of the first tokens, over and over where they are too few.
fn try_objective(
    objective: ObjectiveMode,
    vocabulary: &Vocabulary,
    tokens: &[u32],
    length: usize,
) -> Result<(), TrainError> {
    let tokens: Vec<u32> = tokens.iter().copied().cycle().take(length).collect();
    if !tokens.is_empty() {
        objective.prepare(
            &tokens,
            1,
            length,
            vocabulary,
            &mut random::stream(0, ["preview"]),
        )?;
    }
    Ok(())
}
