//! What the readers of all formats share.

use super::{DataError, Document};

/// The documents of one file.
pub(super) trait Records: Send {
    /// The next document; `None` at the end.
    fn document(&mut self) -> Result<Option<Document>, Fault>;

    /// Asked after a [`Fault::Records`] that ends the reading: whether damage of the file as a whole, such as
    /// of its compression, is behind it. May read on.
    fn damage(&mut self) -> Option<DataError> {
        None
    }
}

/// What is wrong, and whether the file can be read on.
#[derive(Debug)]
pub(super) enum Fault {
    /// One record, or as many as are lost together; what follows them can be read.
    Records(DataError, u64),
    /// The rest of the file.
    File(DataError),
}

impl Fault {
    /// Of one record.
    pub(super) fn record(error: DataError) -> Self {
        Self::Records(error, 1)
    }
}

impl From<DataError> for Fault {
    fn from(error: DataError) -> Self {
        Self::File(error)
    }
}

/// The names under which the sources hold their text: most of them, RedPajama, Jigsaw.
pub(super) const TEXT_FIELDS: [&str; 3] = ["text", "raw_content", "comment_text"];

/// Where in a record the text is.
#[derive(Debug, Clone)]
pub(super) struct Fields {
    /// Candidates for the text, the first that is there counts.
    pub(super) text: Vec<String>,
    pub(super) title: Option<String>,
}

impl Fields {
    pub(super) fn new(text: Option<&str>, title: Option<&str>) -> Self {
        Self {
            text: match text {
                Some(name) => vec![name.to_owned()],
                None => TEXT_FIELDS.map(str::to_owned).to_vec(),
            },
            title: title.map(str::to_owned),
        }
    }

    /// The candidates in words.
    pub(super) fn wanted(&self) -> String {
        let names: Vec<String> = self.text.iter().map(|name| format!("`{name}`")).collect();
        names.join(", ")
    }
}

/// The first few names, for messages.
pub(super) fn listed<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> String {
    const SHOWN: usize = 8;
    let mut names = names.into_iter();
    let mut shown: Vec<String> = names
        .by_ref()
        .take(SHOWN)
        .map(|name| name.as_ref().chars().take(40).collect())
        .collect();
    if shown.is_empty() {
        return "nothing".to_owned();
    }
    if names.next().is_some() {
        shown.push("…".to_owned());
    }
    shown.join(", ")
}

/// A record that grows past this many bytes is refused, so that a file that only looks like its format
/// does not fill the memory.
pub(super) const LARGEST_RECORD: usize = 256 << 20;
