//! Errors about one checkpoint, with its path filled in.

use super::CheckpointError;
use super::family::Size;
use super::format::{FormatError, Quoted, Short, Store};

/// Makes errors about a store.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context<'a>(pub &'a Store);

impl Context<'_> {
    pub fn missing(&self, what: &'static str, flag: &'static str) -> CheckpointError {
        CheckpointError::Missing {
            path: self.0.path().to_owned(),
            what,
            flag,
        }
    }

    pub fn ambiguous(&self, pattern: &str, prefixes: Vec<String>) -> CheckpointError {
        CheckpointError::Ambiguous {
            path: self.0.path().to_owned(),
            pattern: pattern.to_owned(),
            prefixes,
        }
    }

    pub fn disagrees(&self, size: &Size, tensor: &str, shape: &[usize], why: String) -> CheckpointError {
        // Flags and tensors name themselves.
        let from = if size.from.starts_with("--") || size.from.starts_with("the ") {
            format!("{} ({})", size.from, size.value)
        } else {
            format!("config.json ({} = {})", size.from, size.value)
        };
        CheckpointError::Disagrees {
            path: self.0.path().to_owned(),
            source_of_value: from,
            tensor: tensor.to_owned(),
            shape: shape.to_vec(),
            why,
        }
    }

    /// A value of the configuration that is no size; `flag` states it instead, if there is one.
    pub fn misgiven(&self, key: &str, value: &serde_json::Value, flag: &str) -> CheckpointError {
        let value = match value.as_str() {
            Some(text) => Quoted(text).to_string(),
            None => Short(&value.to_string()).to_string(),
        };
        let what = format!("config.json gives {key} = {value}, which is no whole number from 0 on");
        match flag {
            "" => self.option(what, "correct config.json"),
            _ => self.option(
                what,
                format!("correct config.json, or state the value with {flag}"),
            ),
        }
    }

    pub fn option(&self, what: String, remedy: impl Into<String>) -> CheckpointError {
        CheckpointError::Option {
            path: self.0.path().to_owned(),
            what,
            remedy: remedy.into(),
        }
    }

    /// A tensor's shape, which must be a matrix's.
    pub fn matrix(&self, tensor: &str) -> Result<[usize; 2], CheckpointError> {
        let Some(info) = self.0.info(tensor) else {
            // Reading says best why it is not there.
            return Err(match self.0.read_f32(tensor) {
                Err(error) => error.into(),
                Ok(_) => FormatError::NoTensor {
                    path: self.0.path().to_owned(),
                    name: tensor.to_owned(),
                }
                .into(),
            });
        };
        <[usize; 2]>::try_from(info.shape.as_slice()).map_err(|_| {
            let size = Size {
                value: 2,
                from: "the number of a matrix's axes".into(),
            };
            self.disagrees(&size, tensor, &info.shape, "a projection is a matrix".into())
        })
    }
}
