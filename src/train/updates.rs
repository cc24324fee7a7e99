//! A watcher of what each update does to the bilinear forms.

use std::io::Write;
use std::time::{Duration, Instant};

use burn::module::AutodiffModule;
use burn::tensor::Tensor;
use burn::tensor::backend::{AutodiffBackend, Backend};
use serde::{Deserialize, Serialize};

use super::capture::{CaptureError, capture};
use super::config::TrainError;
use super::observer::{Event, Observer};
use super::task::TracedTask;
use crate::attention::HasAttention;
use crate::bilinear::{BilinearError, BilinearForm, Directionality, PairSymmetry, WeightGradients};

/// What one update did to the form of one layer, and what its gradient says.
///
/// All are of whole layers, heads summed. Symmetries are absent for zero matrices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdateRow {
    /// Updates done, the watched one included.
    pub step: usize,
    /// Index of the self-attention layer, from 0.
    pub layer: usize,
    /// Symmetry of `W_qk` after the update.
    pub weights_symmetry: Option<f64>,
    /// Its directionality, variant `Excess`.
    pub weights_directionality: f64,
    /// Symmetry of `G = Σ_h Xᵀ B_h X`, the gradient in the form itself.
    pub gradient_symmetry: Option<f64>,
    /// Directionality of `G`, variant `Excess`.
    pub gradient_directionality: f64,
    /// `Σ β_ij β_ji / Σ β_ij²` over pairs of different positions, all heads: see
    /// [`PairSymmetry::symmetry`](crate::bilinear::PairSymmetry::symmetry).
    pub pair_symmetry: Option<f64>,
    /// The share of pairs whose both ends carry an error:
    /// [`PairSymmetry::mutual`](crate::bilinear::PairSymmetry::mutual).
    pub mutual_pairs: Option<f64>,
    /// Symmetry of the exact update `ΔW_qk` of this step.
    pub update_symmetry: Option<f64>,
    /// Directionality of the update, variant `Excess`.
    pub update_directionality: f64,
    /// Frobenius norm of the update.
    pub update_norm: f64,
    /// Cosine between the update and what plain gradient descent would do to first order.
    pub first_order_cosine: Option<f64>,
    /// Symmetry of `W_qk − W_qk(0)`, all that training has added.
    pub change_symmetry: Option<f64>,
    /// Its directionality, variant `Excess`.
    pub change_directionality: f64,
    /// Its Frobenius norm.
    pub change_norm: f64,
    /// `‖Σ ΔW_qk − (W_qk − W_qk(0))‖` over that norm: what the exact updates, accumulated from one watched step to
    /// the next, miss of the change of the weights. Rounding alone.
    pub accumulation_error: f64,
}

impl UpdateRow {
    /// Writes rows as CSV with a header.
    ///
    /// # Errors
    /// What the writer says.
    pub fn write_csv(rows: &[Self], writer: impl Write) -> std::io::Result<()> {
        let mut csv = csv::Writer::from_writer(writer);
        for row in rows {
            csv.serialize(row).map_err(std::io::Error::other)?;
        }
        csv.flush()
    }
}

/// Takes every k-th update, the first and the last of a run apart. Changes are counted from where the run begins, or is
/// resumed.
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
    /// Updates done when the run began or was resumed, and those at its end.
    span: (usize, usize),
    layers: Vec<Watched<B::InnerBackend>>,
    /// The model before the update that comes next, if that is watched.
    before: Option<T::Model>,
    rows: Vec<UpdateRow>,
    spent: Duration,
}

/// What is kept of a layer.
#[derive(Debug)]
struct Watched<B: Backend> {
    module: String,
    first: Tensor<B, 2>,
    /// At the last watched step.
    last: BilinearForm<B>,
    /// The exact updates from one watched step to the next, summed.
    sum: Tensor<B, 2>,
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

    fn begin(&mut self, model: &T::Model) -> Result<(), CaptureError> {
        self.layers = forms::<B, T>(model)?
            .into_iter()
            .map(|(module, form)| {
                let first = form.full();
                Watched {
                    module,
                    sum: first.zeros_like(),
                    first,
                    last: form,
                }
            })
            .collect();
        if self.layers.is_empty() {
            return Err(CaptureError::NoAttention);
        }
        Ok(())
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

/// What the batches of one update say of one layer, summed.
struct LayerGradient<B: Backend> {
    weights: WeightGradients<B>,
    total: Tensor<B, 2>,
    pairs: PairSymmetry,
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

impl<B: Backend> Watched<B> {
    fn row(
        &mut self,
        step: usize,
        layer: usize,
        before: &BilinearForm<B>,
        after: &BilinearForm<B>,
        gradient: &LayerGradient<B>,
    ) -> Result<UpdateRow, BilinearError> {
        let update = before.update_to(after)?;
        let moments = update.moments();
        // The rate does not change a cosine.
        let first_order = before.first_order_update(&gradient.weights, 1.0)?;
        self.sum = self.sum.clone() + self.last.update_to(after)?.full();
        self.last = after.clone();
        let change = after.full() - self.first.clone();
        let missed = norm(self.sum.clone() - change.clone());
        let change = BilinearForm::from_matrix(change)?.moments();
        let total = BilinearForm::from_matrix(gradient.total.clone())?.moments();
        let weights = after.moments();
        let excess = Directionality::excess();
        Ok(UpdateRow {
            step,
            layer,
            weights_symmetry: weights.symmetry(),
            weights_directionality: weights.directionality(excess)?,
            gradient_symmetry: total.symmetry(),
            gradient_directionality: total.directionality(excess)?,
            pair_symmetry: gradient.pairs.symmetry,
            mutual_pairs: gradient.pairs.mutual,
            update_symmetry: moments.symmetry(),
            update_directionality: moments.directionality(excess)?,
            update_norm: moments.frobenius_norm(),
            first_order_cosine: update.cosine(&first_order)?,
            change_symmetry: change.symmetry(),
            change_directionality: change.directionality(excess)?,
            change_norm: change.frobenius_norm(),
            accumulation_error: if missed == 0.0 {
                0.0
            } else {
                missed / change.frobenius_norm()
            },
        })
    }
}

fn norm<B: Backend>(x: Tensor<B, 2>) -> f64 {
    let data = x.into_data();
    data.iter::<f64>().map(|x| x * x).sum::<f64>().sqrt()
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
                self.span = (*done, *steps);
                self.begin(model)
                    .map_err(|source| TrainError::Updates { step: *done, source })?;
                self.before = Some((*model).clone());
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
