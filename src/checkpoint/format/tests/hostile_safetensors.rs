//! Damaged and hostile safetensors files: each a refusal that says what is wrong.

use super::*;

/// A file with this header and this many bytes of data must be refused.
#[track_caller]
fn refused_header(header: &str, data: usize, parts: &[&str]) {
    let folder = Folder::new();
    let path = folder.write("model.safetensors", safetensors(header, &vec![0; data]));
    refused(&path, parts);
    refused(folder.path(), parts);
}

#[test]
fn zero_byte_file() {
    let folder = Folder::new();
    refused(
        &folder.write("model.safetensors", []),
        &["the file is empty", "model.safetensors", "fetch it again"],
    );
}

#[test]
fn shorter_than_a_length() {
    let folder = Folder::new();
    refused(
        &folder.write("model.safetensors", [1, 2, 3]),
        &["3 bytes has no header"],
    );
}

#[test]
fn header_longer_than_the_file() {
    let folder = Folder::new();
    let bytes = [&1000u64.to_le_bytes()[..], b"{}"].concat();
    refused(
        &folder.write("model.safetensors", bytes),
        &["claims 1000 bytes, the file holds 2", "truncated"],
    );
}

#[test]
fn header_longer_than_allowed() {
    let folder = Folder::new();
    let bytes = [&u64::MAX.to_le_bytes()[..], b"{}"].concat();
    refused(
        &folder.write("model.safetensors", bytes),
        &["claims 18446744073709551615 bytes", "allowed"],
    );
}

#[test]
fn header_that_is_not_json() {
    refused_header(
        "{\"a\": oops}",
        0,
        &["not a JSON table of tensors", "line 1 column"],
    );
    refused_header(
        "{\"a\": 3}",
        0,
        &[
            "not a JSON table of tensors",
            "3, but must be an object at line 1",
        ],
    );
    refused_header(
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}",
        4,
        &["not a JSON table"],
    );
}

#[test]
fn header_nested_without_end() {
    let deep = format!("{{\"__metadata__\":{}", "[".repeat(100_000));
    refused_header(&deep, 0, &["not a JSON table of tensors"]);
}

#[test]
fn header_that_is_not_utf8() {
    let folder = Folder::new();
    let bytes = [&4u64.to_le_bytes()[..], b"{\"\xff\""].concat();
    refused(
        &folder.write("model.safetensors", bytes),
        &["not a JSON table of tensors"],
    );
}

#[test]
fn truncated_data() {
    let header = r#"{"w":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}"#;
    refused_header(
        header,
        12,
        &[
            r#"tensor "w" ends at byte 16 of the data, of which there are 12"#,
            "truncated",
        ],
    );
}

#[test]
fn offsets_out_of_range() {
    let header =
        r#"{"w":{"dtype":"U8","shape":[4],"data_offsets":[18446744073709551611,18446744073709551615]}}"#;
    refused_header(header, 4, &[r#"tensor "w" ends at byte 18446744073709551615"#]);
}

#[test]
fn offsets_reversed() {
    let header = r#"{"w":{"dtype":"F32","shape":[1],"data_offsets":[8,4]}}"#;
    refused_header(header, 8, &["ends at byte 4, before its start 8"]);
}

#[test]
fn offsets_that_overlap() {
    let header = r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}"#;
    refused_header(header, 12, &[r#"tensors "a" and "b" overlap"#]);
}

#[test]
fn bytes_of_no_tensor() {
    let header = r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}"#;
    refused_header(header, 8, &[r#"4 bytes before tensor "a" belong to no tensor"#]);
    let header = r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
    refused_header(header, 8, &["the last 4 bytes belong to no tensor"]);
}

#[test]
fn offsets_that_disagree_with_the_shape() {
    let header = r#"{"w":{"dtype":"F16","shape":[2,3],"data_offsets":[0,8]}}"#;
    refused_header(
        header,
        8,
        &[
            r#"tensor "w" of shape [2, 3] in F16 takes 12 bytes"#,
            "0..8 give 8",
        ],
    );
}

#[test]
fn shape_whose_product_overflows() {
    for shape in [
        "4294967296,4294967296",
        "9223372036854775807,2",
        "4611686018427387904",
        "4294967296,4294967296,0",
    ] {
        let header = format!(r#"{{"w":{{"dtype":"F32","shape":[{shape}],"data_offsets":[0,0]}}}}"#);
        refused_header(&header, 0, &[r#"of tensor "w" overflows"#]);
    }
}

#[test]
fn tensor_listed_twice() {
    let member = r#""w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}"#;
    refused_header(
        &format!("{{{member},{member}}}"),
        4,
        &[r#"tensor "w" is listed twice"#],
    );
}

#[test]
fn unknown_type() {
    let header = r#"{"w":{"dtype":"F12","shape":[1],"data_offsets":[0,4]}}"#;
    refused_header(header, 4, &[r#"tensor "w" has the unknown type "F12""#]);
}

#[test]
fn names_cannot_write_to_the_terminal() {
    let header = r#"{"\u001b[2J\n":{"dtype":"F12","shape":[1],"data_offsets":[0,4]}}"#;
    refused_header(header, 4, &[r#""\u{1b}[2J\n""#]);
    let long = "x".repeat(100_000);
    let header = format!(r#"{{"{long}":{{"dtype":"{long}","shape":[1],"data_offsets":[0,4]}}}}"#);
    refused_header(&header, 4, &["xxx"]);
}

#[test]
fn a_length_that_begins_as_another_format_does() {
    // A header of 0x0280 bytes makes the file begin as a pickle of protocol 2, of 0x0480 of protocol 4.
    let header = r#"{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#;
    let folder = Folder::new();
    for length in [0x0280, 0x0480] {
        let bytes = safetensors(&format!("{header:length$}"), &f32_bytes(&[1.0, 2.0]));
        assert_eq!(bytes[..2], [0x80, (length >> 8) as u8]);
        let path = folder.write("model.safetensors", bytes);
        assert_eq!(Store::open(&path).unwrap().read_f32("w").unwrap(), [1.0, 2.0]);
    }
}

#[test]
fn a_pointer_of_git_lfs() {
    let folder = Folder::new();
    let bytes = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n";
    refused(
        &folder.write("model.safetensors", bytes),
        &["Git LFS pointer", "git lfs pull"],
    );
}

#[test]
fn a_file_of_another_kind() {
    let folder = Folder::new();
    refused(
        &folder.write("a.gguf", b"GGUF\x03\0\0\0"),
        &["GGUF", "safetensors revision"],
    );
    refused(&folder.write("a.h5", b"\x89HDF\r\n\x1a\n"), &["HDF5"]);
    refused(
        &folder.write("a.bin", b"something else"),
        &["neither safetensors nor"],
    );
}

#[test]
fn a_terabyte_opens_and_reads_without_being_touched() {
    // One tensor of eight bytes, one of almost a terabyte of holes: opening reads the header alone.
    let length = 1u64 << 40;
    let header = format!(
        r#"{{"small":{{"dtype":"F32","shape":[2],"data_offsets":[0,8]}},"large":{{"dtype":"F32","shape":[{}],"data_offsets":[8,{length}]}}}}"#,
        (length - 8) / 4
    );
    let start = safetensors(&header, &f32_bytes(&[1.0, 2.0]));
    let folder = Folder::new();
    let path = folder.write_sparse("model.safetensors", &start, start.len() as u64 - 8 + length);
    let store = Store::open(&path).unwrap();
    assert_eq!(store.parameters(), length / 4);
    assert_eq!(store.read_f32("small").unwrap(), [1.0, 2.0]);
    assert_eq!(
        store.read_rows_f32("large", 1 << 35..(1 << 35) + 2).unwrap(),
        [0.0, 0.0]
    );
}
