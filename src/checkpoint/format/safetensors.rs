//! The header of a safetensors file.
//!
//! Eight bytes of length, that much JSON, then the tensors' bytes without holes or overlaps.
//! The `safetensors` crate parses the same header, but keeps the last of two tensors of one name, and
//! reports most faults without saying which tensor has them; hence this reader.
//!
//! Source: <https://github.com/huggingface/safetensors#format>.

use std::fmt;
use std::path::Path;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use super::error::Quoted;
use super::json::{Members, brief};
use super::tensor::{Entry, Layout, elements, row_major};
use super::{Dtype, FormatError};

/// The longest header that is read, as in the reference implementation.
const LONGEST_HEADER: u64 = 100_000_000;

/// Bytes of the header's length.
const LENGTH: usize = 8;

/// The entries of the file `bytes`; `path` is for the errors. Reads the header only.
pub(super) fn entries(path: &Path, bytes: &[u8]) -> Result<Vec<Entry>, FormatError> {
    let malformed = |what: String| FormatError::Malformed {
        path: path.to_owned(),
        what,
    };
    let truncated = |what: String| FormatError::Truncated {
        path: path.to_owned(),
        what,
    };

    let Some((length, rest)) = bytes.split_first_chunk::<LENGTH>() else {
        return Err(truncated(format!(
            "a safetensors file of {} bytes has no header",
            bytes.len()
        )));
    };
    let length = u64::from_le_bytes(*length);
    if length > LONGEST_HEADER {
        return Err(malformed(format!(
            "the safetensors header claims {length} bytes, more than the {LONGEST_HEADER} allowed"
        )));
    }
    // At most LONGEST_HEADER, which fits.
    let length = length as usize;
    if length > rest.len() {
        return Err(truncated(format!(
            "the safetensors header claims {length} bytes, the file holds {} after its length",
            rest.len()
        )));
    }
    let (header, data) = rest.split_at(length);
    let header: Header = serde_json::from_slice(header).map_err(|e| {
        malformed(format!(
            "the safetensors header is not a JSON table of tensors, {}",
            brief(&e)
        ))
    })?;
    if let Some(name) = header.tensors.repeated() {
        return Err(malformed(format!("tensor {} is listed twice", Quoted(name))));
    }

    let first_byte = LENGTH + length;
    let mut entries = Vec::with_capacity(header.tensors.0.len());
    for (name, member) in header.tensors.0 {
        let dtype = Dtype::from_safetensors(&member.dtype).ok_or_else(|| {
            malformed(format!(
                "tensor {} has the unknown type {}",
                Quoted(&name),
                Quoted(&member.dtype)
            ))
        })?;
        let count = elements(&member.shape, dtype).ok_or_else(|| {
            malformed(format!(
                "the shape {} of tensor {} overflows",
                shape_text(&member.shape),
                Quoted(&name)
            ))
        })?;
        let bits = count * dtype.bits() as usize;
        let (start, end) = member.data_offsets;
        if start > end {
            return Err(malformed(format!(
                "tensor {} ends at byte {end}, before its start {start}",
                Quoted(&name)
            )));
        }
        if !bits.is_multiple_of(8) || end - start != bits / 8 {
            return Err(malformed(format!(
                "tensor {} of shape {} in {dtype} takes {} bytes, its offsets {start}..{end} give {}",
                Quoted(&name),
                shape_text(&member.shape),
                bits.div_ceil(8),
                end - start
            )));
        }
        if end > data.len() {
            return Err(truncated(format!(
                "tensor {} ends at byte {end} of the data, of which there are {}",
                Quoted(&name),
                data.len()
            )));
        }
        let layout = Layout {
            strides: row_major(&member.shape),
            big_endian: false,
            repeats: false,
        };
        entries.push(Entry {
            name,
            dtype,
            shape: member.shape,
            bytes: first_byte + start..first_byte + end,
            layout,
        });
    }
    check_cover(&entries, first_byte..bytes.len()).map_err(malformed)?;
    Ok(entries)
}

/// The tensors must cover the data exactly: an overlap lets one tensor read another's bytes, a hole
/// hides bytes that no reader sees.
fn check_cover(entries: &[Entry], data: std::ops::Range<usize>) -> Result<(), String> {
    let mut in_order: Vec<&Entry> = entries.iter().collect();
    in_order.sort_by_key(|entry| (entry.bytes.start, entry.bytes.end));
    let mut covered = data.start;
    let mut previous: Option<&Entry> = None;
    for entry in in_order {
        if entry.bytes.start < covered {
            let other = previous.map_or("", |other| other.name.as_str());
            return Err(format!(
                "tensors {} and {} overlap",
                Quoted(other),
                Quoted(&entry.name)
            ));
        }
        if entry.bytes.start > covered {
            let hole = entry.bytes.start - covered;
            return Err(format!(
                "{hole} bytes before tensor {} belong to no tensor",
                Quoted(&entry.name)
            ));
        }
        covered = entry.bytes.end;
        previous = Some(entry);
    }
    if covered != data.end {
        return Err(format!(
            "the last {} bytes belong to no tensor",
            data.end - covered
        ));
    }
    Ok(())
}

/// A shape for a message; a hostile one may have any number of axes.
fn shape_text(shape: &[usize]) -> String {
    const MOST: usize = 8;
    if shape.len() <= MOST {
        format!("{shape:?}")
    } else {
        format!("with {} axes", shape.len())
    }
}

/// One tensor, as the header describes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Member {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: (usize, usize),
}

/// The header's tensors; the free text under `__metadata__` is passed over.
struct Header {
    tensors: Members<Member>,
}

impl<'de> Deserialize<'de> for Header {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct HeaderVisitor;

        impl<'de> Visitor<'de> for HeaderVisitor {
            type Value = Header;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object with one member a tensor")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Header, A::Error> {
                let mut tensors = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    if name == "__metadata__" {
                        map.next_value::<IgnoredAny>()?;
                    } else {
                        tensors.push((name, map.next_value()?));
                    }
                }
                Ok(Header {
                    tensors: Members(tensors),
                })
            }
        }

        deserializer.deserialize_map(HeaderVisitor)
    }
}
