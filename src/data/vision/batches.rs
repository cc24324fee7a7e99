//! Batches of images in a seeded order.

use rayon::prelude::*;

use super::augmentation::middle;
use super::mixing::Mix;
use super::{Augmentation, CHANNELS, ImageError, Images, Normalisation};
use crate::data::order::Order;
use crate::random;

/// Images and their targets, as a model takes them.
#[derive(Debug, Clone, PartialEq)]
pub struct ImageBatch {
    /// `[n, 3, size, size]`, normalised.
    pub pixels: Vec<f32>,
    /// Probabilities of the classes, `[n, n_classes]`.
    pub targets: Vec<f32>,
    /// Classes of the images, before any mixing, `[n]`.
    pub labels: Vec<usize>,
    /// Number of images.
    pub n: usize,
    /// Height and width of an image.
    pub size: usize,
}

/// Batches of augmented images for training, in an order that a seed decides.
///
/// Each epoch is a shuffle of all images; epochs follow each other without a gap, so that a batch may end one and
/// begin the next. An image's crop, flip and mixing are addressed by seed, epoch and image; it is mixed with the
/// image after it in the batch, the last with the first. Any step's batch can be had directly: a resumed run
/// continues with the batch that it would have seen.
#[derive(Debug, Clone)]
pub struct ImageBatches<'a> {
    images: &'a dyn Images,
    augmentation: Augmentation,
    normalisation: Normalisation,
    size: usize,
    batch: usize,
    seed: u64,
}

impl<'a> ImageBatches<'a> {
    /// Batches of `batch` images, cut to squares of `size` pixels.
    ///
    /// # Errors
    /// [`ImageError::Invalid`] for batches or images of nothing and for settings out of range.
    pub fn new(
        images: &'a dyn Images,
        augmentation: Augmentation,
        normalisation: Normalisation,
        size: usize,
        batch: usize,
        seed: u64,
    ) -> Result<Self, ImageError> {
        augmentation.check()?;
        normalisation.check()?;
        for (field, value) in [
            ("batch_size", batch),
            ("image_size", size),
            ("number of images", images.len()),
        ] {
            if value == 0 {
                return Err(ImageError::Invalid {
                    field,
                    value: value.to_string(),
                    must: "at least 1",
                });
            }
        }
        Ok(Self {
            images,
            augmentation,
            normalisation,
            size,
            batch,
            seed,
        })
    }

    /// Number of images in a batch.
    pub fn batch_size(&self) -> usize {
        self.batch
    }

    /// Height and width of the images.
    pub fn image_size(&self) -> usize {
        self.size
    }

    /// The mean and deviation by which pixels are normalised.
    pub fn normalisation(&self) -> &Normalisation {
        &self.normalisation
    }

    /// Batches in an epoch, the last one shared with the next epoch where the numbers do not divide.
    pub fn per_epoch(&self) -> usize {
        self.images.len().div_ceil(self.batch)
    }

    /// Epoch and number of each image of a step's batch.
    fn places(&self, step: u64) -> Vec<(u64, usize)> {
        let (first, len) = (step * self.batch as u64, self.images.len() as u64);
        let mut order = (first / len, Order::new(len, self.seed, first / len));
        (first..first + self.batch as u64)
            .map(|place| {
                let epoch = place / len;
                if epoch != order.0 {
                    order = (epoch, Order::new(len, self.seed, epoch));
                }
                (epoch, order.1.at(place % len) as usize)
            })
            .collect()
    }

    /// The batch of a step, counted from 0.
    ///
    /// Images are read and augmented on the threads of the current rayon pool.
    ///
    /// # Errors
    /// The first image that cannot be read, or is too small.
    pub fn batch(&self, step: u64) -> Result<ImageBatch, ImageError> {
        let places = self.places(step);
        let cut: Vec<Vec<f32>> = places
            .par_iter()
            .map(|&(epoch, index)| {
                let rng = &mut self.stream("augmentation", epoch, index);
                let picture = self.images.picture(index)?;
                let name = || self.images.name(index);
                let picture = self.augmentation.cut(&picture, self.size, rng, name)?;
                Ok(self.normalisation.apply(&picture))
            })
            .collect::<Result<_, ImageError>>()?;

        let n_classes = self.images.classes().len();
        let labels: Vec<usize> = places
            .iter()
            .map(|&(_, index)| self.images.label(index))
            .collect();
        let mut batch = ImageBatch {
            pixels: Vec::with_capacity(self.batch * CHANNELS * self.size * self.size),
            targets: vec![0.0; self.batch * n_classes],
            labels,
            n: self.batch,
            size: self.size,
        };
        for (at, &(epoch, index)) in places.iter().enumerate() {
            let next = (at + 1) % self.batch;
            let mix = Mix::draw(
                &self.augmentation,
                self.size,
                &mut self.stream("mixing", epoch, index),
            );
            let begin = batch.pixels.len();
            batch.pixels.extend_from_slice(&cut[at]);
            mix.apply(&mut batch.pixels[begin..], &cut[next], self.size);
            let own = mix.own_share(self.size);
            let target = &mut batch.targets[at * n_classes..][..n_classes];
            smooth(target, batch.labels[at], own, self.augmentation.label_smoothing);
            smooth(
                target,
                batch.labels[next],
                1.0 - own,
                self.augmentation.label_smoothing,
            );
        }
        Ok(batch)
    }

    fn stream(&self, what: &str, epoch: u64, index: usize) -> random::Rng {
        random::stream(self.seed, [what, &epoch.to_string(), &index.to_string()])
    }
}

/// Adds the smoothed target of a class, times a weight.
fn smooth(target: &mut [f32], label: usize, weight: f32, smoothing: f64) {
    let rest = smoothing as f32 / target.len() as f32;
    for (class, target) in target.iter_mut().enumerate() {
        let own = if class == label {
            1.0 - smoothing as f32
        } else {
            0.0
        };
        *target += weight * (own + rest);
    }
}

/// Images of a range, as they are evaluated: cut from the middle, unmixed, targets without smoothing.
///
/// # Errors
/// The first image that cannot be read, or is too small.
///
/// # Panics
/// For a range that goes past the last image: a fault of the calling program.
pub fn evaluation_batch(
    images: &dyn Images,
    range: std::ops::Range<usize>,
    normalisation: &Normalisation,
    size: usize,
) -> Result<ImageBatch, ImageError> {
    let cut: Vec<Vec<f32>> = range
        .clone()
        .into_par_iter()
        .map(|index| {
            let picture = middle(&images.picture(index)?, size, || images.name(index))?;
            Ok(normalisation.apply(&picture))
        })
        .collect::<Result<_, ImageError>>()?;
    let n_classes = images.classes().len();
    let labels: Vec<usize> = range.clone().map(|index| images.label(index)).collect();
    let mut targets = vec![0.0; range.len() * n_classes];
    for (target, &label) in targets.chunks_exact_mut(n_classes).zip(&labels) {
        target[label] = 1.0;
    }
    Ok(ImageBatch {
        pixels: cut.concat(),
        targets,
        labels,
        n: range.len(),
        size,
    })
}
