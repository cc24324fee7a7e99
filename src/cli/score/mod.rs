//! `wqk score`: the symmetry and directionality of the layers and heads of checkpoints.

mod diff;
mod plots;
mod progress;
mod source;
mod steps;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

use super::common::Common;
use super::output::{Output, check_apart, check_extension};
use super::{Usage, interrupt, print_error};
use crate::backend::with_backend;
use crate::bilinear::significance::Simulation;
use crate::checkpoint::family::{Layout, StackKind};
use crate::checkpoint::{ModelReport, Options, Settings};
use crate::report::scores::{Format, Made, Screen, Writer};

use plots::{Matrix, Plot, PlotLayer};
use progress::Progress;

/// Arguments of `wqk score`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// Checkpoint folders as Hugging Face's library writes them, or single weight files
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Score each head too
    #[arg(long)]
    heads: bool,

    /// table, json, csv, markdown or latex [default: by the extension of -o, else table]
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,

    /// Where to write the scores; - is standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,

    /// Draw a figure as .svg or .png; KIND is layers, heads, size, matrix or series [default: what fits]
    #[arg(long, value_name = "[KIND=]FILE")]
    plot: Vec<Plot>,

    /// The score that figures show: symmetry, excess or definition (the variants of directionality)
    #[arg(long, value_name = "SCORE", default_value_t)]
    plot_score: crate::report::scores::Score,

    /// The layer whose W_qk a figure of kind matrix shows, as the table numbers it, such as 3 or decoder:3 [default: the first]
    #[arg(long, value_name = "[STACK:]N", allow_negative_numbers = true)]
    plot_layer: Option<PlotLayer>,

    /// Rows and columns of W_qk that such a figure shows
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = positive, default_value_t = 128)]
    plot_crop: usize,

    /// Directionality counts norms above mean + GAMMA · standard deviation
    #[arg(long, value_name = "GAMMA", default_value_t = 2.0, allow_negative_numbers = true, value_parser = finite)]
    gamma: f64,

    /// Score rotary layers for a key N positions after the query (causal models only meet N ≤ 0)
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    offset: i64,

    /// Fold the gain of the preceding norm into the form
    #[arg(long)]
    fold_norm: bool,

    /// Take each PATH for a model of the Hugging Face hub, org/name or org/name@revision, and fetch what is needed of
    /// it; hf://org/name does so for one
    #[arg(long, hide = !cfg!(feature = "hub"))]
    hub: bool,

    /// Merge a LoRA adapter folder with the weights of the checkpoint
    #[arg(long, value_name = "FOLDER")]
    adapter: Option<PathBuf>,

    /// Also give what the structure paper's code would extract, and which of its faults apply
    #[arg(long)]
    as_published: bool,

    /// Say how far each head's scores lie from those of random matrices (implies --heads)
    #[arg(long)]
    significance: bool,

    /// Draws of the simulation behind the p-values of the directionality
    #[arg(long, value_name = "N", default_value_t = 1000, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1000..))]
    draws: u32,

    /// Compare two checkpoints of one model, layer by layer: the second minus the first
    #[arg(long, conflicts_with = "series")]
    diff: bool,

    /// Take the checkpoints for revisions of one model, by the last number in their names
    #[arg(long)]
    series: bool,

    /// The training steps of the revisions, in the order of the paths
    #[arg(long, value_name = "N,N,…", value_delimiter = ',', requires = "series", allow_negative_numbers = true, value_parser = finite)]
    steps: Vec<f64>,

    #[command(flatten)]
    reading: Reading,
}

/// How to read a checkpoint whose `config.json` does not say it.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Reading weights that no config.json describes")]
struct Reading {
    /// The family, as `wqk families` lists them, in place of config.json's
    #[arg(long, value_name = "NAME")]
    family: Option<String>,

    /// Number of query heads
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = positive)]
    n_heads: Option<usize>,

    /// Number of key heads
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = positive)]
    n_kv_heads: Option<usize>,

    /// Width of a head
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = positive)]
    head_dim: Option<usize>,

    /// Name of the query (or fused) weights, {l} for the layer: 'layers.{l}.attn.wq'
    #[arg(long, value_name = "PATTERN")]
    q_pattern: Option<String>,

    /// Name of the key weights, where they are apart
    #[arg(long, value_name = "PATTERN", requires = "q_pattern")]
    k_pattern: Option<String>,

    /// How the weights of --q-pattern lie, as `wqk families` explains
    #[arg(long, value_name = "LAYOUT", requires = "q_pattern", value_parser = layout)]
    layout: Option<Layout>,

    /// What the layers of --q-pattern are: encoder, decoder, text or vision
    #[arg(long, value_name = "STACK", requires = "q_pattern", value_parser = stack)]
    stack: Option<StackKind>,
}

const AFTER_HELP: &str = "\
Examples:
  wqk score bert-base-uncased --heads
  wqk score gpt2 pythia-70m bert-tiny -o scores.csv --plot size=figure2.svg
  wqk score pythia/step* --series --plot course.png
  wqk score weights.safetensors --q-pattern 'layers.{l}.attn.wq.weight' \\
      --k-pattern 'layers.{l}.attn.wk.weight' --n-heads 8";

fn finite(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|v: &f64| v.is_finite())
        .ok_or_else(|| "not a finite number".into())
}

fn positive(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|&n| n > 0)
        .ok_or_else(|| "must be a whole number from 1 on".into())
}

fn layout(name: &str) -> Result<Layout, String> {
    let names = || Layout::ALL.map(Layout::name).join(", ");
    Layout::ALL
        .into_iter()
        .find(|layout| layout.name() == name)
        .ok_or_else(|| format!("choose one of {}", names()))
}

fn stack(name: &str) -> Result<StackKind, String> {
    [
        StackKind::Encoder,
        StackKind::Decoder,
        StackKind::Text,
        StackKind::Vision,
    ]
    .into_iter()
    .find(|stack| stack.name() == name)
    .ok_or_else(|| "choose encoder, decoder, text or vision".into())
}

impl Args {
    fn options(&self) -> Options {
        let reading = &self.reading;
        Options {
            family: reading.family.clone(),
            heads: reading.n_heads,
            kv_heads: reading.n_kv_heads,
            head_dim: reading.head_dim,
            query_pattern: reading.q_pattern.clone(),
            key_pattern: reading.k_pattern.clone(),
            layout: reading.layout,
            stack: reading.stack,
            offset: self.offset,
            fold_norm: self.fold_norm,
            adapter: self.adapter.clone(),
            layers_at_once: None,
        }
    }

    fn settings(&self) -> Settings {
        Settings {
            gamma: self.gamma,
            per_head: self.heads || self.significance || self.plot.iter().any(|plot| plot.needs_heads()),
            offset: self.offset,
            fold_norm: self.fold_norm,
            as_published: self.as_published,
        }
    }

    fn format(&self) -> Format {
        let of_file = || {
            self.output
                .extension()
                .and_then(|e| e.to_str())
                .and_then(Format::of_extension)
        };
        self.format.or_else(of_file).unwrap_or_default()
    }

    /// What clap cannot check by itself.
    fn check(&self) -> Result<(), Usage> {
        let n = self.paths.len();
        if self.diff && n != 2 {
            return Err(Usage(format!(
                "--diff compares two checkpoints, and {n} are given"
            )));
        }
        if self.format.is_none() {
            check_extension(&self.output, &Format::EXTENSIONS)?;
        }
        for (flag, given) in [
            ("--as-published", self.as_published),
            ("--significance", self.significance),
        ] {
            if given && matches!(self.format(), Format::Markdown | Format::Latex) {
                return Err(Usage(format!(
                    "{flag} has no column in the paper's tables: choose --format table, json or csv"
                )));
            }
        }
        if self.adapter.is_some() && n != 1 {
            return Err(Usage(format!(
                "--adapter belongs to one checkpoint, and {n} are given"
            )));
        }
        for plot in &self.plot {
            plot.check(n, self.series)?;
        }
        Ok(())
    }
}

/// Runs the subcommand.
///
/// # Errors
/// Wrong use, outputs that cannot be written. A checkpoint that cannot be scored is reported at once on
/// standard error, the others go on, and the exit code is 1 in the end.
pub fn run(args: &Args, common: &Common) -> anyhow::Result<ExitCode> {
    args.check()?;
    interrupt::clean_up();
    let steps = if args.series {
        steps::of(&args.paths, &args.steps)?
    } else {
        Vec::new()
    };
    let kind = common.backend()?;
    check_apart(
        std::iter::once(args.output.as_path()).chain(args.plot.iter().map(|plot| plot.path.as_path())),
    )?;
    let mut output = Output::open(&args.output)?;
    let (name, replaces) = (output.name().to_owned(), output.replaces());
    let plots = plots::open(&args.plot)?;

    let (mut options, settings) = (args.options(), args.settings());
    if !kind.shares_threads() {
        options.layers_at_once = Some(NonZeroUsize::MIN);
    }
    let screen = screen(&output);
    let simulation = args.significance.then_some(Simulation {
        draws: args.draws as usize,
        seed: common.seed,
        gamma: args.gamma,
    });
    let made = Made {
        backend: kind.name().to_owned(),
        simulation,
    };
    let mut writer = Writer::new(args.format(), settings.clone(), made.clone(), screen);
    let mut progress = Progress::new(common.quiet, args.paths.len());
    let mut models: Vec<(usize, ModelReport)> = Vec::new();
    let mut matrix = None;
    let mut failed = 0;
    for (i, path) in args.paths.iter().enumerate() {
        let scored = source::open(path, args.hub, &options, &mut progress).and_then(|opened| {
            let checkpoint = &opened.checkpoint;
            // Before the work.
            let drawn = match plots.iter().any(|plot| plot.needs_matrix()) {
                true => Some(
                    args.plot_layer
                        .as_ref()
                        .map_or(Ok(0), |layer| layer.place(checkpoint))?,
                ),
                false => None,
            };
            progress.start(checkpoint.name(), checkpoint.len());
            let mut scored = with_backend!(kind, common.device, |B, device| {
                checkpoint
                    .score::<B>(&settings, &device, |layer| progress.layer(layer))
                    .map_err(anyhow::Error::from)
            })??;
            if let Some(simulation) = &made.simulation {
                progress.say("comparing with random matrices");
                with_backend!(kind, common.device, |B, device| {
                    checkpoint.add_significance::<B>(&mut scored, simulation, &device)
                })??;
            }
            if let Some(place) = drawn {
                matrix = Some(with_backend!(kind, common.device, |B, device| {
                    Matrix::read::<B>(checkpoint, place, args.plot_crop, &device)
                })??);
            }
            Ok(scored)
        });
        progress.stop();
        match scored {
            Ok(mut model) => {
                model.step = steps.get(i).copied();
                if !args.diff {
                    output.write(writer.model(&model).as_bytes())?;
                }
                models.push((i, model));
            }
            Err(error) => {
                failed += 1;
                print_error(&error);
            }
        }
    }

    if args.diff {
        if let [(_, before), (_, after)] = models.as_slice() {
            output.write(diff::text(before, after, args.format(), &settings, made, screen)?.as_bytes())?;
            output.commit()?;
        }
    } else if !models.is_empty() {
        output.write(writer.finish().as_bytes())?;
        if args.series && args.format() == Format::Table {
            output.write(steps::table(&steps, &models).as_bytes())?;
        }
        output.commit()?;
    }
    let scored = models.len();
    if !models.is_empty() {
        let steps = models
            .iter()
            .filter_map(|(i, _)| steps.get(*i).copied())
            .collect();
        let mut models: Vec<ModelReport> = models.into_iter().map(|(_, model)| model).collect();
        if let ([before, after], true) = (models.as_mut_slice(), args.diff) {
            before.name += " (before)";
            after.name += " (after)";
        }
        let drawing = plots::Drawing {
            models,
            steps,
            matrix,
            score: args.plot_score,
            diff: args.diff,
        };
        plots.into_iter().try_for_each(|plot| plot.draw(&drawing))?;
    }
    if failed > 0 && args.paths.len() > 1 {
        let kept = match (replaces, scored) {
            (true, 0) => format!("; '{name}' is the older file"),
            (true, n) if !args.diff => format!("; '{name}' was replaced and holds the other {n}"),
            (true, _) => format!("; '{name}' is the older file"),
            _ => String::new(),
        };
        print_error(&anyhow::anyhow!(
            "{failed} of {} checkpoints could not be scored, see above{kept}",
            args.paths.len()
        ));
    }
    Ok(if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// How the table is laid out: for the terminal if it goes to one.
fn screen(output: &Output) -> Screen {
    if !output.is_terminal() {
        return Screen::default();
    }
    let (_, columns) = console::Term::stdout().size();
    Screen {
        width: usize::from(columns).max(60),
        cut: true,
        bold: console::colors_enabled(),
    }
}
