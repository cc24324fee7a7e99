//! BERT: `BertForMaskedLM` for an encoder, `BertLMHeadModel` for a decoder, `BertModel` for one without a head.

use serde_json::{Value, json};

use super::config::HubConfig;
use super::names::{Pairs, check};
use super::{Parameters, PretrainedError, TextWeights};
use crate::checkpoint::format::Store;
use crate::model::{
    Activation, FeedForwardKind, InverseTemperature, NormPlacement, Strength, TextTransformerConfig,
};

/// The output map, where a file holds it beside the embedding to which it is tied.
const DECODER: &str = "cls.predictions.decoder.weight";
/// What our model has no use for: the next-sentence part, and buffers.
const UNUSED: [&str; 4] = [
    "pooler.",
    "cls.seq_relationship.",
    "embeddings.position_ids",
    "cls.predictions.decoder.bias",
];
/// Segments of a model that is written: BERT's two, both 0, as our model has none.
const SEGMENTS: usize = 2;

/// Reads configuration and parameters.
pub(super) fn read(store: &Store) -> Result<TextWeights, PretrainedError> {
    let hub = HubConfig::of(
        store,
        "bert",
        "load a BERT, or score the checkpoint by `wqk score`",
    )?;
    let prefix = if store.info("bert.embeddings.word_embeddings.weight").is_some() {
        "bert."
    } else {
        ""
    };
    let head = store.names().any(|name| name.starts_with("cls.predictions."));
    let config = config(&hub, head)?;
    config.check()?;

    let segments = format!("{prefix}embeddings.token_type_embeddings.weight");
    let n_segments = hub.size("type_vocab_size", 2)?;
    if store.info(&segments).is_some() {
        check(store, &segments, &[n_segments, config.d_model])?;
    }
    let passed_over = |name: &str| {
        let name = name.strip_prefix(prefix).unwrap_or(name);
        name == DECODER
            || name == "embeddings.token_type_embeddings.weight"
            || UNUSED.iter().any(|unused| name.starts_with(unused))
    };
    let mut parameters = pairs(&config, prefix).read(store, passed_over)?;
    let mut notes = Vec::new();
    if store.info(&segments).is_some() && n_segments > 0 {
        let first = store.read_rows_f32(&segments, 0..1)?;
        add_to_rows(&mut parameters, "positions.weight", &first);
        notes.push("the embedding of the first segment was added to the positions".to_owned());
    }
    if store.info(DECODER).is_some() {
        check(store, DECODER, &[config.vocab_size, config.d_model])?;
        let tokens = parameters.get("tokens.weight").map(|tokens| &tokens.values[..]);
        if tokens != Some(&store.read_f32(DECODER)?[..]) {
            return Err(PretrainedError::Untied {
                path: store.path().to_owned(),
                name: DECODER.to_owned(),
            });
        }
    }
    if !head {
        // The output bias of a model without a head.
        let shape = vec![config.vocab_size];
        let values = vec![0.0; config.vocab_size];
        let bias = super::Parameter { shape, values };
        parameters.by_name.insert("output_bias".to_owned(), bias);
        notes.push(
            "there is no prediction head: logits are products with the embedding, untrained".to_owned(),
        );
    }
    let unused: Vec<&str> = store
        .names()
        .filter(|name| {
            let name = name.strip_prefix(prefix).unwrap_or(name);
            UNUSED[..2].iter().any(|unused| name.starts_with(unused))
        })
        .collect();
    if !unused.is_empty() {
        notes.push(format!("not used: {}", unused.join(", ")));
    }
    Ok(TextWeights {
        causal: hub.flag("is_decoder", false)?,
        config,
        parameters,
        notes,
    })
}

fn add_to_rows(parameters: &mut Parameters, name: &str, row: &[f32]) {
    if let Some(parameter) = parameters.by_name.get_mut(name) {
        for line in parameter.values.chunks_exact_mut(row.len().max(1)) {
            for (value, add) in line.iter_mut().zip(row) {
                *value += add;
            }
        }
    }
}

/// `config.json` in our terms; defaults are those of `BertConfig`.
fn config(hub: &HubConfig<'_>, head: bool) -> Result<TextTransformerConfig, PretrainedError> {
    if hub
        .get("position_embedding_type")
        .is_some_and(|kind| kind != "absolute")
    {
        return Err(hub.refuse("position_embedding_type", "\"absolute\""));
    }
    if hub.flag("add_cross_attention", false)? {
        return Err(hub.refuse("add_cross_attention", "none"));
    }
    let width = hub.size("hidden_size", 768)?;
    let config = TextTransformerConfig::new(
        hub.size("vocab_size", 30_522)?,
        width,
        hub.size("num_hidden_layers", 12)?,
        hub.size("num_attention_heads", 12)?,
    );
    Ok(config
        .with_d_ff(Some(hub.size("intermediate_size", 3072)?))
        .with_max_positions(hub.size("max_position_embeddings", 512)?)
        .with_dropout(hub.number("hidden_dropout_prob", 0.1)?)
        .with_attention_dropout(hub.number("attention_probs_dropout_prob", 0.1)?)
        .with_norm_epsilon(hub.number("layer_norm_eps", 1e-12)?)
        .with_activation(hub.activation()?)
        .with_init_std(hub.number("initializer_range", 0.02)?)
        .with_head_transform(head))
}

/// All parameters of a model under both names.
fn pairs(config: &TextTransformerConfig, prefix: &str) -> Pairs {
    let (d, f) = (config.d_model, config.ff_width());
    let mut pairs = Pairs::default();
    let embeddings = format!("{prefix}embeddings");
    pairs.same(
        "tokens.weight",
        format!("{embeddings}.word_embeddings.weight"),
        &[config.vocab_size, d],
    );
    pairs.same(
        "positions.weight",
        format!("{embeddings}.position_embeddings.weight"),
        &[config.max_positions, d],
    );
    pairs.norm("embedding_norm", &format!("{embeddings}.LayerNorm"), d);
    for layer in 0..config.n_layers {
        let (ours, theirs) = (
            format!("blocks.{layer}"),
            format!("{prefix}encoder.layer.{layer}"),
        );
        pairs.block(&ours, &theirs, "self", [d, f]);
        pairs.norm(
            &format!("{ours}.norms.attention"),
            &format!("{theirs}.attention.output.LayerNorm"),
            d,
        );
        pairs.norm(
            &format!("{ours}.norms.feed_forward"),
            &format!("{theirs}.output.LayerNorm"),
            d,
        );
    }
    if config.head_transform {
        pairs.linear("head.dense", "cls.predictions.transform.dense", [d, d]);
        pairs.norm("head.norm", "cls.predictions.transform.LayerNorm", d);
        pairs.same("output_bias", "cls.predictions.bias", &[config.vocab_size]);
    }
    pairs
}

/// The tensors and the `config.json` of a model.
pub(super) fn write(
    config: &TextTransformerConfig,
    causal: bool,
    pad: Option<u32>,
    parameters: &Parameters,
) -> Result<(Vec<(String, super::Parameter)>, Value), PretrainedError> {
    let class = if causal {
        "BertLMHeadModel"
    } else {
        "BertForMaskedLM"
    };
    expressible(config, class)?;
    let mut tensors = pairs(config, "bert.").export(parameters)?;
    tensors.push((
        "bert.embeddings.token_type_embeddings.weight".to_owned(),
        super::Parameter {
            shape: vec![SEGMENTS, config.d_model],
            values: vec![0.0; SEGMENTS * config.d_model],
        },
    ));
    let activation = match config.activation {
        Activation::Relu => "relu",
        _ => "gelu",
    };
    let json = json!({
        "architectures": [class],
        "model_type": "bert",
        "vocab_size": config.vocab_size,
        "hidden_size": config.d_model,
        "num_hidden_layers": config.n_layers,
        "num_attention_heads": config.n_heads,
        "intermediate_size": config.ff_width(),
        "hidden_act": activation,
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": config.attention_dropout,
        "max_position_embeddings": config.max_positions,
        "type_vocab_size": SEGMENTS,
        "initializer_range": config.init_std,
        "layer_norm_eps": config.norm_epsilon,
        "pad_token_id": pad,
        "position_embedding_type": "absolute",
        "is_decoder": causal,
        "tie_word_embeddings": true,
        "torch_dtype": "float32",
    });
    Ok((tensors, json))
}

/// Refuses what BERT's classes cannot be told.
fn expressible(config: &TextTransformerConfig, class: &'static str) -> Result<(), PretrainedError> {
    let refuse = |what: String| {
        Err(PretrainedError::Unexpressible {
            what,
            class,
            remedy: "its checkpoints are safetensors files that any program can read",
        })
    };
    let strengths = |strength: &Strength| strength.of_layers(config.n_layers);
    let own_head = config.d_model / config.n_heads.max(1);
    if config.norm != NormPlacement::Post {
        let place = match config.norm {
            NormPlacement::Pre => "before each branch",
            _ => "nowhere",
        };
        return refuse(format!("the model has its norms {place}, BERT after each sum"));
    }
    for (field, is_ones) in [
        (
            "attention_strength",
            strengths(&config.attention_strength)?.iter().all(|&s| s == 1.0),
        ),
        (
            "feed_forward_strength",
            strengths(&config.feed_forward_strength)?
                .iter()
                .all(|&s| s == 1.0),
        ),
    ] {
        if !is_ones || config.train_strengths {
            return refuse(format!("{field} is not 1 in every layer"));
        }
    }
    if config.inverse_temperature != InverseTemperature::ONE {
        return refuse("inverse_temperature is not 1".to_owned());
    }
    if config.n_kv_heads.is_some_and(|heads| heads != config.n_heads) {
        return refuse("the model has fewer key heads than query heads".to_owned());
    }
    if config.head_dim.is_some_and(|width| width != own_head) {
        return refuse(format!("head_dim is not d_model / n_heads, {own_head}"));
    }
    if config.feed_forward != FeedForwardKind::Mlp || config.activation == Activation::Linear {
        return refuse("the feed-forward is not two maps with GELU or ReLU between them".to_owned());
    }
    if !config.bias {
        return refuse("the model has no biases".to_owned());
    }
    if !config.head_transform {
        return refuse("the model has no transform before the vocabulary".to_owned());
    }
    Ok(())
}
