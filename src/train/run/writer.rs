//! Writing the folder of a run while it trains.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use burn::module::AutodiffModule;
use burn::tensor::backend::AutodiffBackend;

use super::folder::RunFolder;
use super::info::{RunInfo, RunStatus};
use super::log::RunLog;
use super::names;
use crate::attention::HasAttention;
use crate::files;
use crate::train::TrainError;
use crate::train::checkpoints::{
    Checkpoint, CheckpointConfig, Checkpoints, DRAFT, Named, folder_of, replace, sync_folder,
};
use crate::train::fit::Keeper;
use crate::train::observer::{Event, Observer, ScoreWatch};
use crate::train::state::TrainState;
use crate::train::updates::UpdateRow;

/// A wish to stop, which any thread may have and runs heed after their next update.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Asks all runs that hold this to stop.
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was asked.
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What is written once, when the folder is made.
#[derive(Debug, Clone, Copy)]
pub struct NewRun<'a> {
    /// `recipe.toml`.
    pub recipe: &'a str,
    /// What else the run is known by.
    pub files: RunFiles<'a>,
}

/// What a run knows of its data, beside the recipe.
#[derive(Debug, Clone, Copy, Default)]
pub struct RunFiles<'a> {
    /// `tokenizer.json`, where the run is on text.
    pub tokenizer: Option<&'a str>,
    /// `images.json`, where it is on images.
    pub images: Option<&'a str>,
}

impl<'a> RunFiles<'a> {
    fn named(self) -> impl Iterator<Item = (&'static str, &'a str)> {
        let files = [(names::TOKENIZER, self.tokenizer), (names::IMAGES, self.images)];
        files
            .into_iter()
            .filter_map(|(name, content)| Some((name, content?)))
    }
}

/// The folder of a run, for writing: logs, scores, checkpoints, and how far it is.
///
/// Logs are on the disk before the checkpoint that counts on them. The folder is locked against a second writer
/// for as long as this lives.
#[derive(Debug)]
pub struct RunWriter<B> {
    folder: PathBuf,
    info: RunInfo,
    log: RunLog<B>,
    checkpoints: Checkpoints,
    stop: Stop,
    _lock: File,
}

impl<B: AutodiffBackend> RunWriter<B> {
    /// Makes the folder of a new run. It appears whole, with recipe and `run.json`.
    ///
    /// # Errors
    /// [`TrainError::Folder`] where it exists, [`TrainError::Log`] where it cannot be written.
    pub fn create(
        folder: &Path,
        new: NewRun<'_>,
        info: RunInfo,
        config: CheckpointConfig,
        watch: ScoreWatch<B>,
        stop: &Stop,
    ) -> Result<Self, TrainError> {
        if folder.symlink_metadata().is_ok() {
            return Err(TrainError::folder(
                folder,
                "it exists: go on with it by `--resume`, or name another folder",
            ));
        }
        let failed = |source| TrainError::unwritable(folder, source);
        let parent = folder_of(folder);
        fs::create_dir_all(parent).map_err(failed)?;
        // One name for each run: what a kill has left of it is taken away by the next try.
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let draft = parent.join(format!(".draft-{name}"));
        if draft.exists() {
            fs::remove_dir_all(&draft).map_err(failed)?;
        }
        fs::create_dir(&draft).map_err(failed)?;
        fs::write(draft.join(names::RECIPE), new.recipe).map_err(failed)?;
        for (name, content) in new.files.named() {
            fs::write(draft.join(name), content).map_err(failed)?;
        }
        info.write(&draft)?;
        sync_folder(&draft).map_err(failed)?;
        fs::rename(&draft, folder).map_err(failed)?;
        sync_folder(parent).map_err(failed)?;

        let lock = lock(folder)?;
        Ok(Self {
            folder: folder.to_owned(),
            info,
            log: RunLog::create(folder, watch)?,
            checkpoints: Checkpoints::new(folder.join(names::CHECKPOINTS), config),
            stop: stop.clone(),
            _lock: lock,
        })
    }

    /// Opens the folder of a run to go on with it, and cuts its logs back to the latest checkpoint, which is
    /// returned; without one the run begins anew. Files other than those that are `known`, a tokenizer by its hash in
    /// `run.json`, are written anew.
    ///
    /// # Errors
    /// [`TrainError::Folder`] where another process is at it or the checkpoints that it had are gone,
    /// [`TrainError::Checkpoint`] where the checkpoint is damaged, [`TrainError::Log`] where the folder cannot be
    /// written.
    pub fn resume(
        folder: &Path,
        known: RunFiles<'_>,
        mut info: RunInfo,
        config: CheckpointConfig,
        watch: ScoreWatch<B>,
        stop: &Stop,
    ) -> Result<(Self, Option<Checkpoint>), TrainError> {
        let lock = lock(folder)?;
        let checkpoints = Checkpoints::new(folder.join(names::CHECKPOINTS), config);
        let latest = resumed_from(folder, &checkpoints)?;
        for (name, content) in known.named() {
            let path = folder.join(name);
            if files::read_to_string(&path).ok().as_deref() != Some(content) {
                replace(&path, content.as_bytes()).map_err(|source| TrainError::unwritable(&path, source))?;
            }
        }
        checkpoints.remove_drafts()?;
        remove_drafts(folder);
        let logs = latest.as_ref().map(|latest| latest.info().logs.clone());
        let logs = logs.unwrap_or_default();
        RunFolder::open(folder)?.check_logs(&logs)?;
        let log = RunLog::resume(folder, &logs, watch)?;
        let step = latest.as_ref().map_or(0, |latest| latest.info().step);
        info.resumed.push(step);
        // A run that was killed after its last update has none left that would say so.
        info.step = step;
        info.status = RunStatus::Running;
        info.error = None;
        info.write(folder)?;
        let writer = Self {
            folder: folder.to_owned(),
            info,
            log,
            checkpoints,
            stop: stop.clone(),
            _lock: lock,
        };
        Ok((writer, latest))
    }

    /// Writes an event file of TensorBoard too.
    ///
    /// # Errors
    /// [`TrainError::Log`] where it cannot be written.
    pub fn with_tensorboard(mut self) -> Result<Self, TrainError> {
        let done = self.info.resumed.last().copied().unwrap_or(0);
        self.log = self.log.with_tensorboard(&self.folder, done)?;
        Ok(self)
    }

    /// Makes a log of updates that were taken apart, for [`log_updates`](Self::log_updates).
    ///
    /// # Errors
    /// [`TrainError::Log`] where it cannot be written.
    pub fn with_updates(mut self) -> Result<Self, TrainError> {
        self.log = self.log.with_updates()?;
        Ok(self)
    }

    /// Logs what an [`UpdateWatch`](crate::train::UpdateWatch) has found of the latest update, and the time that it
    /// has taken so far.
    ///
    /// # Errors
    /// [`TrainError::Log`] where it cannot be written.
    pub fn log_updates(&mut self, rows: &[UpdateRow], spent: Duration) -> Result<(), TrainError> {
        self.info.updates_seconds = spent.as_secs_f64();
        self.log.log_updates(rows)
    }

    /// The watcher that scores the layers.
    pub fn scores(&self) -> &ScoreWatch<B> {
        self.log.scores()
    }

    /// What `run.json` says.
    pub fn info(&self) -> &RunInfo {
        &self.info
    }

    /// Writes down how the run ended.
    ///
    /// # Errors
    /// [`TrainError::Log`] where `run.json` cannot be written.
    pub fn finish(&mut self, error: Option<&TrainError>) -> Result<(), TrainError> {
        self.info.scoring_seconds = self.scores().spent().as_secs_f64();
        self.info.status = match error {
            None => RunStatus::Finished,
            Some(TrainError::Stopped { .. }) => RunStatus::Stopped,
            Some(_) => RunStatus::Failed,
        };
        self.info.error = match error {
            None | Some(TrainError::Stopped { .. }) => None,
            Some(error) => Some(error.to_string()),
        };
        self.info.write(&self.folder)
    }
}

/// Takes away the half-written `run.json` or `tokenizer.json` that a killed run has left.
fn remove_drafts(folder: &Path) {
    let drafts = fs::read_dir(folder).into_iter().flatten().flatten();
    for draft in drafts.filter(|entry| entry.file_name().to_string_lossy().starts_with(DRAFT)) {
        // What cannot be removed does no harm.
        let _ = fs::remove_file(draft.path());
    }
}

/// The checkpoint from which a run goes on; without one it begins anew.
///
/// # Errors
/// As [`RunWriter::resume`].
pub(super) fn resumed_from(
    folder: &Path,
    checkpoints: &Checkpoints,
) -> Result<Option<Checkpoint>, TrainError> {
    let latest = checkpoints.latest()?;
    let before = RunInfo::read(folder)?;
    // A run that failed may have done so before its first checkpoint; any other tells of those that it has.
    if latest.is_none() && before.step > 0 && before.status != RunStatus::Failed {
        let problem = format!(
            "run.json tells of update {}, but no checkpoint is there: restore it, or begin a run in another folder",
            before.step
        );
        return Err(TrainError::folder(&folder.join(names::CHECKPOINTS), problem));
    }
    Ok(latest)
}

fn lock(folder: &Path) -> Result<File, TrainError> {
    let path = folder.join(names::LOCK);
    let file = File::create(&path).map_err(|source| TrainError::unwritable(&path, source))?;
    try_lock(folder, &file)?;
    Ok(file)
}

/// Refuses a folder in which a run goes on.
pub(super) fn check_unlocked(folder: &Path) -> Result<(), TrainError> {
    match File::open(folder.join(names::LOCK)) {
        Ok(file) => try_lock(folder, &file),
        Err(_) => Ok(()),
    }
}

fn try_lock(folder: &Path, file: &File) -> Result<(), TrainError> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(TrainError::folder(
            folder,
            "another process is training in it: wait for it, or stop it",
        )),
        // A file system without locks: nothing to be had.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
    }
}

impl<B, M> Observer<M> for RunWriter<B>
where
    B: AutodiffBackend,
    M: AutodiffModule<B>,
    M::InnerModule: HasAttention<B::InnerBackend>,
{
    fn observe(&mut self, event: &Event<'_, M>) -> Result<(), TrainError> {
        self.log.observe(event)
    }
}

impl<B, M> Keeper<B, M> for RunWriter<B>
where
    B: AutodiffBackend,
    M: AutodiffModule<B>,
    M::InnerModule: HasAttention<B::InnerBackend>,
{
    fn keep(&mut self, state: &TrainState<B, M>, improved: bool) -> Result<(), TrainError> {
        self.keep_with(state, improved, || None)
    }
}

impl<B: AutodiffBackend> RunWriter<B> {
    /// As [`Keeper::keep`], with the state of a watcher of updates beside that of the run.
    pub(in crate::train) fn keep_with<M: AutodiffModule<B>>(
        &mut self,
        state: &TrainState<B, M>,
        improved: bool,
        updates: impl FnOnce() -> Option<Vec<Named>>,
    ) -> Result<(), TrainError> {
        let stop = self.stop.is_asked() && state.step < self.info.steps;
        self.info.step = state.step;
        self.info.seconds = state.seconds;
        if stop || self.checkpoints.is_due(state, self.info.steps, improved) {
            let logs = self.log.sync()?;
            self.checkpoints.save_with(state, logs, updates())?;
            self.info.scoring_seconds = self.scores().spent().as_secs_f64();
            self.info.write(&self.folder)?;
        }
        if stop {
            return Err(TrainError::Stopped { step: state.step });
        }
        Ok(())
    }
}
