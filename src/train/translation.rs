//! Translation: batches of parallel text, the loss of an encoder-decoder, and its BLEU.

use burn::tensor::backend::Backend;
use burn::tensor::{Device, Int, Tensor, TensorData};
use rand::RngExt;

use super::config::TrainError;
use crate::attention::Noise;
use crate::data::{Bleu, ParallelText, Tokenizer};
use crate::model::{EncoderDecoder, Sources};
use crate::objective;
use crate::random;

/// Parallel text as tokens of one vocabulary.
#[derive(Debug, Clone)]
pub struct TranslationData {
    /// Source and target of each pair, without special tokens.
    pairs: Vec<(Vec<u32>, Vec<u32>)>,
    /// The target of each pair as it was written, for BLEU.
    references: Vec<String>,
    pad: u32,
    begin: u32,
    end: u32,
}

/// Pairs side by side, on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranslationBatch {
    sources: Vec<i32>,
    padded: Vec<bool>,
    source_length: usize,
    /// What the decoder is fed, `[batch, target_length]`: the begin token and the target.
    inputs: Vec<i32>,
    /// Where it predicts, counted through the batch.
    positions: Vec<i32>,
    /// What: the target and the end token.
    targets: Vec<i32>,
    target_length: usize,
    size: usize,
}

impl TranslationBatch {
    /// The number of predictions.
    pub fn predictions(&self) -> usize {
        self.targets.len()
    }
}

impl TranslationData {
    /// Tokenises pairs and leaves out those with more than `longest − 1` tokens on a side.
    ///
    /// The vocabulary needs tokens for padding, the beginning (`cls`) and the end (`sep`) of a sentence.
    ///
    /// # Errors
    /// [`TrainError::Data`] where the tokenizer fails; [`TrainError::Invalid`] for a vocabulary without these tokens, and
    /// where no pair is left.
    pub fn new(text: &ParallelText, tokenizer: &Tokenizer, longest: usize) -> Result<Self, TrainError> {
        let vocabulary = tokenizer.vocabulary();
        let (Some(pad), Some(begin), Some(end)) = (vocabulary.pad, vocabulary.cls, vocabulary.sep) else {
            return Err(TrainError::Invalid {
                field: "tokenizer",
                value: tokenizer.name().display().to_string(),
                must: "one with tokens for padding, beginning (CLS) and end (SEP)",
            });
        };
        let (mut pairs, mut references) = (Vec::new(), Vec::new());
        for (source, target) in &text.pairs {
            let pair = (tokenizer.encode(source)?, tokenizer.encode(target)?);
            if pair.0.len() < longest && pair.1.len() < longest && !pair.0.is_empty() && !pair.1.is_empty() {
                pairs.push(pair);
                references.push(target.clone());
            }
        }
        if pairs.is_empty() {
            return Err(TrainError::Invalid {
                field: "longest sentence",
                value: longest.to_string(),
                must: "above the tokens of some pair",
            });
        }
        Ok(Self {
            pairs,
            references,
            pad,
            begin,
            end,
        })
    }

    /// The number of pairs.
    #[allow(clippy::len_without_is_empty)] // never empty
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Takes every k-th pair away for evaluation, about `count` of them, so that both parts come from all of the text.
    ///
    /// # Errors
    /// [`TrainError::Invalid`] where nothing would be left to train on, or nothing to evaluate.
    pub fn hold_out(self, count: usize) -> Result<(Self, Self), TrainError> {
        if count == 0 || 2 * count > self.len() {
            return Err(TrainError::Invalid {
                field: "held-out pairs",
                value: count.to_string(),
                must: "at least 1 and at most half of the pairs",
            });
        }
        let every = self.len() / count;
        let empty = || Self {
            pairs: Vec::new(),
            references: Vec::new(),
            ..self
        };
        let (mut train, mut held_out) = (empty(), empty());
        for (i, (pair, reference)) in self.pairs.into_iter().zip(self.references).enumerate() {
            let part = if i % every == 0 && held_out.pairs.len() < count {
                &mut held_out
            } else {
                &mut train
            };
            part.pairs.push(pair);
            part.references.push(reference);
        }
        Ok((train, held_out))
    }

    /// A batch of `size` pairs, drawn for this step.
    ///
    /// Pairs of about equal length come together: a place among the lengths is drawn, and the batch is what lies there.
    pub fn batch(&self, step: usize, size: usize, seed: u64) -> TranslationBatch {
        let mut rng = random::stream(seed, ["translation", &step.to_string()]);
        // Of sixteen times as many pairs, sorted by length, one stretch.
        let mut drawn: Vec<&(Vec<u32>, Vec<u32>)> = (0..16 * size)
            .map(|_| &self.pairs[rng.random_range(0..self.pairs.len())])
            .collect();
        drawn.sort_by_key(|(source, target)| source.len() + target.len());
        let first = rng.random_range(0..16) * size;
        self.collate(&drawn[first..first + size])
    }

    /// All pairs in batches of at most `size`, in order.
    pub fn batches(&self, size: usize) -> impl Iterator<Item = TranslationBatch> + '_ {
        self.pairs.chunks(size.max(1)).map(|pairs| {
            let pairs: Vec<_> = pairs.iter().collect();
            self.collate(&pairs)
        })
    }

    fn collate(&self, pairs: &[&(Vec<u32>, Vec<u32>)]) -> TranslationBatch {
        let longest =
            |side: fn(&(Vec<u32>, Vec<u32>)) -> usize| pairs.iter().map(|pair| side(pair)).max().unwrap_or(0);
        let source_length = longest(|pair| pair.0.len()) + 1;
        let target_length = longest(|pair| pair.1.len()) + 1;
        let mut batch = TranslationBatch {
            sources: Vec::new(),
            padded: Vec::new(),
            source_length,
            inputs: Vec::new(),
            positions: Vec::new(),
            targets: Vec::new(),
            target_length,
            size: pairs.len(),
        };
        let ids = |tokens: &[u32]| tokens.iter().map(|&token| token as i32).collect::<Vec<_>>();
        for (row, (source, target)) in pairs.iter().enumerate() {
            let gap = source_length - source.len() - 1;
            batch.sources.extend(ids(source));
            batch.sources.push(self.end as i32);
            batch.sources.extend(std::iter::repeat_n(self.pad as i32, gap));
            batch.padded.extend((0..source_length).map(|i| i > source.len()));
            batch.inputs.push(self.begin as i32);
            batch.inputs.extend(ids(target));
            batch.inputs.extend(std::iter::repeat_n(
                self.pad as i32,
                target_length - target.len() - 1,
            ));
            batch
                .positions
                .extend((0..=target.len()).map(|i| (row * target_length + i) as i32));
            batch.targets.extend(ids(target));
            batch.targets.push(self.end as i32);
        }
        batch
    }

    /// BLEU of a model's most likely translations, with those translations.
    ///
    /// # Errors
    /// [`TrainError::Data`] where the tokenizer cannot write them.
    pub fn bleu<B: Backend>(
        &self,
        model: &EncoderDecoder<B>,
        tokenizer: &Tokenizer,
        size: usize,
    ) -> Result<(Bleu, Vec<String>), TrainError> {
        let device = model.positions.weight.device();
        let longest = model.positions.weight.dims()[0];
        let mut translations = Vec::with_capacity(self.len());
        for batch in self.batches(size) {
            for tokens in model.translate(&batch.sources(&device), [self.begin, self.end], longest) {
                translations.push(tokenizer.decode(&tokens)?);
            }
        }
        let pairs = translations
            .iter()
            .zip(&self.references)
            .map(|(translation, reference)| (translation.as_str(), reference.as_str()));
        Ok((Bleu::of_corpus(pairs), translations))
    }
}

impl TranslationBatch {
    fn sources<B: Backend>(&self, device: &Device<B>) -> Sources<B> {
        let shape = [self.size, self.source_length];
        Sources {
            tokens: Tensor::from_data(TensorData::new(self.sources.clone(), shape), device),
            padded: Tensor::from_data(TensorData::new(self.padded.clone(), shape), device),
        }
    }

    /// Mean loss over the tokens of the targets, each given the source and those before, in nats.
    pub fn loss<B: Backend>(&self, model: &EncoderDecoder<B>, noise: Option<&Noise>) -> Tensor<B, 1> {
        let device = model.positions.weight.device();
        let sources = self.sources(&device);
        let memory = model.encode(&sources, noise);
        let inputs = TensorData::new(self.inputs.clone(), [self.size, self.target_length]);
        let hidden = model.decode(memory, &sources, Tensor::from_data(inputs, &device), noise);
        let list = |values: &[i32]| {
            Tensor::<B, 1, Int>::from_data(TensorData::new(values.to_vec(), [values.len()]), &device)
        };
        let hidden = objective::select_positions(hidden, list(&self.positions));
        objective::loss(model.logits(hidden), list(&self.targets))
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use burn::optim::{AdamConfig, GradientsParams, Optimizer};
    use burn::tensor::ElementConversion;

    use super::*;
    use crate::backend::{Autodiff, Flex};
    use crate::model::TextTransformerConfig;

    type Ad = Autodiff<Flex>;

    /// "Translation" by one rule, which attention to the source must find: the sentence in capitals and backwards.
    fn text(count: u64) -> ParallelText {
        let pairs = (0..count)
            .map(|i| {
                let mut rng = random::stream(i, ["sentence"]);
                let n = rng.random_range(2..7);
                let source: String = (0..n).map(|_| rng.random_range(b'a'..=b'f') as char).collect();
                let target = source.to_uppercase().chars().rev().collect();
                (source, target)
            })
            .collect();
        ParallelText { pairs }
    }

    fn tokenizer(text: &ParallelText) -> Tokenizer {
        let lines = text.pairs.iter().flat_map(|(a, b)| [Ok(a), Ok(b)]);
        Tokenizer::characters(lines, 20).unwrap()
    }

    fn config(tokenizer: &Tokenizer) -> TextTransformerConfig {
        TextTransformerConfig::new(tokenizer.vocabulary().size, 32, 2, 2)
            .with_max_positions(10)
            .with_dropout(0.0)
            .with_attention_dropout(0.0)
            .with_init_std(0.1)
    }

    #[test]
    fn padding_changes_nothing() {
        let text = text(30);
        let tokenizer = tokenizer(&text);
        let data = TranslationData::new(&text, &tokenizer, 10).unwrap();
        let model = config(&tokenizer)
            .init_encoder_decoder::<Flex>(1, &Default::default())
            .unwrap();
        // Mean over all tokens together, and over each pair by itself.
        let all = data.batches(30).next().unwrap();
        let together = all.loss(&model, None).into_scalar().elem::<f64>();
        let mut sum = 0.0;
        for one in data.batches(1) {
            sum += one.loss(&model, None).into_scalar().elem::<f64>() * one.predictions() as f64;
        }
        // Sums of f32 in another order.
        assert!((together - sum / all.predictions() as f64).abs() < 1e-5);
    }

    #[test]
    fn it_learns_to_translate() {
        let text = text(2000);
        let tokenizer = tokenizer(&text);
        let data = TranslationData::new(&text, &tokenizer, 10).unwrap();
        let (train, held_out) = data.hold_out(50).unwrap();
        let mut model = config(&tokenizer)
            .init_encoder_decoder::<Ad>(1, &Default::default())
            .unwrap();
        let uniform = (tokenizer.vocabulary().size as f64).ln();
        let mut optimiser = AdamConfig::new().init::<Ad, EncoderDecoder<Ad>>();
        let mut losses = Vec::new();
        for step in 0..300 {
            let loss = train.batch(step, 32, 7).loss(&model, None);
            losses.push(loss.clone().into_scalar().elem::<f64>());
            let gradients = GradientsParams::from_grads(loss.backward(), &model);
            model = optimiser.step(3e-3, model, gradients);
        }
        // It begins about at the uniform guess, and the rule leaves nothing to chance.
        assert!((losses[0] - uniform).abs() < 0.7, "{}", losses[0]);
        let end = losses[290..].iter().sum::<f64>() / 10.0;
        assert!(end < 0.3, "{end}");
        let (_, translations) = held_out
            .bleu(&burn::module::AutodiffModule::valid(&model), &tokenizer, 16)
            .unwrap();
        let right = translations
            .iter()
            .zip(&held_out.references)
            .filter(|(a, b)| a == b)
            .count();
        assert!(right > 35, "{right} of 50: {:?}", &translations[..3]);
    }
}
