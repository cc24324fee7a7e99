//! What training needs of a corpus: sequences of one length, by number.

use std::fmt::Debug;
use std::ops::Range;

/// Token sequences of one length at random access, in memory ([`Packed`](super::Packed)) or on disk.
///
/// The trait is object safe: what trains and evaluates takes `&dyn Sequences`.
#[expect(clippy::len_without_is_empty, reason = "never empty")]
pub trait Sequences: Debug + Send + Sync {
    /// Length of a sequence.
    fn n(&self) -> usize;

    /// Number of sequences, at least 1.
    fn len(&self) -> usize;

    /// Copies a sequence into a buffer of [`n`](Self::n) tokens.
    ///
    /// # Panics
    /// For `index ≥ len` or a buffer of another length: both are faults of the calling program.
    fn copy_to(&self, index: usize, into: &mut [u32]);

    /// Several sequences that follow each other.
    ///
    /// # Shape
    /// `[range, n]`, flat.
    ///
    /// # Panics
    /// For a range that goes past the last sequence.
    fn range(&self, range: Range<usize>) -> Vec<u32> {
        let mut tokens = vec![0; range.len() * self.n()];
        for (index, into) in range.zip(tokens.chunks_exact_mut(self.n())) {
            self.copy_to(index, into);
        }
        tokens
    }
}
