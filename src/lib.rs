//! Self-attention studied through its bilinear form `W_qk = W_q W_kᵀ`, on any Burn backend.
#![deny(missing_docs)]

pub mod attention;
pub mod backend;
pub mod bilinear;
pub mod checkpoint;
#[cfg(feature = "cli")]
pub mod cli;
pub mod data;
mod files;
pub mod model;
pub mod objective;
mod plain;
pub mod random;
pub mod report;
pub mod signal;
pub mod theory;
pub mod train;

// The program in the README compiles and runs with the other doctests.
#[cfg(all(doctest, feature = "flex"))]
#[doc = include_str!("../README.md")]
struct Readme;
