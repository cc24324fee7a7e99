//! The index of a sharded checkpoint, `model.safetensors.index.json` and its like.

use std::path::{Component, Path};

use serde::Deserialize;

use super::FormatError;
use super::error::Quoted;
use super::json::{Members, brief};

/// The longest index that is read.
pub(super) const LONGEST_INDEX: usize = 100_000_000;

/// Which shard holds which tensor.
#[derive(Debug)]
pub(super) struct ShardIndex {
    /// Shard file names, each a plain name, in order of first use.
    pub shards: Vec<String>,
    /// Tensor name and position in `shards`.
    pub tensors: Vec<(String, usize)>,
}

#[derive(Deserialize)]
struct Json {
    weight_map: Members<String>,
}

/// Parses an index and checks its names; `path` is for the errors.
pub(super) fn parse(path: &Path, bytes: &[u8]) -> Result<ShardIndex, FormatError> {
    let fault = |what: String| FormatError::Index {
        path: path.to_owned(),
        what,
    };
    if bytes.len() > LONGEST_INDEX {
        return Err(fault(format!(
            "the index has {} bytes, more than the {LONGEST_INDEX} allowed",
            bytes.len()
        )));
    }
    let json: Json = serde_json::from_slice(bytes).map_err(|e| {
        fault(format!(
            "the index is not JSON with a weight_map of names, {}",
            brief(&e)
        ))
    })?;
    if let Some(name) = json.weight_map.repeated() {
        return Err(fault(format!("the index lists tensor {} twice", Quoted(name))));
    }
    if json.weight_map.0.is_empty() {
        return Err(fault("the index lists no tensors".into()));
    }

    let mut shards = Vec::new();
    let mut position = std::collections::HashMap::new();
    let mut tensors = Vec::with_capacity(json.weight_map.0.len());
    for (name, shard) in json.weight_map.0 {
        let at = match position.get(&shard) {
            Some(&at) => at,
            None => {
                if !is_plain_name(&shard) {
                    return Err(fault(format!(
                        "the index puts tensor {} in {}, which is not the plain name of a file beside it",
                        Quoted(&name),
                        Quoted(&shard)
                    )));
                }
                shards.push(shard.clone());
                position.insert(shard, shards.len() - 1);
                shards.len() - 1
            }
        };
        tensors.push((name, at));
    }
    Ok(ShardIndex { shards, tensors })
}

/// The shards that an index names, each the plain name of a file.
#[cfg(feature = "hub")]
pub(crate) fn shards(path: &Path) -> Result<Vec<String>, FormatError> {
    let bytes = std::fs::read(path).map_err(|source| FormatError::Io {
        path: path.to_owned(),
        source,
    })?;
    Ok(parse(path, &bytes)?.shards)
}

/// Whether a shard's name names a file in the index's own folder, on any system: no separators of
/// either kind, no drive, no `.` or `..`.
fn is_plain_name(name: &str) -> bool {
    let mut components = Path::new(name).components();
    let single = matches!(
        (components.next(), components.next()),
        (Some(Component::Normal(_)), None)
    );
    single && !name.contains(['/', '\\', ':', '\0'])
}
