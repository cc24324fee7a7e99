//! Real text to probe on.

use std::path::Path;

use super::ProbeArgs;
use super::subject::Subject;
use crate::cli::text_model;
use crate::data::{self, Documents, Tokenizer, bundled};
use crate::train::recipe::TokenizerSection;

/// Text to probe on.
pub(super) struct Text {
    pub(super) tokens: Vec<u32>,
    pub(super) sha256: String,
    pub(super) tokenizer: String,
}

impl Text {
    /// Reads enough for the sequences of all seeds to differ.
    pub(super) fn read(
        path: &Path,
        args: &ProbeArgs,
        subject: Option<&Subject>,
        length: usize,
    ) -> anyhow::Result<Self> {
        /// Sequences to choose each from: neighbours are of one document, and alike.
        const CHOICE: usize = 16;
        let tokenizer = tokenizer(args.tokenizer.as_deref(), subject, path)?;
        let sequences = args
            .batch
            .saturating_mul(args.seeds as usize)
            .saturating_mul(CHOICE);
        let count = sequences.saturating_mul(length);
        Ok(Self {
            tokens: text_model::tokens(Documents::open(path)?, &tokenizer, count)?,
            sha256: data::sha256(path)?,
            tokenizer: tokenizer.name().display().to_string(),
        })
    }
}

/// The tokenizer of a text that a model is probed on: of a file, or the model's own, or the bundled one.
///
/// # Errors
/// A file that is none, a trained model without one.
fn tokenizer(file: Option<&Path>, subject: Option<&Subject>, text: &Path) -> anyhow::Result<Tokenizer> {
    if let Some(trained) = subject.and_then(|subject| subject.trained.as_ref()) {
        return trained.tokenizer(file);
    }
    if let Some(file) = file {
        return Ok(Tokenizer::from_file(file)?);
    }
    Ok(match subject.and_then(|subject| subject.tokenizer.as_ref()) {
        Some(TokenizerSection::File { path }) => Tokenizer::from_file(path)?,
        Some(TokenizerSection::Characters { alphabet }) => {
            let texts = Documents::open(text)?.map(|document| document.map(|document| document.with_title()));
            Tokenizer::characters(texts, *alphabet)?
        }
        Some(TokenizerSection::Bytes) => Tokenizer::bytes(),
        Some(TokenizerSection::Bundled) | None => bundled::tokenizer()?,
    })
}
