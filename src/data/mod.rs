//! Corpora, tokenisation and batches.
//!
//! From a file to what a training loop is fed: [`Documents`] reads text and MediaWiki dumps, a
//! [`Tokenizer`] turns it into tokens, [`Packed`] cuts these into full sequences, and [`Batches`] gives
//! them in a seeded order. What holds the sequences is behind the trait [`Sequences`]; what a recipe says of
//! its corpus is a [`CorpusSpec`].
//!
//! # Examples
//! ```
//! use wqk::data::{Batches, Document, Packed, Tokenizer};
//!
//! let document = Document { title: "Zeno".into(), text: "of Elea, on motion".into() };
//! let tokenizer = Tokenizer::bytes();
//! let packed = Packed::new([Ok(document)], &tokenizer, 8)?;
//! let (train, held_out) = packed.hold_out(0.1)?;
//! let batches = Batches::new(&train, 2, 42)?;
//! assert_eq!(batches.batch(0).len(), 2 * 8);
//! assert_eq!(held_out.len(), 1);
//! # Ok::<(), wqk::data::DataError>(())
//! ```

mod batches;
mod bleu;
pub mod bundled;
mod cache;
mod corpus;
mod csv;
mod document;
mod documents;
mod dump;
mod error;
mod jsonl;
mod order;
mod pack;
mod parallel;
mod parquet;
mod records;
mod report;
mod sequences;
mod source;
mod text;
mod tokenizer;
mod utf16;
pub mod vision;
mod wikitext;

pub use batches::Batches;
pub use bleu::{Bleu, tokenize_13a};
pub use cache::{CacheProgress, CacheState, Cached, CachedSequences, default_cache_folder};
pub use corpus::{CorpusSpec, Format, OnBad};
pub use document::Document;
pub use documents::{Documents, sha256};
pub use error::DataError;
pub use pack::Packed;
pub use parallel::ParallelText;
pub use report::ReadReport;
pub use sequences::Sequences;
pub use tokenizer::Tokenizer;
