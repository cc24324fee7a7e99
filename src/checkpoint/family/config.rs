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
        term.parse().ok().or_else(|| size(self.value(term)?))
    }

    /// A key of these sizes whose value is there and is no size, with the value.
    pub fn misgiven(&self, alternatives: &Alternatives, usual: &[&str]) -> Option<(String, &'a Value)> {
        let expressions: Vec<&str> = if alternatives.is_empty() {
            usual.to_vec()
        } else {
            alternatives.holding(self).collect()
        };
        let terms = expressions
            .into_iter()
            .flat_map(|expression| expression.split(" / "))
            .flat_map(|part| part.split(" - "))
            .filter(|term| term.parse::<usize>().is_err());
        for key in terms {
            if let Some(value) = self.value(key).filter(|value| size(value).is_none()) {
                return Some((key.to_owned(), value));
            }
        }
        None
    }
}

/// A whole number from 0 on, which some programs write as `12.0`.
fn size(value: &Value) -> Option<usize> {
    let whole = |x: f64| (x.fract() == 0.0 && (0.0..2f64.powi(53)).contains(&x)).then_some(x as u64);
    let value = value.as_u64().or_else(|| whole(value.as_f64()?))?;
    usize::try_from(value).ok()
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
