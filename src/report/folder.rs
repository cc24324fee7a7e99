//! A report folder that appears whole or not at all.

use std::io;
use std::path::{Path, PathBuf};

use super::drafts::{Draft, cannot_make};

/// The file by which a folder is known as a report of ours, and may be replaced by a newer one.
const MARK: &str = "settings.json";

/// A folder that is filled beside its final place and moved there when it is complete.
///
/// An older report at that place stays until then. A folder that is no report of ours is never touched.
#[derive(Debug)]
pub struct ReportFolder {
    target: PathBuf,
    draft: tempfile::TempDir,
    registered: Draft,
}

impl ReportFolder {
    /// Makes sure that a report can be written to `target`, before the work that leads to it.
    ///
    /// # Errors
    /// Where `target` is a file or a folder that is no report, or its parent cannot be written.
    pub fn open(target: &Path) -> io::Result<Self> {
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
        check(&target)?;
        let parent = target.parent().ok_or_else(no_name)?;
        let draft = tempfile::Builder::new()
            .prefix(".wqk-report-")
            .tempdir_in(parent)
            .map_err(|error| fail(error, parent))?;
        let registered = Draft::new(draft.path());
        Ok(Self {
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
        replace(&draft, &self.target)
            .map(|()| self.target)
            .map_err(|error| {
                io::Error::new(
                    error.kind(),
                    format!("{error}; the report is in '{}'", draft.display()),
                )
            })
    }
}

fn replace(draft: &Path, target: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        // Temporary folders are closed to others, a report is not.
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(draft, std::fs::Permissions::from_mode(0o755))?;
    }
    // The run was long: look again.
    check(target)?;
    if !target.exists() {
        return std::fs::rename(draft, target);
    }
    let parent = target.parent().ok_or_else(no_name)?;
    let old = tempfile::Builder::new()
        .prefix(".wqk-old-report-")
        .tempdir_in(parent)?;
    let aside = old.path().join("report");
    std::fs::rename(target, &aside)?;
    std::fs::rename(draft, target).or_else(|error| std::fs::rename(&aside, target).and(Err(error)))
}

/// Refuses to write where something stands that is no report of ours.
fn check(target: &Path) -> io::Result<()> {
    if target.exists() && !is_report(target) {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "it exists and is no earlier report: name another folder or remove it",
        ));
    }
    Ok(())
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

fn is_report(folder: &Path) -> bool {
    std::fs::read(folder.join(MARK))
        .ok()
        .and_then(|bytes| serde_json::from_slice::<serde_json::Value>(&bytes).ok())
        .is_some_and(|settings| {
            settings
                .get("program")
                .and_then(|p| p.as_str())
                .is_some_and(|p| p.starts_with("wqk "))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_a_report_and_nothing_else() {
        let here = tempfile::tempdir().unwrap();
        let target = here.path().join("deep/report");
        for text in ["first", "second"] {
            let folder = ReportFolder::open(&target).unwrap();
            std::fs::write(folder.path().join(MARK), r#"{"program":"wqk 0.1.0"}"#).unwrap();
            std::fs::write(folder.path().join("index.html"), text).unwrap();
            assert_eq!(folder.commit().unwrap(), target);
            assert_eq!(std::fs::read_to_string(target.join("index.html")).unwrap(), text);
        }
        // Neither drafts nor the older report are left behind.
        assert_eq!(std::fs::read_dir(here.path().join("deep")).unwrap().count(), 1);

        let thesis = here.path().join("thesis");
        std::fs::create_dir(&thesis).unwrap();
        std::fs::write(thesis.join("chapter.tex"), "years of work").unwrap();
        assert!(ReportFolder::open(&thesis).is_err());
        assert!(ReportFolder::open(&thesis.join("chapter.tex")).is_err());
    }

    #[test]
    fn a_folder_that_comes_to_stand_there_is_kept_and_so_is_the_report() {
        let here = tempfile::tempdir().unwrap();
        let target = here.path().join("report");
        let folder = ReportFolder::open(&target).unwrap();
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
            let error = ReportFolder::open(&target).unwrap_err().to_string();
            assert!(error.contains(named) && !error.contains(".wqk-"), "{error}");
        }
    }

    #[test]
    fn a_dropped_draft_leaves_the_older_report() {
        let here = tempfile::tempdir().unwrap();
        let target = here.path().join("report");
        let folder = ReportFolder::open(&target).unwrap();
        std::fs::write(folder.path().join(MARK), r#"{"program":"wqk 0.1.0"}"#).unwrap();
        folder.commit().unwrap();
        let draft = ReportFolder::open(&target).unwrap();
        std::fs::write(draft.path().join("index.html"), "half").unwrap();
        drop(draft);
        assert!(!target.join("index.html").exists());
        assert_eq!(std::fs::read_dir(here.path()).unwrap().count(), 1);
    }
}
