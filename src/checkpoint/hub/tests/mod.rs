//! Fetching against a hub on this machine.

mod server;

use std::collections::BTreeMap;
use std::path::Path;

use safetensors::tensor::{Dtype, TensorView};
use tempfile::TempDir;

use self::server::{Manner, SHA, Server};
use super::{Hub, HubError, HubModel};
use crate::checkpoint::{Options, open};

const D: usize = 32;

/// A file with the layers `layers` of a LLaMA, and among them a tensor that no score needs, of 2 MB.
fn shard(layers: std::ops::Range<usize>) -> Vec<u8> {
    let weight = |seed: usize| -> Vec<u8> {
        let entry = |i: usize| ((i * 7919 + seed * 104_729) % 1009) as f32 / 1009.0 - 0.5;
        (0..D * D).flat_map(|i| entry(i).to_le_bytes()).collect()
    };
    let mut tensors = vec![(
        format!("model.big.{}", layers.start),
        vec![1 << 19],
        vec![7u8; 1 << 21],
    )];
    for layer in layers {
        for (i, name) in ["q_proj", "k_proj"].iter().enumerate() {
            let name = format!("model.layers.{layer}.self_attn.{name}.weight");
            tensors.push((name, vec![D, D], weight(2 * layer + i)));
        }
    }
    let views = tensors
        .iter()
        .map(|(name, shape, bytes)| (name, TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap()));
    safetensors::serialize(views, None).unwrap()
}

fn config() -> (String, Vec<u8>) {
    let text = format!(r#"{{"model_type": "llama", "hidden_size": {D}, "num_attention_heads": 4}}"#);
    ("config.json".to_owned(), text.into_bytes())
}

/// The files of a model in one piece.
fn single() -> BTreeMap<String, Vec<u8>> {
    BTreeMap::from([config(), ("model.safetensors".to_owned(), shard(0..2))])
}

/// The same weights and one more layer in two shards.
fn sharded() -> BTreeMap<String, Vec<u8>> {
    let names = ["model-1.safetensors", "model-2.safetensors"];
    let mut map = serde_json::Map::new();
    for layer in 0..3 {
        for name in ["q_proj", "k_proj"] {
            let name = format!("model.layers.{layer}.self_attn.{name}.weight");
            map.insert(name, names[layer / 2].into());
        }
    }
    let index = serde_json::json!({ "weight_map": map }).to_string().into_bytes();
    BTreeMap::from([
        config(),
        ("model.safetensors.index.json".to_owned(), index),
        (names[0].to_owned(), shard(0..2)),
        (names[1].to_owned(), shard(2..3)),
    ])
}

fn write(folder: &Path, files: &BTreeMap<String, Vec<u8>>) {
    std::fs::create_dir_all(folder).unwrap();
    for (name, bytes) in files {
        std::fs::write(folder.join(name), bytes).unwrap();
    }
}

fn model() -> HubModel {
    "org/name".parse().unwrap()
}

fn fetch(server: &Server, cache: Option<&Path>) -> (TempDir, Result<std::path::PathBuf, HubError>) {
    let into = tempfile::tempdir().unwrap();
    let hub = Hub::new(&server.endpoint, Some("secret".into()), cache.map(Path::to_owned));
    let path = hub.fetch(&model(), &Options::default(), into.path(), |done, all| {
        assert!(done <= all)
    });
    (into, path)
}

/// The queries and keys of every layer, and the digest.
fn weights(path: &Path) -> (Vec<Vec<f32>>, String) {
    let checkpoint = open(path, &Options::default()).unwrap();
    let values = checkpoint
        .tensors()
        .map(|name| checkpoint.store().read_f32(name).unwrap())
        .collect();
    (values, checkpoint.digest().unwrap())
}

#[test]
fn what_is_fetched_is_what_is_there_and_no_more() {
    for files in [single(), sharded()] {
        let local = tempfile::tempdir().unwrap();
        write(local.path(), &files);
        let server = Server::start(files.clone(), Manner::Well);
        let (_into, path) = fetch(&server, None);
        let path = path.unwrap();
        assert_eq!(weights(&path), weights(local.path()));
        assert_eq!(
            open(&path, &Options::default()).unwrap().name(),
            "org/name@0123456"
        );
        // The beginning of each file, and of the rest only the layers: the large tensor takes most of each.
        let asked: u64 = server
            .files_asked()
            .iter()
            .map(|asked| {
                let range = asked.range.clone().unwrap();
                let length = files.get(asked.path.rsplit('/').next().unwrap()).unwrap().len() as u64;
                range.end.min(length) - range.start
            })
            .sum();
        let all: usize = files.values().map(Vec::len).sum();
        assert!(asked < all as u64 / 3, "{asked} of {all} bytes");
    }
}

#[test]
fn the_token_is_for_the_hub_alone() {
    let server = Server::start(single(), Manner::Redirecting);
    let (_into, path) = fetch(&server, None);
    weights(&path.unwrap());
    let (stored, hub): (Vec<_>, Vec<_>) = server
        .asked()
        .into_iter()
        .partition(|asked| asked.path.starts_with("/storage/"));
    assert!(
        !stored.is_empty()
            && stored
                .iter()
                .all(|asked| asked.token.is_none() && asked.range.is_some())
    );
    assert!(stored.iter().all(|asked| asked.host.starts_with("localhost")));
    assert!(
        hub.iter()
            .all(|asked| asked.token.as_deref() == Some("Bearer secret"))
    );
}

#[test]
fn connections_that_break_are_taken_up_again() {
    let local = tempfile::tempdir().unwrap();
    write(local.path(), &single());
    let server = Server::start(single(), Manner::Badly);
    let (_into, path) = fetch(&server, None);
    assert_eq!(weights(&path.unwrap()), weights(local.path()));
    let resumed = server
        .files_asked()
        .iter()
        .filter(|asked| asked.range.as_ref().unwrap().start > 0)
        .count();
    assert!(resumed > 0);
}

#[test]
fn bad_answers_are_errors_that_say_what_to_do() {
    let with = |manner| {
        fetch(&Server::start(single(), manner), None)
            .1
            .unwrap_err()
            .to_string()
    };
    for (manner, said) in [
        (Manner::Status(401), "set HF_TOKEN"),
        (Manner::Status(403), "conditions"),
        (Manner::Status(404), "there is no model org/name"),
        (Manner::Status(416), "status 416"),
        (Manner::Status(500), "status 500"),
        (Manner::Whole, "whole files only"),
        (Manner::Elsewhere, "not from 0"),
    ] {
        let error = with(manner);
        assert!(
            error.contains(said) && error.lines().count() == 1,
            "{manner:?}: {error}"
        );
        assert!(!error.contains("secret"), "{error}");
    }
    let mut files = single();
    files.remove("model.safetensors");
    files.insert("pytorch_model.bin".into(), vec![1]);
    let error = fetch(&Server::start(files, Manner::Well), None).1.unwrap_err();
    assert!(matches!(error, HubError::NoSafetensors { .. }), "{error}");
    let server = Server::start(single(), Manner::Well);
    let hub = Hub::new(&server.endpoint, None, None);
    let other = "org/name@other".parse().unwrap();
    let into = tempfile::tempdir().unwrap();
    let error = hub
        .fetch(&other, &Options::default(), into.path(), |_, _| ())
        .unwrap_err();
    assert!(matches!(error, HubError::NotFound { .. }), "{error}");
}

#[test]
fn a_hostile_index_leads_nowhere() {
    let mut files = sharded();
    let index = br#"{"weight_map": {"a": "../../../etc/passwd"}}"#.to_vec();
    files.insert("model.safetensors.index.json".into(), index);
    let server = Server::start(files, Manner::Well);
    let error = fetch(&server, None).1.unwrap_err().to_string();
    assert!(error.contains("not the plain name"), "{error}");
    assert!(
        server
            .files_asked()
            .iter()
            .all(|asked| !asked.path.contains("passwd"))
    );
}

#[test]
fn what_is_complete_in_the_cache_is_not_fetched() {
    let cache = tempfile::tempdir().unwrap();
    let folder = cache.path().join("models--org--name");
    let snapshot = folder.join("snapshots").join(SHA);
    write(&snapshot, &single());
    let server = Server::start(single(), Manner::Well);
    let (_into, path) = fetch(&server, Some(cache.path()));
    assert_eq!(path.unwrap(), snapshot);
    assert!(server.files_asked().is_empty());

    // Without a connection the last known revision is taken, where it is complete.
    let nobody = Hub::new("http://127.0.0.1:1", None, Some(cache.path().to_owned()));
    let into = tempfile::tempdir().unwrap();
    let offline = || nobody.fetch(&model(), &Options::default(), into.path(), |_, _| ());
    assert!(matches!(offline().unwrap_err(), HubError::Connection { .. }));
    std::fs::create_dir_all(folder.join("refs")).unwrap();
    std::fs::write(folder.join("refs/main"), SHA).unwrap();
    assert_eq!(offline().unwrap(), snapshot);
    std::fs::remove_file(snapshot.join("model.safetensors")).unwrap();
    assert!(matches!(offline().unwrap_err(), HubError::Connection { .. }));
    let (_into, path) = fetch(&server, Some(cache.path()));
    assert!(!path.unwrap().starts_with(cache.path()));
}

#[test]
fn names_are_told_from_paths() {
    let parse = |text: &str| text.parse::<HubModel>();
    let pythia = parse("hf://EleutherAI/pythia-70m@step1000").unwrap();
    assert_eq!(
        (pythia.repository(), pythia.revision()),
        ("EleutherAI/pythia-70m", "step1000")
    );
    assert_eq!(parse("gpt2").unwrap().revision(), "main");
    assert_eq!(parse("a/b@refs/pr/1").unwrap().to_string(), "a/b@refs/pr/1");
    for bad in [
        "",
        "/etc/passwd",
        "../x",
        "a/b/c",
        "a/../b",
        "a b/c",
        "a/b@",
        "a/b@../x",
        "a/b?x=1",
    ] {
        assert!(parse(bad).is_err(), "{bad}");
    }
    assert!(HubModel::is_like("org/name") && !HubModel::is_like("name") && !HubModel::is_like("./x"));
}
