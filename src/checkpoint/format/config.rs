//! The folder's `config.json`.

use std::path::Path;

use serde_json::Value;

use super::FormatError;
use super::json::brief;

/// The longest configuration that is read; real ones have a few kB, with label names up to a few MB.
const LONGEST_CONFIG: u64 = 32_000_000;

/// Reads `config.json` in a folder; `None` if there is none.
pub(super) fn read(folder: &Path) -> Result<Option<Value>, FormatError> {
    let path = folder.join("config.json");
    let io = |source| FormatError::Io {
        path: path.clone(),
        source,
    };
    let fault = |what: String| FormatError::Config {
        path: path.clone(),
        what,
    };
    let kind = match std::fs::metadata(&path) {
        Ok(kind) => kind,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io(error)),
    };
    if !kind.is_file() {
        return Err(fault("is not a regular file".into()));
    }
    if kind.len() > LONGEST_CONFIG {
        return Err(fault(format!(
            "has {} bytes, more than the {LONGEST_CONFIG} allowed",
            kind.len()
        )));
    }
    let bytes = std::fs::read(&path).map_err(io)?;
    let value: Value =
        serde_json::from_slice(&bytes).map_err(|e| fault(format!("is not valid JSON, {}", brief(&e))))?;
    if !value.is_object() {
        return Err(fault("is not a JSON object".into()));
    }
    Ok(Some(value))
}
