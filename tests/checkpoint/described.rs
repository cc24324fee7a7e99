//! Checkpoints that no entry of the registry describes, and those that contradict themselves.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use wqk::checkpoint::family::{Layout, StackKind};
use wqk::checkpoint::{CheckpointError, Options, open};

use crate::{score, weights};

/// A checkpoint of tensors with these shapes.
fn checkpoint(config: Option<Value>, tensors: &[(&str, [usize; 2])]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let shapes: serde_json::Map<_, _> = tensors
        .iter()
        .map(|(name, shape)| (name.to_string(), json!(["F32", shape])))
        .collect();
    let model = json!({"seed": 11, "tensors": shapes, "config": config.clone().unwrap_or_default()});
    weights::write(&model, folder.path());
    if config.is_none() {
        std::fs::remove_file(folder.path().join("config.json")).unwrap();
    }
    let file = folder.path().join("model.safetensors");
    (folder, file)
}

const Q: &str = "layers.0.self_attn.q_proj.weight";
const K: &str = "layers.0.self_attn.k_proj.weight";

fn error(path: &Path, options: &Options) -> CheckpointError {
    open(path, options).map(|c| c.family().name.clone()).unwrap_err()
}

#[test]
fn an_unknown_family_lists_what_could_be_attention() {
    let tensors = [
        ("blocks.0.mixer.wq.weight", [24, 24]),
        ("blocks.1.mixer.wq.weight", [24, 24]),
        ("head.weight", [9, 24]),
    ];
    let (folder, file) = checkpoint(Some(json!({"model_type": "novel"})), &tensors);
    let message = error(folder.path(), &Options::default()).to_string();
    for part in [
        "\"novel\"",
        "blocks.{l}.mixer.wq.weight [24, 24] x2",
        "--q-pattern",
        "--n-heads",
        "--family",
    ] {
        assert!(message.contains(part), "{message}");
    }
    assert!(
        !message.contains("head.weight") && !message.contains('\n'),
        "{message}"
    );
    let named = Options {
        family: Some("nonesuch".into()),
        ..Options::default()
    };
    assert!(error(&file, &named).to_string().contains("nonesuch"));
}

#[test]
fn flags_describe_a_single_file_without_configuration() {
    let (_folder, file) = checkpoint(None, &[(Q, [48, 40]), (K, [16, 40])]);
    assert!(matches!(
        error(&file, &Options::default()),
        CheckpointError::UnknownFamily { .. }
    ));
    let family = Options {
        family: Some("llama".into()),
        ..Options::default()
    };
    assert!(error(&file, &family).to_string().contains("--n-heads"));

    let heads = Options {
        heads: Some(6),
        ..family
    };
    let by_family = score(&file, &heads, false);
    assert_eq!(
        (
            by_family.layers[0].scores.n_kv_heads,
            by_family.layers[0].scores.head_dim
        ),
        (2, 8)
    );
    let described = Options {
        query_pattern: Some("layers.{l}.self_attn.q_proj".into()),
        key_pattern: Some("layers.{l}.self_attn.k_proj.weight".into()),
        stack: Some(StackKind::Decoder),
        heads: Some(6),
        ..Options::default()
    };
    assert_eq!(score(&file, &described, false).layers, by_family.layers);
}

#[test]
fn flags_describe_fused_layouts() {
    let (_folder, file) = checkpoint(None, &[("h.3.qkv.weight", [72, 24])]);
    let of = |layout| Options {
        query_pattern: Some("h.{l}.qkv".into()),
        layout,
        heads: Some(3),
        ..Options::default()
    };
    let scores = |layout| score(&file, &of(layout), false).layers.remove(0);
    let (fused, interleaved) = (scores(None), scores(Some(Layout::FusedGroups)));
    assert_eq!(
        (fused.index, fused.module.as_str(), fused.scores.head_dim),
        (3, "h.3", 8)
    );
    assert_ne!(fused.scores, interleaved.scores);
    for (options, part) in [
        (
            Options {
                query_pattern: Some("qkv".into()),
                ..Options::default()
            },
            "{l}",
        ),
        (of(Some(Layout::Separate)), "--k-pattern"),
        (of(Some(Layout::FusedColumns)), "24 outputs"),
        (
            Options {
                heads: Some(5),
                ..of(None)
            },
            "(5)",
        ),
    ] {
        let message = error(&file, &options).to_string();
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn a_configuration_that_contradicts_the_shapes_is_named_with_them() {
    let llama = |extra: Value| {
        let mut config = json!({"model_type": "llama", "num_attention_heads": 6, "num_key_value_heads": 2,
                                "hidden_size": 40, "num_hidden_layers": 1});
        config
            .as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        config
    };
    let cases = [
        (json!({"num_attention_heads": 7}), "num_attention_heads = 7"),
        (json!({"num_key_value_heads": 3}), "num_key_value_heads = 3"),
        (json!({"hidden_size": 48}), "hidden_size = 48"),
        (json!({"head_dim": 9}), "head_dim = 9"),
        (json!({"num_hidden_layers": 0}), "num_hidden_layers = 0"),
        (json!({"num_attention_heads": 0}), "num_attention_heads = 0"),
        (json!({"num_attention_heads": u64::MAX}), "num_attention_heads"),
        (json!({"head_dim": u64::MAX}), "head_dim"),
    ];
    for (extra, part) in cases {
        let (folder, _) = checkpoint(Some(llama(extra)), &[(Q, [48, 40]), (K, [16, 40])]);
        let message = error(folder.path(), &Options::default()).to_string();
        assert!(
            message.contains(part) && message.contains("_proj.weight") && message.contains("40]"),
            "{message}"
        );
    }
    let (folder, _) = checkpoint(Some(llama(json!({}))), &[(Q, [48, 40]), (K, [16, 36])]);
    assert!(
        error(folder.path(), &Options::default())
            .to_string()
            .contains("36 inputs")
    );
    let (folder, _) = checkpoint(Some(llama(json!({}))), &[(Q, [48, 40])]);
    assert!(
        error(folder.path(), &Options::default())
            .to_string()
            .contains("k_proj")
    );
    let (folder, _) = checkpoint(Some(llama(json!({}))), &[("other.weight", [48, 40])]);
    assert!(matches!(
        error(folder.path(), &Options::default()),
        CheckpointError::NoLayers { .. }
    ));
    let twice = [
        (Q, [48, 40]),
        (K, [16, 40]),
        ("b.layers.0.self_attn.q_proj.weight", [48, 40]),
    ];
    let (folder, _) = checkpoint(Some(llama(json!({}))), &twice);
    assert!(matches!(
        error(folder.path(), &Options::default()),
        CheckpointError::Ambiguous { .. }
    ));
}

#[test]
fn hostile_names_and_lists_do_no_harm() {
    let config = json!({"model_type": "mllama", "text_config": {"num_attention_heads": 6, "num_key_value_heads": 2,
        "cross_attention_layers": [0, 0, 0, 0, -1, "x", 1.5, u64::MAX]}});
    let name = "language_model.model.layers.4294967295.self_attn.q_proj.weight";
    let key = name.replace("q_proj", "k_proj");
    let (folder, _) = checkpoint(Some(config), &[(name, [48, 40]), (&key, [16, 40])]);
    let report = score(folder.path(), &Options::default(), false);
    assert_eq!(report.layers[0].index, 4_294_967_294);
}
