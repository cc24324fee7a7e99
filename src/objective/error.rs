//! What can be wrong with an objective or with the tokens given to it.

/// An objective that cannot be built, or tokens that it cannot be applied to.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectiveError {
    /// The masking rate is not strictly between 0 and 1.
    #[error("masking rate {0}: choose a rate between 0 and 1, both excluded, such as 0.15")]
    Rate(f64),
    /// The shares of the corruption are not a division of one.
    #[error(
        "corruption with {mask} masked and {random} random: choose shares of at least 0 that sum to at most 1, such as 0.8 and 0.1"
    )]
    Corruption {
        /// Share of the selected positions that take the mask token.
        mask: f64,
        /// Share of the selected positions that take a random token.
        random: f64,
    },
    /// The prefix is not a fraction of the sequence.
    #[error("prefix fraction {0}: choose a fraction between 0 and 1, both excluded, such as 0.5")]
    PrefixFraction(f64),
    /// The tokens do not fill the batch.
    #[error("{tokens} tokens given for a batch of {batch} × {n}: give batch × length tokens")]
    Shape {
        /// Number of tokens given.
        tokens: usize,
        /// Sequences in the batch.
        batch: usize,
        /// Length of a sequence.
        n: usize,
    },
    /// The sequences are too short to predict anything from anything.
    #[error("sequences of length {0}: a prediction needs at least 2 tokens")]
    TooShort(usize),
    /// A token lies outside the vocabulary.
    #[error("token {token} at position {position} of the batch: the vocabulary has {size} tokens, 0 to {}", size.saturating_sub(1))]
    UnknownToken {
        /// The token.
        token: u32,
        /// Its flat position in the batch.
        position: usize,
        /// Size of the vocabulary.
        size: usize,
    },
    /// The objective corrupts by a mask token, which the vocabulary lacks.
    #[error(
        "the vocabulary has no mask token: use a tokenizer with one (such as BERT's), or an autoregressive objective"
    )]
    NoMaskToken,
    /// A random token was to be drawn from a vocabulary of special tokens only.
    #[error("the vocabulary of {0} tokens has none that is not special: use a larger vocabulary")]
    NoOrdinaryToken(usize),
    /// Every token that could be predicted is special.
    #[error("nothing to predict in {tokens} tokens: all that could be predicted are special tokens")]
    NothingToPredict {
        /// Number of tokens in the batch.
        tokens: usize,
    },
}
