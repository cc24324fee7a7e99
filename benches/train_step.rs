//! One training step of the structure paper's BERT-Mini: `cargo bench --bench train_step -- [BACKEND] [STEPS]`.
//!
//! Batch 8 × 128, vocabulary 30,522, AdamW, 15 % of positions masked, dropout off: the same as the PyTorch
//! program that `train_step_peer.py` compares it with, in whose format it prints the median seconds of a step
//! after two that warm up.

use std::time::Instant;

use burn::optim::{GradientsParams, Optimizer};
use burn::tensor::ElementConversion;
use burn::tensor::backend::AutodiffBackend;
use wqk::backend::{Autodiff, BackendKind, with_backend};
use wqk::data::Packed;
use wqk::model::TextTransformerConfig;
use wqk::objective::{ObjectiveMode, Vocabulary};
use wqk::train::{Task, TextData, TextTask, TrainConfig, adamw};

const VOCABULARY: usize = 30_522;
const LENGTH: usize = 128;
const WARM_UP: usize = 2;

fn steps<B: AutodiffBackend>(backend: BackendKind, steps: usize, device: &B::Device) {
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
    let objective = ObjectiveMode::masked(0.15).expect("a rate between 0 and 1");
    let task = TextTask::<B>::new(objective, data, &config).expect("a batch size above 0");
    let model = TextTransformerConfig::mini()
        .with_dropout(0.0)
        .with_attention_dropout(0.0)
        .init::<B>(0, device)
        .expect("the paper's sizes");
    // Owned by one at a time, as in the loop of a run: an update of shared weights would copy them.
    let mut model = Some(model);
    let mut optimiser = adamw(&config);

    let (mut seconds, mut losses) = (Vec::new(), Vec::new());
    for at in 0..steps + WARM_UP {
        let begin = Instant::now();
        let batch = task.batches(at).expect("batches of a checked task").remove(0);
        let current = model.take().expect("put back by every step");
        let loss = task.loss(&current, batch, at, 0);
        let grads = GradientsParams::from_grads(loss.backward(), &current);
        model = Some(optimiser.step(5e-5, current, grads));
        // The value waits for the device.
        losses.push(loss.into_scalar().elem::<f32>());
        seconds.push(begin.elapsed().as_secs_f64());
    }
    let measured = &mut seconds[WARM_UP..];
    measured.sort_by(f64::total_cmp);
    println!(
        "{backend}: {:.4} s a step, peak {} MB, losses {:.3} .. {:.3}",
        measured[measured.len() / 2],
        peak_mb(),
        losses[0],
        losses[losses.len() - 1]
    );
}

/// The most memory that the process has held, in MB.
fn peak_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kb = peak.and_then(|kb| kb.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kb.unwrap_or(0) / 1024
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let count = args.iter().find_map(|arg| arg.parse().ok()).unwrap_or(10);
    let named = args.iter().find(|arg| arg.parse::<usize>().is_err());
    let kinds = match named {
        Some(name) => vec![name.parse()?],
        None => BackendKind::ALL
            .into_iter()
            .filter(|kind| kind.is_compiled())
            .collect(),
    };
    for kind in kinds {
        with_backend!(kind, None, |B, device| steps::<Autodiff<B>>(kind, count, &device))?;
    }
    Ok(())
}
