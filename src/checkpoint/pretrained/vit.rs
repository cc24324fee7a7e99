//! The vision transformer: `ViTForImageClassification`.

use serde_json::{Map, Value, json};

use super::config::HubConfig;
use super::names::Pairs;
use super::{Parameters, PretrainedError};
use crate::checkpoint::format::Store;
use crate::model::{Activation, ViTConfig};

/// What our model has no use for.
const UNUSED: &str = "pooler.";

/// A vision transformer in our terms.
pub(super) struct Read {
    pub config: ViTConfig,
    pub classes: Vec<String>,
    pub parameters: Parameters,
    pub notes: Vec<String>,
}

/// Reads configuration and parameters.
pub(super) fn read(store: &Store) -> Result<Read, PretrainedError> {
    let hub = HubConfig::of(store, "vit", "load a vision transformer with a classifier")?;
    let classifier = store
        .info("classifier.weight")
        .ok_or_else(|| PretrainedError::Missing {
            path: store.path().to_owned(),
            name: "classifier.weight".to_owned(),
            remedy: "load a model with a classifier (ViTForImageClassification)",
        })?;
    // `config.json` counts classes by their names only, and leaves these out where there are two.
    let n_classes = classifier.shape.first().copied().unwrap_or(0);
    let config = config(&hub, n_classes)?;
    config.check()?;
    let prefix = if store.info("vit.embeddings.cls_token").is_some() {
        "vit."
    } else {
        ""
    };
    let unused = |name: &str| name.strip_prefix(prefix).unwrap_or(name).starts_with(UNUSED);
    let names = hub.get("id2label").and_then(Value::as_object);
    let class = |number: usize| {
        let name = names.and_then(|names| names.get(&number.to_string())?.as_str());
        name.map_or_else(|| format!("class {number}"), str::to_owned)
    };
    let mut notes = Vec::new();
    if store.names().any(unused) {
        notes.push("the pooler is not used".to_owned());
    }
    Ok(Read {
        classes: (0..n_classes).map(class).collect(),
        parameters: pairs(&config, prefix).read(store, unused)?,
        config,
        notes,
    })
}

/// `config.json` in our terms; defaults are those of the library's `ViTConfig`.
fn config(hub: &HubConfig<'_>, n_classes: usize) -> Result<ViTConfig, PretrainedError> {
    if hub.activation()? != Activation::Gelu {
        return Err(hub.refuse("hidden_act", "the exact \"gelu\""));
    }
    if !hub.flag("qkv_bias", true)? {
        return Err(hub.refuse("qkv_bias", "true"));
    }
    let width = hub.size("hidden_size", 768)?;
    let config = ViTConfig::new(
        hub.size("image_size", 224)?,
        hub.size("patch_size", 16)?,
        n_classes,
        width,
        hub.size("num_hidden_layers", 12)?,
        hub.size("num_attention_heads", 12)?,
    );
    Ok(config
        .with_d_ff(Some(hub.size("intermediate_size", 3072)?))
        .with_channels(hub.size("num_channels", 3)?)
        .with_dropout(hub.number("hidden_dropout_prob", 0.0)?)
        .with_attention_dropout(hub.number("attention_probs_dropout_prob", 0.0)?)
        .with_norm_epsilon(hub.number("layer_norm_eps", 1e-12)?)
        .with_init_std(hub.number("initializer_range", 0.02)?))
}

/// All parameters of a model under both names.
fn pairs(config: &ViTConfig, prefix: &str) -> Pairs {
    let (d, f, patch, n_tokens) = (
        config.d_model,
        config.ff_width(),
        config.patch_size,
        config.n_patches() + 1,
    );
    let mut pairs = Pairs::default();
    let embeddings = format!("{prefix}embeddings");
    // A convolution whose stride is its width is a linear map of patches.
    pairs.transposed(
        "patches",
        &format!("{embeddings}.patch_embeddings.projection"),
        [config.channels * patch * patch, d],
        &[d, config.channels, patch, patch],
    );
    pairs.reshaped("class_token", &[d], format!("{embeddings}.cls_token"), &[1, 1, d]);
    pairs.reshaped(
        "positions.weight",
        &[n_tokens, d],
        format!("{embeddings}.position_embeddings"),
        &[1, n_tokens, d],
    );
    for layer in 0..config.n_layers {
        let (ours, theirs) = (
            format!("blocks.{layer}"),
            format!("{prefix}encoder.layer.{layer}"),
        );
        pairs.block(&ours, &theirs, "attention", [d, f]);
        pairs.norm(
            &format!("{ours}.norms.attention"),
            &format!("{theirs}.layernorm_before"),
            d,
        );
        pairs.norm(
            &format!("{ours}.norms.feed_forward"),
            &format!("{theirs}.layernorm_after"),
            d,
        );
    }
    pairs.norm("final_norm", &format!("{prefix}layernorm"), d);
    pairs.linear("head", "classifier", [d, config.n_classes]);
    pairs
}

/// The tensors and the `config.json` of a model.
pub(super) fn write(
    config: &ViTConfig,
    classes: &[String],
    parameters: &Parameters,
) -> Result<(Vec<(String, super::Parameter)>, Value), PretrainedError> {
    let tensors = pairs(config, "vit.").export(parameters)?;
    let class = |number: usize| {
        let name = classes.get(number);
        name.map_or_else(|| format!("LABEL_{number}"), Clone::clone)
    };
    let mut by_number = Map::new();
    let mut by_name = Map::new();
    for number in 0..config.n_classes {
        by_number.insert(number.to_string(), class(number).into());
        by_name.insert(class(number), number.into());
    }
    let json = json!({
        "architectures": ["ViTForImageClassification"],
        "model_type": "vit",
        "image_size": config.image_size,
        "patch_size": config.patch_size,
        "num_channels": config.channels,
        "hidden_size": config.d_model,
        "num_hidden_layers": config.n_layers,
        "num_attention_heads": config.n_heads,
        "intermediate_size": config.ff_width(),
        "hidden_act": "gelu",
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": config.attention_dropout,
        "initializer_range": config.init_std,
        "layer_norm_eps": config.norm_epsilon,
        "qkv_bias": true,
        "encoder_stride": config.patch_size,
        "id2label": by_number,
        "label2id": by_name,
        "torch_dtype": "float32",
    });
    Ok((tensors, json))
}
