//! `wqk train`: the runs of a recipe, each in a folder of its own, from the start or from where they stopped.

mod check;
mod end;
mod plan;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use indicatif::ProgressBar;
use plan::{Job, plan};

use super::common::Common;
use super::runs::RunProgress;
use super::{interrupt, print_note};
use crate::backend::{Autodiff, BackendKind, with_backend};
use crate::data::{CacheProgress, default_cache_folder};
use crate::train::run::Stop;
use crate::train::{Input, Launch, Recipe, RunInfo, TrainError, in_pool, side_by_side};

/// Train the runs of a recipe, and resume them
#[derive(Debug, Args)]
pub struct TrainArgs {
    /// The recipe, a TOML file; with `--resume` it may be left out
    #[arg(value_name = "RECIPE", required_unless_present = "resume")]
    recipe: Option<PathBuf>,

    /// Folder of the runs: each gets a folder ARM-seedN in it
    #[arg(
        short,
        long,
        value_name = "DIR",
        default_value = "runs",
        conflicts_with = "resume"
    )]
    out: PathBuf,

    /// Go on with the runs in DIR, the folder of one run or of several, from their latest checkpoints; with a
    /// recipe, also begin those that are missing
    #[arg(long, value_name = "DIR")]
    resume: Option<PathBuf>,

    /// Run the small variant of the recipe
    #[arg(long, requires = "recipe")]
    small: bool,

    /// Run this arm only; may be given several times
    #[arg(long, value_name = "NAME", requires = "recipe")]
    arm: Vec<String>,

    /// Set a field of the recipe, such as `train.steps=1000` or `data.paths='["a.txt"]'`; may be given several times
    #[arg(long, value_name = "FIELD=VALUE", value_parser = assignment, requires = "recipe")]
    set: Vec<(String, String)>,

    /// Runs that go on at the same time, sharing the threads
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = jobs)]
    jobs: usize,

    /// Train nothing: find and try recipe, data, tokenizer, model and folders, and say what would be run; exit code 0
    /// if it would start, with --resume where runs are there already
    #[arg(long)]
    check: bool,
}

fn assignment(text: &str) -> Result<(String, String), String> {
    let (field, value) = text
        .split_once('=')
        .ok_or("must be FIELD=VALUE, such as train.steps=1000")?;
    Ok((field.trim().to_owned(), value.trim().to_owned()))
}

fn jobs(text: &str) -> Result<usize, String> {
    let jobs = text.parse().ok().filter(|jobs| (1..=256).contains(jobs));
    jobs.ok_or_else(|| "must be a whole number from 1 to 256".to_owned())
}

/// Trains.
///
/// # Errors
/// Where a recipe, its data or a folder cannot be used, or a run fails.
pub fn run(args: &TrainArgs, common: &Common) -> anyhow::Result<ExitCode> {
    let backend = common.backend()?;
    let planned = plan(args, common)?;
    if args.check {
        return check::check(&planned, args, common);
    }
    let note = |text: String| {
        if !common.quiet {
            eprintln!("{text}");
        }
    };
    let mut jobs = Vec::new();
    for mut job in planned {
        if args.resume.is_none() && !job.is_new() {
            bail!(
                "{} exists: go on with it by `--resume {}`, or name another folder by --out",
                job.folder.display(),
                args.out.display()
            );
        }
        if job.is_finished() {
            note(format!("{} is finished.", job.folder.display()));
            continue;
        }
        job.before = Ok(job.before?);
        jobs.push(job);
    }
    if jobs.is_empty() {
        note("Nothing is left to do.".to_owned());
        return Ok(ExitCode::SUCCESS);
    }

    note("Reading the data…".to_owned());
    let (inputs, input_of) = inputs(&jobs, common.quiet)?;
    let at_once = args.jobs.min(jobs.len());
    let threads = (common.threads() / at_once).max(1);
    let steps = |index: usize| {
        let sequences = inputs[input_of[index]].len();
        jobs[index].recipe.config(sequences).steps
    };
    note(format!(
        "{} run{} on {backend}, {at_once} at a time with {threads} thread{}.",
        jobs.len(),
        if jobs.len() == 1 { "" } else { "s" },
        if threads == 1 { "" } else { "s" },
    ));

    let names = jobs.iter().enumerate();
    let names = names.map(|(index, job)| (job.recipe.folder_name(), steps(index)));
    let progress = RunProgress::new(names.collect(), common.quiet);
    let stop = Stop::default();
    interrupt::ask_first(&stop);
    let results = side_by_side(jobs.len(), at_once, |index| {
        if stop.is_asked() {
            return Err(TrainError::Stopped { step: 0 }.into());
        }
        let job = &jobs[index];
        let launch = Launch {
            recipe: &job.recipe,
            file: &job.file,
            folder: &job.folder,
            resume: !job.is_new(),
            backend: backend.name(),
            threads,
            index,
            stop: &stop,
            watch: &|event| progress.hear(event),
        };
        let input = &inputs[input_of[index]];
        in_pool(threads, || one(&launch, input, backend, common.device))
    });
    progress.finish();
    end::conclude(&jobs, results, args)
}

fn one(
    launch: &Launch<'_>,
    input: &Input,
    backend: BackendKind,
    device: Option<usize>,
) -> anyhow::Result<RunInfo> {
    let info = with_backend!(backend, device, |B, device| launch
        .run::<Autodiff<B>>(input, &device))??;
    Ok(info)
}

/// The data of each job, read once where jobs share it: the data, and which is whose.
fn inputs(jobs: &[Job], quiet: bool) -> anyhow::Result<(Vec<Input>, Vec<usize>)> {
    let cache = default_cache_folder();
    let mut inputs = Vec::new();
    let mut firsts: Vec<&Recipe> = Vec::new();
    let mut input_of = Vec::new();
    for job in jobs {
        let shared =
            |first: &&Recipe| first.data == job.recipe.data && first.tokenizer == job.recipe.tokenizer;
        let index = match firsts.iter().position(shared) {
            Some(index) => index,
            None => {
                let bar = spinner(quiet);
                let mut progress = |at: CacheProgress| {
                    bar.set_message(format!("{} documents, {} tokens", at.documents, at.tokens));
                    bar.tick();
                };
                let input = Input::open(&job.recipe, &cache, &mut progress)?;
                bar.finish_and_clear();
                // What was passed over is a result, not progress.
                for report in input
                    .reports()
                    .iter()
                    .filter(|report| !(quiet && report.is_whole()))
                {
                    print_note(report);
                }
                for note in input.notes() {
                    print_note(note);
                }
                inputs.push(input);
                firsts.push(&job.recipe);
                inputs.len() - 1
            }
        };
        input_of.push(index);
    }
    Ok((inputs, input_of))
}

/// How far the tokenising is, on a terminal.
fn spinner(quiet: bool) -> ProgressBar {
    if quiet {
        ProgressBar::hidden()
    } else {
        ProgressBar::new_spinner()
    }
}
