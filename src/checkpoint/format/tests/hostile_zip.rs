//! Zip archives that lie about their entries, or that unpack to more than they are.

use std::io::Write;

use super::*;

/// One entry of an archive.
pub(super) struct Member<'a> {
    name: &'a str,
    flags: u16,
    method: u16,
    data: Vec<u8>,
    /// The length that the directory claims after unpacking.
    claimed: u32,
}

impl<'a> Member<'a> {
    pub(super) fn stored(name: &'a str, data: &[u8]) -> Self {
        Self {
            name,
            flags: 0,
            method: 0,
            data: data.to_vec(),
            claimed: data.len() as u32,
        }
    }

    fn deflated(name: &'a str, data: &[u8]) -> Self {
        let mut packer = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
        packer.write_all(data).unwrap();
        Self {
            name,
            flags: 0,
            method: 8,
            data: packer.finish().unwrap(),
            claimed: data.len() as u32,
        }
    }
}

/// An archive of entries, without the 64-bit records.
pub(super) fn zip(members: &[Member]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut directory = Vec::new();
    for Member {
        name,
        flags,
        method,
        data,
        claimed,
    } in members
    {
        let offset = file.len() as u32;
        let common = [
            &flags.to_le_bytes()[..],
            &method.to_le_bytes(),
            &[0; 8], // time, date, checksum
            &(data.len() as u32).to_le_bytes(),
            &claimed.to_le_bytes(),
            &(name.len() as u16).to_le_bytes(),
            &[0; 2],
        ]
        .concat();
        file.extend([b"PK\x03\x04\x14\0", common.as_slice(), name.as_bytes(), data].concat());
        directory.extend(
            [
                b"PK\x01\x02\x14\0\x14\0",
                common.as_slice(),
                &[0; 10],
                &offset.to_le_bytes(),
            ]
            .concat(),
        );
        directory.extend(name.as_bytes());
    }
    let count = (members.len() as u16).to_le_bytes();
    let (size, offset) = (
        (directory.len() as u32).to_le_bytes(),
        (file.len() as u32).to_le_bytes(),
    );
    [
        file,
        directory,
        [b"PK\x05\x06\0\0\0\0", &count[..], &count, &size, &offset, &[0; 2]].concat(),
    ]
    .concat()
}

const PICKLE: &[u8] = b"\x80\x02}X\x01\x00\x00\x00wctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x02tQK\x00K\x02\x85K\x01\x85\x89NtRs.";

/// A good archive of one tensor.
fn good() -> Vec<u8> {
    zip(&[
        Member::stored("m/data.pkl", PICKLE),
        Member::stored("m/data/0", &f32_bytes(&[1.0, 2.0])),
    ])
}

#[track_caller]
fn refused_zip(bytes: &[u8], parts: &[&str]) {
    let folder = Folder::new();
    refused(&folder.write("pytorch_model.bin", bytes), parts);
}

#[test]
fn the_builder_builds_what_is_read() {
    let folder = Folder::new();
    let store = Store::open(&folder.write("model.pt", good())).unwrap();
    assert_eq!(store.read_f32("w").unwrap(), [1.0, 2.0]);
}

#[test]
fn zip_bombs() {
    // A pickle, and a storage, of 64 MiB of zeros in 64 kB: refused by what the directory says.
    let zeros = vec![0; 1 << 26];
    let bomb = zip(&[
        Member::deflated("m/data.pkl", &zeros),
        Member::stored("m/data/0", &[0; 8]),
    ]);
    assert!(bomb.len() < 1 << 17);
    refused_zip(
        &bomb,
        &[
            "\"m/data.pkl\" is compressed, which torch.save never does",
            "save it again",
        ],
    );
    let bomb = zip(&[
        Member::stored("m/data.pkl", PICKLE),
        Member::deflated("m/data/0", &zeros),
    ]);
    refused_zip(&bomb, &["\"m/data/0\" is compressed"]);
    // An entry that claims to be stored, and larger than it is.
    let mut lie = Member::stored("m/data/0", &[0; 8]);
    lie.claimed = 1 << 30;
    refused_zip(
        &zip(&[Member::stored("m/data.pkl", PICKLE), lie]),
        &["zip directory is damaged"],
    );
}

#[test]
fn encrypted_entries() {
    let mut secret = Member::stored("m/data/0", &[0; 8]);
    secret.flags = 1;
    refused_zip(
        &zip(&[Member::stored("m/data.pkl", PICKLE), secret]),
        &["\"m/data/0\" is encrypted"],
    );
}

#[test]
fn entries_twice() {
    let member = || Member::stored("m/data/0", &[0; 8]);
    refused_zip(
        &zip(&[Member::stored("m/data.pkl", PICKLE), member(), member()]),
        &["holds \"m/data/0\" twice"],
    );
    let two = zip(&[
        Member::stored("m/data.pkl", PICKLE),
        Member::stored("n/data.pkl", PICKLE),
    ]);
    refused_zip(&two, &["not one that torch.save writes"]);
}

#[test]
fn archives_of_something_else() {
    refused_zip(
        &zip(&[Member::stored("word/document.xml", b"<a/>")]),
        &["not one that torch.save writes"],
    );
    refused_zip(b"PK\x03\x04", &["no directory at its end", "truncated"]);
    let mut words = good();
    words.extend(b"more");
    refused_zip(&words, &["no directory at its end"]);
}

#[test]
fn byte_orders() {
    let archive = |order: &[u8], data: &[u8]| {
        let data = Member::stored("m/data/0", data);
        zip(&[
            Member::stored("m/data.pkl", PICKLE),
            Member::stored("m/byteorder", order),
            data,
        ])
    };
    let big: Vec<u8> = [1.0f32, 2.0]
        .iter()
        .flat_map(|value| value.to_be_bytes())
        .collect();
    let folder = Folder::new();
    let path = folder.write("model.pt", archive(b"big", &big));
    let store = Store::open(&path).unwrap();
    assert_eq!(store.read_f32("w").unwrap(), [1.0, 2.0]);
    let little = Store::open(&folder.write("little.pt", good())).unwrap();
    assert_eq!(store.digest(&["w"]).unwrap(), little.digest(&["w"]).unwrap());
    refused_zip(
        &archive(b"middle", &big),
        &["byte order is neither little nor big"],
    );
}

#[test]
fn directories_that_lie() {
    let good = good();
    let end = good.len() - 22;
    let with = |at: usize, bytes: &[u8]| {
        let mut bad = good.clone();
        bad[at..at + bytes.len()].copy_from_slice(bytes);
        bad
    };
    refused_zip(
        &with(end + 8, &[0xff, 0xff, 0xff, 0xff]),
        &["claims 65535 entries"],
    );
    refused_zip(&with(end + 8, &[1, 0, 1, 0]), &["bytes too many"]);
    refused_zip(
        &with(end + 8, &[2, 0, 3, 0]),
        &["end of the zip directory is damaged"],
    );
    refused_zip(&with(end + 12, &[0xff; 4]), &["beyond the end of the file"]);
    refused_zip(&with(end + 16, &[0xff; 4]), &["beyond the end of the file"]);
    // The first directory header: its entry's place, and the name in the entry itself.
    let first = good.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap();
    refused_zip(
        &with(first + 42, &[1, 0, 0, 0]),
        &["\"m/data.pkl\" does not lie where the directory says"],
    );
    refused_zip(
        &with(30, b"x"),
        &["\"m/data.pkl\" does not lie where the directory says"],
    );
    // An entry that reaches into the directory.
    let long = [
        &good[..first + 20],
        &[0xff, 0, 0, 0, 0xff, 0, 0, 0],
        &good[first + 28..],
    ]
    .concat();
    refused_zip(&long, &["does not lie where the directory says"]);
}

#[test]
fn a_large_file_without_directory_is_not_searched() {
    let folder = Folder::new();
    let path = folder.write_sparse("model.bin", b"PK\x03\x04", 1 << 40);
    refused(&path, &["no directory at its end"]);
    let path = folder.write_sparse("older.bin", b"\x80\x02", 1 << 40);
    refused(&path, &["instruction 0x00"]);
}
