//! Every closed form against the modules themselves.
//!
//! Each sample is large enough for an error of 3 % to be caught: the tolerance is 3 %, or twice the standard error of
//! the sample where that is less, as stated beside each.

use burn::tensor::{ElementConversion, Tensor, TensorData};

use super::probe::{ProbeError, TextProbe};
use super::theory::{GaussianTokens, ProjectionLaw, Stack, logit_variance};
use super::{Survey, Symptom, Thresholds, Verdict};
use crate::attention::{IndependentInit, SelfAttentionConfig};
use crate::backend::{Autodiff, Flex};
use crate::model::{Activation, FeedForwardKind, NormPlacement, Strength, TextTransformerConfig};
use crate::random;

type Ad = Autodiff<Flex>;

fn within(got: f64, expected: f64, tolerance: f64, what: &str) {
    assert!(
        (got / expected - 1.0).abs() < tolerance,
        "{what}: measured {got}, predicted {expected}, {:.1} % apart",
        100.0 * (got / expected - 1.0).abs()
    );
}

/// Queries of 0, so that attention is exactly uniform.
fn uniform(config: TextTransformerConfig) -> TextTransformerConfig {
    config.with_attention_init(
        IndependentInit {
            query_std: Some(0.0),
            ..IndependentInit::default()
        }
        .into(),
    )
}

fn forward(config: &TextTransformerConfig, length: usize, seeds: u64) -> Survey {
    let probe = TextProbe {
        batch: 2,
        ..TextProbe::new(length)
    };
    let signals: Vec<_> = (0..seeds)
        .map(|seed| {
            let model = config.init::<Flex>(seed, &Default::default()).unwrap();
            probe.of_forward(&model, seed).unwrap()
        })
        .collect();
    Survey::of(&signals).unwrap()
}

#[test]
fn norms_and_inner_products_are_the_exact_expectations() {
    // Grouped heads of another width than d/H, two linear maps, strengths that differ: N has a spread of about 10 % a
    // seed here and C of 20 %, so that 600 seeds leave 1 %.
    let config = uniform(
        TextTransformerConfig::bare(500, 96, 3, 4)
            .with_n_kv_heads(Some(2))
            .with_head_dim(Some(16))
            .with_feed_forward(FeedForwardKind::Mlp)
            .with_d_ff(Some(128))
            .with_max_positions(8)
            .with_init_std(0.12)
            .with_attention_strength(Strength::PerLayer(vec![0.9, 0.3, 0.6]))
            .with_feed_forward_strength(Strength::Constant(0.5)),
    );
    let prediction = Stack::of_text(&config, 8).unwrap().predict().unwrap();
    assert!(prediction.exact);
    let survey = forward(&config, 8, 600);
    within(
        survey.input.norm.mean,
        prediction.input.norm,
        0.01,
        "N at the input",
    );
    for (i, (got, expected)) in survey.layers.iter().zip(&prediction.layers).enumerate() {
        let place = format!("layer {i}");
        within(
            got.stream.norm.mean,
            expected.stream.norm,
            0.03,
            &format!("N, {place}"),
        );
        within(
            got.stream.inner_products.mean,
            expected.stream.inner_products,
            0.03,
            &format!("C, {place}"),
        );
        // W_q = 0: uniform up to the rounding of 1/n.
        assert!(got.distance.high < 1e-6 && (got.entropy.mean - 8f64.ln()).abs() < 1e-6);
    }
}

#[test]
fn norms_and_activations_follow_the_wide_limit() {
    // The limit is off by terms of 1/d and by the spread of a few seeds: 3 % of 1 at cosines, which 20 models of
    // width 256 leave.
    for (norm, activation) in [
        (NormPlacement::Post, Activation::Gelu),
        (NormPlacement::Post, Activation::Relu),
        (NormPlacement::Pre, Activation::Gelu),
        (NormPlacement::Pre, Activation::Linear),
        (NormPlacement::None, Activation::Relu),
    ] {
        let config = uniform(
            TextTransformerConfig::new(2000, 256, 4, 4)
                .with_dropout(0.0)
                .with_attention_dropout(0.0)
                .with_d_ff(Some(512))
                .with_max_positions(12)
                .with_init_std(1.0 / 16.0)
                .with_norm(norm)
                .with_activation(activation),
        );
        let prediction = Stack::of_text(&config, 12).unwrap().predict().unwrap();
        let survey = forward(&config, 12, 20);
        for (i, (got, expected)) in survey.layers.iter().zip(&prediction.layers).enumerate() {
            let what = format!("{norm:?} {activation:?} layer {i}");
            within(got.stream.norm.mean, expected.stream.norm, 0.05, &what);
            let (got, expected) = (got.stream.cosine.mean, expected.stream.cosine);
            assert!(
                (got - expected).abs() < 0.03,
                "{what}: cosine {got}, predicted {expected}"
            );
        }
    }
}

/// The gradients of one layer on given tokens, means over draws of the weights and of the direction.
fn gradient_means(config: &SelfAttentionConfig, x: &[f32], [n, d]: [usize; 2], draws: u64) -> [f64; 3] {
    let device = Default::default();
    let mut sums = [0.0; 3];
    for seed in 0..draws {
        let layer = config
            .init::<Ad>(&device, &mut random::stream(seed, ["init"]))
            .unwrap();
        let x = Tensor::<Ad, 3>::from_data(TensorData::new(x.to_vec(), [1, n, d]), &device);
        let direction = random::normal(&mut random::stream(seed, ["direction"]), n * d, 1.0);
        let direction = Tensor::from_data(TensorData::new(direction, [1, n, d]), &device);
        let gradients = (layer.forward(x, None) * direction).sum().backward();
        for (sum, linear) in sums.iter_mut().zip([&layer.query, &layer.key, &layer.value]) {
            let gradient = linear.weight.grad(&gradients).unwrap();
            *sum += gradient.powi_scalar(2).sum().into_scalar().elem::<f64>();
        }
    }
    sums.map(|sum| sum / draws as f64)
}

#[test]
fn gradients_of_a_layer_are_exact_for_any_tokens() {
    // Unequal norms, correlated, grouped heads, a temperature. The spread of a draw is about 50 %, so that 3000 draws
    // leave 1 %.
    let (n, d) = (7, 12);
    let mut x = random::normal(&mut random::stream(1, ["tokens"]), n * d, 1.0);
    for (e, value) in x.iter_mut().enumerate() {
        *value = *value * (1.0 + (e / d) as f32 / 4.0) + 0.5 * ((e % d) as f32 / 6.0 - 1.0);
    }
    let at = |i: usize, a: usize| f64::from(x[i * d + a]);
    let norm: f64 = (0..n * d).map(|e| at(e / d, e % d).powi(2)).sum();
    let sums: Vec<f64> = (0..d).map(|a| (0..n).map(|i| at(i, a)).sum()).collect();
    let inner_products: f64 = sums.iter().map(|sum| sum * sum).sum();
    let gram: f64 = (0..d * d)
        .map(|e| {
            let (a, b) = (e / d, e % d);
            let centred = |i: usize, a: usize| at(i, a) - sums[a] / n as f64;
            let entry: f64 = (0..n).map(|i| centred(i, a) * centred(i, b)).sum();
            entry * entry
        })
        .sum();
    // Attention is exactly uniform where either side is 0: queries for their own gradient, keys for theirs.
    for side in [0, 1] {
        let init = IndependentInit {
            query_std: Some(if side == 0 { 0.0 } else { 0.3 }),
            key_std: Some(if side == 0 { 0.4 } else { 0.0 }),
            value_std: Some(0.5),
            output_std: Some(0.25),
        };
        let config = SelfAttentionConfig::new(d, 4)
            .with_n_kv_heads(2)
            .with_head_dim(5)
            .with_inverse_temperature(1.7)
            .with_init(init);
        let law = ProjectionLaw::of_init(&config.init, &config.projections().unwrap(), 0.0, 1.7).unwrap();
        let predicted = law.gradients(n, norm, inner_products, gram);
        let got = gradient_means(&config, &x, [n, d], 3000);
        if side == 0 {
            within(got[0], predicted.query, 0.03, "queries");
            within(got[2], predicted.value, 0.03, "values");
        } else {
            within(got[1], predicted.key, 0.03, "keys");
        }
    }
}

#[test]
fn gradients_follow_the_tokens_through_the_layers() {
    // Long sequences against the width, where the spread of directions counts: taking the tokens of layer 4 as normal
    // would be off by a factor. Queries and keys are small enough for attention to be uniform.
    for (config, tolerance) in [
        (TextTransformerConfig::bare(4000, 64, 5, 4), 0.06),
        (
            TextTransformerConfig::bare(4000, 64, 5, 4)
                .with_norm(NormPlacement::Post)
                .with_feed_forward(FeedForwardKind::Mlp)
                .with_activation(Activation::Gelu),
            0.10,
        ),
    ] {
        let config = config
            .with_max_positions(96)
            .with_init_std(0.125)
            .with_attention_strength(Strength::Constant(0.3))
            .with_attention_init(
                IndependentInit {
                    query_std: Some(0.02),
                    key_std: Some(0.02),
                    ..IndependentInit::default()
                }
                .into(),
            );
        let prediction = Stack::of_text(&config, 96).unwrap().predict().unwrap();
        let probe = TextProbe {
            batch: 2,
            ..TextProbe::new(96)
        };
        let survey = probe.survey::<Ad>(&config, 0..40, &Default::default()).unwrap();
        for (i, (got, expected)) in survey.layers.iter().zip(&prediction.layers).enumerate() {
            let got = got.gradients.unwrap();
            let expected = expected.gradients.clone().unwrap();
            println!(
                "layer {i}: query {:.3} key {:.3} value {:.3}",
                got.query.mean / expected.query,
                got.key.mean / expected.key,
                got.value.mean / expected.value
            );
            let both = (got.query.mean + got.key.mean) / 2.0;
            within(both, expected.query, tolerance, &format!("layer {i}"));
            // The spread of values is wider: their gradients have one direction in the tokens.
            within(got.value.mean, expected.value, 0.25, &format!("layer {i}"));
        }
    }
}

#[test]
fn attention_is_as_far_from_uniform_as_its_logits_say() {
    // 40 draws of a head of width 64 on 200 tokens: the spread of a draw is some 5 %.
    let (n, d) = (200, 64);
    let device = Default::default();
    for variance in [0.1_f64, 0.4] {
        let (mut square, mut entropy, draws) = (0.0, 0.0, 40);
        let config = SelfAttentionConfig::new(d, 1)
            .with_bias(false)
            .with_std(1.0 / 8.0);
        for seed in 0..draws {
            let layer = config
                .init::<Flex>(&device, &mut random::stream(seed, ["init"]))
                .unwrap();
            let x = random::normal(&mut random::stream(seed, ["tokens"]), n * d, variance.sqrt());
            let x = Tensor::<Flex, 3>::from_data(TensorData::new(x, [1, n, d]), &device);
            let weights = layer.forward_detailed(x, None, None).weights;
            let signal = super::probe::AttentionSignal::of_layer(0, weights, None).unwrap();
            square += signal.squared_distance / draws as f64;
            entropy += signal.entropy / draws as f64;
        }
        let tokens = GaussianTokens::new(n, d, variance, 0.0).unwrap();
        let v = logit_variance(
            [tokens.norm(), tokens.inner_products()],
            n,
            [1.0 / d as f64; 2],
            1.0,
        );
        let distance = super::theory::attention_distance(v).unwrap();
        within(square, distance * distance, 0.05, "squared distance");
        let lost = (n as f64).ln() - super::theory::attention_entropy(n, v).unwrap();
        within((n as f64).ln() - entropy, lost, 0.05, "lost entropy");
    }
}

#[test]
fn a_collapsing_model_is_told_so_with_its_remedy() {
    let config = TextTransformerConfig::bare(500, 64, 24, 4)
        .with_max_positions(16)
        .with_init_std(0.125);
    let stack = Stack::of_text(&config, 16).unwrap();
    let survey = TextProbe::new(16)
        .survey::<Ad>(&config, 0..2, &Default::default())
        .unwrap();
    let verdict = Verdict::of(&survey, Some(&stack), config.norm, Thresholds::default());
    assert!(!verdict.propagates);
    let collapse = &verdict.findings[0];
    assert_eq!(collapse.symptom, Symptom::RankCollapse);
    assert!(
        collapse.text.contains("after layer 23") && collapse.text.contains("1/√L"),
        "{}",
        collapse.text
    );
    let scaled = config
        .with_attention_strength(Strength::SCALED)
        .with_feed_forward_strength(Strength::SCALED);
    let survey = TextProbe::new(16)
        .survey::<Ad>(&scaled, 0..2, &Default::default())
        .unwrap();
    let verdict = Verdict::of(&survey, Some(&stack), scaled.norm, Thresholds::default());
    assert!(verdict.propagates, "{:?}", verdict.findings);
}

#[test]
fn nan_and_wrong_lengths_are_named() {
    let device = Default::default();
    let config = TextTransformerConfig::new(50, 16, 3, 2).with_max_positions(8);
    let mut model = config.init::<Ad>(0, &device).unwrap();
    let nan = Tensor::full([16, 16], f32::NAN, &device);
    model.blocks[1].attention.value.weight = burn::module::Param::from_tensor(nan);
    let error = TextProbe::new(8).of_model(&model, 0).unwrap_err();
    assert_eq!(
        error,
        ProbeError::NotFinite {
            layer: 1,
            quantity: "the tokens after the block"
        }
    );
    for length in [0, 1, 9] {
        let error = TextProbe::new(length)
            .at_init::<Ad>(&config, 0, &device)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("length") && error.contains("8 positions"),
            "{error}"
        );
    }
    let none = TextTransformerConfig {
        n_layers: 0,
        ..config
    };
    let error = TextProbe::new(8).at_init::<Ad>(&none, 0, &device).unwrap_err();
    assert!(error.to_string().contains("n_layers is 0"), "{error}");
}
