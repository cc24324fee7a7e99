//! Objectives: what is predicted from what, by which mask, corruption, targets and loss.
//!
//! An [`ObjectiveMode`] turns a model into an encoder or a decoder. It says which tokens condition the
//! prediction of which ([`ConditioningGraph`]), what attention may see ([`Visibility`]), and, for a batch
//! of tokens, what the model is fed and what it must predict ([`Prepared`], drawn on the host). The
//! [`loss`] is the same for all: the mean cross entropy over the predicted positions, which
//! [`select_positions`] takes out of the hidden states before the projection to the vocabulary, by far
//! the most expensive matrix of a small model.
//!
//! The expected number of times that a token serves as context and as target ([`ExpectedCounts`]), on
//! which the structure paper rests its theorems, follows from the conditioning graph.
//!
//! # Examples
//! ```
//! use wqk::objective::{ObjectiveMode, Vocabulary};
//! use wqk::random;
//!
//! let vocabulary = Vocabulary { mask: Some(0), ..Vocabulary::new(10) };
//! let tokens = [5, 6, 7, 8];
//! let mode = ObjectiveMode::autoregressive();
//! let batch = mode.prepare(&tokens, 1, 4, &vocabulary, &mut random::stream(1, ["batch"]))?;
//! assert_eq!(batch.inputs, tokens);
//! assert_eq!(batch.positions, [0, 1, 2]); // these predict ...
//! assert_eq!(batch.targets, [6, 7, 8]); // ... the tokens that follow them
//! # Ok::<(), wqk::objective::ObjectiveError>(())
//! ```

mod conditioning;
mod counts;
mod error;
mod loss;
mod masking;
mod mode;
mod prepare;
mod visibility;
mod vocabulary;

pub use conditioning::ConditioningGraph;
pub use counts::{ExpectedCounts, masked_pair_ratio, masked_pair_share};
pub use error::ObjectiveError;
pub use loss::{loss, select_positions, soft_loss};
pub use masking::{Corruption, Masking, PrefixFraction};
pub use mode::ObjectiveMode;
pub use prepare::Prepared;
pub use visibility::Visibility;
pub use vocabulary::Vocabulary;
