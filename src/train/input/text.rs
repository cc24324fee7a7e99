//! The text of a recipe.

use std::path::Path;

use crate::data::{
    CacheProgress, CacheState, CachedSequences, CorpusSpec, DataError, Documents, Packed, ReadReport,
    Sequences, Tokenizer, bundled,
};
use crate::train::checkpoints::sha256;
use crate::train::config::TrainError;
use crate::train::recipe::{DataSection, HELD_OUT, Recipe, TokenizerSection};
use crate::train::task::TextData;

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

    /// What else is worth saying of it, one line each.
    pub fn notes(&self) -> &[String] {
        &self.notes
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

pub(super) fn tokenizer(recipe: &Recipe) -> Result<Tokenizer, DataError> {
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

pub(super) fn no_text(recipe: &Recipe) -> TrainError {
    TrainError::Invalid {
        field: "data.kind",
        value: recipe.name.clone(),
        must: "text, for a run on text",
    }
}

/// Where relative paths start.
pub(super) fn here() -> &'static Path {
    Path::new("")
}
