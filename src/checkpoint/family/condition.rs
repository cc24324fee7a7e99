//! Values of the registry that depend on the model's configuration: `"A if key"`, in order of preference.

use serde::de::{Deserialize, Deserializer, Error};
use serde_json::Value;

use super::config::Config;

/// Values in order of preference, each with a condition on the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Alternatives(Vec<Guarded>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Guarded {
    value: String,
    condition: Option<Condition>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Condition {
    key: String,
    holds: Expected,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Expected {
    True,
    NotTrue,
    Equal(String),
}

impl Alternatives {
    /// One value, always.
    pub fn one(value: impl Into<String>) -> Self {
        Self(vec![Guarded {
            value: value.into(),
            condition: None,
        }])
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The values whose conditions hold, in order.
    pub(crate) fn holding<'a>(&'a self, config: &'a Config<'_>) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .filter(|a| a.condition.as_ref().is_none_or(|c| c.holds(config)))
            .map(|a| a.value.as_str())
    }

    /// All values, whatever their conditions.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|a| a.value.as_str())
    }
}

impl Condition {
    fn holds(&self, config: &Config<'_>) -> bool {
        let value = config.value(&self.key);
        match &self.holds {
            Expected::True => value == Some(&Value::Bool(true)),
            Expected::NotTrue => value != Some(&Value::Bool(true)),
            Expected::Equal(expected) => match value {
                Some(Value::String(s)) => s == expected,
                Some(Value::Bool(b)) => expected == if *b { "true" } else { "false" },
                _ => false,
            },
        }
    }
}

impl std::str::FromStr for Guarded {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((value, condition)) = text.split_once(" if ") else {
            return Ok(Self {
                value: text.to_owned(),
                condition: None,
            });
        };
        let (key, holds) = match (condition.strip_prefix("not "), condition.split_once('=')) {
            (Some(key), _) => (key, Expected::NotTrue),
            (None, Some((key, expected))) => (key, Expected::Equal(expected.to_owned())),
            (None, None) => (condition, Expected::True),
        };
        if value.is_empty() || key.is_empty() || key.contains(' ') {
            return Err(format!("{text:?} is not of the form \"A if key\""));
        }
        Ok(Self {
            value: value.to_owned(),
            condition: Some(Condition {
                key: key.to_owned(),
                holds,
            }),
        })
    }
}

impl<'de> Deserialize<'de> for Alternatives {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        #[serde(untagged)]
        enum OneOrMany {
            One(String),
            Many(Vec<String>),
        }
        let texts = match OneOrMany::deserialize(deserializer)? {
            OneOrMany::One(text) => vec![text],
            OneOrMany::Many(texts) => texts,
        };
        texts
            .iter()
            .map(|text| text.parse())
            .collect::<Result<_, _>>()
            .map(Self)
            .map_err(D::Error::custom)
    }
}
