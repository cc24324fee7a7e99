//! The logs of a run, row by row as it goes, and their resumption.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use burn::module::AutodiffModule;
use burn::tensor::backend::AutodiffBackend;
use serde::{Deserialize, Serialize};

use super::names;
use super::tensorboard::TensorBoard;
use crate::attention::HasAttention;
use crate::train::config::TrainError;
use crate::train::observer::{Event, HeldOutRow, Observer, ScoreRow, ScoreWatch, StepRow};
use crate::train::updates::UpdateRow;

/// Writes every event of a run to disk, and scores the layers on the way.
///
/// The files are those of the [folder of a run](super). They are flushed at each scoring and each evaluation, so
/// that what a killed run leaves is whole lines up to then.
#[derive(Debug)]
pub struct RunLog<B> {
    folder: PathBuf,
    /// How long the logs were at the checkpoint from which a run goes on.
    lengths: Option<BTreeMap<String, u64>>,
    steps: Table,
    held_out: Table,
    scores: Table,
    updates: Option<Table>,
    events: Lines,
    board: Option<TensorBoard>,
    watch: ScoreWatch<B>,
}

/// Refuses logs that are shorter than they were at a checkpoint.
pub(super) fn check_lengths(folder: &Path, lengths: &BTreeMap<String, u64>) -> Result<(), TrainError> {
    for (name, &length) in lengths {
        let path = folder.join(name);
        let have = std::fs::metadata(&path).map_or(0, |about| about.len());
        if have < length {
            let problem = format!(
                "it has {have} bytes, but had {length} at the checkpoint: restore it, or begin a run in another folder"
            );
            return Err(TrainError::folder(&path, problem));
        }
    }
    Ok(())
}

impl<B: AutodiffBackend> RunLog<B> {
    /// Opens new logs in `folder`, which is made if it is missing.
    ///
    /// # Errors
    /// [`TrainError::Log`] with the path that cannot be written, also where logs are there already: they
    /// are never overwritten.
    pub fn create(folder: &Path, watch: ScoreWatch<B>) -> Result<Self, TrainError> {
        std::fs::create_dir_all(folder).map_err(|source| TrainError::unwritable(folder, source))?;
        Self::open(folder, None, watch)
    }

    /// Opens logs where a run left them, and cuts off what came after `lengths`, which [`sync`](Self::sync) gave;
    /// those that it does not name become empty.
    ///
    /// # Errors
    /// [`TrainError::Log`] with the path that cannot be written, [`TrainError::Folder`] with one that is shorter
    /// than it was.
    pub fn resume(
        folder: &Path,
        lengths: &BTreeMap<String, u64>,
        watch: ScoreWatch<B>,
    ) -> Result<Self, TrainError> {
        check_lengths(folder, lengths)?;
        Self::open(folder, Some(lengths.clone()), watch)
    }

    fn open(
        folder: &Path,
        lengths: Option<BTreeMap<String, u64>>,
        watch: ScoreWatch<B>,
    ) -> Result<Self, TrainError> {
        let table = |name: &str| Table::new(folder.join(name), lengths.as_ref());
        Ok(Self {
            folder: folder.to_owned(),
            steps: table(names::STEPS)?,
            held_out: table(names::HELD_OUT)?,
            scores: table(names::SCORES)?,
            updates: None,
            events: Lines::new(folder.join(names::EVENTS), lengths.as_ref())?,
            board: None,
            watch,
            lengths,
        })
    }

    /// Makes a log of updates too, for [`log_updates`](Self::log_updates).
    ///
    /// # Errors
    /// [`TrainError::Log`] where the file cannot be written.
    pub fn with_updates(mut self) -> Result<Self, TrainError> {
        let path = self.folder.join(names::UPDATES);
        self.updates = Some(Table::new(path, self.lengths.as_ref())?);
        Ok(self)
    }

    /// Writes all of it to an event file of TensorBoard too, in `folder`; `done` updates were done before.
    ///
    /// # Errors
    /// [`TrainError::Log`] where the file cannot be written.
    pub fn with_tensorboard(mut self, folder: &Path, done: usize) -> Result<Self, TrainError> {
        let board =
            TensorBoard::create(folder, done).map_err(|source| TrainError::unwritable(folder, source))?;
        self.board = Some(board);
        Ok(self)
    }

    /// The watcher that scores the layers.
    pub fn scores(&self) -> &ScoreWatch<B> {
        &self.watch
    }

    /// Writes what an [`UpdateWatch`](crate::train::UpdateWatch) has found of the latest update.
    ///
    /// # Errors
    /// [`TrainError::Log`] where the disk refuses.
    pub fn log_updates(&mut self, rows: &[UpdateRow]) -> Result<(), TrainError> {
        for row in rows {
            if let Some(updates) = &mut self.updates {
                updates.write(row)?;
            }
            self.events.write(&Line::Update(row))?;
        }
        to_board(&mut self.board, |board| board.updates(rows))?;
        if rows.is_empty() { Ok(()) } else { self.flush() }
    }

    /// Writes everything out.
    fn flush(&mut self) -> Result<(), TrainError> {
        let tables = [&mut self.steps, &mut self.held_out, &mut self.scores];
        for table in tables.into_iter().chain(&mut self.updates) {
            table.flush()?;
        }
        to_board(&mut self.board, TensorBoard::flush)?;
        self.events.flush()
    }

    /// Waits until the disk has everything, and returns how long each log is.
    ///
    /// # Errors
    /// [`TrainError::Log`] where the disk refuses.
    pub fn sync(&mut self) -> Result<BTreeMap<String, u64>, TrainError> {
        self.flush()?;
        let tables = [&self.steps, &self.held_out, &self.scores];
        let tables = tables.into_iter().chain(&self.updates);
        tables
            .map(|table| (&table.path, table.writer.get_ref()))
            .chain([(&self.events.path, self.events.writer.get_ref())])
            .map(|(path, file)| {
                let length = file
                    .sync_all()
                    .and_then(|()| file.metadata())
                    .map(|meta| meta.len());
                let name = path
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned();
                length
                    .map(|length| (name, length))
                    .map_err(|source| TrainError::unwritable(path, source))
            })
            .collect()
    }
}

/// A line of `log.jsonl`.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Line<'a> {
    Start { steps: usize },
    Step(&'a StepRow),
    Evaluated(&'a HeldOutRow),
    Score(&'a ScoreRow),
    Update(&'a UpdateRow),
}

/// A row of `scores.csv`: a layer, or one of its heads.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct FlatScore {
    pub step: usize,
    pub layer: usize,
    pub head: Option<usize>,
    pub symmetry: Option<f64>,
    pub directionality_excess: f64,
    pub directionality_definition: f64,
    pub gamma: f64,
    pub d_model: usize,
    pub n_heads: usize,
    pub n_kv_heads: usize,
    pub head_dim: usize,
}

impl FlatScore {
    /// The layer, and then its heads.
    fn rows(row: &ScoreRow) -> impl Iterator<Item = Self> + '_ {
        let scores = &row.scores;
        let layer = std::iter::once((None, scores.symmetry, scores.directionality));
        let heads = scores.heads.iter().flatten().enumerate();
        layer
            .chain(heads.map(|(head, scores)| (Some(head), scores.symmetry, scores.directionality)))
            .map(move |(head, symmetry, directionality)| Self {
                step: row.step,
                layer: row.layer,
                head,
                symmetry,
                directionality_excess: directionality.excess,
                directionality_definition: directionality.definition,
                gamma: scores.gamma,
                d_model: scores.d_model,
                n_heads: scores.n_heads,
                n_kv_heads: scores.n_kv_heads,
                head_dim: scores.head_dim,
            })
    }
}

impl<B, M> Observer<M> for RunLog<B>
where
    B: AutodiffBackend,
    M: AutodiffModule<B>,
    M::InnerModule: HasAttention<B::InnerBackend>,
{
    fn observe(&mut self, event: &Event<'_, M>) -> Result<(), TrainError> {
        match event {
            Event::Start { steps, done: 0, .. } => self.events.write(&Line::Start { steps: *steps })?,
            Event::Start { .. } => {}
            Event::Step { row, .. } => {
                self.steps.write(row)?;
                self.events.write(&Line::Step(row))?;
                to_board(&mut self.board, |board| board.step(row))?;
            }
            Event::Evaluated { row } => {
                self.held_out.write(row)?;
                self.events.write(&Line::Evaluated(row))?;
                to_board(&mut self.board, |board| board.evaluation(row))?;
                self.flush()?;
            }
        }
        let before = self.watch.rows().len();
        self.watch.observe(event)?;
        let new = &self.watch.rows()[before..];
        for row in new {
            for flat in FlatScore::rows(row) {
                self.scores.write(&flat)?;
            }
            self.events.write(&Line::Score(row))?;
        }
        to_board(&mut self.board, |board| board.scores(new))?;
        if new.is_empty() { Ok(()) } else { self.flush() }
    }
}

/// Writes to the event file, where there is one.
fn to_board(
    board: &mut Option<TensorBoard>,
    write: impl Fn(&mut TensorBoard) -> std::io::Result<()>,
) -> Result<(), TrainError> {
    match board {
        Some(board) => write(board).map_err(|source| TrainError::unwritable(board.path(), source)),
        None => Ok(()),
    }
}

/// Makes a log, or opens it where a run left it and cuts off what came after.
fn open(path: &Path, lengths: Option<&BTreeMap<String, u64>>) -> std::io::Result<File> {
    let Some(lengths) = lengths else {
        return File::create_new(path);
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let length = lengths.get(name.as_ref()).copied().unwrap_or(0);
    let mut file = OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(false)
        .open(path)?;
    file.set_len(length)?;
    file.seek(SeekFrom::End(0))?;
    Ok(file)
}

/// A CSV file with its path, for errors.
#[derive(Debug)]
struct Table {
    path: PathBuf,
    writer: csv::Writer<File>,
}

impl Table {
    fn new(path: PathBuf, lengths: Option<&BTreeMap<String, u64>>) -> Result<Self, TrainError> {
        let failed = |source| TrainError::unwritable(&path, source);
        let file = open(&path, lengths).map_err(failed)?;
        let is_new = file.metadata().map_err(failed)?.len() == 0;
        let writer = csv::WriterBuilder::new().has_headers(is_new).from_writer(file);
        Ok(Self { path, writer })
    }

    fn write(&mut self, row: &impl Serialize) -> Result<(), TrainError> {
        self.writer.serialize(row).map_err(|error| {
            let source = match error.into_kind() {
                csv::ErrorKind::Io(source) => source,
                other => std::io::Error::other(format!("{other:?}")),
            };
            TrainError::unwritable(&self.path, source)
        })
    }

    fn flush(&mut self) -> Result<(), TrainError> {
        self.writer
            .flush()
            .map_err(|source| TrainError::unwritable(&self.path, source))
    }
}

/// A JSON-lines file with its path, for errors.
#[derive(Debug)]
struct Lines {
    path: PathBuf,
    writer: BufWriter<File>,
}

impl Lines {
    fn new(path: PathBuf, lengths: Option<&BTreeMap<String, u64>>) -> Result<Self, TrainError> {
        let file = open(&path, lengths).map_err(|source| TrainError::unwritable(&path, source))?;
        Ok(Self {
            path,
            writer: BufWriter::new(file),
        })
    }

    fn write(&mut self, line: &Line<'_>) -> Result<(), TrainError> {
        serde_json::to_writer(&mut self.writer, line)
            .map_err(std::io::Error::from)
            .and_then(|()| self.writer.write_all(b"\n"))
            .map_err(|source| TrainError::unwritable(&self.path, source))
    }

    fn flush(&mut self) -> Result<(), TrainError> {
        self.writer
            .flush()
            .map_err(|source| TrainError::unwritable(&self.path, source))
    }
}
