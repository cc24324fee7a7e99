//! Tables, curves and pages made of results.

pub mod compare;
pub mod drafts;
pub mod experiment;
pub mod folder;
pub mod html;
pub(crate) mod minus;
pub mod plot;
pub mod propagation;
pub mod scores;
pub mod table;
