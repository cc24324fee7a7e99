//! From a hub to a folder that holds what the scores need.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::client::{Client, Listing};
use super::{HubError, HubModel};
use crate::checkpoint::format::shards;
use crate::checkpoint::{Checkpoint, Options, open};

const WEIGHTS: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

/// Fetched at first of each weight file: most headers fit.
const BEGINNING: u64 = 1 << 18;
/// The longest header, as the reader of the format has it, with its length before it.
const LONGEST_HEADER: u64 = 100_000_008;
/// The longest text file.
const LONGEST_TEXT: u64 = 100_000_000;
/// Bytes of one request: a request that fails costs no more.
const REQUEST: u64 = 32 << 20;
/// Bytes between two tensors that are fetched rather than asked around.
const GAP: u64 = 1 << 16;
/// Requests at a time.
const AT_ONCE: usize = 4;

struct Fetch<'a, P> {
    client: &'a Client,
    model: &'a HubModel,
    commit: &'a str,
    folder: PathBuf,
    progress: Mutex<Progress<P>>,
}

struct Progress<P> {
    done: u64,
    all: u64,
    say: P,
}

pub(super) fn fetch<P: FnMut(u64, u64) + Send>(
    client: &Client,
    model: &HubModel,
    listing: &Listing,
    options: &Options,
    into: &Path,
    progress: P,
) -> Result<PathBuf, HubError> {
    // Called as in the hub's cache, by which a report knows the model and its commit.
    let folder = into
        .join(format!("models--{}", model.repository.replace('/', "--")))
        .join("snapshots")
        .join(&listing.sha);
    let fetch = Fetch {
        client,
        model,
        commit: &listing.sha,
        folder,
        progress: Mutex::new(Progress {
            done: 0,
            all: 0,
            say: progress,
        }),
    };
    std::fs::create_dir_all(&fetch.folder).map_err(|source| write_error(&fetch.folder, source))?;
    if listing.holds("config.json") {
        fetch.whole("config.json")?;
    }
    let files = if listing.holds(WEIGHTS) {
        vec![WEIGHTS.to_owned()]
    } else if listing.holds(INDEX) {
        fetch.whole(INDEX)?;
        shards(&fetch.folder.join(INDEX)).map_err(crate::checkpoint::CheckpointError::from)?
    } else {
        return Err(HubError::NoSafetensors { model: model.clone() });
    };
    each(&files, |file| fetch.header(file))?;
    // With the headers there, all is known but the numbers; what is to be read of them says where they are.
    let ranges = needed(&open(&fetch.folder, options)?);
    fetch.announce(ranges.iter().map(|(_, range)| range.end - range.start).sum());
    each(&ranges, |(file, range)| fetch.range(file, range.clone()))?;
    Ok(fetch.folder)
}

impl<P: FnMut(u64, u64) + Send> Fetch<'_, P> {
    fn path(&self, file: &str) -> PathBuf {
        self.folder.join(file)
    }

    fn announce(&self, bytes: u64) {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).all += bytes;
    }

    fn got(&self, bytes: usize) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.done += bytes as u64;
        progress.all = progress.all.max(progress.done);
        let (done, all) = (progress.done, progress.all);
        (progress.say)(done, all);
    }

    /// A short file as it is.
    fn whole(&self, file: &str) -> Result<(), HubError> {
        let part = self.client.part(self.model, self.commit, file, 0..LONGEST_TEXT)?;
        self.got(part.bytes.len());
        let path = self.path(file);
        std::fs::write(&path, part.bytes).map_err(|source| write_error(&path, source))
    }

    /// The header of a weight file, in a file of the full length.
    fn header(&self, file: &str) -> Result<(), HubError> {
        let mut part = self.client.part(self.model, self.commit, file, 0..BEGINNING)?;
        let length = part
            .bytes
            .first_chunk()
            .map_or(0, |length| u64::from_le_bytes(*length));
        let end = length.saturating_add(8).min(LONGEST_HEADER).min(part.length);
        let have = part.bytes.len() as u64;
        if end > have {
            let rest = self.client.part(self.model, self.commit, file, have..end)?;
            part.bytes.extend(rest.bytes);
        }
        self.got(part.bytes.len());
        let path = self.path(file);
        let write = || {
            let mut sparse = File::create(&path)?;
            sparse.set_len(part.length)?;
            sparse.write_all(&part.bytes)
        };
        write().map_err(|source| write_error(&path, source))
    }

    /// A part of a weight file, in its place.
    fn range(&self, file: &Path, range: Range<u64>) -> Result<(), HubError> {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let part = self.client.part(self.model, self.commit, &name, range.clone())?;
        if part.bytes.len() as u64 != range.end - range.start {
            return Err(HubError::Answer {
                url: name.into_owned(),
                what: "the file became shorter while it was fetched".into(),
            });
        }
        self.got(part.bytes.len());
        let write = || {
            let mut sparse = File::options().write(true).open(file)?;
            sparse.seek(SeekFrom::Start(range.start))?;
            sparse.write_all(&part.bytes)
        };
        write().map_err(|source| write_error(file, source))
    }
}

/// The parts of the files that scoring reads, in pieces for one request each.
fn needed(checkpoint: &Checkpoint) -> Vec<(PathBuf, Range<u64>)> {
    let mut files: BTreeMap<&Path, Vec<Range<u64>>> = BTreeMap::new();
    for name in checkpoint.tensors() {
        if let Some(tensor) = checkpoint.store().info(name) {
            files.entry(&tensor.file).or_default().push(tensor.bytes.clone());
        }
    }
    let mut pieces = Vec::new();
    for (file, mut ranges) in files {
        ranges.sort_by_key(|range| range.start);
        let mut joined: Vec<Range<u64>> = Vec::new();
        for range in ranges {
            match joined.last_mut() {
                Some(last) if range.start <= last.end.saturating_add(GAP) => {
                    last.end = last.end.max(range.end)
                }
                _ => joined.push(range),
            }
        }
        for range in joined {
            let starts = (range.start..range.end).step_by(REQUEST as usize);
            pieces.extend(starts.map(|start| (file.to_owned(), start..range.end.min(start + REQUEST))));
        }
    }
    pieces
}

/// Runs a few at a time, and gives the first error.
fn each<T: Sync>(items: &[T], work: impl Fn(&T) -> Result<(), HubError> + Sync) -> Result<(), HubError> {
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(None);
    let run = || {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(error) = work(item) {
                next.store(items.len(), Ordering::Relaxed);
                let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                failed.get_or_insert(error);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(items.len()) {
            scope.spawn(run);
        }
    });
    match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

fn write_error(path: &Path, source: std::io::Error) -> HubError {
    HubError::Write {
        path: path.display().to_string(),
        source,
    }
}
