//! One training step of the structure paper's BERT-Mini: `cargo bench --bench train_step`.
//!
//! Batch 8 × 128, vocabulary 30,522, AdamW, 15 % of positions masked, dropout off: the same as the PyTorch
//! program that it is compared with.

use std::time::Duration;

use burn::optim::{GradientsParams, Optimizer};
use burn::tensor::backend::AutodiffBackend;
use criterion::{Criterion, criterion_group, criterion_main};
use wqk::data::Packed;
use wqk::model::TextTransformerConfig;
use wqk::objective::{ObjectiveMode, Vocabulary};
use wqk::train::{Task, TextData, TextTask, TrainConfig, adamw};

const VOCABULARY: usize = 30_522;
const LENGTH: usize = 128;

fn step<B: AutodiffBackend>(criterion: &mut Criterion, backend: &str) {
    let tokens = (0..64 * LENGTH)
        .map(|i| 1000 + (i * 7919 % 29_000) as u32)
        .collect();
    let text = Packed::from_tokens(tokens, LENGTH).expect("64 full sequences");
    let vocabulary = Vocabulary {
        mask: Some(103),
        ..Vocabulary::new(VOCABULARY)
    };
    let data = TextData {
        train: &text,
        held_out: &text,
        vocabulary: &vocabulary,
    };
    let config = TrainConfig {
        batch_size: 8,
        accumulation: 1,
        ..TrainConfig::default()
    };
    let device = Default::default();
    let objective = ObjectiveMode::masked(0.15).expect("a rate between 0 and 1");
    let task = TextTask::<B>::new(objective, data, &config).expect("a batch size above 0");
    let model = TextTransformerConfig::mini()
        .with_dropout(0.0)
        .with_attention_dropout(0.0)
        .init::<B>(0, &device)
        .expect("the paper's sizes");
    // Owned by one at a time, as in the loop of a run: an update of shared weights would copy them.
    let mut model = Some(model);
    let mut optimiser = adamw(&config);

    let mut group = criterion.benchmark_group("bert-mini step, 8 x 128");
    group.sample_size(10).measurement_time(Duration::from_secs(10));
    let mut at = 0;
    group.bench_function(backend, |bencher| {
        bencher.iter(|| {
            let batch = task.batches(at).expect("batches of a checked task").remove(0);
            let current = model.take().expect("put back by every step");
            let loss = task.loss(&current, batch, at, 0);
            let grads = GradientsParams::from_grads(loss.backward(), &current);
            model = Some(optimiser.step(5e-5, current, grads));
            at += 1;
            // The value waits for the device.
            loss.into_scalar()
        });
    });
    group.finish();
}

fn benches(criterion: &mut Criterion) {
    #[cfg(feature = "flex")]
    step::<wqk::backend::Autodiff<wqk::backend::Flex>>(criterion, "flex");
    #[cfg(feature = "tch")]
    step::<wqk::backend::Autodiff<wqk::backend::Tch>>(criterion, "tch");
    #[cfg(feature = "ndarray")]
    step::<wqk::backend::Autodiff<wqk::backend::NdArray>>(criterion, "ndarray");
}

criterion_group!(train_step, benches);
criterion_main!(train_step);
