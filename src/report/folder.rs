//! A report folder that appears whole or not at all.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::drafts::{Draft, cannot_make};

/// The file that lists what a report consists of: a newer one replaces that and nothing else.
const MANIFEST: &str = ".wqk-report.json";

/// A folder that is filled beside its final place and moved there when it is complete.
///
/// An older report of the same command at that place stays until then. A folder that holds anything else, be it one
/// file that a user has put there, is never touched.
#[derive(Debug)]
pub struct ReportFolder {
    command: &'static str,
    target: PathBuf,
    draft: tempfile::TempDir,
    registered: Draft,
}

impl ReportFolder {
    /// Makes sure that the report of a command can be written to `target`, before the work that leads to it.
    ///
    /// # Errors
    /// Where `target` is a file or holds anything but an older report of that command, or its parent cannot be written.
    pub fn open(target: &Path, command: &'static str) -> io::Result<Self> {
        let parent = match target.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let fail = |error: io::Error, folder: &Path| cannot_make("folder", &error, folder);
        std::fs::create_dir_all(parent).map_err(|error| fail(error, existing(parent)))?;
        // By its full name from here on: `.` cannot be renamed, and what it means may change.
        let target = match std::fs::symlink_metadata(target) {
            Ok(_) => std::fs::canonicalize(target)?,
            Err(_) => std::fs::canonicalize(parent)?.join(target.file_name().ok_or_else(no_name)?),
        };
        check(&target, command)?;
        let parent = target.parent().ok_or_else(no_name)?;
        let draft = tempfile::Builder::new()
            .prefix(".wqk-report-")
            .tempdir_in(parent)
            .map_err(|error| fail(error, parent))?;
        let registered = Draft::new(draft.path());
        Ok(Self {
            command,
            target,
            draft,
            registered,
        })
    }

    /// Where to write the files.
    pub fn path(&self) -> &Path {
        self.draft.path()
    }

    /// Moves the report to its place and returns that.
    ///
    /// # Errors
    /// Where something that is no report has come to stand there, or the system refuses: the report then stays
    /// in its draft, which the error names, and what was there is untouched.
    pub fn commit(self) -> io::Result<PathBuf> {
        // From here on the draft is worth keeping.
        drop(self.registered);
        let draft = self.draft.keep();
        Manifest::write(&draft, self.command)
            .and_then(|()| replace(&draft, &self.target, self.command))
            .map(|()| self.target)
            .map_err(|error| {
                io::Error::new(
                    error.kind(),
                    format!("{error}; the report is in '{}'", draft.display()),
                )
            })
    }
}

/// What a report consists of.
#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    program: String,
    command: String,
    /// All files, by their path within.
    files: BTreeSet<PathBuf>,
}

impl Manifest {
    fn write(folder: &Path, command: &str) -> io::Result<()> {
        let manifest = Self {
            program: format!("wqk {}", env!("CARGO_PKG_VERSION")),
            command: command.to_owned(),
            files: files(folder)?,
        };
        std::fs::write(folder.join(MANIFEST), serde_json::to_vec_pretty(&manifest)?)
    }

    fn read(folder: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(folder.join(MANIFEST)).ok()?).ok()
    }
}

/// Everything in a folder but its manifest and the folders themselves; links are not followed.
fn files(folder: &Path) -> io::Result<BTreeSet<PathBuf>> {
    fn add(folder: &Path, within: &Path, files: &mut BTreeSet<PathBuf>) -> io::Result<()> {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let path = within.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                add(&entry.path(), &path, files)?;
            } else if path != Path::new(MANIFEST) {
                files.insert(path);
            }
        }
        Ok(())
    }
    let mut files = BTreeSet::new();
    add(folder, Path::new(""), &mut files)?;
    Ok(files)
}

fn replace(draft: &Path, target: &Path, command: &str) -> io::Result<()> {
    #[cfg(unix)]
    {
        // Temporary folders are closed to others, a report is not.
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(draft, std::fs::Permissions::from_mode(0o755))?;
    }
    // The run was long: look again.
    check(target, command)?;
    if !target.exists() {
        return std::fs::rename(draft, target);
    }
    if exchange(draft, target).is_ok() {
        return std::fs::remove_dir_all(draft);
    }
    let parent = target.parent().ok_or_else(no_name)?;
    let old = tempfile::Builder::new()
        .prefix(".wqk-old-report-")
        .tempdir_in(parent)?;
    let aside = old.path().join("report");
    std::fs::rename(target, &aside)?;
    std::fs::rename(draft, target).or_else(|error| std::fs::rename(&aside, target).and(Err(error)))
}

/// Lets two folders change places, so that at no moment is there none.
#[cfg(all(target_os = "linux", feature = "cli"))]
fn exchange(a: &Path, b: &Path) -> io::Result<()> {
    use std::os::unix::ffi::OsStrExt;
    let name = |path: &Path| std::ffi::CString::new(path.as_os_str().as_bytes());
    let (a, b) = (name(a)?, name(b)?);
    // SAFETY: both are strings that end in 0 and live until the call returns.
    #[allow(unsafe_code)]
    let result = unsafe {
        libc::renameat2(
            libc::AT_FDCWD,
            a.as_ptr(),
            libc::AT_FDCWD,
            b.as_ptr(),
            libc::RENAME_EXCHANGE,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(not(all(target_os = "linux", feature = "cli")))]
fn exchange(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Refuses to write where anything stands that an earlier report of the command did not write.
fn check(target: &Path, command: &str) -> io::Result<()> {
    let refuse = |why: String| {
        let text = format!("{why}: name another folder or remove it");
        Err(io::Error::new(io::ErrorKind::AlreadyExists, text))
    };
    if !target.exists() {
        return Ok(());
    }
    let Some(manifest) = Manifest::read(target) else {
        return refuse("it exists and is no earlier report".to_owned());
    };
    if manifest.command != command {
        return refuse(format!("it holds a report of `wqk {}`", manifest.command));
    }
    match files(target)?.difference(&manifest.files).next() {
        Some(other) => refuse(format!("it holds '{}', which no report wrote", other.display())),
        None => Ok(()),
    }
}

/// The innermost folder of a path that is there.
fn existing(path: &Path) -> &Path {
    path.ancestors()
        .find(|path| path.exists())
        .unwrap_or(Path::new("."))
}

fn no_name() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it has no name: name a folder")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_a_report_and_nothing_else() {
        let here = tempfile::tempdir().unwrap();
        let target = here.path().join("deep/report");
        for text in ["first", "second"] {
            let folder = ReportFolder::open(&target, "demo").unwrap();
            std::fs::write(folder.path().join("index.html"), text).unwrap();
            assert_eq!(folder.commit().unwrap(), target);
            assert_eq!(std::fs::read_to_string(target.join("index.html")).unwrap(), text);
        }
        // Neither drafts nor the older report are left behind.
        assert_eq!(std::fs::read_dir(here.path().join("deep")).unwrap().count(), 1);

        // Of another command.
        let error = ReportFolder::open(&target, "compare").unwrap_err().to_string();
        assert!(error.contains("`wqk demo`"), "{error}");
        // With a file of the user's.
        std::fs::create_dir(target.join("notes")).unwrap();
        std::fs::write(target.join("notes/ideas.txt"), "hours of work").unwrap();
        let error = ReportFolder::open(&target, "demo").unwrap_err().to_string();
        assert!(error.contains("ideas.txt"), "{error}");

        let thesis = here.path().join("thesis");
        std::fs::create_dir(&thesis).unwrap();
        std::fs::write(thesis.join("chapter.tex"), "years of work").unwrap();
        assert!(ReportFolder::open(&thesis, "demo").is_err());
        assert!(ReportFolder::open(&thesis.join("chapter.tex"), "demo").is_err());
    }

    #[test]
    fn a_folder_that_comes_to_stand_there_is_kept_and_so_is_the_report() {
        let here = tempfile::tempdir().unwrap();
        let target = here.path().join("report");
        let folder = ReportFolder::open(&target, "demo").unwrap();
        std::fs::write(folder.path().join("index.html"), "found").unwrap();
        let draft = folder.path().to_owned();
        std::fs::create_dir(&target).unwrap();
        std::fs::write(target.join("thesis.txt"), "precious").unwrap();
        let error = folder.commit().unwrap_err().to_string();
        assert!(error.contains(&draft.display().to_string()), "{error}");
        assert_eq!(
            std::fs::read_to_string(target.join("thesis.txt")).unwrap(),
            "precious"
        );
        assert_eq!(
            std::fs::read_to_string(draft.join("index.html")).unwrap(),
            "found"
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn errors_name_the_place_and_no_draft() {
        let here = tempfile::tempdir().unwrap();
        let file = here.path().join("file");
        std::fs::write(&file, "").unwrap();
        for (target, named) in [
            (Path::new("/proc/report").to_owned(), "'/proc'"),
            (Path::new("/proc/deep/report").to_owned(), "'/proc'"),
            (file.join("report"), "is not a folder"),
        ] {
            let error = ReportFolder::open(&target, "demo").unwrap_err().to_string();
            assert!(error.contains(named) && !error.contains(".wqk-"), "{error}");
        }
    }

    #[test]
    fn a_dropped_draft_leaves_the_older_report() {
        let here = tempfile::tempdir().unwrap();
        let target = here.path().join("report");
        let folder = ReportFolder::open(&target, "demo").unwrap();
        folder.commit().unwrap();
        let draft = ReportFolder::open(&target, "demo").unwrap();
        std::fs::write(draft.path().join("index.html"), "half").unwrap();
        drop(draft);
        assert!(!target.join("index.html").exists());
        assert_eq!(std::fs::read_dir(here.path()).unwrap().count(), 1);
    }
}
