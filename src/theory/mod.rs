//! The claims of the structure paper as experiments, each with a verdict.
//!
//! A claim states its assumptions, tests them on the data it is given, and only then looks at its conclusion:
//! see [`Verdict`]. The data are either synthetic, made to meet the assumptions, or come from models on real text, which
//! are trained for it or were before: see [`TextEvidence`].
//!
//! | claim | in the paper | what comes out |
//! | --- | --- | --- |
//! | `rank-one` | proposition on the update as a sum of rank-1 matrices | holds for the gradient in `W_qk`; not for the update through its factors |
//! | `context` | proposition on context and prediction | holds by position |
//! | `growth` | proposition and corollary on asymmetric growth | holds under its assumptions |
//! | `counting` | proposition on expected counts | holds; packed text does not meet its assumption |
//! | `directionality` | theorem on autoregressive training | fails under its own assumptions |
//! | `bidirectional` | corollary on bidirectional training | holds for exchangeable embeddings |
//! | `symmetry` | theorem on symmetry, remark on masking | holds for symmetric errors |
//! | `symmetry-score` | definition and proposition | the printed factor 2 and limit 8/n fail |
//! | `directionality-score` | proposition | holds |
//! | `tail` | lemma | fails |
//! | `convex-hull` | section 2 and its remark | holds before `W_v` and the residual |
//! | `likelihood` | remark on pseudo-likelihood | holds |
//!
//! # Source
//! arXiv 2502.10927 and its appendix.

mod claim;
mod evidence;
mod heads;
mod matrix;
mod observe;
mod outcome;
mod text;

pub mod bidirectional;
pub mod context;
pub mod convex_hull;
pub mod counting;
pub mod directionality;
pub mod directionality_score;
pub mod growth;
pub mod likelihood;
pub mod rank_one;
pub mod symmetry;
pub mod symmetry_score;
pub mod tail;

pub use claim::Claim;
pub use evidence::{Evidence, LayerEvidence};
pub use matrix::Matrix;
pub use outcome::{Check, Outcome, Part, Rule, Verdict};
pub use text::{TextEvidence, TextSettings, TheoryError, TrainedText};

#[cfg(test)]
mod tests;
