//! Models made of our attention: a text transformer, encoder or decoder by the mask it is given, and a vision
//! transformer.

mod block;
mod config;
mod feed_forward;
mod linear;
mod residual;
mod seq2seq;
pub(crate) mod size;
mod strength;
mod temperature;
mod text;
mod vision;

pub use block::{Block, Normalisation};
pub use config::{Activation, FeedForwardKind, ModelError, NormPlacement, TextTransformerConfig};
pub use feed_forward::FeedForward;
pub use seq2seq::{DecoderBlock, EncoderDecoder, Sources};
pub use strength::Strength;
pub use temperature::InverseTemperature;
pub use text::{PredictionHead, TextTransformer};
pub use vision::{ViT, ViTConfig};
