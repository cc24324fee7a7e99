//! What the structure paper's code takes from a layer, computed apart from the library, by dense loops in f64.

use serde_json::{Value, json};
use wqk::checkpoint::{Fault, Options, Published};

use crate::{score, weights};

/// A matrix, row-major.
struct Dense {
    rows: usize,
    columns: usize,
    values: Vec<f64>,
}

impl Dense {
    fn of(rows: usize, columns: usize, value: impl Fn(usize, usize) -> f64) -> Self {
        let values = (0..rows * columns)
            .map(|i| value(i / columns, i % columns))
            .collect();
        Self {
            rows,
            columns,
            values,
        }
    }

    fn at(&self, i: usize, j: usize) -> f64 {
        self.values[i * self.columns + j]
    }

    /// A tensor of a `tests/zoo` model.
    fn tensor(model: &Value, name: &str) -> Self {
        let shape: Vec<usize> = serde_json::from_value(model["tensors"][name][1].clone()).unwrap();
        let values = weights::draw(model["seed"].as_u64().unwrap(), name, &shape);
        Self::of(shape[0], shape[1], |i, j| f64::from(values[i * shape[1] + j]))
    }

    fn row_range(&self, from: usize, to: usize) -> Self {
        Self::of(to - from, self.columns, |i, j| self.at(from + i, j))
    }

    fn transposed(&self) -> Self {
        Self::of(self.columns, self.rows, |i, j| self.at(j, i))
    }

    /// `self otherᵀ`.
    fn times_transposed(&self, other: &Self) -> Self {
        Self::of(self.rows, other.rows, |i, j| {
            (0..self.columns).map(|k| self.at(i, k) * other.at(j, k)).sum()
        })
    }

    /// `Tr(M M) / ‖M‖²`.
    fn symmetry(&self) -> f64 {
        let trace: f64 = (0..self.rows)
            .flat_map(|i| (0..self.rows).map(move |j| (i, j)))
            .map(|(i, j)| self.at(i, j) * self.at(j, i))
            .sum();
        trace / self.values.iter().map(|v| v * v).sum::<f64>()
    }
}

fn zoo(name: &str) -> Value {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/zoo/{name}.json"));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// What the library says the published code gives for each layer of a model.
fn published(model: &Value) -> Vec<(f64, Published)> {
    let folder = tempfile::tempdir().unwrap();
    weights::write(model, folder.path());
    let layers = score(folder.path(), &Options::default(), true).layers;
    layers
        .into_iter()
        .map(|l| (l.scores.symmetry.unwrap(), l.as_published.unwrap()))
        .collect()
}

#[test]
fn fused_weights_are_sliced_in_thirds_and_not_transposed() {
    use Fault::{Orientation, Slicing};
    for (name, tensor, faults) in [
        (
            "gpt-neox",
            "gpt_neox.layers.0.attention.query_key_value.weight",
            vec![Orientation, Slicing],
        ),
        (
            "bloom",
            "transformer.h.0.self_attention.query_key_value.weight",
            vec![Orientation, Slicing],
        ),
        (
            "deberta",
            "deberta.encoder.layer.0.attention.self.in_proj.weight",
            vec![Orientation, Slicing],
        ),
        ("modernbert", "model.layers.0.attn.Wqkv.weight", vec![Orientation]),
        (
            "phi3",
            "model.layers.0.self_attn.qkv_proj.weight",
            vec![Orientation],
        ),
    ] {
        let model = zoo(name);
        let (right, found) = &published(&model)[0];
        let weight = Dense::tensor(&model, tensor);
        let d = weight.columns;
        let expected = weight
            .row_range(0, d)
            .times_transposed(&weight.row_range(d, 2 * d))
            .symmetry();
        assert_eq!(found.faults, faults, "{name}");
        // f32 sums over 48 x 48 entries against f64 ones.
        assert!((found.symmetry.unwrap() - expected).abs() < 1e-5, "{name}");
        assert!((right - expected).abs() > 1e-3, "{name}: the fault must show");
    }
}

#[test]
fn grouped_keys_are_paired_in_turn() {
    let model = zoo("llama-linear");
    let (_, found) = &published(&model)[1];
    let q = Dense::tensor(&model, "layers.1.self_attn.q_proj.weight");
    let k = Dense::tensor(&model, "layers.1.self_attn.k_proj.weight");
    // 6 query heads on 2 key heads of 8: head h meets key head h mod 2.
    let tiled = Dense::of(48, 48, |i, j| k.at(i / 8 % 2 * 8 + i % 8, j));
    let expected = q.transposed().times_transposed(&tiled.transposed()).symmetry();
    assert_eq!(found.faults, [Fault::Pairing]);
    assert!((found.symmetry.unwrap() - expected).abs() < 1e-5);
}

#[test]
fn cross_attention_is_read_for_musicgen() {
    let model = zoo("musicgen");
    let layers = published(&model);
    let (_, found) = &layers[2];
    let tensor = |part: &str| {
        Dense::tensor(
            &model,
            &format!("decoder.model.decoder.layers.2.encoder_attn.{part}_proj.weight"),
        )
    };
    let expected = tensor("q")
        .transposed()
        .times_transposed(&tensor("k").transposed())
        .symmetry();
    assert_eq!(found.faults, [Fault::CrossAttention]);
    assert!((found.symmetry.unwrap() - expected).abs() < 1e-5);
    let (right, text) = layers.last().unwrap();
    assert!(
        text.faults.is_empty() && text.symmetry == Some(*right),
        "its text encoder is read rightly"
    );
}

#[test]
fn where_it_is_right_or_stops_is_said() {
    for name in [
        "bert",
        "gpt2",
        "gpt-neo",
        "t5",
        "llama-multi",
        "falcon-mqa",
        "llama-grouped",
        "deepseek-v2",
        "qwen3",
    ] {
        let layers = published(&zoo(name));
        let (right, found) = &layers[0];
        match name {
            "falcon-mqa" | "llama-grouped" | "deepseek-v2" | "qwen3" => {
                assert!(
                    found.stops.is_some() && found.symmetry.is_none(),
                    "{name}: {found:?}"
                );
            }
            _ => assert!(
                found.faults.is_empty() && found.symmetry == Some(*right),
                "{name}: {found:?}"
            ),
        }
    }
}

#[test]
fn a_layer_symmetric_in_every_head_is_an_eighth_symmetric_by_the_faulty_pairing() {
    // 32 query heads on 8 key heads, W_q,h = W_k,g(h) S_h with S_h symmetric and each head's own.
    let (heads, groups, dim, d) = (32, 8, 16, 512);
    let uniform = |name: &str, count: usize| -> Vec<f32> {
        weights::draw(7, name, &[count])
            .into_iter()
            .map(|v| 2.0 * (v - 1.0))
            .collect()
    };
    let k = uniform("k", groups * dim * d);
    let mut q = vec![0.0f32; heads * dim * d];
    for h in 0..heads {
        let s = uniform(&format!("s{h}"), dim * dim);
        for (i, row) in q[h * dim * d..(h + 1) * dim * d].chunks_mut(d).enumerate() {
            for j in 0..dim {
                let s = s[i * dim + j] + s[j * dim + i];
                let key = &k[(h / (heads / groups) * dim + j) * d..][..d];
                row.iter_mut().zip(key).for_each(|(q, k)| *q += s * k);
            }
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let bytes = |values: &[f32]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    let (q, k) = (bytes(&q), bytes(&k));
    let view = |data, rows| {
        safetensors::tensor::TensorView::new(safetensors::Dtype::F32, vec![rows, d], data).unwrap()
    };
    let tensors = [
        ("layers.0.self_attn.q_proj.weight", view(&q, heads * dim)),
        ("layers.0.self_attn.k_proj.weight", view(&k, groups * dim)),
    ];
    safetensors::serialize_to_file(tensors, None, &folder.path().join("model.safetensors")).unwrap();
    let config = json!({"model_type": "llama", "num_attention_heads": heads, "num_key_value_heads": groups,
                        "hidden_size": d, "num_hidden_layers": 1});
    std::fs::write(folder.path().join("config.json"), config.to_string()).unwrap();

    let report = score(folder.path(), &Options::default(), true);
    let layer = &report.layers[0];
    let right = layer.scores.symmetry.unwrap();
    assert!((right - 1.0).abs() < 1e-5, "{right}");
    assert!(
        layer
            .scores
            .heads
            .iter()
            .flatten()
            .all(|h| (h.symmetry.unwrap() - 1.0).abs() < 1e-5)
    );
    // 4 of the 32 pairs are right, so 4/32 of the squared norm is symmetric; the rest is random, ± 2/n.
    let faulty = layer.as_published.as_ref().unwrap().symmetry.unwrap();
    assert!((faulty - 0.125).abs() < 0.02, "{faulty}");
}
