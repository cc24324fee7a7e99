//! A watcher of what each update does to the bilinear forms.

mod layer;
mod row;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use burn::module::AutodiffModule;
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{Tensor, TensorData};

use layer::{LayerGradient, Watched};
pub use row::UpdateRow;

use super::capture::{CaptureError, capture};
use super::checkpoints::Named;
use super::config::TrainError;
use super::observer::{Event, Observer};
use super::task::TracedTask;
use crate::attention::HasAttention;
use crate::bilinear::{BilinearForm, PairSymmetry};

/// Takes every k-th update, the first and the last of a run apart. Changes are counted from where it began to watch; in
/// a run that a [recipe](super::recipe) describes that is the first update, however often the run is resumed.
///
/// It owns a task like that of the run: batches, corruption and dropout are addressed by step, so the batch of a
/// watched update is made again, run through the model as it was before the update, and its gradient is the one that
/// the optimiser saw (before clipping). That costs about one training step for each one watched; between them
/// nothing.
///
/// # Examples
/// ```no_run
/// # fn watch<B: burn::tensor::backend::AutodiffBackend>(
/// #     model: wqk::model::TextTransformer<B>, task: wqk::train::TextTask<'_, B>, config: &wqk::train::TrainConfig,
/// # ) -> Result<(), wqk::train::TrainError> {
/// use wqk::train::{UpdateWatch, fit};
///
/// let mut watch = UpdateWatch::new(task.clone(), 100);
/// fit::<B, _>(model, &task, config, &mut [&mut watch])?;
/// for row in watch.rows() {
///     println!("{} {} {:?}", row.step, row.layer, row.update_symmetry);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct UpdateWatch<T, B>
where
    B: AutodiffBackend,
    T: TracedTask<B>,
{
    task: T,
    every: usize,
    /// Updates done when it began to watch, and those at the end of the run.
    span: (usize, usize),
    layers: Vec<Watched<B::InnerBackend>>,
    /// The model before the update that comes next, if that is watched.
    before: Option<T::Model>,
    rows: Vec<UpdateRow>,
    spent: Duration,
}

impl<T, B> UpdateWatch<T, B>
where
    B: AutodiffBackend,
    T: TracedTask<B>,
    <T::Model as AutodiffModule<B>>::InnerModule: HasAttention<B::InnerBackend>,
{
    /// Watches the first update, every `every`-th (at least 1) and the last. `task` must be as that of the run.
    pub fn new(task: T, every: usize) -> Self {
        Self {
            task,
            every: every.max(1),
            span: (0, 0),
            layers: Vec::new(),
            before: None,
            rows: Vec::new(),
            spent: Duration::ZERO,
        }
    }

    /// All rows so far, in the order of steps and layers.
    pub fn rows(&self) -> &[UpdateRow] {
        &self.rows
    }

    /// Time spent on watching.
    pub fn spent(&self) -> Duration {
        self.spent
    }

    /// The rows, without the watcher.
    pub fn into_rows(self) -> Vec<UpdateRow> {
        self.rows
    }

    fn is_due(&self, step: usize) -> bool {
        let (done, steps) = self.span;
        step == done + 1 || step == steps || step.is_multiple_of(self.every)
    }

    /// What it must be given again to go on in another process, beside the model.
    pub(super) fn state(&self) -> Vec<Named> {
        self.layers.iter().flat_map(Watched::state).collect()
    }

    /// Goes on where another left off, which watched from the first update.
    ///
    /// # Errors
    /// What of the state does not fit the model.
    pub(super) fn restore(
        &mut self,
        model: &T::Model,
        mut state: BTreeMap<String, TensorData>,
    ) -> Result<(), String> {
        let layers = watched::<B, T>(model).map_err(|error| error.to_string())?;
        self.layers = layers
            .into_iter()
            .map(|layer| layer.restored(&mut state))
            .collect::<Result<_, _>>()?;
        match state.keys().next() {
            Some(name) => Err(format!("it holds '{name}', which the model has not")),
            None => Ok(()),
        }
    }

    fn watch(&mut self, step: usize, before: &T::Model, after: &T::Model) -> Result<(), TrainError> {
        let batches = self.task.batches(step - 1)?;
        let gradients = layer_gradients(&self.task, before, batches, step - 1)
            .map_err(|source| TrainError::Updates { step, source })?;
        let compare = |watched: &mut [Watched<B::InnerBackend>]| -> Result<Vec<UpdateRow>, CaptureError> {
            let (before, after) = (forms::<B, T>(before)?, forms::<B, T>(after)?);
            let forms = before.into_iter().zip(after);
            watched
                .iter_mut()
                .zip(forms.zip(gradients))
                .enumerate()
                .map(|(layer, (watched, (((_, before), (_, after)), gradient)))| {
                    watched
                        .row(step, layer, &before, &after, &gradient)
                        .map_err(|source| CaptureError::Layer {
                            layer: watched.module.clone(),
                            source,
                        })
                })
                .collect()
        };
        let rows = compare(&mut self.layers).map_err(|source| TrainError::Updates { step, source })?;
        self.rows.extend(rows);
        Ok(())
    }
}

/// All layers of a model as they are now.
fn watched<B, T>(model: &T::Model) -> Result<Vec<Watched<B::InnerBackend>>, CaptureError>
where
    B: AutodiffBackend,
    T: TracedTask<B>,
    <T::Model as AutodiffModule<B>>::InnerModule: HasAttention<B::InnerBackend>,
{
    let forms = forms::<B, T>(model)?;
    if forms.is_empty() {
        return Err(CaptureError::NoAttention);
    }
    Ok(forms
        .into_iter()
        .map(|(module, form)| Watched::new(module, form))
        .collect())
}

/// The forms of all layers, with their names and outside any graph.
type Forms<B> = Vec<(String, BilinearForm<B>)>;

fn forms<B, T>(model: &T::Model) -> Result<Forms<B::InnerBackend>, CaptureError>
where
    B: AutodiffBackend,
    T: TracedTask<B>,
    <T::Model as AutodiffModule<B>>::InnerModule: HasAttention<B::InnerBackend>,
{
    let model = model.valid();
    model
        .attention_layers()
        .into_iter()
        .map(|layer| {
            let form = layer.attention.form().map_err(|source| CaptureError::Layer {
                layer: layer.module.clone(),
                source,
            })?;
            Ok((layer.module, form))
        })
        .collect()
}

fn layer_gradients<B, T>(
    task: &T,
    model: &T::Model,
    batches: Vec<T::Batch>,
    step: usize,
) -> Result<Vec<LayerGradient<B::InnerBackend>>, CaptureError>
where
    B: AutodiffBackend,
    T: TracedTask<B>,
    <T::Model as AutodiffModule<B>>::InnerModule: HasAttention<B::InnerBackend>,
{
    let total: usize = batches.iter().map(|batch| task.weight(batch)).sum();
    let mut sums: Vec<LayerGradient<B::InnerBackend>> = Vec::new();
    for (part, batch) in batches.into_iter().enumerate() {
        let share = task.weight(&batch) as f64 / total.max(1) as f64;
        let captured = capture(task, model, batch, (step, part), share)?;
        for (index, layer) in captured.layers.into_iter().enumerate() {
            let weights = layer.weight_gradients()?;
            let heads = layer.gradients.total();
            match sums.get_mut(index) {
                None => sums.push(LayerGradient {
                    weights,
                    total: heads.gradient(),
                    pairs: pairs(&layer.gradients.beta()),
                }),
                // The pairs are those of the first batch, which tells as much as any.
                Some(sum) => {
                    sum.weights.query = sum.weights.query.clone() + weights.query;
                    sum.weights.key = sum.weights.key.clone() + weights.key;
                    sum.total = sum.total.clone() + heads.gradient();
                }
            }
        }
    }
    Ok(sums)
}

/// The pairs of every head: a head by itself has its own error signals.
fn pairs<B: Backend>(beta: &Tensor<B, 4>) -> PairSymmetry {
    let n = beta.dims()[3];
    let beta: Vec<f64> = beta.clone().into_data().iter::<f64>().collect();
    PairSymmetry::of(&beta, n)
}

impl<T, B> Observer<T::Model> for UpdateWatch<T, B>
where
    B: AutodiffBackend,
    T: TracedTask<B>,
    <T::Model as AutodiffModule<B>>::InnerModule: HasAttention<B::InnerBackend>,
{
    fn observe(&mut self, event: &Event<'_, T::Model>) -> Result<(), TrainError> {
        let begin = Instant::now();
        match event {
            Event::Start { model, steps, done } => {
                self.span = (0, *steps);
                if self.layers.is_empty() {
                    self.span.0 = *done;
                    self.layers = watched::<B, T>(model)
                        .map_err(|source| TrainError::Updates { step: *done, source })?;
                }
                self.before = self.is_due(done + 1).then(|| (*model).clone());
            }
            Event::Step { row, model } => {
                if let Some(before) = self.before.take() {
                    // As the loop had it for that update.
                    let before = self.task.at_step(before, row.step - 1);
                    self.watch(row.step, &before, model)?;
                }
                let next = row.step + 1;
                self.before = (next <= self.span.1 && self.is_due(next)).then(|| (*model).clone());
            }
            Event::Evaluated { .. } => {}
        }
        self.spent += begin.elapsed();
        Ok(())
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests;
