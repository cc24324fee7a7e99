//! What a run says of itself.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::names;
use crate::data::ReadReport;
use crate::files;
use crate::plain::plain;
use crate::train::TrainError;
use crate::train::checkpoints::replace;
use crate::train::recipe::is_name;

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    /// It runs; or it was killed, which leaves no trace here.
    Running,
    /// It was stopped and can be resumed.
    Stopped,
    /// It ended by an error.
    Failed,
    /// All its updates are done.
    Finished,
}

/// `run.json`: what a run was made of, and how far it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunInfo {
    /// Version of the format of the folder, 1.
    pub format: u32,
    /// Name and version of the program.
    pub program: String,
    /// Name of the arm.
    pub arm: String,
    /// The seed.
    pub seed: u64,
    /// The backend.
    pub backend: String,
    /// Its device, as it names it.
    pub device: String,
    /// How many devices shared each update.
    pub devices: usize,
    /// Threads that the run could use on the CPU.
    pub threads: usize,
    /// SHA-256 of `recipe.toml`.
    pub recipe_sha256: String,
    /// SHA-256 of the data.
    pub data_sha256: String,
    /// What was read of each corpus of files, and what was passed over.
    #[serde(default)]
    pub data: Vec<ReadReport>,
    /// SHA-256 of the tokenizer, where there is one.
    pub tokenizer_sha256: Option<String>,
    /// Parameters of the model.
    pub parameters: u64,
    /// Updates of the whole run.
    pub steps: usize,
    /// How far it is.
    pub status: RunStatus,
    /// Updates done when this was written.
    pub step: usize,
    /// Seconds spent on them.
    pub seconds: f64,
    /// Seconds of these that were spent on scoring, since the run was last resumed.
    pub scoring_seconds: f64,
    /// Seconds of `seconds` that were spent on taking updates apart, since the run was last resumed.
    #[serde(default)]
    pub updates_seconds: f64,
    /// The steps from which it was resumed.
    pub resumed: Vec<usize>,
    /// What it failed of.
    pub error: Option<String>,
}

/// Refuses to go on with a run in other circumstances than those in which it began.
pub(in crate::train) fn check_same(
    folder: &Path,
    what: &str,
    before: &str,
    now: &str,
) -> Result<(), TrainError> {
    if before == now {
        return Ok(());
    }
    let problem = format!(
        "the run began with another {what}: {before}, now {now}: restore it, or begin a run in another folder"
    );
    Err(TrainError::folder(folder, problem))
}

impl RunInfo {
    /// The version of the format that is written.
    pub const FORMAT: u32 = 1;

    /// Reads `run.json` in the folder of a run.
    ///
    /// # Errors
    /// [`TrainError::Folder`] where it is missing or is none.
    pub fn read(folder: &Path) -> Result<Self, TrainError> {
        let path = folder.join(names::INFO);
        let content = files::read(&path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => TrainError::folder(
                folder,
                format!(
                    "not the folder of a run, it has no {}: name one that `wqk train` has written",
                    names::INFO
                ),
            ),
            _ => TrainError::unreadable(&path, source),
        })?;
        let info: Self = serde_json::from_slice(&content).map_err(|error| {
            TrainError::folder(
                &path,
                format!("not the description of a run: {}", plain(&error.to_string())),
            )
        })?;
        if !is_name(&info.arm) {
            let problem = format!("the name of its arm is {:?}, which names no folder", info.arm);
            return Err(TrainError::folder(&path, problem));
        }
        if info.format != Self::FORMAT {
            let problem = format!("format {}, but this program reads {}", info.format, Self::FORMAT);
            return Err(TrainError::folder(&path, problem));
        }
        Ok(info)
    }

    /// Writes `run.json`, whole or not at all.
    ///
    /// # Errors
    /// [`TrainError::Log`] where the disk refuses.
    pub fn write(&self, folder: &Path) -> Result<(), TrainError> {
        let path = folder.join(names::INFO);
        let json = serde_json::to_vec_pretty(self).map_err(std::io::Error::from);
        json.and_then(|json| replace(&path, &json))
            .map_err(|source| TrainError::unwritable(&path, source))
    }
}
