//! Comma-separated values with a head.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use csv::{ByteRecord, ErrorKind, ReaderBuilder};

use super::records::{Fault, Fields, LARGEST_RECORD, Records, listed};
use super::source::{Origin, Source};
use super::{DataError, Document};

/// The documents of a CSV file: one a row, fields quoted as RFC 4180 says, line breaks in them kept.
pub(super) struct CsvDocuments {
    reader: csv::Reader<Limited>,
    origin: Origin,
    pending: Arc<AtomicUsize>,
    text: usize,
    title: Option<usize>,
    columns: usize,
    record: ByteRecord,
    rows: u64,
}

impl CsvDocuments {
    pub(super) fn new(source: Source, fields: &Fields) -> Result<Self, DataError> {
        let origin = source.origin();
        let pending = Arc::new(AtomicUsize::new(0));
        let limited = Limited {
            inner: source.reader,
            pending: Arc::clone(&pending),
        };
        // Rows of another width are found below, where they can be passed over.
        let mut reader = ReaderBuilder::new().flexible(true).from_reader(limited);
        let head = match reader.byte_headers() {
            Ok(head) => head.clone(),
            Err(error) => return Err(failed(&origin, error)),
        };
        let names: Vec<String> = head
            .iter()
            .map(|name| String::from_utf8_lossy(name).trim().to_owned())
            .collect();
        if names.iter().all(String::is_empty) {
            return Err(DataError::Empty {
                path: origin.path(),
                bytes: origin.bytes(),
                pages: "no head and no row".to_owned(),
            });
        }
        let column = |wanted: &String| names.iter().position(|name| name == wanted);
        let missing = |wanted: String| DataError::NoField {
            path: origin.path(),
            wanted,
            have: listed(&names),
        };
        let text = fields
            .text
            .iter()
            .find_map(column)
            .ok_or_else(|| missing(fields.wanted()))?;
        let title = match &fields.title {
            Some(title) => Some(column(title).ok_or_else(|| missing(format!("`{title}`")))?),
            None => None,
        };
        Ok(Self {
            columns: names.len(),
            reader,
            origin,
            pending,
            text,
            title,
            record: ByteRecord::new(),
            rows: 0,
        })
    }

    /// Rows are numbered, not lines: the reader's count of lines is off where they end in CR LF.
    fn bad(&self, problem: String) -> Fault {
        Fault::record(DataError::Record {
            path: self.origin.path(),
            place: format!("row {} after the head", self.rows),
            problem,
        })
    }

    fn field(&self, column: usize) -> Result<String, Fault> {
        let bytes = self.record.get(column).unwrap_or_default();
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(error) => Err(self.bad(format!(
                "the text is not UTF-8 from its byte {} on",
                error.valid_up_to()
            ))),
        }
    }
}

impl Records for CsvDocuments {
    fn document(&mut self) -> Result<Option<Document>, Fault> {
        self.pending.store(0, Ordering::Relaxed);
        let more = self
            .reader
            .read_byte_record(&mut self.record)
            .map_err(|error| failed(&self.origin, error))?;
        if !more {
            if self.rows == 0 {
                return Err(Fault::File(DataError::Empty {
                    path: self.origin.path(),
                    bytes: self.origin.bytes(),
                    pages: "a head without rows".to_owned(),
                }));
            }
            return Ok(None);
        }
        self.rows += 1;
        if self.record.len() != self.columns {
            return Err(self.bad(format!(
                "it has {} fields, the head {}",
                self.record.len(),
                self.columns
            )));
        }
        let title = self.title.map_or(Ok(String::new()), |title| self.field(title))?;
        Ok(Some(Document {
            title,
            text: self.field(self.text)?,
        }))
    }
}

fn failed(origin: &Origin, error: csv::Error) -> DataError {
    match error.into_kind() {
        ErrorKind::Io(error) => match error.get_ref().and_then(|inner| inner.downcast_ref::<TooLarge>()) {
            Some(TooLarge) => DataError::Record {
                path: origin.path(),
                place: format!("byte {} of the text", origin.bytes()),
                problem: format!(
                    "a row of more than {} MiB, as behind a quote that is not closed",
                    LARGEST_RECORD >> 20
                ),
            },
            None => origin.error(&error),
        },
        kind => DataError::Record {
            path: origin.path(),
            place: format!("byte {} of the text", origin.bytes()),
            problem: format!("not CSV ({kind:?})"),
        },
    }
}

/// Stops where a row does not end.
struct Limited {
    inner: Box<dyn io::BufRead + Send>,
    /// Bytes given since the last row.
    pending: Arc<AtomicUsize>,
}

#[derive(Debug, thiserror::Error)]
#[error("too large")]
struct TooLarge;

impl Read for Limited {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        if self.pending.fetch_add(n, Ordering::Relaxed) > LARGEST_RECORD {
            return Err(io::Error::other(TooLarge));
        }
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(
        content: &'static [u8],
        field: Option<&str>,
        title: Option<&str>,
    ) -> Result<CsvDocuments, DataError> {
        let source = Source::new("x.csv".into(), content).unwrap();
        CsvDocuments::new(source, &Fields::new(field, title))
    }

    /// The head of Jigsaw's `train.csv`, with a comment of several lines.
    #[test]
    fn jigsaw() {
        let content = b"\xef\xbb\xbf\"id\",\"comment_text\",\"toxic\"\r\n\"0\",\"Why, he said\n\"\"so\"\".\",0\r\n1,plain,0\r\n2,two\r\n3,b\xffd,0\r\n4,last,1";
        let mut documents = open(content, None, None).unwrap();
        let text = |document: Result<Option<Document>, Fault>| document.unwrap().unwrap().text;
        assert_eq!(text(documents.document()), "Why, he said\n\"so\".");
        assert_eq!(text(documents.document()), "plain");
        for expected in [
            "row 3 after the head: it has 2 fields, the head 3",
            "row 4 after the head: the text is not UTF-8 from its byte 1",
        ] {
            let Err(Fault::Records(error, 1)) = documents.document() else {
                panic!("a bad row")
            };
            assert!(error.to_string().contains(expected), "{error}");
        }
        assert_eq!(text(documents.document()), "last");
        assert!(documents.document().unwrap().is_none());
        let titled = open(content, Some("id"), Some("toxic")).unwrap().document();
        assert_eq!(titled.unwrap().unwrap().with_title(), "0\n0");
    }

    #[test]
    fn heads_that_do_not_do() {
        for (content, said) in [
            (&b""[..], "no text in 0 bytes"),
            (
                b"a,b\n",
                "no column `text`, `raw_content`, `comment_text` (the columns are a, b)",
            ),
        ] {
            let error = open(content, None, None).err().unwrap().to_string();
            assert!(error.contains(said), "{error}");
        }
        let error = open(b"text\n", None, None).unwrap().document();
        assert!(matches!(error, Err(Fault::File(DataError::Empty { .. }))));
    }
}
