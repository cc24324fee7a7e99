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
    /// Seconds since the run began.
    pub seconds: f64,
}

/// What a run tells its observers.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a, M> {
    /// The run begins with this model.
    Start {
        /// The model before any update.
        model: &'a M,
        /// How many updates the run will do.
        steps: usize,
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
        /// Updates done.
        step: usize,
        /// Mean loss over the predicted positions, in nats.
        loss: f64,
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
    /// Scores whole layers every `every` updates with threshold factor `gamma`; heads too if `per_head`.
    pub fn new(every: usize, gamma: f64, per_head: bool) -> Self {
        Self {
            every: every.max(1),
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
            Event::Start { model, steps } => {
                self.steps = *steps;
                self.score(0, *model)
            }
            Event::Step { row, model } if row.step % self.every == 0 || row.step == self.steps => {
                self.score(row.step, *model)
            }
            _ => Ok(()),
        }
    }
}
