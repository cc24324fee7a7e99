//! Labelled images: CIFAR-10 and class folders, augmentation, and batches in a seeded order.
//!
//! [`Images`] is a set of labelled images, from [`Cifar10`] or a [`ClassFolder`]. [`ImageBatches`] gives them in
//! batches, cropped, flipped and mixed as an [`Augmentation`] says, every choice drawn on the host and addressed
//! by seed, epoch and image.

mod augmentation;
mod batches;
mod cifar10;
mod class_folder;
mod error;
mod images;
mod mixing;
mod normalisation;
mod picture;

pub use augmentation::Augmentation;
pub use batches::{ImageBatch, ImageBatches, evaluation_batch};
pub use cifar10::Cifar10;
pub use class_folder::ClassFolder;
pub use error::ImageError;
pub use images::{Images, Subset};
pub use normalisation::Normalisation;
pub use picture::{CHANNELS, Picture};

#[cfg(test)]
mod tests;
