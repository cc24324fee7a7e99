//! Reading a model's configuration: which value, from where.

use serde_json::{Map, Value};

use super::condition::Alternatives;

/// The values of one stack: those of `config.json`, then the registry's defaults.
#[derive(Debug, Clone)]
pub(crate) struct Config<'a> {
    scope: Option<&'a Map<String, Value>>,
    defaults: &'a Map<String, Value>,
}

impl<'a> Config<'a> {
    /// `within`: the object of `file` that holds the stack's values; where it is missing (a tower saved by
    /// itself) the file's own are meant.
    pub fn new(file: Option<&'a Value>, within: Option<&str>, defaults: &'a Map<String, Value>) -> Self {
        let root = file.and_then(Value::as_object);
        let scope = within.and_then(|key| root?.get(key)?.as_object()).or(root);
        Self { scope, defaults }
    }

    /// The value at a dotted path. A null counts as missing.
    pub fn value(&self, path: &str) -> Option<&'a Value> {
        let at = |map: &'a Map<String, Value>| {
            let mut keys = path.split('.');
            let first = map.get(keys.next()?)?;
            keys.try_fold(first, |value, key| value.get(key))
                .filter(|value| !value.is_null())
        };
        self.scope.and_then(at).or_else(|| at(self.defaults))
    }

    /// A number at a dotted path.
    pub fn number(&self, path: &str) -> Option<f64> {
        self.value(path)?.as_f64()
    }

    /// The first size of these that is there; of the names in `usual` where there are none.
    pub fn size(&self, alternatives: &Alternatives, usual: &[&str]) -> Option<Size> {
        if alternatives.is_empty() {
            usual.iter().find_map(|key| self.expression(key))
        } else {
            alternatives
                .holding(self)
                .find_map(|expression| self.expression(expression))
        }
    }

    /// A number, a path, `a / b` or `a - b`.
    fn expression(&self, expression: &str) -> Option<Size> {
        let value = if let Some((a, b)) = expression.split_once(" / ") {
            self.term(a)?.checked_div(self.term(b)?)?
        } else if let Some((a, b)) = expression.split_once(" - ") {
            self.term(a)?.checked_sub(self.term(b)?)?
        } else {
            self.term(expression)?
        };
        Some(Size {
            value,
            from: expression.to_owned(),
        })
    }

    fn term(&self, term: &str) -> Option<usize> {
        term.parse()
            .ok()
            .or_else(|| usize::try_from(self.value(term)?.as_u64()?).ok())
    }
}

/// A size, and the configuration's key (or expression) that gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Size {
    pub value: usize,
    pub from: String,
}

impl Size {
    /// A value that the user stated by a flag.
    pub fn stated(value: Option<usize>, flag: &str) -> Option<Self> {
        value.map(|value| Self {
            value,
            from: flag.to_owned(),
        })
    }
}
