//! A report folder that appears whole or not at all.

use std::io;
use std::path::{Path, PathBuf};

/// The file by which a folder is known as a report of ours, and may be replaced by a newer one.
const MARK: &str = "settings.json";

/// A folder that is filled beside its final place and moved there when it is complete.
///
/// An older report at that place stays until then. A folder that is no report of ours is never touched.
#[derive(Debug)]
pub struct ReportFolder {
    target: PathBuf,
    draft: tempfile::TempDir,
}

impl ReportFolder {
    /// Makes sure that a report can be written to `target`, before the work that leads to it.
    ///
    /// # Errors
    /// Where `target` is a file or a folder that is no report, or its parent cannot be written.
    pub fn open(target: &Path) -> io::Result<Self> {
        if target.exists() && !is_report(target) {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "it exists and is no earlier report: name another folder or remove it",
            ));
        }
        let parent = match target.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        std::fs::create_dir_all(parent)?;
        let draft = tempfile::Builder::new()
            .prefix(".wqk-report-")
            .tempdir_in(parent)?;
        Ok(Self {
            target: target.to_owned(),
            draft,
        })
    }

    /// Where to write the files.
    pub fn path(&self) -> &Path {
        self.draft.path()
    }

    /// Moves the report to its place and returns that.
    ///
    /// # Errors
    /// Whatever the system says; the older report is then still there.
    pub fn commit(self) -> io::Result<PathBuf> {
        #[cfg(unix)]
        {
            // Temporary folders are closed to others, a report is not.
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(self.draft.path(), std::fs::Permissions::from_mode(0o755))?;
        }
        if self.target.exists() {
            let old = tempfile::Builder::new()
                .prefix(".wqk-old-report-")
                .tempdir_in(self.draft.path().parent().unwrap_or(Path::new(".")))?;
            let aside = old.path().join("report");
            std::fs::rename(&self.target, &aside)?;
            if let Err(error) = std::fs::rename(self.draft.path(), &self.target) {
                std::fs::rename(&aside, &self.target)?;
                return Err(error);
            }
        } else {
            std::fs::rename(self.draft.path(), &self.target)?;
        }
        // It is no longer where the temporary folder was, so there is nothing to remove.
        let _ = self.draft.keep();
        Ok(self.target)
    }
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
