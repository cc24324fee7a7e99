use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{Device, Tensor, TensorData};
use rand::RngExt;

use super::{ModelSignal, ProbeError, TextInput, probe, probe_forward};
use crate::attention::AttentionMask;
use crate::model::{TextTransformer, TextTransformerConfig};
use crate::random;
use crate::signal::Survey;

/// Probes of text transformers on sequences of one length.
#[derive(Debug, Clone, PartialEq)]
pub struct TextProbe {
    /// Tokens of a sequence.
    pub length: usize,
    /// Sequences of a probe.
    pub batch: usize,
    /// Whether positions see only themselves and earlier ones.
    pub causal: bool,
    /// Token ids of a text, cut into sequences of which a seed draws those to probe; random ones where there are none.
    pub text: Vec<u32>,
}

impl TextProbe {
    /// Eight random sequences of this length, seen in both directions.
    pub fn new(length: usize) -> Self {
        Self {
            length,
            batch: 8,
            causal: false,
            text: Vec::new(),
        }
    }

    /// Builds the model from a seed, without dropout, and measures it.
    ///
    /// # Errors
    /// [`ProbeError::Model`] for a configuration that cannot be built, and as [`of_model`](Self::of_model).
    pub fn at_init<B: AutodiffBackend>(
        &self,
        config: &TextTransformerConfig,
        seed: u64,
        device: &Device<B>,
    ) -> Result<ModelSignal, ProbeError> {
        self.of_model(&config.init::<B>(seed, device)?, seed)
    }

    /// Builds and measures the model from each seed.
    ///
    /// # Errors
    /// As [`at_init`](Self::at_init); [`ProbeError::Invalid`] for no seeds.
    pub fn survey<B: AutodiffBackend>(
        &self,
        config: &TextTransformerConfig,
        seeds: impl IntoIterator<Item = u64>,
        device: &Device<B>,
    ) -> Result<Survey, ProbeError> {
        let signals = seeds
            .into_iter()
            .map(|seed| self.at_init::<B>(config, seed, device))
            .collect::<Result<Vec<_>, _>>()?;
        Survey::of(&signals).ok_or_else(|| ProbeError::Invalid {
            field: "seeds",
            value: 0,
            must: "at least 1".to_owned(),
        })
    }

    /// Measures forward pass and gradients of a model, as it is but for its dropout.
    ///
    /// # Errors
    /// [`ProbeError::Invalid`] for sequences of fewer than two tokens or more than the model takes, for no sequences at
    /// all, and for a text that is too short or of another vocabulary; [`ProbeError::NotFinite`].
    pub fn of_model<B: AutodiffBackend>(
        &self,
        model: &TextTransformer<B>,
        seed: u64,
    ) -> Result<ModelSignal, ProbeError> {
        let ids = self.ids(model.vocab_size(), model.max_positions(), seed)?;
        let device = model.tokens.weight.device();
        let model = model.clone().without_dropout();
        probe::<B, _>(
            &model,
            &self.input(&ids, &device),
            &self.input(&ids, &device),
            seed,
        )
    }

    /// Measures the forward pass of a model alone, such as one in training: see
    /// [`valid`](burn::module::AutodiffModule::valid).
    ///
    /// # Errors
    /// As [`of_model`](Self::of_model).
    pub fn of_forward<B: Backend>(
        &self,
        model: &TextTransformer<B>,
        seed: u64,
    ) -> Result<ModelSignal, ProbeError> {
        let ids = self.ids(model.vocab_size(), model.max_positions(), seed)?;
        probe_forward(model, &self.input(&ids, &model.tokens.weight.device()))
    }

    fn ids(&self, vocabulary: usize, positions: usize, seed: u64) -> Result<Vec<i32>, ProbeError> {
        let refuse = |field, value, must: String| Err(ProbeError::Invalid { field, value, must });
        if !(2..=positions).contains(&self.length) {
            let must = format!("at least 2 and at most the {positions} positions of the model");
            return refuse("length", self.length, must);
        }
        if self.batch == 0 {
            return refuse("batch", 0, "at least 1".to_owned());
        }
        let Some(count) = self
            .batch
            .checked_mul(self.length)
            .filter(|&count| count <= 1 << 28)
        else {
            return refuse(
                "batch",
                self.batch,
                "small enough to hold its tokens in memory".to_owned(),
            );
        };
        if self.text.is_empty() {
            let mut rng = random::stream(seed, ["probe", "tokens"]);
            return Ok((0..count)
                .map(|_| rng.random_range(0..vocabulary) as i32)
                .collect());
        }
        let sequences = self.text.len() / self.length;
        if sequences < self.batch {
            let must = format!(
                "at least {count}, {} sequences of {} tokens",
                self.batch, self.length
            );
            return refuse("tokens of the text", self.text.len(), must);
        }
        let mut rng = random::stream(seed, ["probe", "sequences"]);
        let mut chosen = rand::seq::index::sample(&mut rng, sequences, self.batch).into_vec();
        chosen.sort_unstable();
        let ids = chosen
            .into_iter()
            .flat_map(|index| &self.text[index * self.length..(index + 1) * self.length]);
        match ids.clone().find(|&&id| id as usize >= vocabulary) {
            Some(&id) => refuse(
                "token",
                id as usize,
                format!("below the vocabulary of {vocabulary}"),
            ),
            None => Ok(ids.map(|&id| id as i32).collect()),
        }
    }

    fn input<B: Backend>(&self, ids: &[i32], device: &Device<B>) -> TextInput<B> {
        let tokens = TensorData::new(ids.to_vec(), [self.batch, self.length]);
        TextInput {
            tokens: Tensor::from_data(tokens, device),
            mask: self.causal.then(|| AttentionMask::causal(self.length, device)),
        }
    }
}
