//! What a cache is of.

use std::path::Path;

use rayon::prelude::*;
use sha2::{Digest, Sha256};

use crate::data::{CorpusSpec, DataError, Format, Tokenizer, sha256};

/// Rises when the readers give other documents for the same files, or the packing other tokens.
const READERS: u32 = 1;

/// The hashes, in hexadecimal, that a cache belongs to.
#[derive(Debug, Clone)]
pub(super) struct Key {
    /// Of the content of all files, in order, and of how they are read.
    pub(super) corpus: String,
    /// Of the tokenizer.
    pub(super) tokenizer: String,
    /// Tokens of the tokenizer.
    pub(super) vocabulary: usize,
}

impl Key {
    pub(super) fn new(corpus: String, tokenizer: &Tokenizer) -> Result<Self, DataError> {
        Ok(Self {
            corpus,
            tokenizer: hexadecimal(Sha256::new_with_prefix(tokenizer.to_json()?)),
            vocabulary: tokenizer.vocabulary().size,
        })
    }

    /// What its files are called.
    pub(super) fn name(&self) -> String {
        const SHOWN: usize = 16;
        format!("{}-{}", &self.corpus[..SHOWN], &self.tokenizer[..SHOWN])
    }
}

impl CorpusSpec {
    /// The SHA-256, in hexadecimal, of the content of all files, in order, and of how they are read: what a
    /// report names as the data. Names count for the format that they say, and for nothing else.
    ///
    /// # Errors
    /// As [`files`](Self::files), and for a file that cannot be read.
    pub fn sha256(&self, base: &Path) -> Result<String, DataError> {
        let files = self.files(base)?;
        let contents: Vec<String> = files.par_iter().map(sha256).collect::<Result<_, _>>()?;
        let mut corpus = Sha256::new();
        corpus.update(format!("readers {READERS}\n"));
        for (file, content) in files.iter().zip(contents) {
            let format = self.format.or_else(|| Format::of_name(file));
            corpus.update(format!("{content} {format:?}\n"));
        }
        corpus.update(format!("{:?} {:?} {:?}", self.field, self.title, self.on_bad));
        Ok(hexadecimal(corpus))
    }
}

fn hexadecimal(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
