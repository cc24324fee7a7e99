//! Tokens of a corpus on disk, made once.
//!
//! A corpus is tokenised into one file, which later runs map into memory. The file's name is a hash of what
//! was read (every file's content, in order, and what the [`CorpusSpec`] says of them) and of the tokenizer,
//! so that another corpus or another tokenizer never meets it; the length of the sequences is no part of it.

mod build;
mod file;
mod key;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use file::Mapped;

use super::{CorpusSpec, DataError, ReadReport, Sequences, Tokenizer};

/// Sequences of a corpus, read from its cache at random access.
///
/// The file is mapped into memory: the system reads what is asked for and keeps what fits, so that a corpus
/// may be larger than the memory. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct CachedSequences {
    tokens: Arc<Mapped>,
    first: usize,
    len: usize,
    n: usize,
}

/// How a cache came to be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CacheState {
    /// It was there.
    Found,
    /// It was made.
    Built,
    /// One was there, but damaged; it was made again.
    Rebuilt {
        /// What was wrong with it.
        problem: String,
    },
}

/// What opening a cache gives.
#[derive(Debug, Clone)]
pub struct Cached {
    /// The sequences.
    pub sequences: CachedSequences,
    /// What was read and passed over when the cache was made.
    pub report: ReadReport,
    /// Whether it was there or had to be made.
    pub state: CacheState,
    /// [`CorpusSpec::sha256`].
    pub corpus: String,
    /// The file.
    pub path: PathBuf,
}

/// How far the making of a cache is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheProgress {
    /// Documents that were tokenised.
    pub documents: u64,
    /// Tokens that came of them.
    pub tokens: u64,
}

/// Where caches lie if nobody says otherwise: `$WQK_CACHE`, or `wqk` in the user's folder for caches, or
/// `.wqk-cache` in the current folder.
pub fn default_cache_folder() -> PathBuf {
    let set = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    set("WQK_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|folder| folder.join("wqk")))
        .or_else(|| set("HOME").map(|home| home.join(".cache/wqk")))
        .or_else(|| set("LOCALAPPDATA").map(|folder| folder.join("wqk")))
        .unwrap_or_else(|| ".wqk-cache".into())
}

impl CorpusSpec {
    /// Opens the corpus as sequences of `n` tokens from its cache in `folder`, which is made first if it is
    /// not there.
    ///
    /// All files are read once to find the cache (their hash is its name), and the cache is checked against
    /// its own checksum: about a second for each gigabyte of either. Making it takes bounded memory; it is
    /// written under another name, synced, and renamed, so that a cache is whole or not there. Of several
    /// processes that want the same one, one makes it and the others wait.
    ///
    /// # Errors
    /// As [`documents`](Self::documents) and [`Packed::new`](super::Packed::new);
    /// [`DataError::Cache`] where the cache cannot be written, or where a file of its name is no cache.
    pub fn cached(
        &self,
        base: &Path,
        tokenizer: &Tokenizer,
        n: usize,
        folder: &Path,
        progress: &mut dyn FnMut(CacheProgress),
    ) -> Result<Cached, DataError> {
        if n < 2 {
            return Err(DataError::SequenceLength(n));
        }
        let files = self.files(base)?;
        let key = key::Key::new(self.sha256(base)?, tokenizer)?;
        let path = folder.join(format!("{}.tokens", key.name()));
        let failed = |source| DataError::cache(folder, source);
        let problem = match Mapped::open(&path, &key)? {
            Opened::Whole(tokens) => return finish(tokens, n, CacheState::Found, key, path),
            Opened::Absent => None,
            Opened::Damaged(problem) => Some(problem),
        };
        std::fs::create_dir_all(folder).map_err(failed)?;
        let lock = Lock::take(folder.join(format!("{}.lock", key.name())))?;
        // While this process waited for the lock, another may have made it.
        let (tokens, state) = match Mapped::open(&path, &key)? {
            Opened::Whole(tokens) => (tokens, CacheState::Found),
            _ => {
                if let Some(problem) = &problem {
                    tracing::warn!("{}: {problem}: it is made again", path.display());
                }
                if lock.is_held() {
                    build::remove_leftovers(folder, &key.name());
                }
                let documents = super::Documents::of_files(self.clone(), files);
                build::build(documents, tokenizer, &key, &path, progress)?;
                let Opened::Whole(tokens) = Mapped::open(&path, &key)? else {
                    let problem = "what was just written to it cannot be read back: check the disk";
                    return Err(DataError::cache(&path, std::io::Error::other(problem)));
                };
                let state = problem.map_or(CacheState::Built, |problem| CacheState::Rebuilt { problem });
                (tokens, state)
            }
        };
        drop(lock);
        finish(tokens, n, state, key, path)
    }
}

fn finish(
    tokens: Mapped,
    n: usize,
    state: CacheState,
    key: key::Key,
    path: PathBuf,
) -> Result<Cached, DataError> {
    let len = tokens.len() / n;
    if len == 0 {
        return Err(DataError::TooFewTokens {
            tokens: tokens.len(),
            n,
            have: 0,
            need: 1,
        });
    }
    Ok(Cached {
        report: tokens.header().report.clone(),
        state,
        corpus: key.corpus,
        path,
        sequences: CachedSequences {
            tokens: Arc::new(tokens),
            first: 0,
            len,
            n,
        },
    })
}

/// What is at the place of a cache.
enum Opened {
    Whole(Mapped),
    Absent,
    /// A cache that cannot be used, and why.
    Damaged(String),
}

impl CachedSequences {
    /// Parts the sequences into those to train on and, from the end, those held out: the given share of
    /// them, rounded up.
    ///
    /// # Errors
    /// As [`Packed::hold_out`](super::Packed::hold_out).
    pub fn hold_out(self, share: f64) -> Result<(Self, Self), DataError> {
        if !(share > 0.0 && share < 1.0) {
            return Err(DataError::HeldOutShare(share));
        }
        let held_out = (self.len as f64 * share).ceil() as usize;
        if held_out >= self.len {
            return Err(DataError::TooFewTokens {
                tokens: self.len * self.n,
                n: self.n,
                have: self.len,
                need: held_out + 1,
            });
        }
        let train = Self {
            len: self.len - held_out,
            ..self.clone()
        };
        let held_out = Self {
            first: self.first + train.len,
            len: held_out,
            ..self
        };
        Ok((train, held_out))
    }
}

impl Sequences for CachedSequences {
    fn n(&self) -> usize {
        self.n
    }

    fn len(&self) -> usize {
        self.len
    }

    fn copy_to(&self, index: usize, into: &mut [u32]) {
        assert!(index < self.len, "sequence {index} of {}", self.len);
        assert_eq!(into.len(), self.n, "the buffer must hold one sequence");
        self.tokens.copy_to((self.first + index) * self.n, into);
    }
}

/// The right to make a cache, which one process has at a time.
struct Lock {
    path: PathBuf,
    /// Absent where the file system knows no locks: then two processes may make the same cache, which costs
    /// time and harms nothing, since each renames a whole file into place.
    file: Option<File>,
}

impl Lock {
    fn take(path: PathBuf) -> Result<Self, DataError> {
        let file = File::options()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(|source| DataError::cache(&path, source))?;
        let file = file.lock().is_ok().then_some(file);
        Ok(Self { path, file })
    }

    fn is_held(&self) -> bool {
        self.file.is_some()
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Those who wait hold the file open and find the cache when they get the lock.
        if self.is_held() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests;
