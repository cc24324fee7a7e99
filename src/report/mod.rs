//! Tables, curves and pages made of results.

pub mod html;
pub mod plot;
pub mod table;
