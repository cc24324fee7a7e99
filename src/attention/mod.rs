//! Self-attention: the layer, its masks, its initialisation, and how a model shows its layers.
//!
//! # Examples
//! ```
//! # use wqk::backend::{BackendKind, with_backend};
//! # let kind = BackendKind::default_compiled().unwrap();
//! # with_backend!(kind, None, |B, device| {
//! use burn::tensor::Tensor;
//! use wqk::attention::{AttentionMask, SelfAttentionConfig, SymmetricInit};
//! use wqk::random;
//!
//! let mut rng = random::stream(1, ["init", "layer 0"]);
//! let attention = SelfAttentionConfig::new(16, 4)
//!     .with_n_kv_heads(2)
//!     .with_init(SymmetricInit::tied())
//!     .init::<B>(&device, &mut rng)?;
//! assert!((attention.form()?.symmetry()? - 1.0).abs() < 1e-5);
//!
//! let x = Tensor::<B, 3>::ones([1, 5, 16], &device);
//! let y = attention.forward(x, Some(&AttentionMask::causal(5, &device)));
//! assert_eq!(y.dims(), [1, 5, 16]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod convert;
mod dropout;
mod error;
mod has_attention;
pub mod init;
mod layer;
mod mask;
mod trace;

pub use dropout::{Noise, dropout};
pub use error::AttentionError;
pub use has_attention::{AttentionLayer, AttentionModule, HasAttention};
pub use init::{AttentionInit, ControlInit, IndependentInit, MimeticInit, SymmetricInit};
pub use layer::{AttentionOutput, SelfAttention, SelfAttentionConfig};
pub use mask::AttentionMask;
pub use trace::AttentionTrace;
