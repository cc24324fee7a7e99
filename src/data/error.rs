//! What can be wrong with text, a tokenizer or a set of sequences.

use std::io;
use std::path::{Path, PathBuf};

/// Data that cannot be read or used. The message is one line: the file, the position, what is wrong there
/// and what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// The file cannot be opened or read.
    #[error("{path}: cannot be read ({source}): check the path and its permissions", path = .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A folder was given where a file is needed.
    #[error("{path}: is a folder: give a {wanted}", path = .path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What is needed instead.
        wanted: &'static str,
    },
    /// A path, folder or glob of a corpus that leads to no file.
    #[error("{path}: {problem}", path = .path.display())]
    NoFiles {
        /// The path, folder or glob.
        path: PathBuf,
        /// What is wrong with it, and what to do.
        problem: String,
    },
    /// A compressed file ends early or is damaged.
    #[error(
        "{path}: damaged {format} data ({message}) after {bytes} bytes of text: the file may be cut off, fetch it again",
        path = .path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The name of the compression.
        format: &'static str,
        /// How many bytes were decompressed before.
        bytes: u64,
        /// What the decompressor said.
        message: String,
    },
    /// The file is of a kind that is not read as text.
    #[error("{path}: is {kind}, which is not read as text: {remedy}", path = .path.display())]
    NotText {
        /// The file.
        path: PathBuf,
        /// What it is.
        kind: &'static str,
        /// What to do about it.
        remedy: &'static str,
    },
    /// Text that is neither UTF-8 nor marked as UTF-16.
    #[error(
        "{path}: line {line}, byte {byte} of the text: {problem}: convert the file to UTF-8",
        path = .path.display()
    )]
    Encoding {
        /// The file.
        path: PathBuf,
        /// Line, counted from 1.
        line: u64,
        /// Byte in the decompressed file, counted from 0.
        byte: u64,
        /// What is wrong there.
        problem: &'static str,
    },
    /// A record that holds no text: a line of JSONL, a row of CSV or Parquet.
    #[error(
        "{path}: {place}: {problem}: mend it, or pass over such records with on_bad = \"skip\"",
        path = .path.display()
    )]
    Record {
        /// The file.
        path: PathBuf,
        /// The line or row.
        place: String,
        /// What is wrong there.
        problem: String,
    },
    /// A table without the column that should hold the text.
    #[error(
        "{path}: no column {wanted} (the columns are {have}): name the column with `field`",
        path = .path.display()
    )]
    NoField {
        /// The file.
        path: PathBuf,
        /// The columns that were looked for.
        wanted: String,
        /// The columns that are there.
        have: String,
    },
    /// A Parquet file that cannot be read, or whose column holds no strings.
    #[error("{path}: {message}", path = .path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and what to do.
        message: String,
    },
    /// A MediaWiki dump whose XML is cut off or broken.
    #[error("{path}: byte {byte} of the XML, {place}: {message}: fetch the dump again", path = .path.display())]
    Dump {
        /// The file.
        path: PathBuf,
        /// Byte in the decompressed file, counted from 0.
        byte: u64,
        /// The page in which, or after which, it happened.
        place: String,
        /// What is wrong there.
        message: String,
    },
    /// Everything was passed over.
    #[error(
        "no document could be read: {report}: see to the files, or set on_bad = \"error\" to stop at the first fault"
    )]
    NothingLeft {
        /// What was passed over, and why.
        report: super::ReadReport,
    },
    /// Two files of parallel text with different numbers of lines.
    #[error(
        "{path}: holds {lines} lines, but {other} holds {other_lines}: line n of one must translate line n of the other",
        path = .path.display(), other = .other.display()
    )]
    Misaligned {
        /// The file of the translations.
        path: PathBuf,
        /// Its lines.
        lines: usize,
        /// The other file.
        other: PathBuf,
        /// Its lines.
        other_lines: usize,
    },
    /// A line of parallel text without a tab.
    #[error("{path}: line {line} has no tab: put source and target on a line with a tab between", path = .path.display())]
    NoTab {
        /// The file.
        path: PathBuf,
        /// Line, counted from 1.
        line: usize,
    },
    /// Nothing was left to work on.
    #[error(
        "{path}: no text in {bytes} bytes ({pages}): give a file with text",
        path = .path.display()
    )]
    Empty {
        /// The file.
        path: PathBuf,
        /// How many bytes were read, after decompression.
        bytes: u64,
        /// What was read and passed over.
        pages: String,
    },
    /// A token cache that cannot be made or read.
    #[error(
        "{path}: the token cache cannot be used ({source}): check the free space and the permissions, or name another folder for caches by WQK_CACHE",
        path = .path.display()
    )]
    Cache {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A tokenizer file that cannot be used.
    #[error("{path}: not a usable tokenizer ({message}): give a tokenizer.json or a vocab.txt", path = .path.display())]
    Tokenizer {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// A tokenizer failed on a text.
    #[error("the tokenizer failed on a text of {bytes} bytes ({message}): check the tokenizer file")]
    Tokenize {
        /// Size of the text.
        bytes: usize,
        /// What the tokenizer said.
        message: String,
    },
    /// A character tokenizer was asked for an alphabet that cannot be.
    #[error("an alphabet of {0} characters: choose at least 1")]
    Alphabet(usize),
    /// The tokenizer has more tokens than the model.
    #[error(
        "{path}: the tokenizer has {tokenizer} tokens, the model's vocabulary {model}: set the model's vocabulary to at least {tokenizer}, or use the model's own tokenizer",
        path = .path.display()
    )]
    VocabularyTooLarge {
        /// The tokenizer's name or file.
        path: PathBuf,
        /// Number of tokens that the tokenizer knows.
        tokenizer: usize,
        /// Size of the model's vocabulary.
        model: usize,
    },
    /// Sequences of a length that cannot be.
    #[error("sequences of length {0}: choose at least 2")]
    SequenceLength(usize),
    /// There is less text than what was asked for needs.
    #[error(
        "{tokens} tokens make {have} sequences of length {n}, {need} are needed: give more text, or choose shorter sequences"
    )]
    TooFewTokens {
        /// Number of tokens in the text.
        tokens: usize,
        /// Length of a sequence.
        n: usize,
        /// How many sequences there are.
        have: usize,
        /// How many are needed.
        need: usize,
    },
    /// The share to hold out is not one.
    #[error("held-out share {0}: choose a share between 0 and 1, both excluded, such as 0.05")]
    HeldOutShare(f64),
    /// A batch of no sequences.
    #[error("batches of 0 sequences: choose at least 1")]
    BatchSize,
}

impl DataError {
    pub(super) fn cache(path: &Path, source: io::Error) -> Self {
        Self::Cache {
            path: path.to_owned(),
            source,
        }
    }

    /// What the system says of a path, told apart where the remedy differs.
    pub(super) fn io(path: &Path, source: io::Error, wanted: &'static str) -> Self {
        if path.is_dir() {
            return Self::Folder {
                path: path.to_owned(),
                wanted,
            };
        }
        Self::Unreadable {
            path: path.to_owned(),
            source,
        }
    }
}
