//! One attention layer on normal tokens: its gradients and its distance from uniform, against the theory.

use burn::tensor::backend::AutodiffBackend;
use burn::tensor::{Device, ElementConversion, Tensor, TensorData};

use super::{Drawn, Settings, table};
use crate::attention::{IndependentInit, SelfAttention, SelfAttentionConfig};
use crate::random;
use crate::report::plot::{Axis, Colour, Curves, Series};
use crate::report::table::Table;
use crate::signal::Interval;
use crate::signal::probe::AttentionSignal;
use crate::signal::theory::{GaussianTokens, LARGEST_LOGIT_VARIANCE, attention_distance, logit_variance_of};

const SEEDS: u64 = 20;
/// Sequences of each seed: they average over tokens, seeds over weights too.
const BATCH: usize = 8;

/// The tokens around which each sweep goes: attention is near uniform for them.
const BASE: GaussianTokens = GaussianTokens {
    n: 32,
    d: 64,
    variance: 0.3,
    correlation: 0.2,
};

/// Normal tokens, `[BATCH, n, d]`.
fn draw<B: AutodiffBackend>(tokens: &GaussianTokens, seed: u64, device: &Device<B>) -> Tensor<B, 3> {
    let GaussianTokens {
        n,
        d,
        variance,
        correlation,
    } = *tokens;
    let normal = |part: &str, rows: usize, share: f64| {
        let mut rng = random::stream(seed, ["figure", part]);
        let values = random::normal(&mut rng, BATCH * rows * d, (share * variance).sqrt());
        Tensor::<B, 3>::from_data(TensorData::new(values, [BATCH, rows, d]), device)
    };
    normal("own", n, 1.0 - correlation) + normal("common", 1, correlation)
}

fn layer<B: AutodiffBackend>(
    config: &SelfAttentionConfig,
    seed: u64,
    device: &Device<B>,
) -> anyhow::Result<SelfAttention<B>> {
    let mut rng = random::stream(seed, ["figure", "weights"]);
    Ok(config.clone().with_bias(false).init::<B>(device, &mut rng)?)
}

/// Squared gradient norms of queries, keys and values: one number for each seed.
fn gradient_norms<B: AutodiffBackend>(
    tokens: &GaussianTokens,
    settings: &Settings,
    device: &Device<B>,
) -> anyhow::Result<[Interval; 3]> {
    let config = SelfAttentionConfig::new(tokens.d, 1)
        .with_init(IndependentInit::with_std((tokens.d as f64).powf(-0.5)));
    let mut norms: [Vec<f64>; 3] = Default::default();
    for seed in (0..SEEDS).map(|i| settings.seed.wrapping_add(i)) {
        let layer = layer::<B>(&config, seed, device)?;
        let y = layer.forward(draw(tokens, seed, device), None);
        let shape = y.dims();
        let direction = random::normal(
            &mut random::stream(seed, ["figure", "direction"]),
            shape.iter().product(),
            1.0,
        );
        let direction = Tensor::from_data(TensorData::new(direction, shape), device);
        let gradients = (y * direction).sum().backward();
        for (norms, linear) in norms.iter_mut().zip([&layer.query, &layer.key, &layer.value]) {
            let square = linear.weight.grad(&gradients).map_or(0.0, |gradient| {
                gradient.powi_scalar(2).sum().into_scalar().elem::<f64>()
            });
            norms.push((square / BATCH as f64).sqrt());
        }
    }
    let none = Interval {
        mean: f64::NAN,
        low: f64::NAN,
        high: f64::NAN,
    };
    Ok(norms.map(|norms| Interval::of(norms).unwrap_or(none)))
}

pub(super) fn gradients<B: AutodiffBackend>(
    settings: &Settings,
    device: &Device<B>,
) -> anyhow::Result<Drawn> {
    let sizes = |values: &[usize], of: fn(usize) -> GaussianTokens| {
        values.iter().map(|&v| (v as f64, of(v))).collect::<Vec<_>>()
    };
    let numbers = |values: &[f64], of: fn(f64) -> GaussianTokens| {
        values.iter().map(|&v| (v, of(v))).collect::<Vec<_>>()
    };
    let sweeps = [
        (
            "width",
            Axis::log("width d"),
            sizes(&[16, 32, 64, 128, 256], |d| GaussianTokens { d, ..BASE }),
        ),
        (
            "length",
            Axis::log("length n"),
            sizes(&[4, 8, 16, 32, 64, 128], |n| GaussianTokens { n, ..BASE }),
        ),
        (
            "correlation",
            Axis::linear("correlation ρ of the tokens"),
            numbers(&[0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95], |correlation| {
                GaussianTokens { correlation, ..BASE }
            }),
        ),
        (
            "variance",
            Axis::log("variance σ² of the input"),
            numbers(&[0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0], |variance| {
                GaussianTokens { variance, ..BASE }
            }),
        ),
    ];
    let mut numbers = sweep_table("matrix");
    let mut figures = Vec::new();
    for (name, axis, points) in sweeps {
        settings.say(&format!("gradients over {name}"));
        let mut measured: [Vec<Interval>; 3] = Default::default();
        for (value, tokens) in &points {
            let norms = gradient_norms::<B>(tokens, settings, device)?;
            let predicted = predicted(tokens);
            for (i, matrix) in ["query", "key", "value"].into_iter().enumerate() {
                measured[i].push(norms[i]);
                push(
                    &mut numbers,
                    name,
                    *value,
                    matrix,
                    predicted[i],
                    &norms[i],
                    logits(tokens),
                );
            }
        }
        let x: Vec<f64> = points.iter().map(|point| point.0).collect();
        let mut curves = Curves::new(
            format!("Gradient norms over {name}: autodiff (20 seeds) and theory (dashed)"),
            axis,
            Axis::log("‖∂S/∂W‖"),
        );
        for (i, matrix) in ["query", "key", "value"].into_iter().enumerate() {
            let series = with_range(matrix, &x, &measured[i], i);
            let theory: Vec<f64> = points.iter().map(|point| predicted(&point.1)[i]).collect();
            curves = curves
                .with(series)
                .with(Series::new(format!("{matrix}, theory"), &x, &theory, Colour::Category(i)).dashed());
        }
        figures.push((name, curves.figure()));
    }
    Ok(Drawn { figures, numbers })
}

/// The gradient norms of the theory, of uniform attention: queries and keys are alike.
fn predicted(tokens: &GaussianTokens) -> [f64; 3] {
    let query = tokens.query_gradient().sqrt();
    [query, query, tokens.value_gradient().sqrt()]
}

fn logits(tokens: &GaussianTokens) -> f64 {
    let variances = [1.0 / tokens.d as f64; 2];
    logit_variance_of(
        (tokens.n, tokens.d),
        (tokens.variance, tokens.correlation),
        variances,
        1.0,
    )
}

/// A table for what [`push`] adds, `what` being the thing measured.
fn sweep_table(what: &str) -> Table {
    table([
        "sweep",
        "value",
        what,
        "predicted",
        "measured_mean",
        "measured_low",
        "measured_high",
        "logit_variance",
    ])
}

/// Means as a line, in a band from the lowest to the highest.
fn with_range(name: &str, x: &[f64], measured: &[Interval], colour: usize) -> Series {
    let of = |value: fn(&Interval) -> f64| measured.iter().map(value).collect::<Vec<_>>();
    Series::new(name, x, &of(|m| m.mean), Colour::Category(colour)).with_band(&of(|m| m.low), &of(|m| m.high))
}

#[allow(clippy::too_many_arguments)] // the columns of one record
fn push(
    table: &mut Table,
    sweep: &str,
    value: f64,
    what: &str,
    predicted: f64,
    measured: &Interval,
    logit_variance: f64,
) {
    let number = |value: f64| {
        if value.is_finite() {
            value.to_string()
        } else {
            String::new()
        }
    };
    table.push([
        sweep.to_owned(),
        value.to_string(),
        what.to_owned(),
        number(predicted),
        number(measured.mean),
        number(measured.low),
        number(measured.high),
        number(logit_variance),
    ]);
}

pub(super) fn uniformity<B: AutodiffBackend>(
    settings: &Settings,
    device: &Device<B>,
) -> anyhow::Result<Drawn> {
    const N: usize = 64;
    const D: usize = 100;
    let mut numbers = sweep_table("quantity");
    // What is drawn, over d_k with variances 1/d_k and 1/d_model, and over the input's standard deviation.
    let tokens = |variance: f64| GaussianTokens {
        n: N,
        d: D,
        variance,
        correlation: 0.0,
    };
    let widths = [16_usize, 32, 64, 128, 256, 512];
    let stds = [0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0];
    type Points = Vec<(f64, GaussianTokens, usize, f64)>;
    let sweeps: [(&'static str, &str, Axis, Points); 3] = [
        (
            "d_k",
            "variances of 1/d_k",
            Axis::log("width d_k of the head"),
            widths
                .iter()
                .map(|&k| (k as f64, tokens(0.03), k, 1.0 / k as f64))
                .collect(),
        ),
        (
            "d_k-fan-in",
            "variances of one over the inputs",
            Axis::log("width d_k of the head"),
            widths
                .iter()
                .map(|&k| (k as f64, tokens(0.3), k, 1.0 / D as f64))
                .collect(),
        ),
        (
            "input-std",
            "variances of one over the inputs",
            Axis::log("standard deviation of the input"),
            stds.iter()
                .map(|&std| (std, tokens(std * std), D, 1.0 / D as f64))
                .collect(),
        ),
    ];
    let mut figures = Vec::new();
    for (name, what, axis, points) in sweeps {
        settings.say(&format!("distance from uniform over {name}"));
        let (mut measured, mut theory) = (Vec::new(), Vec::new());
        for (value, tokens, width, variance) in &points {
            let config = SelfAttentionConfig::new(D, 1)
                .with_head_dim(*width)
                .with_init(IndependentInit::with_std(variance.sqrt()));
            let mut squares = Vec::new();
            for seed in (0..SEEDS).map(|i| settings.seed.wrapping_add(i)) {
                let layer = layer::<B>(&config, seed, device)?;
                let weights = layer
                    .forward_detailed(draw(tokens, seed, device), None, None)
                    .weights;
                squares.push(AttentionSignal::of_layer(0, weights.inner(), None)?.squared_distance);
            }
            let v = logit_variance_of((N, D), (tokens.variance, 0.0), [*variance; 2], 1.0);
            let predicted = attention_distance(v).map_or(f64::NAN, |distance| distance * distance);
            if let Some(interval) = Interval::of(squares) {
                push(
                    &mut numbers,
                    name,
                    *value,
                    "squared distance",
                    predicted,
                    &interval,
                    v,
                );
                measured.push(interval);
            }
            theory.push(predicted);
        }
        let x: Vec<f64> = points.iter().map(|point| point.0).collect();
        let curves = Curves::new(
            format!("Squared distance of attention from uniform, {what}"),
            axis,
            Axis::log("‖A − 11ᵀ/n‖²"),
        )
        .with(with_range("measured (20 seeds)", &x, &measured, 0))
        .with(
            Series::new(
                format!("theory, for logits of variance up to {LARGEST_LOGIT_VARIANCE}"),
                &x,
                &theory,
                Colour::Category(1),
            )
            .dashed(),
        );
        figures.push((name, curves.figure()));
    }
    Ok(Drawn { figures, numbers })
}
