//! A model on one batch, as evidence.

use burn::module::AutodiffModule;
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{Device, Int, Tensor, TensorData};

use super::evidence::{Evidence, LayerEvidence};
use super::{Matrix, TheoryError};
use crate::attention::AttentionMask;
use crate::bilinear::Heads;
use crate::model::TextTransformer;
use crate::objective::{ObjectiveMode, Visibility, Vocabulary};
use crate::train::{CaptureError, Task, TextTask, capture};

/// A model, what it is trained for, and what it began as, where that is known.
pub(super) struct Observed<'a, B: AutodiffBackend> {
    pub model: &'a TextTransformer<B>,
    pub start: Option<&'a TextTransformer<B>>,
    pub objective: ObjectiveMode,
    pub vocabulary: &'a Vocabulary,
}

/// The largest vocabulary of which all pairs of tokens are summed.
pub(super) const LARGEST_VOCABULARY: usize = 1024;

impl<B: AutodiffBackend> Observed<'_, B> {
    /// Runs the batch of an update through the model, and back.
    pub(super) fn on(
        &self,
        task: &TextTask<'_, B>,
        step: usize,
        device: &Device<B>,
    ) -> Result<Evidence, TheoryError> {
        let batch = task.batches(step)?.remove(0);
        let name = match self.objective.attention_mask(batch.n) {
            Visibility::Full => "encoder",
            Visibility::Causal => "decoder",
            Visibility::Prefix(_) => "prefix model",
        };
        let captured = capture::<B, _>(task, self.model, batch.clone(), (step, 0), 1.0)?;
        let weights = |model: &TextTransformer<B>, layer: usize| {
            let attention = &model.blocks[layer].attention;
            [&attention.query, &attention.key].map(|linear| matrix(linear.weight.val().inner()))
        };
        let layers = captured
            .layers
            .iter()
            .enumerate()
            .map(|(index, layer)| {
                let attention = &self.model.blocks[index].attention;
                let no_gradient = || CaptureError::NoGradient {
                    layer: layer.module.clone(),
                };
                let gradient = |weight: Option<Tensor<B::InnerBackend, 2>>| weight.ok_or_else(no_gradient);
                Ok(LayerEvidence {
                    module: format!("{name} {}", layer.module),
                    heads: Heads::grouped(
                        layer.form.heads_layout().n_heads(),
                        layer.form.heads_layout().n_kv_heads(),
                    ),
                    x: sequences(layer.gradients.x()),
                    beta: by_head(layer.gradients.beta()),
                    scores: by_head(layer.scores.clone()),
                    weights: by_head(layer.weights.clone()),
                    queries: by_head(layer.queries.clone()),
                    keys: by_head(layer.keys.clone()),
                    w_q: matrix(layer.form.w_q()),
                    w_k: matrix(layer.form.w_k()),
                    start: self.start.map(|model| weights(model, index).into()),
                    grad_q: matrix(gradient(attention.query.weight.grad(&captured.gradients))?),
                    grad_k: matrix(gradient(attention.key.weight.grad(&captured.gradients))?),
                    deviation: layer.deviation(),
                })
            })
            .collect::<Result<Vec<_>, CaptureError>>()?;
        Ok(Evidence {
            name: name.to_owned(),
            objective: self.objective,
            pair_sums: self.pair_sums(&batch.inputs[..batch.n], device),
            updates: Vec::new(),
            vocabulary: self.vocabulary.size,
            batch,
            layers,
        })
    }

    /// `Σ_b p(x_i = a | …) p(x_j = b | …)` for each `a`, with the conditionals of the model for two neighbouring tokens
    /// in the middle of a sequence. A decoder gives `p(a | before) p(b | before, a)`; an encoder
    /// `p(a | b, rest) p(b | a, rest)`, the token in question masked. None of a vocabulary whose pairs are too many.
    fn pair_sums(&self, tokens: &[u32], device: &Device<B>) -> Vec<f64> {
        let (n, size) = (tokens.len(), self.vocabulary.size);
        // Two neighbours need one more.
        if size > LARGEST_VOCABULARY || n < 3 {
            return Vec::new();
        }
        let model = self.model.valid();
        let at = n / 2;
        let sees = self.objective.attention_mask(n);
        let causal = sees != Visibility::Full;
        let mask =
            causal.then(|| AttentionMask::<B::InnerBackend>::from_fn(n, |q, k| sees.sees(q, k), device));
        // The probabilities of all tokens at one position, for each content of another.
        let table = |read: usize, hidden: Option<usize>, varied: usize| -> Matrix {
            const AT_ONCE: usize = 64;
            let contents: Vec<usize> = (0..size).collect();
            let mut rows = Vec::with_capacity(size * size);
            for contents in contents.chunks(AT_ONCE) {
                let inputs: Vec<i32> = contents
                    .iter()
                    .flat_map(|&content| {
                        let mut sequence: Vec<i32> = tokens.iter().map(|&t| t as i32).collect();
                        sequence[varied] = content as i32;
                        if let (Some(hidden), Some(mask)) = (hidden, self.vocabulary.mask) {
                            sequence[hidden] = mask as i32;
                        }
                        sequence
                    })
                    .collect();
                let count = contents.len();
                let inputs = TensorData::new(inputs, [count, n]);
                let inputs = Tensor::<B::InnerBackend, 2, Int>::from_data(inputs, device);
                let hidden = model.forward(inputs, mask.as_ref(), None);
                let width = hidden.dims()[2];
                let row = hidden
                    .slice([0..count, read..read + 1, 0..width])
                    .reshape([count, width]);
                let p = burn::tensor::activation::softmax(model.logits(row), 1);
                // A model may have more tokens than the tokenizer.
                let p = p.slice([0..count, 0..size]);
                rows.extend(p.into_data().iter::<f64>());
            }
            Matrix::from_values(size, size, &rows)
        };
        if causal {
            // Predictions stand one position before what they predict. The first does not see what is varied.
            let first = table(at - 1, None, n - 1);
            let second = table(at, None, at);
            (0..size)
                .map(|a| first.at(0, a) * second.row(a).iter().sum::<f64>())
                .collect()
        } else {
            // first[b][a] = p(a | b), second[a][b] = p(b | a).
            let first = table(at, Some(at), at + 1);
            let second = table(at + 1, Some(at + 1), at);
            (0..size)
                .map(|a| (0..size).map(|b| first.at(b, a) * second.at(a, b)).sum())
                .collect()
        }
    }
}

fn matrix<B: Backend>(x: Tensor<B, 2>) -> Matrix {
    let [rows, columns] = x.dims();
    let values: Vec<f64> = x.into_data().iter::<f64>().collect();
    Matrix::from_values(rows, columns, &values)
}

fn sequences<B: Backend>(x: Tensor<B, 3>) -> Vec<Matrix> {
    let [_, n, d] = x.dims();
    let values: Vec<f64> = x.into_data().iter::<f64>().collect();
    values
        .chunks_exact(n * d)
        .map(|values| Matrix::from_values(n, d, values))
        .collect()
}

/// `[batch, heads, n, m]` by head and sequence.
fn by_head<B: Backend>(x: Tensor<B, 4>) -> Vec<Vec<Matrix>> {
    let [batch, heads, n, m] = x.dims();
    let values: Vec<f64> = x.into_data().iter::<f64>().collect();
    (0..heads)
        .map(|head| {
            (0..batch)
                .map(|sequence| {
                    let from = (sequence * heads + head) * n * m;
                    Matrix::from_values(n, m, &values[from..from + n * m])
                })
                .collect()
        })
        .collect()
}
