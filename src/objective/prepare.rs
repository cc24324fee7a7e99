//! From tokens to what a model is fed and what it must predict.

use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::{Corruption, Masking, ObjectiveError, ObjectiveMode, Vocabulary};
use crate::random::Rng;

/// A batch as the model is fed it, and what it must predict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prepared {
    /// What the model is fed, `[batch, n]`, flat.
    pub inputs: Vec<u32>,
    /// The positions that predict, counted through the batch (`b·n + i`), in order.
    pub positions: Vec<u32>,
    /// What each of them must predict, as long as `positions`.
    pub targets: Vec<u32>,
    /// Number of sequences in `inputs`.
    pub batch: usize,
    /// Length of each.
    pub n: usize,
}

impl Prepared {
    /// The same predictions in pieces of at most `batch` sequences, for objectives that make many
    /// sequences of one (the pseudo-likelihood). A piece has at least one prediction.
    ///
    /// # Panics
    /// Never: a `batch` of 0 counts as 1.
    pub fn chunks(&self, batch: usize) -> impl Iterator<Item = Self> + '_ {
        let batch = batch.max(1);
        let mut first = 0;
        (0..self.batch.div_ceil(batch)).filter_map(move |chunk| {
            let sequences = chunk * batch..((chunk + 1) * batch).min(self.batch);
            let offset = (sequences.start * self.n) as u32;
            let end = (sequences.end * self.n) as u32;
            let last = first + self.positions[first..].partition_point(|&position| position < end);
            let predicted = first..last;
            first = last;
            (!predicted.is_empty()).then(|| Self {
                inputs: self.inputs[sequences.start * self.n..sequences.end * self.n].to_vec(),
                positions: self.positions[predicted.clone()]
                    .iter()
                    .map(|position| position - offset)
                    .collect(),
                targets: self.targets[predicted].to_vec(),
                batch: sequences.len(),
                n: self.n,
            })
        })
    }
}

impl Prepared {
    /// The token that each position holds as the model is fed it, `[batch, n]`, flat: what it stands for as a key.
    pub fn held(&self) -> Vec<Option<u32>> {
        self.inputs.iter().copied().map(Some).collect()
    }

    /// The token that each position predicts, `[batch, n]`, flat; none for most positions under masking. With next-token
    /// training it is the one that the next position holds.
    pub fn predicted(&self) -> Vec<Option<u32>> {
        let mut predicted = vec![None; self.inputs.len()];
        for (&position, &target) in self.positions.iter().zip(&self.targets) {
            if let Some(place) = predicted.get_mut(position as usize) {
                *place = Some(target);
            }
        }
        predicted
    }
}

impl ObjectiveMode {
    /// Draws the corruption of a batch and says what is to be predicted where.
    ///
    /// # Shape
    /// `tokens` is `[batch, n]`, flat. So are the inputs of the result, except for the pseudo-likelihood,
    /// which makes one sequence for every predicted token.
    ///
    /// Special tokens are never selected for masking, nor masked in turn by the pseudo-likelihood; as
    /// the next token they are predicted like any other, but for padding. Random replacements are drawn
    /// evenly from the ordinary tokens. Where the draw selects nothing, one token that could have been
    /// selected is: a loss over no prediction does not exist.
    ///
    /// # Errors
    /// [`ObjectiveError::Shape`], [`TooShort`](ObjectiveError::TooShort) and
    /// [`UnknownToken`](ObjectiveError::UnknownToken) for tokens that do not fit,
    /// [`NoMaskToken`](ObjectiveError::NoMaskToken) and
    /// [`NoOrdinaryToken`](ObjectiveError::NoOrdinaryToken) for a vocabulary that lacks what the corruption
    /// needs, [`NothingToPredict`](ObjectiveError::NothingToPredict) where only special tokens could be
    /// predicted.
    pub fn prepare(
        self,
        tokens: &[u32],
        batch: usize,
        n: usize,
        vocabulary: &Vocabulary,
        rng: &mut Rng,
    ) -> Result<Prepared, ObjectiveError> {
        check(tokens, batch, n, vocabulary)?;
        let mut prepared = Prepared {
            inputs: tokens.to_vec(),
            positions: Vec::new(),
            targets: Vec::new(),
            batch,
            n,
        };
        match self {
            Self::Masked(masking) => {
                let selected = select(tokens, vocabulary, masking, rng, |_| true)?;
                corrupt(
                    &mut prepared.inputs,
                    &selected,
                    masking.corruption(),
                    vocabulary,
                    rng,
                )?;
                for position in selected {
                    prepared.predict(position, tokens[position]);
                }
            }
            Self::MaskedCausal(masking) => {
                let has_predecessor = |position| position % n > 0;
                let selected = select(tokens, vocabulary, masking, rng, has_predecessor)?;
                corrupt(
                    &mut prepared.inputs,
                    &selected,
                    masking.corruption(),
                    vocabulary,
                    rng,
                )?;
                for position in selected.into_iter().filter(|&position| has_predecessor(position)) {
                    prepared.predict(position - 1, tokens[position]);
                }
            }
            Self::Autoregressive => prepared.predict_next(tokens, 1, vocabulary),
            Self::PrefixLm(prefix) => prepared.predict_next(tokens, prefix.length(n), vocabulary),
            Self::PseudoLikelihood => prepared.mask_in_turn(tokens, vocabulary)?,
        }
        if prepared.targets.is_empty() {
            return Err(ObjectiveError::NothingToPredict { tokens: tokens.len() });
        }
        Ok(prepared)
    }
}

impl Prepared {
    fn predict(&mut self, position: usize, target: u32) {
        self.positions.push(position as u32);
        self.targets.push(target);
    }

    /// Predicts the tokens from `first` on in every sequence, each at the position before it.
    fn predict_next(&mut self, tokens: &[u32], first: usize, vocabulary: &Vocabulary) {
        for (position, &token) in tokens.iter().enumerate() {
            if position % self.n >= first && Some(token) != vocabulary.pad {
                self.predict(position - 1, token);
            }
        }
    }

    /// Replaces the batch by one copy of its sequence for every ordinary token, that token masked.
    fn mask_in_turn(&mut self, tokens: &[u32], vocabulary: &Vocabulary) -> Result<(), ObjectiveError> {
        let mask = vocabulary.mask.ok_or(ObjectiveError::NoMaskToken)?;
        let special = vocabulary.special_tokens();
        self.inputs.clear();
        self.batch = 0;
        for sequence in tokens.chunks_exact(self.n) {
            for (i, &token) in sequence.iter().enumerate() {
                if special.contains(&token) {
                    continue;
                }
                let start = self.inputs.len();
                self.inputs.extend_from_slice(sequence);
                self.inputs[start + i] = mask;
                self.predict(start + i, token);
                self.batch += 1;
            }
        }
        Ok(())
    }
}

fn check(tokens: &[u32], batch: usize, n: usize, vocabulary: &Vocabulary) -> Result<(), ObjectiveError> {
    if batch.checked_mul(n) != Some(tokens.len()) || tokens.is_empty() {
        return Err(ObjectiveError::Shape {
            tokens: tokens.len(),
            batch,
            n,
        });
    }
    if n < 2 {
        return Err(ObjectiveError::TooShort(n));
    }
    let outside = tokens.iter().position(|&token| token as usize >= vocabulary.size);
    match outside {
        Some(position) => Err(ObjectiveError::UnknownToken {
            token: tokens[position],
            position,
            size: vocabulary.size,
        }),
        None => Ok(()),
    }
}

/// Selects each ordinary token with the masking's probability, and at least one that can be predicted.
fn select(
    tokens: &[u32],
    vocabulary: &Vocabulary,
    masking: Masking,
    rng: &mut Rng,
    can_be_predicted: impl Fn(usize) -> bool,
) -> Result<Vec<usize>, ObjectiveError> {
    let special = vocabulary.special_tokens();
    let ordinary = |position: &usize| !special.contains(&tokens[*position]);
    let mut selected: Vec<usize> = (0..tokens.len())
        .filter(ordinary)
        .filter(|_| rng.random_bool(masking.rate()))
        .collect();
    if !selected.iter().any(|&position| can_be_predicted(position)) {
        let candidates: Vec<usize> = (0..tokens.len())
            .filter(ordinary)
            .filter(|&position| can_be_predicted(position))
            .collect();
        if candidates.is_empty() {
            return Err(ObjectiveError::NothingToPredict { tokens: tokens.len() });
        }
        let one = candidates[rng.random_range(0..candidates.len())];
        selected.insert(selected.partition_point(|&position| position < one), one);
    }
    Ok(selected)
}

/// Masks, replaces or keeps the selected tokens.
fn corrupt(
    inputs: &mut [u32],
    selected: &[usize],
    corruption: Corruption,
    vocabulary: &Vocabulary,
    rng: &mut Rng,
) -> Result<(), ObjectiveError> {
    let special = vocabulary.special_tokens();
    let n_ordinary = vocabulary.size - special.len();
    if corruption.random() > 0.0 && n_ordinary == 0 {
        return Err(ObjectiveError::NoOrdinaryToken(vocabulary.size));
    }
    let mask = match vocabulary.mask {
        Some(mask) => mask,
        None if corruption.mask() > 0.0 => return Err(ObjectiveError::NoMaskToken),
        None => 0, // never drawn
    };
    for &position in selected {
        let lot: f64 = rng.random();
        if lot < corruption.mask() {
            inputs[position] = mask;
        } else if lot < corruption.mask() + corruption.random() {
            // The drawn rank among the ordinary tokens, moved past every special id at or below it.
            let rank = rng.random_range(0..n_ordinary) as u32;
            inputs[position] = special.iter().fold(rank, |id, &s| id + u32::from(id >= s));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
