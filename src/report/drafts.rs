//! Files and folders that are not finished yet, so that a program that is interrupted can take them away.
//!
//! Temporary files vanish when their owner is dropped; a signal ends a program without that.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

static DRAFTS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn drafts() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    DRAFTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file or folder that [`remove_all`] removes, for as long as this lives.
#[derive(Debug)]
pub struct Draft(PathBuf);

impl Draft {
    /// Remembers a path.
    pub fn new(path: &Path) -> Self {
        drafts().insert(path.to_owned());
        Self(path.to_owned())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        drafts().remove(&self.0);
    }
}

/// Removes what is unfinished. To be called where the program ends without dropping its values.
///
/// Drafts that are made or finished by other threads wait until this is done.
pub fn remove_all() {
    let mut drafts = drafts();
    remove(&std::mem::take(&mut *drafts));
}

fn remove(drafts: &BTreeSet<PathBuf>) {
    for path in drafts {
        // What cannot be removed cannot be helped: the program is about to end.
        let _ = std::fs::remove_file(path).or_else(|_| std::fs::remove_dir_all(path));
    }
}

/// Why no file (or other `kind`) can be made in a folder, without the name of the draft, and what to do about it.
pub(crate) fn cannot_make(kind: &str, error: &io::Error, folder: &Path) -> io::Error {
    let name = folder.display();
    let text = match error.kind() {
        _ if folder.exists() && !folder.is_dir() => {
            format!("'{name}' is not a folder: name a {kind} in a folder")
        }
        io::ErrorKind::NotFound if !folder.exists() => {
            format!("there is no folder '{name}': make it first, with mkdir -p '{name}'")
        }
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            format!("no new {kind} may be made in '{name}': name a {kind} in another folder")
        }
        other => format!("no {kind} can be made in '{name}', {other}: name a {kind} in another folder"),
    };
    io::Error::new(error.kind(), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_unfinished_is_removed() {
        let here = tempfile::tempdir().unwrap();
        let [finished, file, folder] = ["finished", "file", "folder"].map(|name| here.path().join(name));
        std::fs::write(&finished, "").unwrap();
        std::fs::write(&file, "").unwrap();
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("part"), "").unwrap();
        drop(Draft::new(&finished));
        let (_file, _folder) = (Draft::new(&file), Draft::new(&folder));
        // Other tests have drafts of their own.
        let mut ours = drafts().clone();
        ours.retain(|path| path.starts_with(here.path()));
        remove(&ours);
        assert!(finished.exists() && !file.exists() && !folder.exists());
    }
}
