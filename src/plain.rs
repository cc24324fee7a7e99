//! What serde says of a text that it cannot read, in the words of those who wrote the text.

/// A message of serde without the names of Rust's types: `"64", but must be a whole number`.
///
/// Anything else is left as it is.
pub(crate) fn plain(message: &str) -> String {
    // JSON's messages end in the place.
    let (said, place) = match message.rfind(" at line ") {
        Some(at) => message.split_at(at),
        None => (message, ""),
    };
    if let Some(Mismatch { given, expected }) = mismatch(said) {
        // As the two formats call it.
        let table = if place.is_empty() { "a table" } else { "an object" };
        return format!(
            "{}, but must be {}{place}",
            value(given, table),
            kind(expected, table)
        );
    }
    if let Some((variant, known)) = quoted(said, "unknown variant `") {
        return format!("'{variant}', but must be {}{place}", listed(known));
    }
    if let Some((field, known)) = quoted(said, "unknown field `") {
        let known = listed(known);
        return format!("no such field as '{field}'{place}: remove it, or was {known} meant");
    }
    if let Some((field, _)) = quoted(said, "missing field `") {
        return format!("{field} is not set{place}: set it");
    }
    message.to_owned()
}

/// What was found, and what would have been read.
pub(crate) struct Mismatch<'a> {
    /// As serde writes it.
    pub given: &'a str,
    /// As serde writes it.
    pub expected: &'a str,
}

/// The two sides of a message about a value of another kind.
pub(crate) fn mismatch(message: &str) -> Option<Mismatch<'_>> {
    let rest = message
        .strip_prefix("invalid type: ")
        .or_else(|| message.strip_prefix("invalid value: "))?;
    let (given, expected) = rest.rsplit_once(", expected ")?;
    Some(Mismatch { given, expected })
}

/// The name in a message that begins like this, and what follows it.
pub(crate) fn quoted<'a>(message: &'a str, beginning: &str) -> Option<(&'a str, &'a str)> {
    message.strip_prefix(beginning)?.split_once('`')
}

/// A value as it was written.
fn value<'a>(given: &'a str, table: &'a str) -> &'a str {
    match given {
        "sequence" => "a list",
        "map" => table,
        "null" | "unit value" => "nothing",
        "unit variant" | "newtype variant" => "a value of another kind",
        _ => given
            .strip_prefix("string ")
            .or_else(|| given.split('`').nth(1))
            .unwrap_or(given),
    }
}

fn kind<'a>(expected: &'a str, table: &'a str) -> &'a str {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number that is not negative",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a string" | "string" | "path string" => "a text in quotes",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a tuple of size 2" => "a list of two",
        "a map" | "map" => table,
        _ if expected.starts_with("struct ") || expected.contains("tagged enum ") => table,
        _ if expected.starts_with("enum ")
            || matches!(expected, "string or map" | "string only" | "variant identifier") =>
        {
            "a name in quotes"
        }
        _ => expected,
    }
}

/// The names in ", expected one of `a`, `b`".
fn listed(expected: &str) -> String {
    let names: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
    match names.as_slice() {
        [] => "something else".to_owned(),
        [only] => (*only).to_owned(),
        names => format!("one of {}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        One,
        Two,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only read")]
    struct Fields {
        whole: usize,
        number: Option<f64>,
        text: Option<String>,
        flag: Option<bool>,
        kind: Option<Kind>,
        list: Option<Vec<String>>,
    }

    #[test]
    fn messages_of_both_formats_name_no_type_of_rust() {
        for (toml, said) in [
            (
                "whole = 'a, expected b'",
                r#""a, expected b", but must be a whole number"#,
            ),
            (
                "whole = -1",
                "-1, but must be a whole number that is not negative",
            ),
            ("whole = 1.5", "1.5, but must be a whole number"),
            ("whole = []", "a list, but must be"),
            ("whole = 1\nnumber = true", "true, but must be a number"),
            ("whole = 1\ntext = {}", "a table, but must be a text in quotes"),
            ("whole = 1\nflag = 0", "0, but must be true or false"),
            ("whole = 1\nlist = 'a'", "\"a\", but must be a list"),
            (
                "whole = 1\nkind = 'three'",
                "'three', but must be one of one, two",
            ),
            (
                "hole = 1",
                "no such field as 'hole': remove it, or was one of whole, number",
            ),
            ("", "whole is not set: set it"),
        ] {
            let error = toml::from_str::<Fields>(toml).unwrap_err();
            let plain = plain(error.message());
            assert!(plain.starts_with(said), "{plain}");
        }
        // What stands in the file may be such a message itself.
        let error =
            serde_json::from_str::<Fields>(r#"{"whole": 1, "number": "x, expected usize"}"#).unwrap_err();
        let said = plain(&error.to_string());
        assert!(
            said.starts_with(r#""x, expected usize", but must be a number at line 1"#),
            "{said}"
        );
        let error = serde_json::from_str::<Fields>("3").unwrap_err();
        let said = plain(&error.to_string());
        assert!(said.starts_with("3, but must be an object at line 1"), "{said}");
        let error = serde_json::from_str::<(usize, (usize, usize))>("[1, 2]").unwrap_err();
        let said = plain(&error.to_string());
        assert!(
            said.starts_with("2, but must be a list of two at line 1"),
            "{said}"
        );
        let error = serde_json::from_str::<Fields>(r#"{"whole": null}"#).unwrap_err();
        let plain = plain(&error.to_string());
        assert_eq!(
            plain,
            "nothing, but must be a whole number that is not negative at line 1 column 14"
        );
    }
}
