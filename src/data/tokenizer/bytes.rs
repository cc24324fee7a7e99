//! One token a byte.

use super::{N_SPECIAL, SPECIAL};

/// Bytes of UTF-8, moved past the special tokens.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bytes;

impl Bytes {
    pub(super) fn encode(self, text: &str) -> Vec<u32> {
        text.bytes().map(|byte| u32::from(byte) + N_SPECIAL).collect()
    }

    pub(super) fn decode(self, tokens: &[u32]) -> String {
        let mut text = Vec::with_capacity(tokens.len());
        for &token in tokens {
            match SPECIAL.get(token as usize) {
                Some(name) => text.extend_from_slice(name.as_bytes()),
                None => text.extend(u8::try_from(token - N_SPECIAL)),
            }
        }
        String::from_utf8_lossy(&text).into_owned()
    }
}
