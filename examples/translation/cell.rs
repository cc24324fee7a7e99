//! A cell of the grid: its model, its training, and what came of them.

use burn::module::AutodiffModule;
use burn::optim::{AdamConfig, GradientsParams, Optimizer, SgdConfig};
use burn::tensor::ElementConversion;
use clap::ValueEnum;
use indicatif::ProgressBar;
use serde::{Deserialize, Serialize};
use wqk::attention::Noise;
use wqk::backend::{Autodiff, Flex};
use wqk::data::Tokenizer;
use wqk::model::{EncoderDecoder, InverseTemperature, Strength, TextTransformerConfig};
use wqk::signal::probe::TextProbe;
use wqk::train::{Decay, Schedule, TranslationData, clip_global_norm};

use crate::{Args, Failure};

type B = Autodiff<Flex>;
type Model = EncoderDecoder<B>;

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub enum Optimiser {
    Adam,
    Sgd,
}

/// Residual strengths of 1/√L instead of 1, and an inverse temperature that rises to 8.5 instead of 1.
pub const ARMS: [(bool, bool); 4] = [(false, false), (false, true), (true, false), (true, true)];

/// A cell of the grid.
#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    pub layers: usize,
    pub optimiser: Optimiser,
    pub scaled: bool,
    pub rising: bool,
}

/// What came of a cell: a line of `cells.csv`.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Outcome {
    pub layers: usize,
    pub optimiser: Optimiser,
    pub scaled: bool,
    pub rising: bool,
    /// Norm of the loss's gradient in the queries of the encoder's last layer over that in its values, at the start.
    pub gradient_ratio: f64,
    /// Mean cosine of two tokens after the encoder's last layer, at the start and at the end.
    pub cosine_start: f64,
    pub cosine_end: f64,
    /// Mean training loss of the last tenth of the updates; NaN where it diverged.
    pub loss: f64,
    pub bleu: f64,
    pub seconds: f64,
}

impl Outcome {
    pub fn cell(&self) -> Cell {
        let Self {
            layers,
            optimiser,
            scaled,
            rising,
            ..
        } = *self;
        Cell {
            layers,
            optimiser,
            scaled,
            rising,
        }
    }
}

impl Cell {
    /// Optimiser, strength and inverse temperature.
    pub fn names(self) -> [&'static str; 3] {
        [
            if self.optimiser == Optimiser::Adam {
                "Adam"
            } else {
                "SGD"
            },
            if self.scaled { "1/√L" } else { "1" },
            if self.rising { "1 to 8.5" } else { "1" },
        ]
    }

    /// The model of the cell: weights of unit gain, as the paper draws them.
    fn model(self, args: &Args, vocabulary: usize) -> TextTransformerConfig {
        let strength = if self.scaled {
            Strength::SCALED
        } else {
            Strength::ONE
        };
        let steps = args.steps / 4;
        TextTransformerConfig::new(vocabulary, args.width, self.layers, 4)
            .with_max_positions(args.longest)
            .with_dropout(args.dropout)
            .with_attention_dropout(args.dropout)
            .with_init_std((args.width as f64).powf(-0.5))
            .with_attention_strength(strength.clone())
            .with_feed_forward_strength(strength)
            .with_inverse_temperature(match self.rising {
                true => InverseTemperature::Rise {
                    from: 1.0,
                    to: 8.5,
                    steps,
                },
                false => InverseTemperature::ONE,
            })
    }

    /// Trains and translates.
    pub fn run(
        self,
        args: &Args,
        (train, held_out): (&TranslationData, &TranslationData),
        tokenizer: &Tokenizer,
        bar: &ProgressBar,
    ) -> Result<Outcome, Failure> {
        let begin = std::time::Instant::now();
        let config = self.model(args, tokenizer.vocabulary().size);
        let model: Model = config.init_encoder_decoder(args.seed, &Default::default())?;
        // The same weights, whose gradient no dropout blurs.
        let still = config.with_dropout(0.0).with_attention_dropout(0.0);
        let still: Model = still.init_encoder_decoder(args.seed, &Default::default())?;
        let cosine = |model: &Model| {
            let signal = TextProbe::new(args.longest.min(32)).of_forward(&model.valid().encoder, args.seed);
            // What has diverged has no cosine.
            let last = signal
                .ok()
                .and_then(|signal| signal.layers.last().map(|layer| layer.stream.cosine));
            last.unwrap_or(f64::NAN)
        };
        let (gradient_ratio, cosine_start) = (gradient_ratio(&still, train, args), cosine(&still));
        let (model, loss) = match self.optimiser {
            Optimiser::Adam => {
                let adam = AdamConfig::new().with_beta_2(0.98).init();
                fit(model, adam, args.adam_rate, train, args, bar)
            }
            Optimiser::Sgd => fit(model, SgdConfig::new().init(), args.sgd_rate, train, args, bar),
        };
        let cosine_end = cosine(&model);
        let bleu = match loss.is_finite() {
            true => held_out.bleu(&model.valid(), tokenizer, args.batch)?.0.score,
            false => f64::NAN,
        };
        Ok(Outcome {
            layers: self.layers,
            optimiser: self.optimiser,
            scaled: self.scaled,
            rising: self.rising,
            gradient_ratio,
            cosine_start,
            cosine_end,
            loss,
            bleu,
            seconds: begin.elapsed().as_secs_f64(),
        })
    }
}

/// Norm of the loss's gradient in the queries of the encoder's last layer over that in its values.
fn gradient_ratio(model: &Model, data: &TranslationData, args: &Args) -> f64 {
    let gradients = data.batch(0, args.batch, args.seed).loss(model, None).backward();
    let norm = |linear: &burn::nn::Linear<B>| -> f64 {
        let gradient = linear
            .weight
            .grad(&gradients)
            .map(|gradient| gradient.square().sum());
        gradient.map_or(f64::NAN, |square| square.into_scalar().elem::<f64>().sqrt())
    };
    let last = model.encoder.blocks.last().map(|block| &block.attention);
    last.map_or(f64::NAN, |attention| {
        norm(&attention.query) / norm(&attention.value)
    })
}

/// A linear warm-up, a linear decay, clipped gradients; gives the mean loss of the last tenth of the updates.
fn fit<O: Optimizer<Model, B>>(
    mut model: Model,
    mut optimiser: O,
    peak: f64,
    data: &TranslationData,
    args: &Args,
    bar: &ProgressBar,
) -> (Model, f64) {
    let steps = args.steps;
    let schedule = Schedule {
        peak,
        warmup: steps / 10,
        warmup_from: None,
        steps,
        decay: Decay::Linear,
    };
    let mut last = Vec::new();
    for step in 0..steps {
        model = model.at_step(step);
        let batch = data.batch(step, args.batch, args.seed);
        let loss = batch.loss(&model, Some(&Noise::new(args.seed, step as u64)));
        let value = loss.clone().into_scalar().elem::<f64>();
        if !value.is_finite() {
            bar.inc((steps - step) as u64);
            return (model, f64::NAN);
        }
        if step >= steps - steps.div_ceil(10) {
            last.push(value);
        }
        let mut gradients = GradientsParams::from_grads(loss.backward(), &model);
        clip_global_norm::<B, _>(&model, &mut gradients, 1.0);
        model = optimiser.step(schedule.rate(step), model, gradients);
        bar.inc(1);
    }
    let loss = last.iter().sum::<f64>() / last.len().max(1) as f64;
    (model, loss)
}
