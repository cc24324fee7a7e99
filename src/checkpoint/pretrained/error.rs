//! Why a folder cannot be read into our models, or a model not be written to one.

use std::io;
use std::path::PathBuf;

use crate::checkpoint::format::FormatError;
use crate::model::ModelError;

/// What stands between our models and a folder of `transformers`. Every message is one line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PretrainedError {
    /// The files themselves.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// A model that cannot be built.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The folder is of another family than the one that was asked for.
    #[error("the model_type is {found:?}, not {wanted:?} ({}): {remedy}", path.display())]
    Family {
        /// The folder.
        path: PathBuf,
        /// What `config.json` says.
        found: String,
        /// What was asked for.
        wanted: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// A setting that our models have not.
    #[error("config.json: {key} is {value}, but our model needs {must} ({}): load another checkpoint", path.display())]
    Config {
        /// The folder.
        path: PathBuf,
        /// The key.
        key: &'static str,
        /// Its value.
        value: String,
        /// What can be loaded.
        must: String,
    },
    /// A tensor that the model needs is not there.
    #[error("the tensor {name:?} is missing ({}): {remedy}", path.display())]
    Missing {
        /// The checkpoint.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// What to do.
        remedy: &'static str,
    },
    /// A tensor that the model has no place for.
    #[error(
        "the tensor {name:?} has no place in the model{} ({}): the file and its config.json are not of one model, or \
         it has parts that ours has not",
        if *others == 0 { String::new() } else { format!(", nor have {others} others") },
        path.display()
    )]
    Surplus {
        /// The checkpoint.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// How many more there are.
        others: usize,
    },
    /// A tensor of another shape than its model gives it.
    #[error(
        "the tensor {name:?} has the shape {found:?}, but the model needs {wanted:?} ({}): the file and its \
         configuration are not of one model",
        path.display()
    )]
    Shape {
        /// The checkpoint.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// Its shape.
        found: Vec<usize>,
        /// The shape that it should have.
        wanted: Vec<usize>,
    },
    /// An output map that is not the embedding, as it is in our models.
    #[error(
        "the tensor {name:?} differs from the embedding, to which our models tie their output ({}): load a checkpoint \
         with tied weights",
        path.display()
    )]
    Untied {
        /// The checkpoint.
        path: PathBuf,
        /// The tensor.
        name: String,
    },
    /// A model that the library has no class for.
    #[error(
        "{what}: transformers has no {class} of this kind, so that the model cannot be exported; {remedy}"
    )]
    Unexpressible {
        /// What the class has not.
        what: String,
        /// The class.
        class: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// The output is there already.
    #[error("the folder is there and not empty ({}): name another one, or remove it", path.display())]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// The output cannot be written.
    #[error("cannot be written ({source}) ({}): check the path, its permissions and the room on the disk", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}
