//! `wqk theory`: the claims of the structure paper, tried on data.

mod evidence;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, ValueEnum};
use serde_json::json;

use super::common::Common;
use super::output::Output;
use crate::data::{self, bundled};
use crate::report::folder::ReportFolder;
use crate::report::html::{Page, Section};
use crate::report::minus::ascii;
use crate::report::table::{Align, Table, visible};
use crate::theory::{Claim, Outcome, Verdict};

use evidence::{Progress, evidence};

/// Try a claim of the structure paper on data: does it hold, are its assumptions met?
///
/// Exit code: 0 the claim holds; 3 the data do not meet its assumptions; 4 they do, and its conclusion fails. With
/// `all` the highest of these.
#[derive(Debug, Args)]
pub struct TheoryArgs {
    /// The claim, or `all`; without it, all are listed
    #[arg(value_name = "NAME")]
    name: Option<String>,

    /// Data made to meet the assumptions (the default)
    #[arg(long, conflicts_with_all = ["trained", "run", "text"])]
    synthetic: bool,

    /// An encoder and a decoder trained briefly on the bundled Wikipedia text
    #[arg(long)]
    trained: bool,

    /// A model trained before: the folder of a run of `wqk train`, or of a BERT as transformers writes it
    #[arg(long, value_name = "FOLDER", conflicts_with = "trained")]
    run: Option<PathBuf>,

    /// The text: plain, JSONL, CSV, Parquet or a MediaWiki dump, compressed or not. With --run the model is shown it
    /// [default: the text of the run, else the bundled one]; without, an encoder and a decoder are trained on it
    #[arg(long, value_name = "FILE", conflicts_with = "trained")]
    text: Option<PathBuf>,

    /// Checkpoint of the run, by its step [default: the latest]
    #[arg(long, value_name = "N", requires = "run")]
    step: Option<usize>,

    /// Tokenizer of the model: a tokenizer.json or vocab.txt [default: its own]
    #[arg(long, value_name = "FILE", requires = "run")]
    tokenizer: Option<PathBuf>,

    /// Sequences that the model is shown
    #[arg(long, value_name = "N", default_value_t = 8, requires = "run", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    batch: u64,

    /// Updates of each model that is trained
    #[arg(long, value_name = "N", default_value_t = 400, conflicts_with = "run", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    steps: u64,

    /// How to print
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,

    /// Folder for a report with figures; an earlier report there is replaced
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For a terminal
    Table,
    /// Everything that was measured
    Json,
    /// For a document
    Markdown,
}

/// Runs the subcommand.
///
/// # Errors
/// An unknown claim, a text that cannot be read, an output that cannot be written, training that goes astray.
pub fn run(args: &TheoryArgs, common: &Common) -> anyhow::Result<ExitCode> {
    let mut output = Output::stdout();
    let Some(name) = &args.name else {
        output.write(list().as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    };
    let claims = match name.as_str() {
        "all" => Claim::ALL.to_vec(),
        name => vec![Claim::find(name).map_err(|error| super::Usage(error.to_string()))?],
    };
    let folder = args
        .out
        .as_deref()
        .map(|path| ReportFolder::open(path, "theory").with_context(|| cannot_write(path)))
        .transpose()?;
    let progress = Progress::new(common.quiet);
    let evidence = evidence(args, common, &progress)?;
    let n = claims.len();
    let outcomes: Vec<(Claim, Outcome)> = claims
        .into_iter()
        .enumerate()
        .map(|(i, claim)| {
            let outcome = match &evidence {
                None => claim.on_synthetic(common.seed),
                Some(evidence) => {
                    progress.say(&format!("trying {} ({} of {n})", claim.name, i + 1));
                    claim.on_text(evidence)
                }
            };
            (claim, outcome)
        })
        .collect();
    progress.finish();

    let settings = settings(args, common)?;
    match args.format {
        Format::Json => {
            let all: Vec<_> = outcomes
                .iter()
                .map(|(claim, outcome)| to_json(*claim, outcome))
                .collect();
            let document = json!({ "settings": settings, "claims": all });
            let mut text = serde_json::to_string_pretty(&document)?;
            text.push('\n');
            output.write(text.as_bytes())?;
        }
        Format::Table | Format::Markdown => {
            for (claim, outcome) in &outcomes {
                output.write(words(*claim, outcome, args.format).as_bytes())?;
            }
        }
    }
    if let (Some(folder), Some(path)) = (folder, &args.out) {
        write_report(folder.path(), &outcomes, &settings)
            .and_then(|()| folder.commit())
            .with_context(|| cannot_write(path))?;
        if !common.quiet {
            eprintln!("Report: {}", path.join("index.html").display());
        }
    }
    let code = outcomes
        .iter()
        .map(|(_, outcome)| outcome.verdict().exit_code())
        .max();
    Ok(ExitCode::from(code.unwrap_or(0)))
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write the report folder '{}'", path.display())
}

fn list() -> String {
    let mut text = String::new();
    for claim in Claim::ALL {
        text += &format!("{}: {}\n    {}\n", claim.name, claim.place, claim.statement);
    }
    ascii(&text) + "\nwqk theory NAME tries one of them, wqk theory all every one.\n"
}

/// What the outcome depends on, for the record.
fn settings(args: &TheoryArgs, common: &Common) -> anyhow::Result<serde_json::Value> {
    let mut settings = json!({
        "program": format!("wqk {}", env!("CARGO_PKG_VERSION")),
        "seed": common.seed,
    });
    if let Some(folder) = &args.run {
        settings["backend"] = json!(common.backend()?.to_string());
        settings["run"] = json!(folder);
        settings["step"] = json!(args.step);
        settings["batch"] = json!(args.batch);
    }
    let text = match &args.text {
        Some(path) => Some((path.display().to_string(), data::sha256(path)?)),
        None => args
            .trained
            .then(|| (bundled::NAME.to_owned(), bundled::SHA256.to_owned())),
    };
    if let Some((name, sha256)) = text {
        settings["backend"] = json!(common.backend()?.to_string());
        settings["text"] = json!(name);
        settings["text_sha256"] = json!(sha256);
        if args.run.is_none() {
            settings["steps"] = json!(args.steps);
        }
    }
    Ok(settings)
}

fn to_json(claim: Claim, outcome: &Outcome) -> serde_json::Value {
    json!({
        "claim": claim.name,
        "place": claim.place,
        "statement": claim.statement,
        "data": outcome.data,
        "verdict": outcome.verdict(),
        "parts": outcome.parts,
        "notes": outcome.notes,
    })
}

fn words(claim: Claim, outcome: &Outcome, format: Format) -> String {
    let table = outcome.table();
    let (heading, table) = match format {
        Format::Markdown => (format!("## {}", claim.name), table.to_markdown()),
        _ => (claim.name.to_owned(), table.to_text()),
    };
    let mut text = format!(
        "{heading}\n\n{}\nOn {}.\n\nVerdict: {}.\n\n{table}\n",
        claim.statement,
        visible(&outcome.data),
        outcome.verdict().words()
    );
    for note in &outcome.notes {
        text += &format!("{note}\n");
    }
    ascii(&text) + "\n"
}

fn write_report(
    folder: &Path,
    outcomes: &[(Claim, Outcome)],
    settings: &serde_json::Value,
) -> std::io::Result<()> {
    let mut verdicts = Table::new([
        ("claim", Align::Left),
        ("verdict", Align::Left),
        ("place", Align::Left),
    ]);
    let mut page = Page::new("Claims of the structure paper, tried");
    let mut sections = Vec::new();
    for (claim, outcome) in outcomes {
        let name = claim.name;
        verdicts.push([name, outcome.verdict().words(), claim.place]);
        std::fs::write(folder.join(format!("{name}.svg")), outcome.figure.to_svg())?;
        std::fs::write(
            folder.join(format!("{name}.csv")),
            ascii(&outcome.records().to_csv()),
        )?;
        std::fs::write(
            folder.join(format!("{name}.json")),
            serde_json::to_vec_pretty(&to_json(*claim, outcome))?,
        )?;
        sections.push(
            Section::new(format!("{name}: {}", outcome.verdict().words()))
                .text(claim.statement)
                .text(&outcome.notes.join("\n\n"))
                .figure(&outcome.figure, outcome.figure.title())
                .table(&outcome.table(), &format!("On {}.", outcome.data)),
        );
    }
    let refuted = |verdict| {
        outcomes
            .iter()
            .filter(|(_, outcome)| outcome.verdict() == verdict)
            .count()
    };
    page = page
        .with_lead(format!(
            "{} hold, of {} the assumptions are not met, {} fail although theirs are.",
            refuted(Verdict::Holds),
            refuted(Verdict::AssumptionsNotMet),
            refuted(Verdict::ConclusionFails)
        ))
        .with(Section::new("Verdicts").table(&verdicts, "Each claim with what came of it."));
    for section in sections {
        page = page.with(section);
    }
    let pairs = settings.as_object().into_iter().flatten().map(|(name, value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        (name.clone(), value)
    });
    std::fs::write(folder.join("index.html"), page.with_provenance(pairs).to_html())?;
    std::fs::write(folder.join("settings.json"), serde_json::to_vec_pretty(settings)?)
}
