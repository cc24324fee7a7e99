//! The watcher on runs of a tiny model.

use burn::tensor::Tensor;

use super::*;
use crate::attention::AttentionTrace;
use crate::backend::{Autodiff, Flex};
use crate::data::Packed;
use crate::data::vision::{Augmentation, CHANNELS, ImageError, Images, Normalisation, Picture};
use crate::model::{TextTransformer, TextTransformerConfig, ViTConfig};
use crate::objective::{ObjectiveMode, Prepared, Vocabulary};
use crate::train::{
    CheckpointConfig, Checkpoints, Evaluation, ImageData, ImageTask, KeepNothing, Keeper, Task, TextData,
    TextTask, TrainConfig, TrainState, fit, fit_from,
};

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

fn task<'a>(text: &'a Packed, vocabulary: &'a Vocabulary, config: &TrainConfig) -> TextTask<'a, B> {
    let data = TextData {
        train: text,
        held_out: text,
        vocabulary,
    };
    TextTask::new(ObjectiveMode::masked(0.2).unwrap(), data, config).unwrap()
}

fn rows(steps: usize, every: usize) -> Vec<UpdateRow> {
    let (text, vocabulary, config) = (text(), vocabulary(), settings(steps));
    let device = Default::default();
    let task = task(&text, &vocabulary, &config);
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

/// A watcher that was stopped and restored says what one that went on says, to the last bit.
#[test]
fn a_watcher_goes_on_where_another_left_off() {
    /// Keeps the state after an update, and stops there.
    struct StopAt<'a>(usize, &'a Checkpoints);
    impl Observer<TextTransformer<B>> for StopAt<'_> {
        fn observe(&mut self, _event: &Event<'_, TextTransformer<B>>) -> Result<(), TrainError> {
            Ok(())
        }
    }
    impl Keeper<B, TextTransformer<B>> for StopAt<'_> {
        fn keep(
            &mut self,
            state: &TrainState<B, TextTransformer<B>>,
            _improved: bool,
        ) -> Result<(), TrainError> {
            if state.step < self.0 {
                return Ok(());
            }
            self.1.save(state, BTreeMap::new())?;
            Err(TrainError::Stopped { step: state.step })
        }
    }

    let (text, vocabulary, config) = (text(), vocabulary(), settings(7));
    let device = Default::default();
    let task = task(&text, &vocabulary, &config);
    let whole = rows(7, 3);
    // Between two watched updates, and where the next is a watched one.
    for stop in [4, 5] {
        let folder = tempfile::tempdir().unwrap();
        let checkpoints = Checkpoints::new(folder.path(), CheckpointConfig::default());
        let state = TrainState::new(model().init(0, &device).unwrap(), &config);
        let mut first = UpdateWatch::new(task.clone(), 3);
        let mut keeper = StopAt(stop, &checkpoints);
        let stopped = fit_from::<B, _>(state, &task, &config, &[], &mut keeper, &mut [&mut first]);
        assert!(matches!(stopped, Err(TrainError::Stopped { .. })));

        let state = TrainState::new(model().init(1, &device).unwrap(), &config);
        let state = checkpoints.latest().unwrap().unwrap().restore(state).unwrap();
        let mut second = UpdateWatch::new(task.clone(), 3);
        let kept = || first.state().into_iter().collect::<BTreeMap<_, _>>();
        second.restore(&state.model, kept()).unwrap();
        fit_from::<B, _>(state, &task, &config, &[], &mut KeepNothing, &mut [&mut second]).unwrap();
        assert_eq!([first.rows(), second.rows()].concat(), whole);

        let mut lacking = kept();
        lacking.remove("blocks.1.attention.sum").unwrap();
        let wide = TextTransformerConfig::new(25, 32, 2, 2).init(0, &device).unwrap();
        for (state, model, said) in [
            (
                lacking,
                model().init(0, &device).unwrap(),
                "lacks 'blocks.1.attention.sum'",
            ),
            (kept(), wide, "'blocks.0.attention.first' has the shape [16, 16]"),
        ] {
            let problem = second.restore(&model, state).unwrap_err();
            assert!(problem.contains(said), "{problem}");
        }
    }
}

/// Images in the one colour of their class.
#[derive(Debug)]
struct Plain([String; 2]);

impl Images for Plain {
    fn len(&self) -> usize {
        8
    }
    fn classes(&self) -> &[String] {
        &self.0
    }
    fn label(&self, index: usize) -> usize {
        index % 2
    }
    fn picture(&self, index: usize) -> Result<Picture, ImageError> {
        let grey = 50 + 20 * index as u8;
        Ok(Picture::new(8, 8, vec![grey; 8 * 8 * CHANNELS]))
    }
    fn name(&self, index: usize) -> String {
        index.to_string()
    }
}

/// The gradients that a capture of a vision transformer gives are those of autodiff, and its loss that of the task.
#[test]
fn images_are_watched_too() {
    let images = Plain(["light".to_owned(), "dark".to_owned()]);
    let normalisation = Normalisation::IMAGENET;
    let data = ImageData {
        train: &images,
        test: &images,
        normalisation: &normalisation,
    };
    let config = settings(2);
    let device = Default::default();
    let task = ImageTask::new(data, Augmentation::none(), 8, &config).unwrap();
    let model = ViTConfig::new(8, 4, 2, 16, 2, 2)
        .with_dropout(0.1)
        .with_init_std(0.2)
        .init::<B>(0, &device)
        .unwrap();
    let batch = Task::<B>::batches(&task, 0).unwrap().remove(0);
    let captured = capture(&task, &model, batch.clone(), (0, 0), 1.0).unwrap();
    let loss = task
        .loss(&model, batch, 0, 0)
        .into_data()
        .iter::<f64>()
        .next()
        .unwrap();
    assert!((captured.loss - loss).abs() < 1e-6, "{} {loss}", captured.loss);
    for (layer, block) in captured.layers.iter().zip(&model.blocks) {
        let got = layer.weight_gradients().unwrap().query;
        let want = block.attention.query.weight.grad(&captured.gradients).unwrap();
        // Sums of f32 in another order.
        let size = norm_of(want.clone());
        assert!(size > 0.0 && norm_of(got - want) < 1e-4 * size);
    }
    let mut watch = UpdateWatch::new(task.clone(), 1);
    fit::<B, _>(model, &task, &config, &mut [&mut watch]).unwrap();
    assert_eq!(watch.rows().len(), 2 * 2);
    // In the last layer the class token alone asks: no pair asks both ways.
    assert_eq!(watch.rows()[1].mutual_pairs, Some(0.0));
}

fn norm_of(x: Tensor<Flex, 2>) -> f64 {
    x.into_data().iter::<f64>().map(|x| x * x).sum::<f64>().sqrt()
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
    let device = Default::default();
    let task = task(&text, &vocabulary, &config);
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
