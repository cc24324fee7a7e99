//! Plain text: documents parted by blank lines.

use std::io::{BufRead, Read};

use super::source::{Origin, Source};
use super::{DataError, Document};

/// A document that grows past this many bytes is given in parts, so that a file without blank lines, or
/// of one line, does not have to fit into memory.
const LARGEST_PART: usize = 4 << 20;

/// The documents of a plain-text file.
pub(super) struct TextDocuments {
    reader: Box<dyn BufRead + Send>,
    origin: Origin,
    largest_part: usize,
    /// The line that is read next, counted from 1, and its first byte.
    line: u64,
    byte: u64,
    /// Bytes of the line that is being read which do not make a whole character yet.
    pending: Vec<u8>,
    found: bool,
    finished: bool,
}

impl TextDocuments {
    pub(super) fn new(source: Source) -> Self {
        Self {
            origin: source.origin(),
            reader: source.reader,
            largest_part: LARGEST_PART,
            line: 1,
            byte: source.skipped,
            pending: Vec::new(),
            found: false,
            finished: false,
        }
    }

    /// Reads a line, or the part of a long one that fits, and says whether it ended; `None` at the end.
    fn piece(&mut self) -> Result<Option<(String, bool)>, DataError> {
        let mut bytes = std::mem::take(&mut self.pending);
        let limit = (self.largest_part - bytes.len()) as u64;
        self.reader
            .by_ref()
            .take(limit)
            .read_until(b'\n', &mut bytes)
            .map_err(|error| self.origin.error(&error))?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let ended = bytes.last() == Some(&b'\n');
        if let Err(error) = std::str::from_utf8(&bytes) {
            let valid = error.valid_up_to();
            let cut_by_us = error.error_len().is_none() && bytes.len() == self.largest_part && valid > 0;
            if !cut_by_us {
                return Err(self.encoding(valid, "not UTF-8"));
            }
            self.pending = bytes.split_off(valid);
        }
        if let Some(at) = bytes.iter().position(|&byte| byte == 0) {
            return Err(self.encoding(at, "a NUL byte, so not UTF-8 text"));
        }
        self.byte += bytes.len() as u64;
        self.line += u64::from(ended);
        // Checked above; the replacement of invalid bytes never happens.
        let text = String::from_utf8(bytes).unwrap_or_default();
        Ok(Some((text, ended)))
    }

    fn encoding(&mut self, at: usize, problem: &'static str) -> DataError {
        let damage = self.origin.damage(&mut self.reader);
        damage.unwrap_or_else(|| DataError::Encoding {
            path: self.origin.path(),
            line: self.line,
            byte: self.byte + at as u64,
            problem,
        })
    }

    fn document(&mut self) -> Result<Option<Document>, DataError> {
        let mut text = String::new();
        while text.len() < self.largest_part {
            let Some((piece, ended)) = self.piece()? else {
                break;
            };
            let line = if ended { piece.trim_end() } else { piece.as_str() };
            if !line.trim().is_empty() {
                text.push_str(line);
                if ended {
                    text.push('\n');
                }
            } else if !text.is_empty() {
                break;
            }
        }
        text.truncate(text.trim_end().len());
        if !text.is_empty() {
            self.found = true;
            return Ok(Some(Document {
                title: String::new(),
                text,
            }));
        }
        if self.found {
            return Ok(None);
        }
        Err(DataError::Empty {
            path: self.origin.path(),
            bytes: self.origin.bytes(),
            pages: "only blank lines".to_owned(),
        })
    }
}

impl Iterator for TextDocuments {
    type Item = Result<Document, DataError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.finished {
            return None;
        }
        let next = self.document().transpose();
        self.finished = !matches!(next, Some(Ok(_)));
        next
    }
}
