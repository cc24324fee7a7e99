//! `wqk demo`: an encoder and a decoder from the same weights on the bundled text, scored as they train.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context;
use clap::Args;

use super::common::Common;
use super::interrupt;
use super::output::Output;
use super::runs::RunProgress;
use crate::backend::{Autodiff, BackendKind, with_backend};
use crate::bilinear::Directionality;
use crate::data::{Packed, Tokenizer, bundled};
use crate::model::TextTransformerConfig;
use crate::objective::ObjectiveMode;
use crate::report::experiment::{self, Findings, Score, Story};
use crate::report::folder::ReportFolder;
use crate::train::{Arm, Experiment, TextData, TrainConfig};

/// Train a small encoder and decoder on real Wikipedia text, score them as they train, write a report
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Runs of each objective, with the seeds that follow `--seed`
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,

    /// Updates of each run
    #[arg(long, value_name = "N", default_value_t = 800, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    steps: u64,

    /// Width of the models, a multiple of their 4 heads
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = width)]
    width: usize,

    /// Layers of the models
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = layers)]
    layers: usize,

    /// Folder of the report; an earlier report there is replaced
    #[arg(short, long, value_name = "DIR", default_value = "report")]
    out: PathBuf,
}

/// The most frequent characters get tokens of their own: the printable ASCII ones and little else.
const ALPHABET: usize = 95;
const SEQUENCE: usize = 64;
const HELD_OUT: f64 = 0.01;
const HEADS: usize = 4;

fn width(text: &str) -> Result<usize, String> {
    let width = text
        .parse()
        .ok()
        .filter(|width| (HEADS..=4096).contains(width) && width % HEADS == 0);
    width.ok_or_else(|| format!("must be a multiple of {HEADS}, the number of heads, up to 4096"))
}

fn layers(text: &str) -> Result<usize, String> {
    let layers = text.parse().ok().filter(|layers| (1..=128).contains(layers));
    layers.ok_or_else(|| "must be from 1 to 128".to_owned())
}

/// Runs the demonstration.
///
/// # Errors
/// Where the report cannot be written or a setting is impossible.
pub fn run(args: &DemoArgs, common: &Common) -> anyhow::Result<ExitCode> {
    let begin = Instant::now();
    interrupt::clean_up();
    let folder = ReportFolder::open(&args.out, "demo")
        .with_context(|| format!("cannot write the report folder '{}'", args.out.display()))?;
    let backend = common.backend()?;

    let text = bundled::documents()?.map(|document| document.map(|document| document.with_title()));
    let tokenizer = Tokenizer::characters(text, ALPHABET)?;
    let (train, held_out) = Packed::new(bundled::documents()?, &tokenizer, SEQUENCE)?.hold_out(HELD_OUT)?;
    let vocabulary = tokenizer.vocabulary();
    let model = TextTransformerConfig::new(vocabulary.size, args.width, args.layers, HEADS)
        .with_max_positions(SEQUENCE)
        .with_dropout(0.0)
        .with_attention_dropout(0.0);
    let arm = |name: &str, objective| Arm {
        name: name.to_owned(),
        objective,
        model: model.clone(),
    };

    let runs = 2 * args.seeds as usize;
    // Small models gain nothing from several threads, but runs side by side do; a GPU takes one at a time.
    let side_by_side = match backend {
        BackendKind::Flex | BackendKind::NdArray => common.threads().min(runs),
        _ => 1,
    };
    let steps = args.steps as usize;
    let plan = Experiment {
        arms: vec![
            arm("encoder", ObjectiveMode::masked(0.15)?),
            arm("decoder", ObjectiveMode::autoregressive()),
        ],
        seeds: (0..args.seeds).map(|i| common.seed.wrapping_add(i)).collect(),
        train: TrainConfig {
            steps,
            batch_size: 32,
            accumulation: 1,
            learning_rate: 1e-3,
            warmup_steps: 50.min(steps / 4),
            eval_every: (steps / 8).max(1),
            ..TrainConfig::default()
        },
        score_every: (steps / 100).max(1),
        gamma: Directionality::GAMMA,
        per_head: true,
        updates_every: 0,
        data: TextData {
            train: &train,
            held_out: &held_out,
            vocabulary,
        },
        side_by_side,
        threads: (common.threads() / side_by_side).max(1),
    };

    if !common.quiet {
        eprintln!(
            "Training an encoder and a decoder ({} layers, {} wide) with {} seed{} each, {steps} updates a run, on \
             {} sequences of {SEQUENCE} characters of Wikipedia, backend {backend}.",
            args.layers,
            args.width,
            args.seeds,
            if args.seeds == 1 { "" } else { "s" },
            train.len(),
        );
    }
    let progress = RunProgress::of(&plan, common.quiet);
    let runs = with_backend!(backend, common.device, |B, device| {
        plan.run::<Autodiff<B>>(&device, &|event| progress.hear(event))
    })??;
    progress.finish();

    let findings = Findings::new(&runs);
    let verdict = verdict(&findings, args.width, args.seeds);
    let story = Story {
        title: "Two objectives, one architecture".to_owned(),
        lead: format!(
            "The same transformer, from the same random weights, trained to fill in masked characters (encoder) \
             and to predict the next one (decoder). {verdict}"
        ),
        text: format!(
            "Text: {}. It is cut into single characters, {} different symbols with the special ones, because \
             models this small learn characters within minutes but would stay at the frequencies of word \
             pieces; the structure paper's own Wikipedia runs were on characters too. {} characters to train \
             on, {} held out.",
            bundled::NAME,
            vocabulary.size,
            train.tokens().len(),
            held_out.tokens().len(),
        ),
        settings: settings(&plan),
        provenance: vec![
            ("program".to_owned(), format!("wqk {}", env!("CARGO_PKG_VERSION"))),
            ("backend".to_owned(), backend.to_string()),
            ("text_sha256".to_owned(), bundled::SHA256.to_owned()),
            (
                "seconds".to_owned(),
                format!("{:.0}", begin.elapsed().as_secs_f64()),
            ),
        ],
    };
    experiment::write(folder.path(), &story, &findings)
        .and_then(|()| folder.commit())
        .with_context(|| format!("cannot write the report folder '{}'", args.out.display()))?;

    let share = runs
        .iter()
        .map(|run| run.scoring_seconds / run.seconds.max(1e-9))
        .fold(0.0, f64::max);
    let text = format!(
        "{}{verdict}\nScoring took at most {:.2} % of a run.\nReport: {}\n",
        findings.table().to_text(),
        100.0 * share,
        args.out.join("index.html").display()
    );
    Output::stdout().write(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Whether the two objectives came apart, in a sentence with the figures.
///
/// At random the symmetry of a form of width n is 1/n give or take √2/n: what is within two of these of the
/// other side is not called apart.
fn verdict(findings: &Findings<'_>, width: usize, seeds: u64) -> String {
    let Some((lowest, highest)) = findings.closest("encoder", "decoder", Score::Symmetry) else {
        return "No layer has a symmetry: all forms are zero.".to_owned();
    };
    let spread = std::f64::consts::SQRT_2 / width as f64;
    let random = format!(
        "(a random form of this width has {:.3} ± {spread:.3})",
        1.0 / width as f64
    );
    let figures = if seeds == 1 {
        format!("the encoder has a median symmetry of {lowest:.3}, the decoder {highest:.3} {random}")
    } else {
        format!(
            "over {seeds} seeds the lowest encoder has a median symmetry of {lowest:.3}, the highest decoder \
             {highest:.3} {random}"
        )
    };
    if lowest > highest + 2.0 * spread {
        format!("The objectives came apart in symmetry: {figures}.")
    } else {
        format!("The objectives did not come apart in symmetry: {figures}. Train longer.")
    }
}

fn settings(plan: &Experiment<'_>) -> Vec<(String, String)> {
    let model = &plan.arms[0].model;
    let train = &plan.train;
    let seeds: Vec<String> = plan.seeds.iter().map(u64::to_string).collect();
    [
        ("layers", model.n_layers.to_string()),
        ("width", model.d_model.to_string()),
        ("heads", model.n_heads.to_string()),
        ("vocabulary", model.vocab_size.to_string()),
        ("sequence length", plan.data.train.n().to_string()),
        ("updates", train.steps.to_string()),
        (
            "sequences per update",
            (train.batch_size * train.accumulation).to_string(),
        ),
        ("learning rate", train.learning_rate.to_string()),
        ("warm-up updates", train.warmup_steps.to_string()),
        ("schedule", "linear decay".to_owned()),
        ("weight decay", train.weight_decay.to_string()),
        ("gradient norm clipped at", train.clip_norm.to_string()),
        (
            "encoder objective",
            "masked, 15 % of characters, 80/10/10 corruption".to_owned(),
        ),
        ("decoder objective", "autoregressive (next character)".to_owned()),
        ("seeds", seeds.join(", ")),
        ("gamma", plan.gamma.to_string()),
        ("updates between scorings", plan.score_every.to_string()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}
