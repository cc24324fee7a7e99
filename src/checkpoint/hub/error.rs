use super::HubModel;
use crate::checkpoint::CheckpointError;

/// Why a model could not be had from a hub. Every message is one line, `what (where): remedy`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HubError {
    /// The server could not be reached, or the connection was lost more often than is worth trying.
    #[error("{source} ({url}): check the connection and HF_ENDPOINT, or give a folder that is at hand")]
    Connection {
        /// What was asked for.
        url: String,
        /// What went wrong.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The server knows no such model, revision or file, or will not say.
    #[error(
        "there is no model {model}, or it is private ({url}): check the name and revision; for a private model set HF_TOKEN"
    )]
    NotFound {
        /// The model.
        model: HubModel,
        /// What was asked for.
        url: String,
    },
    /// The server wants to know who asks.
    #[error(
        "the server refuses {model} (status {status}, {url}): accept the model's conditions on its page, and set HF_TOKEN"
    )]
    Refused {
        /// The model.
        model: HubModel,
        /// 401 or 403.
        status: u16,
        /// What was asked for.
        url: String,
    },
    /// The server answers with something else.
    #[error(
        "the server answers with status {status} ({url}): try again later, or fetch the model with `hf download`"
    )]
    Status {
        /// The status.
        status: u16,
        /// What was asked for.
        url: String,
    },
    /// The server sends other bytes than those that were asked for.
    #[error("{what} ({url}): fetch the model with `hf download`, and give its folder")]
    Answer {
        /// What was asked for.
        url: String,
        /// What is wrong with the answer.
        what: String,
    },
    /// The model is there, and has no weights of which parts can be fetched.
    #[error("{model} has no safetensors weights, and those of other formats cannot be fetched in part: \
             fetch it with `hf download {}`, and give its folder", model.repository())]
    NoSafetensors {
        /// The model.
        model: HubModel,
    },
    /// The model's own files.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The files that are written here.
    #[error("{source} ({path}): make room, or name another folder for temporary files by TMPDIR")]
    Write {
        /// The file.
        path: String,
        /// The system's reason.
        source: std::io::Error,
    },
}
