//! What can be wrong with a checkpoint, each with the file, the fault and the remedy.

use std::fmt;
use std::path::PathBuf;

use super::Dtype;

/// Why a checkpoint, or a tensor of it, could not be read.
///
/// Every message is one line, `what (where): remedy`. Names that come from a file are escaped and
/// cut short, so that a hostile file cannot write to the terminal through an error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The operating system refused.
    #[error("{source} ({}): check that the path exists and may be read", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The folder holds no weights, or it is not clear which are meant.
    #[error("{what} ({}): {remedy}", path.display())]
    NoWeights {
        /// The folder or file.
        path: PathBuf,
        /// What was found instead.
        what: String,
        /// What to do.
        remedy: &'static str,
    },
    /// The file ends before what it announces.
    #[error("{what} ({}): the file is truncated, fetch it again", path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// What lies beyond the end.
        what: String,
    },
    /// The file contradicts itself or its format.
    #[error("{what} ({}): the file is damaged or was not written by the usual library, fetch or save it again", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The fault.
        what: String,
    },
    /// The file is well formed but of a kind that is not read.
    #[error("{what} ({}): {remedy}", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// The kind.
        what: String,
        /// What to do.
        remedy: &'static str,
    },
    /// The pickle names a Python object beyond those that a state dict needs. Nothing was executed.
    #[error("the pickle asks for the Python object {} ({}): refused, nothing was run; save the plain weights with torch.save(model.state_dict(), …) or as safetensors", Quoted(global), path.display())]
    ForbiddenGlobal {
        /// The file.
        path: PathBuf,
        /// Module and name, such as `posix.system`.
        global: String,
    },
    /// `config.json` cannot be used.
    #[error("config.json {what} ({}): restore it from the model's repository", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// The fault.
        what: String,
    },
    /// The index of a sharded checkpoint disagrees with its shards.
    #[error("{what} ({}): fetch the index and all its shards again, from one revision", path.display())]
    Index {
        /// The index.
        path: PathBuf,
        /// The fault.
        what: String,
    },
    /// No tensor has the name.
    #[error("there is no tensor {} ({}): check that the file belongs to the stated family", Quoted(name), path.display())]
    NoTensor {
        /// The checkpoint.
        path: PathBuf,
        /// The name asked for.
        name: String,
    },
    /// Rows, or columns, were asked for that the tensor does not have.
    #[error("tensor {} of shape {shape:?} has no indices {}..{} along axis {axis} ({}): check the head counts against config.json", Quoted(name), range.start, range.end, path.display())]
    NoSuchSlice {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// Its shape.
        shape: Vec<usize>,
        /// The axis that was to be cut.
        axis: usize,
        /// The indices asked for.
        range: std::ops::Range<usize>,
    },
    /// The tensor's elements are not f64, f32, f16 or bf16.
    #[error("tensor {} holds {dtype}, not floating-point weights ({}): de-quantise the model first, or load its unquantised revision", Quoted(name), path.display())]
    NotFloat {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// Its element type.
        dtype: Dtype,
    },
    /// The weight is quantised, packed into several tensors or described so by `config.json`.
    #[error("tensor {} is quantised, {scheme} ({}): de-quantise the model first, or load its unquantised revision", Quoted(name), path.display())]
    Quantised {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// The scheme and what shows it.
        scheme: String,
    },
    /// A weight is not a number, infinite, or (from f64) beyond the range of f32.
    #[error("tensor {} holds {value} at {index:?} ({}): such weights have no score; check the training run or fetch the file again", Quoted(name), path.display())]
    NotFinite {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// The position of the first such value that was met.
        index: Vec<usize>,
        /// The value.
        value: f64,
    },
}

/// Text from a file, quoted, escaped and cut to a readable length.
pub(crate) struct Quoted<'a>(pub &'a str);

/// The same without quotes.
pub(crate) struct Short<'a>(pub &'a str);

/// Characters that are shown of a text from a file.
const LONGEST: usize = 120;

impl fmt::Display for Short<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(LONGEST) {
            None => write!(f, "{}", self.0.escape_debug()),
            Some((cut, _)) => write!(f, "{}…", self.0[..cut].escape_debug()),
        }
    }
}

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(LONGEST) {
            None => write!(f, "{:?}", self.0),
            Some((cut, _)) => write!(f, "{:?}…", &self.0[..cut]),
        }
    }
}
