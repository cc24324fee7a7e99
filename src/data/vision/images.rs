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

/// Some images of a set, those with numbers in a range.
#[derive(Debug, Clone)]
pub struct Subset<'a> {
    images: &'a dyn Images,
    range: Range<usize>,
}

impl<'a> Subset<'a> {
    /// The images in a range, cut to those that there are.
    pub fn new(images: &'a dyn Images, range: Range<usize>) -> Self {
        let end = range.end.min(images.len());
        Self {
            images,
            range: range.start.min(end)..end,
        }
    }
}

impl Images for Subset<'_> {
    fn len(&self) -> usize {
        self.range.len()
    }

    fn classes(&self) -> &[String] {
        self.images.classes()
    }

    fn label(&self, index: usize) -> usize {
        self.images.label(self.range.start + index)
    }

    fn picture(&self, index: usize) -> Result<Picture, ImageError> {
        self.images.picture(self.range.start + index)
    }

    fn name(&self, index: usize) -> String {
        self.images.name(self.range.start + index)
    }
}
