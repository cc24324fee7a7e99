//! Word pieces, and whatever else the `tokenizers` library reads.

use tokenizers::decoders::wordpiece::WordPiece as WordPieceDecoder;
use tokenizers::models::ModelWrapper;
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::normalizers::{BertNormalizer, NormalizerWrapper};
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::{AddedToken, Tokenizer};

use super::SPECIAL;
use super::words::Words;
use crate::data::DataError;
use crate::objective::Vocabulary;

/// What the families call their special tokens, ours first.
const PAD: &[&str] = &["[PAD]", "<pad>", "<|pad|>", "<|padding|>"];
const UNK: &[&str] = &["[UNK]", "<unk>"];
const CLS: &[&str] = &[
    "[CLS]",
    "<s>",
    "<cls>",
    "<bos>",
    "<|begin_of_text|>",
    "<|startoftext|>",
];
const SEP: &[&str] = &[
    "[SEP]",
    "</s>",
    "<sep>",
    "<eos>",
    "<|endoftext|>",
    "<|end_of_text|>",
];
const MASK: &[&str] = &["[MASK]", "<mask>"];

/// A tokenizer of the library.
#[derive(Debug, Clone)]
pub(super) struct Pieces {
    inner: Tokenizer,
    /// Where each word can be encoded by itself.
    words: Option<Words>,
}

impl Pieces {
    /// Reads a `tokenizer.json`.
    pub(super) fn from_json(content: &[u8]) -> Result<Self, String> {
        Tokenizer::from_bytes(content)
            .map_err(|error| error.to_string())
            .and_then(Self::new)
    }

    /// Reads a `vocab.txt` and does with it what BERT does.
    pub(super) fn from_vocab(content: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(content).map_err(|error| {
            let line = content[..error.valid_up_to()]
                .iter()
                .filter(|&&byte| byte == b'\n')
                .count();
            format!("line {} is not UTF-8", line + 1)
        })?;
        let pieces: Vec<&str> = text.lines().map(str::trim_end).collect();
        if !pieces.contains(&"[UNK]") {
            return Err(format!("none of its {} lines is [UNK]", pieces.len()));
        }
        let is_special = |piece: &str| piece.starts_with('[') && piece.ends_with(']');
        // A vocabulary that was made after lower-casing holds nothing that lower-casing changes. (It may
        // hold capitals that have no small letter, such as ℝ.)
        let lowercase = pieces
            .iter()
            .all(|piece| is_special(piece) || piece.to_lowercase() == *piece);
        let special: Vec<AddedToken> = SPECIAL
            .iter()
            .filter(|name| pieces.contains(name))
            .map(|&name| AddedToken::from(name, true))
            .collect();
        let vocab = WordPiece::read_bytes(content).map_err(|error| error.to_string())?;
        if vocab.len() < pieces.len() {
            return Err(format!(
                "{} of its lines are repeated",
                pieces.len() - vocab.len()
            ));
        }
        let model = WordPiece::builder()
            .vocab(vocab)
            .unk_token("[UNK]".to_owned())
            .build()
            .map_err(|error| error.to_string())?;
        let mut inner = Tokenizer::new(model);
        inner
            .with_normalizer(Some(BertNormalizer::new(true, true, None, lowercase)))
            .with_pre_tokenizer(Some(BertPreTokenizer))
            .with_decoder(Some(WordPieceDecoder::default()));
        inner.add_special_tokens(&special);
        Self::new(inner)
    }

    fn new(mut inner: Tokenizer) -> Result<Self, String> {
        // Sentence tokenizers carry the length they were published with: text would be cut and padded.
        inner.with_truncation(None).map_err(|error| error.to_string())?;
        inner.with_padding(None);
        // Text that reads "[MASK]" is text.
        inner.set_encode_special_tokens(true);
        if inner.get_vocab_size(true) == 0 {
            return Err("its vocabulary is empty".to_owned());
        }
        let words = is_by_words(&inner).then(Words::new);
        Ok(Self { inner, words })
    }

    pub(super) fn vocabulary(&self) -> Vocabulary {
        let id = |names: &[&str]| names.iter().find_map(|name| self.inner.token_to_id(name));
        // One past the last id: a vocabulary may have gaps.
        let largest = self.inner.get_vocab(true).into_values().max();
        Vocabulary {
            size: largest.map_or(0, |id| id as usize + 1),
            pad: id(PAD),
            unk: id(UNK),
            cls: id(CLS),
            sep: id(SEP),
            mask: id(MASK),
        }
    }

    pub(super) fn to_json(&self) -> Result<String, String> {
        self.inner.to_string(false).map_err(|error| error.to_string())
    }

    pub(super) fn encode(&self, text: &str) -> Result<Vec<u32>, DataError> {
        let failed = |error: tokenizers::Error| DataError::Tokenize {
            bytes: text.len(),
            message: error.to_string(),
        };
        let encode = |text: &str| {
            let encoding = self.inner.encode_fast(text, false).map_err(failed)?;
            Ok(encoding.get_ids().to_vec())
        };
        match &self.words {
            Some(words) => words.encode(text, encode),
            None => encode(text),
        }
    }

    pub(super) fn decode(&self, tokens: &[u32]) -> Result<String, DataError> {
        self.inner
            .decode(tokens, false)
            .map_err(|error| DataError::Tokenize {
                bytes: size_of_val(tokens),
                message: error.to_string(),
            })
    }
}

/// Whether the tokens of a text are those of its words, one after the other: so it is with BERT's
/// normaliser, which changes characters one by one, BERT's splitting, and word pieces. Added tokens could
/// reach across words, but for the special ones, which are never looked for in a text.
fn is_by_words(inner: &Tokenizer) -> bool {
    matches!(inner.get_model(), ModelWrapper::WordPiece(_))
        && matches!(inner.get_normalizer(), Some(NormalizerWrapper::BertNormalizer(_)))
        && matches!(
            inner.get_pre_tokenizer(),
            Some(PreTokenizerWrapper::BertPreTokenizer(_))
        )
        && inner
            .get_added_tokens_decoder()
            .values()
            .all(|token| token.special)
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;
    use crate::data::bundled;
    use crate::random;

    /// By words and by the whole text the tokens are the same, on real articles and on whatever characters
    /// there are.
    #[test]
    fn by_words_as_by_the_whole() {
        let vocabulary = include_bytes!("../../../assets/wikipedia/vocab.txt");
        let pieces = Pieces::from_vocab(vocabulary).unwrap();
        assert!(pieces.words.is_some());
        let whole = |text: &str| pieces.inner.encode_fast(text, false).unwrap().get_ids().to_vec();
        for article in bundled::documents().unwrap().take(12) {
            let text = article.unwrap().with_title();
            assert_eq!(pieces.encode(&text).unwrap(), whole(&text));
        }
        // Blanks of all kinds, controls, marks that combine, scripts without blanks, special tokens as text.
        let odd: Vec<char> = " \t\r\n\u{85}\u{a0}\u{2028}\u{3000}\u{200b}\u{feff}\0\u{1}\u{301}\u{327}éÅÅßİΣς中文한国a1-.'’[MASK]\u{1f600}\u{d7ff}\u{10ffff}"
            .chars()
            .collect();
        let mut rng = random::stream(2, ["odd text"]);
        for _ in 0..3000 {
            let text: String = (0..rng.random_range(1..40))
                .map(|_| odd[rng.random_range(0..odd.len())])
                .collect();
            assert_eq!(pieces.encode(&text).unwrap(), whole(&text), "{text:?}");
        }
        let long = "x".repeat(300) + " [MASK] and [UNK]";
        assert_eq!(pieces.encode(&long).unwrap(), whole(&long));
    }

    #[test]
    fn an_added_token_may_reach_across_words() {
        let vocabulary = include_bytes!("../../../assets/wikipedia/vocab.txt");
        let mut inner = Pieces::from_vocab(vocabulary).unwrap().inner;
        inner.add_tokens(&[AddedToken::from("of the", false)]);
        let pieces = Pieces::new(inner).unwrap();
        assert!(pieces.words.is_none());
        let tokens = pieces.encode("king of the hill").unwrap();
        assert!(tokens.contains(&pieces.inner.token_to_id("of the").unwrap()));
    }
}
