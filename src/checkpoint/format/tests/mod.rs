//! Files as users have them, and files as an attacker would make them, all through [`Store`].

mod folders;
mod hostile_pickle;
mod hostile_safetensors;
mod hostile_zip;
mod mutated;
mod sharded;
mod torch_files;
mod values;

use std::path::{Path, PathBuf};

use super::{FormatError, Store};

/// A folder that is removed after the test.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// A file that reads as zeros after `bytes`, of any length, and takes no room on the disk.
    fn write_sparse(&self, name: &str, bytes: &[u8], length: u64) -> PathBuf {
        let path = self.write(name, bytes);
        std::fs::OpenOptions::new()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(length)
            .unwrap();
        path
    }
}

/// A safetensors file of a header and data.
fn safetensors(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
}

/// A safetensors file with one f32 tensor of each name, `[2]`, holding 1 and 2.
fn two_values(names: &[&str]) -> Vec<u8> {
    let member = |(i, name): (usize, &&str)| {
        format!(
            r#""{name}":{{"dtype":"F32","shape":[2],"data_offsets":[{},{}]}}"#,
            i * 8,
            i * 8 + 8
        )
    };
    let members: Vec<String> = names.iter().enumerate().map(member).collect();
    let values = f32_bytes(&[1.0, 2.0]).repeat(names.len());
    safetensors(&format!("{{{}}}", members.join(",")), &values)
}

fn f32_bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Opening must fail with a message that holds `parts`, one line, and that names a path; returns it.
#[track_caller]
fn refused(path: &Path, parts: &[&str]) -> String {
    message(Store::open(path).map(drop), parts)
}

/// The message of an error, checked as in [`refused`].
#[track_caller]
fn message<T>(result: Result<T, FormatError>, parts: &[&str]) -> String {
    let message = match result {
        Ok(_) => panic!("expected an error about {parts:?}"),
        Err(error) => error.to_string(),
    };
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in: {message}");
    }
    assert!(
        !message.contains(char::is_control),
        "not one plain line: {message:?}"
    );
    assert!(
        message.contains('/') && message.contains("): "),
        "neither place nor remedy: {message}"
    );
    assert!(message.len() < 1000, "too long: {message}");
    message
}
