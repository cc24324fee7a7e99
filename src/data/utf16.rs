//! UTF-16 read as UTF-8.

use std::io::{self, BufRead, Read};

/// Which byte of a unit comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ByteOrder {
    Little,
    Big,
}

/// UTF-16 that is none; carried inside an [`io::Error`].
#[derive(Debug, thiserror::Error)]
#[error("line {line}, byte {byte}: {problem}")]
pub(super) struct Utf16Error {
    pub(super) line: u64,
    pub(super) byte: u64,
    pub(super) problem: &'static str,
}

/// Turns UTF-16 into UTF-8 as it is read. A byte order mark at the start is dropped.
pub(super) struct Utf16Reader<R> {
    inner: R,
    order: ByteOrder,
    /// Bytes of UTF-16 taken so far, and lines begun.
    byte: u64,
    line: u64,
    /// UTF-8 that is decoded but not yet read, from `start` on.
    decoded: Vec<u8>,
    start: usize,
    /// An error met behind what is decoded, to be given after it.
    pending: Option<io::Error>,
}

/// How many UTF-16 units are decoded at once.
const UNITS: usize = 4096;

impl<R: BufRead> Utf16Reader<R> {
    pub(super) fn new(inner: R, order: ByteOrder) -> Self {
        Self {
            inner,
            order,
            byte: 0,
            line: 1,
            decoded: Vec::new(),
            start: 0,
            pending: None,
        }
    }

    /// The next unit; `None` at the end.
    fn unit(&mut self) -> io::Result<Option<u16>> {
        let mut bytes = [0; 2];
        let mut have = 0;
        while have < 2 {
            match self.inner.read(&mut bytes[have..]) {
                Ok(0) if have == 0 => return Ok(None),
                Ok(0) => return Err(self.error("the text ends in the middle of a UTF-16 character")),
                Ok(n) => have += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.byte += 2;
        Ok(Some(match self.order {
            ByteOrder::Little => u16::from_le_bytes(bytes),
            ByteOrder::Big => u16::from_be_bytes(bytes),
        }))
    }

    /// The next character; `None` at the end.
    fn character(&mut self) -> io::Result<Option<char>> {
        const LONE: &str = "a lone UTF-16 surrogate";
        let begin = self.byte;
        let Some(first) = self.unit()? else {
            return Ok(None);
        };
        let decoded = if (0xd800..0xdc00).contains(&first) {
            self.unit()?
                .and_then(|second| char::decode_utf16([first, second]).next()?.ok())
        } else {
            char::decode_utf16([first]).next().and_then(Result::ok)
        };
        match decoded {
            Some(character) => Ok(Some(character)),
            None => {
                self.byte = begin;
                Err(self.error(LONE))
            }
        }
    }

    fn error(&self, problem: &'static str) -> io::Error {
        let error = Utf16Error {
            line: self.line,
            byte: self.byte,
            problem,
        };
        io::Error::new(io::ErrorKind::InvalidData, error)
    }
}

impl<R: BufRead> Read for Utf16Reader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.start == self.decoded.len() && self.pending.is_none() {
            self.decoded.clear();
            self.start = 0;
            for _ in 0..UNITS {
                let at_start = self.byte == 0;
                let character = match self.character() {
                    Ok(character) => character,
                    Err(error) => {
                        self.pending = Some(error);
                        break;
                    }
                };
                match character {
                    None => break,
                    Some('\u{feff}') if at_start => {}
                    Some(character) => {
                        self.line += u64::from(character == '\n');
                        let mut utf8 = [0; 4];
                        self.decoded
                            .extend_from_slice(character.encode_utf8(&mut utf8).as_bytes());
                    }
                }
            }
        }
        if self.start == self.decoded.len()
            && let Some(error) = self.pending.take()
        {
            return Err(error);
        }
        let n = buffer.len().min(self.decoded.len() - self.start);
        buffer[..n].copy_from_slice(&self.decoded[self.start..self.start + n]);
        self.start += n;
        Ok(n)
    }
}
