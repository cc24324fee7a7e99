//! Word pieces, and whatever else the `tokenizers` library reads.

use tokenizers::decoders::wordpiece::WordPiece as WordPieceDecoder;
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::normalizers::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::{AddedToken, Tokenizer};

use super::SPECIAL;
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
        Ok(Self { inner })
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
        let encoding = self.inner.encode_fast(text, false).map_err(failed)?;
        Ok(encoding.get_ids().to_vec())
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
