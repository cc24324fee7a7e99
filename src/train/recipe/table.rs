//! Recipes as tables: merging one over another, and finding what a table says that nobody heeds.

use toml::{Table, Value};

/// The fields by which a table says what kind it is of. Tables of two kinds have nothing to share.
pub(super) const KINDS: [&str; 2] = ["kind", "scheme"];

/// Lays `over` on top of `under`: tables field by field, anything else as a whole; so also a table of another
/// kind than the one under it.
pub(super) fn merge(under: &mut Table, over: &Table) {
    for (key, value) in over {
        match (under.get_mut(key), value) {
            (Some(Value::Table(under)), Value::Table(over)) if same_kind(under, over) => merge(under, over),
            _ => {
                under.insert(key.clone(), value.clone());
            }
        }
    }
}

fn same_kind(under: &Table, over: &Table) -> bool {
    KINDS.iter().all(|kind| {
        over.get(*kind)
            .is_none_or(|value| under.get(*kind) == Some(value))
    })
}

/// Sets one field by its path, such as `train.steps`.
pub(super) fn set(table: &mut Table, path: &str, value: Value) -> Result<(), String> {
    let mut over = value;
    for key in path.rsplit('.') {
        if key.trim().is_empty() {
            return Err(format!(
                "'{path}' is no path of fields: write it as `train.steps`"
            ));
        }
        over = Value::Table(Table::from_iter([(key.trim().to_owned(), over)]));
    }
    if let Value::Table(over) = over {
        merge(table, &over);
    }
    Ok(())
}

/// The first field of `given` that `heeded` has not: a misspelt one, or one that its kind does not take. Beside its
/// path, the fields that would have been heeded there.
pub(super) fn unheeded(given: &Table, heeded: &Table, path: &str) -> Option<(String, Vec<String>)> {
    for (key, value) in given {
        let here = join(path, key);
        match (value, heeded.get(key)) {
            (_, None) => {
                let known = heeded.keys().filter(|known| !given.contains_key(*known));
                return Some((here, known.cloned().collect()));
            }
            (Value::Table(given), Some(Value::Table(heeded))) => {
                if let Some(found) = unheeded(given, heeded, &here) {
                    return Some(found);
                }
            }
            _ => {}
        }
    }
    None
}

/// The first field in which two tables differ, with both values.
pub(super) fn difference(a: &Table, b: &Table, path: &str) -> Option<(String, String, String)> {
    let absent = || "not set".to_owned();
    let keys = a.keys().chain(b.keys().filter(|key| !a.contains_key(*key)));
    for key in keys {
        let here = join(path, key);
        match (a.get(key), b.get(key)) {
            (Some(Value::Table(a)), Some(Value::Table(b))) => {
                if let Some(found) = difference(a, b, &here) {
                    return Some(found);
                }
            }
            (a, b) if a != b => {
                let show = |value: Option<&Value>| value.map_or_else(absent, ToString::to_string);
                return Some((here, show(a), show(b)));
            }
            _ => {}
        }
    }
    None
}

pub(super) fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        text.parse().unwrap()
    }

    #[test]
    fn fields_are_laid_over_each_other_and_kinds_replaced() {
        let mut under = table(
            "seeds = [0, 1]\ntrain = {steps = 5, decay = 'linear'}\nobjective = {kind = 'masked', rate = 0.15}",
        );
        merge(
            &mut under,
            &table("seeds = [7]\ntrain = {steps = 6}\nobjective = {kind = 'autoregressive'}"),
        );
        let want = table(
            "seeds = [7]\ntrain = {steps = 6, decay = 'linear'}\nobjective = {kind = 'autoregressive'}",
        );
        assert_eq!(under, want);
        merge(&mut under, &table("train = {steps = 8}"));
        set(&mut under, "train.decay", Value::from("cosine")).unwrap();
        assert_eq!(under["train"], Value::from(table("steps = 8\ndecay = 'cosine'")));
        assert!(set(&mut under, "train..decay", Value::from(1)).is_err());
    }

    #[test]
    fn misspelt_fields_are_found_with_those_that_were_meant() {
        let heeded = table("seeds = [0]\ntrain = {steps = 5, decay = 'linear'}");
        assert_eq!(unheeded(&table("train = {steps = 1}"), &heeded, ""), None);
        let (path, known) = unheeded(&table("train = {stepz = 1, decay = 'linear'}"), &heeded, "").unwrap();
        assert_eq!((path.as_str(), known), ("train.stepz", vec!["steps".to_owned()]));
    }

    #[test]
    fn the_first_difference_is_named() {
        let (a, b) = (table("train = {steps = 5}"), table("train = {steps = 6}\nx = 1"));
        assert_eq!(difference(&a, &a, ""), None);
        let (path, one, other) = difference(&a, &b, "").unwrap();
        assert_eq!(
            (path.as_str(), one.as_str(), other.as_str()),
            ("train.steps", "5", "6")
        );
        let (path, one, _) = difference(&table("x = 1"), &table(""), "").unwrap();
        assert_eq!((path.as_str(), one.as_str()), ("x", "1"));
    }
}
