//! What is done to images before a model is trained on them.

use rand::RngExt as _;
use serde::{Deserialize, Serialize};

use super::{ImageError, Picture};
use crate::random::Rng;

/// Random changes of images in training; none of them acts in evaluation.
///
/// The defaults are those of the structure paper on CIFAR-10 (appendix, vision transformers), with the data set's
/// usual crop and flip.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Augmentation {
    /// Black pixels around the image, out of which a square of the model's size is cut at a random place.
    pub crop_padding: usize,
    /// Whether half of the images are mirrored, left to right.
    pub flip: bool,
    /// α of mixup: two images are blended, with weights λ and 1 − λ, λ from Beta(α, α). 0 turns it off.
    pub mixup: f64,
    /// α of cutmix: a box of one image is put into another, the box's share of the area 1 − λ. 0 turns it off.
    pub cutmix: f64,
    /// ε of label smoothing: the target is `1 − ε + ε/K` for the class, `ε/K` for the K − 1 others.
    pub label_smoothing: f64,
}

impl Default for Augmentation {
    fn default() -> Self {
        Self {
            crop_padding: 4,
            flip: true,
            mixup: 0.2,
            cutmix: 1.0,
            label_smoothing: 0.01,
        }
    }
}

impl Augmentation {
    /// The structure paper's on ImageNet-1k: label smoothing 0.11, and crops without padding.
    pub fn imagenet() -> Self {
        Self {
            crop_padding: 0,
            label_smoothing: 0.11,
            ..Self::default()
        }
    }

    /// No change at all.
    pub fn none() -> Self {
        Self {
            crop_padding: 0,
            flip: false,
            mixup: 0.0,
            cutmix: 0.0,
            label_smoothing: 0.0,
        }
    }

    /// Refuses what is out of range.
    ///
    /// # Errors
    /// [`ImageError::Invalid`] with the setting and its value.
    pub fn check(&self) -> Result<(), ImageError> {
        let refuse = |field, value: f64, must| {
            Err(ImageError::Invalid {
                field,
                value: value.to_string(),
                must,
            })
        };
        for (field, alpha) in [("mixup", self.mixup), ("cutmix", self.cutmix)] {
            // Beyond, λ is ½ but for rounding.
            if !(0.0..=1e6).contains(&alpha) {
                return refuse(field, alpha, "between 0 and 1000000");
            }
        }
        const PADDING: usize = 4096;
        if self.crop_padding > PADDING {
            return refuse("crop_padding", self.crop_padding as f64, "at most 4096");
        }
        if !(0.0..1.0).contains(&self.label_smoothing) {
            return refuse("label_smoothing", self.label_smoothing, "at least 0 and below 1");
        }
        Ok(())
    }

    /// A square of `size` pixels of the image, at a random place and perhaps mirrored.
    ///
    /// # Errors
    /// [`ImageError::TooSmall`] where the image, with its padding, is smaller than that.
    pub(super) fn cut(
        &self,
        picture: &Picture,
        size: usize,
        rng: &mut Rng,
        name: impl FnOnce() -> String,
    ) -> Result<Picture, ImageError> {
        let padding = self.crop_padding;
        let room = |side: usize| (side + 2 * padding).checked_sub(size);
        let (Some(down), Some(right)) = (room(picture.height()), room(picture.width())) else {
            return Err(too_small(picture, size, padding, name()));
        };
        let mut place = |room: usize| rng.random_range(0..=room) as isize - padding as isize;
        let (top, left) = (place(down), place(right));
        let flip = self.flip && rng.random_bool(0.5);
        Ok(picture.crop(top, left, size, flip))
    }
}

/// The square of `size` pixels in the middle of an image.
///
/// # Errors
/// [`ImageError::TooSmall`] where the image is smaller than that.
pub(super) fn middle(
    picture: &Picture,
    size: usize,
    name: impl FnOnce() -> String,
) -> Result<Picture, ImageError> {
    let room = |side: usize| side.checked_sub(size);
    match (room(picture.height()), room(picture.width())) {
        (Some(0), Some(0)) => Ok(picture.clone()),
        (Some(down), Some(right)) => Ok(picture.crop((down / 2) as isize, (right / 2) as isize, size, false)),
        _ => Err(too_small(picture, size, 0, name())),
    }
}

fn too_small(picture: &Picture, size: usize, padding: usize, image: String) -> ImageError {
    ImageError::TooSmall {
        image,
        height: picture.height(),
        width: picture.width(),
        padding,
        size,
        remedy: "scale the images up, or choose a smaller image_size",
    }
}
