//! The data of a recipe, read once and shared by its runs.

use std::path::Path;

use sha2::{Digest, Sha256};

use super::checkpoints::sha256;
use super::config::TrainError;
use super::image_task::ImageData;
use super::recipe::{DataSection, HELD_OUT, Recipe, TokenizerSection};
use super::task::TextData;
use crate::data::vision::{Cifar10, ClassFolder, ImageError, Images, Normalisation, Picture};
use crate::data::{
    CacheProgress, CacheState, CachedSequences, CorpusSpec, DataError, Documents, Packed, ReadReport,
    Sequences, Tokenizer, bundled,
};

/// What the runs of a recipe learn from.
#[derive(Debug)]
pub enum Input {
    /// Tokens.
    Text(TextInput),
    /// Images.
    Images(ImageInput),
}

impl Input {
    /// Reads the data of a recipe. Text of one's own goes through the cache in `cache`; `progress` hears how far the
    /// making of one is.
    ///
    /// # Errors
    /// [`TrainError::Data`] or [`TrainError::Image`] where the data cannot be read, or are too few.
    pub fn open(
        recipe: &Recipe,
        cache: &Path,
        progress: &mut dyn FnMut(CacheProgress),
    ) -> Result<Self, TrainError> {
        match recipe.data.is_text() {
            true => TextInput::open(recipe, cache, progress).map(Self::Text),
            false => ImageInput::open(recipe).map(Self::Images),
        }
    }

    /// Number of sequences or images to train on.
    #[expect(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.n_sequences(),
            Self::Images(images) => images.train.len(),
        }
    }

    /// What was read and passed over, of each corpus of files.
    pub fn reports(&self) -> &[ReadReport] {
        match self {
            Self::Text(text) => text.reports(),
            Self::Images(_) => &[],
        }
    }

    /// What else is worth saying of the data, one line each.
    pub fn notes(&self) -> &[String] {
        match self {
            Self::Text(text) => &text.notes,
            Self::Images(_) => &[],
        }
    }
}

/// The text of a recipe as tokens, which all its runs share.
#[derive(Debug)]
pub struct TextInput {
    train: AnySequences,
    held_out: AnySequences,
    tokenizer: Tokenizer,
    data_sha256: String,
    reports: Vec<ReadReport>,
    notes: Vec<String>,
}

impl TextInput {
    /// Reads and tokenises the text of a recipe. Text of one's own goes through the cache in `cache`; `progress`
    /// hears how far the making of one is.
    ///
    /// # Errors
    /// [`TrainError::Data`] where the data cannot be read, or are too few.
    pub fn open(
        recipe: &Recipe,
        cache: &Path,
        progress: &mut dyn FnMut(CacheProgress),
    ) -> Result<Self, TrainError> {
        let tokenizer = tokenizer(recipe)?;
        match &recipe.data {
            DataSection::Bundled { length, held_out } => {
                let packed = Packed::new(bundled::documents()?, &tokenizer, *length)?;
                let (train, held_out) = packed.hold_out(held_out.unwrap_or(HELD_OUT))?;
                Ok(Self {
                    train: Box::new(train),
                    held_out: Box::new(held_out),
                    tokenizer,
                    data_sha256: bundled::SHA256.to_owned(),
                    reports: Vec::new(),
                    notes: Vec::new(),
                })
            }
            DataSection::Text {
                corpus,
                length,
                held_out,
                validation,
            } => {
                let mut notes = Vec::new();
                let mut open = |corpus: &CorpusSpec| {
                    open_text(corpus, &tokenizer, *length, cache, &mut *progress, &mut notes)
                };
                let text = open(corpus)?;
                let other = validation.as_ref().map(open).transpose()?;
                let mut reports = vec![text.report];
                let (train, held_out, data_sha256): (Box<dyn Sequences>, Box<dyn Sequences>, _) = match other
                {
                    None => {
                        let (train, held_out) = text.tokens.hold_out(held_out.unwrap_or(HELD_OUT))?;
                        (train, held_out, text.sha256)
                    }
                    Some(other) => {
                        reports.push(other.report);
                        let both = sha256(format!("{} {}", text.sha256, other.sha256).as_bytes());
                        (text.tokens.whole(), other.tokens.whole(), both)
                    }
                };
                Ok(Self {
                    train,
                    held_out,
                    tokenizer,
                    data_sha256,
                    reports,
                    notes,
                })
            }
            DataSection::Cifar10 { .. } | DataSection::Images { .. } => Err(no_text(recipe)),
        }
    }

    /// What a task takes.
    pub fn data(&self) -> TextData<'_> {
        TextData {
            train: self.train.as_ref(),
            held_out: self.held_out.as_ref(),
            vocabulary: self.tokenizer.vocabulary(),
        }
    }

    /// Number of sequences to train on.
    pub fn n_sequences(&self) -> usize {
        self.train.len()
    }

    /// SHA-256 of the text.
    pub fn sha256(&self) -> &str {
        &self.data_sha256
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// What was read and passed over, of each corpus of files.
    pub fn reports(&self) -> &[ReadReport] {
        &self.reports
    }
}

/// The tokens of a corpus, with what is known of them.
struct Text {
    tokens: Tokens,
    report: ReadReport,
    sha256: String,
}

/// Sequences, wherever they lie.
type AnySequences = Box<dyn Sequences>;

/// Where tokens lie.
enum Tokens {
    Cached(CachedSequences),
    InMemory(Packed),
}

impl Tokens {
    fn whole(self) -> AnySequences {
        match self {
            Self::Cached(tokens) => Box::new(tokens),
            Self::InMemory(tokens) => Box::new(tokens),
        }
    }

    /// Those to train on, and a share to hold out.
    fn hold_out(self, share: f64) -> Result<(AnySequences, AnySequences), DataError> {
        Ok(match self {
            Self::Cached(tokens) => {
                let (train, held_out) = tokens.hold_out(share)?;
                (Box::new(train), Box::new(held_out))
            }
            Self::InMemory(tokens) => {
                let (train, held_out) = tokens.hold_out(share)?;
                (Box::new(train), Box::new(held_out))
            }
        })
    }
}

fn open_text(
    corpus: &CorpusSpec,
    tokenizer: &Tokenizer,
    length: usize,
    cache: &Path,
    progress: &mut dyn FnMut(CacheProgress),
    notes: &mut Vec<String>,
) -> Result<Text, DataError> {
    let text = match corpus.cached(here(), tokenizer, length, cache, progress) {
        Ok(cached) => {
            if let CacheState::Rebuilt { problem } = cached.state {
                notes.push(format!("{}: {problem}: it was made again", cached.path.display()));
            }
            Text {
                tokens: Tokens::Cached(cached.sequences),
                report: cached.report,
                sha256: cached.corpus,
            }
        }
        // Nowhere to write is no reason not to train.
        Err(error @ DataError::Cache { .. }) => {
            let (packed, report) = corpus.pack(here(), tokenizer, length)?;
            notes.push(format!("{error}; the tokens are kept in memory"));
            Text {
                tokens: Tokens::InMemory(packed),
                report,
                sha256: corpus.sha256(here())?,
            }
        }
        Err(error) => return Err(error),
    };
    Ok(text)
}

fn tokenizer(recipe: &Recipe) -> Result<Tokenizer, DataError> {
    match &recipe.tokenizer {
        Some(TokenizerSection::File { path }) => Tokenizer::from_file(path),
        Some(TokenizerSection::Bundled) => bundled::tokenizer(),
        Some(TokenizerSection::Characters { alphabet }) => {
            let of = |documents: Documents| {
                let texts = documents.map(|document| document.map(|document| document.with_title()));
                Tokenizer::characters(texts, *alphabet)
            };
            match &recipe.data {
                DataSection::Bundled { .. } => of(bundled::documents()?),
                DataSection::Text { corpus, .. } => of(corpus.documents(here())?),
                // Refused before.
                DataSection::Cifar10 { .. } | DataSection::Images { .. } => Ok(Tokenizer::bytes()),
            }
        }
        // A recipe on text has one: it was checked.
        Some(TokenizerSection::Bytes) | None => Ok(Tokenizer::bytes()),
    }
}

fn no_text(recipe: &Recipe) -> TrainError {
    TrainError::Invalid {
        field: "data.kind",
        value: recipe.name.clone(),
        must: "text, for a run on text",
    }
}

/// Where relative paths start.
fn here() -> &'static Path {
    Path::new("")
}

/// The images of a recipe.
#[derive(Debug)]
pub struct ImageInput {
    train: Box<dyn Images>,
    test: Box<dyn Images>,
    normalisation: Normalisation,
    data_sha256: String,
}

impl ImageInput {
    /// Finds the images of a recipe, and the mean and deviation of those to train on.
    ///
    /// # Errors
    /// [`TrainError::Image`] where they cannot be read.
    pub fn open(recipe: &Recipe) -> Result<Self, TrainError> {
        let (train, test): (Box<dyn Images>, Box<dyn Images>) = match &recipe.data {
            DataSection::Cifar10 {
                path,
                train_images,
                test_images,
            } => {
                let first = |images: Cifar10, n: &Option<usize>| First {
                    n: n.unwrap_or(usize::MAX).min(images.len()),
                    images: Box::new(images),
                };
                (
                    Box::new(first(Cifar10::training(path)?, train_images)),
                    Box::new(first(Cifar10::test(path)?, test_images)),
                )
            }
            DataSection::Images {
                train,
                validation,
                shorter_side,
            } => (
                Box::new(ClassFolder::open(train, *shorter_side)?),
                Box::new(ClassFolder::open(validation, *shorter_side)?),
            ),
            DataSection::Bundled { .. } | DataSection::Text { .. } => return Err(no_images(recipe)),
        };
        // A pass over ImageNet would be long, and its values are known.
        let in_memory = matches!(recipe.data, DataSection::Cifar10 { .. });
        let normalisation = match in_memory {
            true => Normalisation::of(train.as_ref())?,
            false => Normalisation::IMAGENET,
        };
        let mut hash = Sha256::new();
        for images in [&train, &test] {
            hash.update((images.len() as u64).to_le_bytes());
            for index in 0..images.len() {
                hash.update((images.label(index) as u64).to_le_bytes());
                match in_memory {
                    true => hash.update(images.picture(index)?.pixels()),
                    false => hash.update(file_name(&images.name(index))),
                }
            }
        }
        Ok(Self {
            train,
            test,
            normalisation,
            data_sha256: hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect(),
        })
    }

    /// What a task takes.
    pub fn data(&self) -> ImageData<'_> {
        ImageData {
            train: self.train.as_ref(),
            test: self.test.as_ref(),
            normalisation: &self.normalisation,
        }
    }

    /// SHA-256 of pixels and classes, or, of images that stay in their files, of names and classes.
    pub fn sha256(&self) -> &str {
        &self.data_sha256
    }
}

/// The name without its folders, which are not the same everywhere.
fn file_name(name: &str) -> &str {
    name.rsplit(['/', '\\']).next().unwrap_or_default()
}

fn no_images(recipe: &Recipe) -> TrainError {
    TrainError::Invalid {
        field: "data.kind",
        value: recipe.name.clone(),
        must: "cifar10 or images, for a run on images",
    }
}

/// The first images of a set.
#[derive(Debug)]
struct First {
    images: Box<dyn Images>,
    n: usize,
}

impl Images for First {
    fn len(&self) -> usize {
        self.n
    }

    fn classes(&self) -> &[String] {
        self.images.classes()
    }

    fn label(&self, index: usize) -> usize {
        self.images.label(index)
    }

    fn picture(&self, index: usize) -> Result<Picture, ImageError> {
        self.images.picture(index)
    }

    fn name(&self, index: usize) -> String {
        self.images.name(index)
    }
}
