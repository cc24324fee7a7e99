//! Sharded checkpoints, whole and broken.

use super::*;

const INDEX: &str = "model.safetensors.index.json";

/// Two shards with one tensor each, `a` and `b`, and the index `index`.
fn shards(index: &str) -> Folder {
    let folder = Folder::new();
    folder.write("1.safetensors", two_values(&["a"]));
    folder.write("2.safetensors", two_values(&["b"]));
    folder.write(INDEX, index);
    folder
}

#[test]
fn shards_are_one_store() {
    let folder = shards(r#"{"metadata":{},"weight_map":{"b":"2.safetensors","a":"1.safetensors"}}"#);
    for path in [folder.path().to_owned(), folder.path().join(INDEX)] {
        let store = Store::open(&path).unwrap();
        assert_eq!(store.names().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(store.parameters(), 4);
        assert!(store.info("b").unwrap().file.ends_with("2.safetensors"));
        assert_eq!(store.read_f32("b").unwrap(), [1.0, 2.0]);
    }
}

#[test]
fn other_prefixes() {
    let folder = Folder::new();
    folder.write(
        "pytorch_model-00001-of-00001.bin",
        include_bytes!("../../../../tests/fixtures/torch/linear.pt"),
    );
    folder.write(
        "pytorch_model.bin.index.json",
        r#"{"weight_map":{"weight":"pytorch_model-00001-of-00001.bin","bias":"pytorch_model-00001-of-00001.bin"}}"#,
    );
    assert_eq!(Store::open(folder.path()).unwrap().parameters(), 6);

    let folder = Folder::new();
    folder.write("diffusion-1.safetensors", two_values(&["a"]));
    folder.write(
        "diffusion.safetensors.index.json",
        r#"{"weight_map":{"a":"diffusion-1.safetensors"}}"#,
    );
    assert_eq!(Store::open(folder.path()).unwrap().parameters(), 2);
}

#[test]
fn missing_shard() {
    let folder = shards(r#"{"weight_map":{"a":"1.safetensors","b":"3.safetensors"}}"#);
    refused(
        folder.path(),
        &[
            r#"shard "3.safetensors" is missing"#,
            INDEX,
            "fetch the index and all its shards",
        ],
    );
}

#[test]
fn index_that_names_absent_tensors() {
    let folder = shards(r#"{"weight_map":{"a":"1.safetensors","c":"2.safetensors"}}"#);
    refused(
        folder.path(),
        &[r#"the index puts tensor "c" in shard "2.safetensors", which does not hold it"#],
    );
    // There is such a tensor, but elsewhere.
    let folder = shards(r#"{"weight_map":{"b":"1.safetensors","a":"2.safetensors"}}"#);
    refused(folder.path(), &["which does not hold it"]);
}

#[test]
fn tensor_in_two_shards() {
    let folder = shards(r#"{"weight_map":{"a":"1.safetensors","b":"2.safetensors"}}"#);
    folder.write("2.safetensors", two_values(&["a", "b"]));
    refused(
        folder.path(),
        &[
            r#"tensor "a" is both here and in"#,
            "1.safetensors",
            "2.safetensors",
        ],
    );
}

#[test]
fn tensor_listed_twice() {
    let folder = shards(r#"{"weight_map":{"a":"1.safetensors","a":"2.safetensors"}}"#);
    refused(folder.path(), &[r#"the index lists tensor "a" twice"#]);
}

#[test]
fn shard_names_with_separators() {
    let folder = shards("");
    for name in [
        "../1.safetensors",
        "/etc/passwd",
        "sub/1.safetensors",
        "..",
        ".",
        "",
        r"..\\1",
        "C:1",
        r"a\u0000b",
    ] {
        folder.write(INDEX, format!(r#"{{"weight_map":{{"a":"{name}"}}}}"#));
        refused(
            folder.path(),
            &[
                r#"the index puts tensor "a" in"#,
                "not the plain name of a file beside it",
            ],
        );
    }
}

#[cfg(unix)]
#[test]
fn symbolic_links_are_followed() {
    // As in the hub's cache: the snapshot's files are links to blobs elsewhere.
    let blobs = Folder::new();
    let snapshot = Folder::new();
    let index = br#"{"weight_map":{"a":"1.safetensors"}}"#;
    for (link, blob, bytes) in [
        ("1.safetensors", "0a", two_values(&["a"])),
        (INDEX, "0b", index.to_vec()),
        ("config.json", "0c", b"{\"model_type\":\"bert\"}".to_vec()),
    ] {
        std::os::unix::fs::symlink(blobs.write(blob, bytes), snapshot.path().join(link)).unwrap();
    }
    let store = Store::open(snapshot.path()).unwrap();
    assert_eq!(store.read_f32("a").unwrap(), [1.0, 2.0]);
    assert_eq!(store.config().unwrap()["model_type"], "bert");

    std::fs::remove_file(blobs.path().join("0a")).unwrap();
    refused(snapshot.path(), &[r#"shard "1.safetensors" is missing"#]);
}

#[test]
fn index_that_is_not_one() {
    let folder = shards("[]");
    refused(folder.path(), &["not JSON with a weight_map"]);
    folder.write(INDEX, "{");
    refused(folder.path(), &["not JSON with a weight_map"]);
    folder.write(INDEX, r#"{"weight_map":{"a":3}}"#);
    refused(folder.path(), &["not JSON with a weight_map"]);
    folder.write(INDEX, r#"{"weight_map":{}}"#);
    refused(folder.path(), &["lists no tensors"]);
    folder.write(INDEX, "");
    refused(folder.path(), &["the file is empty", INDEX]);
}

#[test]
fn a_broken_shard_is_named() {
    let folder = shards(r#"{"weight_map":{"a":"1.safetensors","b":"2.safetensors"}}"#);
    let whole = two_values(&["b"]);
    folder.write("2.safetensors", &whole[..whole.len() - 1]);
    refused(folder.path(), &["2.safetensors", "truncated"]);
}
