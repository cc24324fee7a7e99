//! Which runs the command is about, and what is there of them.

use std::path::{Path, PathBuf};

use anyhow::bail;

use super::TrainArgs;
use crate::cli::Usage;
use crate::cli::common::Common;
use crate::train::recipe::Options;
use crate::train::{Recipe, RecipeFile, RunFolder, RunInfo, RunStatus};

/// One run of the command.
pub(super) struct Job {
    pub recipe: Recipe,
    /// The file of the recipe, for errors.
    pub file: PathBuf,
    pub folder: PathBuf,
    /// What the folder holds of this run, or why the run cannot go on in it.
    pub before: anyhow::Result<Option<RunFolder>>,
}

impl Job {
    /// Whether all of it is done.
    pub fn is_finished(&self) -> bool {
        let before = self.before.as_ref().ok().and_then(Option::as_ref);
        before.is_some_and(|before| before.info().status == RunStatus::Finished)
    }

    /// Whether nothing is there of it.
    pub fn is_new(&self) -> bool {
        matches!(self.before, Ok(None))
    }
}

/// Where the runs are, or will be.
pub(super) fn place(args: &TrainArgs) -> &Path {
    args.resume.as_deref().unwrap_or(&args.out)
}

/// All runs of the recipe, or all in the folder.
pub(super) fn plan(args: &TrainArgs, common: &Common) -> anyhow::Result<Vec<Job>> {
    let place = place(args);
    let Some(file) = &args.recipe else {
        if args.resume.is_none() {
            return Err(Usage("give a recipe, or --resume".to_owned()).into());
        }
        if common.seed_given {
            return Err(Usage("--seed cannot be changed in a run that is resumed".to_owned()).into());
        }
        let begun = RunFolder::find(place)?.into_iter();
        let job = |before: RunFolder| -> anyhow::Result<Job> {
            Ok(Job {
                recipe: before.recipe()?,
                file: before.recipe_file(),
                folder: before.path().to_owned(),
                before: Ok(Some(before)),
            })
        };
        return begun.map(job).collect();
    };
    let runs = recipe(file, args, common)?.runs()?;
    let is_run = args.resume.is_some() && RunInfo::read(place).is_ok();
    if is_run && runs.len() != 1 {
        bail!(
            "{} is the folder of one run, but the recipe has {}: choose by --arm and --seed, or leave the recipe out",
            place.display(),
            runs.len()
        );
    }
    let job = |recipe: Recipe| {
        let folder = match is_run {
            true => place.to_owned(),
            false => place.join(recipe.folder_name()),
        };
        Job {
            before: before(&folder, &recipe),
            recipe,
            file: file.clone(),
            folder,
        }
    };
    Ok(runs.into_iter().map(job).collect())
}

/// The recipe with what is laid over it on the command line.
fn recipe(file: &Path, args: &TrainArgs, common: &Common) -> anyhow::Result<RecipeFile> {
    let mut set = args.set.clone();
    if common.seed_given {
        set.push(("seeds".to_owned(), format!("[{}]", common.seed)));
    }
    let options = Options {
        small: args.small,
        set,
        arms: args.arm.clone(),
    };
    Ok(RecipeFile::load(file, &options)?)
}

/// What a folder holds of a run; refuses a run that began with another recipe.
fn before(folder: &Path, recipe: &Recipe) -> anyhow::Result<Option<RunFolder>> {
    if folder.symlink_metadata().is_err() {
        return Ok(None);
    }
    let before = RunFolder::open(folder)?;
    match before.recipe()?.difference(recipe) {
        None => Ok(Some(before)),
        Some((field, then, now)) => bail!(
            "{}: the run began with {field} = {then}, the recipe now has {now}: restore the field, or choose another \
             folder by --out",
            folder.display()
        ),
    }
}
