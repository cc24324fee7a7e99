//! The files of a tokenizer as Hugging Face's `transformers` loads them.

use serde_json::{Value, json};

use super::{Kind, Tokenizer};
use crate::checkpoint::pretrained::HubFile;
use crate::data::DataError;

impl Tokenizer {
    /// `tokenizer.json` and `tokenizer_config.json` for the folder of a model that takes `max_length` tokens.
    ///
    /// Characters are written as words of one character. Bytes have no such form: `None`.
    ///
    /// # Errors
    /// As [`to_json`](Self::to_json).
    pub fn hub_files(&self, max_length: usize) -> Result<Option<Vec<HubFile>>, DataError> {
        let tokenizer = match &self.kind {
            Kind::Pieces(_) => self.to_json()?,
            Kind::Characters(characters) => self.of_words(characters.alphabet()).to_string(),
            Kind::Bytes(_) => return Ok(None),
        };
        let mut config = json!({
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": max_length,
        });
        for (key, id) in [
            ("pad_token", self.vocabulary.pad),
            ("unk_token", self.vocabulary.unk),
            ("cls_token", self.vocabulary.cls),
            ("sep_token", self.vocabulary.sep),
            ("mask_token", self.vocabulary.mask),
        ] {
            if let Some(id) = id {
                config[key] = self.decode(&[id])?.into();
            }
        }
        let file = |name, content| HubFile { name, content };
        Ok(Some(vec![
            file("tokenizer.json", tokenizer),
            file("tokenizer_config.json", format!("{config:#}\n")),
        ]))
    }

    /// A tokenizer of the `tokenizers` library that splits text into the characters of an alphabet.
    fn of_words(&self, alphabet: &[char]) -> Value {
        let mut vocabulary = serde_json::Map::new();
        let mut special = Vec::new();
        for (id, content) in super::SPECIAL.into_iter().enumerate() {
            special.push(json!({
                "id": id, "content": content, "special": true,
                "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
            }));
            vocabulary.insert(content.to_owned(), id.into());
        }
        for (id, character) in (super::SPECIAL.len()..).zip(alphabet) {
            vocabulary.insert(character.to_string(), id.into());
        }
        json!({
            "version": "1.0",
            "truncation": null,
            "padding": null,
            "added_tokens": special,
            "normalizer": null,
            "pre_tokenizer": {
                "type": "Split", "pattern": {"Regex": r"[\s\S]"}, "behavior": "Isolated", "invert": false,
            },
            "post_processor": null,
            "decoder": {"type": "Fuse"},
            "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_words_of_one_character() {
        let text = "Zeno of Elea,\non motion — or rest.";
        let tokenizer = Tokenizer::characters([Ok::<_, DataError>(text)], 12).unwrap();
        let files = tokenizer.hub_files(64).unwrap().unwrap();
        let read = Tokenizer::from_content("tokenizer.json", files[0].content.as_bytes()).unwrap();
        assert_eq!(read.vocabulary(), tokenizer.vocabulary());
        assert_eq!(read.encode(text).unwrap(), tokenizer.encode(text).unwrap());
        assert!(files[1].content.contains(r#""mask_token": "[MASK]""#));
        assert_eq!(Tokenizer::bytes().hub_files(64).unwrap(), None);
    }
}
