//! The loop.

use std::time::Instant;

use burn::module::AutodiffModule;
use burn::optim::{GradientsAccumulator, GradientsParams, Optimizer};
use burn::tensor::ElementConversion;
use burn::tensor::backend::AutodiffBackend;

use super::clip::{clip_global_norm, global_norm};
use super::config::{TrainConfig, TrainError};
use super::observer::{Event, Observer, StepRow};
use super::optimiser::adamw;
use super::task::Task;

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
    mut model: T::Model,
    task: &mut T,
    config: &TrainConfig,
    observers: &mut [&mut dyn Observer<T::Model>],
) -> Result<T::Model, TrainError>
where
    B: AutodiffBackend,
    T: Task<B>,
{
    config.check()?;
    task.check(&model)?;
    let schedule = config.schedule();
    let mut optimiser = adamw::<B, T::Model>(config);
    let begin = Instant::now();
    tell(
        observers,
        &Event::Start {
            model: &model,
            steps: config.steps,
        },
    )?;

    for step in 0..config.steps {
        model = task.at_step(model, step);
        let batches = task.batches(step)?;
        let total: usize = batches.iter().map(|batch| task.weight(batch)).sum();
        let mut loss_sum = 0.0;
        let mut tokens = 0;
        let mut accumulator = GradientsAccumulator::new();
        let mut grads = None;
        let n_batches = batches.len();
        for (part, batch) in batches.into_iter().enumerate() {
            let share = task.weight(&batch) as f64 / total.max(1) as f64;
            tokens += task.tokens(&batch);
            let loss = task.loss(&model, batch, step, part);
            let value: f64 = loss.clone().into_scalar().elem();
            finite("loss", value, step)?;
            loss_sum += share * value;
            let scaled = if n_batches == 1 {
                loss
            } else {
                loss.mul_scalar(share as f32)
            };
            let part_grads = GradientsParams::from_grads(scaled.backward(), &model);
            if n_batches == 1 {
                grads = Some(part_grads);
            } else {
                accumulator.accumulate(&model, part_grads);
            }
        }
        let mut grads = grads.unwrap_or_else(|| accumulator.grads());
        let gradient_norm = if config.clip_norm > 0.0 {
            clip_global_norm::<B, _>(&model, &mut grads, config.clip_norm)
        } else {
            global_norm::<B, _>(&model, &grads)
        };
        finite("gradient norm", gradient_norm, step)?;
        let learning_rate = schedule.rate(step);
        model = optimiser.step(learning_rate, model, grads);

        let done = step + 1;
        let seconds = begin.elapsed().as_secs_f64();
        let row = StepRow {
            step: done,
            loss: loss_sum,
            learning_rate,
            gradient_norm,
            tokens,
            seconds,
        };
        tell(observers, &Event::Step { row, model: &model })?;
        if done == config.steps || (config.eval_every > 0 && done % config.eval_every == 0) {
            let loss = task.evaluate(&model.valid())?;
            finite("held-out loss", loss, step)?;
            tell(observers, &Event::Evaluated { step: done, loss })?;
        }
    }
    Ok(model)
}

fn tell<M>(observers: &mut [&mut dyn Observer<M>], event: &Event<'_, M>) -> Result<(), TrainError> {
    observers
        .iter_mut()
        .try_for_each(|observer| observer.observe(event))
}

fn finite(what: &'static str, value: f64, step: usize) -> Result<(), TrainError> {
    if value.is_finite() {
        Ok(())
    } else {
        Err(TrainError::Diverged { what, value, step })
    }
}
