//! Errors about one checkpoint, with its path filled in.

use super::CheckpointError;
use super::family::Size;
use super::format::{FormatError, Store};

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
