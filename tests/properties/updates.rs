//! Properties of the gradient in the raw scores, and of updates of the form.
//!
//! Tolerances: products of f32 matrices with inner widths up to a few hundred, 1e-5 of the largest entry; 1e-4 where
//! two such products are compared or a gradient has gone through a model.

use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{Tensor, TensorData};
use proptest::prelude::*;
use wqk::backend::Autodiff;
use wqk::bilinear::{BilinearForm, Heads, ScoreGradients, WeightGradients, by_token};
use wqk::data::Packed;
use wqk::model::{NormPlacement, TextTransformer, TextTransformerConfig};
use wqk::objective::{ObjectiveMode, Prepared, Vocabulary};
use wqk::train::{Task, TextData, TextTask, TrainConfig, capture};

use crate::support::*;

const BATCH: usize = 2;
const N: usize = 5;

/// Tokens and a gradient of raw scores, causal and with rows that sum to 0, as a softmax gives.
fn causal<B: Backend>(shape: Shape, seed: u64) -> (Tensor<B, 3>, Tensor<B, 4>) {
    let heads = shape.heads.n_heads();
    let mut beta = Dense::random(seed, "beta", BATCH * heads * N, N).values;
    for (at, row) in beta.chunks_exact_mut(N).enumerate() {
        let seen = at % N + 1;
        let mean = row[..seen].iter().sum::<f64>() / seen as f64;
        for (key, value) in row.iter_mut().enumerate() {
            *value = if key < seen { *value - mean } else { 0.0 };
        }
    }
    (tokens(shape, seed), tensor(&beta, [BATCH, heads, N, N]))
}

fn tokens<B: Backend>(shape: Shape, seed: u64) -> Tensor<B, 3> {
    let x = Dense::random(seed, "x", BATCH * N, shape.d_model);
    tensor(&x.values, [BATCH, N, shape.d_model])
}

fn tensor<B: Backend, const D: usize>(values: &[f64], shape: [usize; D]) -> Tensor<B, D> {
    let values: Vec<f32> = values.iter().map(|&v| v as f32).collect();
    Tensor::from_data(TensorData::new(values, shape), &Default::default())
}

/// `Σ_ij β_ij x_i x_jᵀ`, pair by pair.
fn rank_one_sum(x: &[f64], beta: &[f64], d: usize) -> Dense {
    let mut sum = Dense::from_fn(d, d, |_, _| 0.0);
    for (b, beta) in beta.chunks_exact(N * N).enumerate() {
        let token = |i: usize| &x[(b * N + i) * d..(b * N + i + 1) * d];
        for (at, weight) in beta.iter().enumerate() {
            for (m, xi) in token(at / N).iter().enumerate() {
                for (k, xj) in token(at % N).iter().enumerate() {
                    sum.values[m * d + k] += weight * xi * xj;
                }
            }
        }
    }
    sum
}

pub fn parts_of_either_side_sum_to_the_gradient<B: Backend>(profile: &Profile) {
    check(profile, |shape, seed| {
        let (x, beta) = causal::<B>(shape, seed);
        let (d, heads) = (shape.d_model, shape.heads.n_heads());
        let gradients = ScoreGradients::new(x.clone(), beta).unwrap();
        let mut total = Dense::from_fn(d, d, |_, _| 0.0);
        for h in 0..heads {
            let head = gradients.head(h).unwrap();
            let expected = rank_one_sum(&host(x.clone()), &host(head.beta()), d);
            let got = Dense::of(head.gradient());
            close(&got.values, &expected.values, 1e-5)?;
            close(&host(head.form().unwrap().full()), &expected.values, 1e-5)?;
            for (sum, value) in total.values.iter_mut().zip(&expected.values) {
                *sum += value;
            }
            for parts in [head.query_parts(), head.key_parts()] {
                close(&host(parts.sum()), &expected.values, 1e-5)?;
                let shares = parts.shares().unwrap();
                let sum: f64 = shares.iter().sum();
                prop_assert!((sum - 1.0).abs() < 1e-4, "shares sum to {}", sum);
                // And so do the parts as forms, one by one, each of the norm that is said of it.
                let norms = parts.norms();
                let mut by_parts = Dense::from_fn(d, d, |_, _| 0.0);
                for (at, norm) in norms.iter().enumerate() {
                    let part = parts.part(at / N, at % N).unwrap();
                    prop_assert!((part.frobenius_norm() - norm).abs() <= 1e-4 * expected.norm());
                    for (sum, value) in by_parts.values.iter_mut().zip(host(part.full())) {
                        *sum += value;
                    }
                }
                close(&by_parts.values, &expected.values, 1e-5)?;
                let by_token: f64 = by_token(&shares, &[Some(3); BATCH * N]).values().sum();
                prop_assert!((by_token - 1.0).abs() < 1e-4);
                prop_assert!(parts.part(BATCH, 0).is_err() && parts.part(0, N).is_err());
            }
        }
        prop_assert!(gradients.head(heads).is_err());
        close(&host(gradients.total().gradient()), &total.values, 1e-5)
    });
}

/// `s(G) = 1` for symmetric β; the update has it only where also `W_q W_qᵀ = W_k W_kᵀ`.
pub fn symmetric_errors_give_a_symmetric_gradient_not_update<B: Backend>(profile: &Profile) {
    check(profile, |shape, seed| {
        let half = Dense::random(seed, "beta", BATCH * N, N);
        let beta = |b: usize, i: usize, j: usize| half.at(b * N + i, j) + half.at(b * N + j, i);
        let values: Vec<f64> = (0..BATCH * N * N)
            .map(|at| beta(at / (N * N), at / N % N, at % N))
            .collect();
        let x = tokens::<B>(shape, seed);
        let beta = tensor::<B, 4>(&values, [BATCH, 1, N, N]);
        let gradients = ScoreGradients::new(x, beta).unwrap();
        let head = gradients.head(0).unwrap();
        prop_assert!((head.form().unwrap().symmetry().unwrap() - 1.0).abs() < 1e-4);
        let pairs = head.pairs();
        prop_assert!((pairs.symmetry.unwrap() - 1.0).abs() < 1e-5);
        prop_assert_eq!(pairs.mutual, Some(1.0));

        let g = head.gradient();
        let update = |w_q: &Dense, w_k: &Dense| {
            let form = form::<B>(w_q, w_k, Heads::multi(1));
            let gradients = WeightGradients {
                query: g.clone().matmul(w_k.tensor()),
                key: g.clone().transpose().matmul(w_q.tensor()),
            };
            form.first_order_update(&gradients, 0.1)
                .unwrap()
                .symmetry()
                .unwrap()
        };
        let w_q = Dense::random(seed, "w_q", shape.d_model, shape.head_dim);
        let w_k = Dense::random(seed, "w_k", shape.d_model, shape.head_dim);
        prop_assert!((update(&w_q, &w_q) - 1.0).abs() < 1e-4);
        prop_assert!(update(&w_q, &w_k) < 0.999);
        Ok(())
    });
}

pub fn exact_updates_are_differences<B: Backend>(profile: &Profile) {
    check(profile, |shape, seed| {
        let (w_q, w_k) = factors(shape, seed);
        let (other_q, other_k) = factors(shape, seed ^ 1);
        let moved =
            |w: &Dense, by: &Dense| Dense::from_fn(w.rows, w.columns, |i, j| w.at(i, j) + 0.1 * by.at(i, j));
        let before = form::<B>(&w_q, &w_k, shape.heads);
        let after = form::<B>(&moved(&w_q, &other_q), &moved(&w_k, &other_k), shape.heads);
        let update = before.update_to(&after).unwrap();
        let difference = |before: &BilinearForm<B>, after: &BilinearForm<B>| {
            let (a, b) = (host(after.full()), host(before.full()));
            a.iter().zip(&b).map(|(a, b)| a - b).collect::<Vec<f64>>()
        };
        // The difference of two rounded matrices, each ten times as large.
        close(&host(update.full()), &difference(&before, &after), 1e-4)?;
        for ((update, before), after) in update.heads().zip(before.heads()).zip(after.heads()) {
            close(&host(update.full()), &difference(&before, &after), 1e-4)?;
        }
        prop_assert_eq!(before.update_to(&before).unwrap().frobenius_norm(), 0.0);
        prop_assert_eq!(before.cosine(&before.update_to(&before).unwrap()).unwrap(), None);
        // Inner products are those of the matrices.
        let (a, b) = (host(before.full()), host(update.full()));
        let expected: f64 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
        let scale = before.frobenius_norm() * update.frobenius_norm();
        prop_assert!((before.inner_product(&update).unwrap() - expected).abs() < 1e-5 * scale);
        prop_assert!((before.cosine(&before).unwrap().unwrap() - 1.0).abs() < 1e-5);
        let other = form_of::<B>(&Dense::random(seed, "other", 7, 7));
        prop_assert!(before.update_to(&other).is_err() && before.inner_product(&other).is_err());
        Ok(())
    });
}

/// With a head a group and no biases, `−η (W_q W_qᵀ G + G W_k W_kᵀ)`; and a small enough step of gradient descent does
/// just that.
pub fn first_order_updates_follow_from_the_gradient<B: Backend>(profile: &Profile) {
    check(profile, |shape, seed| {
        let shape = Shape {
            heads: Heads::multi(shape.heads.n_heads()),
            ..shape
        };
        let (w_q, w_k) = factors(shape, seed);
        let before = form::<B>(&w_q, &w_k, shape.heads);
        let (x, beta) = causal::<B>(shape, seed);
        let project = |w: &Dense, x: &Tensor<B, 3>| {
            let (heads, r) = (shape.heads.n_heads(), shape.head_dim);
            x.clone()
                .matmul(w.tensor::<B>().unsqueeze())
                .reshape([BATCH, N, heads, r])
                .swap_dims(1, 2)
        };
        let gradients = ScoreGradients::new(x.clone(), beta).unwrap();
        let weights = gradients
            .weight_gradients(project(&w_q, &x), project(&w_k, &x))
            .unwrap();
        let rate = 0.25;
        let update = before.first_order_update(&weights, rate).unwrap();
        for (h, update) in update.heads().enumerate() {
            let g = Dense::of(gradients.head(h).unwrap().gradient());
            let block = |w: &Dense| w.block(h * shape.head_dim, shape.head_dim);
            let gram = |w: Dense| w.times(&w.transposed());
            let (left, right) = (gram(block(&w_q)).times(&g), g.times(&gram(block(&w_k))));
            let expected: Vec<f64> = left
                .values
                .iter()
                .zip(&right.values)
                .map(|(a, b)| -rate * (a + b))
                .collect();
            close(&host(update.full()), &expected, 1e-4)?;
        }
        // A step so small that its square is lost, yet not the step itself.
        let size = 1e-3
            / host(weights.query.clone())
                .iter()
                .fold(0.0, |m: f64, x| m.max(x.abs()));
        let step = |w: &Dense, g: &Tensor<B, 2>| w.tensor::<B>() - g.clone().mul_scalar(size);
        let after =
            BilinearForm::new(step(&w_q, &weights.query), step(&w_k, &weights.key), shape.heads).unwrap();
        let exact = before.update_to(&after).unwrap();
        let cosine = exact.cosine(&update).unwrap().unwrap();
        prop_assert!(cosine > 0.9999, "cosine {}", cosine);
        Ok(())
    });
}

pub fn bad_gradients_are_named<B: Backend>(_: &Profile) {
    let x = Tensor::<B, 3>::ones([2, 3, 4], &Default::default());
    let beta = |shape: [usize; 4]| Tensor::<B, 4>::ones(shape, &Default::default());
    let message = |x: &Tensor<B, 3>, beta| ScoreGradients::new(x.clone(), beta).unwrap_err().to_string();
    assert!(message(&x, beta([2, 1, 3, 4])).contains("[2, 1, 3, 4]"));
    assert!(message(&x, beta([1, 1, 3, 3])).contains("[2, 3, 4]"));
    assert!(message(&x, beta([2, 1, 3, 3]) * f32::NAN).contains("beta holds NaN"));
    assert!(message(&(x.clone() * f32::INFINITY), beta([2, 1, 3, 3])).contains("x holds"));
    let gradients = ScoreGradients::new(x, beta([2, 4, 3, 3])).unwrap();
    let odd = gradients.weight_gradients(beta([2, 4, 3, 2]), beta([2, 3, 3, 2]));
    assert!(odd.unwrap_err().to_string().contains("do not divide"));
    let narrow = gradients.weight_gradients(beta([2, 4, 3, 2]), beta([2, 2, 3, 1]));
    assert!(narrow.unwrap_err().to_string().contains("do not fit"));
}

/// A model with grouped heads and biases away from 0, a batch of it, and its capture against autodiff.
pub fn model_gradients_are_those_of_autodiff<B: Backend>(_: &Profile) {
    for norm in [NormPlacement::Post, NormPlacement::Pre] {
        for objective in [
            ObjectiveMode::masked(0.3).unwrap(),
            ObjectiveMode::autoregressive(),
        ] {
            model_gradients::<Autodiff<B>>(norm, objective);
        }
    }
}

fn model_gradients<B: AutodiffBackend>(norm: NormPlacement, objective: ObjectiveMode) {
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
        batch_size: 4,
        accumulation: 1,
        ..TrainConfig::default()
    };
    let device = Default::default();
    let task = TextTask::<B>::new(objective, data, &config).unwrap();
    let mut model: TextTransformer<B> = TextTransformerConfig::new(25, 16, 2, 4)
        .with_n_kv_heads(Some(2))
        .with_norm(norm)
        .with_max_positions(8)
        .with_init_std(0.3)
        .init(3, &device)
        .unwrap();
    for (index, block) in model.blocks.iter_mut().enumerate() {
        for (place, linear) in [
            ("query", &mut block.attention.query),
            ("key", &mut block.attention.key),
        ] {
            let width = linear.weight.dims()[1];
            let bias = Dense::random(index as u64, place, 1, width).values;
            linear.bias = Some(burn::module::Param::from_tensor(tensor(&bias, [width])));
        }
    }
    let batch: Prepared = task.batches(0).unwrap().remove(0);
    let masked = batch.targets.len();
    let mut predicted: Vec<u32> = batch.positions.iter().map(|position| position / 8).collect();
    predicted.dedup();
    let captured = capture(&task, &model, batch, (0, 0), 1.0).unwrap();
    assert_eq!(captured.layers.len(), 2);
    for (layer, block) in captured.layers.iter().zip(&model.blocks) {
        let got = layer.weight_gradients().unwrap();
        let of = |linear: &burn::nn::Linear<B>| host(linear.weight.grad(&captured.gradients).unwrap());
        close(&host(got.query), &of(&block.attention.query), 1e-4).unwrap();
        close(&host(got.key), &of(&block.attention.key), 1e-4).unwrap();
        // The softmax: every row of β sums to 0.
        let beta = layer.gradients.beta();
        let largest = host(beta.clone().abs().max())[0];
        let sums = host(beta.clone().sum_dim(3));
        assert!(sums.iter().all(|s| s.abs() < 1e-4 * largest), "{sums:?}");
        if objective == ObjectiveMode::autoregressive() {
            for (at, b) in host(beta).iter().enumerate() {
                assert!(at % 8 <= at / 8 % 8 || *b == 0.0, "β is not causal at {at}");
            }
        }
    }
    if let ObjectiveMode::Masked(_) = objective {
        let rows = |layer: usize| {
            let beta = host(captured.layers[layer].gradients.beta());
            let carries = |row: &&[f64]| row.iter().any(|&b| b != 0.0);
            beta.chunks_exact(8).filter(carries).count()
        };
        // In the last layer masked queries alone carry an error, in each of 4 heads; in the first all do that share
        // a sequence with one.
        assert_eq!((rows(1), rows(0)), (4 * masked, 4 * 8 * predicted.len()));
    }
}
