//! From bytes to numbers around 0.

use serde::{Deserialize, Serialize};

use super::{CHANNELS, ImageError, Images, Picture};
use crate::checkpoint::pretrained::HubFile;

/// Mean and standard deviation of each colour, by which pixels are normalised: `(pixel/255 − mean)/std`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Normalisation {
    /// Means of red, green and blue, between 0 and 1.
    pub mean: [f32; CHANNELS],
    /// Their standard deviations.
    pub std: [f32; CHANNELS],
}

impl Normalisation {
    /// The usual values for ImageNet, as `torchvision` has them.
    pub const IMAGENET: Self = Self {
        mean: [0.485, 0.456, 0.406],
        std: [0.229, 0.224, 0.225],
    };

    /// Mean and (population) standard deviation over all pixels of a set of images.
    ///
    /// Cost: every image is read once.
    ///
    /// # Errors
    /// The first image that cannot be read; [`ImageError::Invalid`] where a colour is the same everywhere.
    pub fn of(images: &dyn Images) -> Result<Self, ImageError> {
        let mut sums = [[0_u64; 2]; CHANNELS];
        let mut count = 0_u64;
        for index in 0..images.len() {
            let picture = images.picture(index)?;
            let area = picture.height() * picture.width();
            count += area as u64;
            // Sums of whole numbers: exact, and far from overflow at 2⁴⁷ pixels.
            for (sums, plane) in sums.iter_mut().zip(picture.pixels().chunks_exact(area)) {
                for &pixel in plane {
                    let pixel = u64::from(pixel);
                    sums[0] += pixel;
                    sums[1] += pixel * pixel;
                }
            }
        }
        let mut normalisation = Self {
            mean: [0.0; CHANNELS],
            std: [0.0; CHANNELS],
        };
        let count = count as f64;
        for (channel, [sum, squares]) in sums.into_iter().enumerate() {
            let mean = sum as f64 / count;
            let variance = squares as f64 / count - mean * mean;
            normalisation.mean[channel] = (mean / 255.0) as f32;
            normalisation.std[channel] = (variance.max(0.0).sqrt() / 255.0) as f32;
        }
        normalisation.check()?;
        Ok(normalisation)
    }

    /// Refuses deviations by which nothing can be divided.
    ///
    /// # Errors
    /// [`ImageError::Invalid`] with the values.
    pub fn check(&self) -> Result<(), ImageError> {
        let finite = self.mean.iter().all(|mean| mean.is_finite());
        if finite && self.std.iter().all(|std| std.is_finite() && *std > 0.0) {
            return Ok(());
        }
        Err(ImageError::Invalid {
            field: "normalisation",
            value: format!("mean {:?}, standard deviation {:?}", self.mean, self.std),
            must: "finite, with deviations above 0 (images of which at least one pixel differs)",
        })
    }

    /// `preprocessor_config.json`, by which Hugging Face's `transformers` prepares images as they are evaluated here: the
    /// shorter side is scaled and a square of `size` pixels cut from the middle.
    pub fn hub_file(&self, shorter_side: usize, size: usize) -> HubFile {
        let json = serde_json::json!({
            // That of ViT would scale both sides, each by itself.
            "image_processor_type": "BitImageProcessor",
            "do_convert_rgb": true,
            "do_resize": true,
            "size": {"shortest_edge": shorter_side},
            // Bilinear.
            "resample": 2,
            "do_center_crop": true,
            "crop_size": {"height": size, "width": size},
            "do_rescale": true,
            "rescale_factor": 1.0 / 255.0,
            "do_normalize": true,
            "image_mean": self.mean,
            "image_std": self.std,
        });
        HubFile {
            name: "preprocessor_config.json",
            content: format!("{json:#}\n"),
        }
    }

    /// The pixels of an image, normalised, in their order.
    ///
    /// # Shape
    /// `[3, height, width]`, flat.
    pub fn apply(&self, picture: &Picture) -> Vec<f32> {
        let area = picture.height() * picture.width();
        let mut values = Vec::with_capacity(CHANNELS * area);
        for (channel, plane) in picture.pixels().chunks_exact(area).enumerate() {
            let (mean, std) = (self.mean[channel], self.std[channel]);
            values.extend(plane.iter().map(|&pixel| (f32::from(pixel) / 255.0 - mean) / std));
        }
        values
    }
}
