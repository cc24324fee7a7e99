//! Which file of a folder holds the weights, and what kind of file it is.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::FormatError;
use super::error::Quoted;

/// Names that are taken first, in the order in which the Hugging Face library looks for them.
const USUAL: [&str; 4] = [
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
];

/// What else is taken if it is the only file of its kind, by ending, in this order.
const ENDINGS: [&str; 6] = [
    ".safetensors.index.json",
    ".safetensors",
    ".bin.index.json",
    ".bin",
    ".pth",
    ".pt",
];

/// The rest of a training run, which has a weight file's ending but no weights.
const NOT_WEIGHTS: [&str; 5] = ["training_args", "optimizer", "scheduler", "rng_state", "scaler"];

/// Files of other kinds, to say what they are.
const OTHERS: [(&str, &str); 6] = [
    (".gguf", "GGUF"),
    (".h5", "TensorFlow"),
    (".msgpack", "Flax"),
    (".onnx", "ONNX"),
    (".npz", "NumPy"),
    (".ckpt", "TensorFlow or Lightning"),
];

/// The file of a checkpoint folder that holds the weights or their index.
pub(super) fn weights(folder: &Path) -> Result<PathBuf, FormatError> {
    for usual in USUAL {
        let path = folder.join(usual);
        // A link that leads nowhere is found too, and is then an error that names it.
        if path.symlink_metadata().is_ok() {
            return Ok(path);
        }
    }
    let io = |source| FormatError::Io {
        path: folder.to_owned(),
        source,
    };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(io)? {
        if let Ok(name) = entry.map_err(io)?.file_name().into_string() {
            names.push(name);
        }
    }
    names.sort();
    let no_weights = |what, remedy| {
        Err(FormatError::NoWeights {
            path: folder.to_owned(),
            what,
            remedy,
        })
    };
    for ending in ENDINGS {
        let mut found = names.iter().filter(|name| {
            name.ends_with(ending) && !NOT_WEIGHTS.iter().any(|other| name.starts_with(other))
        });
        match (found.next(), found.next()) {
            (Some(only), None) => return Ok(folder.join(only)),
            (Some(first), Some(second)) => {
                let what = format!(
                    "the folder holds several weight files, {first:?}, {second:?} and perhaps more, and no index"
                );
                return no_weights(
                    what,
                    "name one file, or add the index (…index.json) of the shards",
                );
            }
            _ => {}
        }
    }
    for (ending, kind) in OTHERS {
        if names.iter().any(|name| name.ends_with(ending)) {
            let what = format!("the folder holds {kind} weights only");
            return no_weights(what, "load the safetensors or PyTorch revision of the model");
        }
    }
    no_weights(
        "the folder holds no weights".into(),
        "name a folder with model.safetensors or pytorch_model.bin",
    )
}

/// Refuses JSON files that describe a model or its tokeniser, which a user may name in place of the folder.
pub(super) fn refuse_descriptions(path: &Path) -> Result<(), FormatError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if name.ends_with(".json") && !name.ends_with("index.json") {
        return Err(FormatError::NoWeights {
            path: path.to_owned(),
            what: format!("{} holds no weights", Quoted(&name)),
            remedy: "name the folder that it is in",
        });
    }
    Ok(())
}

/// A kind of tensor file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Safetensors,
    TorchZip,
    TorchLegacy,
}

/// The kind of a file by its first bytes; names often lie.
pub(super) fn kind(path: &Path, bytes: &[u8]) -> Result<Kind, FormatError> {
    let unsupported = |what: &str, remedy| {
        Err(FormatError::Unsupported {
            path: path.to_owned(),
            what: what.into(),
            remedy,
        })
    };
    match bytes {
        // The header's first byte. Before the rest: the header's length may begin as a pickle does.
        [_, _, _, _, _, _, _, _, b'{', ..] => Ok(Kind::Safetensors),
        [b'P', b'K', 3, 4, ..] => Ok(Kind::TorchZip),
        [0x80, 2..=5, ..] => Ok(Kind::TorchLegacy),
        [b'G', b'G', b'U', b'F', ..] => unsupported(
            "the file is GGUF, whose weights are quantised or reordered",
            "load the model's safetensors revision",
        ),
        [0x89, b'H', b'D', b'F', ..] => unsupported(
            "the file is HDF5, TensorFlow's format",
            "load the model's safetensors or PyTorch revision",
        ),
        _ if bytes.starts_with(b"version https://git-lfs") => unsupported(
            "the file is a Git LFS pointer, not the weights themselves",
            "fetch the weights with git lfs pull",
        ),
        // A file too short to have one, whose error is better.
        _ if path.extension() == Some(OsStr::new("safetensors")) => Ok(Kind::Safetensors),
        _ => unsupported(
            "the file is neither safetensors nor one that torch.save wrote",
            "name a .safetensors, .bin, .pt or .pth file",
        ),
    }
}
