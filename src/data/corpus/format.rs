//! The formats of corpora, by name.

use std::path::Path;

use serde::{Deserialize, Serialize};

/// How the files of a corpus hold their documents. Any of them but Parquet may be compressed by gzip,
/// bzip2, zstd or xz.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Format {
    /// Plain text, documents parted by blank lines.
    Text,
    /// One JSON object a line, the text in a field.
    Jsonl,
    /// Apache Parquet, the text in a column of strings.
    Parquet,
    /// Comma-separated values with a head, the text in a column.
    Csv,
    /// An XML dump of MediaWiki, `pages-articles.xml`.
    MediaWiki,
}

impl Format {
    /// The format that a file's name says, its compression set aside.
    pub fn of_name(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let name = [".gz", ".bz2", ".zst", ".xz"]
            .iter()
            .find_map(|end| name.strip_suffix(end))
            .unwrap_or(&name);
        Some(match name.rsplit_once('.')?.1 {
            "txt" | "text" => Self::Text,
            "jsonl" | "ndjson" | "json" => Self::Jsonl,
            "parquet" => Self::Parquet,
            "csv" => Self::Csv,
            "xml" => Self::MediaWiki,
            // `enwiki-latest-pages-articles1.xml-p000000010p000030302.bz2`
            end if end.starts_with("xml-p") => Self::MediaWiki,
            _ => return None,
        })
    }

    /// Its name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "plain text",
            Self::Jsonl => "JSONL",
            Self::Parquet => "Parquet",
            Self::Csv => "CSV",
            Self::MediaWiki => "a MediaWiki dump",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_formats() {
        for (name, format) in [
            ("a/b.TXT", Some(Format::Text)),
            ("train-small.txt.xz", Some(Format::Text)),
            ("en_head_0000.json.gz", Some(Format::Jsonl)),
            ("x.jsonl.zst", Some(Format::Jsonl)),
            ("train-00000-of-00002.parquet", Some(Format::Parquet)),
            ("train.csv", Some(Format::Csv)),
            ("enwiki-pages-articles.xml.bz2", Some(Format::MediaWiki)),
            (
                "enwiki-pages-articles1.xml-p10p30302.bz2",
                Some(Format::MediaWiki),
            ),
            ("README.md", None),
            ("LICENSE", None),
            ("x.gz", None),
        ] {
            assert_eq!(Format::of_name(Path::new(name)), format, "{name}");
        }
    }
}
