//! JSON objects in which a repeated key is seen, not silently overwritten.

use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

use crate::plain::plain;

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

/// A JSON error in one short line: its text may quote the file at any length.
pub(crate) fn brief(error: &serde_json::Error) -> String {
    const LONGEST: usize = 200;
    let text = plain(&error.to_string());
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
