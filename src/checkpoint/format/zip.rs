//! The directory of a zip archive, as `torch.save` writes one: entries stored, not compressed.
//!
//! A general zip reader keeps the last of two entries of one name and looks for the directory
//! through the whole file; here the directory is looked for where it must end, entries are unique,
//! and what is compressed or encrypted is refused, so that no archive unpacks to more than it is.
//!
//! Source: PKWARE APPNOTE.TXT 6.3.10, sections 4.3 and 4.5.3.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use super::FormatError;
use super::error::Quoted;

const END: &[u8; 4] = b"PK\x05\x06";
const END_LEN: usize = 22;
const END64: &[u8; 4] = b"PK\x06\x06";
const END64_LEN: usize = 56;
const LOCATOR: &[u8; 4] = b"PK\x06\x07";
const LOCATOR_LEN: usize = 20;
const CENTRAL: &[u8; 4] = b"PK\x01\x02";
const CENTRAL_LEN: usize = 46;
const LOCAL: &[u8; 4] = b"PK\x03\x04";
const LOCAL_LEN: usize = 30;
const ZIP64_EXTRA: u16 = 1;

/// The entries of an archive by name.
pub(super) struct Directory<'a> {
    path: &'a Path,
    bytes: &'a [u8],
    entries: HashMap<&'a str, Stored>,
    /// Where the directory begins; no entry reaches beyond.
    start: usize,
}

/// One entry as the directory describes it.
struct Stored {
    header: usize,
    size: usize,
    compressed: bool,
    encrypted: bool,
}

impl<'a> Directory<'a> {
    /// Reads the directory; `path` is for the errors.
    pub(super) fn read(path: &'a Path, bytes: &'a [u8]) -> Result<Self, FormatError> {
        let malformed = |what: String| FormatError::Malformed {
            path: path.to_owned(),
            what,
        };
        let end = find_end(bytes).ok_or_else(|| FormatError::Truncated {
            path: path.to_owned(),
            what: "the zip archive has no directory at its end".into(),
        })?;
        let (count, range) = locate(bytes, end).map_err(malformed)?;
        if count > range.len() / CENTRAL_LEN {
            return Err(malformed(format!(
                "the zip directory of {} bytes claims {count} entries",
                range.len()
            )));
        }
        let start = range.start;
        let mut fields = Fields { bytes: &bytes[range] };
        let mut entries = HashMap::with_capacity(count);
        for _ in 0..count {
            let (name, entry) = central_header(&mut fields)
                .ok_or_else(|| malformed("the zip directory is damaged".into()))?;
            if entries.insert(name, entry).is_some() {
                return Err(malformed(format!("the zip archive holds {} twice", Quoted(name))));
            }
        }
        if !fields.bytes.is_empty() {
            return Err(malformed(format!(
                "the zip directory has {} bytes too many",
                fields.bytes.len()
            )));
        }
        Ok(Self {
            path,
            bytes,
            entries,
            start,
        })
    }

    /// The names of all entries, in no order.
    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.entries.keys().copied()
    }

    /// Where the bytes of an entry lie in the file; `None` if there is no such entry.
    pub(super) fn range(&self, name: &str) -> Result<Option<Range<usize>>, FormatError> {
        let Some(entry) = self.entries.get(name) else {
            return Ok(None);
        };
        if entry.compressed || entry.encrypted {
            return Err(FormatError::Unsupported {
                path: self.path.to_owned(),
                what: format!(
                    "zip entry {} is {}, which torch.save never does",
                    Quoted(name),
                    if entry.encrypted {
                        "encrypted"
                    } else {
                        "compressed"
                    }
                ),
                remedy: "load the file with torch.load(…, weights_only=True) and save it again",
            });
        }
        match local_data(self.bytes, name, entry) {
            Some(range) if range.end <= self.start => Ok(Some(range)),
            _ => Err(FormatError::Malformed {
                path: self.path.to_owned(),
                what: format!("zip entry {} does not lie where the directory says", Quoted(name)),
            }),
        }
    }
}

/// The position of the end record: the last one whose comment reaches exactly to the file's end.
fn find_end(bytes: &[u8]) -> Option<usize> {
    let last = bytes.len().checked_sub(END_LEN)?;
    let first = last.saturating_sub(usize::from(u16::MAX));
    (first..=last).rev().find(|&at| {
        bytes[at..].starts_with(END)
            && bytes.get(at + END_LEN - 2..at + END_LEN).is_some_and(|comment| {
                usize::from(u16::from_le_bytes([comment[0], comment[1]])) == bytes.len() - at - END_LEN
            })
    })
}

/// The number of entries and the directory's range, from the end record and its 64-bit form.
fn locate(bytes: &[u8], end: usize) -> Result<(usize, Range<usize>), String> {
    const DAMAGED: &str = "the end of the zip directory is damaged";
    let short = short_end(&bytes[end..]).ok_or(DAMAGED)?;
    let (place, limit) = match end.checked_sub(LOCATOR_LEN).map(|at| &bytes[at..end]) {
        Some(locator) if locator.starts_with(LOCATOR) => {
            let mut fields = Fields { bytes: &locator[8..] };
            let at = fields
                .u64()
                .and_then(|at| usize::try_from(at).ok())
                .ok_or(DAMAGED)?;
            if at > end - LOCATOR_LEN {
                return Err("the zip64 end record lies beyond its locator".into());
            }
            let long = long_end(&bytes[at..end - LOCATOR_LEN]).ok_or(DAMAGED)?;
            // The two forms agree, or the short one says by all ones that it has no room.
            let agrees = |short: u64, long: u64, ones: u64| short == ones || short == long;
            if !(agrees(short.count, long.count, u16::MAX.into())
                && agrees(short.size, long.size, u32::MAX.into())
                && agrees(short.offset, long.offset, u32::MAX.into()))
            {
                return Err("the two end records of the zip archive disagree".into());
            }
            (long, at)
        }
        _ => (short, end),
    };
    let start = usize::try_from(place.offset).ok();
    let stop = place
        .offset
        .checked_add(place.size)
        .and_then(|stop| usize::try_from(stop).ok());
    match (start, stop, usize::try_from(place.count)) {
        (Some(start), Some(stop), Ok(count)) if stop <= limit => Ok((count, start..stop)),
        _ => Err("the zip directory lies beyond the end of the file".into()),
    }
}

/// What an end record says of the directory.
struct Place {
    count: u64,
    size: u64,
    offset: u64,
}

fn short_end(bytes: &[u8]) -> Option<Place> {
    let mut fields = Fields {
        bytes: bytes.get(4..END_LEN)?,
    };
    let disks = (fields.u16()?, fields.u16()?);
    let (here, count) = (fields.u16()?, fields.u16()?);
    let (size, offset) = (fields.u32()?, fields.u32()?);
    (disks == (0, 0) && here == count).then(|| Place {
        count: count.into(),
        size: size.into(),
        offset: offset.into(),
    })
}

fn long_end(bytes: &[u8]) -> Option<Place> {
    if !bytes.starts_with(END64) {
        return None;
    }
    // Signature, length, two versions.
    let mut fields = Fields {
        bytes: bytes.get(16..END64_LEN)?,
    };
    let disks = (fields.u32()?, fields.u32()?);
    let (here, count) = (fields.u64()?, fields.u64()?);
    let (size, offset) = (fields.u64()?, fields.u64()?);
    (disks == (0, 0) && here == count).then_some(Place { count, size, offset })
}

/// One header of the directory, and past it.
fn central_header<'a>(fields: &mut Fields<'a>) -> Option<(&'a str, Stored)> {
    if fields.take(4)? != CENTRAL {
        return None;
    }
    fields.take(4)?; // the two versions
    let (flags, method) = (fields.u16()?, fields.u16()?);
    fields.take(8)?; // time, date, checksum
    let (packed, unpacked) = (fields.u32()?, fields.u32()?);
    let (name_len, extra_len, comment_len) = (fields.u16()?, fields.u16()?, fields.u16()?);
    let disk = fields.u16()?;
    fields.take(6)?; // attributes
    let offset = fields.u32()?;
    let name = std::str::from_utf8(fields.take(name_len.into())?).ok()?;
    let extra = fields.take(extra_len.into())?;
    fields.take(comment_len.into())?;

    // Values of all ones stand in the zip64 field instead, in this order, and only those.
    let mut long = Fields {
        bytes: zip64_extra(extra)?,
    };
    let mut widen = |short: u32| {
        if short == u32::MAX {
            long.u64()
        } else {
            Some(short.into())
        }
    };
    let (unpacked, packed, offset) = (widen(unpacked)?, widen(packed)?, widen(offset)?);
    if disk != 0 {
        return None;
    }
    let compressed = method != 0;
    if !compressed && packed != unpacked {
        return None;
    }
    let entry = Stored {
        header: usize::try_from(offset).ok()?,
        size: usize::try_from(unpacked).ok()?,
        compressed,
        encrypted: flags & 1 != 0,
    };
    Some((name, entry))
}

/// The zip64 field among the extra fields; empty if there is none, `None` if they are damaged.
fn zip64_extra(extra: &[u8]) -> Option<&[u8]> {
    let mut fields = Fields { bytes: extra };
    while !fields.bytes.is_empty() {
        let (id, len) = (fields.u16()?, fields.u16()?);
        let field = fields.take(len.into())?;
        if id == ZIP64_EXTRA {
            return Some(field);
        }
    }
    Some(&[])
}

/// The bytes of an entry, behind its local header, which must bear the same name.
fn local_data(bytes: &[u8], name: &str, entry: &Stored) -> Option<Range<usize>> {
    let mut fields = Fields {
        bytes: bytes.get(entry.header..)?,
    };
    if fields.take(4)? != LOCAL {
        return None;
    }
    fields.take(LOCAL_LEN - 8)?;
    let (name_len, extra_len) = (fields.u16()?, fields.u16()?);
    if fields.take(name_len.into())? != name.as_bytes() {
        return None;
    }
    fields.take(extra_len.into())?;
    let start = bytes.len() - fields.bytes.len();
    fields.take(entry.size)?;
    Some(start..start + entry.size)
}

/// Little-endian fields, one after another.
struct Fields<'a> {
    bytes: &'a [u8],
}

impl<'a> Fields<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (field, rest) = self.bytes.split_at_checked(n)?;
        self.bytes = rest;
        Some(field)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(*field)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
}
