//! Batches in a seeded order.

use rand::seq::SliceRandom;

use super::{DataError, Packed};
use crate::random;

/// Batches of sequences for training, in an order that a seed decides.
///
/// Each epoch is a shuffle of all sequences, addressed by seed and epoch; epochs follow each other without
/// a gap, so that a batch may end one and begin the next, and every sequence is seen once an epoch,
/// whatever the batch size. [`batch`](Self::batch) gives any step's batch directly: a resumed run
/// continues with the batch that it would have seen.
///
/// # Examples
/// ```
/// use wqk::data::{Batches, Packed};
///
/// let packed = Packed::from_tokens((0..12).collect(), 4)?;
/// let mut batches = Batches::new(&packed, 2, 7)?;
/// let third = batches.batch(3);
/// assert_eq!(third.len(), 2 * 4);
/// // Another iterator over the same data, asked for that step alone, gives the same.
/// assert_eq!(Batches::new(&packed, 2, 7)?.batch(3), third);
/// # Ok::<(), wqk::data::DataError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Batches<'a> {
    packed: &'a Packed,
    batch: usize,
    seed: u64,
    epoch: u64,
    order: Vec<u32>,
}

impl<'a> Batches<'a> {
    /// Batches of `batch` sequences.
    ///
    /// # Errors
    /// [`DataError::BatchSize`] for batches of nothing.
    pub fn new(packed: &'a Packed, batch: usize, seed: u64) -> Result<Self, DataError> {
        if batch == 0 {
            return Err(DataError::BatchSize);
        }
        Ok(Self {
            packed,
            batch,
            seed,
            epoch: 0,
            order: order(packed.len(), seed, 0),
        })
    }

    /// Number of sequences in a batch.
    pub fn batch_size(&self) -> usize {
        self.batch
    }

    /// Length of a sequence.
    pub fn n(&self) -> usize {
        self.packed.n()
    }

    /// The epoch in which the batch of a step begins, counted from 0.
    pub fn epoch_of(&self, step: u64) -> u64 {
        step * self.batch as u64 / self.packed.len() as u64
    }

    /// The batch of a step, counted from 0. Steps in order cost a copy; a step in another epoch costs a
    /// shuffle of all sequence numbers first.
    ///
    /// # Shape
    /// `[batch, n]`, flat.
    pub fn batch(&mut self, step: u64) -> Vec<u32> {
        let (n, len) = (self.packed.n(), self.packed.len() as u64);
        let first = step * self.batch as u64;
        let mut tokens = Vec::with_capacity(self.batch * n);
        for position in first..first + self.batch as u64 {
            let epoch = position / len;
            if epoch != self.epoch {
                self.epoch = epoch;
                self.order = order(self.packed.len(), self.seed, epoch);
            }
            let start = self.order[(position % len) as usize] as usize * n;
            tokens.extend_from_slice(&self.packed.tokens()[start..start + n]);
        }
        tokens
    }
}

/// The order of an epoch.
fn order(len: usize, seed: u64, epoch: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..len as u32).collect();
    order.shuffle(&mut random::stream(seed, ["batches", &epoch.to_string()]));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seven sequences of two tokens; the even token of each is twice its number.
    fn packed() -> Packed {
        Packed::from_tokens((0..14).collect(), 2).unwrap()
    }

    fn numbers(tokens: &[u32]) -> Vec<u32> {
        tokens.iter().step_by(2).map(|token| token / 2).collect()
    }

    #[test]
    fn every_sequence_once_an_epoch_whatever_the_batch() {
        let packed = packed();
        for batch in [1, 2, 3, 7, 20] {
            let mut batches = Batches::new(&packed, batch, 1).unwrap();
            let seen: Vec<u32> = (0..42).flat_map(|step| numbers(&batches.batch(step))).collect();
            for epoch in seen.chunks_exact(7) {
                let mut epoch = epoch.to_vec();
                epoch.sort_unstable();
                assert_eq!(epoch, [0, 1, 2, 3, 4, 5, 6], "batch {batch}");
            }
        }
    }

    #[test]
    fn steps_can_be_asked_for_in_any_order() {
        let packed = packed();
        let mut in_order = Batches::new(&packed, 3, 1).unwrap();
        let expected: Vec<_> = (0..20).map(|step| in_order.batch(step)).collect();
        let mut backwards = Batches::new(&packed, 3, 1).unwrap();
        for step in (0..20).rev() {
            assert_eq!(backwards.batch(step), expected[step as usize]);
        }
        assert_eq!(in_order.epoch_of(2), 0);
        assert_eq!(in_order.epoch_of(3), 1);
    }

    #[test]
    fn orders_differ_by_epoch_and_seed() {
        let packed = Packed::from_tokens((0..200).collect(), 2).unwrap();
        let epoch = |seed, epoch| Batches::new(&packed, 100, seed).unwrap().batch(epoch);
        assert_eq!(epoch(1, 0), epoch(1, 0));
        assert_ne!(epoch(1, 0), epoch(1, 1));
        assert_ne!(epoch(1, 0), epoch(2, 0));
        assert!(matches!(Batches::new(&packed, 0, 1), Err(DataError::BatchSize)));
    }
}
