//! Which field of a recipe cannot be read, and why.

use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::table::{KINDS, join};
use crate::plain::{Mismatch, mismatch, plain, quoted};

/// Reads a table.
///
/// # Errors
/// The path of the field at fault, and what is wrong with it.
pub(super) fn read<T: DeserializeOwned>(table: &Table) -> Result<T, (String, String)> {
    let error = match table.clone().try_into::<T>() {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    let message = error.message();
    // The whole of it ends in the path, "…\nin `data`\n", as far as serde knows it: a table that is told by its kind
    // is read as a whole.
    let whole = error.to_string();
    let path = whole
        .rsplit_once("in `")
        .map_or("", |(_, path)| path.trim_end().trim_end_matches('`'));
    if let Some((field, _)) = quoted(message, "missing field `") {
        return Err((join(path, field), "not set: set it".to_owned()));
    }
    if let Some((field, known)) = quoted(message, "unknown field `") {
        let known: Vec<String> = known.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        return Err((join(path, field), super::unknown_field(&known)));
    }
    let mut like = Vec::new();
    if let Some(value) = at(table, path) {
        find(&value, path, message, &mut like);
    }
    // Of several fields with the same value it is the one by whose change the error speaks of another.
    let is_it = |field: &&String| {
        let mut other = table.clone();
        if let Some(value) = at_mut(&mut other, field) {
            change(value);
        }
        let error = other.try_into::<T>().err();
        error.is_none_or(|error| error.message() != message)
    };
    let field = match like.as_slice() {
        [only] => Some(only),
        several => several.iter().find(is_it).or(several.first()),
    };
    Err((field.map_or(path, String::as_str).to_owned(), plain(message)))
}

/// The value at a path; the table itself where that is empty.
fn at(table: &Table, path: &str) -> Option<Value> {
    let mut value = Value::Table(table.clone());
    for key in path.split('.').filter(|key| !key.is_empty()) {
        value = value.get(key)?.clone();
    }
    Some(value)
}

/// The fields whose values are what an error speaks of.
fn find(value: &Value, path: &str, message: &str, found: &mut Vec<String>) {
    if is_meant(value, path, message) {
        found.push(path.to_owned());
        return;
    }
    match value {
        Value::Table(table) => {
            for (key, value) in table {
                find(value, &join(path, key), message, found);
            }
        }
        // Elements have no names of their own.
        Value::Array(values) if values.iter().any(|value| is_meant(value, path, message)) => {
            found.push(path.to_owned());
        }
        _ => {}
    }
}

fn is_meant(value: &Value, path: &str, message: &str) -> bool {
    if let Some((variant, _)) = quoted(message, "unknown variant `") {
        return value.as_str() == Some(variant);
    }
    let is_kind = KINDS.contains(&path.rsplit('.').next().unwrap_or_default());
    let Some(Mismatch { given, .. }) = mismatch(message).filter(|_| !is_kind || !value.is_str()) else {
        return false;
    };
    match value {
        Value::String(text) => given == format!("string {text:?}"),
        Value::Integer(whole) => given == format!("integer `{whole}`"),
        Value::Float(_) => given.starts_with("floating point ") && given.contains(&value.to_string()),
        Value::Boolean(flag) => given == format!("boolean `{flag}`"),
        Value::Array(_) => given == "sequence",
        Value::Table(_) => given == "map" && !path.is_empty(),
        Value::Datetime(_) => false,
    }
}

fn at_mut<'a>(table: &'a mut Table, path: &str) -> Option<&'a mut Value> {
    match path.split_once('.') {
        None => table.get_mut(path),
        Some((section, rest)) => at_mut(table.get_mut(section)?.as_table_mut()?, rest),
    }
}

/// Makes another value of the same type.
fn change(value: &mut Value) {
    match value {
        Value::String(text) => text.push('x'),
        Value::Integer(whole) => *whole ^= 1,
        Value::Float(number) => *number += 1.0,
        Value::Boolean(flag) => *flag = !*flag,
        Value::Array(values) => values.iter_mut().for_each(change),
        Value::Table(_) | Value::Datetime(_) => {}
    }
}
