//! What an objective must know of a vocabulary.

use serde::{Deserialize, Serialize};

/// The size of a vocabulary and the ids of its special tokens.
///
/// Special tokens are never selected for masking and never drawn as random replacements.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vocabulary {
    /// Number of tokens, the special ones included; ids run from 0 to `size − 1`.
    pub size: usize,
    /// Padding.
    pub pad: Option<u32>,
    /// Stands for what the tokenizer cannot write.
    pub unk: Option<u32>,
    /// Begins a sequence (BERT's `[CLS]`).
    pub cls: Option<u32>,
    /// Separates documents (BERT's `[SEP]`, GPT's end of text).
    pub sep: Option<u32>,
    /// Hides a token that is to be predicted.
    pub mask: Option<u32>,
}

impl Vocabulary {
    /// A vocabulary of `size` tokens, none of them special.
    pub const fn new(size: usize) -> Self {
        Self {
            size,
            pad: None,
            unk: None,
            cls: None,
            sep: None,
            mask: None,
        }
    }

    /// The special tokens that lie in the vocabulary, in order, each once.
    pub fn special_tokens(&self) -> Vec<u32> {
        let mut special: Vec<u32> = [self.pad, self.unk, self.cls, self.sep, self.mask]
            .into_iter()
            .flatten()
            .filter(|&id| (id as usize) < self.size)
            .collect();
        special.sort_unstable();
        special.dedup();
        special
    }
}
