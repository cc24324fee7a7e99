//! One piece of text.

use serde::{Deserialize, Serialize};

/// A document: an article, a block of a plain-text file, or the text of a record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Document {
    /// Its title; empty where the source has none.
    pub title: String,
    /// Its text, lines parted by `\n`; without blank lines but where a record holds them.
    pub text: String,
}

impl Document {
    /// The title, where there is one, on a line of its own, and the text after it: what models read.
    pub fn with_title(&self) -> String {
        if self.title.is_empty() {
            self.text.clone()
        } else {
            format!("{}\n{}", self.title, self.text)
        }
    }
}
