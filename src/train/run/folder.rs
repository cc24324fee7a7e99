//! Reading the folder of a run.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};

use serde::de::{DeserializeOwned, IgnoredAny};

use super::images::ImageInfo;
use super::info::{RunInfo, check_same};
use super::log::{FlatScore, check_lengths};
use super::names;
use super::writer::{check_unlocked, resumed_from};
use crate::bilinear::{DirectionalityScores, HeadScores, LayerScores};
use crate::files;
use crate::plain::plain;
use crate::train::TrainError;
use crate::train::checkpoints::{Checkpoint, CheckpointConfig, Checkpoints, sha256};
use crate::train::experiment::Run;
use crate::train::observer::{HeldOutRow, ScoreRow, StepRow};
use crate::train::recipe::Recipe;
use crate::train::updates::UpdateRow;

/// The folder of a run, for reading.
///
/// Logs of a run that goes on, or was killed, may end in the middle of a line: that line is left out.
///
/// # Examples
/// ```no_run
/// use wqk::train::RunFolder;
///
/// let folder = RunFolder::open("runs/encoder-seed0")?;
/// println!("{}: {:?}", folder.info().arm, folder.info().status);
/// for row in folder.held_out()? {
///     println!("{:>8} {:.3}", row.step, row.final_loss());
/// }
/// let checkpoint = folder.checkpoints().latest()?;
/// # Ok::<(), wqk::train::TrainError>(())
/// ```
#[derive(Debug, Clone)]
pub struct RunFolder {
    path: PathBuf,
    info: RunInfo,
}

impl RunFolder {
    /// Opens the folder of a run.
    ///
    /// # Errors
    /// [`TrainError::Folder`] where it is none.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, TrainError> {
        let path = path.into();
        let info = RunInfo::read(&path)?;
        Ok(Self { path, info })
    }

    /// All runs in a folder: itself, if it is one, or else those right below it, by name.
    ///
    /// # Errors
    /// [`TrainError::Folder`] where it holds none.
    pub fn find(path: &Path) -> Result<Vec<Self>, TrainError> {
        if path.join(names::INFO).exists() {
            return Ok(vec![Self::open(path)?]);
        }
        let entries = std::fs::read_dir(path).map_err(|source| TrainError::unreadable(path, source))?;
        let mut below: Vec<PathBuf> = entries
            .flatten()
            .map(|entry| entry.path())
            // Those that begin with a dot are not whole yet.
            .filter(|path| {
                !path
                    .file_name()
                    .is_some_and(|name| name.to_string_lossy().starts_with('.'))
            })
            .filter(|path| path.join(names::INFO).exists())
            .collect();
        if below.is_empty() {
            let problem =
                "neither the folder of a run nor one of such folders: name one that `wqk train` has written";
            return Err(TrainError::folder(path, problem));
        }
        below.sort();
        below.into_iter().map(Self::open).collect()
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the run says of itself.
    pub fn info(&self) -> &RunInfo {
        &self.info
    }

    /// Where `recipe.toml` is.
    pub fn recipe_file(&self) -> PathBuf {
        self.path.join(names::RECIPE)
    }

    /// The recipe as it was run.
    ///
    /// # Errors
    /// [`TrainError::Folder`] where it cannot be read, [`TrainError::Recipe`] where it is none.
    pub fn recipe(&self) -> Result<Recipe, TrainError> {
        Recipe::from_toml(&self.recipe_text()?, &self.recipe_file())
    }

    /// `recipe.toml` as it was run.
    ///
    /// # Errors
    /// [`TrainError::Folder`] where it cannot be read.
    pub fn recipe_text(&self) -> Result<String, TrainError> {
        self.text(names::RECIPE)
    }

    /// Every update.
    ///
    /// # Errors
    /// [`TrainError::Folder`] with the file and line of what is no such row.
    pub fn steps(&self) -> Result<Vec<StepRow>, TrainError> {
        self.rows(names::STEPS)
    }

    /// Every evaluation on held-out data.
    ///
    /// # Errors
    /// As [`steps`](Self::steps).
    pub fn held_out(&self) -> Result<Vec<HeldOutRow>, TrainError> {
        self.rows(names::HELD_OUT)
    }

    /// Every score, with those of heads where they were asked for.
    ///
    /// # Errors
    /// As [`steps`](Self::steps).
    pub fn scores(&self) -> Result<Vec<ScoreRow>, TrainError> {
        let mut rows: Vec<ScoreRow> = Vec::new();
        for flat in self.rows::<FlatScore>(names::SCORES)? {
            let scores = HeadScores {
                symmetry: flat.symmetry,
                directionality: DirectionalityScores {
                    definition: flat.directionality_definition,
                    excess: flat.directionality_excess,
                },
            };
            match (flat.head, rows.last_mut()) {
                (Some(_), Some(layer)) => layer.scores.heads.get_or_insert_default().push(scores),
                _ => rows.push(ScoreRow {
                    step: flat.step,
                    layer: flat.layer,
                    scores: LayerScores {
                        d_model: flat.d_model,
                        n_heads: flat.n_heads,
                        n_kv_heads: flat.n_kv_heads,
                        head_dim: flat.head_dim,
                        gamma: flat.gamma,
                        symmetry: scores.symmetry,
                        directionality: scores.directionality,
                        heads: None,
                    },
                }),
            }
        }
        Ok(rows)
    }

    /// Every layer of every update that was taken apart; none where the recipe did not ask for it.
    ///
    /// # Errors
    /// As [`steps`](Self::steps).
    pub fn updates(&self) -> Result<Vec<UpdateRow>, TrainError> {
        match self.path.join(names::UPDATES).exists() {
            true => self.rows(names::UPDATES),
            false => Ok(Vec::new()),
        }
    }

    /// The whole run, as reports take it.
    ///
    /// # Errors
    /// As [`steps`](Self::steps).
    pub fn read(&self) -> Result<Run, TrainError> {
        let steps = self.steps()?;
        Ok(Run {
            arm: self.info.arm.clone(),
            seed: self.info.seed,
            held_out: self.held_out()?,
            scores: self.scores()?,
            updates: self.updates()?,
            seconds: steps.last().map_or(0.0, |row| row.seconds),
            scoring_seconds: self.info.scoring_seconds,
            steps,
        })
    }

    /// Its checkpoints, for reading.
    pub fn checkpoints(&self) -> Checkpoints {
        Checkpoints::new(self.path.join(names::CHECKPOINTS), CheckpointConfig::default())
    }

    /// A checkpoint by its step, or the latest.
    ///
    /// # Errors
    /// [`TrainError::Folder`] where there is none, [`TrainError::Checkpoint`] where it is damaged.
    pub fn checkpoint(&self, step: Option<usize>) -> Result<Checkpoint, TrainError> {
        let checkpoints = self.checkpoints();
        match step {
            Some(step) => {
                let steps = checkpoints.steps()?;
                if !steps.contains(&step) {
                    let there: Vec<String> = steps.iter().map(usize::to_string).collect();
                    let problem = match there.as_slice() {
                        [] => "the run has no checkpoint yet: let it run longer".to_owned(),
                        there => format!("no checkpoint of step {step}: choose of {}", there.join(", ")),
                    };
                    return Err(TrainError::folder(&self.path, problem));
                }
                Checkpoint::open(&checkpoints.path(step))
            }
            None => checkpoints.latest()?.ok_or_else(|| {
                TrainError::folder(&self.path, "the run has no checkpoint yet: let it run longer")
            }),
        }
    }

    /// The update after which the run would go on with a backend and, where it is known by its SHA-256, a tokenizer.
    ///
    /// # Errors
    /// What would keep it from going on: another process that is at it, another backend or tokenizer than it began
    /// with, a checkpoint that is damaged or gone, a log that is cut off.
    pub fn resumes_at(&self, backend: &str, tokenizer_sha256: Option<&str>) -> Result<usize, TrainError> {
        check_unlocked(&self.path)?;
        check_same(&self.path, "backend", &self.info.backend, backend)?;
        if let (Some(before), Some(now)) = (&self.info.tokenizer_sha256, tokenizer_sha256) {
            check_same(&self.path, "tokenizer (SHA-256)", before, now)?;
        }
        let Some(latest) = resumed_from(&self.path, &self.checkpoints())? else {
            return Ok(0);
        };
        self.check_logs(&latest.info().logs)?;
        Ok(latest.info().step)
    }

    /// What the run knows of its images; none where it is on text, or older than this was written down.
    ///
    /// # Errors
    /// [`TrainError::Folder`] where the file cannot be read.
    pub fn images(&self) -> Result<Option<ImageInfo>, TrainError> {
        let path = self.path.join(names::IMAGES);
        if !path.exists() {
            return Ok(None);
        }
        let text = self.text(names::IMAGES)?;
        serde_json::from_str(&text).map(Some).map_err(|error| {
            TrainError::folder(
                &path,
                format!(
                    "not what a run knows of its images: {}",
                    plain(&error.to_string())
                ),
            )
        })
    }

    /// The file of the tokenizer; none where the run is not on text.
    ///
    /// # Errors
    /// [`TrainError::Folder`] where it is not the one that the run was begun with.
    pub fn tokenizer(&self) -> Result<Option<PathBuf>, TrainError> {
        let path = self.path.join(names::TOKENIZER);
        if !path.exists() {
            return Ok(None);
        }
        let content = files::read(&path).map_err(|source| TrainError::unreadable(&path, source))?;
        match &self.info.tokenizer_sha256 {
            Some(begun) if *begun != sha256(&content) => Err(TrainError::folder(
                &path,
                "not the tokenizer that the run was begun with (SHA-256): `wqk train RECIPE --resume` with its recipe \
                 restores it",
            )),
            _ => Ok(Some(path)),
        }
    }

    /// Reads the logs as they were at a checkpoint, `lengths` of bytes, before a run goes on in them: damage that is
    /// found at the end would cost the run. What came after is cut off when it does, and may be half a line.
    ///
    /// # Errors
    /// [`TrainError::Folder`] with the file and line of what is damaged or cut off.
    pub(super) fn check_logs(&self, lengths: &BTreeMap<String, u64>) -> Result<(), TrainError> {
        check_lengths(&self.path, lengths)?;
        for (name, &length) in lengths {
            let text = self.text(name)?;
            let damaged = |error: &dyn Display| self.not_a_log(name, error);
            let text = usize::try_from(length)
                .ok()
                .and_then(|length| text.get(..length))
                .ok_or_else(|| damaged(&"the checkpoint ends within a character"))?;
            match name.as_str() {
                names::STEPS => drop(self.parse::<StepRow>(name, text)?),
                names::HELD_OUT => drop(self.parse::<HeldOutRow>(name, text)?),
                names::SCORES => drop(self.parse::<FlatScore>(name, text)?),
                names::UPDATES => drop(self.parse::<UpdateRow>(name, text)?),
                _ => {
                    for (i, line) in text.lines().enumerate() {
                        serde_json::from_str::<IgnoredAny>(line)
                            .map_err(|error| damaged(&format!("line {}: {error}", i + 1)))?;
                    }
                }
            }
        }
        Ok(())
    }

    fn text(&self, name: &str) -> Result<String, TrainError> {
        let path = self.path.join(name);
        files::read_to_string(&path).map_err(|source| TrainError::unreadable(&path, source))
    }

    fn rows<R: DeserializeOwned>(&self, name: &str) -> Result<Vec<R>, TrainError> {
        self.parse(name, &self.text(name)?)
    }

    /// The rows of whole lines.
    fn parse<R: DeserializeOwned>(&self, name: &str, text: &str) -> Result<Vec<R>, TrainError> {
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        csv::Reader::from_reader(whole.as_bytes())
            .deserialize()
            .collect::<Result<_, _>>()
            .map_err(|error| self.not_a_log(name, &error))
    }

    fn not_a_log(&self, name: &str, error: &dyn Display) -> TrainError {
        let problem = format!("not the log of a run: {error}: restore it, or begin a run in another folder");
        TrainError::folder(&self.path.join(name), problem)
    }
}
