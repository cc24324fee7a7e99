//! The watcher on runs of a tiny model.

use burn::tensor::Tensor;

use super::*;
use crate::attention::AttentionTrace;
use crate::backend::{Autodiff, Flex};
use crate::data::Packed;
use crate::model::{TextTransformer, TextTransformerConfig};
use crate::objective::{ObjectiveMode, Prepared, Vocabulary};
use crate::train::{Evaluation, Task, TextData, TextTask, TrainConfig, fit};

type B = Autodiff<Flex>;

const N: usize = 16;

fn text() -> Packed {
    let tokens = (0..40 * N).map(|i| 5 + ((i * i / 3 + i) % 20) as u32).collect();
    Packed::from_tokens(tokens, N).unwrap()
}

fn vocabulary() -> Vocabulary {
    Vocabulary {
        mask: Some(4),
        ..Vocabulary::new(25)
    }
}

fn model() -> TextTransformerConfig {
    TextTransformerConfig::new(25, 16, 2, 2)
        .with_n_kv_heads(Some(1))
        .with_max_positions(N)
}

/// Two batches an update, with dropout: all that a repeated batch must repeat.
fn settings(steps: usize) -> TrainConfig {
    TrainConfig {
        steps,
        batch_size: 4,
        accumulation: 2,
        learning_rate: 1e-3,
        warmup_steps: 0,
        ..TrainConfig::default()
    }
}

fn rows(steps: usize, every: usize) -> Vec<UpdateRow> {
    let (text, vocabulary, config) = (text(), vocabulary(), settings(steps));
    let data = TextData {
        train: &text,
        held_out: &text,
        vocabulary: &vocabulary,
    };
    let device = Default::default();
    let task = TextTask::<B>::new(ObjectiveMode::masked(0.2).unwrap(), data, &config).unwrap();
    let mut watch = UpdateWatch::new(task.clone(), every);
    let start = model().init(0, &device).unwrap();
    fit::<B, _>(start, &task, &config, &mut [&mut watch]).unwrap();
    assert!(watch.spent() > Duration::ZERO);
    watch.into_rows()
}

#[test]
fn updates_add_up_to_the_change_of_the_weights() {
    let rows = rows(7, 3);
    let places: Vec<_> = rows.iter().map(|row| (row.step, row.layer)).collect();
    assert_eq!(
        places,
        [(1, 0), (1, 1), (3, 0), (3, 1), (6, 0), (6, 1), (7, 0), (7, 1)]
    );
    for row in &rows {
        // Weights of 0.02 have a rounding of 1e-9, seven updates change them by 1e-3 each: 1e-4 is ten times the
        // rounding, while the second-order term alone, were it left out, is 1e-2 and more.
        assert!(row.accumulation_error < 1e-4, "{row:?}");
        assert!(row.update_norm > 0.0 && row.change_norm > 0.0);
        // Of the two ends of a pair in the last layer, masked ones alone carry an error.
        let mutual = row.mutual_pairs.unwrap();
        assert!(
            if row.layer == 1 {
                mutual < 0.5
            } else {
                mutual == 1.0
            },
            "{row:?}"
        );
    }
    // The first step of Adam moves by the signs of the gradient: downhill, but not along it.
    for row in &rows[..2] {
        let cosine = row.first_order_cosine.unwrap();
        assert!((0.2..0.999).contains(&cosine), "{cosine}");
        assert!((row.update_norm - row.change_norm).abs() < 1e-4 * row.change_norm);
    }
}

#[test]
fn rows_are_written_as_csv() {
    let rows = rows(1, 1);
    let mut bytes = Vec::new();
    UpdateRow::write_csv(&rows, &mut bytes).unwrap();
    let read: Vec<UpdateRow> = csv::Reader::from_reader(bytes.as_slice())
        .deserialize()
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(read.len(), 2);
    assert_eq!((read[1].step, read[1].layer), (1, 1));
    assert!((read[0].update_norm / rows[0].update_norm - 1.0).abs() < 1e-12);
}

/// A task whose traces tell of other tokens than the layer had, as a normaliser between X and its queries would.
#[derive(Debug)]
struct Normalised<'a>(TextTask<'a, B>);

impl Task<B> for Normalised<'_> {
    type Model = TextTransformer<B>;
    type Batch = Prepared;

    fn check(&self, model: &Self::Model) -> Result<(), TrainError> {
        self.0.check(model)
    }
    fn at_step(&self, model: Self::Model, step: usize) -> Self::Model {
        self.0.at_step(model, step)
    }
    fn batches(&self, step: usize) -> Result<Vec<Prepared>, TrainError> {
        self.0.batches(step)
    }
    fn weight(&self, batch: &Prepared) -> usize {
        self.0.weight(batch)
    }
    fn tokens(&self, batch: &Prepared) -> usize {
        self.0.tokens(batch)
    }
    fn loss(&self, model: &Self::Model, batch: Prepared, step: usize, part: usize) -> Tensor<B, 1> {
        self.0.loss(model, batch, step, part)
    }
    fn evaluate(&self, model: &TextTransformer<Flex>) -> Result<Evaluation, TrainError> {
        self.0.evaluate(model)
    }
}

impl TracedTask<B> for Normalised<'_> {
    fn loss_traced(
        &self,
        model: &Self::Model,
        batch: Prepared,
        step: usize,
        part: usize,
    ) -> (Tensor<B, 1>, Vec<AttentionTrace<B>>) {
        let (loss, mut traces) = self.0.loss_traced(model, batch, step, part);
        for trace in &mut traces {
            trace.input = trace.input.clone().mul_scalar(1.1);
        }
        (loss, traces)
    }
}

#[test]
fn what_does_not_hold_is_refused_by_name() {
    let (text, vocabulary, config) = (text(), vocabulary(), settings(1));
    let data = TextData {
        train: &text,
        held_out: &text,
        vocabulary: &vocabulary,
    };
    let device = Default::default();
    let task = TextTask::<B>::new(ObjectiveMode::masked(0.2).unwrap(), data, &config).unwrap();
    let start = model().init(0, &device).unwrap();
    let mut watch = UpdateWatch::new(Normalised(task.clone()), 1);
    let error = fit::<B, _>(start, &task, &config, &mut [&mut watch]).unwrap_err();
    let message = error.to_string();
    assert!(
        message.contains("blocks.0.attention") && message.contains("gradient of W_q"),
        "{message}"
    );

    // NaN in the weights of one layer.
    let mut broken: TextTransformer<B> = model().init(0, &device).unwrap();
    let key = &mut broken.blocks[1].attention.key;
    key.weight = burn::module::Param::from_tensor(key.weight.val().mul_scalar(f32::NAN).detach());
    let batch = task.batches(0).unwrap().remove(0);
    let error = capture(&task, &broken, batch, (0, 0), 1.0)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("blocks.1.attention") && error.contains("w_k"),
        "{error}"
    );

    let mut bare: TextTransformer<B> = model().init(0, &device).unwrap();
    bare.blocks.clear();
    let batch = task.batches(0).unwrap().remove(0);
    let error = capture(&task, &bare, batch, (0, 0), 1.0).unwrap_err();
    assert_eq!(error, CaptureError::NoAttention);
}
