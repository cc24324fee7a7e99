//! From text to tokens and back.

mod bytes;
mod characters;
mod hub;
mod pieces;
mod words;

use std::path::{Path, PathBuf};

use bytes::Bytes;
use characters::Characters;
use pieces::Pieces;
use serde::{Deserialize, Serialize};

use super::DataError;
use crate::objective::Vocabulary;

/// The names of the special tokens of the byte and the character tokenizer, at the ids 0 to 4.
const SPECIAL: [&str; 5] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];
const N_SPECIAL: u32 = SPECIAL.len() as u32;

/// A tokenizer: word pieces or any other of the `tokenizers` library, characters, or bytes.
///
/// Encoding adds no special tokens, cuts nothing off and pads nothing, whatever a tokenizer file asks for:
/// text is packed into full sequences later. Text that happens to read like a special token (`[MASK]`) is
/// encoded as the text that it is.
///
/// # Examples
/// ```
/// use wqk::data::Tokenizer;
///
/// let tokenizer = Tokenizer::bytes();
/// let tokens = tokenizer.encode("Ωmega")?;
/// assert_eq!(tokens.len(), 6); // Ω is two bytes
/// assert_eq!(tokenizer.decode(&tokens)?, "Ωmega");
/// assert_eq!(tokenizer.vocabulary().size, 256 + 5);
/// # Ok::<(), wqk::data::DataError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Tokenizer {
    name: PathBuf,
    kind: Kind,
    vocabulary: Vocabulary,
}

#[derive(Debug, Clone)]
enum Kind {
    Pieces(Box<Pieces>),
    Characters(Characters),
    Bytes(Bytes),
}

/// The file of a tokenizer of our own.
#[derive(Serialize, Deserialize)]
#[serde(tag = "wqk_tokenizer", rename_all = "lowercase")]
enum File {
    Bytes,
    Characters { alphabet: String },
}

impl Tokenizer {
    /// Reads a tokenizer: a `tokenizer.json` of the `tokenizers` library (any model), one written by
    /// [`to_json`](Self::to_json), or BERT's `vocab.txt`, one word piece a line.
    ///
    /// A `vocab.txt` says nothing of letter case: text is lower-cased, and stripped of accents, when
    /// lower-casing would change no piece but the bracketed ones, as in BERT's uncased vocabularies.
    ///
    /// # Errors
    /// [`DataError::Folder`], [`DataError::Unreadable`], and [`DataError::Tokenizer`] for a file that is
    /// neither, or a `vocab.txt` without `[UNK]`.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, DataError> {
        let path = path.as_ref();
        let content = crate::files::read(path)
            .map_err(|source| DataError::io(path, source, "the tokenizer.json or vocab.txt in it"))?;
        Self::from_content(path, &content)
    }

    /// Reads a tokenizer from the content of a file; `name` stands for the file in messages.
    ///
    /// # Errors
    /// [`DataError::Tokenizer`] as [`from_file`](Self::from_file).
    pub fn from_content(name: impl AsRef<Path>, content: &[u8]) -> Result<Self, DataError> {
        let name = name.as_ref();
        let not_usable = |message: String| DataError::Tokenizer {
            path: name.to_owned(),
            message,
        };
        let kind = if !content.trim_ascii_start().starts_with(b"{") {
            Kind::Pieces(Box::new(Pieces::from_vocab(content).map_err(not_usable)?))
        } else {
            match serde_json::from_slice(content) {
                Ok(File::Bytes) => Kind::Bytes(Bytes),
                Ok(File::Characters { alphabet }) => {
                    Kind::Characters(Characters::new(alphabet.chars().collect()).map_err(not_usable)?)
                }
                Err(_) => Kind::Pieces(Box::new(Pieces::from_json(content).map_err(not_usable)?)),
            }
        };
        Ok(Self::new(name.to_owned(), kind))
    }

    /// One token a byte of UTF-8, after the five special tokens.
    pub fn bytes() -> Self {
        Self::new("bytes".into(), Kind::Bytes(Bytes))
    }

    /// One token a character: the `alphabet` most frequent characters of the texts, after the five special
    /// tokens; any other is `[UNK]`.
    ///
    /// # Errors
    /// [`DataError::Alphabet`] for an alphabet of nothing. Errors of the texts pass through.
    pub fn characters<S: AsRef<str>>(
        texts: impl IntoIterator<Item = Result<S, DataError>>,
        alphabet: usize,
    ) -> Result<Self, DataError> {
        let characters = Characters::build(texts, alphabet)?;
        Ok(Self::new("characters".into(), Kind::Characters(characters)))
    }

    /// Tokens of a tokenizer of so many characters.
    pub(crate) fn size_of_characters(alphabet: usize) -> usize {
        alphabet.saturating_add(SPECIAL.len())
    }

    fn new(name: PathBuf, kind: Kind) -> Self {
        let vocabulary = match &kind {
            Kind::Pieces(pieces) => pieces.vocabulary(),
            Kind::Characters(characters) => special_first(characters.alphabet().len()),
            Kind::Bytes(_) => special_first(256),
        };
        Self {
            name,
            kind,
            vocabulary,
        }
    }

    /// The file that it was read from, or the name of its kind.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// Its size and special tokens.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// The tokens of a text, without special tokens around them.
    ///
    /// # Errors
    /// [`DataError::Tokenize`] where a tokenizer file has no token for something and no unknown token
    /// either.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, DataError> {
        match &self.kind {
            Kind::Pieces(pieces) => pieces.encode(text),
            Kind::Characters(characters) => Ok(characters.encode(text)),
            Kind::Bytes(bytes) => Ok(bytes.encode(text)),
        }
    }

    /// The text of tokens, special tokens by their names. What encoding loses (letter case, unknown
    /// characters) stays lost; ids outside the vocabulary are left out.
    ///
    /// # Errors
    /// [`DataError::Tokenize`] where the decoder of a tokenizer file fails.
    pub fn decode(&self, tokens: &[u32]) -> Result<String, DataError> {
        match &self.kind {
            Kind::Pieces(pieces) => pieces.decode(tokens),
            Kind::Characters(characters) => Ok(characters.decode(tokens)),
            Kind::Bytes(bytes) => Ok(bytes.decode(tokens)),
        }
    }

    /// The tokenizer as JSON, from which [`from_content`](Self::from_content) makes it again.
    ///
    /// # Errors
    /// [`DataError::Tokenizer`] where the `tokenizers` library cannot write it.
    pub fn to_json(&self) -> Result<String, DataError> {
        let file = match &self.kind {
            Kind::Pieces(pieces) => return pieces.to_json().map_err(|message| self.not_usable(message)),
            Kind::Characters(characters) => File::Characters {
                alphabet: characters.alphabet().iter().collect(),
            },
            Kind::Bytes(_) => File::Bytes,
        };
        serde_json::to_string(&file).map_err(|error| self.not_usable(error.to_string()))
    }

    fn not_usable(&self, message: String) -> DataError {
        DataError::Tokenizer {
            path: self.name.clone(),
            message,
        }
    }

    /// Checks that a model of this vocabulary size has a row for every token.
    ///
    /// # Errors
    /// [`DataError::VocabularyTooLarge`] where it has not.
    pub fn check_fits(&self, model_vocabulary: usize) -> Result<(), DataError> {
        if self.vocabulary.size <= model_vocabulary {
            return Ok(());
        }
        Err(DataError::VocabularyTooLarge {
            path: self.name.clone(),
            tokenizer: self.vocabulary.size,
            model: model_vocabulary,
        })
    }
}

/// A vocabulary that begins with the special tokens.
fn special_first(ordinary: usize) -> Vocabulary {
    Vocabulary {
        size: Tokenizer::size_of_characters(ordinary),
        pad: Some(0),
        unk: Some(1),
        cls: Some(2),
        sep: Some(3),
        mask: Some(4),
    }
}

#[cfg(test)]
mod tests;
