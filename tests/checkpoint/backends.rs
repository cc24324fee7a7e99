//! The same scores on every CPU backend.

use std::path::Path;

use wqk::backend::{BackendKind, with_backend};
use wqk::checkpoint::{Options, Settings, open};

use crate::shared::shared;
use crate::{deviation, triples, weights, zoo};

/// Scores a checkpoint on every CPU backend that is compiled in, and compares with flex.
fn agree(path: &Path, options: &Options, tolerance: f64) {
    let checkpoint = open(path, options).unwrap();
    let settings = Settings {
        per_head: true,
        ..Settings::default()
    };
    let flex = checkpoint
        .score::<crate::B>(&settings, &Default::default(), |_| ())
        .unwrap();
    for kind in [BackendKind::NdArray, BackendKind::Tch]
        .into_iter()
        .filter(|kind| kind.is_compiled())
    {
        let other = with_backend!(kind, None, |B, device| checkpoint.score::<B>(
            &settings,
            &device,
            |_| ()
        ))
        .unwrap()
        .unwrap();
        assert_eq!(flex.digest, other.digest);
        for (a, b) in flex.layers.iter().zip(&other.layers) {
            let (layer, heads) = triples(b);
            let worst = deviation(a, &layer, &heads, checkpoint.name());
            let name = checkpoint.name();
            assert!(
                worst < tolerance,
                "{name} {} on {}: {worst:.1e}",
                a.index,
                kind.name()
            );
        }
    }
}

#[test]
fn cpu_backends_agree_on_trained_models() {
    for name in ["rxnmapper-albert", "stories260K", "whisper-small-decoder-partial"] {
        if let Some(path) = shared(&format!("models/{name}")) {
            // Sums in f32 over widths of up to 768, in different orders.
            agree(&path, &Options::default(), 1e-5);
        }
    }
}

#[test]
fn cpu_backends_agree() {
    let folder = tempfile::tempdir().unwrap();
    for (name, model, _) in zoo::models() {
        if !["gpt2", "llama-grouped", "gpt-neox", "deepseek-v2", "musicgen"].contains(&name.as_str()) {
            continue;
        }
        let path = folder.path().join(&name);
        std::fs::create_dir(&path).unwrap();
        weights::write(&model, &path);
        let options = Options {
            offset: -2,
            fold_norm: true,
            ..Options::default()
        };
        // Both sum in f32, in different orders.
        agree(&path, &options, 1e-5);
    }
}
