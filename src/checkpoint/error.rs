use std::path::PathBuf;

use super::format::{FormatError, Quoted, Short};
use crate::bilinear::BilinearError;

/// Why a checkpoint could not be scored. Every message is one line, `what (where): remedy`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The files themselves.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// No family answers for the model, and none was described.
    #[error(
        "{what} ({}): {found}name a family with --family (`wqk families` lists them), or describe the weights with \
         --q-pattern 'NAME.{{l}}.NAME' --k-pattern 'NAME.{{l}}.NAME' --n-heads N, --n-kv-heads, --head-dim, and --layout",
        path.display()
    )]
    UnknownFamily {
        /// The checkpoint.
        path: PathBuf,
        /// What was missing.
        what: String,
        /// The attention-like tensors of the file, or nothing.
        found: String,
    },
    /// The family is known, but the file holds none of its layers.
    #[error(
        "the file holds no self-attention layer of the family {family} ({}): {found}check config.json's model_type, \
         or describe the weights with --q-pattern and --k-pattern",
        path.display()
    )]
    NoLayers {
        /// The checkpoint.
        path: PathBuf,
        /// The family.
        family: String,
        /// The attention-like tensors of the file, or nothing.
        found: String,
    },
    /// A pattern was found in several places.
    #[error(
        "the pattern {} stands in {} places, under {} ({}): save the model that is meant by itself, \
         or give --q-pattern and --k-pattern with the prefix",
        Quoted(pattern), prefixes.len(), list(prefixes), path.display()
    )]
    Ambiguous {
        /// The checkpoint.
        path: PathBuf,
        /// The pattern.
        pattern: String,
        /// What stands before it.
        prefixes: Vec<String>,
    },
    /// A value that the family needs and nothing gives.
    #[error("config.json gives no {what} ({}): state it with {flag}", path.display())]
    Missing {
        /// The checkpoint.
        path: PathBuf,
        /// The value.
        what: &'static str,
        /// The flag that gives it.
        flag: &'static str,
    },
    /// The configuration and a tensor's shape contradict each other.
    #[error(
        "{source_of_value} and the shape {shape:?} of tensor {} disagree, {why} ({}): the file and its \
         config.json are not of one model, or the family is another",
        Quoted(tensor), path.display()
    )]
    Disagrees {
        /// The checkpoint.
        path: PathBuf,
        /// Where the value is from, and the value.
        source_of_value: String,
        /// The tensor.
        tensor: String,
        /// Its shape.
        shape: Vec<usize>,
        /// What would fit.
        why: String,
    },
    /// An option that makes no sense for the family.
    #[error("{what} ({}): {remedy}", path.display())]
    Option {
        /// The checkpoint.
        path: PathBuf,
        /// What was asked for.
        what: String,
        /// What to do.
        remedy: String,
    },
    /// The numbers of a layer.
    #[error("{source} (layer {} of {}): the weights of this layer cannot be scored", Short(module), path.display())]
    Layer {
        /// The checkpoint.
        path: PathBuf,
        /// The layer's module.
        module: String,
        /// What is wrong with it.
        source: BilinearError,
    },
}

/// A few of the prefixes, and how many more there are.
fn list(prefixes: &[String]) -> String {
    const SHOWN: usize = 4;
    let shown: Vec<_> = prefixes
        .iter()
        .take(SHOWN)
        .map(|prefix| Quoted(prefix).to_string())
        .collect();
    match prefixes.len().checked_sub(SHOWN + 1) {
        Some(more) => format!("{} and {} more", shown.join(", "), more + 1),
        None => shown.join(", "),
    }
}
