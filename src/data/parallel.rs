//! Parallel text: sentences and their translations.

use std::path::Path;

use super::DataError;
use crate::files;

/// Sentences in one language with their translations in another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParallelText {
    /// Source and target, neither of them empty.
    pub pairs: Vec<(String, String)>,
}

impl ParallelText {
    /// Two files, the n-th line of one the translation of the n-th of the other.
    ///
    /// Takes plain lines, and the files of IWSLT as they are distributed (`train.tags.de-en.de`,
    /// `IWSLT14.TED.dev2010.de-en.de.xml`): lines of metadata such as `<url>` are left out, and of
    /// `<title>`, `<description>` and `<seg>` the text is taken. Pairs with an empty side are left out.
    ///
    /// # Errors
    /// [`DataError::Unreadable`], [`DataError::Encoding`]; [`DataError::Misaligned`] for different numbers of lines;
    /// [`DataError::Empty`] for files without a pair.
    pub fn from_lines(source: impl AsRef<Path>, target: impl AsRef<Path>) -> Result<Self, DataError> {
        let (source, target) = (source.as_ref(), target.as_ref());
        let (source_text, target_text) = (read(source)?, read(target)?);
        let [left, right] = [&source_text, &target_text].map(|text| sentences(text));
        if left.len() != right.len() {
            return Err(DataError::Misaligned {
                path: target.to_owned(),
                lines: right.len(),
                other: source.to_owned(),
                other_lines: left.len(),
            });
        }
        Self::of(source, left.into_iter().zip(right), source_text.len())
    }

    /// One file with source and target on a line, a tab between them; further columns are left out.
    ///
    /// # Errors
    /// As [`from_lines`](Self::from_lines); [`DataError::NoTab`] with the line.
    pub fn from_tabs(path: impl AsRef<Path>) -> Result<Self, DataError> {
        let path = path.as_ref();
        let text = read(path)?;
        let mut pairs = Vec::new();
        for (line, text) in text
            .lines()
            .enumerate()
            .filter(|(_, text)| !text.trim().is_empty())
        {
            let mut columns = text.split('\t');
            match (columns.next(), columns.next()) {
                (Some(source), Some(target)) => pairs.push((source, target)),
                _ => {
                    return Err(DataError::NoTab {
                        path: path.to_owned(),
                        line: line + 1,
                    });
                }
            }
        }
        Self::of(path, pairs.into_iter(), text.len())
    }

    fn of<'a>(
        path: &Path,
        pairs: impl Iterator<Item = (&'a str, &'a str)>,
        bytes: usize,
    ) -> Result<Self, DataError> {
        let pairs: Vec<_> = pairs
            .map(|(source, target)| (source.trim().to_owned(), target.trim().to_owned()))
            .filter(|(source, target)| !source.is_empty() && !target.is_empty())
            .collect();
        if pairs.is_empty() {
            return Err(DataError::Empty {
                path: path.to_owned(),
                bytes: bytes as u64,
                pages: "no pair of sentences".to_owned(),
            });
        }
        Ok(Self { pairs })
    }
}

fn read(path: &Path) -> Result<String, DataError> {
    let bytes = files::read(path).map_err(|source| DataError::Unreadable {
        path: path.to_owned(),
        source,
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let byte = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..byte].iter().filter(|&&b| b == b'\n').count() + 1;
        DataError::Encoding {
            path: path.to_owned(),
            line: line as u64,
            byte: byte as u64,
            problem: "not UTF-8",
        }
    })
}

/// The lines that hold sentences, without their marks.
fn sentences(text: &str) -> Vec<&str> {
    // A carriage return or a line separator within a line belongs to the sentence.
    text.split_terminator('\n').filter_map(sentence).collect()
}

fn sentence(line: &str) -> Option<&str> {
    /// What the lines of IWSLT's files begin with that are no sentences.
    const METADATA: [&str; 16] = [
        "<?xml",
        "<mteval",
        "</mteval",
        "<srcset",
        "</srcset",
        "<refset",
        "</refset",
        "<doc",
        "</doc",
        "<url>",
        "<keywords>",
        "<speaker>",
        "<talkid>",
        "<reviewer",
        "<translator",
        "<hl>",
    ];
    let line = line.trim();
    if METADATA.iter().any(|mark| line.starts_with(mark)) {
        return None;
    }
    for mark in ["title", "description", "seg"] {
        let Some(rest) = line.strip_prefix('<').and_then(|line| line.strip_prefix(mark)) else {
            continue;
        };
        let inner = rest.split_once('>').map_or("", |(_, inner)| inner);
        let end = inner.rfind("</").unwrap_or(inner.len());
        return Some(inner[..end].trim());
    }
    Some(line)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn file(folder: &Path, name: &str, text: &str) -> std::path::PathBuf {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        path
    }

    #[test]
    fn lines_and_tabs_give_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let de = file(folder, "a.de", "Guten Tag .\n\nJa\u{2028}so\n");
        let en = file(folder, "a.en", "Good day .\nnothing\nyes\n");
        let tabs = file(
            folder,
            "a.tsv",
            "Guten Tag .\tGood day .\t0.9\n\nJa\u{2028}so\tyes\n",
        );
        let lines = ParallelText::from_lines(&de, &en).unwrap();
        assert_eq!(lines.pairs.len(), 2);
        assert_eq!(lines, ParallelText::from_tabs(&tabs).unwrap());
    }

    #[test]
    fn the_files_of_iwslt_are_read_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let tags = |title: &str, line: &str| {
            format!(
                "<url>http://x</url>\n<keywords>a, b</keywords>\n<talkid>1</talkid>\n<title>{title}</title>\n\
                 <description>{title}!</description>\n{line}\n<reviewer href=\"x\">A</reviewer>\n"
            )
        };
        let de = file(folder, "train.tags.de-en.de", &tags("Titel", "Hallo."));
        let en = file(folder, "train.tags.de-en.en", &tags("Title", "Hello."));
        let text = ParallelText::from_lines(&de, &en).unwrap();
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(
            text.pairs,
            [
                pair("Titel", "Title"),
                pair("Titel!", "Title!"),
                pair("Hallo.", "Hello.")
            ]
        );
        let xml = |line: &str| {
            format!(
                "<?xml version=\"1.0\"?>\n<mteval>\n<srcset setid=\"x\">\n<doc docid=\"1\">\n<seg id=\"1\"> {line} </seg>\n\
                 </doc>\n</srcset>\n</mteval>\n"
            )
        };
        let de = file(folder, "dev.de.xml", &xml("Ja."));
        let en = file(folder, "dev.en.xml", &xml("Yes."));
        assert_eq!(
            ParallelText::from_lines(&de, &en).unwrap().pairs,
            [pair("Ja.", "Yes.")]
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let two = file(folder, "two", "a\nb\n");
        let one = file(folder, "one", "a\n");
        let error = ParallelText::from_lines(&two, &one).unwrap_err().to_string();
        assert!(error.contains("1 lines") && error.contains("2"), "{error}");
        let error = ParallelText::from_tabs(&two).unwrap_err().to_string();
        assert!(error.contains("line 1") && error.contains("tab"), "{error}");
        let empty = file(folder, "empty", "\n\n");
        assert!(matches!(
            ParallelText::from_lines(&empty, &empty),
            Err(DataError::Empty { .. })
        ));
        fs::write(folder.join("latin"), b"a\nGr\xfc\xdfe\n").unwrap();
        let error = ParallelText::from_tabs(folder.join("latin"))
            .unwrap_err()
            .to_string();
        assert!(error.contains("line 2"), "{error}");
        assert!(ParallelText::from_tabs(folder.join("absent")).is_err());
    }
}
