//! Files of `torch.save`: the zip archive of PyTorch 1.6 and later, and the plain file before it.
//!
//! Both hold a pickle that describes tensors as views of storages, and the storages' bytes. The
//! pickle is read as a description, see [`super::pickle`]; of the bytes nothing is read here but
//! their place.
//!
//! Source: PyTorch's `torch/serialization.py` and `caffe2/serialize/inline_container.cc`.

mod state_dict;

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use self::state_dict::{View, all_storages};
pub(super) use self::state_dict::{allowed, views};
use super::FormatError;
use super::error::Quoted;
use super::pickle::{Node, Pickle, PickleFault};
use super::tensor::Entry;
use super::zip::Directory;

/// The longest pickle that is read; it holds names and shapes, not weights.
const LONGEST_PICKLE: usize = 1 << 26;

/// The entries of a zip archive; `path` is for the errors. Reads the directory and the pickle.
pub(super) fn zip_entries(path: &Path, bytes: &[u8]) -> Result<Vec<Entry>, FormatError> {
    let unsupported = |what: String, remedy| FormatError::Unsupported {
        path: path.to_owned(),
        what,
        remedy,
    };
    let archive = Directory::read(path, bytes)?;
    let mut roots = archive.names().filter_map(|name| name.strip_suffix("/data.pkl"));
    let root = match (roots.next(), roots.next()) {
        (Some(root), None) if !root.contains('/') => root,
        _ => {
            return Err(unsupported(
                "the zip archive is not one that torch.save writes".into(),
                "name a file that torch.save wrote, or a safetensors file",
            ));
        }
    };
    if archive.names().any(|name| {
        name.strip_prefix(root)
            .is_some_and(|rest| rest.starts_with("/code/"))
    }) {
        return Err(unsupported(
            "the archive is a TorchScript program".into(),
            "load it with torch.jit.load and save its state_dict()",
        ));
    }
    let entry = |name: &str| archive.range(&format!("{root}/{name}"));
    let big_endian = match entry("byteorder")?.map(|range| &bytes[range]) {
        None | Some(b"little") => false,
        Some(b"big") => true,
        Some(_) => {
            return Err(malformed(
                path,
                "the archive's byte order is neither little nor big".into(),
            ));
        }
    };
    let pickle = &bytes[entry("data.pkl")?.unwrap_or(0..0)];
    if pickle.len() > LONGEST_PICKLE {
        return Err(malformed(
            path,
            format!(
                "the pickle has {} bytes, of {LONGEST_PICKLE} allowed",
                pickle.len()
            ),
        ));
    }
    let pickle = read_pickle(path, pickle)?;
    let views = views(&pickle).map_err(|what| malformed(path, what))?;
    views
        .into_iter()
        .map(|view| {
            let key = view.storage.key;
            let range = entry(&format!("data/{key}"))?.ok_or_else(|| {
                malformed(
                    path,
                    format!(
                        "the data of tensor {} are missing from the archive",
                        Quoted(view.name)
                    ),
                )
            })?;
            place(path, view, range, big_endian)
        })
        .collect()
}

/// The entries of a file in the format before PyTorch 1.6: four pickles (a magic number, a version,
/// the writer's system, the object), a fifth with the storages' keys, and then each storage behind
/// its length. Numbers are little-endian whatever the writer's system was.
pub(super) fn legacy_entries(path: &Path, bytes: &[u8]) -> Result<Vec<Entry>, FormatError> {
    /// 0x1950a86a20f9469cfc6c, as pickled.
    const MAGIC: [u8; 10] = [0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19];
    const VERSION: i64 = 1001;

    let mut at = 0;
    let mut next = || {
        let rest = &bytes[at..];
        let pickle = read_pickle(path, &rest[..rest.len().min(LONGEST_PICKLE)])?;
        at += pickle.length;
        Ok::<_, FormatError>(pickle)
    };
    let magic = next()?;
    if !matches!(magic.get(magic.root()), Node::Long(number) if *number == MAGIC) {
        return Err(FormatError::Unsupported {
            path: path.to_owned(),
            what: "the file is a pickle, but not one that torch.save writes".into(),
            remedy: "name a file that torch.save wrote, or a safetensors file",
        });
    }
    let version = next()?;
    if !matches!(version.get(version.root()), Node::Int(VERSION)) {
        return Err(malformed(
            path,
            format!("the file is not of version {VERSION} of torch.save's format"),
        ));
    }
    next()?; // the writer's system
    let object = next()?;
    let keys = next()?;
    let views = views(&object).map_err(|what| malformed(path, what))?;
    let storages = legacy_storages(path, bytes, at, &object, &keys)?;
    views
        .into_iter()
        .map(|view| match storages.get(view.storage.key) {
            Some(range) => place(path, view, range.clone(), false),
            None => Err(malformed(
                path,
                format!("the data of tensor {} are missing", Quoted(view.name)),
            )),
        })
        .collect()
}

/// Where each storage lies, from the list of keys and the lengths before the data.
fn legacy_storages<'a>(
    path: &Path,
    bytes: &[u8],
    mut at: usize,
    object: &Pickle<'a>,
    keys: &Pickle<'_>,
) -> Result<HashMap<&'a str, Range<usize>>, FormatError> {
    let known = all_storages(object).map_err(|what| malformed(path, what))?;
    let Node::List(keys_in_order) = keys.get(keys.root()) else {
        return Err(malformed(path, "the list of storages is not a list".into()));
    };
    let mut places = HashMap::with_capacity(keys_in_order.len());
    for &key in keys_in_order {
        let Node::Text(key) = keys.get(key) else {
            return Err(malformed(path, "a storage's key is not text".into()));
        };
        let Some(storage) = known.get(key) else {
            return Err(malformed(
                path,
                format!("storage {} belongs to no tensor", Quoted(key)),
            ));
        };
        let truncated = || FormatError::Truncated {
            path: path.to_owned(),
            what: format!(
                "the data of storage {} reach beyond the end of the file",
                Quoted(key)
            ),
        };
        let length = bytes
            .get(at..)
            .and_then(|rest| rest.first_chunk())
            .ok_or_else(truncated)?;
        if u64::from_le_bytes(*length) != storage.elements as u64 {
            return Err(malformed(
                path,
                format!(
                    "storage {} has not the length that its tensors state",
                    Quoted(key)
                ),
            ));
        }
        let start = at + length.len();
        let end = storage.bytes().and_then(|bytes| start.checked_add(bytes));
        at = end.filter(|&end| end <= bytes.len()).ok_or_else(truncated)?;
        if places.insert(storage.key, start..at).is_some() {
            return Err(malformed(
                path,
                format!("storage {} is listed twice", Quoted(key)),
            ));
        }
    }
    Ok(places)
}

/// Gives a view its bytes, if they lie within its storage.
fn place(path: &Path, view: View<'_>, storage: Range<usize>, big_endian: bool) -> Result<Entry, FormatError> {
    let name = view.name;
    if view.storage.bytes().is_none_or(|stated| stated > storage.len()) {
        return Err(FormatError::Truncated {
            path: path.to_owned(),
            what: format!(
                "the data of tensor {} have {} bytes, fewer than stated",
                Quoted(name),
                storage.len()
            ),
        });
    }
    view.entry(storage, big_endian).ok_or_else(|| {
        malformed(
            path,
            format!(
                "tensor {} has a shape or strides that reach beyond its storage",
                Quoted(name)
            ),
        )
    })
}

fn read_pickle<'a>(path: &Path, bytes: &'a [u8]) -> Result<Pickle<'a>, FormatError> {
    Pickle::read(bytes, allowed).map_err(|fault| match fault {
        PickleFault::ForbiddenGlobal(global) => FormatError::ForbiddenGlobal {
            path: path.to_owned(),
            global,
        },
        PickleFault::Truncated => FormatError::Truncated {
            path: path.to_owned(),
            what: fault.to_string(),
        },
        PickleFault::Malformed(_) => malformed(path, fault.to_string()),
    })
}

fn malformed(path: &Path, what: String) -> FormatError {
    FormatError::Malformed {
        path: path.to_owned(),
        what,
    }
}
