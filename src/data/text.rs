//! Plain text: documents parted by blank lines.

use std::io::{BufRead, Read};

use super::records::{Fault, Records};
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
    /// Whether the document that is being read is passed over, since a part of it is no text.
    bad: bool,
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
            bad: false,
        }
    }

    /// Reads a line, or the part of a long one that fits, and says whether it ended; `None` at the end.
    fn piece(&mut self) -> Result<Option<(String, bool)>, Fault> {
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
        let whole = bytes.len();
        if let Err(error) = std::str::from_utf8(&bytes) {
            let valid = error.valid_up_to();
            let cut_by_us = error.error_len().is_none() && bytes.len() == self.largest_part && valid > 0;
            if !cut_by_us {
                return Err(self.encoding(valid, "not UTF-8", whole, ended));
            }
            self.pending = bytes.split_off(valid);
        }
        if let Some(at) = bytes.iter().position(|&byte| byte == 0) {
            return Err(self.encoding(at, "a NUL byte, so not UTF-8 text", whole, ended));
        }
        self.byte += bytes.len() as u64;
        self.line += u64::from(ended);
        // Checked above; the replacement of invalid bytes never happens.
        let text = String::from_utf8(bytes).unwrap_or_default();
        Ok(Some((text, ended)))
    }

    /// Text that is none, at a byte of a piece; moves past the piece.
    fn encoding(&mut self, at: usize, problem: &'static str, piece: usize, ended: bool) -> Fault {
        let error = DataError::Encoding {
            path: self.origin.path(),
            line: self.line,
            byte: self.byte + at as u64,
            problem,
        };
        self.pending.clear();
        self.byte += piece as u64;
        self.line += u64::from(ended);
        self.bad = true;
        // What was only blank so far is another matter.
        self.found = true;
        Fault::record(error)
    }
}

impl Records for TextDocuments {
    fn document(&mut self) -> Result<Option<Document>, Fault> {
        let mut text = String::new();
        while text.len() < self.largest_part {
            let was_bad = self.bad;
            let piece = match self.piece() {
                // One document is one record, however much of it is no text.
                Err(Fault::Records(..)) if was_bad => continue,
                piece => piece?,
            };
            let Some((piece, ended)) = piece else {
                self.bad = false;
                break;
            };
            let line = if ended { piece.trim_end() } else { piece.as_str() };
            if line.trim().is_empty() {
                self.bad = false;
                if !text.is_empty() {
                    break;
                }
            } else if !self.bad {
                text.push_str(line);
                if ended {
                    text.push('\n');
                }
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
        Err(Fault::File(DataError::Empty {
            path: self.origin.path(),
            bytes: self.origin.bytes(),
            pages: "only blank lines".to_owned(),
        }))
    }

    fn damage(&mut self) -> Option<DataError> {
        self.origin.damage(&mut self.reader)
    }
}
