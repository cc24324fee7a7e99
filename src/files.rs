//! Input files that users name: read only where they are files.
//!
//! A pipe would be waited for, perhaps for ever, and a device such as `/dev/zero` has no end.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::Path;

/// Opens a regular file, or a link to one.
///
/// # Errors
/// What the system says, or what stands there instead.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    // Before opening: opening a pipe waits for its writer.
    let about = std::fs::metadata(path)?;
    if !about.is_file() {
        return Err(irregular(&about));
    }
    File::open(path)
}

/// All that is in a regular file.
///
/// # Errors
/// As [`open`].
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    open(path)?.read_to_end(&mut content)?;
    Ok(content)
}

/// All that is in a regular file, as text.
///
/// # Errors
/// As [`open`], and where it is not UTF-8.
pub(crate) fn read_to_string(path: &Path) -> io::Result<String> {
    io::read_to_string(open(path)?)
}

fn irregular(about: &Metadata) -> io::Error {
    if about.is_dir() {
        return io::ErrorKind::IsADirectory.into();
    }
    io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("it is {}, not a regular file", kind(about)),
    )
}

#[cfg(unix)]
fn kind(about: &Metadata) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    match about.file_type() {
        kind if kind.is_fifo() => "a pipe",
        kind if kind.is_socket() => "a socket",
        _ => "a device",
    }
}

#[cfg(not(unix))]
fn kind(_: &Metadata) -> &'static str {
    "a device"
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn only_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        std::fs::write(place("file"), "text").unwrap();
        std::os::unix::fs::symlink(place("file"), place("link")).unwrap();
        assert_eq!(read_to_string(&place("link")).unwrap(), "text");
        std::fs::write(place("latin"), b"caf\xe9").unwrap();
        assert_eq!(read(&place("latin")).unwrap().len(), 4);
        assert_eq!(
            read_to_string(&place("latin")).unwrap_err().kind(),
            io::ErrorKind::InvalidData
        );

        let made = std::process::Command::new("mkfifo").arg(place("pipe")).status();
        assert!(made.unwrap().success());
        let _socket = std::os::unix::net::UnixListener::bind(place("socket")).unwrap();
        let device = Path::new("/dev/zero").to_owned();
        for (path, said) in [
            (place("pipe"), "a pipe"),
            (place("socket"), "a socket"),
            (device, "a device"),
        ] {
            let error = read(&path).unwrap_err().to_string();
            assert!(error.contains(said) && open(&path).is_err(), "{error}");
        }
        let kind = |name: &str| open(&place(name)).unwrap_err().kind();
        assert_eq!(kind(""), io::ErrorKind::IsADirectory);
        assert_eq!(kind("absent"), io::ErrorKind::NotFound);
    }
}
