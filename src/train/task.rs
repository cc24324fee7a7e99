//! What a model is trained on.

use std::sync::{Mutex, MutexGuard, PoisonError};

use burn::module::AutodiffModule;
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{Device, ElementConversion, Int, Tensor, TensorData};

use super::config::{TrainConfig, TrainError};
use super::observer::Evaluation;
use crate::attention::{AttentionMask, AttentionTrace, Noise};
use crate::data::{Batches, Sequences};
use crate::model::TextTransformer;
use crate::objective::{self, ObjectiveMode, Prepared, Visibility, Vocabulary};
use crate::random;

/// A source of batches and the loss on them.
///
/// Batches are made on the host and addressed by step, so that a run that begins in the middle sees what
/// an unbroken one would have seen.
///
/// The loop asks for the batches of later updates from another thread while an update runs, and for losses on
/// several devices at once: a task is shared between threads.
pub trait Task<B: AutodiffBackend>: Sync {
    /// The model that is trained.
    type Model: AutodiffModule<B>;
    /// One forward pass's worth of data, on the host.
    type Batch: Send;

    /// Refuses a model that does not fit the data.
    ///
    /// # Errors
    /// Whatever does not fit, by name.
    fn check(&self, model: &Self::Model) -> Result<(), TrainError>;

    /// The model as it is for the update that follows `step` others, and for the evaluation after it; the same
    /// unless something in it goes by a schedule.
    fn at_step(&self, model: Self::Model, _step: usize) -> Self::Model {
        model
    }

    /// The batches of one update.
    ///
    /// # Errors
    /// Where the data cannot be read or the objective cannot be applied.
    fn batches(&self, step: usize) -> Result<Vec<Self::Batch>, TrainError>;

    /// Number of predictions in a batch, by which its loss counts within an update.
    fn weight(&self, batch: &Self::Batch) -> usize;

    /// Number of input tokens in a batch.
    fn tokens(&self, batch: &Self::Batch) -> usize;

    /// Mean loss over the predictions of a batch, shape `[1]`, on the device of the model; `part` is its place
    /// within the update.
    fn loss(&self, model: &Self::Model, batch: Self::Batch, step: usize, part: usize) -> Tensor<B, 1>;

    /// How well the model predicts the held-out data.
    ///
    /// # Errors
    /// As [`batches`](Self::batches).
    fn evaluate(
        &self,
        model: &<Self::Model as AutodiffModule<B>>::InnerModule,
    ) -> Result<Evaluation, TrainError>;
}

/// A task whose loss can be had together with what went on in the attention layers of the model.
pub trait TracedTask<B: AutodiffBackend>: Task<B> {
    /// The loss as [`loss`](Task::loss) gives it, and a trace of each self-attention layer, in order: its input, its
    /// raw scores and the tap for their gradient.
    fn loss_traced(
        &self,
        model: &Self::Model,
        batch: Self::Batch,
        step: usize,
        part: usize,
    ) -> (Tensor<B, 1>, Vec<AttentionTrace<B>>);
}

/// Text to train on and text to evaluate on, as tokens of one vocabulary.
#[derive(Debug, Clone, Copy)]
pub struct TextData<'a> {
    /// Sequences to train on.
    pub train: &'a dyn Sequences,
    /// Sequences to evaluate on, of the same length.
    pub held_out: &'a dyn Sequences,
    /// The vocabulary of both.
    pub vocabulary: &'a Vocabulary,
}

/// Language modelling by any [`ObjectiveMode`].
#[derive(Debug, Clone)]
pub struct TextTask<'a, B: AutodiffBackend> {
    objective: ObjectiveMode,
    data: TextData<'a>,
    batches: Batches<'a>,
    accumulation: usize,
    seed: u64,
    masks: Masks<B>,
    held_out_masks: Masks<B::InnerBackend>,
}

impl<'a, B: AutodiffBackend> TextTask<'a, B> {
    /// A task over sequences of text.
    ///
    /// # Errors
    /// [`TrainError::Data`] for batches of nothing.
    pub fn new(
        objective: ObjectiveMode,
        data: TextData<'a>,
        config: &TrainConfig,
    ) -> Result<Self, TrainError> {
        let n = data.train.n();
        let visibility = objective.attention_mask(n);
        Ok(Self {
            objective,
            data,
            batches: Batches::new(data.train, config.batch_size, config.seed)?,
            accumulation: config.accumulation,
            seed: config.seed,
            masks: Masks::new(visibility, n),
            held_out_masks: Masks::new(visibility, n),
        })
    }

    fn noise(&self, step: usize, part: usize) -> Noise {
        Noise::new(self.seed, step as u64).at(format!("part {part}"))
    }

    /// Corrupts sequences and chooses their targets, from a stream of their own.
    fn prepare(&self, sequences: &[u32], place: [&str; 3]) -> Result<Prepared, TrainError> {
        let n = self.data.train.n();
        let rng = &mut random::stream(self.seed, place);
        Ok(self
            .objective
            .prepare(sequences, sequences.len() / n, n, self.data.vocabulary, rng)?)
    }
}

/// Refuses a model with too few tokens or positions for its data.
pub(super) fn check_fits(
    tokens: usize,
    vocab_size: usize,
    length: usize,
    positions: usize,
) -> Result<(), TrainError> {
    if tokens > vocab_size {
        return Err(TrainError::Vocabulary { tokens, vocab_size });
    }
    if length > positions {
        return Err(TrainError::Length { length, positions });
    }
    Ok(())
}

impl<B: AutodiffBackend> Task<B> for TextTask<'_, B> {
    type Model = TextTransformer<B>;
    type Batch = Prepared;

    fn check(&self, model: &Self::Model) -> Result<(), TrainError> {
        let (tokens, length) = (self.data.vocabulary.size, self.data.train.n());
        check_fits(tokens, model.vocab_size(), length, model.max_positions())
    }

    fn at_step(&self, model: TextTransformer<B>, step: usize) -> TextTransformer<B> {
        model.at_step(step)
    }

    fn batches(&self, step: usize) -> Result<Vec<Prepared>, TrainError> {
        (0..self.accumulation)
            .map(|part| {
                let place = step * self.accumulation + part;
                let sequences = self.batches.batch(place as u64);
                self.prepare(&sequences, ["corruption", &step.to_string(), &part.to_string()])
            })
            .collect()
    }

    fn weight(&self, batch: &Prepared) -> usize {
        batch.targets.len()
    }

    fn tokens(&self, batch: &Prepared) -> usize {
        batch.inputs.len()
    }

    fn loss(&self, model: &TextTransformer<B>, batch: Prepared, step: usize, part: usize) -> Tensor<B, 1> {
        let noise = self.noise(step, part);
        let device = model.tokens.weight.val().device();
        loss(
            model,
            batch,
            self.masks.on(&device).as_ref(),
            Some(&noise),
            &device,
        )
    }

    fn evaluate(&self, model: &TextTransformer<B::InnerBackend>) -> Result<Evaluation, TrainError> {
        let device = model.tokens.weight.val().device();
        let mask = self.held_out_masks.on(&device);
        // The stream does not know the step: every evaluation sees the same corruption.
        let (mut sum, mut count) = (0.0, 0);
        let size = self.batches.batch_size();
        let len = self.data.held_out.len();
        for (index, first) in (0..len).step_by(size).enumerate() {
            let sequences = self.data.held_out.range(first..len.min(first + size));
            let prepared = self.prepare(&sequences, ["held out", &index.to_string(), ""])?;
            for batch in prepared.chunks(size) {
                let weight = batch.targets.len();
                let loss = loss(model, batch, mask.as_ref(), None, &device);
                sum += loss.into_scalar().elem::<f64>() * weight as f64;
                count += weight;
            }
        }
        Ok(Evaluation {
            loss: sum / count as f64,
            accuracy: None,
        })
    }
}

impl<B: AutodiffBackend> TracedTask<B> for TextTask<'_, B> {
    fn loss_traced(
        &self,
        model: &TextTransformer<B>,
        batch: Prepared,
        step: usize,
        part: usize,
    ) -> (Tensor<B, 1>, Vec<AttentionTrace<B>>) {
        let noise = self.noise(step, part);
        let device = model.tokens.weight.val().device();
        let inputs = inputs(&batch, &device);
        let mask = self.masks.on(&device);
        let (hidden, traces) = model.forward_traced(inputs, mask.as_ref(), Some(&noise));
        (loss_of(model, hidden, batch, &device), traces)
    }
}

/// The mask of an objective on each device that asks for it.
#[derive(Debug)]
struct Masks<B: Backend> {
    visibility: Visibility,
    n: usize,
    made: Mutex<Vec<(Device<B>, AttentionMask<B>)>>,
}

impl<B: Backend> Clone for Masks<B> {
    fn clone(&self) -> Self {
        Self {
            made: Mutex::new(lock(&self.made).clone()),
            ..*self
        }
    }
}

impl<B: Backend> Masks<B> {
    fn new(visibility: Visibility, n: usize) -> Self {
        Self {
            visibility,
            n,
            made: Mutex::new(Vec::new()),
        }
    }

    /// The mask; none where everything is seen.
    fn on(&self, device: &Device<B>) -> Option<AttentionMask<B>> {
        if self.visibility == Visibility::Full {
            return None;
        }
        let mut made = lock(&self.made);
        if let Some((_, mask)) = made.iter().find(|(known, _)| known == device) {
            return Some(mask.clone());
        }
        let mask = AttentionMask::from_fn(self.n, |q, k| self.visibility.sees(q, k), device);
        made.push((device.clone(), mask.clone()));
        Some(mask)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The mean loss of a prepared batch, on any backend.
fn loss<B: Backend>(
    model: &TextTransformer<B>,
    batch: Prepared,
    mask: Option<&AttentionMask<B>>,
    noise: Option<&Noise>,
    device: &Device<B>,
) -> Tensor<B, 1> {
    let hidden = model.forward(inputs(&batch, device), mask, noise);
    loss_of(model, hidden, batch, device)
}

fn inputs<B: Backend>(batch: &Prepared, device: &Device<B>) -> Tensor<B, 2, Int> {
    Tensor::from_data(integers(batch.inputs.clone(), [batch.batch, batch.n]), device)
}

/// The mean loss where the last hidden states are known.
fn loss_of<B: Backend>(
    model: &TextTransformer<B>,
    hidden: Tensor<B, 3>,
    batch: Prepared,
    device: &Device<B>,
) -> Tensor<B, 1> {
    let n_predicted = batch.targets.len();
    let positions = Tensor::from_data(integers(batch.positions, [n_predicted]), device);
    let targets = Tensor::from_data(integers(batch.targets, [n_predicted]), device);
    // Before the vocabulary, not after it: see `TextTransformer::logits`.
    objective::loss(
        model.logits(objective::select_positions(hidden, positions)),
        targets,
    )
}

fn integers<const D: usize>(values: Vec<u32>, shape: [usize; D]) -> TensorData {
    // Token ids and positions fit i32, which every backend has.
    TensorData::new(values.into_iter().map(|v| v as i32).collect::<Vec<_>>(), shape)
}
