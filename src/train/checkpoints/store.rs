//! The folder of checkpoints: writing, choosing what to keep, reading.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use burn::module::{AutodiffModule, Module};
use burn::tensor::TensorData;
use burn::tensor::backend::{AutodiffBackend, Backend};
use serde::{Deserialize, Serialize};

use super::files::{sha256, sync_folder, write_synced};
use super::moments::{moments, set_moments};
use super::weights::{self, Named, parameters, set_parameters};
use crate::plain::plain;
use crate::train::config::TrainError;
use crate::train::state::{Best, TrainState};

const MODEL: &str = "model.safetensors";
const OPTIMISER: &str = "optimiser.safetensors";
const AVERAGE: &str = "average.safetensors";
const UPDATES: &str = "updates.safetensors";
const STATE: &str = "state.json";
/// The version of the format.
const FORMAT: u32 = 1;

/// When checkpoints are written, and which are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CheckpointConfig {
    /// Updates between checkpoints; 0 writes one at the end and one when the run is stopped.
    pub every: usize,
    /// How many of the latest are kept, at least 1.
    pub keep_last: usize,
    /// Whether one is written, and kept, at each evaluation with the lowest held-out loss so far.
    pub keep_best: bool,
}

impl Default for CheckpointConfig {
    fn default() -> Self {
        Self {
            every: 1000,
            keep_last: 2,
            keep_best: false,
        }
    }
}

/// What `state.json` of a checkpoint holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckpointInfo {
    /// Version of the format, 1.
    pub format: u32,
    /// Updates done: also the position in the data and of every generator.
    pub step: usize,
    /// Seconds spent on them.
    pub seconds: f64,
    /// The lowest held-out loss so far.
    pub best: Option<Best>,
    /// How long each log was, in bytes: what is after that is cut off when the run is resumed.
    pub logs: BTreeMap<String, u64>,
    /// SHA-256 of each file of the checkpoint.
    pub files: BTreeMap<String, String>,
}

/// The checkpoints of one run.
#[derive(Debug)]
pub struct Checkpoints {
    folder: PathBuf,
    config: CheckpointConfig,
}

impl Checkpoints {
    /// The checkpoints in `folder`, which need not be there yet.
    pub fn new(folder: impl Into<PathBuf>, config: CheckpointConfig) -> Self {
        Self {
            folder: folder.into(),
            config,
        }
    }

    /// Whether one is due at this moment of a run of `steps` updates.
    pub fn is_due<B: AutodiffBackend, M: AutodiffModule<B>>(
        &self,
        state: &TrainState<B, M>,
        steps: usize,
        improved: bool,
    ) -> bool {
        let CheckpointConfig { every, keep_best, .. } = self.config;
        state.step == steps || (every > 0 && state.step.is_multiple_of(every)) || (keep_best && improved)
    }

    /// Steps of all whole checkpoints, rising.
    ///
    /// # Errors
    /// Where the folder is there but cannot be read.
    pub fn steps(&self) -> Result<Vec<usize>, TrainError> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(TrainError::unreadable(&self.folder, source)),
        };
        let mut steps = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|source| TrainError::unreadable(&self.folder, source))?;
            steps.extend(entry.file_name().to_str().and_then(step_of));
        }
        steps.sort_unstable();
        Ok(steps)
    }

    /// Where the checkpoint of a step is, or would be.
    pub fn path(&self, step: usize) -> PathBuf {
        self.folder.join(format!("step-{step:09}"))
    }

    /// The latest checkpoint; none where there is none yet.
    ///
    /// # Errors
    /// [`TrainError::Checkpoint`] for one that is damaged, which names the one before it.
    pub fn latest(&self) -> Result<Option<Checkpoint>, TrainError> {
        let steps = self.steps()?;
        let Some((&last, before)) = steps.split_last() else {
            return Ok(None);
        };
        Checkpoint::open(&self.path(last))
            .map(Some)
            .map_err(|error| match error {
                TrainError::Checkpoint { path, problem, .. } => TrainError::Checkpoint {
                    path,
                    problem,
                    remedy: match before.last() {
                        Some(step) => {
                            format!(
                                "remove that folder to resume from the one before it, {}",
                                self.path(*step).display()
                            )
                        }
                        None => "there is no earlier one: remove that folder to begin anew".to_owned(),
                    },
                },
                other => other,
            })
    }

    /// Writes a checkpoint and then removes those that need not be kept. `logs` are the lengths that the logs
    /// have on the disk.
    ///
    /// # Errors
    /// [`TrainError::Log`] where the disk refuses; earlier checkpoints are then untouched.
    pub fn save<B: AutodiffBackend, M: AutodiffModule<B>>(
        &self,
        state: &TrainState<B, M>,
        logs: BTreeMap<String, u64>,
    ) -> Result<(), TrainError> {
        self.save_with(state, logs, None)
    }

    /// The same with the state of a watcher of updates.
    pub(in crate::train) fn save_with<B: AutodiffBackend, M: AutodiffModule<B>>(
        &self,
        state: &TrainState<B, M>,
        logs: BTreeMap<String, u64>,
        updates: Option<Vec<Named>>,
    ) -> Result<(), TrainError> {
        let target = self.path(state.step);
        if !target.exists() {
            let failed = |source| TrainError::unwritable(&target, source);
            fs::create_dir_all(&self.folder).map_err(failed)?;
            let draft = tempfile::Builder::new()
                .prefix(".draft-")
                .tempdir_in(&self.folder)
                .map_err(failed)?;
            write(draft.path(), state, logs, updates).map_err(failed)?;
            fs::rename(draft.keep(), &target).map_err(failed)?;
            sync_folder(&self.folder).map_err(failed)?;
        }
        self.prune(state.best)
    }

    /// Removes what is neither among the last nor the best, and drafts that were never finished.
    fn prune(&self, best: Option<Best>) -> Result<(), TrainError> {
        let steps = self.steps()?;
        let old = steps.len().saturating_sub(self.config.keep_last.max(1));
        for &step in &steps[..old] {
            let is_best = self.config.keep_best && best.is_some_and(|best| best.step == step);
            if !is_best {
                let path = self.path(step);
                fs::remove_dir_all(&path).map_err(|source| TrainError::unwritable(&path, source))?;
            }
        }
        Ok(())
    }

    /// Removes what a run that was killed has left half-written.
    ///
    /// # Errors
    /// Where the folder cannot be read or written.
    pub fn remove_drafts(&self) -> Result<(), TrainError> {
        let Ok(entries) = fs::read_dir(&self.folder) else {
            return Ok(());
        };
        for entry in entries.flatten() {
            if entry.file_name().to_string_lossy().starts_with(".draft-") {
                let path = entry.path();
                fs::remove_dir_all(&path).map_err(|source| TrainError::unwritable(&path, source))?;
            }
        }
        Ok(())
    }
}

fn write<B: AutodiffBackend, M: AutodiffModule<B>>(
    folder: &Path,
    state: &TrainState<B, M>,
    logs: BTreeMap<String, u64>,
    updates: Option<Vec<Named>>,
) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
    }
    let mut files = BTreeMap::new();
    let mut tensors = |name: &str, tensors: Vec<Named>| {
        let hash = write_synced(&folder.join(name), |sink| weights::write(sink, &tensors))?;
        files.insert(name.to_owned(), hash);
        Ok::<_, io::Error>(())
    };
    tensors(MODEL, parameters(&state.model))?;
    tensors(OPTIMISER, moments(&state.optimiser, &state.model))?;
    if let Some(average) = &state.average {
        tensors(AVERAGE, parameters(average.model()))?;
    }
    if let Some(updates) = updates {
        tensors(UPDATES, updates)?;
    }
    let info = CheckpointInfo {
        format: FORMAT,
        step: state.step,
        seconds: state.seconds,
        best: state.best,
        logs,
        files,
    };
    let json = serde_json::to_vec_pretty(&info)?;
    write_synced(&folder.join(STATE), |sink| sink.write_all(&json))?;
    sync_folder(folder)
}

/// The step in the name of a checkpoint.
fn step_of(name: &str) -> Option<usize> {
    name.strip_prefix("step-")?.parse().ok()
}

/// One checkpoint, whose state has been read.
#[derive(Debug)]
pub struct Checkpoint {
    path: PathBuf,
    info: CheckpointInfo,
}

impl Checkpoint {
    /// Reads what a checkpoint says of itself.
    ///
    /// # Errors
    /// [`TrainError::Checkpoint`] for one that is incomplete or damaged.
    pub fn open(path: &Path) -> Result<Self, TrainError> {
        let problem = |problem: String| damaged(path, problem);
        let content =
            crate::files::read(&path.join(STATE)).map_err(|error| problem(format!("{STATE}: {error}")))?;
        let info: CheckpointInfo = serde_json::from_slice(&content)
            .map_err(|error| problem(format!("{STATE}: {}", plain(&error.to_string()))))?;
        if info.format != FORMAT {
            return Err(problem(format!(
                "its format is {}, this program reads {FORMAT}",
                info.format
            )));
        }
        let name = path.file_name().and_then(|name| name.to_str()).and_then(step_of);
        if name.is_some_and(|step| step != info.step) {
            return Err(problem(format!("{STATE} is of step {}", info.step)));
        }
        let checkpoint = Self {
            path: path.to_owned(),
            info,
        };
        for file in [MODEL, OPTIMISER] {
            checkpoint.content(file)?;
        }
        for file in [AVERAGE, UPDATES] {
            if checkpoint.info.files.contains_key(file) {
                checkpoint.content(file)?;
            }
        }
        Ok(checkpoint)
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What `state.json` says.
    pub fn info(&self) -> &CheckpointInfo {
        &self.info
    }

    /// Puts the stored weights into a model of the same shape.
    ///
    /// # Errors
    /// [`TrainError::Checkpoint`] where a file is damaged or does not fit the model.
    pub fn model<B: Backend, M: Module<B>>(&self, model: M) -> Result<M, TrainError> {
        set_parameters(model, self.tensors(MODEL)?).map_err(|problem| self.misfit(MODEL, &problem))
    }

    /// Whether it holds an average of the weights.
    pub fn has_average(&self) -> bool {
        self.info.files.contains_key(AVERAGE)
    }

    /// Puts the stored average of the weights into a model of the same shape.
    ///
    /// # Errors
    /// As [`model`](Self::model), and where there is no average.
    pub fn averaged_model<B: Backend, M: Module<B>>(&self, model: M) -> Result<M, TrainError> {
        set_parameters(model, self.tensors(AVERAGE)?).map_err(|problem| self.misfit(AVERAGE, &problem))
    }

    /// Brings a state of the same model and settings to where the checkpoint was taken.
    ///
    /// # Errors
    /// As [`model`](Self::model).
    pub fn restore<B: AutodiffBackend, M: AutodiffModule<B>>(
        &self,
        state: TrainState<B, M>,
    ) -> Result<TrainState<B, M>, TrainError> {
        let model = self.model(state.model)?;
        let optimiser = set_moments(state.optimiser, &model, self.tensors(OPTIMISER)?)
            .map_err(|problem| self.misfit(OPTIMISER, &problem))?;
        let mut average = state.average;
        if let Some(average) = &mut average {
            average.set_model(self.averaged_model(average.model().clone())?);
        }
        Ok(TrainState {
            model,
            average,
            optimiser,
            step: self.info.step,
            seconds: self.info.seconds,
            best: self.info.best,
        })
    }

    /// Hands the stored state of a watcher of updates to what restores it.
    pub(in crate::train) fn restore_updates(
        &self,
        restore: impl FnOnce(BTreeMap<String, TensorData>) -> Result<(), String>,
    ) -> Result<(), TrainError> {
        restore(self.tensors(UPDATES)?).map_err(|problem| self.misfit(UPDATES, &problem))
    }

    fn tensors(&self, file: &str) -> Result<BTreeMap<String, TensorData>, TrainError> {
        weights::read(&self.content(file)?).map_err(|problem| self.misfit(file, &problem))
    }

    /// The content of a file, which is what was written.
    fn content(&self, file: &str) -> Result<Vec<u8>, TrainError> {
        let content = crate::files::read(&self.path.join(file))
            .map_err(|error| self.misfit(file, &error.to_string()))?;
        if self.info.files.get(file) != Some(&sha256(&content)) {
            return Err(self.misfit(file, "its content is not what was written (SHA-256)"));
        }
        Ok(content)
    }

    fn misfit(&self, file: &str, problem: &str) -> TrainError {
        damaged(&self.path, format!("{file}: {problem}"))
    }
}

fn damaged(path: &Path, problem: String) -> TrainError {
    TrainError::Checkpoint {
        path: path.to_owned(),
        problem,
        remedy: "resume from another checkpoint".to_owned(),
    }
}
