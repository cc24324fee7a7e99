//! The logs of a run: `steps.csv`, `scores.csv` and `log.jsonl` in one folder, row by row as it goes.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use burn::module::AutodiffModule;
use burn::tensor::backend::AutodiffBackend;
use serde::Serialize;

use super::config::TrainError;
use super::observer::{Event, Observer, ScoreRow, ScoreWatch, StepRow};
use crate::attention::HasAttention;

/// Writes every event of a run to disk, and scores the layers on the way.
///
/// `steps.csv` has a row for each update, `scores.csv` one for each layer of each scoring, `log.jsonl` all
/// events in their order, one JSON object a line, told apart by their field `event`. Files are flushed at
/// each scoring and at the end, so that what a killed run leaves is whole lines up to then.
#[derive(Debug)]
pub struct RunLog<B> {
    steps: Table,
    scores: Table,
    events: Lines,
    watch: ScoreWatch<B>,
}

impl<B: AutodiffBackend> RunLog<B> {
    /// Opens the logs in `folder`, which is made if it is missing.
    ///
    /// # Errors
    /// [`TrainError::Log`] with the path that cannot be written, also where logs are there already: they
    /// are never overwritten.
    pub fn create(folder: &Path, watch: ScoreWatch<B>) -> Result<Self, TrainError> {
        std::fs::create_dir_all(folder).map_err(|source| cannot(folder, source))?;
        Ok(Self {
            steps: Table::create(folder.join("steps.csv"))?,
            scores: Table::create(folder.join("scores.csv"))?,
            events: Lines::create(folder.join("log.jsonl"))?,
            watch,
        })
    }

    /// The watcher that scores the layers.
    pub fn scores(&self) -> &ScoreWatch<B> {
        &self.watch
    }

    fn flush(&mut self) -> Result<(), TrainError> {
        self.steps.flush()?;
        self.scores.flush()?;
        self.events.flush()
    }
}

/// A line of `log.jsonl`.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Line<'a> {
    Start { steps: usize },
    Step(&'a StepRow),
    Evaluated { step: usize, loss: f64 },
    Score(&'a ScoreRow),
}

/// A row of `scores.csv`.
#[derive(Serialize)]
struct FlatScore {
    step: usize,
    layer: usize,
    symmetry: Option<f64>,
    directionality_excess: f64,
    directionality_definition: f64,
    gamma: f64,
}

impl<B, M> Observer<M> for RunLog<B>
where
    B: AutodiffBackend,
    M: AutodiffModule<B>,
    M::InnerModule: HasAttention<B::InnerBackend>,
{
    fn observe(&mut self, event: &Event<'_, M>) -> Result<(), TrainError> {
        match event {
            Event::Start { steps, .. } => self.events.write(&Line::Start { steps: *steps })?,
            Event::Step { row, .. } => {
                self.steps.write(row)?;
                self.events.write(&Line::Step(row))?;
            }
            Event::Evaluated { step, loss } => {
                self.events.write(&Line::Evaluated {
                    step: *step,
                    loss: *loss,
                })?;
                self.flush()?;
            }
        }
        let before = self.watch.rows().len();
        self.watch.observe(event)?;
        let new = &self.watch.rows()[before..];
        for row in new {
            self.scores.write(&FlatScore {
                step: row.step,
                layer: row.layer,
                symmetry: row.scores.symmetry,
                directionality_excess: row.scores.directionality.excess,
                directionality_definition: row.scores.directionality.definition,
                gamma: row.scores.gamma,
            })?;
            self.events.write(&Line::Score(row))?;
        }
        if new.is_empty() { Ok(()) } else { self.flush() }
    }
}

/// A CSV file with its path, for errors.
#[derive(Debug)]
struct Table {
    path: PathBuf,
    writer: csv::Writer<File>,
}

impl Table {
    fn create(path: PathBuf) -> Result<Self, TrainError> {
        let file = File::create_new(&path).map_err(|source| cannot(&path, source))?;
        Ok(Self {
            path,
            writer: csv::Writer::from_writer(file),
        })
    }

    fn write(&mut self, row: &impl Serialize) -> Result<(), TrainError> {
        self.writer
            .serialize(row)
            .map_err(|error| cannot(&self.path, std::io::Error::other(error)))
    }

    fn flush(&mut self) -> Result<(), TrainError> {
        self.writer.flush().map_err(|source| cannot(&self.path, source))
    }
}

/// A JSON-lines file with its path, for errors.
#[derive(Debug)]
struct Lines {
    path: PathBuf,
    writer: BufWriter<File>,
}

impl Lines {
    fn create(path: PathBuf) -> Result<Self, TrainError> {
        let file = File::create_new(&path).map_err(|source| cannot(&path, source))?;
        Ok(Self {
            path,
            writer: BufWriter::new(file),
        })
    }

    fn write(&mut self, line: &Line<'_>) -> Result<(), TrainError> {
        serde_json::to_writer(&mut self.writer, line)
            .map_err(std::io::Error::from)
            .and_then(|()| self.writer.write_all(b"\n"))
            .map_err(|source| cannot(&self.path, source))
    }

    fn flush(&mut self) -> Result<(), TrainError> {
        self.writer.flush().map_err(|source| cannot(&self.path, source))
    }
}

fn cannot(path: &Path, source: std::io::Error) -> TrainError {
    TrainError::Log {
        path: path.to_owned(),
        source,
    }
}
