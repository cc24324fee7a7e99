//! Pretrained checkpoints: file formats, the registry of families, and the reading of queries and keys.

pub mod format;
