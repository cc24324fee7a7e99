//! Files as streams of UTF-8, whatever they are compressed by.

use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::DataError;
use super::utf16::{ByteOrder, Utf16Error, Utf16Reader};
use crate::files;

/// A stream of text with what is needed to say where it broke.
pub(super) struct Source {
    pub(super) reader: Box<dyn BufRead + Send>,
    /// Bytes at the start of the text (a byte order mark) that the reader passed over.
    pub(super) skipped: u64,
    origin: Origin,
}

/// What turns errors of the reader into errors of the data.
#[derive(Clone)]
pub(super) struct Origin {
    path: PathBuf,
    compression: Option<&'static str>,
    bytes: Arc<AtomicU64>,
}

impl Source {
    /// Opens a file; what compresses it is recognised by its first bytes, not by its name.
    pub(super) fn open(path: &Path) -> Result<Self, DataError> {
        let wanted = "text file or a MediaWiki dump";
        let failed = |source| DataError::io(path, source, wanted);
        Self::new(path.to_owned(), files::open(path).map_err(failed)?)
    }

    /// The same over any reader; `path` stands for it in messages.
    pub(super) fn new(path: PathBuf, raw: impl Read + Send + 'static) -> Result<Self, DataError> {
        let plain = Origin {
            path: path.clone(),
            compression: None,
            bytes: Arc::default(),
        };
        let (head, raw) = peek(raw, 10).map_err(|error| plain.error(&error))?;
        let raw = BufReader::with_capacity(BUFFER, raw);
        let (compression, text): (_, Box<dyn Read + Send>) = match head.as_slice() {
            [0x1f, 0x8b, ..] => (Some("gzip"), Box::new(flate2::bufread::MultiGzDecoder::new(raw))),
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => {
                (Some("bzip2"), Box::new(bzip2::bufread::MultiBzDecoder::new(raw)))
            }
            [0x28, 0xb5, 0x2f, 0xfd, ..] => (
                Some("zstd"),
                Box::new(zstd::Decoder::with_buffer(raw).map_err(|error| plain.error(&error))?),
            ),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => {
                (Some("xz"), Box::new(lzma_rust2::XzReader::new(raw, true)))
            }
            [b'P', b'A', b'R', b'1', ..] => {
                return Err(not_text(
                    path,
                    "a Parquet file",
                    "leave `format` out, or set it to \"parquet\"",
                ));
            }
            [b'P', b'K', 3, 4, ..] => return Err(not_text(path, "a zip archive", "unpack it")),
            [b'7', b'z', 0xbc, 0xaf, ..] => return Err(not_text(path, "a 7z archive", "unpack it")),
            _ => (None, Box::new(raw)),
        };
        let origin = Origin { compression, ..plain };
        let counted = Counted {
            inner: text,
            bytes: origin.bytes.clone(),
        };
        let (head, text) = peek(counted, 4).map_err(|error| origin.error(&error))?;
        let (skipped, reader): (_, Box<dyn BufRead + Send>) = match head.as_slice() {
            [0xff, 0xfe, ..] | [b'<', 0, ..] => (0, utf16(text, ByteOrder::Little)),
            [0xfe, 0xff, ..] | [0, b'<', ..] => (0, utf16(text, ByteOrder::Big)),
            [0xef, 0xbb, 0xbf, ..] => {
                let mut text = BufReader::with_capacity(BUFFER, text);
                text.read_exact(&mut [0; 3])
                    .map_err(|error| origin.error(&error))?;
                (3, Box::new(text))
            }
            _ => (0, Box::new(BufReader::with_capacity(BUFFER, text))),
        };
        Ok(Self {
            reader,
            skipped,
            origin,
        })
    }

    /// Looks at the first bytes of the text without taking them.
    pub(super) fn peek(&mut self, n: usize) -> Result<Vec<u8>, DataError> {
        let reader = std::mem::replace(&mut self.reader, Box::new(io::empty()));
        let (head, chained) = peek(reader, n).map_err(|error| self.origin.error(&error))?;
        self.reader = Box::new(chained);
        Ok(head)
    }

    pub(super) fn origin(&self) -> Origin {
        self.origin.clone()
    }
}

impl Origin {
    pub(super) fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// How many bytes of text, after decompression, were read.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// What is wrong with the compression, where text that makes no sense comes from damaged data: a
    /// decompressor gives a whole block before it finds that the sum over it is wrong.
    pub(super) fn damage(&self, reader: &mut dyn Read) -> Option<DataError> {
        const BLOCK: u64 = 1 << 20;
        self.compression?;
        let error = io::copy(&mut reader.take(BLOCK), &mut io::sink()).err()?;
        Some(self.error(&error))
    }

    /// An error of the reader: of the encoding, of the compression, or of the system.
    pub(super) fn error(&self, error: &io::Error) -> DataError {
        let path = self.path();
        if let Some(error) = error
            .get_ref()
            .and_then(|inner| inner.downcast_ref::<Utf16Error>())
        {
            return DataError::Encoding {
                path,
                line: error.line,
                byte: error.byte,
                problem: error.problem,
            };
        }
        match self.compression {
            Some(format) => DataError::Damaged {
                path,
                format,
                bytes: self.bytes(),
                message: error.to_string(),
            },
            None => DataError::Unreadable {
                path,
                source: io::Error::new(error.kind(), error.to_string()),
            },
        }
    }
}

const BUFFER: usize = 64 << 10;

fn not_text(path: PathBuf, kind: &'static str, remedy: &'static str) -> DataError {
    DataError::NotText { path, kind, remedy }
}

fn utf16(text: impl Read + Send + 'static, order: ByteOrder) -> Box<dyn BufRead + Send> {
    let text = BufReader::with_capacity(BUFFER, text);
    Box::new(BufReader::with_capacity(BUFFER, Utf16Reader::new(text, order)))
}

/// A reader whose first bytes were taken and are given again.
type Peeked<R> = io::Chain<Cursor<Vec<u8>>, R>;

/// The first `n` bytes, fewer at the end, and a reader that gives them again.
fn peek<R: Read>(mut reader: R, n: usize) -> io::Result<(Vec<u8>, Peeked<R>)> {
    let mut head = Vec::new();
    reader.by_ref().take(n as u64).read_to_end(&mut head)?;
    Ok((head.clone(), Cursor::new(head).chain(reader)))
}

/// Counts what passes.
struct Counted {
    inner: Box<dyn Read + Send>,
    bytes: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.bytes.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}
