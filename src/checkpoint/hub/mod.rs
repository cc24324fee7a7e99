//! Models of the Hugging Face hub, of which only what the scores need is fetched: `config.json`, the headers of the
//! safetensors files, and the bytes of the queries and keys.
//!
//! What is fetched becomes a folder like any other, whose weight files have their full length and hold nothing but
//! zeros elsewhere; file systems store such files at the size of what was written. It is for scoring only and goes
//! when the caller removes it.
//!
//! Needs the feature `hub`; without it only the names are known.
//!
//! # Examples
//! ```ignore
//! use wqk::checkpoint::hub::{Hub, HubModel};
//! use wqk::checkpoint::{self, Options};
//! let model: HubModel = "openai-community/gpt2".parse()?;
//! let folder = tempfile::tempdir()?;
//! let path = Hub::from_env().fetch(&model, &Options::default(), folder.path(), |_, _| ())?;
//! let checkpoint = checkpoint::open(path, &Options::default())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(feature = "hub")]
mod cache;
#[cfg(feature = "hub")]
mod client;
#[cfg(feature = "hub")]
mod error;
#[cfg(feature = "hub")]
mod fetch;
mod name;
#[cfg(feature = "hub")]
mod remote;
#[cfg(all(test, feature = "hub"))]
mod tests;

#[cfg(feature = "hub")]
pub use error::HubError;
pub use name::HubModel;
#[cfg(feature = "hub")]
pub use remote::Hub;
