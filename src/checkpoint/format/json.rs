//! JSON objects in which a repeated key is seen, not silently overwritten.

use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

/// The members of a JSON object, in file order, repeated keys included.
pub(super) struct Members<V>(pub Vec<(String, V)>);

impl<V> Members<V> {
    /// A key that occurs twice.
    pub(super) fn repeated(&self) -> Option<&str> {
        let mut seen = HashSet::with_capacity(self.0.len());
        self.0
            .iter()
            .map(|(key, _)| key.as_str())
            .find(|key| !seen.insert(*key))
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Members<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor<V>(PhantomData<V>);

        impl<'de, V: Deserialize<'de>> Visitor<'de> for MembersVisitor<V> {
            type Value = Members<V>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(MembersVisitor(PhantomData))
    }
}

/// What a value should have been, in serde's words and in a reader's.
const WORDS: [(&str, &str); 11] = [
    ("usize", "a whole number from 0 on"),
    ("u64", "a whole number from 0 on"),
    ("u32", "a whole number from 0 on"),
    ("i64", "a whole number"),
    ("f64", "a number"),
    ("f32", "a number"),
    ("a boolean", "true or false"),
    ("a string", "a text"),
    ("a map", "an object"),
    ("a sequence", "a list"),
    ("a tuple of size 2", "a list of two numbers"),
];

/// A JSON error without the names of Rust's types.
fn in_words(error: &serde_json::Error) -> String {
    const EXPECTED: &str = ", expected ";
    let text = error.to_string();
    // The last one is serde's own: what stands before may be quoted from the file.
    let Some(at) = text.rfind(EXPECTED).map(|at| at + EXPECTED.len()) else {
        return text;
    };
    let (found, wanted) = text.split_at(at);
    let known = WORDS.into_iter().find_map(|(type_name, words)| {
        let rest = wanted.strip_prefix(type_name)?;
        (rest.is_empty() || rest.starts_with(' ')).then(|| format!("{found}{words}{rest}"))
    });
    match (known, wanted.strip_prefix("struct ")) {
        (Some(known), _) => known,
        (None, Some(rest)) => {
            let rest = rest.trim_start_matches(|c: char| c != ' ');
            format!("{found}an object{rest}")
        }
        (None, None) => text,
    }
}

/// A JSON error in one short line: its text may quote the file at any length.
pub(crate) fn brief(error: &serde_json::Error) -> String {
    const LONGEST: usize = 200;
    let text = in_words(error);
    match text.char_indices().nth(LONGEST) {
        None => text.escape_debug().to_string(),
        Some((cut, _)) => {
            format!(
                "{}… at line {} column {}",
                text[..cut].escape_debug(),
                error.line(),
                error.column()
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "read for its errors")]
    struct Config {
        size: usize,
        scale: Option<f64>,
        flag: Option<bool>,
        pair: Option<(usize, usize)>,
    }

    #[test]
    fn errors_name_no_type_of_rust() {
        for (text, said) in [
            (
                r#"{"size": "2"}"#,
                r#"string \"2\", expected a whole number from 0 on at line 1 column 12"#,
            ),
            (
                r#"{"size": -1}"#,
                "integer `-1`, expected a whole number from 0 on",
            ),
            (
                r#"{"size": 1, "scale": "x, expected usize"}"#,
                r#"usize\", expected a number at"#,
            ),
            (r#"{"size": 1, "flag": 1}"#, "expected true or false"),
            (r#"{"size": 1, "pair": 1}"#, "expected a list of two numbers"),
            ("3", "expected an object at line"),
        ] {
            let error = brief(&serde_json::from_str::<Config>(text).unwrap_err());
            assert!(error.contains(said), "{error}");
        }
    }
}
