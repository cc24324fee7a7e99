//! Training of a whole model, the same on every backend.

use burn::tensor::backend::Backend;
use wqk::backend::Autodiff;
use wqk::data::Packed;
use wqk::model::{TextTransformer, TextTransformerConfig};
use wqk::objective::{ObjectiveMode, Vocabulary};
use wqk::train::{Event, Observer, TextData, TextTask, TrainConfig, TrainError, fit};

const STEPS: usize = 8;

/// The losses of a masked run with dropout, from the same seed.
fn losses<B: Backend>() -> Vec<f64> {
    struct Keep(Vec<f64>);
    impl<M> Observer<M> for Keep {
        fn observe(&mut self, event: &Event<'_, M>) -> Result<(), TrainError> {
            if let Event::Step { row, .. } = event {
                self.0.push(row.loss);
            }
            Ok(())
        }
    }
    let text = Packed::from_tokens((0..16 * 8).map(|i| 5 + (i * i / 3 + i) % 20).collect(), 8).unwrap();
    let vocabulary = Vocabulary {
        mask: Some(4),
        ..Vocabulary::new(25)
    };
    let data = TextData {
        train: &text,
        held_out: &text,
        vocabulary: &vocabulary,
    };
    let config = TrainConfig {
        steps: STEPS,
        batch_size: 4,
        accumulation: 2,
        learning_rate: 1e-3,
        warmup_steps: 2,
        ..TrainConfig::default()
    };
    let device = Default::default();
    let task = TextTask::<Autodiff<B>>::new(ObjectiveMode::masked(0.3).unwrap(), data, &config).unwrap();
    let model: TextTransformer<Autodiff<B>> = TextTransformerConfig::new(25, 8, 2, 2)
        .with_max_positions(8)
        .init(0, &device)
        .unwrap();
    let mut keep = Keep(Vec::new());
    fit::<Autodiff<B>, _>(model, &task, &config, &mut [&mut keep]).unwrap();
    keep.0
}

/// Weights, batches, corruption and dropout come from the same bits, so that only the order of f32 sums differs:
/// a rounding of 1e-6 in the gradients, which eight steps of Adam at a rate of 1e-3 keep below 1e-4 in the loss.
pub fn runs_agree<A: Backend, B: Backend>() {
    let (a, b) = (losses::<A>(), losses::<B>());
    assert_eq!(a.len(), STEPS);
    for (step, (x, y)) in a.iter().zip(&b).enumerate() {
        assert!((x - y).abs() < 1e-4, "step {step}: {x} and {y}");
    }
}
