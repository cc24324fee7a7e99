//! Everything that a run carries from one update to the next.

use burn::module::AutodiffModule;
use burn::tensor::backend::AutodiffBackend;
use serde::{Deserialize, Serialize};

use super::average::WeightAverage;
use super::checkpoints::RunOptimiser;
use super::config::TrainConfig;
use super::optimiser::adamw;

/// The lowest held-out loss of a run so far.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// Updates done when it was measured.
    pub step: usize,
    /// The loss in nats: of the averaged weights where there are any.
    pub loss: f64,
}

/// A run between two updates.
///
/// There is no generator in it and no position in the data: both are addressed by the step.
#[derive(Clone)]
pub struct TrainState<B: AutodiffBackend, M: AutodiffModule<B>> {
    /// The model.
    pub model: M,
    /// Updates done.
    pub step: usize,
    /// Seconds spent on them.
    pub seconds: f64,
    /// The lowest held-out loss so far.
    pub best: Option<Best>,
    /// The average of the weights, where one is kept.
    pub average: Option<WeightAverage<B, M>>,
    pub(super) optimiser: RunOptimiser<B, M>,
}

impl<B: AutodiffBackend, M: AutodiffModule<B>> TrainState<B, M> {
    /// The state before the first update.
    pub fn new(model: M, config: &TrainConfig) -> Self {
        Self {
            average: config
                .average
                .map(|average| WeightAverage::new(average, model.valid())),
            model,
            step: 0,
            seconds: 0.0,
            best: None,
            optimiser: adamw(config),
        }
    }

    /// A model with the averaged weights, where an average is kept.
    pub fn averaged(&self) -> Option<M::InnerModule> {
        let average = self.average.as_ref()?;
        Some(average.within(self.model.valid()))
    }

    /// Takes in a held-out loss and says whether it is the lowest so far.
    pub(super) fn improved(&mut self, loss: f64) -> bool {
        let better = self.best.is_none_or(|best| loss < best.loss);
        if better {
            self.best = Some(Best {
                step: self.step,
                loss,
            });
        }
        better
    }
}
