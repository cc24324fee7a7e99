//! Any corpus as a stream of documents.

use std::path::Path;

use sha2::{Digest, Sha256};

use super::dump::DumpDocuments;
use super::source::Source;
use super::text::TextDocuments;
use super::{DataError, Document};

/// The documents of a corpus, read one at a time.
///
/// Read are plain text, whose documents are parted by blank lines, and MediaWiki dumps
/// (`pages-articles.xml`), from which come the articles with their markup stripped; both in UTF-8 or
/// UTF-16, and compressed by gzip, bzip2, zstd or xz, in any number of streams. Content decides which is
/// which, not the file's name. Memory stays bounded by the largest page, or by a few megabytes of text: a
/// block of plain text longer than that is given in parts.
///
/// The iterator gives at most one error, its last item. A corpus without any text is one.
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
pub struct Documents(Kind);

enum Kind {
    Text(TextDocuments),
    Dump(Box<DumpDocuments>),
}

impl Documents {
    /// Opens a corpus.
    ///
    /// # Errors
    /// [`DataError::Folder`], [`DataError::Unreadable`], [`DataError::Damaged`] or
    /// [`DataError::NotText`] where the file cannot be opened as text.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, DataError> {
        Source::open(path.as_ref()).and_then(Self::from_source)
    }

    /// A corpus in memory, with the content of a file; `name` stands for the file in messages.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_content(name: impl AsRef<Path>, content: &'static [u8]) -> Result<Self, DataError> {
        Source::new(name.as_ref().to_owned(), content).and_then(Self::from_source)
    }

    fn from_source(mut source: Source) -> Result<Self, DataError> {
        const HEAD: usize = 256;
        let head = source.peek(HEAD)?;
        let head = head.trim_ascii_start();
        let is_xml = head.starts_with(b"<mediawiki") || head.starts_with(b"<?xml");
        Ok(Self(if is_xml {
            Kind::Dump(Box::new(DumpDocuments::new(source)))
        } else {
            Kind::Text(TextDocuments::new(source))
        }))
    }
}

impl Iterator for Documents {
    type Item = Result<Document, DataError>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            Kind::Text(documents) => documents.next(),
            Kind::Dump(documents) => documents.next(),
        }
    }
}

/// The SHA-256 of a file as it lies on the disk, in hexadecimal: what a report names as its source.
///
/// # Errors
/// [`DataError::Folder`] or [`DataError::Unreadable`].
pub fn sha256(path: impl AsRef<Path>) -> Result<String, DataError> {
    let path = path.as_ref();
    let failed = |source| DataError::io(path, source, "file");
    let mut file = std::fs::File::open(path).map_err(failed)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match std::io::Read::read(&mut file, &mut buffer) {
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
