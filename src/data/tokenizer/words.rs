//! The tokens of words that were met before.
//!
//! Text repeats its words, and a tokenizer of BERT's kind treats each by itself: what stands between two
//! blanks has the same tokens wherever it stands. So each is taken through the library once and looked up from
//! then on, which is some ten times as fast.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Memories of words, for threads that encode side by side.
#[derive(Debug, Clone)]
pub(super) struct Words(Arc<Vec<Mutex<Memory>>>);

/// The words that one thread met.
#[derive(Debug, Default)]
struct Memory {
    /// Where the tokens of a word are in `tokens`.
    places: HashMap<Box<str>, (u32, u32)>,
    tokens: Vec<u32>,
}

/// A memory with so many words is emptied: some tens of megabytes.
const MOST_WORDS: usize = 1 << 18;

/// What is longer is no word that comes back.
const LONGEST: usize = 64;

impl Words {
    pub(super) fn new() -> Self {
        const MEMORIES: usize = 64;
        Self(Arc::new((0..MEMORIES).map(|_| Mutex::default()).collect()))
    }

    /// The tokens of a text, of which `encode` gives those of a part between blanks.
    pub(super) fn encode<E>(
        &self,
        text: &str,
        encode: impl Fn(&str) -> Result<Vec<u32>, E>,
    ) -> Result<Vec<u32>, E> {
        let thread = rayon::current_thread_index().unwrap_or(0) % self.0.len();
        // A memory in use, or one whose user panicked, is passed over.
        let mut own = Memory::default();
        let mut shared = self.0[thread].try_lock().ok();
        let memory = shared.as_deref_mut().unwrap_or(&mut own);
        let mut tokens = Vec::with_capacity(text.len() / 4);
        // Only these four: of other blanks some are removed by the normaliser, and then part nothing.
        for word in text
            .split([' ', '\n', '\t', '\r'])
            .filter(|word| !word.is_empty())
        {
            if word.len() > LONGEST {
                tokens.extend(encode(word)?);
            } else if let Some(&(start, end)) = memory.places.get(word) {
                tokens.extend_from_slice(&memory.tokens[start as usize..end as usize]);
            } else {
                if memory.places.len() >= MOST_WORDS {
                    *memory = Memory::default();
                }
                let start = memory.tokens.len() as u32;
                let encoded = encode(word)?;
                tokens.extend_from_slice(&encoded);
                memory.tokens.extend(encoded);
                let place = (start, memory.tokens.len() as u32);
                memory.places.insert(word.into(), place);
            }
        }
        Ok(tokens)
    }
}
