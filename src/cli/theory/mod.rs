//! `wqk theory`: the claims of the structure paper, tried on data.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;

use super::common::Common;
use super::output::Output;
use crate::backend::{Autodiff, with_backend};
use crate::data::{self, Document, Documents, bundled};
use crate::report::folder::ReportFolder;
use crate::report::html::{Page, Section};
use crate::report::table::{Align, Table};
use crate::theory::{Claim, Outcome, TextEvidence, TextSettings, Verdict};

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
    #[arg(long, conflicts_with_all = ["trained", "text"])]
    synthetic: bool,

    /// An encoder and a decoder trained briefly on the bundled Wikipedia text
    #[arg(long)]
    trained: bool,

    /// The same trained on this text: plain, or a MediaWiki dump, compressed or not
    #[arg(long, value_name = "FILE", conflicts_with = "trained")]
    text: Option<PathBuf>,

    /// Updates of each model
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
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

/// Documents that are read of a text: what a brief training can use.
const DOCUMENTS: usize = 4000;

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
        .map(|path| ReportFolder::open(path).with_context(|| cannot_write(path)))
        .transpose()?;
    let evidence = evidence(args, common)?;
    let outcomes: Vec<(Claim, Outcome)> = claims
        .into_iter()
        .map(|claim| {
            let outcome = match &evidence {
                None => claim.on_synthetic(common.seed),
                Some(evidence) => claim.on_text(evidence),
            };
            (claim, outcome)
        })
        .collect();

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
    text + "\nwqk theory NAME tries one of them, wqk theory all every one.\n"
}

/// The trained models, if they were asked for.
fn evidence(args: &TheoryArgs, common: &Common) -> anyhow::Result<Option<TextEvidence>> {
    let (documents, source) = match &args.text {
        Some(path) => (
            documents(Documents::open(path)?)?,
            path.file_name()
                .unwrap_or(path.as_os_str())
                .to_string_lossy()
                .into_owned(),
        ),
        None if args.trained => (documents(bundled::documents()?)?, bundled::NAME.to_owned()),
        None => return Ok(None),
    };
    let settings = TextSettings {
        steps: args.steps as usize,
        seed: common.seed,
        ..TextSettings::default()
    };
    let bar = ProgressBar::new(2 * args.steps);
    if common.quiet {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    let style = ProgressStyle::with_template("training the {msg} {bar:24} {pos:>5}/{len} {eta:>4}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let progress = |name: &str, step: usize| {
        if step <= 1 {
            bar.set_message(name.to_owned());
        }
        bar.inc(1);
    };
    let evidence = with_backend!(common.backend()?, common.device, |B, device| {
        TextEvidence::train::<Autodiff<B>>(&documents, &source, &settings, &device, &progress)
    })??;
    bar.finish_and_clear();
    Ok(Some(evidence))
}

fn documents(documents: Documents) -> anyhow::Result<Vec<Document>> {
    Ok(documents.take(DOCUMENTS).collect::<Result<_, _>>()?)
}

/// What the outcome depends on, for the record.
fn settings(args: &TheoryArgs, common: &Common) -> anyhow::Result<serde_json::Value> {
    let mut settings = json!({
        "program": format!("wqk {}", env!("CARGO_PKG_VERSION")),
        "seed": common.seed,
    });
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
        settings["steps"] = json!(args.steps);
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
        outcome.data,
        outcome.verdict().words()
    );
    for note in &outcome.notes {
        text += &format!("{note}\n");
    }
    text + "\n"
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
        std::fs::write(folder.join(format!("{name}.csv")), outcome.records().to_csv())?;
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
