//! Where a checkpoint is: in a folder or file, or, if that is asked for, on the Hugging Face hub.

use std::path::{Path, PathBuf};

#[cfg(feature = "hub")]
use anyhow::Context;
use anyhow::bail;

use super::progress::Progress;
use crate::checkpoint::hub::HubModel;
use crate::checkpoint::{self, Checkpoint, Options};

/// A checkpoint, with what was fetched for it.
pub(super) struct Opened {
    // Before the files that it maps.
    pub(super) checkpoint: Checkpoint,
    _fetched: Option<Fetched>,
}

/// Files that go when they are no longer needed.
struct Fetched {
    _draft: crate::report::drafts::Draft,
    _folder: tempfile::TempDir,
}

/// Opens a path, or with `hub` the model of that name; `hf://…` is always a name.
pub(super) fn open(
    path: &Path,
    hub: bool,
    options: &Options,
    progress: &mut Progress,
) -> anyhow::Result<Opened> {
    let text = path.to_string_lossy();
    if hub || text.starts_with(HubModel::SCHEME) {
        let model: HubModel = text.parse().map_err(anyhow::Error::msg)?;
        let (path, fetched) = fetch(&model, options, progress)?;
        return Ok(Opened {
            checkpoint: checkpoint::open(path, options)?,
            _fetched: Some(fetched),
        });
    }
    if !path.exists() && HubModel::is_like(&text) {
        let name = text.rsplit('/').next().unwrap_or_default();
        let directly = if cfg!(feature = "hub") {
            format!("give hf://{text}")
        } else {
            format!("give hf://{text} to a build with `--features hub`")
        };
        bail!(
            "there is no file or folder '{text}': if it is a model of the Hugging Face hub, fetch it with \
             `hf download {text} --local-dir {name}` and give the folder, or {directly}"
        );
    }
    if !path.exists() && path.components().count() == 1 && path.extension().is_none() {
        bail!(
            "there is no file or folder '{text}': if it is a model of the Hugging Face hub, fetch it with \
             `hf download {text} --local-dir {text}` and give the folder"
        );
    }
    if let Some(run) = run_of(path) {
        bail!(
            "'{text}' belongs to a run of `wqk train`, whose weights are laid out as Burn has them: write them out with \
             `wqk export {run} --to DIR` and score DIR; the scores during training are in {run}/scores.csv",
            run = run.display()
        );
    }
    Ok(Opened {
        checkpoint: checkpoint::open(path, options)?,
        _fetched: None,
    })
}

/// The folder of the run of `wqk train` that a path lies in: a run, its checkpoints, or one of their files.
fn run_of(path: &Path) -> Option<&Path> {
    path.ancestors().take(4).find(|folder| {
        let has = |name| folder.join(name).is_file();
        !folder.as_os_str().is_empty() && has("run.json") && has("recipe.toml")
    })
}

#[cfg(feature = "hub")]
fn fetch(model: &HubModel, options: &Options, progress: &mut Progress) -> anyhow::Result<(PathBuf, Fetched)> {
    use crate::checkpoint::hub::Hub;

    let folder = tempfile::Builder::new()
        .prefix("wqk-hub-")
        .tempdir()
        .context("cannot make a folder for what is fetched: name another place by TMPDIR")?;
    let fetched = Fetched {
        _draft: crate::report::drafts::Draft::new(folder.path()),
        _folder: folder,
    };
    progress.fetch(&model.to_string());
    let path = Hub::from_env().fetch(model, options, fetched._folder.path(), |done, all| {
        progress.fetched(done, all);
    });
    progress.stop();
    Ok((path?, fetched))
}

#[cfg(not(feature = "hub"))]
fn fetch(model: &HubModel, _: &Options, _: &mut Progress) -> anyhow::Result<(PathBuf, Fetched)> {
    let repository = model.repository();
    bail!(
        "this build cannot fetch {model} from the hub: build with `--features hub`, or fetch it with \
         `hf download {repository} --local-dir FOLDER` and give the folder"
    )
}
