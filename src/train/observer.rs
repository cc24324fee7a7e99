//! Who watches a run, and the watcher that scores every layer as it trains.

use std::time::{Duration, Instant};

use burn::module::AutodiffModule;
use burn::tensor::backend::AutodiffBackend;
use serde::{Deserialize, Serialize};

use super::config::TrainError;
use crate::attention::HasAttention;
use crate::bilinear::LayerScores;

/// One parameter update.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StepRow {
    /// Updates done, this one included.
    pub step: usize,
    /// Mean loss over the predicted positions of the update, before it, in nats.
    pub loss: f64,
    /// Learning rate of the update.
    pub learning_rate: f64,
    /// Global norm of the gradients before clipping.
    pub gradient_norm: f64,
    /// Input tokens of the update.
    pub tokens: usize,
    /// Seconds since the run began, without the time between a stop and its resumption.
    pub seconds: f64,
    /// Seconds of the update in which it waited for its batches.
    pub waited: f64,
}

/// How well a model predicts data that it was not trained on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Mean loss over the predictions, in nats.
    pub loss: f64,
    /// Share of right predictions, where the task counts them.
    pub accuracy: Option<f64>,
}

/// An evaluation on held-out data in a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct HeldOutRow {
    /// Updates done.
    pub step: usize,
    /// Mean loss over the predictions, in nats.
    pub loss: f64,
    /// Share of right predictions, where the task counts them.
    pub accuracy: Option<f64>,
    /// The loss of the averaged weights, where weights are averaged.
    pub averaged_loss: Option<f64>,
    /// The accuracy of the averaged weights.
    pub averaged_accuracy: Option<f64>,
}

impl HeldOutRow {
    pub(super) fn new(step: usize, model: Evaluation, averaged: Option<Evaluation>) -> Self {
        Self {
            step,
            loss: model.loss,
            accuracy: model.accuracy,
            averaged_loss: averaged.map(|averaged| averaged.loss),
            averaged_accuracy: averaged.and_then(|averaged| averaged.accuracy),
        }
    }

    /// The loss of the weights that the run is about: the averaged ones, where there are any.
    pub fn final_loss(&self) -> f64 {
        self.averaged_loss.unwrap_or(self.loss)
    }
}

/// What a run tells its observers.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a, M> {
    /// The run begins, or goes on, with this model.
    Start {
        /// The model before the next update.
        model: &'a M,
        /// How many updates the run will have done at its end.
        steps: usize,
        /// How many it has done before: 0 unless it is resumed.
        done: usize,
    },
    /// An update is done.
    Step {
        /// Its figures.
        row: StepRow,
        /// The model after it.
        model: &'a M,
    },
    /// The model was evaluated on held-out data.
    Evaluated {
        /// What came of it.
        row: HeldOutRow,
    },
}

/// Watches a run of models `M`.
pub trait Observer<M> {
    /// Sees one event.
    ///
    /// # Errors
    /// Any error ends the run; [`TrainError::Stopped`] is the one for a wish to stop.
    fn observe(&mut self, event: &Event<'_, M>) -> Result<(), TrainError>;
}

/// The scores of one layer at one moment of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScoreRow {
    /// Updates done.
    pub step: usize,
    /// Index of the self-attention layer, from 0.
    pub layer: usize,
    /// Its scores.
    #[serde(flatten)]
    pub scores: LayerScores,
}

impl ScoreRow {
    /// Of rows in the order of their steps, those of the last one.
    pub fn latest(rows: &[Self]) -> &[Self] {
        let last = rows.last().map_or(0, |row| row.step);
        &rows[rows.partition_point(|row| row.step < last)..]
    }
}

impl std::fmt::Display for ScoreRow {
    /// The layer and its scores, without the step.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "layer {:>2}  symmetry {:+.3}  directionality (excess) {:+.3}",
            self.layer,
            self.scores.symmetry.unwrap_or(f64::NAN),
            self.scores.directionality.excess
        )
    }
}

/// Scores every attention layer at the start, at every k-th update and at the end.
#[derive(Debug)]
pub struct ScoreWatch<B> {
    every: usize,
    gamma: f64,
    per_head: bool,
    steps: usize,
    rows: Vec<ScoreRow>,
    spent: Duration,
    backend: std::marker::PhantomData<fn() -> B>,
}

impl<B: AutodiffBackend> ScoreWatch<B> {
    /// Scores whole layers every `every` updates, 0 for the start and the end alone, with threshold factor
    /// `gamma`; heads too if `per_head`.
    pub fn new(every: usize, gamma: f64, per_head: bool) -> Self {
        Self {
            every: if every == 0 { usize::MAX } else { every },
            gamma,
            per_head,
            steps: 0,
            rows: Vec::new(),
            spent: Duration::ZERO,
            backend: std::marker::PhantomData,
        }
    }

    /// All scores so far, in the order of steps and layers.
    pub fn rows(&self) -> &[ScoreRow] {
        &self.rows
    }

    /// The scores of the last scoring, layer by layer.
    pub fn latest(&self) -> &[ScoreRow] {
        ScoreRow::latest(&self.rows)
    }

    /// Time spent on scoring.
    pub fn spent(&self) -> Duration {
        self.spent
    }

    /// The scores, without the watcher.
    pub fn into_rows(self) -> Vec<ScoreRow> {
        self.rows
    }

    fn score<M>(&mut self, step: usize, model: &M) -> Result<(), TrainError>
    where
        M: AutodiffModule<B>,
        M::InnerModule: HasAttention<B::InnerBackend>,
    {
        let begin = Instant::now();
        // The inner model has no autodiff graph: scoring leaves no trace in memory.
        let model = model.valid();
        for layer in model.attention_layers() {
            let scores = layer
                .attention
                .form()
                .and_then(|form| form.measure(self.gamma, self.per_head))
                .map_err(|source| TrainError::Score {
                    layer: layer.module,
                    step,
                    source,
                })?;
            self.rows.push(ScoreRow {
                step,
                layer: layer.index,
                scores,
            });
        }
        self.spent += begin.elapsed();
        Ok(())
    }
}

impl<B, M> Observer<M> for ScoreWatch<B>
where
    B: AutodiffBackend,
    M: AutodiffModule<B>,
    M::InnerModule: HasAttention<B::InnerBackend>,
{
    fn observe(&mut self, event: &Event<'_, M>) -> Result<(), TrainError> {
        match event {
            Event::Start { model, steps, done } => {
                self.steps = *steps;
                // What is resumed has been scored before.
                if *done == 0 { self.score(0, *model) } else { Ok(()) }
            }
            Event::Step { row, model } if row.step % self.every == 0 || row.step == self.steps => {
                self.score(row.step, *model)
            }
            _ => Ok(()),
        }
    }
}
