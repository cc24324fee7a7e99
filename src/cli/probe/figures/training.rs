//! Small encoders in training on the bundled text: token cosine, and gradient norms under two optimisers.

use burn::module::AutodiffModule;
use burn::nn::Linear;
use burn::optim::{AdamConfig, GradientsParams, Optimizer, SgdConfig};
use burn::tensor::backend::AutodiffBackend;
use burn::tensor::{Device, ElementConversion, Int, Tensor, TensorData};

use super::{Drawn, STRENGTHS, Settings, table};
use crate::data::{Batches, Packed, Tokenizer, bundled};
use crate::model::{Strength, TextTransformer, TextTransformerConfig};
use crate::objective::{self, ObjectiveMode, Vocabulary};
use crate::random;
use crate::report::plot::{Axis, Colour, Curves, Series};
use crate::signal::probe::{ProbeError, TextProbe};

const SEQUENCE: usize = 32;
const BATCH: usize = 16;
const WIDTH: usize = 64;
const HEADS: usize = 4;
const ADAM_RATE: f64 = 1e-3;
const SGD_RATE: f64 = 0.1;

/// The bundled text.
pub(super) struct Text {
    packed: Packed,
    pub(super) vocabulary: Vocabulary,
}

impl Text {
    pub(super) fn read() -> anyhow::Result<Self> {
        let text = bundled::documents()?.map(|document| document.map(|document| document.with_title()));
        let tokenizer = Tokenizer::characters(text, 95)?;
        Ok(Self {
            packed: Packed::new(bundled::documents()?, &tokenizer, SEQUENCE)?,
            vocabulary: tokenizer.vocabulary().clone(),
        })
    }

    /// A probe on its first sequences.
    fn probe(&self) -> TextProbe {
        TextProbe {
            text: self.packed.tokens()[..8 * SEQUENCE].to_vec(),
            ..TextProbe::new(SEQUENCE)
        }
    }

    /// A post-norm encoder for it.
    pub(super) fn encoder(&self, layers: usize, width: usize, strength: Strength) -> TextTransformerConfig {
        TextTransformerConfig::new(self.vocabulary.size, width, layers, HEADS)
            .with_max_positions(SEQUENCE)
            .with_dropout(0.0)
            .with_attention_dropout(0.0)
            .with_attention_strength(strength.clone())
            .with_feed_forward_strength(strength)
    }
}

/// Which optimiser trains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    Adam,
    Sgd,
}

/// Sees the step, the model and its gradients.
pub(super) type Watch<'a, B> =
    dyn FnMut(usize, &TextTransformer<B>, &<B as AutodiffBackend>::Gradients) -> Result<(), ProbeError> + 'a;

/// Trains on masked tokens at a constant rate; `watch` sees the model before each update with its gradients, and gives
/// an error to stop.
pub(super) fn train<B: AutodiffBackend>(
    text: &Text,
    model: TextTransformer<B>,
    rule: Rule,
    (steps, seed): (usize, u64),
    device: &Device<B>,
    watch: &mut Watch<'_, B>,
) -> anyhow::Result<(TextTransformer<B>, Vec<f64>)> {
    match rule {
        Rule::Adam => {
            let optimiser = AdamConfig::new().init::<B, TextTransformer<B>>();
            run(text, model, (optimiser, ADAM_RATE), (steps, seed), device, watch)
        }
        Rule::Sgd => {
            let optimiser = SgdConfig::new().init::<B, TextTransformer<B>>();
            run(text, model, (optimiser, SGD_RATE), (steps, seed), device, watch)
        }
    }
}

fn run<B: AutodiffBackend, O: Optimizer<TextTransformer<B>, B>>(
    text: &Text,
    mut model: TextTransformer<B>,
    (mut optimiser, rate): (O, f64),
    (steps, seed): (usize, u64),
    device: &Device<B>,
    watch: &mut Watch<'_, B>,
) -> anyhow::Result<(TextTransformer<B>, Vec<f64>)> {
    let objective = ObjectiveMode::masked(0.15)?;
    let batches = Batches::new(&text.packed, BATCH, seed)?;
    let mut losses = Vec::with_capacity(steps);
    for step in 0..steps {
        let sequences = batches.batch(step as u64);
        let mut rng = random::stream(seed, ["corruption", &step.to_string()]);
        let batch = objective.prepare(&sequences, BATCH, SEQUENCE, &text.vocabulary, &mut rng)?;
        let count = batch.targets.len();
        let ints = |values: Vec<u32>| values.into_iter().map(|v| v as i32).collect::<Vec<_>>();
        let inputs = TensorData::new(ints(batch.inputs), [BATCH, SEQUENCE]);
        let positions =
            Tensor::<B, 1, Int>::from_data(TensorData::new(ints(batch.positions), [count]), device);
        let targets = Tensor::<B, 1, Int>::from_data(TensorData::new(ints(batch.targets), [count]), device);
        let hidden = model.forward(Tensor::from_data(inputs, device), None, None);
        let loss = objective::loss(
            model.logits(objective::select_positions(hidden, positions)),
            targets,
        );
        let value = loss.clone().into_scalar().elem::<f64>();
        losses.push(value);
        if !value.is_finite() {
            break;
        }
        let gradients = loss.backward();
        watch(step, &model, &gradients)?;
        let gradients = GradientsParams::from_grads(gradients, &model);
        model = optimiser.step(rate, model, gradients);
    }
    Ok((model, losses))
}

pub(super) fn cosine<B: AutodiffBackend>(settings: &Settings, device: &Device<B>) -> anyhow::Result<Drawn> {
    const DEPTHS: [usize; 3] = [2, 6, 12];
    let text = Text::read()?;
    let probe = text.probe();
    let every = (settings.steps / 20).max(1);
    let mut numbers = table(["layers", "strength", "step", "layers_passed", "token_cosine"]);
    let mut by_step = Curves::new(
        "Token cosine at the output of post-norm encoders in training (dashed: strength 1/√L)",
        Axis::integer("updates of Adam"),
        Axis::linear("token cosine").with_range(0.0, 1.0),
    );
    let mut by_layer = Curves::new(
        format!("Token cosine with depth, {} layers", DEPTHS[2]),
        Axis::integer("layers passed"),
        Axis::linear("token cosine").with_range(0.0, 1.0),
    );
    for (i, &layers) in DEPTHS.iter().enumerate() {
        for (name, strength) in STRENGTHS {
            settings.say(&format!("{layers} layers with strength {name}"));
            let scaled = strength != Strength::ONE;
            let model = text
                .encoder(layers, WIDTH, strength)
                .init::<B>(settings.seed, device)?;
            let mut rows: Vec<(usize, Vec<f64>)> = Vec::new();
            let mut measure = |step: usize, model: &TextTransformer<B::InnerBackend>| {
                let signal = probe.of_forward(model, 0)?;
                rows.push((step, signal.streams().map(|stream| stream.cosine).collect()));
                Ok::<_, ProbeError>(())
            };
            let (model, _) = train(
                &text,
                model,
                Rule::Adam,
                (settings.steps, settings.seed),
                device,
                &mut |step, model, _| {
                    if step % every == 0 {
                        measure(step, &model.valid())?;
                    }
                    Ok(())
                },
            )?;
            measure(settings.steps, &model.valid())?;
            for (step, cosines) in &rows {
                for (layer, cosine) in cosines.iter().enumerate() {
                    numbers.push([
                        layers.to_string(),
                        name.to_owned(),
                        step.to_string(),
                        layer.to_string(),
                        cosine.to_string(),
                    ]);
                }
            }
            let x: Vec<f64> = rows.iter().map(|row| row.0 as f64).collect();
            let y: Vec<f64> = rows
                .iter()
                .map(|row| row.1.last().copied().unwrap_or(f64::NAN))
                .collect();
            let label = format!("{layers} layers, strength {name}");
            by_step = by_step.with(line(label, &x, &y, i, scaled));
            if layers == DEPTHS[2] {
                for (colour, (when, row)) in [("start", rows.first()), ("end", rows.last())]
                    .into_iter()
                    .enumerate()
                {
                    let Some((_, cosines)) = row else { continue };
                    let x: Vec<f64> = (0..cosines.len()).map(|layer| layer as f64).collect();
                    let label = format!("strength {name}, at the {when}");
                    by_layer = by_layer.with(line(label, &x, cosines, colour, scaled));
                }
            }
        }
    }
    Ok(Drawn {
        figures: vec![("steps", by_step.figure()), ("layers", by_layer.figure())],
        numbers,
    })
}

pub(super) fn ratio<B: AutodiffBackend>(settings: &Settings, device: &Device<B>) -> anyhow::Result<Drawn> {
    const LAYERS: usize = 6;
    let text = Text::read()?;
    let every = (settings.steps / 50).max(1);
    let mut numbers = table(["optimiser", "strength", "step", "loss", "query", "key", "value"]);
    let mut ratios = Curves::new(
        "Query to value gradient norms in training (median layer; dashed: strength 1/√L)",
        Axis::integer("updates"),
        Axis::log("‖∂L/∂W_q‖ / ‖∂L/∂W_v‖"),
    );
    let mut curves = Curves::new(
        "Training loss (dashed: strength 1/√L)",
        Axis::integer("updates"),
        Axis::linear("loss in nats"),
    );
    for (i, (rule_name, rule)) in [("Adam", Rule::Adam), ("SGD", Rule::Sgd)].into_iter().enumerate() {
        for (name, strength) in STRENGTHS {
            settings.say(&format!("{rule_name} with strength {name}"));
            let scaled = strength != Strength::ONE;
            let model = text
                .encoder(LAYERS, WIDTH, strength)
                .init::<B>(settings.seed, device)?;
            let mut rows: Vec<(usize, [f64; 3])> = Vec::new();
            let (_, losses) = train(
                &text,
                model,
                rule,
                (settings.steps, settings.seed),
                device,
                &mut |step, model, gradients| {
                    if step % every == 0 {
                        rows.push((step, median_norms(model, gradients)));
                    }
                    Ok(())
                },
            )?;
            for (step, norms) in &rows {
                let loss = losses.get(*step).copied().unwrap_or(f64::NAN);
                let cells = [loss].into_iter().chain(*norms).map(|value| value.to_string());
                let head = [rule_name.to_owned(), name.to_owned(), step.to_string()];
                numbers.push(head.into_iter().chain(cells));
            }
            let label = format!("{rule_name}, strength {name}");
            let series = |x: &[f64], y: &[f64]| line(label.clone(), x, y, i, scaled);
            let x: Vec<f64> = rows.iter().map(|row| row.0 as f64).collect();
            let y: Vec<f64> = rows.iter().map(|(_, [query, _, value])| query / value).collect();
            ratios = ratios.with(series(&x, &y));
            let x: Vec<f64> = (0..losses.len()).map(|step| step as f64).collect();
            curves = curves.with(series(&x, &losses));
        }
    }
    Ok(Drawn {
        figures: vec![("gradients", ratios.figure()), ("loss", curves.figure())],
        numbers,
    })
}

/// A line, dashed where residual branches are scaled.
fn line(label: String, x: &[f64], y: &[f64], colour: usize, scaled: bool) -> Series {
    let series = Series::new(label, x, y, Colour::Category(colour));
    if scaled { series.dashed() } else { series }
}

/// Gradient norms of queries, keys and values, the median over layers.
fn median_norms<B: AutodiffBackend>(model: &TextTransformer<B>, gradients: &B::Gradients) -> [f64; 3] {
    let norm = |linear: &Linear<B>| {
        linear.weight.grad(gradients).map_or(0.0, |gradient| {
            gradient.powi_scalar(2).sum().into_scalar().elem::<f64>().sqrt()
        })
    };
    let of = |pick: fn(&crate::attention::SelfAttention<B>) -> &Linear<B>| {
        let norms: Vec<f64> = model
            .blocks
            .iter()
            .map(|block| norm(pick(&block.attention)))
            .collect();
        crate::bilinear::quantile(&norms, 0.5).unwrap_or(f64::NAN)
    };
    [of(|a| &a.query), of(|a| &a.key), of(|a| &a.value)]
}
