//! The file of a cache.
//!
//! | bytes | what |
//! | --- | --- |
//! | 8 | the magic, `wqktok1\n` |
//! | 4 | length of the header, little endian |
//! | … | the header, JSON, padded with spaces so that the tokens begin at byte 64 × k |
//! | … | the tokens, little endian, 2 bytes each where the vocabulary allows it, else 4 |

use std::io::ErrorKind;
use std::path::Path;

use memmap2::Mmap;
use serde::{Deserialize, Serialize};

use super::Opened;
use super::key::Key;
use crate::data::{DataError, ReadReport};
use crate::files;

pub(super) const MAGIC: &[u8; 8] = b"wqktok1\n";

/// Where the header begins.
const HEAD: usize = MAGIC.len() + size_of::<u32>();

/// A header is a few hundred bytes, or some kilobytes with reasons in its report.
const LARGEST_HEADER: usize = 1 << 20;

/// What a cache says of itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    /// The program that made it.
    pub(super) program: String,
    /// [`Key::corpus`] and [`Key::tokenizer`], whole.
    pub(super) corpus: String,
    pub(super) tokenizer: String,
    /// Bytes of a token.
    pub(super) width: usize,
    /// Number of tokens.
    pub(super) tokens: u64,
    /// CRC-32 (IEEE) of the bytes of the tokens.
    pub(super) crc32: u32,
    pub(super) report: ReadReport,
}

impl Header {
    /// The bytes of the header with everything before the tokens, at least `room` of them.
    ///
    /// The header is written twice, before the tokens and, when their number is known, over itself.
    pub(super) fn to_bytes(&self, room: usize) -> Result<Vec<u8>, serde_json::Error> {
        const ALIGNED: usize = 64;
        let json = serde_json::to_vec(self)?;
        let total = (HEAD + json.len()).max(room).next_multiple_of(ALIGNED);
        let mut bytes = MAGIC.to_vec();
        bytes.extend(((total - HEAD) as u32).to_le_bytes());
        bytes.extend(json);
        bytes.resize(total, b' ');
        Ok(bytes)
    }
}

/// Bytes of a token of a vocabulary.
pub(super) fn width(vocabulary: usize) -> usize {
    if vocabulary <= 1 << 16 { 2 } else { 4 }
}

/// A cache, mapped into memory.
#[derive(Debug)]
pub(super) struct Mapped {
    map: Mmap,
    header: Header,
    /// Where the tokens begin.
    start: usize,
    /// Number of tokens.
    len: usize,
}

impl Mapped {
    /// Maps a cache and checks that it is whole and the one that is wanted.
    ///
    /// # Errors
    /// [`DataError::Cache`] for a file that cannot be read, or one that was never a cache.
    pub(super) fn open(path: &Path, key: &Key) -> Result<Opened, DataError> {
        let failed = |source| DataError::cache(path, source);
        let file = match files::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Opened::Absent),
            Err(error) => return Err(failed(error)),
        };
        if file.metadata().map_err(failed)?.len() == 0 {
            return Ok(Opened::Damaged("the token cache is empty".to_owned()));
        }
        // SAFETY: a cache is written under another name and renamed when it is whole; this library never
        // changes it in place, and the folder is the user's own.
        let map = unsafe { Mmap::map(&file) }.map_err(failed)?;
        if !map.starts_with(MAGIC) {
            let problem = "a file that is no token cache has its place: move it away, or name another folder for caches";
            return Err(failed(std::io::Error::other(problem)));
        }
        Ok(match check(&map, key) {
            Ok((header, start)) => Opened::Whole(Self {
                len: header.tokens as usize,
                map,
                header,
                start,
            }),
            Err(problem) => Opened::Damaged(problem),
        })
    }

    pub(super) fn header(&self) -> &Header {
        &self.header
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Copies the tokens from number `first` on.
    pub(super) fn copy_to(&self, first: usize, into: &mut [u32]) {
        let width = self.header.width;
        let start = self.start + first * width;
        let bytes = &self.map[start..start + into.len() * width];
        if width == 2 {
            for (token, bytes) in into.iter_mut().zip(bytes.chunks_exact(2)) {
                *token = u32::from(u16::from_le_bytes([bytes[0], bytes[1]]));
            }
        } else {
            for (token, bytes) in into.iter_mut().zip(bytes.chunks_exact(4)) {
                *token = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            }
        }
    }
}

/// The header of a whole cache, and where its tokens begin; else what is wrong with it.
fn check(map: &[u8], key: &Key) -> Result<(Header, usize), String> {
    let cut = || "the token cache is cut off".to_owned();
    let length = map.get(MAGIC.len()..HEAD).ok_or_else(cut)?;
    let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize;
    if length > LARGEST_HEADER {
        return Err("the header of the token cache is damaged".to_owned());
    }
    let start = HEAD + length;
    let json = map.get(HEAD..start).ok_or_else(cut)?;
    let header: Header = serde_json::from_slice(json)
        .map_err(|error| format!("the header of the token cache is damaged ({error})"))?;
    if (&header.corpus, &header.tokenizer) != (&key.corpus, &key.tokenizer) {
        return Err("the token cache is of another corpus or tokenizer".to_owned());
    }
    let tokens = &map[start..];
    if header.width != width(key.vocabulary)
        || header.tokens.checked_mul(header.width as u64) != Some(tokens.len() as u64)
    {
        return Err(format!(
            "the token cache has {} bytes of tokens, its header says {} tokens of {}",
            tokens.len(),
            header.tokens,
            header.width
        ));
    }
    if crc32fast::hash(tokens) != header.crc32 {
        return Err("the tokens of the cache are damaged".to_owned());
    }
    Ok((header, start))
}
