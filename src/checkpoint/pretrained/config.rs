//! The keys of `config.json`, each with the default that its class has.

use serde_json::Value;

use super::PretrainedError;
use crate::checkpoint::format::Store;
use crate::model::Activation;

/// A `config.json`.
pub(super) struct HubConfig<'a> {
    store: &'a Store,
    value: &'a Value,
}

impl<'a> HubConfig<'a> {
    /// That of a checkpoint, of one family.
    ///
    /// # Errors
    /// A folder without one, or of another family.
    pub fn of(store: &'a Store, wanted: &'static str, remedy: &'static str) -> Result<Self, PretrainedError> {
        let family = |found: &str| PretrainedError::Family {
            path: store.path().to_owned(),
            found: found.to_owned(),
            wanted,
            remedy,
        };
        let value = store
            .config()
            .ok_or_else(|| family("not given, there is no config.json"))?;
        match value.get("model_type").and_then(Value::as_str) {
            Some(found) if found == wanted => Ok(Self { store, value }),
            found => Err(family(found.unwrap_or("not given"))),
        }
    }

    /// The entry of a key, where there is one.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.value.get(key).filter(|value| !value.is_null())
    }

    /// A whole number.
    pub fn size(&self, key: &'static str, default: usize) -> Result<usize, PretrainedError> {
        self.read(key, default, "a whole number", |value| {
            value.as_u64().and_then(|size| usize::try_from(size).ok())
        })
    }

    /// A number.
    pub fn number(&self, key: &'static str, default: f64) -> Result<f64, PretrainedError> {
        self.read(key, default, "a number", Value::as_f64)
    }

    /// Yes or no.
    pub fn flag(&self, key: &'static str, default: bool) -> Result<bool, PretrainedError> {
        self.read(key, default, "true or false", Value::as_bool)
    }

    /// The activation, where ours is the same function.
    pub fn activation(&self) -> Result<Activation, PretrainedError> {
        let exact = "the exact \"gelu\" or \"relu\"";
        self.read("hidden_act", Activation::Gelu, exact, |value| {
            match value.as_str()? {
                "gelu" => Some(Activation::Gelu),
                "relu" => Some(Activation::Relu),
                _ => None,
            }
        })
    }

    fn read<T>(
        &self,
        key: &'static str,
        default: T,
        must: &str,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Result<T, PretrainedError> {
        match self.get(key) {
            None => Ok(default),
            Some(value) => read(value).ok_or_else(|| self.refuse(key, must)),
        }
    }

    /// The refusal of what stands under a key.
    pub fn refuse(&self, key: &'static str, must: &str) -> PretrainedError {
        PretrainedError::Config {
            path: self.store.path().to_owned(),
            key,
            value: self.value.get(key).unwrap_or(&Value::Null).to_string(),
            must: must.to_owned(),
        }
    }
}
