//! From a recipe to a trained model in the folder of a run.

use std::path::Path;

use burn::module::{AutodiffModule, Module};
use burn::tensor::backend::{AutodiffBackend, Backend as _, Device as NumberedDevice, DeviceOps as _};
use burn::tensor::{Device, Tensor};

use super::checkpoints::{Checkpoint, sha256};
use super::config::{TrainConfig, TrainError};
use super::experiment::RunEvent;
use super::fit::{Keeper, fit_from};
use super::image_task::ImageTask;
use super::input::{ImageInput, Input, TextInput};
use super::observer::{Event, Observer, ScoreRow, ScoreWatch};
use super::recipe::Recipe;
use super::run::{NewRun, RunFiles, RunInfo, RunStatus, RunWriter, Stop, check_same};
use super::state::TrainState;
use super::task::{TextTask, TracedTask};
use super::updates::UpdateWatch;
use crate::attention::HasAttention;
use crate::backend::{Precision, lies_in_host_memory};
use crate::bilinear::Summary;
use crate::data::ReadReport;
use crate::data::vision::Augmentation;
use crate::model::size::{TRAINED, WEIGHT, check_memory};

/// Where and how a run is done, beside its recipe.
#[derive(Clone, Copy)]
pub struct Launch<'a> {
    /// The recipe of this run.
    pub recipe: &'a Recipe,
    /// The file that it came from, for errors.
    pub file: &'a Path,
    /// The folder of the run.
    pub folder: &'a Path,
    /// Whether the run goes on in that folder; otherwise the folder must not be there.
    pub resume: bool,
    /// The name of the backend.
    pub backend: &'a str,
    /// Threads that the run can use.
    pub threads: usize,
    /// Its number among the runs that `watch` hears of.
    pub index: usize,
    /// A wish to stop.
    pub stop: &'a Stop,
    /// Hears how the run goes, from its thread.
    pub watch: &'a (dyn Fn(RunEvent) + Sync),
}

impl Launch<'_> {
    /// Trains, to the end or until it is asked to stop, and returns what `run.json` says then.
    ///
    /// # Errors
    /// What is wrong with recipe, data or folder before the first update; [`TrainError::Stopped`] once a checkpoint
    /// is written, for a wish to stop; whatever ends the run. `run.json` says how it ended.
    pub fn run<B: AutodiffBackend>(&self, input: &Input, device: &Device<B>) -> Result<RunInfo, TrainError> {
        let config = self.recipe.config(input.len());
        match input {
            Input::Text(text) => self.text::<B>(text, &config, device),
            Input::Images(images) => self.images::<B>(images, &config, device),
        }
    }

    fn text<B: AutodiffBackend>(
        &self,
        input: &TextInput,
        config: &TrainConfig,
        device: &Device<B>,
    ) -> Result<RunInfo, TrainError> {
        let vocabulary = input.tokenizer().vocabulary().size;
        let model = self.recipe.text_model(vocabulary, self.file)?;
        check_size::<B>(model.n_parameters())?;
        let model = model
            .init::<B>(self.recipe.seed, device)?
            .with_precision(precision::<B>(self.recipe, self.file, device)?);
        let Some(objective) = self.recipe.objective else {
            return Err(TrainError::Recipe {
                file: self.file.to_owned(),
                field: "objective".to_owned(),
                problem: "not set: a run on text needs it".to_owned(),
            });
        };
        let task = TextTask::<B>::new(objective, input.data(), config)?;
        let tokenizer = input.tokenizer().to_json()?;
        let of_input = OfInput {
            sha256: input.sha256(),
            reports: input.reports(),
            files: RunFiles {
                tokenizer: Some(&tokenizer),
                images: None,
            },
        };
        self.train::<B, _>(model, &task, config, device, of_input)
    }

    fn images<B: AutodiffBackend>(
        &self,
        input: &ImageInput,
        config: &TrainConfig,
        device: &Device<B>,
    ) -> Result<RunInfo, TrainError> {
        let n_classes = input.data().train.classes().len();
        let model = self.recipe.vision_model(n_classes, self.file)?;
        let size = model.image_size;
        check_size::<B>(model.n_parameters())?;
        let model = model
            .init::<B>(self.recipe.seed, device)?
            .with_precision(precision::<B>(self.recipe, self.file, device)?);
        let augmentation = self.recipe.augmentation.unwrap_or_else(Augmentation::none);
        let task = ImageTask::new(input.data(), augmentation, size, config)?;
        let about = input.about().to_json();
        let of_input = OfInput {
            sha256: input.sha256(),
            reports: &[],
            files: RunFiles {
                tokenizer: None,
                images: Some(&about),
            },
        };
        self.train::<B, _>(model, &task, config, device, of_input)
    }

    fn train<B, T>(
        &self,
        model: T::Model,
        task: &T,
        config: &TrainConfig,
        device: &Device<B>,
        input: OfInput<'_>,
    ) -> Result<RunInfo, TrainError>
    where
        B: AutodiffBackend,
        T: TracedTask<B> + Clone,
        <T::Model as AutodiffModule<B>>::InnerModule: HasAttention<B::InnerBackend>,
    {
        config.check()?;
        task.check(&model)?;
        let others = others::<B>(device, self.recipe.train.devices, self.file)?;
        let info = self.info::<B>(config, device, model.num_params(), input);
        let (writer, checkpoint) = self.writer::<B>(info, input.files)?;
        let updates = self.recipe.updates;
        let mut forward = Forward {
            index: self.index,
            watch: self.watch,
            writer,
            updates: updates.map(|updates| UpdateWatch::new(task.clone(), updates.every)),
        };
        let result = forward
            .restore(TrainState::new(model, config), checkpoint.as_ref())
            .and_then(|state| fit_from(state, task, config, &others, &mut forward, &mut []));
        let mut writer = forward.writer;
        match result {
            Ok(_) => {
                writer.finish(None)?;
                (self.watch)(RunEvent::Finished { run: self.index });
                Ok(writer.info().clone())
            }
            Err(error) => {
                // Where not even this can be written, the first error is the one to tell.
                let _ = writer.finish(Some(&error));
                Err(error)
            }
        }
    }

    fn info<B: AutodiffBackend>(
        &self,
        config: &TrainConfig,
        device: &Device<B>,
        parameters: usize,
        input: OfInput<'_>,
    ) -> RunInfo {
        RunInfo {
            format: RunInfo::FORMAT,
            program: format!("wqk {}", env!("CARGO_PKG_VERSION")),
            arm: self.recipe.name.clone(),
            seed: self.recipe.seed,
            backend: self.backend.to_owned(),
            device: format!("{device:?}"),
            devices: self.recipe.train.devices,
            threads: self.threads,
            recipe_sha256: self.recipe.sha256(),
            data_sha256: input.sha256.to_owned(),
            data: input.reports.to_vec(),
            tokenizer_sha256: input
                .files
                .tokenizer
                .map(|tokenizer| sha256(tokenizer.as_bytes())),
            parameters: parameters as u64,
            steps: config.steps,
            status: RunStatus::Running,
            step: 0,
            seconds: 0.0,
            scoring_seconds: 0.0,
            updates_seconds: 0.0,
            resumed: Vec::new(),
            error: None,
        }
    }

    fn writer<B: AutodiffBackend>(
        &self,
        info: RunInfo,
        files: RunFiles<'_>,
    ) -> Result<(RunWriter<B>, Option<Checkpoint>), TrainError> {
        let score = &self.recipe.score;
        let watch = ScoreWatch::new(score.every, score.gamma, score.heads);
        let keep = self.recipe.checkpoint;
        if self.resume {
            let before = RunInfo::read(self.folder)?;
            same_run(self.folder, &before, &info)?;
            let info = RunInfo {
                resumed: before.resumed,
                ..info
            };
            let (writer, latest) = RunWriter::resume(self.folder, files, info, keep, watch, self.stop)?;
            return Ok((self.with_logs(writer)?, latest));
        }
        let recipe = self.recipe.to_toml();
        let new = NewRun {
            recipe: &recipe,
            files,
        };
        let writer = RunWriter::create(self.folder, new, info, keep, watch, self.stop)?;
        Ok((self.with_logs(writer)?, None))
    }

    /// The logs that the recipe asks for beside those that every run has.
    fn with_logs<B: AutodiffBackend>(&self, mut writer: RunWriter<B>) -> Result<RunWriter<B>, TrainError> {
        if self.recipe.log.tensorboard {
            writer = writer.with_tensorboard()?;
        }
        if self.recipe.updates.is_some() {
            writer = writer.with_updates()?;
        }
        Ok(writer)
    }
}

/// The number type of the products, if the device can multiply in it.
pub(super) fn precision<B: AutodiffBackend>(
    recipe: &Recipe,
    file: &Path,
    device: &Device<B>,
) -> Result<Precision, TrainError> {
    let precision = recipe.train.precision;
    if precision.is_supported::<B>(device) {
        return Ok(precision);
    }
    Err(TrainError::Recipe {
        file: file.to_owned(),
        field: "train.precision".to_owned(),
        problem: format!(
            "{precision}, which backend {} lacks on this device: leave it out, or choose another backend",
            B::InnerBackend::name(device)
        ),
    })
}

/// Refuses a model whose training the memory cannot hold, with its gradients and moments where these lie in it too.
pub(super) fn check_size<B: AutodiffBackend>(parameters: Option<u64>) -> Result<(), TrainError> {
    let bytes = match lies_in_host_memory::<B::InnerBackend>() {
        true => TRAINED,
        false => WEIGHT,
    };
    Ok(check_memory(parameters, bytes)?)
}

/// What a run writes down of its data.
#[derive(Clone, Copy)]
struct OfInput<'a> {
    sha256: &'a str,
    reports: &'a [ReadReport],
    files: RunFiles<'a>,
}

/// Refuses to go on with a run in other circumstances than those in which it began.
fn same_run(folder: &Path, before: &RunInfo, now: &RunInfo) -> Result<(), TrainError> {
    let no_tokenizer = String::new();
    let tokenizer = |info: &RunInfo| info.tokenizer_sha256.clone().unwrap_or(no_tokenizer.clone());
    for (what, before, now) in [
        ("recipe (SHA-256)", &before.recipe_sha256, &now.recipe_sha256),
        ("backend", &before.backend, &now.backend),
        ("data (SHA-256)", &before.data_sha256, &now.data_sha256),
        ("tokenizer (SHA-256)", &tokenizer(before), &tokenizer(now)),
    ] {
        check_same(folder, what, before, now)?;
    }
    Ok(())
}

/// The devices that follow a device, by their numbers. Where a backend has the one only, as the CPU, it is that one
/// again: its threads are then shared.
pub(super) fn others<B: AutodiffBackend>(
    device: &Device<B>,
    devices: usize,
    file: &Path,
) -> Result<Vec<Device<B>>, TrainError> {
    let mut others = Vec::new();
    let mut id = device.id();
    for _ in 1..devices {
        id.index_id += 1;
        let other = <Device<B> as NumberedDevice>::from_id(id);
        // Backends count their devices in ways of their own: whether one is there shows when it is used.
        let probe = || Tensor::<B::InnerBackend, 1>::ones([1], &other).into_data();
        if other != *device && std::panic::catch_unwind(std::panic::AssertUnwindSafe(probe)).is_err() {
            return Err(TrainError::Recipe {
                file: file.to_owned(),
                field: "train.devices".to_owned(),
                problem: format!("{devices}, but {other:?} cannot be used: set as many as the machine has"),
            });
        }
        others.push(other);
    }
    Ok(others)
}

/// Passes on what happens in a run.
struct Forward<'a, B, T>
where
    B: AutodiffBackend,
    T: TracedTask<B>,
{
    index: usize,
    watch: &'a (dyn Fn(RunEvent) + Sync),
    writer: RunWriter<B>,
    updates: Option<UpdateWatch<T, B>>,
}

impl<B, T> Forward<'_, B, T>
where
    B: AutodiffBackend,
    T: TracedTask<B>,
    <T::Model as AutodiffModule<B>>::InnerModule: HasAttention<B::InnerBackend>,
{
    /// Brings a state, and what is kept beside it, to where a checkpoint was taken.
    fn restore(
        &mut self,
        state: TrainState<B, T::Model>,
        checkpoint: Option<&Checkpoint>,
    ) -> Result<TrainState<B, T::Model>, TrainError> {
        let Some(checkpoint) = checkpoint else {
            return Ok(state);
        };
        let state = checkpoint.restore(state)?;
        if let Some(updates) = &mut self.updates {
            checkpoint.restore_updates(|stored| updates.restore(&state.model, stored))?;
        }
        Ok(state)
    }
}

impl<B, T> Observer<T::Model> for Forward<'_, B, T>
where
    B: AutodiffBackend,
    T: TracedTask<B>,
    <T::Model as AutodiffModule<B>>::InnerModule: HasAttention<B::InnerBackend>,
{
    fn observe(&mut self, event: &Event<'_, T::Model>) -> Result<(), TrainError> {
        let run = self.index;
        let before = self.writer.scores().rows().len();
        self.writer.observe(event)?;
        if let Some(updates) = &mut self.updates {
            let before = updates.rows().len();
            updates.observe(event)?;
            self.writer
                .log_updates(&updates.rows()[before..], updates.spent())?;
        }
        if let Some(event) = scored(run, &self.writer.scores().rows()[before..]) {
            (self.watch)(event);
        }
        match event {
            Event::Step { row, .. } => (self.watch)(RunEvent::Step { run, row: *row }),
            Event::Evaluated { row } => (self.watch)(RunEvent::Evaluated { run, row: *row }),
            Event::Start { done, .. } => (self.watch)(RunEvent::Started { run, done: *done }),
        }
        Ok(())
    }
}

impl<B, T> Keeper<B, T::Model> for Forward<'_, B, T>
where
    B: AutodiffBackend,
    T: TracedTask<B>,
    <T::Model as AutodiffModule<B>>::InnerModule: HasAttention<B::InnerBackend>,
{
    fn keep(&mut self, state: &TrainState<B, T::Model>, improved: bool) -> Result<(), TrainError> {
        let updates = self.updates.as_ref();
        self.writer
            .keep_with(state, improved, || updates.map(UpdateWatch::state))
    }
}

/// The medians over the layers of a scoring.
pub(super) fn scored(run: usize, rows: &[ScoreRow]) -> Option<RunEvent> {
    let step = rows.first()?.step;
    let median = |summary: Option<Summary>| summary.map(|summary| summary.median);
    Some(RunEvent::Scored {
        run,
        step,
        symmetry: median(Summary::of(rows.iter().filter_map(|row| row.scores.symmetry))),
        directionality: median(Summary::of(
            rows.iter().map(|row| row.scores.directionality.excess),
        )),
    })
}
