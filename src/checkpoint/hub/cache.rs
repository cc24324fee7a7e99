//! What Hugging Face's own programs keep on this machine.

use std::path::{Path, PathBuf};

use super::HubModel;
use crate::checkpoint::format::Store;

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

fn home() -> Option<PathBuf> {
    variable("HF_HOME").or_else(|| {
        let cache = variable("XDG_CACHE_HOME").or_else(|| Some(std::env::home_dir()?.join(".cache")))?;
        Some(cache.join("huggingface"))
    })
}

/// The folder of the models.
pub(super) fn folder() -> Option<PathBuf> {
    variable("HF_HUB_CACHE").or_else(|| Some(home()?.join("hub")))
}

/// The token of the user, of the environment or as `hf auth login` left it.
pub(super) fn token() -> Option<String> {
    let of_file = || {
        let path = variable("HF_TOKEN_PATH").or_else(|| Some(home()?.join("token")))?;
        std::fs::read_to_string(path).ok()
    };
    let token = std::env::var("HF_TOKEN").ok().or_else(of_file)?;
    Some(token.trim().to_owned()).filter(|token| !token.is_empty())
}

fn model_folder(cache: &Path, model: &HubModel) -> PathBuf {
    cache.join(format!("models--{}", model.repository.replace('/', "--")))
}

/// The folder of a commit, if all of its weights are there.
pub(super) fn snapshot(cache: &Path, model: &HubModel, commit: &str) -> Option<PathBuf> {
    let path = model_folder(cache, model).join("snapshots").join(commit);
    // Opening looks for the configuration, the weights and, where there is an index, for every shard.
    let store = Store::open(&path).ok()?;
    store.config().is_some().then_some(path)
}

/// The folder of the commit that the revision was at when something of it was fetched last.
pub(super) fn last(cache: &Path, model: &HubModel) -> Option<PathBuf> {
    let reference = model_folder(cache, model).join("refs").join(&model.revision);
    let commit = match std::fs::read_to_string(reference) {
        Ok(commit) => commit.trim().to_owned(),
        // A commit is its own name.
        Err(_) => model.revision.clone(),
    };
    let is_commit = commit.len() == 40 && commit.chars().all(|c| c.is_ascii_hexdigit());
    snapshot(cache, model, &commit).filter(|_| is_commit)
}
