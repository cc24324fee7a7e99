//! The loop on a tiny model: what it promises, on real batches.

use burn::module::Param;
use burn::nn::Linear;
use burn::optim::{GradientsParams, Optimizer};
use burn::tensor::Tensor;

use super::*;
use crate::attention::AttentionError;
use crate::backend::{Autodiff, Flex};
use crate::data::Packed;
use crate::model::{ModelError, TextTransformer, TextTransformerConfig};
use crate::objective::{ObjectiveMode, Vocabulary};

type B = Autodiff<Flex>;

const N: usize = 16;

/// Tokens 5 to 24 in a pattern that can be learned, after five special ones.
fn text(sequences: usize) -> Packed {
    let tokens = (0..sequences * N)
        .map(|i| 5 + ((i * i / 3 + i) % 20) as u32)
        .collect();
    Packed::from_tokens(tokens, N).unwrap()
}

fn vocabulary() -> Vocabulary {
    Vocabulary {
        size: 25,
        pad: Some(0),
        unk: Some(1),
        cls: Some(2),
        sep: Some(3),
        mask: Some(4),
    }
}

fn model() -> TextTransformerConfig {
    TextTransformerConfig::new(25, 16, 2, 2)
        .with_max_positions(N)
        .with_dropout(0.0)
        .with_attention_dropout(0.0)
}

fn settings() -> TrainConfig {
    TrainConfig {
        steps: 6,
        batch_size: 4,
        accumulation: 1,
        learning_rate: 1e-2,
        warmup_steps: 2,
        ..TrainConfig::default()
    }
}

/// Keeps the updates and the last model.
#[derive(Default)]
struct Keep {
    losses: Vec<f64>,
    held_out: Vec<(usize, f64)>,
    last: Option<TextTransformer<B>>,
}

impl Observer<TextTransformer<B>> for Keep {
    fn observe(&mut self, event: &Event<'_, TextTransformer<B>>) -> Result<(), TrainError> {
        match event {
            Event::Step { row, model } => {
                self.losses.push(row.loss);
                self.last = Some((*model).clone());
            }
            Event::Evaluated { row } => self.held_out.push((row.step, row.loss)),
            Event::Start { .. } => {}
        }
        Ok(())
    }
}

fn train(
    model: &TextTransformerConfig,
    objective: ObjectiveMode,
    config: &TrainConfig,
    extra: &mut [&mut dyn Observer<TextTransformer<B>>],
) -> Result<Keep, TrainError> {
    let (train, held_out, vocabulary) = (text(40), text(3), vocabulary());
    let device = Default::default();
    let data = TextData {
        train: &train,
        held_out: &held_out,
        vocabulary: &vocabulary,
    };
    let task = TextTask::<B>::new(objective, data, config)?;
    let mut keep = Keep::default();
    let mut observers: Vec<&mut dyn Observer<_>> = vec![&mut keep];
    for observer in extra {
        observers.push(*observer);
    }
    fit::<B, _>(model.init(config.seed, &device)?, &task, config, &mut observers)?;
    Ok(keep)
}

fn embedding(keep: &Keep) -> Vec<f32> {
    keep.last
        .as_ref()
        .unwrap()
        .tokens
        .weight
        .val()
        .into_data()
        .to_vec()
        .unwrap()
}

#[test]
fn begins_at_the_uniform_guess_and_learns() {
    let config = TrainConfig {
        steps: 60,
        ..settings()
    };
    for objective in [
        ObjectiveMode::masked(0.15).unwrap(),
        ObjectiveMode::autoregressive(),
    ] {
        let keep = train(&model(), objective, &config, &mut []).unwrap();
        // Weights of 0.02 give logits near 0, so that the first loss is ln 25 but for their small spread.
        assert!((keep.losses[0] - 25f64.ln()).abs() < 0.05, "{}", keep.losses[0]);
        let last = keep.losses[50..].iter().sum::<f64>() / 10.0;
        assert!(last < keep.losses[0] - 0.3, "{objective:?} ended at {last}");
        assert_eq!(keep.held_out.len(), 1);
    }
}

#[test]
fn accumulated_batches_equal_one_large_batch() {
    // Masked prediction has unequal numbers of targets in the parts, so that a mean of means would differ.
    // Its corruption is drawn batch by batch, so the deterministic objective is compared to the weights.
    let one = train(
        &model(),
        ObjectiveMode::autoregressive(),
        &TrainConfig {
            batch_size: 8,
            ..settings()
        },
        &mut [],
    )
    .unwrap();
    let four = TrainConfig {
        batch_size: 2,
        accumulation: 4,
        ..settings()
    };
    let four = train(&model(), ObjectiveMode::autoregressive(), &four, &mut []).unwrap();
    // Adam divides small gradients by their own size: rounding of 1e-7 grows to about 1e-5 in six steps.
    for (a, b) in embedding(&one).iter().zip(embedding(&four)) {
        assert!((a - b).abs() < 1e-4, "{a} {b}");
    }
    for (a, b) in one.losses.iter().zip(&four.losses) {
        assert!((a - b).abs() < 1e-5, "{a} {b}");
    }
}

#[test]
fn a_seed_repeats_a_run_and_another_does_not() {
    let masked = ObjectiveMode::masked(0.15).unwrap();
    let dropout = model().with_dropout(0.1).with_attention_dropout(0.1);
    let run = |seed| train(&dropout, masked, &TrainConfig { seed, ..settings() }, &mut []).unwrap();
    assert_eq!(run(3).losses, run(3).losses);
    assert_ne!(run(3).losses, run(4).losses);
}

#[test]
fn arms_differ_where_their_initialisation_does_and_nowhere_else() {
    let tied = model().with_attention_init(crate::attention::SymmetricInit::tied().into());
    let device = Default::default();
    let a: TextTransformer<B> = model().init(1, &device).unwrap();
    let b: TextTransformer<B> = tied.init(1, &device).unwrap();
    let data = |t: Tensor<B, 2>| t.into_data();
    assert_eq!(data(a.tokens.weight.val()), data(b.tokens.weight.val()));
    let (x, y) = (&a.blocks[1].attention, &b.blocks[1].attention);
    assert_eq!(data(x.value.weight.val()), data(y.value.weight.val()));
    assert_ne!(data(x.key.weight.val()), data(y.key.weight.val()));
}

#[test]
fn scores_are_taken_at_the_start_every_k_and_at_the_end() {
    let mut watch = ScoreWatch::<B>::new(4, 2.0, true);
    train(
        &model(),
        ObjectiveMode::autoregressive(),
        &settings(),
        &mut [&mut watch],
    )
    .unwrap();
    let steps: Vec<(usize, usize)> = watch.rows().iter().map(|row| (row.step, row.layer)).collect();
    assert_eq!(steps, [(0, 0), (0, 1), (4, 0), (4, 1), (6, 0), (6, 1)]);
    assert!(
        watch
            .rows()
            .iter()
            .all(|row| row.scores.heads.as_ref().unwrap().len() == 2)
    );
}

#[test]
fn runs_side_by_side_are_the_runs_one_by_one() {
    let (train, held_out, vocabulary) = (text(40), text(3), vocabulary());
    let arm = |name: &str, objective| Arm {
        name: name.into(),
        objective,
        model: model(),
    };
    let plan = |side_by_side| Experiment {
        arms: vec![
            arm("encoder", ObjectiveMode::masked(0.15).unwrap()),
            arm("decoder", ObjectiveMode::autoregressive()),
        ],
        seeds: vec![7, 8],
        train: settings(),
        score_every: 3,
        gamma: 2.0,
        per_head: false,
        updates_every: 4,
        data: TextData {
            train: &train,
            held_out: &held_out,
            vocabulary: &vocabulary,
        },
        side_by_side,
        threads: 1,
    };
    let device = Default::default();
    let losses = |n| {
        let runs = plan(n).run::<B>(&device, &|_| {}).unwrap();
        let of = |run: &Run| {
            (
                run.arm.clone(),
                run.seed,
                run.steps.iter().map(|r| r.loss).collect::<Vec<_>>(),
            )
        };
        runs.iter().map(of).collect::<Vec<_>>()
    };
    let alone = losses(1);
    assert_eq!(alone, losses(3));
    let named: Vec<(&str, u64)> = alone.iter().map(|(arm, seed, _)| (arm.as_str(), *seed)).collect();
    assert_eq!(
        named,
        [("encoder", 7), ("encoder", 8), ("decoder", 7), ("decoder", 8)]
    );
    // The same seed starts from the same weights: decoder and encoder score alike before the first update.
    let runs = plan(2).run::<B>(&device, &|_| {}).unwrap();
    assert_eq!(runs[0].scores[0].scores, runs[2].scores[0].scores);
    // The first update, every fourth and the last, of two layers.
    for run in &runs {
        let watched: Vec<usize> = run.updates.iter().map(|row| row.step).collect();
        assert_eq!(watched, [1, 1, 4, 4, 6, 6]);
    }
}

#[test]
fn logs_are_whole_and_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let watch = || ScoreWatch::<B>::new(3, 2.0, false);
    let mut log = RunLog::create(folder.path(), watch()).unwrap();
    train(
        &model(),
        ObjectiveMode::autoregressive(),
        &settings(),
        &mut [&mut log],
    )
    .unwrap();
    drop(log);
    let mut steps = csv::Reader::from_path(folder.path().join("steps.csv")).unwrap();
    let rows: Vec<StepRow> = steps.deserialize().collect::<Result<_, _>>().unwrap();
    assert_eq!(
        rows.iter().map(|row| row.step).collect::<Vec<_>>(),
        [1, 2, 3, 4, 5, 6]
    );
    let scores = csv::Reader::from_path(folder.path().join("scores.csv"))
        .unwrap()
        .into_records()
        .count();
    assert_eq!(scores, 3 * 2);
    let events = std::fs::read_to_string(folder.path().join("log.jsonl")).unwrap();
    for line in events.lines() {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(event["event"].is_string());
    }
    assert_eq!(events.lines().count(), 1 + 6 + 6 + 1);
    let held_out = std::fs::read_to_string(folder.path().join("held_out.csv")).unwrap();
    assert_eq!(held_out.lines().count(), 1 + 1);
    assert!(matches!(
        RunLog::create(folder.path(), watch()),
        Err(TrainError::Log { .. })
    ));
}

#[test]
fn a_run_that_goes_astray_says_where() {
    // Squared weights overflow f32 within a step or two; clipping cannot help a rate like this.
    let config = TrainConfig {
        learning_rate: 1e30,
        warmup_steps: 0,
        ..settings()
    };
    let error = train(&model(), ObjectiveMode::autoregressive(), &config, &mut [])
        .err()
        .unwrap();
    assert!(matches!(error, TrainError::Diverged { .. }), "{error}");
}

#[test]
fn what_does_not_fit_is_refused_before_the_first_step() {
    let small = TextTransformerConfig::new(24, 16, 2, 2).with_max_positions(N);
    let error = train(&small, ObjectiveMode::autoregressive(), &settings(), &mut [])
        .err()
        .unwrap();
    assert!(
        matches!(
            error,
            TrainError::Vocabulary {
                tokens: 25,
                vocab_size: 24
            }
        ),
        "{error}"
    );
    let short = model().with_max_positions(N - 1);
    let error = train(&short, ObjectiveMode::autoregressive(), &settings(), &mut [])
        .err()
        .unwrap();
    assert!(
        matches!(
            error,
            TrainError::Length {
                length: 16,
                positions: 15
            }
        ),
        "{error}"
    );
    let odd = TextTransformerConfig::new(25, 16, 2, 3).with_max_positions(N);
    let error = train(&odd, ObjectiveMode::autoregressive(), &settings(), &mut [])
        .err()
        .unwrap();
    assert!(
        matches!(
            &error,
            TrainError::Model(ModelError::Attention(AttentionError::HeadWidth { .. }))
        ),
        "{error}"
    );
}

/// A map `[2, 1]` with a bias, with known weights and gradients.
fn known() -> (Linear<B>, GradientsParams) {
    let device = Default::default();
    let linear = Linear {
        weight: Param::from_tensor(Tensor::<B, 2>::from_floats([[1.0], [-2.0]], &device)),
        bias: Some(Param::from_tensor(Tensor::<B, 1>::from_floats([0.5], &device))),
    };
    let mut grads = GradientsParams::new();
    grads.register(
        linear.weight.id,
        Tensor::<Flex, 2>::from_floats([[3.0], [0.0]], &device),
    );
    grads.register(
        linear.bias.as_ref().unwrap().id,
        Tensor::<Flex, 1>::from_floats([4.0], &device),
    );
    (linear, grads)
}

#[test]
fn the_first_step_of_adamw_is_its_closed_form() {
    // At the first step the corrected moments are g and g², so that the update is rate · g/(|g| + ε):
    // the rate itself, or 0 for no gradient. Decay takes rate · decay of a matrix, nothing of a bias.
    let (linear, grads) = known();
    let config = TrainConfig {
        weight_decay: 0.1,
        ..TrainConfig::default()
    };
    let linear = adamw::<B, Linear<B>>(&config).step(0.01, linear, grads);
    let weight: Vec<f32> = linear.weight.val().into_data().to_vec().unwrap();
    let bias: Vec<f32> = linear.bias.unwrap().val().into_data().to_vec().unwrap();
    // f32 rounding of values near 1, three operations.
    for (got, want) in [
        (weight[0], 1.0 * 0.999 - 0.01),
        (weight[1], -2.0 * 0.999),
        (bias[0], 0.5 - 0.01),
    ] {
        assert!((got - want).abs() < 1e-6, "{got} against {want}");
    }
}

#[test]
fn clipping_scales_all_gradients_by_one_factor() {
    let (linear, mut grads) = known();
    // ‖(3, 0, 4)‖ = 5, to f32 rounding.
    assert!((global_norm::<B, _>(&linear, &grads) - 5.0).abs() < 1e-6);
    assert!((clip_global_norm::<B, _>(&linear, &mut grads, 10.0) - 5.0).abs() < 1e-6);
    assert!((global_norm::<B, _>(&linear, &grads) - 5.0).abs() < 1e-6);
    clip_global_norm::<B, _>(&linear, &mut grads, 1.0);
    let weight: Vec<f32> = grads
        .get::<Flex, 2>(linear.weight.id)
        .unwrap()
        .into_data()
        .to_vec()
        .unwrap();
    assert!((weight[0] - 0.6).abs() < 1e-6 && weight[1] == 0.0);
}

/// The same global batch on one device, and spread over several: parts are added in the same order, so that the
/// runs agree to the last bit.
#[test]
fn several_devices_are_one_with_the_same_global_batch() {
    let (train, held_out, vocabulary) = (text(40), text(3), vocabulary());
    let config = TrainConfig {
        batch_size: 2,
        accumulation: 4,
        ..settings()
    };
    let device = Default::default();
    let run = |others: usize| {
        let data = TextData {
            train: &train,
            held_out: &held_out,
            vocabulary: &vocabulary,
        };
        let model = self::model().with_dropout(0.1).with_attention_dropout(0.1);
        let task = TextTask::<B>::new(ObjectiveMode::masked(0.3).unwrap(), data, &config).unwrap();
        let state = TrainState::new(model.init(1, &device).unwrap(), &config);
        let mut keep = Keep::default();
        let others = vec![device; others];
        fit_from(state, &task, &config, &others, &mut KeepNothing, &mut [&mut keep]).unwrap();
        keep
    };
    let one = run(0);
    // As many as the parts, fewer, and a number that does not divide them.
    for others in [1, 2, 3] {
        let several = run(others);
        assert_eq!(one.losses, several.losses);
        assert_eq!(embedding(&one), embedding(&several));
    }
}

/// What a checkpoint holds is the whole state: a run that is loaded from one goes on as the one that wrote it.
#[test]
fn a_state_from_a_checkpoint_goes_on_alike() {
    let (train, held_out, vocabulary) = (text(40), text(3), vocabulary());
    let data = TextData {
        train: &train,
        held_out: &held_out,
        vocabulary: &vocabulary,
    };
    let (config, device) = (settings(), Default::default());
    let task = TextTask::<B>::new(ObjectiveMode::masked(0.3).unwrap(), data, &config).unwrap();
    let fresh = |seed| TrainState::<B, _>::new(model().init(seed, &device).unwrap(), &config);
    let folder = tempfile::tempdir().unwrap();
    let keep_all = CheckpointConfig {
        every: 1,
        keep_last: 100,
        keep_best: false,
    };
    let checkpoints = Checkpoints::new(folder.path(), keep_all);

    struct Save<'a>(&'a Checkpoints);
    impl Observer<TextTransformer<B>> for Save<'_> {
        fn observe(&mut self, _event: &Event<'_, TextTransformer<B>>) -> Result<(), TrainError> {
            Ok(())
        }
    }
    impl Keeper<B, TextTransformer<B>> for Save<'_> {
        fn keep(
            &mut self,
            state: &TrainState<B, TextTransformer<B>>,
            _improved: bool,
        ) -> Result<(), TrainError> {
            self.0.save(state, [("log".to_owned(), state.step as u64)].into())
        }
    }
    let end = fit_from(fresh(1), &task, &config, &[], &mut Save(&checkpoints), &mut []).unwrap();
    assert_eq!(checkpoints.steps().unwrap(), [1, 2, 3, 4, 5, 6]);

    let third = Checkpoint::open(&checkpoints.path(3)).unwrap();
    assert_eq!((third.info().step, third.info().logs["log"]), (3, 3));
    // Of other weights: all of them are in the checkpoint.
    let state = third.restore(fresh(2)).unwrap();
    let resumed = fit_from(state, &task, &config, &[], &mut KeepNothing, &mut []).unwrap();
    let weights = |state: &TrainState<B, TextTransformer<B>>| {
        let of = |t: Tensor<B, 2>| t.into_data().to_vec::<f32>().unwrap();
        (
            of(state.model.tokens.weight.val()),
            of(state.model.blocks[1].attention.key.weight.val()),
        )
    };
    assert_eq!(weights(&end), weights(&resumed));
    assert_eq!((resumed.step, resumed.best.map(|best| best.step)), (6, Some(6)));

    // A model of another width is refused, by the name of what does not fit.
    let wide = TextTransformerConfig::new(25, 32, 2, 2).with_max_positions(N);
    let error = third
        .model::<B, _>(wide.init(1, &device).unwrap())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("tokens.weight") && error.contains("[25, 32]"),
        "{error}"
    );
}

#[test]
fn the_last_and_the_best_checkpoints_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let config = CheckpointConfig {
        every: 2,
        keep_last: 2,
        keep_best: true,
    };
    let checkpoints = Checkpoints::new(folder.path(), config);
    let device = Default::default();
    let mut state = TrainState::<B, _>::new(model().init(1, &device).unwrap(), &settings());
    for (step, loss) in [(1, 3.0), (2, 1.0), (3, 2.0), (4, 2.0), (6, 2.0), (8, 1.5)] {
        state.step = step;
        let improved = state.improved(loss);
        assert_eq!(improved, step < 3);
        if checkpoints.is_due(&state, 8, improved) {
            checkpoints.save(&state, Default::default()).unwrap();
        }
    }
    assert_eq!(checkpoints.steps().unwrap(), [2, 6, 8]);
    // What was never finished is no checkpoint, and is cleared away.
    std::fs::create_dir(folder.path().join(".draft-x")).unwrap();
    assert_eq!(checkpoints.latest().unwrap().unwrap().info().step, 8);
    checkpoints.remove_drafts().unwrap();
    assert!(!folder.path().join(".draft-x").exists());
    // A file that is cut off is told from one that is whole.
    let file = checkpoints.path(8).join("optimiser.safetensors");
    let content = std::fs::read(&file).unwrap();
    std::fs::write(&file, &content[..content.len() - 4]).unwrap();
    let error = checkpoints.latest().unwrap_err().to_string();
    assert!(
        error.contains("optimiser.safetensors") && error.contains("step-000000006"),
        "{error}"
    );
}
