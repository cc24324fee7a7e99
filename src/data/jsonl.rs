//! JSONL: one object a line.

use std::fmt;
use std::io::{BufRead, Read};

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::records::{Fault, Fields, LARGEST_RECORD, Records, listed};
use super::source::{Origin, Source};
use super::{DataError, Document};

/// The documents of a JSONL file. Blank lines are passed over.
pub(super) struct JsonlDocuments {
    reader: Box<dyn BufRead + Send>,
    origin: Origin,
    fields: Fields,
    longest: usize,
    /// The line that was read last, counted from 1.
    line: u64,
    records: u64,
}

impl JsonlDocuments {
    pub(super) fn new(source: Source, fields: Fields) -> Self {
        Self {
            origin: source.origin(),
            reader: source.reader,
            fields,
            longest: LARGEST_RECORD,
            line: 0,
            records: 0,
        }
    }

    /// Reads a line; `None` at the end.
    fn line(&mut self, line: &mut Vec<u8>) -> Result<Option<()>, Fault> {
        line.clear();
        let error = |error| Fault::File(self.origin.error(&error));
        let limit = self.longest as u64;
        self.reader
            .by_ref()
            .take(limit)
            .read_until(b'\n', line)
            .map_err(error)?;
        if line.is_empty() {
            return Ok(None);
        }
        self.line += 1;
        if line.len() == self.longest && line.last() != Some(&b'\n') {
            self.reader.skip_until(b'\n').map_err(error)?;
            return Err(self.bad(format!("is longer than {} MiB", self.longest >> 20)));
        }
        Ok(Some(()))
    }

    fn bad(&self, problem: String) -> Fault {
        Fault::record(DataError::Record {
            path: self.origin.path(),
            place: format!("line {}", self.line),
            problem,
        })
    }

    fn parse(&self, line: &[u8]) -> Result<Document, Fault> {
        let mut json = serde_json::Deserializer::from_slice(line);
        let found = Pick(&self.fields)
            .deserialize(&mut json)
            .and_then(|found| json.end().map(|()| found))
            .map_err(|error| self.bad(format!("not a JSON object ({})", in_line(&error))))?;
        let text = match found.text {
            Some((_, Ok(text))) => text,
            Some((which, Err(kind))) => {
                return Err(self.bad(format!(
                    "the field `{}` is {kind}, not a string",
                    self.fields.text[which]
                )));
            }
            None => {
                return Err(self.bad(format!(
                    "no field {} (the fields are {})",
                    self.fields.wanted(),
                    listed(&found.others)
                )));
            }
        };
        let title = found.title.and_then(Result::ok).unwrap_or_default();
        Ok(Document { title, text })
    }
}

impl Records for JsonlDocuments {
    fn document(&mut self) -> Result<Option<Document>, Fault> {
        let mut line = Vec::new();
        while self.line(&mut line)?.is_some() {
            let trimmed = line.trim_ascii();
            if trimmed.is_empty() {
                continue;
            }
            self.records += 1;
            if self.records == 1 && trimmed[0] == b'[' {
                return Err(Fault::File(DataError::NotText {
                    path: self.origin.path(),
                    kind: "a JSON array",
                    remedy: "write one object a line, as `jq -c '.[]'` does",
                }));
            }
            return self.parse(trimmed).map(Some);
        }
        if self.records == 0 {
            return Err(Fault::File(DataError::Empty {
                path: self.origin.path(),
                bytes: self.origin.bytes(),
                pages: "no line with a record".to_owned(),
            }));
        }
        Ok(None)
    }

    fn damage(&mut self) -> Option<DataError> {
        self.origin.damage(&mut self.reader)
    }
}

/// What the parser says, the column only: it saw one line.
fn in_line(error: &serde_json::Error) -> String {
    let said = error.to_string();
    let what = said.split(" at line ").next().unwrap_or(&said);
    format!("{what} at column {}", error.column())
}

/// What was found in a record.
#[derive(Default)]
struct Found {
    /// The number of the candidate, and its text or what it is instead.
    text: Option<(usize, Result<String, &'static str>)>,
    title: Option<Result<String, &'static str>>,
    /// The other fields, for messages; empty once a text was found.
    others: Vec<String>,
}

/// Takes the wanted fields out of an object and passes over all others without keeping them.
struct Pick<'a>(&'a Fields);

impl<'de> DeserializeSeed<'de> for Pick<'_> {
    type Value = Found;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Found, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Pick<'_> {
    type Value = Found;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Found, A::Error> {
        let mut found = Found::default();
        while let Some(key) = map.next_key::<String>()? {
            let which = self.0.text.iter().position(|name| *name == key);
            let is_title = self.0.title.as_ref() == Some(&key);
            let better = which.filter(|&which| found.text.as_ref().is_none_or(|(at, _)| which <= *at));
            if better.is_none() && !is_title {
                map.next_value::<IgnoredAny>()?;
                if found.text.is_none() {
                    found.others.push(key);
                }
                continue;
            }
            let value = map.next_value::<StringOr>()?.0;
            if is_title {
                found.title = Some(value.clone());
            }
            if let Some(which) = better {
                found.text = Some((which, value));
                found.others.clear();
            }
        }
        Ok(found)
    }
}

/// A string, or what stands in its place.
struct StringOr(Result<String, &'static str>);

impl<'de> Deserialize<'de> for StringOr {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StringOrVisitor)
    }
}

struct StringOrVisitor;

impl<'de> Visitor<'de> for StringOrVisitor {
    type Value = StringOr;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_str<E>(self, text: &str) -> Result<StringOr, E> {
        Ok(StringOr(Ok(text.to_owned())))
    }

    fn visit_string<E>(self, text: String) -> Result<StringOr, E> {
        Ok(StringOr(Ok(text)))
    }

    fn visit_unit<E>(self) -> Result<StringOr, E> {
        Ok(StringOr(Err("null")))
    }

    fn visit_bool<E>(self, _: bool) -> Result<StringOr, E> {
        Ok(StringOr(Err("a boolean")))
    }

    fn visit_i64<E>(self, _: i64) -> Result<StringOr, E> {
        Ok(StringOr(Err("a number")))
    }

    fn visit_u64<E>(self, _: u64) -> Result<StringOr, E> {
        Ok(StringOr(Err("a number")))
    }

    fn visit_f64<E>(self, _: f64) -> Result<StringOr, E> {
        Ok(StringOr(Err("a number")))
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<StringOr, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(StringOr(Err("an array")))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<StringOr, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(StringOr(Err("an object")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(content: &'static str, fields: Fields, longest: usize) -> Vec<Result<Document, String>> {
        let source = Source::new("x.jsonl".into(), content.as_bytes()).unwrap();
        let mut documents = JsonlDocuments::new(source, fields);
        documents.longest = longest;
        let mut all = Vec::new();
        loop {
            match documents.document() {
                Ok(Some(document)) => all.push(Ok(document)),
                Ok(None) => return all,
                Err(Fault::Records(error, _)) => all.push(Err(error.to_string())),
                Err(Fault::File(error)) => {
                    all.push(Err(error.to_string()));
                    return all;
                }
            }
        }
    }

    #[test]
    fn fields_by_name_and_by_habit() {
        let content = r#"{"raw_content": "a", "id": 1}
{"comment_text": "x", "text": "b \u00e9", "title": "T"}
{"text": "c", "raw_content": {"deep": [1, {"text": "no"}]}}"#;
        let texts = |field: Option<&str>| -> Vec<_> {
            read(content, Fields::new(field, None), 1 << 20)
                .into_iter()
                .map(|document| document.map(|document| document.text).unwrap_or_else(|e| e))
                .collect()
        };
        assert_eq!(texts(None), ["a", "b é", "c"]);
        let named = texts(Some("raw_content"));
        assert_eq!(named[0], "a");
        assert!(
            named[1].contains("line 2: no field `raw_content` (the fields are comment_text, text, title)")
        );
        assert!(named[2].contains("line 3: the field `raw_content` is an object, not a string"));
        let titled = read(content, Fields::new(None, Some("title")), 1 << 20);
        assert_eq!(titled[1].as_ref().unwrap().with_title(), "T\nb é");
    }

    #[test]
    fn a_bad_line_is_one_record() {
        let content = "{\"text\": \"a\"}\n{\"text\": \"cut\n\n[1]\n{\"text\": 3}\n{\"text\": \"a very long line indeed, longer than allowed\"}\n{\"text\": \"\\ud800\"}\n{\"text\": \"z\"} x\n{\"text\": \"end\"}";
        let read = read(content, Fields::new(None, None), 40);
        let said: Vec<String> = read
            .iter()
            .map(|r| r.as_ref().map_or_else(Clone::clone, |d| d.text.clone()))
            .collect();
        assert_eq!((said[0].as_str(), said[7].as_str()), ("a", "end"));
        for (said, expected) in said[1..7].iter().zip([
            "line 2: not a JSON object (EOF while parsing a string at column 13",
            "line 4: not a JSON object (invalid type: sequence, expected an object",
            "line 5: the field `text` is a number",
            "line 6: is longer than 0 MiB",
            "line 7: not a JSON object (",
            "line 8: not a JSON object (trailing characters",
        ]) {
            assert!(said.contains(expected), "{said}");
            assert!(said.contains("on_bad"), "{said}");
        }
    }
}
