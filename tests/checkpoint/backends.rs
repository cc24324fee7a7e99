//! The same scores on every CPU backend.

use wqk::backend::{BackendKind, with_backend};
use wqk::checkpoint::{Options, Settings, open};

use crate::{deviation, triples, weights, zoo};

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
        let checkpoint = open(
            &path,
            &Options {
                offset: -2,
                fold_norm: true,
                ..Options::default()
            },
        )
        .unwrap();
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
            for (a, b) in flex.layers.iter().zip(&other.layers) {
                let (layer, heads) = triples(b);
                // Both sum in f32, in different orders.
                let worst = deviation(a, &layer, &heads, &name);
                assert!(worst < 1e-5, "{name} {} on {}: {worst:.1e}", a.index, kind.name());
            }
        }
    }
}
