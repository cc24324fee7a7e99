//! The loop.

use std::sync::mpsc::sync_channel;
use std::time::Instant;

use burn::module::AutodiffModule;
use burn::optim::Optimizer;
use burn::tensor::Device;
use burn::tensor::backend::AutodiffBackend;

use super::clip::{clip_global_norm, global_norm};
use super::config::{TrainConfig, TrainError};
use super::devices::Devices;
use super::observer::{Event, HeldOutRow, Observer, StepRow};
use super::state::TrainState;
use super::task::Task;

/// Updates whose batches are made ahead of time.
const AHEAD: usize = 2;

/// Sees a run as an [`Observer`] does, and its whole state after every update, to keep it.
pub trait Keeper<B: AutodiffBackend, M: AutodiffModule<B>>: Observer<M> {
    /// Sees the state after an update and its evaluation, if there was one; `improved` where that gave the
    /// lowest held-out loss so far.
    ///
    /// # Errors
    /// As [`Observer::observe`]: [`TrainError::Stopped`] once the state is safe, for a wish to stop.
    fn keep(&mut self, state: &TrainState<B, M>, improved: bool) -> Result<(), TrainError>;
}

/// A [`Keeper`] that keeps nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct KeepNothing;

impl<M> Observer<M> for KeepNothing {
    fn observe(&mut self, _event: &Event<'_, M>) -> Result<(), TrainError> {
        Ok(())
    }
}

impl<B: AutodiffBackend, M: AutodiffModule<B>> Keeper<B, M> for KeepNothing {
    fn keep(&mut self, _state: &TrainState<B, M>, _improved: bool) -> Result<(), TrainError> {
        Ok(())
    }
}

/// Trains a model on a task and returns it.
///
/// Each update takes `accumulation` batches. Their gradients are weighted by the number of predictions in
/// each, so that the update is that of one batch with all of them: the mean over predicted positions, not
/// the mean of means.
///
/// # Errors
/// [`TrainError::Invalid`] before the first step; [`TrainError::Diverged`] when loss or gradients are not
/// finite (the model is then lost, its last checkpoint is not); whatever the task or an observer returns.
pub fn fit<B, T>(
    model: T::Model,
    task: &T,
    config: &TrainConfig,
    observers: &mut [&mut dyn Observer<T::Model>],
) -> Result<T::Model, TrainError>
where
    B: AutodiffBackend,
    T: Task<B>,
{
    let state = TrainState::new(model, config);
    fit_from(state, task, config, &[], &mut KeepNothing, observers).map(|state| state.model)
}

/// Trains from any state, such as that of a checkpoint, to the end of the run, as [`fit`] does.
///
/// Beside the device of the model, the batches of an update are spread over `others`: see
/// [`Devices`](super::devices::Devices). After every update `keeper` sees the whole state.
///
/// # Errors
/// As [`fit`], and whatever the keeper returns.
pub fn fit_from<B, T>(
    mut state: TrainState<B, T::Model>,
    task: &T,
    config: &TrainConfig,
    others: &[Device<B>],
    keeper: &mut dyn Keeper<B, T::Model>,
    observers: &mut [&mut dyn Observer<T::Model>],
) -> Result<TrainState<B, T::Model>, TrainError>
where
    B: AutodiffBackend,
    T: Task<B>,
{
    config.check()?;
    task.check(&state.model)?;
    let schedule = config.schedule();
    let devices = Devices::<B>::new(others);
    let (begin, before) = (Instant::now(), state.seconds);
    let mut tell = |keeper: &mut dyn Keeper<B, T::Model>, event: &Event<'_, T::Model>| {
        keeper.observe(event)?;
        observers
            .iter_mut()
            .try_for_each(|observer| observer.observe(event))
    };
    let start = Event::Start {
        model: &state.model,
        steps: config.steps,
        done: state.step,
    };
    tell(keeper, &start)?;

    std::thread::scope(|scope| {
        // Batches are made while earlier updates run. They are addressed by step, so nothing depends on when.
        let (sender, receiver) = sync_channel(AHEAD);
        let first = state.step;
        scope.spawn(move || {
            for step in first..config.steps {
                if sender.send(task.batches(step)).is_err() {
                    break;
                }
            }
        });

        for step in first..config.steps {
            let waiting = Instant::now();
            let batches = receiver.recv().map_err(|_| TrainError::Stopped { step })??;
            let waited = waiting.elapsed().as_secs_f64();

            state.model = task.at_step(state.model, step);
            let mut update = devices.gradients(task, &state.model, batches, step)?;
            finite("loss", update.loss, step)?;
            let gradient_norm = if config.clip_norm > 0.0 {
                clip_global_norm::<B, _>(&state.model, &mut update.gradients, config.clip_norm)
            } else {
                global_norm::<B, _>(&state.model, &update.gradients)
            };
            finite("gradient norm", gradient_norm, step)?;
            let learning_rate = schedule.rate(step);
            state.model = state.optimiser.step(learning_rate, state.model, update.gradients);
            state.step = step + 1;
            if let Some(average) = &mut state.average {
                average.update(state.step, &state.model);
            }
            state.seconds = before + begin.elapsed().as_secs_f64();
            let row = StepRow {
                step: state.step,
                loss: update.loss,
                learning_rate,
                gradient_norm,
                tokens: update.tokens,
                seconds: state.seconds,
                waited,
            };
            tell(
                keeper,
                &Event::Step {
                    row,
                    model: &state.model,
                },
            )?;

            let mut improved = false;
            let due = config.eval_every > 0 && state.step % config.eval_every == 0;
            if due || state.step == config.steps {
                let row = evaluate(task, &state)?;
                finite("held-out loss", row.final_loss(), step)?;
                improved = state.improved(row.final_loss());
                tell(keeper, &Event::Evaluated { row })?;
            }
            keeper.keep(&state, improved)?;
        }
        Ok(state)
    })
}

fn evaluate<B: AutodiffBackend, T: Task<B>>(
    task: &T,
    state: &TrainState<B, T::Model>,
) -> Result<HeldOutRow, TrainError> {
    let evaluation = task.evaluate(&state.model.valid())?;
    let averaged = state.averaged().map(|model| task.evaluate(&model)).transpose()?;
    Ok(HeldOutRow::new(state.step, evaluation, averaged))
}

pub(super) fn finite(what: &'static str, value: f64, step: usize) -> Result<(), TrainError> {
    if value.is_finite() {
        Ok(())
    } else {
        Err(TrainError::Diverged { what, value, step })
    }
}
