//! Entry points for the fuzz targets: each parser, and what must hold for anything it accepts.

use std::path::Path;

use super::pickle::Pickle;
use super::tensor::{Entry, Runs};
use super::{FormatError, index as shard_index, safetensors as header, torch};

/// The header of a safetensors file.
pub fn safetensors(bytes: &[u8]) {
    check(bytes, header::entries(Path::new("fuzz"), bytes));
}

/// The index of a sharded checkpoint.
pub fn index(bytes: &[u8]) {
    match shard_index::parse(Path::new("fuzz"), bytes) {
        Ok(index) => {
            assert!(
                index
                    .shards
                    .iter()
                    .all(|shard| Path::new("folder").join(shard).parent() == Some(Path::new("folder")))
            );
            assert!(index.tensors.iter().all(|(_, shard)| *shard < index.shards.len()));
        }
        Err(error) => check_message(&error),
    }
}

/// A pickle by itself, with everything that `torch.save` may name.
pub fn pickle(bytes: &[u8]) {
    if let Ok(pickle) = Pickle::read(bytes, torch::allowed) {
        assert!(pickle.length <= bytes.len());
        let _ = torch::views(&pickle);
    }
}

/// A zip archive of `torch.save`.
pub fn zip(bytes: &[u8]) {
    check(bytes, torch::zip_entries(Path::new("fuzz"), bytes));
}

/// The format of `torch.save` before the zip archive.
pub fn legacy(bytes: &[u8]) {
    check(bytes, torch::legacy_entries(Path::new("fuzz"), bytes));
}

/// Every run of every accepted tensor lies within the file, and an error is one line.
fn check(file: &[u8], entries: Result<Vec<Entry>, FormatError>) {
    let entries = match entries {
        Ok(entries) => entries,
        Err(error) => return check_message(&error),
    };
    for Entry {
        dtype,
        shape,
        bytes,
        layout,
        ..
    } in entries
    {
        let data = &file[bytes];
        if layout.repeats || dtype.bits() < 8 {
            continue;
        }
        let runs = Runs::of(&shape, &layout.strides);
        let mut elements = 0;
        for offset in runs.offsets() {
            assert!((offset + runs.length) * dtype.size() <= data.len());
            elements += runs.length;
        }
        assert_eq!(elements, shape.iter().product::<usize>());
    }
}

fn check_message(error: &FormatError) {
    let message = error.to_string();
    assert!(
        message.len() < 2000 && !message.contains(char::is_control),
        "{message:?}"
    );
}
