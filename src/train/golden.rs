//! Forward passes and a step of the optimiser against PyPI `transformers` and PyTorch: see `tests/golden/make.py`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use burn::optim::{GradientsParams, Optimizer};
use burn::tensor::{Int, Tensor, TensorData};

use super::{TrainConfig, adamw};
use crate::attention::AttentionMask;
use crate::backend::{Autodiff, Flex};
use crate::checkpoint::format::Store;
use crate::checkpoint::pretrained::{
    ExportedText, ExportedViT, Parameters, export_text, export_vit, load_text, load_vit,
};
use crate::objective::{loss, select_positions, soft_loss};

type B = Autodiff<Flex>;

/// The tolerance: f32 sums in another order, of values of order 1.
const TOLERANCE: f32 = 1e-4;

fn golden(name: &str) -> (PathBuf, Store) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    let expected = Store::open(&folder.join("expected.safetensors")).unwrap();
    (folder, expected)
}

/// The settings of `make.py`.
fn settings() -> TrainConfig {
    TrainConfig {
        learning_rate: 1e-3,
        epsilon: 1e-8,
        weight_decay: 0.01,
        ..TrainConfig::default()
    }
}

fn tensor<const D: usize>(store: &Store, name: &str, shape: [usize; D]) -> Tensor<B, D> {
    let values = store.read_f32(name).unwrap();
    Tensor::from_data(TensorData::new(values, shape), &Default::default())
}

fn integers<const D: usize>(values: &[f32], shape: [usize; D]) -> Tensor<B, D, Int> {
    let values: Vec<i32> = values.iter().map(|&value| value as i32).collect();
    Tensor::from_data(TensorData::new(values, shape), &Default::default())
}

fn close<const D: usize>(what: &str, got: Tensor<B, D>, expected: &Store) {
    let got: Vec<f32> = got.into_data().to_vec().unwrap();
    let wanted = expected.read_f32(what).unwrap();
    assert_eq!(got.len(), wanted.len(), "{what}");
    let difference = difference(&got, &wanted);
    eprintln!(
        "{what}: {} values, largest difference {difference:.1e}",
        got.len()
    );
    assert!(difference < TOLERANCE, "{what}: {difference}");
}

fn difference(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

/// Every parameter after the step, under the library's names, against what it was there.
///
/// The step is of size 1e-3 in every parameter, so that the tolerance is a tenth of the issue's. A key's bias moves
/// all logits of a query alike, which the softmax does not see: its gradient is rounding alone, and Adam makes a step
/// of any size up to the rate of it. There only that is asked for.
fn steps_agree(before: &Store, after: &Path, expected: &Store, added: &BTreeMap<&str, Vec<f32>>) {
    let after = Store::open(after).unwrap();
    let mut compared = 0;
    for name in before.names().filter(|name| !name.contains("token_type")) {
        let (mut was, got) = (before.read_f32(name).unwrap(), after.read_f32(name).unwrap());
        let mut wanted = expected.read_f32(&format!("after.{name}")).unwrap();
        if let Some(row) = added.get(name) {
            for values in [&mut was, &mut wanted] {
                for line in values.chunks_exact_mut(row.len()) {
                    line.iter_mut().zip(row).for_each(|(value, add)| *value += add);
                }
            }
        }
        compared += got.len();
        let (apart, moved) = (difference(&got, &wanted), difference(&got, &was));
        if name.ends_with("key.bias") {
            assert!(moved <= 1.1e-3, "{name}: {moved}");
        } else {
            assert!(apart < TOLERANCE / 10.0, "{name}: {apart}");
            assert!(moved > 9e-4, "{name} has not moved: {moved}");
        }
    }
    eprintln!("{compared} parameters compared");
}

#[test]
fn bert_is_the_librarys_forward_and_after_a_step() {
    let (folder, expected) = golden("bert");
    let bert = load_text::<B>(&folder, &Default::default()).unwrap();
    let (batch, n) = (3, 10);
    let ids = || integers(&expected.read_f32("ids").unwrap(), [batch, n]);
    let hidden = bert.model.forward(ids(), None, None);
    close("hidden", hidden.clone(), &expected);
    close(
        "logits",
        bert.model.logits(hidden.clone().flatten(0, 1)),
        &expected,
    );

    // Labels of -100 are no predictions.
    let labels = expected.read_f32("labels").unwrap();
    let positions: Vec<usize> = (0..labels.len()).filter(|&i| labels[i] >= 0.0).collect();
    let targets: Vec<f32> = positions.iter().map(|&i| labels[i]).collect();
    let rows: Vec<f32> = positions.iter().map(|&i| i as f32).collect();
    let chosen = select_positions(hidden, integers(&rows, [rows.len()]));
    let masked_loss = loss(bert.model.logits(chosen), integers(&targets, [targets.len()]));
    close("loss", masked_loss.clone(), &expected);

    let grads = GradientsParams::from_grads(masked_loss.backward(), &bert.model);
    let model = adamw::<B, _>(&settings()).step(1e-3, bert.model.clone(), grads);
    let out = tempfile::tempdir().unwrap();
    let exported = ExportedText {
        config: &bert.config,
        parameters: &Parameters::of(&model),
        causal: false,
        pad: None,
        files: &[],
    };
    let after = out.path().join("after");
    export_text(&exported, &after).unwrap();
    // Our positions hold the first segment's embedding; its decay, up to 1e-3 · 0.01 · 0.5, is within the tolerance.
    let before = Store::open(&folder.join("model.safetensors")).unwrap();
    let segment = before
        .read_rows_f32("bert.embeddings.token_type_embeddings.weight", 0..1)
        .unwrap();
    let added = BTreeMap::from([("bert.embeddings.position_embeddings.weight", segment)]);
    steps_agree(&before, &after, &expected, &added);
}

#[test]
fn a_causal_bert_is_the_librarys() {
    let (folder, expected) = golden("bert");
    let bert = load_text::<B>(&folder, &Default::default()).unwrap();
    let (batch, n) = (3, 10);
    let ids = expected.read_f32("ids").unwrap();
    let mask = AttentionMask::causal(n, &Default::default());
    let hidden = bert.model.forward(integers(&ids, [batch, n]), Some(&mask), None);
    close(
        "causal.logits",
        bert.model.logits(hidden.clone().flatten(0, 1)),
        &expected,
    );
    let rows: Vec<usize> = (0..batch * n).filter(|i| i % n + 1 < n).collect();
    let targets: Vec<f32> = rows.iter().map(|&i| ids[i + 1]).collect();
    let positions: Vec<f32> = rows.iter().map(|&i| i as f32).collect();
    let chosen = select_positions(hidden, integers(&positions, [positions.len()]));
    let next = loss(bert.model.logits(chosen), integers(&targets, [targets.len()]));
    close("causal.loss", next, &expected);
}

#[test]
fn a_vision_transformer_is_the_librarys_forward_and_after_a_step() {
    let (folder, expected) = golden("vit");
    let vit = load_vit::<B>(&folder, &Default::default()).unwrap();
    let logits = vit.model.logits(tensor(&expected, "pixels", [4, 3, 8, 8]), None);
    close("logits", logits.clone(), &expected);
    let loss = soft_loss(logits, tensor(&expected, "targets", [4, 5]));
    close("loss", loss.clone(), &expected);

    let grads = GradientsParams::from_grads(loss.backward(), &vit.model);
    let model = adamw::<B, _>(&settings()).step(1e-3, vit.model.clone(), grads);
    let out = tempfile::tempdir().unwrap();
    let exported = ExportedViT {
        config: &vit.config,
        parameters: &Parameters::of(&model),
        classes: &vit.classes,
        files: &[],
    };
    let after = out.path().join("after");
    export_vit(&exported, &after).unwrap();
    let before = Store::open(&folder.join("model.safetensors")).unwrap();
    steps_agree(&before, &after, &expected, &BTreeMap::new());
}
