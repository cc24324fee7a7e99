//! What trains: small encoders over residual strength and the variance of queries and keys.

use burn::tensor::Device;
use burn::tensor::backend::AutodiffBackend;

use super::training::{Rule, Text, train};
use super::{Drawn, Settings, table};
use crate::attention::IndependentInit;
use crate::model::Strength;
use crate::report::plot::HeatMap;
use crate::signal::probe::TextProbe;

const LAYERS: usize = 12;
const WIDTH: usize = 32;
const CELLS: usize = 7;

pub(super) fn map<B: AutodiffBackend>(settings: &Settings, device: &Device<B>) -> anyhow::Result<Drawn> {
    let text = Text::read()?;
    let mut numbers = table([
        "strength",
        "query_key_variance",
        "token_cosine",
        "log10_gradient_ratio",
        "entropy_share",
        "loss_drop",
    ]);
    let mut cells: [Vec<f64>; 4] = Default::default();
    for row in 0..CELLS {
        settings.say(&format!("map: row {} of {CELLS}", row + 1));
        for column in 0..CELLS {
            let strength = 2f64.powi(row as i32 - 5);
            // Over the number of inputs.
            let variance = 4f64.powi(column as i32 - 3) / WIDTH as f64;
            let std = variance.sqrt();
            let init = IndependentInit {
                query_std: Some(std),
                key_std: Some(std),
                ..IndependentInit::default()
            };
            let config = text
                .encoder(LAYERS, WIDTH, Strength::Constant(strength))
                .with_init_std((WIDTH as f64).powf(-0.5))
                .with_attention_init(init.into());
            let model = config.init::<B>(settings.seed, device)?;
            let signal = TextProbe {
                batch: 4,
                ..TextProbe::new(32)
            }
            .of_model(&model, settings.seed)?;
            let ratio = signal.layers.last().and_then(|layer| {
                let whole = layer.gradients?.whole;
                Some((whole.query / whole.value).sqrt().log10())
            });
            let shares: Vec<f64> = signal
                .layers
                .iter()
                .map(|layer| layer.attention.entropy / layer.attention.uniform_entropy)
                .collect();
            let (_, losses) = train(
                &text,
                model,
                Rule::Adam,
                (settings.steps, settings.seed),
                device,
                &mut |_, _, _| Ok(()),
            )?;
            let last = losses.len().saturating_sub(10);
            let end = losses[last..].iter().sum::<f64>() / (losses.len() - last).max(1) as f64;
            let values = [
                signal.layers.last().map_or(f64::NAN, |layer| layer.stream.cosine),
                ratio.unwrap_or(f64::NAN),
                shares.iter().sum::<f64>() / shares.len().max(1) as f64,
                losses.first().map_or(f64::NAN, |first| first - end),
            ];
            numbers.push(
                [strength, variance]
                    .into_iter()
                    .chain(values)
                    .map(|value| value.to_string()),
            );
            for (cells, value) in cells.iter_mut().zip(values) {
                cells.push(value);
            }
        }
    }
    let [cosine, ratio, entropy, drop] = cells;
    let figure = |title: &str, value: &str, cells: &[f64]| {
        HeatMap::new(title, [CELLS, CELLS], cells)
            .with_labels(
                "residual strength 2^(row − 5)",
                "query-key variance 4^(column − 3)/width",
                value,
            )
            .figure()
    };
    Ok(Drawn {
        figures: vec![
            (
                "cosine",
                figure("Token cosine at the output, at the start", "cosine", &cosine),
            ),
            (
                "gradients",
                figure(
                    "Query to value gradients, last layer, at the start",
                    "log₁₀ of the ratio",
                    &ratio,
                ),
            ),
            (
                "entropy",
                figure(
                    "Entropy of attention over that of uniform attention",
                    "share",
                    &entropy,
                ),
            ),
            ("loss", figure("What training takes off the loss", "nats", &drop)),
        ],
        numbers,
    })
}
