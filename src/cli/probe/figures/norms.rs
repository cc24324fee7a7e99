//! How the norms of tokens are distributed, with depth.

use burn::tensor::Device;
use burn::tensor::backend::AutodiffBackend;

use super::{Drawn, STRENGTHS, Settings, table};
use crate::bilinear::quantile;
use crate::model::TextTransformerConfig;
use crate::report::plot::{Axis, Colour, Curves, Series};
use crate::signal::probe::TextProbe;

const LAYERS: usize = 24;
const WIDTH: usize = 64;
const SEEDS: u64 = 20;

pub(super) fn norms<B: AutodiffBackend>(settings: &Settings, device: &Device<B>) -> anyhow::Result<Drawn> {
    let bare = TextTransformerConfig::bare(4096, WIDTH, LAYERS, 4)
        .with_max_positions(32)
        .with_init_std((WIDTH as f64).powf(-0.5));
    let mut numbers = table([
        "strength",
        "layers_passed",
        "q05",
        "q25",
        "median",
        "q75",
        "q95",
        "kurtosis",
    ]);
    let mut spread = Curves::new(
        "Norms of tokens over their root mean square: median and 5 % to 95 % (20 seeds)",
        Axis::integer("layers passed"),
        Axis::log("norm of a token / root mean square"),
    );
    let mut tails = Curves::new(
        "Heaviness of the tails of the norms of tokens",
        Axis::integer("layers passed"),
        Axis::log("E‖x‖⁴ / (E‖x‖²)²"),
    );
    for (i, (name, strength)) in STRENGTHS.into_iter().enumerate() {
        let (name, colour) = (format!("strength {name}"), Colour::Category(i));
        settings.say(&format!("norms with {name}"));
        let model = bare
            .clone()
            .with_attention_strength(strength.clone())
            .with_feed_forward_strength(strength);
        let mut layers: Vec<Vec<f64>> = vec![Vec::new(); LAYERS + 1];
        for seed in (0..SEEDS).map(|i| settings.seed.wrapping_add(i)) {
            let model = model.init::<B::InnerBackend>(seed, device)?;
            let signal = TextProbe::new(32).of_forward(&model, seed)?;
            for (norms, stream) in layers.iter_mut().zip(signal.streams()) {
                norms.extend(&stream.token_norms);
            }
        }
        let mut rows: Vec<[f64; 6]> = Vec::new();
        for norms in &layers {
            let mean = |power: i32| {
                norms.iter().map(|norm| norm.powi(power)).sum::<f64>() / norms.len().max(1) as f64
            };
            let root = mean(2).sqrt();
            let relative: Vec<f64> = norms.iter().map(|norm| norm / root).collect();
            let at = |p: f64| quantile(&relative, p).unwrap_or(f64::NAN);
            rows.push([
                at(0.05),
                at(0.25),
                at(0.5),
                at(0.75),
                at(0.95),
                mean(4) / mean(2).powi(2),
            ]);
        }
        for (layer, row) in rows.iter().enumerate() {
            let cells = row.iter().map(f64::to_string);
            numbers.push([name.clone(), layer.to_string()].into_iter().chain(cells));
        }
        let x: Vec<f64> = (0..=LAYERS).map(|layer| layer as f64).collect();
        let of = |i: usize| rows.iter().map(|row| row[i]).collect::<Vec<_>>();
        spread = spread.with(Series::new(name.clone(), &x, &of(2), colour).with_band(&of(0), &of(4)));
        tails = tails.with(Series::new(name, &x, &of(5), colour));
    }
    Ok(Drawn {
        figures: vec![("spread", spread.figure()), ("tails", tails.figure())],
        numbers,
    })
}
