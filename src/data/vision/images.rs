//! A set of labelled images.

use std::fmt::Debug;
use std::ops::Range;

use super::{ImageError, Picture};

/// Labelled images at random access. Object safe: what trains and evaluates takes `&dyn Images`.
pub trait Images: Debug + Send + Sync {
    /// Number of images.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Names of the classes.
    fn classes(&self) -> &[String];

    /// Class of an image, from 0.
    ///
    /// # Panics
    /// For `index ≥ len`: a fault of the calling program, as also in the other methods.
    fn label(&self, index: usize) -> usize;

    /// The pixels of an image.
    ///
    /// # Errors
    /// A file that cannot be read or decoded.
    fn picture(&self, index: usize) -> Result<Picture, ImageError>;

    /// Where an image is from, for messages.
    fn name(&self, index: usize) -> String;
}

/// Some images of a set.
#[derive(Debug, Clone)]
pub struct Subset<'a> {
    images: &'a dyn Images,
    indices: Vec<usize>,
}

impl<'a> Subset<'a> {
    /// The images with numbers in a range, cut to those that there are.
    pub fn new(images: &'a dyn Images, range: Range<usize>) -> Self {
        Self {
            images,
            indices: range.take_while(|&index| index < images.len()).collect(),
        }
    }

    /// `n` images, or all if there are fewer, spread evenly over the set: over all classes where they lie by class.
    pub fn spread(images: &'a dyn Images, n: usize) -> Self {
        let (len, n) = (images.len() as u128, n.min(images.len()) as u128);
        Self {
            images,
            // Below `len`, which fits.
            indices: (0..n).map(|i| (i * len / n) as usize).collect(),
        }
    }
}

impl Images for Subset<'_> {
    fn len(&self) -> usize {
        self.indices.len()
    }

    fn classes(&self) -> &[String] {
        self.images.classes()
    }

    fn label(&self, index: usize) -> usize {
        self.images.label(self.indices[index])
    }

    fn picture(&self, index: usize) -> Result<Picture, ImageError> {
        self.images.picture(self.indices[index])
    }

    fn name(&self, index: usize) -> String {
        self.images.name(self.indices[index])
    }
}
