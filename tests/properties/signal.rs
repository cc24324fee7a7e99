//! Properties of signal propagation, and of the options that mend it.

use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{Int, Tensor, TensorData};
use proptest::prelude::*;
use wqk::attention::{AttentionMask, IndependentInit, SelfAttention, SelfAttentionConfig};
use wqk::backend::Autodiff;
use wqk::model::{InverseTemperature, Strength, TextTransformer, TextTransformerConfig};
use wqk::random;
use wqk::signal::probe::TextProbe;

use crate::support::*;

const N: usize = 5;

/// A layer of order-1 queries and keys with biases that are not 0.
fn layer<B: Backend>(shape: Shape, seed: u64) -> SelfAttention<B> {
    let device = Default::default();
    let std = 1.0 / (shape.d_model as f64).sqrt();
    let mut layer: SelfAttention<B> = SelfAttentionConfig::new(shape.d_model, shape.heads.n_heads())
        .with_n_kv_heads(shape.heads.n_kv_heads())
        .with_head_dim(shape.head_dim)
        .with_init(IndependentInit::with_std(std))
        .init(&device, &mut random::stream(seed, ["init"]))
        .expect("valid settings");
    for (i, linear) in [&mut layer.query, &mut layer.key, &mut layer.value]
        .into_iter()
        .enumerate()
    {
        if let Some(bias) = &mut linear.bias {
            let n = bias.dims()[0];
            let values = random::normal(&mut random::stream(seed, ["bias", &i.to_string()]), n, 0.5);
            *bias = burn::module::Param::from_data(TensorData::new(values, [n]), &device);
        }
    }
    layer
}

/// `X = a xᵀ`, of rank one.
fn rank_one(seed: u64, d: usize, scales: [f32; N]) -> TensorData {
    let x = random::normal(&mut random::stream(seed, ["token"]), d, 1.0);
    let values = scales.iter().flat_map(|a| x.iter().map(move |x| a * x)).collect();
    TensorData::new::<f32, _>(values, [1, N, d])
}

/// Norms of the gradients in `W_q`, `W_k` and `W_v` of a random linear function of the output.
fn gradient_norms<B: AutodiffBackend>(
    layer: &SelfAttention<B>,
    x: TensorData,
    mask: Option<&AttentionMask<B>>,
    seed: u64,
) -> [f64; 3] {
    let device = Default::default();
    let y = layer.forward(Tensor::from_data(x, &device), mask);
    let shape = y.dims();
    let direction = random::normal(
        &mut random::stream(seed, ["direction"]),
        shape.iter().product(),
        1.0,
    );
    let direction = Tensor::from_data(TensorData::new(direction, shape), &device);
    let gradients = (y * direction).sum().backward();
    [&layer.query, &layer.key, &layer.value].map(|linear| {
        let gradient = host(linear.weight.grad(&gradients).expect("the output depends on it"));
        gradient.iter().map(|g| g * g).sum::<f64>().sqrt()
    })
}

/// Identical tokens give queries and keys no gradient, whatever weights, biases, groups and mask, while values keep
/// theirs; tokens of rank one but unequal scales keep all three.
pub fn identical_tokens_silence_queries_and_keys<B: Backend>(profile: &Profile) {
    check(profile, |shape, seed| {
        let layer = layer::<Autodiff<B>>(shape, seed);
        let causal = AttentionMask::causal(N, &Default::default());
        for mask in [None, Some(&causal)] {
            let equal = rank_one(seed, shape.d_model, [1.0; N]);
            let [query, key, value] = gradient_norms(&layer, equal, mask, seed);
            // Sums of terms of the size of the values' gradient that cancel in f32.
            prop_assert!(query < 1e-5 * value, "queries {} of {}", query, value);
            prop_assert!(key < 1e-5 * value, "keys {} of {}", key, value);
            prop_assert!(value > 0.0);

            let unequal = rank_one(seed, shape.d_model, [0.5, 1.0, -0.7, 1.5, 0.2]);
            let [query, key, value] = gradient_norms(&layer, unequal, mask, seed);
            prop_assert!(query > 1e-4 * value, "queries {} of {}", query, value);
            prop_assert!(key > 1e-4 * value, "keys {} of {}", key, value);
        }
        Ok(())
    });
}

fn tokens<B: Backend>() -> Tensor<B, 2, Int> {
    Tensor::from_data(
        TensorData::from([[1, 4, 2, 7, 3], [0, 5, 5, 6, 1]]),
        &Default::default(),
    )
}

fn config() -> TextTransformerConfig {
    TextTransformerConfig::new(8, 8, 2, 2)
        .with_max_positions(N)
        .with_dropout(0.0)
        .with_attention_dropout(0.0)
        .with_init_std(0.4)
}

fn model<B: Backend>(config: &TextTransformerConfig) -> TextTransformer<B> {
    config.init(3, &Default::default()).expect("valid settings")
}

fn output<B: Backend>(config: &TextTransformerConfig) -> Vec<f64> {
    host(model::<B>(config).forward(tokens(), None, None))
}

/// The options of the residual branches and of the temperature compute what they say.
pub fn strengths_and_temperature_are_factors<B: Backend>(_: &Profile) {
    let close = |a: &[f64], b: &[f64]| close(a, b, 1e-5).unwrap();
    let plain = output::<B>(&config());
    // 1/√L at a depth of two, three ways; the last one trained, from there.
    let scaled = config().with_attention_strength(Strength::SCALED);
    let listed = config().with_attention_strength(Strength::PerLayer(vec![0.5f64.sqrt(); 2]));
    let trained = scaled.clone().with_train_strengths(true);
    let expected = output::<B>(&scaled);
    close(&output::<B>(&listed), &expected);
    close(&output::<B>(&trained), &expected);
    assert!(plain.iter().zip(&expected).any(|(a, b)| (a - b).abs() > 1e-3));

    // Trained strengths get gradients, in every layer and branch.
    let model_ad = model::<Autodiff<B>>(&trained);
    assert_eq!(model_ad.blocks[1].strengths()[1], 1.0);
    let y = model_ad.forward(tokens(), None, None);
    let weights = TensorData::new(
        random::normal(&mut random::stream(0, ["direction"]), 2 * N * 8, 1.0),
        [2, N, 8],
    );
    let gradients = (y * Tensor::from_data(weights, &Default::default()))
        .sum()
        .backward();
    for block in &model_ad.blocks {
        let strengths = block.trained_strengths.as_ref().expect("asked for");
        let gradient = host(
            strengths
                .val()
                .grad(&gradients)
                .expect("the output depends on it"),
        );
        assert!(
            gradient.len() == 2 && gradient.iter().all(|g| g.abs() > 1e-6),
            "{gradient:?}"
        );
    }

    // The temperature of a step is that of a model which has it from the start.
    let rise = config().with_inverse_temperature(InverseTemperature::Rise {
        from: 1.0,
        to: 3.0,
        steps: 10,
    });
    let at = |step| host(model::<B>(&rise).at_step(step).forward(tokens(), None, None));
    close(&output::<B>(&rise), &plain);
    close(
        &at(5),
        &output::<B>(&config().with_inverse_temperature(2.0.into())),
    );
    close(
        &at(50),
        &output::<B>(&config().with_inverse_temperature(3.0.into())),
    );
}

/// A probe measures the same on every path: forward alone, and with gradients.
pub fn probes_are_of_the_model<B: Backend>(_: &Profile) {
    let probe = TextProbe {
        batch: 2,
        causal: true,
        ..TextProbe::new(N)
    };
    // Dropout is switched off in a probe.
    let config = config().with_dropout(0.5).with_attention_dropout(0.5);
    let signal = probe.of_model(&model::<Autodiff<B>>(&config), 1).expect("finite");
    let forward = probe.of_forward(&model::<B>(&config), 1).expect("finite");
    for (a, b) in signal.layers.iter().zip(&forward.layers) {
        close(
            &[a.stream.norm, a.stream.cosine],
            &[b.stream.norm, b.stream.cosine],
            1e-5,
        )
        .unwrap();
        // A decoder's first position sees itself alone.
        let uniform = (1..=N).map(|keys| (keys as f64).ln()).sum::<f64>() / N as f64;
        assert!((a.attention.uniform_entropy - uniform).abs() < 1e-5);
        assert!(a.attention.entropy <= uniform + 1e-5);
        assert!((1.0..=N as f64 + 1e-4).contains(&a.stream.stable_rank));
        let gradients = a.gradients.expect("measured");
        assert!(gradients.own.query > 0.0 && gradients.whole.value > 0.0);
    }
}
