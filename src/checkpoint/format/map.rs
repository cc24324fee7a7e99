//! A file mapped into memory.

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use memmap2::Mmap;

use super::FormatError;

/// A read-only mapping of a whole file; pages are read when they are touched, and belong to the
/// file, not to the process's private memory.
#[derive(Debug)]
pub(super) struct MappedFile {
    pub path: Arc<Path>,
    map: Mmap,
}

impl MappedFile {
    /// Maps a regular file, following symbolic links.
    pub(super) fn open(path: &Path) -> Result<Self, FormatError> {
        let io = |source| FormatError::Io {
            path: path.to_owned(),
            source,
        };
        // Before opening: opening a pipe would wait for its writer.
        let kind = std::fs::metadata(path).map_err(io)?;
        if !kind.is_file() {
            return Err(FormatError::NoWeights {
                path: path.to_owned(),
                what: "this is not a regular file".into(),
                remedy: "name a checkpoint folder or a tensor file",
            });
        }
        if kind.len() == 0 {
            return Err(FormatError::Truncated {
                path: path.to_owned(),
                what: "the file is empty".into(),
            });
        }
        let file = File::open(path).map_err(io)?;
        // SAFETY: the mapping is read-only and private to this struct, and is only ever seen as
        // bytes, for which every value is valid. As with every mapping, a file that another program
        // shortens while it is being read ends this one by a signal.
        #[allow(unsafe_code)]
        let map = unsafe { Mmap::map(&file) }.map_err(io)?;
        Ok(Self {
            path: path.into(),
            map,
        })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.map
    }

    /// Tells the system that a range is about to be read whole, so that it reads ahead.
    pub(super) fn will_read(&self, range: &Range<usize>) {
        #[cfg(unix)]
        if !range.is_empty() {
            // Advice only: a failure changes nothing but speed.
            let _ = self
                .map
                .advise_range(memmap2::Advice::WillNeed, range.start, range.len());
        }
        #[cfg(not(unix))]
        let _ = range;
    }
}
