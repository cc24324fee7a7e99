//! Signal propagation: what a transformer does to its tokens and gradients at initialisation.
//!
//! [`theory`] predicts it from a configuration, with closed forms and without tensors; [`probe`] measures the same
//! quantities on a model.
//!
//! # Source
//! Noci et al. 2022, arXiv 2206.03126, the propagation paper.

pub mod probe;
mod survey;
pub mod theory;
mod verdict;

pub use survey::{GradientSurvey, Interval, LayerSurvey, StreamSurvey, Survey};
pub use verdict::{Finding, Symptom, Thresholds, Verdict};

#[cfg(all(test, feature = "flex"))]
mod tests;
