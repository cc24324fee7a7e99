//! Properties of the attention layer.
//!
//! Tolerances: softmax and three products in f32 on entries of order 1; 1e-5 of the largest entry holds for every
//! order of summation.

use burn::nn::attention::{MhaInput, MultiHeadAttentionConfig};
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{Bool, Tensor, TensorData};
use proptest::prelude::*;
use wqk::attention::{AttentionMask, IndependentInit, Noise, SelfAttention, SelfAttentionConfig};
use wqk::backend::Autodiff;
use wqk::bilinear::Heads;
use wqk::random;

use crate::support::*;

const BATCH: usize = 2;
const N: usize = 5;

/// Weights for which queries and keys, and so the logits, are of order 1: attention is far from uniform, and a
/// rounded logit does not blow up in the exponential.
fn config(shape: Shape) -> SelfAttentionConfig {
    let std = 1.0 / (shape.d_model as f64).sqrt();
    SelfAttentionConfig::new(shape.d_model, shape.heads.n_heads())
        .with_n_kv_heads(shape.heads.n_kv_heads())
        .with_head_dim(shape.head_dim)
        .with_init(IndependentInit::with_std(std))
}

/// A layer with biases that are not 0.
fn layer<B: Backend>(config: &SelfAttentionConfig, seed: u64) -> SelfAttention<B> {
    let device = Default::default();
    let mut layer = config
        .init(&device, &mut random::stream(seed, ["init"]))
        .expect("valid settings");
    let linears = [
        &mut layer.query,
        &mut layer.key,
        &mut layer.value,
        &mut layer.output,
    ];
    for (i, linear) in linears.into_iter().enumerate() {
        if let Some(bias) = &mut linear.bias {
            let n = bias.dims()[0];
            let values = random::normal(&mut random::stream(seed, ["bias", &i.to_string()]), n, 0.5);
            *bias = burn::module::Param::from_data(TensorData::new(values, [n]), &device);
        }
    }
    layer
}

fn tokens<B: Backend>(seed: u64, place: &str, d_model: usize) -> Tensor<B, 3> {
    let values = random::normal(&mut random::stream(seed, [place]), BATCH * N * d_model, 1.0);
    Tensor::from_data(TensorData::new(values, [BATCH, N, d_model]), &Default::default())
}

fn linear<B: Backend>(linear: &burn::nn::Linear<B>, x: &Dense) -> Dense {
    let product = x.times(&Dense::of(linear.weight.val()));
    let bias = linear
        .bias
        .as_ref()
        .map_or(vec![0.0; product.columns], |b| host(b.val()));
    Dense::from_fn(product.rows, product.columns, |i, j| product.at(i, j) + bias[j])
}

/// Some sequence of a batch, in f64.
fn sequence<B: Backend>(x: &Tensor<B, 3>, index: usize) -> Dense {
    let [_, n, d] = x.dims();
    Dense::of(x.clone().slice([index..index + 1, 0..n, 0..d]).reshape([n, d]))
}

pub fn output_is_that_of_the_formula<B: Backend>(profile: &Profile) {
    check(profile, |shape, seed| {
        let temperature = 1.5;
        let config = config(shape).with_inverse_temperature(temperature);
        let layer = layer::<B>(&config, seed);
        let x = tokens::<B>(seed, "x", shape.d_model);
        let device = Default::default();
        let sees = |query: usize, key: usize| (query + 2 * key) % 3 != 1;
        for masked in [false, true] {
            let mask = masked.then(|| AttentionMask::from_fn(N, sees, &device));
            let output = layer.forward(x.clone(), mask.as_ref());
            for b in 0..BATCH {
                let x = sequence(&x, b);
                let (q, k, v) = (
                    linear(&layer.query, &x),
                    linear(&layer.key, &x),
                    linear(&layer.value, &x),
                );
                let r = shape.head_dim;
                let mut mixed = Dense::from_fn(N, shape.heads.n_heads() * r, |_, _| 0.0);
                for head in 0..shape.heads.n_heads() {
                    let from = shape.heads.group_of(head) * r;
                    let logits = q.block(head * r, r).times(&k.block(from, r).transposed());
                    for i in 0..N {
                        let exp = |j: usize| {
                            let visible = !masked || sees(i, j);
                            let logit = logits.at(i, j) * temperature / (r as f64).sqrt();
                            if visible { logit.exp() } else { 0.0 }
                        };
                        let sum: f64 = (0..N).map(exp).sum();
                        for c in 0..r {
                            let value: f64 = (0..N).map(|j| exp(j) / sum * v.at(j, from + c)).sum();
                            mixed.values[i * mixed.columns + head * r + c] = value;
                        }
                    }
                }
                let expected = linear(&layer.output, &mixed);
                close(&sequence(&output, b).values, &expected.values, 1e-5)?;
            }
        }
        Ok(())
    });
}

pub fn detailed_is_the_same<B: Backend>(profile: &Profile) {
    check(profile, |shape, seed| {
        let layer = layer::<B>(&config(shape), seed);
        let x = tokens::<B>(seed, "x", shape.d_model);
        let mask = AttentionMask::causal(N, &Default::default());
        let detailed = layer.forward_detailed(x.clone(), Some(&mask), None);
        close(
            &host(detailed.output),
            &host(layer.forward(x.clone(), Some(&mask))),
            1e-5,
        )?;

        // Without biases the raw scores are those of the bilinear form, head by head.
        let layer = self::layer::<B>(&config(shape).with_bias(false), seed);
        let detailed = layer.forward_detailed(x.clone(), None, None);
        let form = layer.form().unwrap();
        for (h, head) in form.heads().enumerate() {
            let scores = detailed.scores.clone().slice([1..2, h..h + 1, 0..N, 0..N]);
            let expected = head.scores(sequence(&x, 1).tensor()).unwrap();
            close(&host(scores), &host(expected), 1e-5)?;
        }
        // And every row of the weights sums to 1.
        let sums = host(detailed.weights.sum_dim(3));
        close(&sums, &vec![1.0; sums.len()], 1e-5)
    });
}

pub fn grouped_is_multi_head_with_shared_keys<B: Backend>(profile: &Profile) {
    check(profile, |shape, seed| {
        let grouped = layer::<B>(&config(shape), seed);
        let (heads, r) = (shape.heads.n_heads(), shape.head_dim);
        // As many key heads as query heads, each group's repeated.
        let multi = Shape {
            heads: Heads::multi(heads),
            ..shape
        };
        let mut repeated = layer::<B>(&config(multi), seed);
        let repeat = |from: &burn::nn::Linear<B>, to: &mut burn::nn::Linear<B>| {
            let (w, b) = (
                from.weight.val(),
                from.bias.as_ref().expect("made with biases").val(),
            );
            let blocks = |h: usize| {
                let g = shape.heads.group_of(h) * r;
                (
                    w.clone().slice([0..shape.d_model, g..g + r]),
                    b.clone().slice(g..g + r),
                )
            };
            let (w, b) = (0..heads).map(blocks).unzip();
            to.weight = burn::module::Param::from_tensor(Tensor::cat(w, 1));
            to.bias = Some(burn::module::Param::from_tensor(Tensor::cat(b, 0)));
        };
        repeated.query = grouped.query.clone();
        repeated.output = grouped.output.clone();
        repeat(&grouped.key, &mut repeated.key);
        repeat(&grouped.value, &mut repeated.value);
        let x = tokens::<B>(seed, "x", shape.d_model);
        let mask = AttentionMask::causal(N, &Default::default());
        let outputs = [&grouped, &repeated].map(|layer| host(layer.forward(x.clone(), Some(&mask))));
        close(&outputs[0], &outputs[1], 1e-5)?;
        close(
            &host(grouped.form().unwrap().full()),
            &host(repeated.form().unwrap().full()),
            1e-5,
        )
    });
}

/// Burn's own multi-head attention with the same weights, an independent program.
pub fn agrees_with_burn<B: Backend>(_: &Profile) {
    let (d, heads) = (16, 4);
    let device = Default::default();
    let ours = layer::<B>(
        &SelfAttentionConfig::new(d, heads).with_init(IndependentInit::with_std(0.25)),
        5,
    );
    let mut burns = MultiHeadAttentionConfig::new(d, heads)
        .with_dropout(0.0)
        .init::<B>(&device);
    burns.query = ours.query.clone();
    burns.key = ours.key.clone();
    burns.value = ours.value.clone();
    burns.output = ours.output.clone();
    let x = tokens::<B>(5, "x", d);
    let padded = Tensor::<B, 2, Bool>::from_data(
        TensorData::from([[false, false, false, true, true], [false; N]]),
        &device,
    );
    let mask = AttentionMask::key_padding(padded.clone()).and(AttentionMask::causal(N, &device));
    let causal = burn::nn::attention::generate_autoregressive_mask::<B>(BATCH, N, &device);
    let expected = burns.forward(MhaInput::self_attn(x.clone()).mask_pad(padded).mask_attn(causal));
    let detailed = ours.forward_detailed(x, Some(&mask), None);
    close(&host(detailed.weights), &host(expected.weights), 1e-5).unwrap();
    close(&host(detailed.output), &host(expected.context), 1e-5).unwrap();
}

pub fn causal_is_blind_to_the_future<B: Backend>(profile: &Profile) {
    check(profile, |shape, seed| {
        let layer = layer::<B>(&config(shape), seed);
        let d = shape.d_model;
        let x = tokens::<B>(seed, "x", d);
        let other = tokens::<B>(seed, "other", d);
        let causal = AttentionMask::causal(N, &Default::default());
        for p in 1..N {
            // Everything from position p on is replaced.
            let changed = Tensor::cat(
                vec![
                    x.clone().slice([0..BATCH, 0..p, 0..d]),
                    other.clone().slice([0..BATCH, p..N, 0..d]),
                ],
                1,
            );
            let before = |mask: Option<&AttentionMask<B>>, x: &Tensor<B, 3>| {
                host(layer.forward(x.clone(), mask).slice([0..BATCH, 0..p, 0..d]))
            };
            // A hidden key has a weight of exactly 0.
            prop_assert_eq!(before(Some(&causal), &x), before(Some(&causal), &changed));
            prop_assert_ne!(before(None, &x), before(None, &changed));
        }
        Ok(())
    });
}

pub fn padding_is_never_seen<B: Backend>(profile: &Profile) {
    check(profile, |shape, seed| {
        let layer = layer::<B>(&config(shape), seed);
        let d = shape.d_model;
        let x = tokens::<B>(seed, "x", d);
        let device = Default::default();
        // The second sequence is two tokens shorter.
        let padded = TensorData::from([[false; N], [false, false, false, true, true]]);
        let mask = AttentionMask::key_padding(Tensor::<B, 2, Bool>::from_data(padded, &device));
        let changed = x
            .clone()
            .slice_assign([1..2, 3..N, 0..d], Tensor::ones([1, 2, d], &device));
        let real = |x: Tensor<B, 3>| {
            let y = layer.forward(x, Some(&mask));
            let first = host(y.clone().slice([0..1, 0..N, 0..d]));
            (first, host(y.slice([1..2, 0..3, 0..d])))
        };
        prop_assert_eq!(real(x.clone()), real(changed));
        // A shorter sequence by itself gives the same.
        let short = x.clone().slice([1..2, 0..3, 0..d]);
        close(&real(x).1, &host(layer.forward(short, None)), 1e-5)
    });
}

pub fn fully_masked_rows_are_zero<B: Backend>(profile: &Profile) {
    check(profile, |shape, seed| {
        type Ad<B> = Autodiff<B>;
        let layer = layer::<Ad<B>>(&config(shape), seed);
        let device = Default::default();
        // Query 2 sees nothing.
        let mask = AttentionMask::from_fn(N, |query, key| query != 2 && key <= query, &device);
        let x = tokens::<Ad<B>>(seed, "x", shape.d_model).require_grad();
        let detailed = layer.forward_detailed(x.clone(), Some(&mask), None);
        let heads = shape.heads.n_heads();
        let blind = detailed.weights.clone().slice([0..BATCH, 0..heads, 2..3, 0..N]);
        prop_assert!(host(blind).iter().all(|&w| w == 0.0));
        let bias = host(layer.output.bias.as_ref().unwrap().val());
        let output = host(detailed.output.clone().slice([0..1, 2..3, 0..shape.d_model]));
        close(&output, &bias, 1e-6)?;
        // Gradients stay finite, and none comes back through the blind row.
        let gradients = detailed.output.clone().powi_scalar(2).sum().backward();
        let x_grad = host(x.grad(&gradients).unwrap());
        prop_assert!(x_grad.iter().all(|g| g.is_finite()));
        let scores_grad = detailed.scores_grad(&gradients).unwrap();
        let row = host(scores_grad.slice([0..BATCH, 0..heads, 2..3, 0..N]));
        prop_assert!(row.iter().all(|&g| g == 0.0));
        Ok(())
    });
}

pub fn dropout_acts_after_the_softmax<B: Backend>(profile: &Profile) {
    check(profile, |shape, seed| {
        let rate = 0.25;
        let layer = layer::<B>(&config(shape).with_dropout(rate), seed);
        let x = tokens::<B>(seed, "x", shape.d_model);
        let noise = Noise::new(seed, 3).at("layer 0");
        let plain = layer.forward_detailed(x.clone(), None, None);
        let noisy = layer.forward_detailed(x.clone(), None, Some(&noise));
        prop_assert_eq!(host(noisy.weights.clone()), host(plain.weights.clone()));
        prop_assert_ne!(host(noisy.output.clone()), host(plain.output));
        // The same address gives the same choice, another one another.
        let again = layer.forward_with(x.clone(), None, Some(&noise));
        close(&host(again), &host(noisy.output.clone()), 1e-5)?;
        let next = layer.forward_with(x, None, Some(&Noise::new(seed, 4).at("layer 0")));
        prop_assert_ne!(host(next), host(noisy.output));

        // Kept entries are divided by 1 − rate, and about a share of `rate` is gone: five standard errors.
        let ones = Tensor::<B, 2>::ones([50, 50], &Default::default());
        let dropped = host(wqk::attention::dropout(ones, rate, Some(&noise)));
        prop_assert!(
            dropped
                .iter()
                .all(|&x| x == 0.0 || (x * (1.0 - rate) - 1.0).abs() < 1e-6)
        );
        let share = dropped.iter().filter(|&&x| x == 0.0).count() as f64 / 2500.0;
        prop_assert!(
            (share - rate).abs() < 5.0 * (rate * (1.0 - rate) / 2500.0).sqrt(),
            "{}",
            share
        );
        Ok(())
    });
}

/// `∂L/∂W_q,h = Xᵀ B_h K_g` and `∂L/∂W_k,g = Σ_{h in g} Xᵀ B_hᵀ Q_h`, with `B_h = ∂L/∂Â_h`, biases in Q and K
/// included, summed over the batch; and `Σ_j β_ij = 0` in every row, by the softmax.
pub fn gradients_are_those_of_the_raw_scores<B: Backend>(profile: &Profile) {
    check(profile, |shape, seed| {
        for bias in [false, true] {
            let layer = layer::<Autodiff<B>>(&config(shape).with_bias(bias), seed);
            let x = tokens::<Autodiff<B>>(seed, "x", shape.d_model);
            let mask = AttentionMask::causal(N, &Default::default());
            let detailed = layer.forward_detailed(x.clone(), Some(&mask), None);
            let target = tokens::<Autodiff<B>>(seed, "target", shape.d_model);
            let gradients = (detailed.output.clone() - target).powi_scalar(2).sum().backward();
            let beta = detailed.scores_grad(&gradients).unwrap();

            let (d, r) = (shape.d_model, shape.head_dim);
            let (heads, groups) = (shape.heads.n_heads(), shape.heads.n_kv_heads());
            let mut query = Dense::from_fn(d, heads * r, |_, _| 0.0);
            let mut key = Dense::from_fn(d, groups * r, |_, _| 0.0);
            for b in 0..BATCH {
                let x = sequence(&x, b);
                let (q, k) = (linear(&layer.query, &x), linear(&layer.key, &x));
                for h in 0..heads {
                    let g = shape.heads.group_of(h);
                    let block = beta.clone().slice([b..b + 1, h..h + 1, 0..N, 0..N]);
                    let beta = Dense::of(block.reshape([N, N]));
                    for i in 0..N {
                        let sum: f64 = (0..N).map(|j| beta.at(i, j)).sum();
                        prop_assert!(sum.abs() < 1e-4 * beta.norm(), "row {} of β sums to {}", i, sum);
                        prop_assert!((i + 1..N).all(|j| beta.at(i, j) == 0.0), "β is not causal");
                    }
                    let to_query = x.transposed().times(&beta).times(&k.block(g * r, r));
                    let to_key = x.transposed().times(&beta.transposed()).times(&q.block(h * r, r));
                    for (i, j) in (0..d).flat_map(|i| (0..r).map(move |j| (i, j))) {
                        query.values[i * heads * r + h * r + j] += to_query.at(i, j);
                        key.values[i * groups * r + g * r + j] += to_key.at(i, j);
                    }
                }
            }
            let of = |linear: &burn::nn::Linear<Autodiff<B>>| host(linear.weight.grad(&gradients).unwrap());
            // Differences of products of f32 values, over more sums than the forward pass.
            close(&of(&layer.query), &query.values, 1e-4)?;
            close(&of(&layer.key), &key.values, 1e-4)?;
        }
        Ok(())
    });
}

/// Loss and gradients of the same layer and tokens, dropout included.
fn loss_and_gradients<B: AutodiffBackend>() -> Vec<Vec<f64>> {
    let shape = Shape {
        d_model: 16,
        heads: Heads::grouped(4, 2),
        head_dim: 4,
    };
    let layer = layer::<B>(&config(shape).with_dropout(0.2), 11);
    let x = tokens::<B>(11, "x", shape.d_model);
    let mask = AttentionMask::causal(N, &Default::default());
    let noise = Noise::new(11, 0).at("layer 0");
    let output = layer.forward_with(x, Some(&mask), Some(&noise));
    let loss = output.powi_scalar(2).mean();
    let gradients = loss.backward();
    let linears = [&layer.query, &layer.key, &layer.value, &layer.output];
    let of = |linear: &burn::nn::Linear<B>| host(linear.weight.grad(&gradients).unwrap());
    std::iter::once(host(loss.clone()))
        .chain(linears.map(of))
        .collect()
}

/// Within 1e-5 of the largest entry: the backends sum in different orders in f32.
#[allow(dead_code)] // where only one backend is built
pub fn backends_agree<A: Backend, B: Backend>() {
    let (a, b) = (
        loss_and_gradients::<Autodiff<A>>(),
        loss_and_gradients::<Autodiff<B>>(),
    );
    for (a, b) in a.iter().zip(&b) {
        close(b, a, 1e-5).unwrap();
    }
}
