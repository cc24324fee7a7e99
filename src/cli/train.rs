//! `wqk train`: the runs of a recipe, each in a folder of its own, from the start or from where they stopped.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use indicatif::ProgressBar;

use super::Usage;
use super::common::Common;
use super::output::Output;
use super::runs::RunProgress;
use crate::backend::{Autodiff, BackendKind, with_backend};
use crate::data::{CacheProgress, default_cache_folder};
use crate::report::table::{Align, Table};
use crate::train::recipe::Options;
use crate::train::run::Stop;
use crate::train::{
    Input, Launch, Recipe, RecipeFile, RunFolder, RunInfo, RunStatus, TrainError, in_pool, side_by_side,
};

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

    /// Check the recipe, say what would be run, and stop
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

/// One run of the command.
struct Job {
    recipe: Recipe,
    /// The file of the recipe, for errors.
    file: PathBuf,
    folder: PathBuf,
    resume: bool,
}

/// Trains.
///
/// # Errors
/// Where a recipe, its data or a folder cannot be used, or a run fails.
pub fn run(args: &TrainArgs, common: &Common) -> anyhow::Result<ExitCode> {
    let backend = common.backend()?;
    let (jobs, finished) = plan(args, common)?;
    if args.check {
        let folders: String = jobs
            .iter()
            .map(|job| format!("{}\n", job.folder.display()))
            .collect();
        Output::stdout().write(folders.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let note = |text: String| {
        if !common.quiet {
            eprintln!("{text}");
        }
    };
    for folder in &finished {
        note(format!("{} is finished.", folder.display()));
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
    super::interrupt::ask_first(&stop);
    let results = side_by_side(jobs.len(), at_once, |index| {
        if stop.is_asked() {
            return Err(TrainError::Stopped { step: 0 }.into());
        }
        let job = &jobs[index];
        let launch = Launch {
            recipe: &job.recipe,
            file: &job.file,
            folder: &job.folder,
            resume: job.resume,
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
    conclude(&jobs, results, args)
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

/// The runs to do, and the folders of those that are done.
fn plan(args: &TrainArgs, common: &Common) -> anyhow::Result<(Vec<Job>, Vec<PathBuf>)> {
    let recipe = match &args.recipe {
        Some(file) => {
            let mut set = args.set.clone();
            set.extend(
                common
                    .seed_given
                    .then(|| ("seeds".to_owned(), format!("[{}]", common.seed))),
            );
            let options = Options {
                small: args.small,
                set,
                arms: args.arm.clone(),
            };
            Some(RecipeFile::load(file, &options)?)
        }
        None if common.seed_given => {
            return Err(Usage("--seed cannot be changed in a run that is resumed".to_owned()).into());
        }
        None => None,
    };
    let mut jobs = Vec::new();
    let mut finished = Vec::new();
    match (&recipe, &args.resume) {
        (Some(recipe), None) => {
            for run in recipe.runs()? {
                let folder = args.out.join(run.folder_name());
                if folder.symlink_metadata().is_ok() {
                    bail!(
                        "{} exists: go on with it by `--resume {}`, or name another folder by --out",
                        folder.display(),
                        args.out.display()
                    );
                }
                jobs.push(Job {
                    recipe: run,
                    file: recipe.file().to_owned(),
                    folder,
                    resume: false,
                });
            }
        }
        (Some(recipe), Some(resume)) => {
            let runs = recipe.runs()?;
            let is_run = RunInfo::read(resume).is_ok();
            if is_run && runs.len() != 1 {
                bail!(
                    "{} is the folder of one run, but the recipe has {}: choose by --arm and --seed, or leave the recipe out",
                    resume.display(),
                    runs.len()
                );
            }
            for run in runs {
                let folder = if is_run {
                    resume.clone()
                } else {
                    resume.join(run.folder_name())
                };
                let file = recipe.file().to_owned();
                if folder.symlink_metadata().is_err() {
                    jobs.push(Job {
                        recipe: run,
                        file,
                        folder,
                        resume: false,
                    });
                    continue;
                }
                let before = RunFolder::open(&folder)?;
                same_recipe(&before, &run)?;
                place(before, run, file, &mut jobs, &mut finished);
            }
        }
        (None, Some(resume)) => {
            for folder in RunFolder::find(resume)? {
                let file = folder.recipe_file();
                let run = folder.recipe()?;
                place(folder, run, file, &mut jobs, &mut finished);
            }
        }
        (None, None) => return Err(Usage("give a recipe, or --resume".to_owned()).into()),
    }
    Ok((jobs, finished))
}

fn place(before: RunFolder, recipe: Recipe, file: PathBuf, jobs: &mut Vec<Job>, finished: &mut Vec<PathBuf>) {
    let folder = before.path().to_owned();
    if before.info().status == RunStatus::Finished {
        finished.push(folder);
        return;
    }
    jobs.push(Job {
        recipe,
        file,
        folder,
        resume: true,
    });
}

/// Refuses a recipe other than the one that a run began with.
fn same_recipe(before: &RunFolder, now: &Recipe) -> anyhow::Result<()> {
    let then = before.recipe()?;
    match then.difference(now) {
        None => Ok(()),
        Some((field, then, now)) => bail!(
            "{}: the run began with {field} = {then}, the recipe now has {now}: restore the field, or begin a run in \
             another folder",
            before.path().display()
        ),
    }
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
                    eprintln!("wqk: note: {report}");
                }
                for note in input.notes() {
                    eprintln!("wqk: note: {note}");
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

/// The exit code of a process that was interrupted.
const INTERRUPTED: u8 = 130;

/// Tells how all runs ended.
fn conclude(
    jobs: &[Job],
    results: Vec<anyhow::Result<RunInfo>>,
    args: &TrainArgs,
) -> anyhow::Result<ExitCode> {
    let mut stopped = 0;
    let mut failed = Vec::new();
    let mut done = Vec::new();
    for (job, result) in jobs.iter().zip(results) {
        match result {
            Ok(_) => done.push(job.folder.as_path()),
            Err(error) => match error.downcast_ref() {
                Some(TrainError::Stopped { .. }) => stopped += 1,
                _ => failed.push((job, error)),
            },
        }
    }
    if !done.is_empty() {
        Output::stdout().write(summary(&done)?.to_text().as_bytes())?;
    }
    let again = args.resume.as_deref().unwrap_or(&args.out).display();
    if stopped > 0 {
        // A run that never began has no folder, and is known to the recipe alone.
        let begun = jobs.iter().all(|job| job.folder.join("run.json").exists());
        let recipe = match &args.recipe {
            Some(recipe) if !begun => format!("{} ", recipe.display()),
            _ => String::new(),
        };
        let flags = if recipe.is_empty() {
            ""
        } else {
            " and the same flags"
        };
        eprintln!(
            "{stopped} of {} runs stopped: go on with `wqk train {recipe}--resume {again}`{flags}",
            jobs.len()
        );
    }
    if failed.is_empty() {
        return Ok(if stopped > 0 {
            ExitCode::from(INTERRUPTED)
        } else {
            ExitCode::SUCCESS
        });
    }
    let several = failed.len() > 1;
    let mut failed = failed.into_iter().map(|(job, error)| match several {
        true => error.context(job.recipe.folder_name()),
        false => error,
    });
    let last = failed.next_back();
    failed.for_each(|error| super::print_error(&error));
    last.map_or(Ok(ExitCode::FAILURE), Err)
}

/// The end of every run that is finished: a row a run.
fn summary(folders: &[&Path]) -> anyhow::Result<Table> {
    let mut table = Table::new([
        ("run", Align::Left),
        ("updates", Align::Right),
        ("held-out loss", Align::Right),
        ("symmetry", Align::Right),
        ("directionality (excess)", Align::Right),
        ("seconds", Align::Right),
        ("waiting for data", Align::Right),
        ("folder", Align::Left),
    ]);
    let number = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:+.3}"));
    for folder in folders {
        let folder = RunFolder::open(*folder)?;
        let run = folder.read()?;
        let (symmetry, directionality) = crate::report::experiment::final_medians(&run);
        let waited = run.steps.iter().fold(0.0, |sum, row| sum + row.waited);
        table.push([
            format!("{}-seed{}", run.arm, run.seed),
            folder.info().step.to_string(),
            run.held_out
                .last()
                .map_or(String::new(), |row| format!("{:.3}", row.final_loss())),
            number(symmetry),
            number(directionality),
            format!("{:.0}", run.seconds),
            format!("{:.2} %", 100.0 * waited / run.seconds.max(1e-9)),
            folder.path().display().to_string(),
        ]);
    }
    Ok(table)
}
