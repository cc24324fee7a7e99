//! The propagation paper's translation experiment in small: post-norm encoder-decoders of several depths, under Adam and
//! SGD, with residual strengths of 1 and of 1/√L and with a rising inverse temperature; BLEU on held-out sentences.
//!
//! ```text
//! cargo run --release --example translation -- train.de train.en     # line n of one translates line n of the other
//! cargo run --release --example translation -- pairs.tsv             # source, tab, target
//! ```
//! Further settings by environment: DEPTHS=2,6 WIDTH=128 STEPS=2000 BATCH=32 LONGEST=100 HELD_OUT=200 TOKENIZER=vocab.json

use std::env;

use burn::module::AutodiffModule;
use burn::optim::{AdamConfig, GradientsParams, Optimizer, SgdConfig};
use burn::tensor::ElementConversion;
use wqk::attention::Noise;
use wqk::backend::{Autodiff, Flex};
use wqk::data::{ParallelText, Tokenizer};
use wqk::model::{EncoderDecoder, InverseTemperature, Strength, TextTransformerConfig};
use wqk::signal::probe::TextProbe;
use wqk::train::{TranslationData, clip_global_norm};

type B = Autodiff<Flex>;
type Model = EncoderDecoder<B>;

fn setting<T: std::str::FromStr>(name: &str, default: T) -> Result<T, String> {
    match env::var(name) {
        Ok(text) => text.parse().map_err(|_| format!("{name}={text} is not a number")),
        Err(_) => Ok(default),
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files: Vec<String> = env::args().skip(1).collect();
    let text = match files.as_slice() {
        [pairs] => ParallelText::from_tabs(pairs)?,
        [source, target] => ParallelText::from_lines(source, target)?,
        _ => return Err("usage: translation SOURCE TARGET, or translation PAIRS.tsv".into()),
    };
    let tokenizer = match env::var("TOKENIZER") {
        Ok(path) => Tokenizer::from_file(path)?,
        Err(_) => Tokenizer::characters(text.pairs.iter().flat_map(|(a, b)| [Ok(a), Ok(b)]), 200)?,
    };
    let longest = setting("LONGEST", 100)?;
    let data = TranslationData::new(&text, &tokenizer, longest)?;
    let (train, held_out) = data.hold_out(setting("HELD_OUT", 200)?)?;
    println!("{} pairs to train on, {} held out", train.len(), held_out.len());
    println!("layers  optimiser  strength    temperature    loss   BLEU  encoder cosine");

    let steps = setting("STEPS", 2000)?;
    let depths = env::var("DEPTHS").unwrap_or_else(|_| "2,6".into());
    for depth in depths.split(',') {
        let depth: usize = depth.trim().parse()?;
        for (name, strength, tau) in [
            ("1", Strength::ONE, InverseTemperature::ONE),
            ("1/√L", Strength::SCALED, InverseTemperature::ONE),
            (
                "1/√L",
                Strength::SCALED,
                InverseTemperature::Rise {
                    from: 1.0,
                    to: 8.5,
                    steps: steps / 4,
                },
            ),
        ] {
            let width = setting("WIDTH", 128)?;
            let config = TextTransformerConfig::new(tokenizer.vocabulary().size, width, depth, 4)
                .with_max_positions(longest)
                .with_init_std((width as f64).powf(-0.5))
                .with_attention_strength(strength.clone())
                .with_feed_forward_strength(strength)
                .with_inverse_temperature(tau);
            for adam in [true, false] {
                let model: Model = config.init_encoder_decoder(0, &Default::default())?;
                let (model, loss) = if adam {
                    run(
                        model,
                        AdamConfig::new().with_beta_2(0.98).init(),
                        1e-3,
                        &train,
                        steps,
                    )?
                } else {
                    run(model, SgdConfig::new().init(), 0.3, &train, steps)?
                };
                let model = model.valid();
                let (bleu, _) = held_out.bleu(&model, &tokenizer, 32)?;
                let cosine = TextProbe::new(longest.min(32)).of_forward(&model.encoder, 0)?;
                let cosine = cosine.layers.last().map_or(f64::NAN, |layer| layer.stream.cosine);
                println!(
                    "{depth:>6}  {:<9}  {name:<10}  {:<11}  {loss:>6.3}  {:>5.2}  {cosine:.3}",
                    if adam { "Adam" } else { "SGD" },
                    if tau == InverseTemperature::ONE {
                        "1"
                    } else {
                        "1 to 8.5"
                    },
                    bleu.score
                );
            }
        }
    }
    Ok(())
}

/// Trains with a linear warm-up and clipped gradients; gives the mean loss of the last tenth of the steps.
fn run<O: Optimizer<Model, B>>(
    mut model: Model,
    mut optimiser: O,
    peak: f64,
    data: &TranslationData,
    steps: usize,
) -> Result<(Model, f64), Box<dyn std::error::Error>> {
    let batch = setting("BATCH", 32)?;
    let warmup = (steps / 10).max(1);
    let mut last = Vec::new();
    for step in 0..steps {
        model = model.at_step(step);
        let loss = data
            .batch(step, batch, 0)
            .loss(&model, Some(&Noise::new(0, step as u64)));
        if step >= steps - warmup {
            last.push(loss.clone().into_scalar().elem::<f64>());
        }
        let mut gradients = GradientsParams::from_grads(loss.backward(), &model);
        clip_global_norm::<B, _>(&model, &mut gradients, 1.0);
        let rate = peak * (((step + 1) as f64 / warmup as f64).min(1.0));
        model = optimiser.step(rate, model, gradients);
    }
    let loss = last.iter().sum::<f64>() / last.len().max(1) as f64;
    Ok((model, loss))
}
