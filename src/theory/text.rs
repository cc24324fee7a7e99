//! An encoder and a decoder, trained briefly on real text, and what they show of their attention.

use burn::module::AutodiffModule;
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{Device, Int, Tensor, TensorData};

use super::Matrix;
use super::evidence::{Evidence, LayerEvidence};
use crate::attention::AttentionMask;
use crate::bilinear::{Heads, Summary};
use crate::data::{DataError, Document, Packed, Tokenizer};
use crate::model::{TextTransformer, TextTransformerConfig};
use crate::objective::{ObjectiveError, ObjectiveMode, Visibility};
use crate::train::{
    CaptureError, Event, Observer, Task, TextData, TextTask, TrainConfig, TrainError, UpdateWatch, capture,
    fit,
};

/// How the models are made and trained.
#[derive(Debug, Clone, PartialEq)]
pub struct TextSettings {
    /// Updates of each model.
    pub steps: usize,
    /// Tokens of a sequence.
    pub sequence: usize,
    /// The width of the models.
    pub width: usize,
    /// Their layers.
    pub layers: usize,
    /// Their heads.
    pub heads: usize,
    /// Sequences in a batch.
    pub batch: usize,
    /// Different characters that get a token of their own.
    pub alphabet: usize,
    /// The seed of everything.
    pub seed: u64,
}

impl Default for TextSettings {
    /// As `wqk demo`, with fewer updates.
    fn default() -> Self {
        Self {
            steps: 400,
            sequence: 64,
            width: 64,
            layers: 2,
            heads: 4,
            batch: 32,
            alphabet: 95,
            seed: 0,
        }
    }
}

/// What can go wrong on the way to a verdict.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TheoryError {
    /// A claim that does not exist.
    #[error("there is no claim '{name}': choose from {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// The text cannot be read or is too short.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A model cannot be trained.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// A model does not show its attention.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// An objective cannot be built.
    #[error(transparent)]
    Objective(#[from] ObjectiveError),
}

/// Both models on the same text, and the text.
#[derive(Debug, Clone)]
pub struct TextEvidence {
    /// Trained to fill in masked tokens.
    pub encoder: Evidence,
    /// Trained to predict the next token.
    pub decoder: Evidence,
    /// The text in sequences of equal length, cut without regard to documents, as the models are fed it.
    pub packed: Vec<Vec<u32>>,
    /// The first tokens of each document that is long enough.
    pub openings: Vec<Vec<u32>>,
    /// How each token is written.
    pub symbols: Vec<String>,
    /// Where it comes from, for a report.
    pub source: String,
}

/// The most sequences that are kept for counting: enough that a standard error is far below any effect.
const COUNTED: usize = 20_000;

impl TextEvidence {
    /// Trains both models on a text, and runs one more batch through each.
    ///
    /// `progress` is called after every update with the name of the model and the updates done.
    ///
    /// # Errors
    /// [`TheoryError`], where the text is too short, a setting impossible, or training goes astray.
    pub fn train<B: AutodiffBackend>(
        documents: &[Document],
        source: &str,
        settings: &TextSettings,
        device: &Device<B>,
        progress: &dyn Fn(&str, usize),
    ) -> Result<Self, TheoryError> {
        let n = settings.sequence;
        let texts = || documents.iter().map(|document| Ok(document.clone()));
        let tokenizer =
            Tokenizer::characters(documents.iter().map(|d| Ok(d.with_title())), settings.alphabet)?;
        let (train, held_out) = Packed::new(texts(), &tokenizer, n)?.hold_out(0.02)?;
        let data = TextData {
            train: &train,
            held_out: &held_out,
            vocabulary: tokenizer.vocabulary(),
        };
        let run = |name: &str, objective| train_one::<B>(name, objective, data, settings, device, progress);
        let (encoder, decoder) = (
            run("encoder", ObjectiveMode::masked(0.15)?)?,
            run("decoder", ObjectiveMode::autoregressive())?,
        );
        let mut openings = Vec::new();
        for document in documents {
            let tokens = tokenizer.encode(&document.with_title())?;
            openings.extend(tokens.get(..n).map(<[u32]>::to_vec));
        }
        let symbols = (0..data.vocabulary.size as u32)
            .map(|id| tokenizer.decode(&[id]))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            encoder,
            decoder,
            packed: train
                .tokens()
                .chunks_exact(n)
                .take(COUNTED)
                .map(<[u32]>::to_vec)
                .collect(),
            openings,
            symbols,
            source: format!(
                "{source}, {} layers {} wide, {} updates, seed {}",
                settings.layers, settings.width, settings.steps, settings.seed
            ),
        })
    }

    /// Both models.
    pub fn models(&self) -> [&Evidence; 2] {
        [&self.encoder, &self.decoder]
    }
}

/// Tells how far a run is.
struct Follow<'a> {
    name: &'a str,
    progress: &'a dyn Fn(&str, usize),
}

impl<M> Observer<M> for Follow<'_> {
    fn observe(&mut self, event: &Event<'_, M>) -> Result<(), TrainError> {
        if let Event::Step { row, .. } = event {
            (self.progress)(self.name, row.step);
        }
        Ok(())
    }
}

fn train_one<B: AutodiffBackend>(
    name: &str,
    objective: ObjectiveMode,
    data: TextData<'_>,
    settings: &TextSettings,
    device: &Device<B>,
    progress: &dyn Fn(&str, usize),
) -> Result<Evidence, TheoryError> {
    let config = TrainConfig {
        steps: settings.steps,
        batch_size: settings.batch,
        accumulation: 1,
        learning_rate: 1e-3,
        warmup_steps: 50.min(settings.steps / 4),
        seed: settings.seed,
        ..TrainConfig::default()
    };
    let model = TextTransformerConfig::new(
        data.vocabulary.size,
        settings.width,
        settings.layers,
        settings.heads,
    )
    .with_max_positions(settings.sequence)
    .with_dropout(0.0)
    .with_attention_dropout(0.0)
    .init::<B>(settings.seed, device)
    .map_err(TrainError::from)?;
    let task = TextTask::<B>::new(objective, data, &config)?;
    let mut watch = UpdateWatch::new(task.clone(), (settings.steps / 8).max(1));
    let mut follow = Follow { name, progress };
    let start = model.clone();
    let model = fit::<B, _>(model, &task, &config, &mut [&mut watch, &mut follow])?;
    // The batch that would have come next: the models have not been trained on it, or not of late.
    let batch = task.batches(settings.steps)?.remove(0);
    let captured = capture::<B, _>(&task, &model, batch.clone(), (settings.steps, 0), 1.0)?;
    let layers = captured
        .layers
        .iter()
        .zip(model.blocks.iter().zip(&start.blocks))
        .map(|(layer, (block, before))| {
            let (query, key) = (&block.attention.query.weight, &block.attention.key.weight);
            let no_gradient = || CaptureError::NoGradient {
                layer: layer.module.clone(),
            };
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
                start: (
                    matrix(before.attention.query.weight.val().inner()),
                    matrix(before.attention.key.weight.val().inner()),
                ),
                grad_q: matrix(query.grad(&captured.gradients).ok_or_else(no_gradient)?),
                grad_k: matrix(key.grad(&captured.gradients).ok_or_else(no_gradient)?),
                deviation: layer.deviation(),
            })
        })
        .collect::<Result<Vec<_>, CaptureError>>()?;
    Ok(Evidence {
        name: name.to_owned(),
        objective,
        pair_sums: pair_sums(&model.valid(), objective, &batch.inputs[..batch.n], data, device),
        updates: updates(&watch, layers.len()),
        batch,
        layers,
    })
}

/// Medians over the watched steps.
fn updates<B: AutodiffBackend>(
    watch: &UpdateWatch<TextTask<'_, B>, B>,
    layers: usize,
) -> Vec<(usize, f64, f64)> {
    (0..layers)
        .filter_map(|layer| {
            let rows = || watch.rows().iter().filter(move |row| row.layer == layer);
            let symmetry = Summary::of(rows().filter_map(|row| row.update_symmetry))?;
            let cosine = Summary::of(rows().filter_map(|row| row.first_order_cosine))?;
            Some((layer, symmetry.median, cosine.median))
        })
        .collect()
}

/// `Σ_b p(x_i = a | …) p(x_j = b | …)` for each `a`, with the conditionals of the model for two neighbouring tokens in
/// the middle of a sequence. A decoder gives `p(a | before) p(b | before, a)`; an encoder
/// `p(a | b, rest) p(b | a, rest)`, the token in question masked.
fn pair_sums<B: Backend>(
    model: &TextTransformer<B>,
    objective: ObjectiveMode,
    tokens: &[u32],
    data: TextData<'_>,
    device: &Device<B>,
) -> Vec<f64> {
    let (n, size) = (tokens.len(), data.vocabulary.size);
    let at = n / 2;
    let causal = objective.attention_mask(n) != Visibility::Full;
    let mask = causal.then(|| AttentionMask::<B>::causal(n, device));
    // The log-probabilities of all tokens at one position, for each content of another.
    let table = |read: usize, hidden: Option<usize>, varied: usize| -> Matrix {
        let inputs: Vec<i32> = (0..size)
            .flat_map(|content| {
                let mut sequence: Vec<i32> = tokens.iter().map(|&t| t as i32).collect();
                sequence[varied] = content as i32;
                if let (Some(hidden), Some(mask)) = (hidden, data.vocabulary.mask) {
                    sequence[hidden] = mask as i32;
                }
                sequence
            })
            .collect();
        let inputs = Tensor::<B, 2, Int>::from_data(TensorData::new(inputs, [size, n]), device);
        let hidden = model.forward(inputs, mask.as_ref(), None);
        let width = hidden.dims()[2];
        let row = hidden
            .slice([0..size, read..read + 1, 0..width])
            .reshape([size, width]);
        matrix(burn::tensor::activation::softmax(model.logits(row), 1))
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
