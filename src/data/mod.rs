//! Corpora, tokenisation and batches.
