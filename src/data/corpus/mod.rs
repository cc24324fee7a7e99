//! What a recipe says of its text.

mod files;
mod format;

use std::fmt;
use std::path::{Path, PathBuf};

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::{DataError, Documents, Packed, ReadReport, Tokenizer, documents};
pub use format::Format;

/// A corpus: which files, and what in them is the text.
///
/// # Examples
/// ```
/// use wqk::data::{CorpusSpec, Format, OnBad};
///
/// let spec: CorpusSpec = toml::from_str(r#"
///     paths = ["wikipedia/*.parquet", "more/articles.jsonl.gz"]
///     field = "text"
///     on_bad = "skip"
/// "#)?;
/// assert_eq!(spec.on_bad, OnBad::Skip);
/// assert_eq!(spec.format, None); // each by its name
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CorpusSpec {
    /// Files, folders (all files below them whose names say a format) and globs such as `shards/*.jsonl.zst`
    /// or `**/*.parquet`, one or several. They are read in this order, what a folder or glob gives in the
    /// order of names, and a file that is met twice once.
    #[serde(deserialize_with = "one_or_several")]
    pub paths: Vec<String>,
    /// The format of all files; without it, each file's own by its name and content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// The field (JSONL) or column (Parquet, CSV) that holds the text; without it the first of `text`,
    /// `raw_content` (RedPajama) and `comment_text` (Jigsaw) that is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// A field or column with a title, to be put on a line of its own before the text. Without it only the
    /// text is read. (The title of a page of a MediaWiki dump always stands before its text.)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What to do with files and records that cannot be read.
    #[serde(default)]
    pub on_bad: OnBad,
}

/// What to do with a file or a record that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnBad {
    /// Stop, saying where and what.
    #[default]
    Error,
    /// Pass over it, count it, and keep the first reasons for the report.
    Skip,
}

impl CorpusSpec {
    /// A corpus of files, folders and globs, the rest left to what they are.
    pub fn new<S: Into<String>>(paths: impl IntoIterator<Item = S>) -> Self {
        Self {
            paths: paths.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// Finds the files and gives their documents one by one. Relative paths start at `base`: the folder of
    /// the recipe.
    ///
    /// # Errors
    /// [`DataError::NoFiles`] where a path or a glob leads to none.
    pub fn documents(&self, base: &Path) -> Result<Documents, DataError> {
        Ok(Documents::of_files(self.clone(), self.files(base)?))
    }

    /// The files of the corpus, in the order in which they are read.
    ///
    /// # Errors
    /// [`DataError::NoFiles`] where a path or a glob leads to none.
    pub fn files(&self, base: &Path) -> Result<Vec<PathBuf>, DataError> {
        files::resolve(self, base)
    }

    /// The files with their sizes in bytes, each opened as it would be read: what is missing, is no file, or lacks its
    /// column shows before anything is read whole.
    ///
    /// # Errors
    /// As [`documents`](Self::documents), and for a file that cannot be opened.
    pub fn inspect(&self, base: &Path) -> Result<Vec<(PathBuf, u64)>, DataError> {
        let files = self.files(base)?.into_iter();
        files
            .map(|file| documents::inspect(&file, self).map(|bytes| (file, bytes)))
            .collect()
    }

    /// Reads the corpus into memory, as sequences of `n` tokens, with what was read and passed over.
    ///
    /// # Errors
    /// As [`documents`](Self::documents) and [`Packed::new`].
    pub fn pack(
        &self,
        base: &Path,
        tokenizer: &Tokenizer,
        n: usize,
    ) -> Result<(Packed, ReadReport), DataError> {
        let mut documents = self.documents(base)?;
        let packed = Packed::new(&mut documents, tokenizer, n)?;
        Ok((packed, documents.report().clone()))
    }
}

/// `paths = "a"` is `paths = ["a"]`.
fn one_or_several<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    struct Paths;

    impl<'de> Visitor<'de> for Paths {
        type Value = Vec<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a path, or a list of paths such as [\"a.txt\", \"more/*.txt\"]")
        }

        fn visit_str<E>(self, path: &str) -> Result<Self::Value, E> {
            Ok(vec![path.to_owned()])
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut paths: A) -> Result<Self::Value, A::Error> {
            let mut all = Vec::new();
            while let Some(path) = paths.next_element()? {
                all.push(path);
            }
            Ok(all)
        }
    }

    deserializer.deserialize_any(Paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_path_is_a_list_of_one_and_a_misspelt_setting_is_refused() {
        let spec: CorpusSpec = toml::from_str("paths = 'a.txt'").unwrap();
        assert_eq!(spec, CorpusSpec::new(["a.txt"]));
        let again: CorpusSpec = toml::from_str("paths = ['a.txt']\nformat = 'mediawiki'").unwrap();
        assert_eq!(again.format, Some(Format::MediaWiki));
        for (text, said) in [
            ("paths = 'a'\ncolumn = 'x'", "unknown field `column`"),
            ("paths = 3", "a path, or a list of paths"),
            ("paths = 'a'\nformat = 'docx'", "unknown variant `docx`"),
            ("format = 'text'", "missing field `paths`"),
        ] {
            let error = toml::from_str::<CorpusSpec>(text).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
