//! Files that are on the disk once they have their name.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use sha2::{Digest, Sha256};

/// Writes a new file, waits until the disk has it, and returns the SHA-256 of its content in hexadecimal.
pub(in crate::train) fn write_synced(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<String> {
    let mut sink = Hashing {
        hash: Sha256::new(),
        sink: BufWriter::with_capacity(1 << 20, File::create_new(path)?),
    };
    fill(&mut sink)?;
    let Hashing { hash, sink } = sink;
    sink.into_inner()
        .map_err(io::IntoInnerError::into_error)?
        .sync_all()?;
    Ok(hex(&hash.finalize()))
}

/// How the names of files begin that are not whole yet.
pub(in crate::train) const DRAFT: &str = ".wqk-";

/// Gives a file its content at once: readers see the old one or the new one, also after a loss of power.
pub(in crate::train) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = folder_of(path);
    let mut file = tempfile::Builder::new().prefix(DRAFT).tempfile_in(folder)?;
    file.write_all(content)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        file.as_file()
            .set_permissions(fs::Permissions::from_mode(0o644))?;
    }
    file.as_file().sync_all()?;
    file.persist(path)?;
    sync_folder(folder)
}

/// Waits until the disk has the names in a folder.
pub(in crate::train) fn sync_folder(folder: &Path) -> io::Result<()> {
    // Elsewhere folders cannot be opened as files, and renames are kept by the file system's own journal.
    if cfg!(unix) {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// The SHA-256 of bytes, in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

pub(in crate::train) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

struct Hashing<W> {
    hash: Sha256,
    sink: W,
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.sink.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}
