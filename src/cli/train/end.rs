//! How the runs of the command ended.

use std::path::Path;
use std::process::ExitCode;

use super::TrainArgs;
use super::plan::{Job, place};
use crate::cli::output::Output;
use crate::cli::{interrupt, print_error};
use crate::report::table::{Align, Table};
use crate::train::{RunFolder, RunInfo, TrainError};

/// Tells how all runs ended.
pub(super) fn conclude(
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
    let again = place(args).display();
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
            ExitCode::from(interrupt::exit_code())
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
    failed.for_each(|error| print_error(&error));
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
