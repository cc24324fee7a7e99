//! Which file of a folder is read, and its `config.json`.

use super::*;

#[test]
fn nothing_there() {
    let folder = Folder::new();
    refused(&folder.path().join("absent"), &["No such file", "absent"]);
    refused(
        folder.path(),
        &[
            "the folder holds no weights",
            "model.safetensors or pytorch_model.bin",
        ],
    );
    folder.write("model.gguf", b"GGUF");
    refused(folder.path(), &["the folder holds GGUF weights only"]);
}

#[test]
fn the_usual_name_comes_first() {
    let folder = Folder::new();
    folder.write("consolidated.safetensors", two_values(&["other"]));
    folder.write("model.safetensors", two_values(&["usual"]));
    folder.write("pytorch_model.bin", "not even one");
    assert_eq!(
        Store::open(folder.path()).unwrap().names().collect::<Vec<_>>(),
        ["usual"]
    );
}

#[test]
fn an_only_file_of_any_name() {
    let folder = Folder::new();
    folder.write("training_args.bin", "not weights");
    folder.write("anything.safetensors", two_values(&["a"]));
    assert_eq!(Store::open(folder.path()).unwrap().names().count(), 1);
    folder.write("another.safetensors", two_values(&["a"]));
    refused(
        folder.path(),
        &[
            "several weight files",
            "another.safetensors",
            "anything.safetensors",
            "name one file",
        ],
    );
}

#[test]
fn a_single_file_needs_no_config() {
    let folder = Folder::new();
    let path = folder.write("model.safetensors", two_values(&["a"]));
    assert_eq!(Store::open(&path).unwrap().config(), None);
    folder.write("config.json", r#"{"hidden_size":4}"#);
    assert_eq!(Store::open(&path).unwrap().config().unwrap()["hidden_size"], 4);
}

#[test]
fn config_that_is_not_json_or_not_an_object() {
    let folder = Folder::new();
    folder.write("model.safetensors", two_values(&["a"]));
    for (text, fault) in [
        ("{\"a\":", "is not valid JSON"),
        ("", "is not valid JSON"),
        ("<html>", "is not valid JSON"),
        ("[1]", "is not a JSON object"),
        (&"[".repeat(100_000), "is not valid JSON"),
    ] {
        folder.write("config.json", text);
        refused(folder.path(), &["config.json", fault, "restore it"]);
    }
    folder.write_sparse("config.json", b"{", 1 << 40);
    refused(folder.path(), &["has 1099511627776 bytes"]);
}

#[cfg(unix)]
#[test]
fn a_pipe_is_not_waited_for() {
    let folder = Folder::new();
    let path = folder.path().join("model.safetensors");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&path)
            .status()
            .unwrap()
            .success()
    );
    refused(&path, &["not a regular file"]);
    refused(folder.path(), &["not a regular file"]);
}
