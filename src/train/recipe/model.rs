//! The section `[model]`: a size by name, and every field of a model's configuration that is to differ.

use burn::config::Config;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::attention::AttentionInit;
use crate::model::{TextTransformerConfig, ViTConfig};

/// What is trained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
#[non_exhaustive]
pub enum ModelSection {
    /// A [`TextTransformer`](crate::model::TextTransformer).
    Text(ModelFields),
    /// A [`ViT`](crate::model::ViT).
    Vision(ModelFields),
}

/// A size and what differs from it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelFields {
    /// A size of the structure paper, from which all other fields are taken: `mini`, `base` or `large` for text,
    /// `cifar10` or `imagenet` for images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    /// Fields of the model's configuration, by their names there.
    #[serde(flatten)]
    pub fields: Table,
}

/// Fields that other sections decide.
const ELSEWHERE: [(&str, &str); 2] = [
    ("attention_init", "set it in the section [init]"),
    ("n_classes", "the data decide it"),
];

impl ModelFields {
    /// The configuration of a text transformer over a vocabulary.
    pub(super) fn text(
        &self,
        vocabulary: usize,
        init: AttentionInit,
    ) -> Result<TextTransformerConfig, (String, String)> {
        let base = match self.size.as_deref() {
            Some("mini") => TextTransformerConfig::mini(),
            Some("base") => TextTransformerConfig::base(),
            Some("large") => TextTransformerConfig::large(),
            Some(other) => return Err(unknown_size(other, "mini, base or large")),
            None => {
                for needed in ["d_model", "n_layers", "n_heads"] {
                    if !self.fields.contains_key(needed) {
                        return Err((needed.to_owned(), "not set: set it, or `size`".to_owned()));
                    }
                }
                TextTransformerConfig::mini()
            }
        };
        let base = TextTransformerConfig {
            vocab_size: vocabulary,
            ..base
        };
        Ok(self.over(&base)?.with_attention_init(init))
    }

    /// The configuration of a vision transformer over a number of classes.
    pub(super) fn vision(&self, classes: usize, init: AttentionInit) -> Result<ViTConfig, (String, String)> {
        let base = match self.size.as_deref() {
            Some("cifar10") => ViTConfig::cifar10(),
            Some("imagenet") => ViTConfig::imagenet(),
            Some(other) => return Err(unknown_size(other, "cifar10 or imagenet")),
            None => {
                self.need(&["d_model", "n_layers", "n_heads", "image_size", "patch_size"])?;
                ViTConfig::cifar10()
            }
        };
        let base = ViTConfig {
            n_classes: classes,
            ..base
        };
        Ok(self.over(&base)?.with_attention_init(init))
    }

    fn need(&self, fields: &[&str]) -> Result<(), (String, String)> {
        match fields.iter().find(|field| !self.fields.contains_key(**field)) {
            Some(field) => Err(((*field).to_owned(), "not set: set it, or `size`".to_owned())),
            None => Ok(()),
        }
    }

    /// The configuration with the fields of this section in it.
    fn over<C: Config + Serialize + DeserializeOwned>(&self, base: &C) -> Result<C, (String, String)> {
        let mut table = Table::try_from(base).map_err(|error| (String::new(), error.to_string()))?;
        for (field, value) in &self.fields {
            if let Some((_, remedy)) = ELSEWHERE.iter().find(|(name, _)| name == field) {
                return Err((field.clone(), format!("not a field of this section: {remedy}")));
            }
            table.insert(field.clone(), whole_as_float(value, table.get(field)));
        }
        let config: C = super::fault::read(&table)?;
        // What a configuration has not would have been passed over.
        let heeded = Table::try_from(&config).map_err(|error| (String::new(), error.to_string()))?;
        match super::table::unheeded(&self.fields, &heeded, "") {
            Some((field, known)) => Err((field, super::unknown_field(&known))),
            None => Ok(config),
        }
    }
}

/// `1` where a float is meant.
fn whole_as_float(value: &Value, like: Option<&Value>) -> Value {
    match (value, like) {
        (Value::Integer(whole), Some(Value::Float(_))) => Value::Float(*whole as f64),
        _ => value.clone(),
    }
}

fn unknown_size(size: &str, known: &str) -> (String, String) {
    (
        "size".to_owned(),
        format!("'{size}' is no size: choose {known}, or set the fields themselves"),
    )
}
