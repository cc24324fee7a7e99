//! The weights of `tests/zoo`, repeated bit for bit from a seed: see `tests/zoo/weights.py`.

use std::path::Path;

use safetensors::tensor::{Dtype, TensorView};
use serde_json::Value;

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Output `n` of SplitMix64 started at `state`.
fn output(state: u64, n: u64) -> u64 {
    let mut z = state.wrapping_add(GOLDEN.wrapping_mul(n + 1));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xCBF2_9CE4_8422_2325, |h, byte| {
        (h ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3)
    })
}

/// The values of a tensor, row-major.
pub fn draw(seed: u64, name: &str, shape: &[usize]) -> Vec<f32> {
    let state = fnv1a(name) ^ seed;
    let numel: usize = shape.iter().product();
    let uniform = |i: usize| (output(state, i as u64) >> 40) as f64 / f64::from(1 << 23) - 1.0;
    if shape.len() < 2 {
        return (0..numel).map(|i| (1.0 + uniform(i) / 2.0) as f32).collect();
    }
    let (first, last) = (shape[0], shape[shape.len() - 1]);
    let row_size = numel / first.max(1);
    let column = |c: usize| {
        if output(state, (numel + c) as u64).is_multiple_of(8) {
            4.0
        } else {
            1.0
        }
    };
    let row = |r: usize| {
        if output(state, (numel + last + r) as u64).is_multiple_of(4) {
            2.0
        } else {
            1.0
        }
    };
    (0..numel)
        .map(|i| (uniform(i) * 0.125 * column(i % last) * row(i / row_size)) as f32)
        .collect()
}

/// Writes the checkpoint folder that a `tests/zoo` file describes.
pub fn write(model: &Value, folder: &Path) {
    let seed = model["seed"].as_u64().unwrap();
    let tensors: Vec<(String, Dtype, Vec<usize>, Vec<u8>)> = model["tensors"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, about)| {
            let shape: Vec<usize> = serde_json::from_value(about[1].clone()).unwrap();
            let values = || draw(seed, name, &shape).into_iter();
            let (dtype, bytes) = match about[0].as_str().unwrap() {
                "F32" => (Dtype::F32, values().flat_map(f32::to_le_bytes).collect()),
                "F16" => (
                    Dtype::F16,
                    values()
                        .flat_map(|v| half::f16::from_f32(v).to_le_bytes())
                        .collect(),
                ),
                "BF16" => (
                    Dtype::BF16,
                    values()
                        .flat_map(|v| half::bf16::from_f32(v).to_le_bytes())
                        .collect(),
                ),
                "I64" => (Dtype::I64, vec![0; 8 * shape.iter().product::<usize>()]),
                "BOOL" => (Dtype::BOOL, vec![0; shape.iter().product()]),
                other => panic!("the type {other} is not written"),
            };
            (name.clone(), dtype, shape, bytes)
        })
        .collect();
    let views: Vec<_> = tensors
        .iter()
        .map(|(name, dtype, shape, bytes)| (name, TensorView::new(*dtype, shape.clone(), bytes).unwrap()))
        .collect();
    safetensors::serialize_to_file(views, None, &folder.join("model.safetensors")).unwrap();
    std::fs::write(folder.join("config.json"), model["config"].to_string()).unwrap();
}
