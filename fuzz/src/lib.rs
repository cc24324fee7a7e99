//! The readers of untrusted files, compiled from the crate's own source.
#![allow(dead_code)]

#[path = "../../src/checkpoint/format/mod.rs"]
pub mod format;

#[path = "../../src/plain.rs"]
mod plain;
