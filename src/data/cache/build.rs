//! From documents to the file of a cache.

use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::mpsc;

use super::file::{Header, width};
use super::key::Key;
use super::{CacheProgress, DataError};
use crate::data::{Documents, ReadReport, Tokenizer, pack};

/// How the name of an unfinished cache ends.
const UNFINISHED: &str = ".unfinished";

/// Chunks of text that are read ahead of the tokenizer.
const AHEAD: usize = 2;

/// Tokenises documents into the file at `path`.
///
/// One thread reads and unpacks, all tokenise, and the tokens are written in the order of the documents.
pub(super) fn build(
    mut documents: Documents,
    tokenizer: &Tokenizer,
    key: &Key,
    path: &Path,
    progress: &mut dyn FnMut(CacheProgress),
) -> Result<(), DataError> {
    let failed = |source| DataError::cache(path, source);
    let folder = path.parent().unwrap_or(Path::new("."));
    let temporary = tempfile::Builder::new()
        .prefix(&format!("{}.", key.name()))
        .suffix(UNFINISHED)
        .tempfile_in(folder)
        .map_err(failed)?;
    let mut writer = Writer::new(temporary.as_file(), key).map_err(failed)?;

    let report = std::thread::scope(|scope| -> Result<ReadReport, DataError> {
        let (send, receive) = mpsc::sync_channel(AHEAD);
        let reader = scope.spawn(move || {
            for chunk in pack::chunks(&mut documents) {
                let last = chunk.is_err();
                // Nobody listens any more after an error of the tokenizer or the disk.
                if send.send(chunk).is_err() || last {
                    break;
                }
            }
            documents.report().clone()
        });
        let separator = tokenizer.vocabulary().sep;
        let mut done = CacheProgress {
            documents: 0,
            tokens: 0,
        };
        for chunk in receive {
            let encoded = pack::encode(chunk?, tokenizer)?;
            done.documents += encoded.len() as u64;
            for tokens in encoded {
                if writer.tokens > 0
                    && let Some(separator) = separator
                {
                    writer.write(&[separator]).map_err(failed)?;
                }
                writer.write(&tokens).map_err(failed)?;
            }
            done.tokens = writer.tokens;
            progress(done);
        }
        Ok(reader
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })?;

    writer.finish(report).map_err(failed)?;
    temporary.as_file().sync_all().map_err(failed)?;
    temporary.persist(path).map_err(|error| failed(error.error))?;
    // The name is safe once the folder is; not every system lets one sync a folder.
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// Removes what killed processes left of this cache. Only who holds its lock may.
pub(super) fn remove_leftovers(folder: &Path, name: &str) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let file = entry.file_name();
        let file = file.to_string_lossy();
        if file.starts_with(name) && file.ends_with(UNFINISHED) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Writes tokens behind a header that is filled in at the end.
struct Writer<'a> {
    file: BufWriter<&'a File>,
    header: Header,
    crc32: crc32fast::Hasher,
    tokens: u64,
    buffer: Vec<u8>,
}

/// Kept for the header: a report has some twenty reasons of a few hundred bytes.
const ROOM: usize = 16 << 10;

impl<'a> Writer<'a> {
    fn new(file: &'a File, key: &Key) -> std::io::Result<Self> {
        let header = Header {
            program: format!("wqk {}", env!("CARGO_PKG_VERSION")),
            corpus: key.corpus.clone(),
            tokenizer: key.tokenizer.clone(),
            width: width(key.vocabulary),
            tokens: 0,
            crc32: 0,
            report: ReadReport::default(),
        };
        let mut file = BufWriter::with_capacity(1 << 20, file);
        // Spaces, not the magic: a file that never got its header is no cache.
        file.write_all(&vec![b' '; ROOM])?;
        Ok(Self {
            file,
            header,
            crc32: crc32fast::Hasher::new(),
            tokens: 0,
            buffer: Vec::new(),
        })
    }

    fn write(&mut self, tokens: &[u32]) -> std::io::Result<()> {
        self.buffer.clear();
        if self.header.width == 2 {
            // The vocabulary has at most 2¹⁶ tokens.
            self.buffer
                .extend(tokens.iter().flat_map(|&token| (token as u16).to_le_bytes()));
        } else {
            self.buffer
                .extend(tokens.iter().flat_map(|&token| token.to_le_bytes()));
        }
        self.crc32.update(&self.buffer);
        self.tokens += tokens.len() as u64;
        self.file.write_all(&self.buffer)
    }

    fn finish(mut self, report: ReadReport) -> std::io::Result<()> {
        self.header.tokens = self.tokens;
        self.header.crc32 = self.crc32.clone().finalize();
        self.header.report = report;
        let mut header = self.header.to_bytes(ROOM)?;
        // Where the report is larger than the room, its counts stay and the last reasons go.
        while header.len() > ROOM && self.header.report.reasons.pop().is_some() {
            header = self.header.to_bytes(ROOM)?;
        }
        self.file.flush()?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&header)?;
        self.file.flush()
    }
}
