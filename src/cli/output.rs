//! Where results go: standard output, or files that appear whole or not at all.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use tempfile::NamedTempFile;

use super::Usage;
use crate::report::drafts::{Draft, cannot_make};

/// Whether the process began without a standard output, which its `main` has to find out.
pub static STDOUT_IS_CLOSED: AtomicBool = AtomicBool::new(false);

fn check_stdout() -> anyhow::Result<()> {
    anyhow::ensure!(
        !STDOUT_IS_CLOSED.load(Ordering::Relaxed),
        "standard output is closed, and results go there: name a file with -o, or do not close it"
    );
    Ok(())
}

/// A place for a result, opened before the long work that leads to it.
///
/// A file is written beside its final place and renamed into it by [`Output::commit`], so that neither
/// an error nor an interruption leaves half a file behind, and an older file stays until then.
#[derive(Debug)]
pub struct Output {
    target: Target,
    name: String,
}

#[derive(Debug)]
enum Target {
    Stdout,
    /// A device or a pipe: nothing that can be renamed over.
    Stream(fs::File),
    File {
        temporary: NamedTempFile,
        path: PathBuf,
        /// Whether an older file stands there.
        replaces: bool,
        _draft: Draft,
    },
}

impl Output {
    /// Opens `path` for a result, `-` meaning standard output.
    ///
    /// # Errors
    /// Where the folder does not exist or cannot be written to, or `path` is a folder.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let name = path.display().to_string();
        if path == Path::new("-") {
            check_stdout()?;
            return Ok(Self::stdout());
        }
        if path.exists() && is_of_a_checkpoint(path) {
            anyhow::bail!(
                "the output file '{name}' looks like part of a checkpoint and is there already: name another file"
            );
        }
        let target = Target::open(path).with_context(|| format!("cannot write the output file '{name}'"))?;
        Ok(Self { target, name })
    }

    /// Standard output.
    pub fn stdout() -> Self {
        Self {
            target: Target::Stdout,
            name: "standard output".into(),
        }
    }

    /// Whether this is standard output on a terminal.
    pub fn is_terminal(&self) -> bool {
        use std::io::IsTerminal;
        matches!(self.target, Target::Stdout) && io::stdout().is_terminal()
    }

    /// Whether results show up while they are written, which they do everywhere but in a file.
    pub fn is_stream(&self) -> bool {
        !matches!(self.target, Target::File { .. })
    }

    /// Whether [`commit`](Self::commit) is to replace an older file.
    pub fn replaces(&self) -> bool {
        matches!(self.target, Target::File { replaces: true, .. })
    }

    /// What the result is called in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Adds bytes to the result.
    ///
    /// # Errors
    /// Whatever the system says, with the name of the output.
    pub fn write(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        let written = match &mut self.target {
            Target::Stdout => {
                check_stdout()?;
                let mut stdout = io::stdout().lock();
                stdout.write_all(bytes).and_then(|()| stdout.flush())
            }
            Target::Stream(file) => file.write_all(bytes),
            // Not by the temporary file, whose errors have its own name.
            Target::File { temporary, .. } => temporary.as_file_mut().write_all(bytes),
        };
        written.with_context(|| format!("cannot write to '{}'", self.name))
    }

    /// Finishes the result: a file gets its name only now.
    ///
    /// # Errors
    /// Where the file cannot be flushed or renamed.
    pub fn commit(self) -> anyhow::Result<()> {
        if let Target::File { temporary, path, .. } = self.target {
            temporary
                .persist(path)
                .map_err(|failure| failure.error)
                .with_context(|| format!("cannot write the output file '{}'", self.name))?;
        }
        Ok(())
    }
}

impl Target {
    fn open(path: &Path) -> io::Result<Self> {
        // A link is followed, or the rename would replace the link instead of the file.
        let path = match fs::canonicalize(path) {
            Ok(path) => path,
            Err(_) if fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink()) => {
                return Err(io::Error::other("it is a link to nothing: name a file"));
            }
            Err(_) => path.to_owned(),
        };
        let mut permissions = None;
        match fs::metadata(&path) {
            Ok(meta) if meta.is_dir() => return Err(io::Error::other("it is a folder: name a file in it")),
            Ok(meta) if !meta.is_file() => {
                return Ok(Self::Stream(fs::OpenOptions::new().write(true).open(&path)?));
            }
            // A file that must not be written must not be replaced either.
            Ok(meta) => {
                drop(fs::OpenOptions::new().append(true).open(&path)?);
                permissions = Some(meta.permissions());
            }
            Err(_) => {}
        }
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let temporary = temporary_file(folder).map_err(|error| cannot_make("file", &error, folder))?;
        if let Some(permissions) = permissions {
            temporary.as_file().set_permissions(permissions)?;
        }
        Ok(Self::File {
            _draft: Draft::new(temporary.path()),
            replaces: path.exists(),
            temporary,
            path,
        })
    }
}

/// Whether a file by its name holds weights or what describes them, which no result may replace.
fn is_of_a_checkpoint(path: &Path) -> bool {
    const WEIGHTS: [&str; 7] = ["safetensors", "bin", "pt", "pth", "ckpt", "gguf", "h5"];
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .to_lowercase();
    let extension = name.rsplit('.').next().unwrap_or_default();
    WEIGHTS.contains(&extension) || name.ends_with("config.json") || name.ends_with(".index.json")
}

/// Refuses two outputs in one file, where the later would replace the earlier.
///
/// # Errors
/// [`Usage`], naming the file.
pub fn check_apart<'a>(paths: impl IntoIterator<Item = &'a Path>) -> anyhow::Result<()> {
    let mut seen = std::collections::HashSet::new();
    for path in paths.into_iter().filter(|path| *path != Path::new("-")) {
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        if !seen.insert(folder.join(path.file_name().unwrap_or_default())) && !is_device(path) {
            let message = format!("two outputs go to '{}': name a file for each", path.display());
            return Err(Usage(message).into());
        }
    }
    Ok(())
}

/// Refuses a file whose extension says that it holds something else than one of the `known` formats.
///
/// # Errors
/// [`Usage`], with the extensions that there are.
pub fn check_extension(path: &Path, known: &[&str]) -> Result<(), Usage> {
    let Some(extension) = path.extension().map(|extension| extension.to_string_lossy()) else {
        return Ok(());
    };
    if known.iter().any(|known| extension.eq_ignore_ascii_case(known)) || is_device(path) {
        return Ok(());
    }
    Err(Usage(format!(
        "'{}' ends in .{extension}, which says no format: end it in .{}, or choose one by --format",
        path.display(),
        known.join(", .")
    )))
}

fn is_device(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| !meta.is_file() && !meta.is_dir())
}

/// A temporary file with the permissions of an ordinary new one.
fn temporary_file(folder: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".wqk-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder
            .permissions(fs::Permissions::from_mode(0o666))
            .tempfile_in(folder)
    }
    #[cfg(not(unix))]
    builder.tempfile_in(folder)
}

/// Whether an error only says that nobody reads the output any more, as under `wqk … | head`.
pub(super) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("scores.csv");
        fs::write(&path, "old").unwrap();

        let mut dropped = Output::open(&path).unwrap();
        dropped.write(b"half").unwrap();
        drop(dropped);
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);

        let mut written = Output::open(&path).unwrap();
        written.write(b"new").unwrap();
        written.commit().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link_and_a_device_a_device() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let mut output = Output::open(&link).unwrap();
        output.write(b"new").unwrap();
        output.commit().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");

        let mut null = Output::open(Path::new("/dev/null")).unwrap();
        assert!(null.is_stream());
        null.write(b"gone").unwrap();
        null.commit().unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_private_file_stays_private() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("scores.csv");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let mut output = Output::open(&path).unwrap();
        output.write(b"new").unwrap();
        output.commit().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::os::unix::fs::symlink("nothing", folder.path().join("link")).unwrap();
        assert!(Output::open(&folder.path().join("link")).is_err());
    }

    #[test]
    fn checkpoints_and_other_outputs_are_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "model.safetensors",
            "pytorch_model.bin",
            "config.json",
            "model.safetensors.index.json",
        ] {
            let path = folder.path().join(name);
            Output::open(&path).unwrap();
            fs::write(&path, "weights").unwrap();
            let error = Output::open(&path).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains("another file"), "{error}");
        }
        let (a, b) = (folder.path().join("a.svg"), folder.path().join("./a.svg"));
        assert!(check_apart([a.as_path(), b.as_path()]).is_err());
        check_apart([a.as_path(), Path::new("-"), Path::new("-"), folder.path()]).unwrap();
    }

    #[test]
    fn extensions_that_say_no_format_are_refused() {
        let check = |path: &str| check_extension(Path::new(path), &["json", "csv"]).map_err(|error| error.0);
        for fine in ["-", "scores", "a.pdf/scores", "s.JSON", "s.csv", "/dev/null"] {
            check(fine).unwrap();
        }
        let error = check("s.pdf").unwrap_err();
        assert!(
            error.contains("'s.pdf'") && error.contains(".json, .csv") && error.contains("--format"),
            "{error}"
        );
    }

    #[test]
    fn a_place_that_cannot_be_written_is_found_at_once() {
        let folder = tempfile::tempdir().unwrap();
        for path in [folder.path().to_owned(), folder.path().join("absent/scores.csv")] {
            let error = Output::open(&path).unwrap_err();
            assert!(format!("{error:#}").contains(&path.display().to_string()));
        }
    }
}
