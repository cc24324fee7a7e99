//! The bilinear form `W_qk = W_q W_kᵀ` of self-attention, kept factored, and its scores.
//!
//! With tokens as rows, `X [n, d_model]`, queries `X W_q` and keys `X W_k`, the raw scores of attention
//! are `Q Kᵀ = X W_qk Xᵀ`. [`BilinearForm`] is a view of that `W_qk`, of a whole layer or of one head.
//!
//! # Examples
//! ```
//! # use wqk::backend::{BackendKind, with_backend};
//! # let kind = BackendKind::default_compiled().unwrap();
//! # with_backend!(kind, None, |B, device| {
//! use burn::tensor::Tensor;
//! use wqk::bilinear::{BilinearForm, Directionality, Heads};
//!
//! // Two heads of width 1 in a model of width 2; W_k = W_q makes the form symmetric.
//! let w = Tensor::<B, 2>::from_floats([[1.0, 2.0], [0.5, -1.0]], &device);
//! let form = BilinearForm::new(w.clone(), w, Heads::multi(2))?;
//! assert!((form.symmetry()? - 1.0).abs() < 1e-6);
//! assert_eq!(form.directionality(Directionality::excess())?, 0.0);
//! let scores = form.measure(2.0, true)?;
//! assert_eq!(scores.heads.unwrap().len(), 2);
//! # Ok::<(), wqk::bilinear::BilinearError>(())
//! # }).unwrap()?;
//! # Ok::<(), wqk::bilinear::BilinearError>(())
//! ```

mod directionality;
mod error;
mod form;
mod gradient;
mod heads;
mod kernel;
mod measure;
mod moments;
mod null;
mod parts;
mod rotary;
pub mod significance;
mod spectrum;
pub mod summary;
mod update;

pub use directionality::{Directionality, Variant};
pub use error::BilinearError;
pub use form::BilinearForm;
pub use gradient::{HeadGradient, PairSymmetry, ScoreGradients};
pub use heads::Heads;
pub use kernel::Path;
pub use measure::{DirectionalityScores, HeadScores, LayerScores};
pub use moments::Moments;
pub use null::SymmetryNull;
pub use parts::{PositionParts, by_token};
pub use rotary::{Rotary, RotaryPairs};
pub use spectrum::{EigenvalueSummary, Spectrum};
pub use summary::{Summary, quantile};
pub use update::WeightGradients;
