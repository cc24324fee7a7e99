//! The folder of a run: what is written while it trains, and read afterwards.
//!
//! | file | content |
//! | --- | --- |
//! | `recipe.toml` | the recipe of this run alone: all settings, one arm, its seed; it can be run again as it is |
//! | `run.json` | [`RunInfo`]: program, backend, hashes of recipe, data and tokenizer, and how far the run is |
//! | `steps.csv` | [`StepRow`](super::StepRow), one for each update |
//! | `held_out.csv` | [`HeldOutRow`](super::HeldOutRow), one for each evaluation |
//! | `scores.csv` | one row for each layer of each scoring, and, where asked for, for each of its heads |
//! | `updates.csv` | [`UpdateRow`](super::UpdateRow), one for each layer of each update that was taken apart, where the recipe asks for it |
//! | `log.jsonl` | all of these in their order, one JSON object a line, told apart by `event` |
//! | `events.out.tfevents.…` | steps, evaluations, scores and updates for TensorBoard, where the recipe asks for it; one file for each time that the run was begun or resumed |
//! | `tokenizer.json` | the tokenizer, where the run is on text |
//! | `images.json` | [`ImageInfo`]: classes and normalisation, where it is on images |
//! | `checkpoints/step-000000123/` | [`Checkpoints`](super::Checkpoints): model, optimiser, average and state |
//!
//! In `scores.csv` the rows of a layer have no `head`; those of a head follow, counted from 0. `symmetry` is empty
//! for a zero matrix. Times (`seconds`, `waited`) are all that differs between two runs of one recipe on one
//! backend with the same number of threads.

mod folder;
mod images;
mod info;
mod log;
mod tensorboard;
mod writer;

pub use folder::RunFolder;
pub use images::ImageInfo;
pub(super) use info::check_same;
pub use info::{RunInfo, RunStatus};
pub use log::RunLog;
pub use tensorboard::TensorBoard;
pub use writer::{NewRun, RunFiles, RunWriter, Stop};

/// Names of the files in the folder of a run.
pub(super) mod names {
    pub const RECIPE: &str = "recipe.toml";
    pub const INFO: &str = "run.json";
    pub const STEPS: &str = "steps.csv";
    pub const HELD_OUT: &str = "held_out.csv";
    pub const SCORES: &str = "scores.csv";
    pub const UPDATES: &str = "updates.csv";
    pub const EVENTS: &str = "log.jsonl";
    pub const TOKENIZER: &str = "tokenizer.json";
    pub const IMAGES: &str = "images.json";
    pub const CHECKPOINTS: &str = "checkpoints";
    pub const LOCK: &str = ".lock";
}
