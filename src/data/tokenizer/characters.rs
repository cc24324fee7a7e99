//! One token a character.

use std::collections::HashMap;

use super::{N_SPECIAL, SPECIAL};
use crate::data::DataError;

/// `[UNK]`, by its place among the special tokens.
const UNKNOWN: u32 = 1;

/// The characters of an alphabet, moved past the special tokens.
#[derive(Debug, Clone)]
pub(super) struct Characters {
    alphabet: Vec<char>,
    ids: HashMap<char, u32>,
}

impl Characters {
    pub(super) fn build<S: AsRef<str>>(
        texts: impl IntoIterator<Item = Result<S, DataError>>,
        size: usize,
    ) -> Result<Self, DataError> {
        if size == 0 {
            return Err(DataError::Alphabet(size));
        }
        let mut counts: HashMap<char, u64> = HashMap::new();
        for text in texts {
            for character in text?.as_ref().chars() {
                *counts.entry(character).or_default() += 1;
            }
        }
        let mut alphabet: Vec<(char, u64)> = counts.into_iter().collect();
        // The character itself breaks ties, so that the alphabet depends on the text alone.
        alphabet.sort_unstable_by_key(|&(character, count)| (std::cmp::Reverse(count), character));
        alphabet.truncate(size);
        let alphabet: Vec<char> = alphabet.into_iter().map(|(character, _)| character).collect();
        let ids = ids(&alphabet);
        Ok(Self { alphabet, ids })
    }

    /// The alphabet as given.
    pub(super) fn new(alphabet: Vec<char>) -> Result<Self, String> {
        let ids = ids(&alphabet);
        if ids.len() < alphabet.len() {
            return Err("a character stands twice in its alphabet".to_owned());
        }
        Ok(Self { alphabet, ids })
    }

    pub(super) fn alphabet(&self) -> &[char] {
        &self.alphabet
    }

    pub(super) fn encode(&self, text: &str) -> Vec<u32> {
        text.chars()
            .map(|character| self.ids.get(&character).copied().unwrap_or(UNKNOWN))
            .collect()
    }

    pub(super) fn decode(&self, tokens: &[u32]) -> String {
        let mut text = String::with_capacity(tokens.len());
        for &token in tokens {
            match SPECIAL.get(token as usize) {
                Some(name) => text.push_str(name),
                None => text.extend(self.alphabet.get((token - N_SPECIAL) as usize)),
            }
        }
        text
    }
}

fn ids(alphabet: &[char]) -> HashMap<char, u32> {
    alphabet.iter().copied().zip(N_SPECIAL..).collect()
}
