//! What was read of a corpus, and what was not.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::DataError;

/// Counts of what a corpus gave, and of what was passed over under [`OnBad::Skip`](super::OnBad::Skip).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadReport {
    /// Files that were opened, or tried.
    pub files: u64,
    /// Documents with text.
    pub documents: u64,
    /// Records whose text is empty or blank.
    pub empty: u64,
    /// Records that were passed over.
    pub bad_records: u64,
    /// Files that were passed over, or the rest of them.
    pub bad_files: u64,
    /// Why, the first [`REASONS`](Self::REASONS) of them, each with its file and place.
    pub reasons: Vec<String>,
}

impl ReadReport {
    /// How many reasons are kept.
    pub const REASONS: usize = 20;

    /// Whether nothing was passed over.
    pub fn is_whole(&self) -> bool {
        self.bad_records == 0 && self.bad_files == 0
    }

    pub(super) fn bad_records(&mut self, error: &DataError, records: u64) {
        self.bad_records += records;
        self.reason(error.to_string());
    }

    pub(super) fn bad_file(&mut self, error: &DataError, documents: u64) {
        self.bad_files += 1;
        self.reason(match documents {
            0 => error.to_string(),
            _ => format!("{error} ({documents} documents before it were read)"),
        });
    }

    fn reason(&mut self, reason: String) {
        tracing::warn!("passed over: {reason}");
        if self.reasons.len() < Self::REASONS {
            self.reasons.push(reason);
        }
    }
}

impl fmt::Display for ReadReport {
    /// In one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |n: u64, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        write!(
            f,
            "{} from {}",
            count(self.documents, "document"),
            count(self.files, "file")
        )?;
        if self.empty > 0 {
            write!(f, ", {} without text", count(self.empty, "record"))?;
        }
        if !self.is_whole() {
            write!(
                f,
                ", passed over {} and {}, the first: {}",
                count(self.bad_records, "bad record"),
                count(self.bad_files, "bad file"),
                self.reasons.first().map_or("unknown", String::as_str)
            )?;
        }
        Ok(())
    }
}
