//! Any corpus as a stream of documents.

use std::collections::VecDeque;
use std::io::Read;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::csv::CsvDocuments;
use super::dump::DumpDocuments;
use super::jsonl::JsonlDocuments;
use super::parquet::ParquetDocuments;
use super::records::{Fault, Fields, Records};
use super::source::Source;
use super::text::TextDocuments;
use super::{CorpusSpec, DataError, Document, Format, OnBad, ReadReport};
use crate::files;

/// The documents of a corpus, read one at a time, file by file.
///
/// Read are plain text, whose documents are parted by blank lines, MediaWiki dumps
/// (`pages-articles.xml`), from which come the articles with their markup stripped, JSONL, CSV and Parquet.
/// All but Parquet may be in UTF-8 or UTF-16, and compressed by gzip, bzip2, zstd or xz, in any number of
/// streams. A file's name says JSONL, CSV or Parquet; everything else is told by content, compression too.
/// Memory stays bounded by the largest record, page or row group, or by a few megabytes of text: a block of
/// plain text longer than that is given in parts.
///
/// The iterator gives at most one error, its last item; under [`OnBad::Skip`], what cannot be read is passed
/// over and counted in the [`report`](Self::report) instead. A corpus without any text is always an error.
///
/// # Examples
/// ```no_run
/// use wqk::data::Documents;
///
/// for document in Documents::open("enwiki-latest-pages-articles.xml.bz2")? {
///     println!("{}", document?.title);
/// }
/// # Ok::<(), wqk::data::DataError>(())
/// ```
pub struct Documents {
    spec: CorpusSpec,
    files: VecDeque<PathBuf>,
    reader: Option<Box<dyn Records>>,
    /// Documents of the file that is being read.
    of_file: u64,
    report: ReadReport,
    finished: bool,
}

impl Documents {
    /// Opens a corpus of one file. [`CorpusSpec`] has more to say.
    ///
    /// # Errors
    /// [`DataError::Folder`], [`DataError::Unreadable`], [`DataError::Damaged`] or
    /// [`DataError::NotText`] where the file cannot be opened as text.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, DataError> {
        let mut documents = Self::of_files(CorpusSpec::default(), Vec::new());
        documents.report.files = 1;
        documents.reader = Some(open(path.as_ref(), &documents.spec)?);
        Ok(documents)
    }

    /// A corpus in memory, with the content of a file; `name` stands for the file in messages.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_content(name: impl AsRef<Path>, content: &'static [u8]) -> Result<Self, DataError> {
        let mut documents = Self::of_files(CorpusSpec::default(), Vec::new());
        documents.report.files = 1;
        let name = name.as_ref().to_owned();
        documents.reader = Some(of_source(Source::new(name, content)?, None, &documents.spec)?);
        Ok(documents)
    }

    /// The documents of files, which are opened one after the other.
    pub(super) fn of_files(spec: CorpusSpec, files: Vec<PathBuf>) -> Self {
        Self {
            spec,
            files: files.into(),
            reader: None,
            of_file: 0,
            report: ReadReport::default(),
            finished: false,
        }
    }

    /// What was read so far.
    pub fn report(&self) -> &ReadReport {
        &self.report
    }

    /// The next document; `None` at the end.
    fn document(&mut self) -> Result<Option<Document>, DataError> {
        loop {
            let Some(reader) = &mut self.reader else {
                let Some(path) = self.files.pop_front() else {
                    return self.end();
                };
                self.report.files += 1;
                self.of_file = 0;
                match open(&path, &self.spec) {
                    Ok(reader) => self.reader = Some(reader),
                    Err(error) => self.bad_file(error)?,
                }
                continue;
            };
            match reader.document() {
                Ok(Some(document)) if document.text.trim().is_empty() => self.report.empty += 1,
                Ok(Some(document)) => {
                    self.report.documents += 1;
                    self.of_file += 1;
                    return Ok(Some(document));
                }
                Ok(None) => self.reader = None,
                Err(Fault::Records(error, records)) if self.spec.on_bad == OnBad::Skip => {
                    self.report.bad_records(&error, records);
                }
                Err(Fault::Records(error, _)) => return Err(reader.damage().unwrap_or(error)),
                Err(Fault::File(error)) => {
                    self.reader = None;
                    self.bad_file(error)?;
                }
            }
        }
    }

    fn bad_file(&mut self, error: DataError) -> Result<(), DataError> {
        if self.spec.on_bad == OnBad::Error {
            return Err(error);
        }
        self.report.bad_file(&error, self.of_file);
        Ok(())
    }

    fn end(&self) -> Result<Option<Document>, DataError> {
        if self.report.documents > 0 {
            return Ok(None);
        }
        let report = self.report.clone();
        Err(DataError::NothingLeft { report })
    }
}

/// Opens a file as what the corpus, its name or its content says it is.
fn open(path: &Path, spec: &CorpusSpec) -> Result<Box<dyn Records>, DataError> {
    let format = spec.format.or_else(|| Format::of_name(path));
    if format == Some(Format::Parquet) || (spec.format.is_none() && is_parquet(path)) {
        return Ok(Box::new(ParquetDocuments::open(path, &fields(spec))?));
    }
    of_source(Source::open(path)?, format, spec)
}

/// Opens a file as a corpus would, and gives its size in bytes.
pub(super) fn inspect(path: &Path, spec: &CorpusSpec) -> Result<u64, DataError> {
    let about = files::open(path).and_then(|file| file.metadata());
    let bytes = about.map_err(|source| DataError::io(path, source, "file"))?.len();
    match open(path, spec) {
        Err(error) if spec.on_bad == OnBad::Error => Err(error),
        _ => Ok(bytes),
    }
}

fn of_source(
    mut source: Source,
    format: Option<Format>,
    spec: &CorpusSpec,
) -> Result<Box<dyn Records>, DataError> {
    Ok(match format {
        Some(Format::Jsonl) => Box::new(JsonlDocuments::new(source, fields(spec))),
        Some(Format::Csv) => Box::new(CsvDocuments::new(source, &fields(spec))?),
        _ if spec.format == Some(Format::MediaWiki) => Box::new(DumpDocuments::new(source)),
        _ if spec.format.is_none() && is_xml(&mut source)? => Box::new(DumpDocuments::new(source)),
        _ => Box::new(TextDocuments::new(source)),
    })
}

fn fields(spec: &CorpusSpec) -> Fields {
    Fields::new(spec.field.as_deref(), spec.title.as_deref())
}

/// Whether a file begins as Parquet does; one that cannot be read will say so when it is opened as text.
fn is_parquet(path: &Path) -> bool {
    let mut magic = [0; 4];
    let read = files::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && magic == *b"PAR1"
}

fn is_xml(source: &mut Source) -> Result<bool, DataError> {
    const HEAD: usize = 256;
    let head = source.peek(HEAD)?;
    let head = head.trim_ascii_start();
    Ok(head.starts_with(b"<mediawiki") || head.starts_with(b"<?xml"))
}

impl Iterator for Documents {
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

/// The SHA-256 of a file as it lies on the disk, in hexadecimal: what a report names as its source.
///
/// # Errors
/// [`DataError::Folder`] or [`DataError::Unreadable`].
pub fn sha256(path: impl AsRef<Path>) -> Result<String, DataError> {
    let path = path.as_ref();
    let failed = |source| DataError::io(path, source, "file");
    let mut file = files::open(path).map_err(failed)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => hash.update(&buffer[..n]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests;
