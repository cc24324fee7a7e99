//! `wqk compare`: final losses, speed-up and scores of runs side by side.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, ValueEnum};

use super::common::Common;
use super::output::Output;
use crate::report::compare::{self, Comparison, NamedTable, Published, TableKind};
use crate::report::folder::ReportFolder;

/// Compare runs of `wqk train`: losses, speed-up and scores, with tests over seeds
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct CompareArgs {
    /// Folders of runs, or folders of such folders
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,

    /// Which table to print; csv prints one, the losses if none is named
    #[arg(long, value_name = "NAME", value_enum)]
    table: Option<Table>,

    /// How to print it
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    format: Format,

    /// Folder of a report with all tables and figures; an earlier report there is replaced
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Draw in published training curves, a JSON file
    #[arg(long, value_name = "FILE")]
    published: Option<PathBuf>,
}

const AFTER_HELP: &str = "\
Runs whose recipes differ in nothing but the initialisation of attention and the seed are compared with each
other; whatever else is given is put beside them. Unfinished runs are drawn, and count in no table.

A file for --published has two objects, either of which may be absent:
  {\"loss_csv\": {\"SIZE--MODE--DATA[--symmetric-init]\": {\"steps\": [200, …], \"loss\": [9.6, …]}},
   \"scores\": {\"SIZE-MODE-DATA\": {\"steps\": […], \"n_layers\": 12, \"symmetry_median\": […],
              \"directionality_median\": […]}}}
SIZE is bert_small (4 layers), bert (12) or bert_large (24), MODE encoder or decoder, DATA wikipedia, jigsaw or
red_pajama.";

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Table {
    /// Final losses and speed-up
    Losses,
    /// Differences over seeds, and their tests
    Tests,
    /// Symmetry and directionality at the end
    Scores,
    /// Losses and accuracy of vision transformers
    Vision,
    /// Every run
    Runs,
}

impl Table {
    const fn kind(self) -> TableKind {
        match self {
            Self::Losses => TableKind::Losses,
            Self::Tests => TableKind::Tests,
            Self::Scores => TableKind::Scores,
            Self::Vision => TableKind::Vision,
            Self::Runs => TableKind::Runs,
        }
    }
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum Format {
    /// Columns for a terminal
    #[default]
    Table,
    /// Comma-separated values, unrounded
    Csv,
    /// Markdown
    Markdown,
    /// LaTeX, with booktabs
    Latex,
}

/// Compares runs.
///
/// # Errors
/// Where no run can be read, or the report cannot be written.
pub fn run(args: &CompareArgs, common: &Common) -> anyhow::Result<ExitCode> {
    let folder = match &args.out {
        Some(out) => Some(
            ReportFolder::open(out, "compare")
                .with_context(|| format!("cannot write the report folder '{}'", out.display()))?,
        ),
        None => None,
    };
    let published = match &args.published {
        Some(path) => Some(Published::read(path).map_err(anyhow::Error::msg)?),
        None => None,
    };
    let comparison = Comparison::read(&args.runs);
    if comparison.n_runs() == 0 {
        anyhow::bail!("no run to compare: {}", comparison.notes.join("; "));
    }
    // What was left out is a result, not progress: it is said whatever `--quiet` is.
    for note in &comparison.notes {
        super::print_note(note);
    }

    let tables = match (args.table, args.format) {
        (Some(table), _) => vec![comparison.table(table.kind())],
        (None, Format::Csv) => vec![comparison.table(TableKind::Losses)],
        (None, _) => comparison.tables(),
    };
    let text: Vec<String> = tables.iter().map(|table| print(table, args.format)).collect();
    Output::stdout().write(text.join("\n").as_bytes())?;

    if let (Some(folder), Some(out)) = (folder, &args.out) {
        let mut provenance = vec![("program".to_owned(), format!("wqk {}", env!("CARGO_PKG_VERSION")))];
        for run in comparison.members() {
            provenance.push((run.folder.clone(), format!("recipe {}", run.info.recipe_sha256)));
        }
        compare::write(folder.path(), &comparison, published.as_ref(), &provenance)
            .and_then(|()| folder.commit())
            .with_context(|| format!("cannot write the report folder '{}'", out.display()))?;
        if !common.quiet {
            eprintln!("Report: {}", out.join("index.html").display());
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn print(named: &NamedTable, format: Format) -> String {
    match format {
        Format::Table => format!("{}\n\n{}", named.caption, named.table.to_text()),
        Format::Csv => named.data.to_csv(),
        Format::Markdown => format!("{}\n\n{}", named.caption, named.table.to_markdown()),
        Format::Latex => format!("% {}\n{}", named.caption, named.table.to_latex()),
    }
}
