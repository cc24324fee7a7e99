//! `wqk train --check`: what would be run, as far as it can be tried without training.

use std::collections::HashSet;
use std::path::Path;
use std::process::ExitCode;

use indicatif::{DecimalBytes, HumanCount};

use super::TrainArgs;
use super::plan::{Job, place};
use crate::backend::{Autodiff, with_backend};
use crate::cli::common::Common;
use crate::cli::output::Output;
use crate::cli::print_error;
use crate::report::table::{Align, Table};
use crate::train::{Preview, Recipe};

/// Tries all but the training, prints what would be run, and then what is wrong.
pub(super) fn check(jobs: &[Job], args: &TrainArgs, common: &Common) -> anyhow::Result<ExitCode> {
    let backend = common.backend()?;
    let mut faults = Faults::default();
    let mut data: Vec<(&Recipe, Option<Preview>)> = Vec::new();
    // Runs that differ in their seeds alone are one row.
    let mut arms: Vec<Recipe> = Vec::new();
    let mut runs = columns(["run", "arm"], ["seed"], ["state", "folder"]);
    let mut settings = columns(
        ["arm", "objective", "initialisation"],
        ["parameters", "batch", "an update", "updates"],
        ["schedule"],
    );
    let mut to_begin = 0;
    let mut to_go_on = 0;
    for job in jobs {
        let recipe = &job.recipe;
        let shared = |(first, _): &(&Recipe, Option<Preview>)| {
            first.data == recipe.data && first.tokenizer == recipe.tokenizer
        };
        let index = data.iter().position(shared).unwrap_or_else(|| {
            data.push((recipe, faults.heed(Preview::of(recipe).map_err(Into::into))));
            data.len() - 1
        });
        let preview = data[index].1.as_ref();

        let arm = Recipe {
            seed: 0,
            ..recipe.clone()
        };
        if !arms.contains(&arm) {
            let parameters = preview.and_then(|preview| {
                let tried = with_backend!(backend, common.device, |B, device| {
                    preview.parameters::<Autodiff<B>>(recipe, &job.file, &device)
                });
                faults.heed(tried.map_err(Into::into).and_then(|tried| Ok(tried?)))
            });
            settings.push(setting(recipe, preview, parameters));
            arms.push(arm);
        }

        let tokenizer = preview.and_then(Preview::tokenizer_sha256);
        let state = match &job.before {
            Ok(None) => {
                to_begin += 1;
                "new".to_owned()
            }
            Ok(Some(_)) if job.is_finished() => "finished".to_owned(),
            Ok(Some(before)) => {
                to_go_on += 1;
                let at = before.resumes_at(backend.name(), tokenizer);
                faults.heed(at.map_err(Into::into)).map_or_else(refused, |step| {
                    format!("to resume at {step} of {}", before.info().steps)
                })
            }
            Err(error) => {
                faults.heed::<()>(Err(anyhow::anyhow!("{error:#}")));
                refused()
            }
        };
        runs.push([
            recipe.folder_name(),
            recipe.name.clone(),
            recipe.seed.to_string(),
            state,
            job.folder.display().to_string(),
        ]);
    }
    if to_begin > 0 {
        faults.heed(writable(place(args)));
    }

    let tables = [runs, settings, files(&data)].map(|table| table.to_text());
    Output::stdout().write(tables.join("\n").as_bytes())?;
    if let Some(last) = faults.errors.pop() {
        faults.errors.iter().for_each(print_error);
        return Err(last);
    }
    if !common.quiet {
        let again = match args.resume.is_none() && to_begin < jobs.len() {
            true => format!(" with --resume {}", place(args).display()),
            false => String::new(),
        };
        eprintln!(
            "`wqk train`{again} would begin {to_begin} of {} runs and go on with {to_go_on}.",
            jobs.len()
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// What is wrong, each said once.
#[derive(Default)]
struct Faults {
    errors: Vec<anyhow::Error>,
    said: HashSet<String>,
}

impl Faults {
    fn heed<T>(&mut self, result: anyhow::Result<T>) -> Option<T> {
        match result {
            Ok(value) => return Some(value),
            Err(error) => {
                if self.said.insert(format!("{error:#}")) {
                    self.errors.push(error);
                }
            }
        }
        None
    }
}

fn refused() -> String {
    "cannot go on".to_owned()
}

fn columns<const A: usize, const B: usize, const C: usize>(
    left: [&str; A],
    right: [&str; B],
    last: [&str; C],
) -> Table {
    let named = |names: &[&str], align| names.iter().map(|name| ((*name).to_owned(), align)).collect();
    let columns: [Vec<(String, Align)>; 3] = [
        named(&left, Align::Left),
        named(&right, Align::Right),
        named(&last, Align::Left),
    ];
    Table::new(columns.concat())
}

/// What the runs of an arm have in common.
fn setting(recipe: &Recipe, preview: Option<&Preview>, parameters: Option<u64>) -> [String; 8] {
    let train = &recipe.train;
    let images = preview.and_then(Preview::images);
    let config = recipe.config(images.unwrap_or(1));
    // Epochs of text become updates once it is tokenised.
    let in_updates = |updates: usize, epochs: Option<f64>| match epochs {
        Some(epochs) if images.is_none() => format!("{epochs} epochs"),
        _ => HumanCount(updates as u64).to_string(),
    };
    let parameters = match (parameters, preview) {
        (None, _) => "unknown".to_owned(),
        (Some(parameters), Some(preview)) if !preview.is_known() => {
            format!("at most {}", HumanCount(parameters))
        }
        (Some(parameters), _) => HumanCount(parameters).to_string(),
    };
    let of_update = (config.batch_size * config.accumulation) as u64;
    let update = match recipe.data.length() {
        Some(length) => format!(
            "{} sequences, {} tokens",
            HumanCount(of_update),
            HumanCount(of_update.saturating_mul(length as u64))
        ),
        None => format!("{} images", HumanCount(of_update)),
    };
    [
        recipe.name.clone(),
        recipe
            .objective
            .map_or("classification", |objective| objective.name())
            .to_owned(),
        recipe.init.name().to_owned(),
        parameters,
        format!("{} × {}", config.batch_size, config.accumulation),
        update,
        in_updates(config.steps, train.epochs),
        format!(
            "{:e} after {}, {}",
            config.learning_rate,
            in_updates(config.warmup_steps, train.warmup_epochs),
            config.decay.name()
        ),
    ]
}

/// The files of all data.
fn files(data: &[(&Recipe, Option<Preview>)]) -> Table {
    /// Files of one corpus that are listed.
    const LISTED: usize = 40;
    let mut table = columns(["data"], ["size"], []);
    for preview in data.iter().filter_map(|(_, preview)| preview.as_ref()) {
        let size = |bytes: u64| DecimalBytes(bytes).to_string();
        let (listed, others) = preview.files().split_at(preview.files().len().min(LISTED));
        for file in listed {
            let images = || format!("{} images", HumanCount(file.images.unwrap_or(0) as u64));
            table.push([
                file.path.display().to_string(),
                file.bytes.map_or_else(images, size),
            ]);
        }
        if !others.is_empty() {
            let bytes = others.iter().filter_map(|file| file.bytes).sum();
            table.push([format!("and {} more", others.len()), size(bytes)]);
        }
        if preview.files().is_empty() {
            table.push(["the text in the program", ""]);
        }
    }
    table
}

/// Whether a folder, or the nearest above it that is there, can be written to.
fn writable(folder: &Path) -> anyhow::Result<()> {
    let there = folder.ancestors().find(|folder| folder.exists());
    let there = there
        .filter(|there| *there != Path::new(""))
        .unwrap_or(Path::new("."));
    match tempfile::tempfile_in(there) {
        Ok(_) => Ok(()),
        Err(error) => anyhow::bail!(
            "{}: cannot be written ({error}): make it writable, or name another folder by --out",
            there.display()
        ),
    }
}
