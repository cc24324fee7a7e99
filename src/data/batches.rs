//! Batches in a seeded order.

use super::order::Order;
use super::{DataError, Sequences};

/// Batches of sequences for training, in an order that a seed decides.
///
/// Each epoch is a shuffle of all sequences, addressed by seed and epoch; epochs follow each other without
/// a gap, so that a batch may end one and begin the next, and every sequence is seen once an epoch,
/// whatever the batch size. The shuffle is a keyed permutation of the sequence numbers: it mixes the whole
/// corpus, however large, and takes no memory. [`batch`](Self::batch) gives any step's batch directly, so
/// that there is no state to save: a resumed run continues with the batch that it would have seen.
///
/// # Examples
/// ```
/// use wqk::data::{Batches, Packed};
///
/// let packed = Packed::from_tokens((0..12).collect(), 4)?;
/// let batches = Batches::new(&packed, 2, 7)?;
/// let third = batches.batch(3);
/// assert_eq!(third.len(), 2 * 4);
/// // Another iterator over the same data, asked for that step alone, gives the same.
/// assert_eq!(Batches::new(&packed, 2, 7)?.batch(3), third);
/// # Ok::<(), wqk::data::DataError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Batches<'a> {
    sequences: &'a dyn Sequences,
    batch: usize,
    seed: u64,
}

impl<'a> Batches<'a> {
    /// Batches of `batch` sequences.
    ///
    /// # Errors
    /// [`DataError::BatchSize`] for batches of nothing.
    pub fn new(sequences: &'a dyn Sequences, batch: usize, seed: u64) -> Result<Self, DataError> {
        if batch == 0 {
            return Err(DataError::BatchSize);
        }
        Ok(Self {
            sequences,
            batch,
            seed,
        })
    }

    /// Number of sequences in a batch.
    pub fn batch_size(&self) -> usize {
        self.batch
    }

    /// Length of a sequence.
    pub fn n(&self) -> usize {
        self.sequences.n()
    }

    /// The epoch in which the batch of a step begins, counted from 0.
    pub fn epoch_of(&self, step: u64) -> u64 {
        step * self.batch as u64 / self.sequences.len() as u64
    }

    /// The batch of a step, counted from 0. Costs a copy of its sequences, whatever the step.
    ///
    /// # Shape
    /// `[batch, n]`, flat.
    pub fn batch(&self, step: u64) -> Vec<u32> {
        let len = self.sequences.len() as u64;
        let first = step * self.batch as u64;
        let mut tokens = vec![0; self.batch * self.n()];
        let mut order = (first / len, Order::new(len, self.seed, first / len));
        for (position, into) in (first..).zip(tokens.chunks_exact_mut(self.n())) {
            let epoch = position / len;
            if epoch != order.0 {
                order = (epoch, Order::new(len, self.seed, epoch));
            }
            self.sequences.copy_to(order.1.at(position % len) as usize, into);
        }
        tokens
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Packed;

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
            let batches = Batches::new(&packed, batch, 1).unwrap();
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
        let in_order = Batches::new(&packed, 3, 1).unwrap();
        let expected: Vec<_> = (0..20).map(|step| in_order.batch(step)).collect();
        let backwards = Batches::new(&packed, 3, 1).unwrap();
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
