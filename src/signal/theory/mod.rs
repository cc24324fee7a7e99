//! Signal propagation in closed form, from a configuration in microseconds.
//!
//! A block is `Z = X + α₁ S(X)`, `X' = Z + α₂ F(Z)`, with tokens as rows of `X [n, d]`, weights drawn independently
//! with mean 0, and attention that is close to uniform. The theory follows three numbers from layer to layer: the
//! squared norm `N = ‖X‖_F²`, the summed inner products `C = ‖Σ_k x_k‖²`, and the spread of the tokens around their
//! mean, `‖Xᵀ H X‖_F²` with `H = I − 11ᵀ/n`, on which the gradients of queries and keys depend.
//!
//! Where a configuration lies outside the assumptions of a formula, there is no number but [`NoClosedForm`], which
//! says why.
//!
//! # Examples
//! ```
//! use wqk::attention::IndependentInit;
//! use wqk::model::{Strength, TextTransformerConfig};
//! use wqk::signal::theory::Stack;
//!
//! // With queries of 0 attention is exactly uniform.
//! let uniform = IndependentInit { query_std: Some(0.0), ..IndependentInit::default() };
//! let large = TextTransformerConfig::bare(30_522, 1024, 24, 16)
//!     .with_init_std(1.0 / 32.0)
//!     .with_attention_init(uniform.into());
//! let constant = Stack::of_text(&large, 128)?.predict()?;
//! let scaled = large
//!     .with_attention_strength(Strength::SCALED)
//!     .with_feed_forward_strength(Strength::SCALED);
//! let scaled = Stack::of_text(&scaled, 128)?.predict()?;
//! // Rank collapse, and its remedy.
//! assert!(constant.output().cosine > 0.99 && scaled.output().cosine < 0.1);
//! # Ok::<(), wqk::signal::theory::TheoryError>(())
//! ```

mod attention;
mod error;
mod feed_forward;
mod gaussian;
mod gradient;
mod limit;
mod predict;
mod stack;

pub use attention::{
    LARGEST_LOGIT_VARIANCE, attention_distance, attention_entropy, logit_variance, logit_variance_of,
};
pub use error::{NoClosedForm, TheoryError};
pub use feed_forward::FeedForwardLaw;
pub use gaussian::GaussianTokens;
pub use gradient::{AttentionGradients, ProjectionLaw};
pub use limit::{Sums, token_cosine};
pub use predict::{LayerPrediction, MOST_NEGLECTED, Prediction, StreamState};
pub use stack::Stack;
