//! Runs that belong together: several arms, each over the same seeds, side by side.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use burn::tensor::Device;
use burn::tensor::backend::AutodiffBackend;
use serde::{Deserialize, Serialize};

use super::config::{TrainConfig, TrainError};
use super::fit::fit;
use super::launch::scored;
use super::observer::{Event, HeldOutRow, Observer, ScoreRow, ScoreWatch, StepRow};
use super::task::{TextData, TextTask};
use super::updates::{UpdateRow, UpdateWatch};
use crate::model::{TextTransformer, TextTransformerConfig};
use crate::objective::ObjectiveMode;

/// One side of a comparison.
#[derive(Debug, Clone)]
pub struct Arm {
    /// How the reports call it, such as `encoder`.
    pub name: String,
    /// What it is trained for.
    pub objective: ObjectiveMode,
    /// What it is made of.
    pub model: TextTransformerConfig,
}

/// What came of one run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Run {
    /// Name of the arm.
    pub arm: String,
    /// The seed of weights, data order, corruption and dropout.
    pub seed: u64,
    /// Every update.
    pub steps: Vec<StepRow>,
    /// Every evaluation on held-out data.
    pub held_out: Vec<HeldOutRow>,
    /// Scores of every layer over the run.
    pub scores: Vec<ScoreRow>,
    /// Every layer of every update that was taken apart.
    #[serde(default)]
    pub updates: Vec<UpdateRow>,
    /// Seconds that the run took.
    pub seconds: f64,
    /// Seconds of these that were spent on scoring.
    pub scoring_seconds: f64,
}

/// What the watcher of an experiment hears, from any of its threads.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum RunEvent {
    /// A run begins, or goes on.
    Started {
        /// Index of the run: arms in order, within an arm the seeds in order.
        run: usize,
        /// Updates done before.
        done: usize,
    },
    /// A run did an update.
    Step {
        /// Index of the run: arms in order, within an arm the seeds in order.
        run: usize,
        /// The update.
        row: StepRow,
    },
    /// A run was evaluated on held-out text.
    Evaluated {
        /// Index of the run.
        run: usize,
        /// What came of it.
        row: HeldOutRow,
    },
    /// A run scored its layers.
    Scored {
        /// Index of the run.
        run: usize,
        /// Updates done.
        step: usize,
        /// Median symmetry over layers; absent where all are zero matrices.
        symmetry: Option<f64>,
        /// Median directionality over layers, variant `Excess`.
        directionality: Option<f64>,
    },
    /// A run is complete.
    Finished {
        /// Index of the run.
        run: usize,
    },
}

/// Several arms over the same seeds, data and settings.
///
/// Runs with the same seed start from the same weights wherever their models have the same shape, and see
/// the same sequences in the same order.
#[derive(Debug, Clone)]
pub struct Experiment<'a> {
    /// The arms.
    pub arms: Vec<Arm>,
    /// The seeds, each run once for every arm.
    pub seeds: Vec<u64>,
    /// The settings that all runs share; their own seed is replaced by each of `seeds`.
    pub train: TrainConfig,
    /// Updates between scorings.
    pub score_every: usize,
    /// Threshold factor γ of the directionality.
    pub gamma: f64,
    /// Whether heads are scored too.
    pub per_head: bool,
    /// Updates between those that an [`UpdateWatch`] takes apart; 0 takes none.
    pub updates_every: usize,
    /// The text.
    pub data: TextData<'a>,
    /// Runs that go on at the same time.
    pub side_by_side: usize,
    /// Threads of each run.
    pub threads: usize,
}

impl Experiment<'_> {
    /// Arm and seed of every run, in the order in which [`run`](Self::run) returns them.
    pub fn runs(&self) -> Vec<(&Arm, u64)> {
        self.arms
            .iter()
            .flat_map(|arm| self.seeds.iter().map(move |&seed| (arm, seed)))
            .collect()
    }

    /// Trains every arm with every seed.
    ///
    /// `watch` is called from the threads of the runs. Results do not depend on how many of them go side
    /// by side.
    ///
    /// # Errors
    /// The first failure of any run; the others are stopped.
    pub fn run<B: AutodiffBackend>(
        &self,
        device: &Device<B>,
        watch: &(dyn Fn(RunEvent) + Sync),
    ) -> Result<Vec<Run>, TrainError> {
        let runs = self.runs();
        let stop = AtomicBool::new(false);
        let results = side_by_side(runs.len(), self.side_by_side, |index| {
            let (arm, seed) = runs[index];
            if stop.load(Ordering::Relaxed) {
                return Err(TrainError::Stopped { step: 0 });
            }
            let watcher = Forward::<B> {
                run: index,
                watch,
                stop: &stop,
                score: self.watch(),
            };
            let result = in_pool(self.threads, || self.one(arm, seed, watcher, device));
            match result {
                Ok(_) => watch(RunEvent::Finished { run: index }),
                Err(_) => stop.store(true, Ordering::Relaxed),
            }
            result
        });
        let mut done = Vec::with_capacity(runs.len());
        let mut stopped = None;
        for result in results {
            match result {
                Ok(run) => done.push(run),
                // The cause comes before the stops that it led to.
                Err(error @ TrainError::Stopped { .. }) => stopped = stopped.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        stopped.map_or(Ok(done), Err)
    }

    fn watch<B: AutodiffBackend>(&self) -> ScoreWatch<B> {
        ScoreWatch::new(self.score_every, self.gamma, self.per_head)
    }

    fn one<B: AutodiffBackend>(
        &self,
        arm: &Arm,
        seed: u64,
        mut watcher: Forward<'_, B>,
        device: &Device<B>,
    ) -> Result<Run, TrainError> {
        let config = TrainConfig {
            seed,
            ..self.train.clone()
        };
        let model = arm.model.init::<B>(seed, device)?;
        let task = TextTask::<B>::new(arm.objective, self.data, &config)?;
        let mut record = Record::default();
        let mut updates =
            (self.updates_every > 0).then(|| UpdateWatch::new(task.clone(), self.updates_every));
        let mut observers: Vec<&mut dyn Observer<_>> = vec![&mut record, &mut watcher];
        observers.extend(updates.as_mut().map(|watch| watch as &mut dyn Observer<_>));
        fit::<B, _>(model, &task, &config, &mut observers)?;
        let scoring_seconds = watcher.score.spent().as_secs_f64();
        Ok(Run {
            arm: arm.name.clone(),
            seed,
            seconds: record.steps.last().map_or(0.0, |row| row.seconds),
            steps: record.steps,
            held_out: record.held_out,
            scores: watcher.score.into_rows(),
            updates: updates.map_or(Vec::new(), UpdateWatch::into_rows),
            scoring_seconds,
        })
    }
}

/// Does `n` jobs, some at a time, and returns what came of them in their order.
pub fn side_by_side<T: Send>(n: usize, at_once: usize, job: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, T)>> = Mutex::new(Vec::with_capacity(n));
    std::thread::scope(|scope| {
        for _ in 0..at_once.clamp(1, n.max(1)) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= n {
                        break;
                    }
                    let result = job(index);
                    lock(&results).push((index, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Runs a task in a thread pool of its own, so that runs side by side do not share their threads.
pub fn in_pool<T: Send>(threads: usize, task: impl FnOnce() -> T + Send) -> T {
    match rayon::ThreadPoolBuilder::new()
        .num_threads(threads.max(1))
        .build()
    {
        Ok(pool) => pool.install(task),
        // No thread to be had: the run goes on in this one.
        Err(_) => task(),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[derive(Default)]
struct Record {
    steps: Vec<StepRow>,
    held_out: Vec<HeldOutRow>,
}

impl<M> Observer<M> for Record {
    fn observe(&mut self, event: &Event<'_, M>) -> Result<(), TrainError> {
        match event {
            Event::Step { row, .. } => self.steps.push(*row),
            Event::Evaluated { row } => self.held_out.push(*row),
            Event::Start { .. } => {}
        }
        Ok(())
    }
}

/// Scores a run and passes on what happens in it.
struct Forward<'a, B> {
    run: usize,
    watch: &'a (dyn Fn(RunEvent) + Sync),
    stop: &'a AtomicBool,
    score: ScoreWatch<B>,
}

impl<B: AutodiffBackend> Observer<TextTransformer<B>> for Forward<'_, B> {
    fn observe(&mut self, event: &Event<'_, TextTransformer<B>>) -> Result<(), TrainError> {
        let run = self.run;
        let before = self.score.rows().len();
        self.score.observe(event)?;
        if let Some(event) = scored(run, &self.score.rows()[before..]) {
            (self.watch)(event);
        }
        match event {
            Event::Step { row, .. } => {
                (self.watch)(RunEvent::Step { run, row: *row });
                if self.stop.load(Ordering::Relaxed) {
                    return Err(TrainError::Stopped { step: row.step });
                }
            }
            Event::Evaluated { row } => (self.watch)(RunEvent::Evaluated { run, row: *row }),
            Event::Start { done, .. } => (self.watch)(RunEvent::Started { run, done: *done }),
        }
        Ok(())
    }
}
