//! The gradients of an update, from one device or several.

use burn::module::Module;
use burn::optim::{GradientsAccumulator, GradientsParams};
use burn::tensor::backend::AutodiffBackend;
use burn::tensor::{Device, ElementConversion};

use super::config::TrainError;
use super::fit::finite;
use super::task::Task;

/// What an update is made of.
pub(super) struct Update {
    /// Gradients of the mean loss over all predictions, on the device of the model.
    pub gradients: GradientsParams,
    /// The mean loss over all predictions.
    pub loss: f64,
    /// Input tokens.
    pub tokens: usize,
}

/// The devices that share the batches of an update: that of the model and others.
///
/// Batch `p` of an update goes to device `p mod D`. A round of `D` batches is done at once, each on a copy of the
/// model on its device; the gradients come back to the model's device and are added there in the order of the
/// batches, each with its share of the predictions. One device does the same sums in the same order, so on
/// devices that compute alike the result is the same to the last bit. The copies are made anew at each update:
/// one transfer of the weights and one of the gradients for each device and update.
///
/// Burn's own `ExecutionStrategy` belongs to its learner, which steps its schedule by epochs and keeps neither the
/// position in the data nor ours of checkpoints; its collective all-reduce exists on some backends only. This
/// works on all of them.
pub struct Devices<B: AutodiffBackend> {
    others: Vec<Device<B>>,
}

impl<B: AutodiffBackend> Devices<B> {
    /// The device of the model and these.
    pub(super) fn new(others: &[Device<B>]) -> Self {
        Self {
            others: others.to_vec(),
        }
    }

    /// The gradients of all batches of an update.
    pub(super) fn gradients<T: Task<B>>(
        &self,
        task: &T,
        model: &T::Model,
        batches: Vec<T::Batch>,
        step: usize,
    ) -> Result<Update, TrainError> {
        let total: usize = batches.iter().map(|batch| task.weight(batch)).sum();
        let tokens = batches.iter().map(|batch| task.tokens(batch)).sum();
        let share = |batch: &T::Batch| task.weight(batch) as f64 / total.max(1) as f64;
        let alone = batches.len() == 1;
        let copies: Vec<T::Model> = match alone {
            true => Vec::new(),
            false => self
                .others
                .iter()
                .map(|device| model.clone().fork(device))
                .collect(),
        };
        let home = model.devices().into_iter().next().unwrap_or_default();

        let mut accumulator = GradientsAccumulator::new();
        let mut loss = 0.0;
        let mut parts = batches.into_iter().enumerate();
        loop {
            let round: Vec<_> = parts.by_ref().take(1 + copies.len()).collect();
            if round.is_empty() {
                break;
            }
            for part in self.round(task, model, &copies, round, step, alone, share) {
                let (share, value, gradients) = part;
                finite("loss", value, step)?;
                loss += share * value;
                if alone {
                    return Ok(Update {
                        gradients,
                        loss,
                        tokens,
                    });
                }
                let gradients = match copies.is_empty() {
                    true => gradients,
                    false => gradients.to_device::<B, _>(&home, model),
                };
                accumulator.accumulate(model, gradients);
            }
        }
        Ok(Update {
            gradients: accumulator.grads(),
            loss,
            tokens,
        })
    }

    /// One batch on each device: its share of the update, its mean loss and its gradients, in the order of the
    /// batches.
    #[expect(clippy::too_many_arguments, reason = "one caller")]
    fn round<T: Task<B>>(
        &self,
        task: &T,
        model: &T::Model,
        copies: &[T::Model],
        round: Vec<(usize, T::Batch)>,
        step: usize,
        alone: bool,
        share: impl Fn(&T::Batch) -> f64,
    ) -> Vec<(f64, f64, GradientsParams)> {
        let one = |model: &T::Model, part: usize, share: f64, batch: T::Batch| {
            let loss = task.loss(model, batch, step, part);
            let value: f64 = loss.clone().into_scalar().elem();
            let scaled = if alone {
                loss
            } else {
                loss.mul_scalar(share as f32)
            };
            (
                share,
                value,
                GradientsParams::from_grads(scaled.backward(), model),
            )
        };
        std::thread::scope(|scope| {
            let mut round = round.into_iter();
            let first = round.next();
            let others: Vec<_> = round
                .zip(copies)
                .map(|((part, batch), copy)| {
                    let (copy, share) = (copy.clone(), share(&batch));
                    scope.spawn(move || one(&copy, part, share, batch))
                })
                .collect();
            let first = first.map(|(part, batch)| one(model, part, share(&batch), batch));
            first
                .into_iter()
                .chain(others.into_iter().map(|other| match other.join() {
                    Ok(part) => part,
                    Err(panic) => std::panic::resume_unwind(panic),
                }))
                .collect()
        })
    }
}
