//! `wqk probe`: signal propagation of a model, predicted beside measured, with a verdict.

mod figures;
mod model;
mod subject;
mod text;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

use clap::Args;
use serde_json::json;

use super::Usage;
use super::common::Common;
use super::output::{Output, check_apart, check_extension};
use super::text_model::TextModel;
use crate::backend::{Autodiff, with_backend};
use crate::model::TextTransformerConfig;
use crate::report::plot::Figure;
use crate::report::propagation::{ProbePlot, ProbeReport};
use crate::signal::probe::TextProbe;
use crate::signal::theory::{NoClosedForm, Prediction, Stack, TheoryError};
use crate::signal::{Thresholds, Verdict};

use figures::FigureName;
use model::ModelFlags;
use subject::{Subject, Which};
use text::Text;

/// Tokens of a sequence where nothing says so.
const LENGTH: usize = 128;

/// Exit code of a model whose signal does not propagate.
const DOES_NOT_PROPAGATE: u8 = 3;

const AFTER_HELP: &str = "\
Exit code: 0 where the signal propagates, 3 where a threshold is crossed, 1 for errors, 2 for wrong use.

Examples:
  wqk probe                                        # BERT-mini, as it starts
  wqk probe recipes/base-wikipedia.toml --small
  wqk probe runs/encoder-seed0                     # the latest checkpoint of a run
  wqk probe bert-base-uncased --text wiki.txt      # a BERT on real text
  wqk probe --model bert --layers 48 --norm post --residual '1/sqrt(L)'
  wqk probe --model bare --layers 24 --format json -o probe.json --plot cosine.svg
  wqk probe --figure gradients -o figures          # a figure of the propagation paper";

/// Predict and measure how signal and gradients propagate in a model, before it is trained
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct ProbeArgs {
    /// Recipe of a model of text (flags below change what it says), or a trained one: the folder of a run, whose latest
    /// checkpoint is probed, or of a BERT as transformers writes it
    #[arg(value_name = "RECIPE|FOLDER")]
    path: Option<PathBuf>,

    /// Arm of the recipe [default: the first]
    #[arg(long, value_name = "NAME", requires = "path")]
    arm: Option<String>,

    /// Lay the recipe's section [small] over it
    #[arg(long, requires = "path")]
    small: bool,

    /// Checkpoint of the run, by its step [default: the latest]
    #[arg(long, value_name = "N", requires = "path")]
    step: Option<usize>,

    /// Probe on the sequences of this text instead of random tokens: plain, JSONL, CSV, Parquet or a MediaWiki dump
    #[arg(long, value_name = "FILE", conflicts_with_all = ["predict_only", "figure"])]
    text: Option<PathBuf>,

    /// Tokenizer of that text: a tokenizer.json or vocab.txt [default: the run's, folder's or recipe's, else the bundled one]
    #[arg(long, value_name = "FILE", requires = "text")]
    tokenizer: Option<PathBuf>,

    #[command(flatten)]
    model: ModelFlags,

    /// Tokens of a sequence [default: the recipe's, else 128]
    #[arg(long, value_name = "N")]
    length: Option<usize>,

    /// Sequences of each probe
    #[arg(long, value_name = "N", default_value_t = 4)]
    batch: usize,

    /// Probe as a decoder: positions see only themselves and earlier ones [default: as the recipe's objective]
    #[arg(long)]
    causal: bool,

    /// Models to build, with the seeds that follow `--seed`
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: u64,

    /// Only predict: build no model
    #[arg(long)]
    predict_only: bool,

    /// Token cosine at the output from which tokens count as aligned
    #[arg(long, value_name = "COSINE", default_value_t = Thresholds::default().cosine)]
    max_cosine: f64,

    /// table, json or csv [default: by the extension of -o, else table]
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    format: Option<Format>,

    /// Where to write; - is standard output. With --figure, a folder [default: - or .]
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,

    /// Draw a figure over layers as .svg or .png; KIND is cosine (default), norms, gradients or attention
    #[arg(long, value_name = "[KIND=]FILE")]
    plot: Vec<Plot>,

    /// Make a figure of the propagation paper instead: cosine, gradients, uniformity, norms, ratio or map
    #[arg(long, value_name = "NAME", conflicts_with_all = ["plot", "format", "path", "predict_only"])]
    figure: Option<FigureName>,

    /// Updates of the training runs behind the figures cosine and ratio
    #[arg(long, value_name = "N", default_value_t = 200, requires = "figure", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    steps: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Table,
    Json,
    Csv,
}

fn format(name: &str) -> Result<Format, String> {
    match name {
        "table" => Ok(Format::Table),
        "json" => Ok(Format::Json),
        "csv" => Ok(Format::Csv),
        _ => Err("choose table, json or csv".to_owned()),
    }
}

/// A figure as it is asked for: `[KIND=]FILE`.
#[derive(Debug, Clone)]
struct Plot {
    kind: ProbePlot,
    path: PathBuf,
}

impl FromStr for Plot {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, path) = match text
            .split_once('=')
            .filter(|(name, _)| !name.contains(['/', '\\', '.']))
        {
            None => (ProbePlot::Cosine, text),
            Some(("cosine", path)) => (ProbePlot::Cosine, path),
            Some(("norms", path)) => (ProbePlot::Norms, path),
            Some(("gradients", path)) => (ProbePlot::Gradients, path),
            Some(("attention", path)) => (ProbePlot::Attention, path),
            Some((name, _)) => {
                return Err(format!(
                    "'{name}' is no kind: choose cosine, norms, gradients or attention"
                ));
            }
        };
        match Path::new(path).extension().and_then(|e| e.to_str()) {
            Some("svg") => {}
            Some("png") if cfg!(feature = "png") => {}
            Some("png") => {
                return Err("this build draws no PNG: build with `--features png`, or ask for .svg".into());
            }
            _ => return Err("a figure is [KIND=]FILE.svg or .png".to_owned()),
        }
        Ok(Self {
            kind,
            path: path.into(),
        })
    }
}

/// Runs the subcommand.
///
/// # Errors
/// Wrong use, a recipe that cannot be read, a model that cannot be built or holds NaN, outputs that cannot be written.
pub fn run(args: &ProbeArgs, common: &Common) -> anyhow::Result<ExitCode> {
    if let Some(figure) = args.figure {
        let folder = args.output.as_deref().unwrap_or(Path::new("."));
        return figures::run(figure, args.steps as usize, folder, common);
    }
    if let (Some(output), None) = (&args.output, args.format) {
        check_extension(output, &["txt", "json", "csv"])?;
    }
    if !args.max_cosine.is_finite() {
        return Err(Usage("--max-cosine must be a finite number".to_owned()).into());
    }
    let target = args.output.as_deref().unwrap_or(Path::new("-"));
    check_apart(std::iter::once(target).chain(args.plot.iter().map(|plot| plot.path.as_path())))?;
    let mut output = Output::open(target)?;
    let plots = args
        .plot
        .iter()
        .map(|plot| Ok((plot, Output::open(&plot.path)?)))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let which = Which {
        arm: args.arm.as_deref(),
        small: args.small,
        step: args.step,
        vocabulary: args.model.vocabulary(),
    };
    let subject = args
        .path
        .as_deref()
        .map(|path| Subject::open(path, &which))
        .transpose()?;
    let length = args.length.or_else(|| subject.as_ref()?.length).unwrap_or(LENGTH);
    let causal = args.causal || subject.as_ref().is_some_and(|subject| subject.causal);
    let described = subject.as_ref().map(|s| (s.name.clone(), s.config.clone()));
    let trained = subject.as_ref().and_then(|subject| subject.trained.as_ref());
    if trained.is_some() && args.model.is_given() {
        return Err(Usage("the weights fix the model: leave out the flags that describe one".into()).into());
    }
    let (name, config) = args.model.config(described)?;
    let stack = Stack::of_text(&config, length).map(|stack| stack.with_causal(causal));
    let prediction = match (&stack, trained) {
        (Ok(_) | Err(TheoryError::NoClosedForm(_)), Some(_)) => Err(NoClosedForm::Trained.into()),
        (Ok(stack), None) => stack.predict(),
        (Err(error), _) => Err(error.clone()),
    };
    if let Err(error) = &prediction
        && !matches!(error, TheoryError::NoClosedForm(_))
    {
        // A model that cannot be built, or a length that it cannot take.
        return Err(error.clone().into());
    }
    let text = args
        .text
        .as_deref()
        .map(|path| Text::read(path, args, subject.as_ref(), length))
        .transpose()?;
    let probe = TextProbe {
        batch: args.batch,
        causal,
        text: text.as_ref().map_or(Vec::new(), |text| text.tokens.clone()),
        ..TextProbe::new(length)
    };
    let kind = common.backend()?;
    let seeds = (0..args.seeds).map(|i| common.seed.wrapping_add(i));
    let survey = if args.predict_only {
        None
    } else {
        Some(with_backend!(kind, common.device, |B, device| {
            match trained {
                Some(trained) => subject::measure::<Autodiff<B>>(trained, &probe, seeds, &device),
                None => probe
                    .survey::<Autodiff<B>>(&config, seeds, &device)
                    .map_err(anyhow::Error::from),
            }
        })??)
    };
    let thresholds = Thresholds {
        cosine: args.max_cosine,
        ..Thresholds::default()
    };
    let verdict = match (&survey, &stack, &prediction) {
        // Thresholds and remedies are those of models at their start.
        (Some(_), _, _) if trained.is_some() => None,
        (Some(survey), stack, _) => Some(Verdict::of(survey, stack.as_ref().ok(), config.norm, thresholds)),
        (
            None,
            Ok(_),
            Ok(Prediction {
                ended: Some(reason), ..
            }),
        ) => {
            anyhow::bail!("{reason}; measure it without --predict-only");
        }
        (None, Ok(stack), Ok(prediction)) => Some(Verdict::of_prediction(prediction, stack, thresholds)),
        (None, Err(error), _) | (None, _, Err(error)) => {
            // Nothing was asked for but what does not exist.
            anyhow::bail!("{error}; measure it without --predict-only");
        }
    };
    let propagates = verdict.as_ref().is_none_or(|verdict| verdict.propagates);
    let report = ProbeReport {
        title: title(&name, &config, args, (length, causal)),
        notes: notes(trained, text.is_some()),
        settings: json!({
            "model": config,
            "length": length,
            "batch": args.batch,
            "causal": causal,
            "checkpoint": trained.map(TextModel::path),
            "text": text.as_ref().map(|text| json!({"file": args.text, "sha256": text.sha256, "tokenizer": text.tokenizer})),
            "first_seed": common.seed,
            "backend": kind.name(),
        }),
        sizes: [length, config.d_model],
        survey,
        prediction: prediction.map_err(|error| error.to_string()),
        verdict,
    };
    let text = match args.format() {
        Format::Table => report.to_text(),
        Format::Json => report.to_json(),
        Format::Csv => report.to_csv(),
    };
    output.write(text.as_bytes())?;
    output.commit()?;
    for (plot, mut output) in plots {
        output.write(&drawn(&report.figure(plot.kind), &plot.path)?)?;
        output.commit()?;
    }
    Ok(if propagates {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(DOES_NOT_PROPAGATE)
    })
}

impl ProbeArgs {
    fn format(&self) -> Format {
        let of_file = || match self.output.as_ref()?.extension()?.to_str()? {
            "json" => Some(Format::Json),
            "csv" => Some(Format::Csv),
            _ => None,
        };
        self.format.or_else(of_file).unwrap_or(Format::Table)
    }
}

fn title(
    name: &str,
    config: &TextTransformerConfig,
    args: &ProbeArgs,
    (length, causal): (usize, bool),
) -> String {
    let norm = match config.norm {
        crate::model::NormPlacement::Post => "post-norm",
        crate::model::NormPlacement::Pre => "pre-norm",
        crate::model::NormPlacement::None => "no norms",
    };
    let tokens = match &args.text {
        Some(text) => format!("tokens of {}", text.display()),
        None => "random tokens".to_owned(),
    };
    let seeds = match args.seeds {
        _ if args.predict_only => String::new(),
        1 => ", 1 seed".to_owned(),
        seeds => format!(", {seeds} seeds"),
    };
    format!(
        "{name}: {} layers, {} wide, {} heads, {norm}, residual strengths {} and {}; {} {}sequences of {} \
         {tokens}{seeds}",
        config.n_layers,
        config.d_model,
        config.n_heads,
        config.attention_strength,
        config.feed_forward_strength,
        args.batch,
        if causal { "causal " } else { "" },
        length,
    )
}

/// What is to be known of the numbers.
fn notes(trained: Option<&TextModel>, on_text: bool) -> Vec<String> {
    let mut notes = trained.map_or(Vec::new(), |trained| trained.notes.clone());
    if !on_text && trained.is_some() {
        notes.push(
            "measured on random tokens: --text FILE takes real ones, such as it was trained on".to_owned(),
        );
    }
    if trained.is_some() {
        notes.push("no verdict: its thresholds and remedies are for models at their start".to_owned());
    } else if on_text {
        notes.push(
            "predictions are of random tokens; a text repeats its tokens, and equal ones have a cosine near 1"
                .to_owned(),
        );
    }
    notes
}

/// A figure as the bytes of the file that its path names.
fn drawn(figure: &Figure, path: &Path) -> anyhow::Result<Vec<u8>> {
    #[cfg(feature = "png")]
    if path.extension().is_some_and(|extension| extension == "png") {
        return Ok(figure.to_png(2.0)?);
    }
    let _ = path;
    Ok(figure.to_svg().into_bytes())
}
