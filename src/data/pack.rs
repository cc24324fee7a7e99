//! Documents packed into full sequences.

use rayon::prelude::*;

use super::{DataError, Document, Sequences, Tokenizer};

/// How many characters are gathered before they are tokenised together, on all threads.
const CHUNK: usize = 4 << 20;

/// The texts of documents in chunks of a few megabytes; an error comes after the chunk before it, and ends
/// them.
pub(super) fn chunks(
    documents: impl IntoIterator<Item = Result<Document, DataError>>,
) -> impl Iterator<Item = Result<Vec<String>, DataError>> {
    let mut documents = documents.into_iter();
    let mut failed = None;
    std::iter::from_fn(move || {
        if let Some(error) = failed.take() {
            return Some(Err(error));
        }
        let (mut texts, mut size) = (Vec::new(), 0);
        while size < CHUNK {
            match documents.next() {
                Some(Ok(document)) => {
                    let text = document.with_title();
                    size += text.len();
                    texts.push(text);
                }
                Some(Err(error)) if texts.is_empty() => return Some(Err(error)),
                Some(Err(error)) => {
                    failed = Some(error);
                    break;
                }
                None => break,
            }
        }
        (!texts.is_empty()).then_some(Ok(texts))
    })
}

/// The tokens of each text, on all threads.
pub(super) fn encode(texts: Vec<String>, tokenizer: &Tokenizer) -> Result<Vec<Vec<u32>>, DataError> {
    texts
        .into_par_iter()
        .map(|text| tokenizer.encode(&text))
        .collect()
}

/// Sequences of one length, cut from the tokens of documents laid end to end, with no padding.
///
/// A separator stands between documents where the vocabulary has one. What is left after the last full
/// sequence is dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    tokens: Vec<u32>,
    n: usize,
}

impl Packed {
    /// Tokenises documents and packs them into sequences of `n` tokens.
    ///
    /// Documents are read in chunks of a few megabytes; the tokens of all of them stay in memory, four
    /// bytes each.
    ///
    /// # Errors
    /// [`DataError::SequenceLength`] for `n < 2`, [`DataError::TooFewTokens`] where the text does not fill
    /// one sequence; errors of the documents and of the tokenizer pass through.
    pub fn new(
        documents: impl IntoIterator<Item = Result<Document, DataError>>,
        tokenizer: &Tokenizer,
        n: usize,
    ) -> Result<Self, DataError> {
        if n < 2 {
            return Err(DataError::SequenceLength(n));
        }
        let separator = tokenizer.vocabulary().sep;
        let mut tokens = Vec::new();
        for chunk in chunks(documents) {
            for document in encode(chunk?, tokenizer)? {
                if !tokens.is_empty() {
                    tokens.extend(separator);
                }
                tokens.extend(document);
            }
        }
        Self::from_tokens(tokens, n)
    }

    /// Cuts tokens into sequences of `n`.
    ///
    /// # Errors
    /// [`DataError::SequenceLength`] for `n < 2`, [`DataError::TooFewTokens`] for less than one sequence.
    pub fn from_tokens(mut tokens: Vec<u32>, n: usize) -> Result<Self, DataError> {
        if n < 2 {
            return Err(DataError::SequenceLength(n));
        }
        if tokens.len() < n {
            return Err(DataError::TooFewTokens {
                tokens: tokens.len(),
                n,
                have: 0,
                need: 1,
            });
        }
        tokens.truncate(tokens.len() / n * n);
        Ok(Self { tokens, n })
    }

    /// Length of a sequence.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Number of sequences, at least 1.
    #[expect(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(&self) -> usize {
        self.tokens.len() / self.n
    }

    /// All tokens, `[len, n]`, flat.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// One sequence; `None` past the last.
    pub fn sequence(&self, index: usize) -> Option<&[u32]> {
        self.tokens.chunks_exact(self.n).nth(index)
    }

    /// Parts the sequences into those to train on and, from the end, those held out: the given share of
    /// them, rounded up.
    ///
    /// The end is cut off whole, so that at most one document lies on both sides.
    ///
    /// # Errors
    /// [`DataError::HeldOutShare`] for a share that is not strictly between 0 and 1,
    /// [`DataError::TooFewTokens`] where nothing would be left to train on.
    pub fn hold_out(mut self, share: f64) -> Result<(Self, Self), DataError> {
        if !(share > 0.0 && share < 1.0) {
            return Err(DataError::HeldOutShare(share));
        }
        let held_out = (self.len() as f64 * share).ceil() as usize;
        if held_out >= self.len() {
            return Err(DataError::TooFewTokens {
                tokens: self.tokens.len(),
                n: self.n,
                have: self.len(),
                need: held_out + 1,
            });
        }
        let tokens = self.tokens.split_off((self.len() - held_out) * self.n);
        let n = self.n;
        Ok((self, Self { tokens, n }))
    }
}

impl Sequences for Packed {
    fn n(&self) -> usize {
        self.n
    }

    fn len(&self) -> usize {
        self.len()
    }

    fn copy_to(&self, index: usize, into: &mut [u32]) {
        into.copy_from_slice(&self.tokens[index * self.n..(index + 1) * self.n]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str) -> Result<Document, DataError> {
        Ok(Document {
            title: String::new(),
            text: text.to_owned(),
        })
    }

    #[test]
    fn documents_end_to_end() {
        let tokenizer = Tokenizer::bytes();
        let packed = Packed::new([document("abc"), document("de"), document("fg")], &tokenizer, 3).unwrap();
        assert_eq!((packed.n(), packed.len()), (3, 3));
        // Separators between documents, none at the ends, and nothing left over: 3 + 1 + 2 + 1 + 2 = 9.
        assert_eq!(tokenizer.decode(packed.tokens()).unwrap(), "abc[SEP]de[SEP]fg");
        assert_eq!(tokenizer.decode(packed.sequence(1).unwrap()).unwrap(), "[SEP]de");
        assert_eq!(packed.sequence(3), None);
        let shorter = Packed::new([document("abc"), document("de")], &tokenizer, 4).unwrap();
        assert_eq!(tokenizer.decode(shorter.tokens()).unwrap(), "abc[SEP]");
        let titled = Document {
            title: "T".to_owned(),
            text: "x".to_owned(),
        };
        let packed = Packed::new([Ok(titled)], &tokenizer, 3).unwrap();
        assert_eq!(tokenizer.decode(packed.tokens()).unwrap(), "T\nx");
    }

    #[test]
    fn the_end_is_held_out() {
        let packed = Packed::from_tokens((0..40).collect(), 2).unwrap();
        let (train, held_out) = packed.clone().hold_out(0.11).unwrap();
        assert_eq!((train.len(), held_out.len()), (17, 3));
        assert_eq!([train.tokens(), held_out.tokens()].concat(), packed.tokens());
        assert_eq!(train.range(15..17), [30, 31, 32, 33]);
        for share in [0.0, 1.0, -1.0, f64::NAN] {
            let error = packed.clone().hold_out(share);
            assert!(matches!(error, Err(DataError::HeldOutShare(_))), "{share}");
        }
        let one = Packed::from_tokens(vec![1, 2], 2).unwrap();
        assert!(matches!(
            one.hold_out(0.5),
            Err(DataError::TooFewTokens { need: 2, .. })
        ));
    }

    #[test]
    fn too_little_text() {
        let message = Packed::new([document("ab")], &Tokenizer::bytes(), 8)
            .unwrap_err()
            .to_string();
        assert!(
            message.contains("2 tokens make 0 sequences of length 8"),
            "{message}"
        );
        let length = Packed::new([document("ab")], &Tokenizer::bytes(), 1);
        assert!(matches!(length, Err(DataError::SequenceLength(1))));
        let failing = Packed::new(
            [document("abc"), Err(DataError::BatchSize)],
            &Tokenizer::bytes(),
            2,
        );
        assert!(matches!(failing, Err(DataError::BatchSize)));
    }
}
