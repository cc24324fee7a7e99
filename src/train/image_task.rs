//! Classification of images.

use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{Device, ElementConversion, Tensor, TensorData};

use super::config::{TrainConfig, TrainError};
use super::observer::Evaluation;
use super::task::{Task, TracedTask};
use crate::attention::{AttentionTrace, Noise};
use crate::data::vision::{
    Augmentation, CHANNELS, ImageBatch, ImageBatches, Images, Normalisation, evaluation_batch,
};
use crate::model::ViT;
use crate::objective::soft_loss;

/// Images to train on and images to evaluate on, of the same classes.
#[derive(Debug, Clone, Copy)]
pub struct ImageData<'a> {
    /// Images to train on.
    pub train: &'a dyn Images,
    /// Images to evaluate on.
    pub test: &'a dyn Images,
    /// Mean and deviation by which the pixels of both are normalised.
    pub normalisation: &'a Normalisation,
}

/// Classification by a [`ViT`]: the loss on augmented images with mixed and smoothed targets, evaluated on images as
/// they are, with the share of right answers (top-1).
#[derive(Debug, Clone)]
pub struct ImageTask<'a> {
    data: ImageData<'a>,
    batches: ImageBatches<'a>,
    accumulation: usize,
    seed: u64,
    size: usize,
}

impl<'a> ImageTask<'a> {
    /// A task over images that are cut to squares of `size` pixels.
    ///
    /// # Errors
    /// [`TrainError::Image`] for settings out of range, and for classes that are not the same on both sides.
    pub fn new(
        data: ImageData<'a>,
        augmentation: Augmentation,
        size: usize,
        config: &TrainConfig,
    ) -> Result<Self, TrainError> {
        let (train, test) = (data.train.classes(), data.test.classes());
        if train != test {
            return Err(TrainError::Classes {
                train: train.len(),
                test: test.len(),
            });
        }
        let normalisation = *data.normalisation;
        Ok(Self {
            data,
            batches: ImageBatches::new(
                data.train,
                augmentation,
                normalisation,
                size,
                config.batch_size,
                config.seed,
            )?,
            accumulation: config.accumulation,
            seed: config.seed,
            size,
        })
    }

    fn noise(&self, step: usize, part: usize) -> Noise {
        Noise::new(self.seed, step as u64).at(format!("part {part}"))
    }
}

impl<B: AutodiffBackend> Task<B> for ImageTask<'_> {
    type Model = ViT<B>;
    type Batch = ImageBatch;

    fn check(&self, model: &ViT<B>) -> Result<(), TrainError> {
        let (data, of_model) = (self.data.train.classes().len(), model.n_classes());
        if data != of_model {
            return Err(TrainError::Invalid {
                field: "n_classes",
                value: of_model.to_string(),
                must: "the number of classes of the images",
            });
        }
        if model.image_size() != self.size || model.channels() != CHANNELS {
            return Err(TrainError::Invalid {
                field: "image_size",
                value: model.image_size().to_string(),
                must: "the size to which the images are cut, in three colours",
            });
        }
        Ok(())
    }

    fn batches(&self, step: usize) -> Result<Vec<ImageBatch>, TrainError> {
        (0..self.accumulation)
            .map(|part| Ok(self.batches.batch((step * self.accumulation + part) as u64)?))
            .collect()
    }

    fn weight(&self, batch: &ImageBatch) -> usize {
        batch.n
    }

    fn tokens(&self, batch: &ImageBatch) -> usize {
        batch.n
    }

    fn loss(&self, model: &ViT<B>, batch: ImageBatch, step: usize, part: usize) -> Tensor<B, 1> {
        let (images, targets) = tensors(batch, &model.head.weight.val().device());
        soft_loss(model.logits(images, Some(&self.noise(step, part))), targets)
    }

    fn evaluate(&self, model: &ViT<B::InnerBackend>) -> Result<Evaluation, TrainError> {
        let device = model.head.weight.val().device();
        let (len, size) = (self.data.test.len(), self.batches.batch_size());
        let (mut loss, mut right) = (0.0, 0);
        for first in (0..len).step_by(size) {
            let range = first..len.min(first + size);
            let batch = evaluation_batch(self.data.test, range, self.data.normalisation, self.size)?;
            let (n, labels) = (batch.n, batch.labels.clone());
            let (images, targets) = tensors(batch, &device);
            let logits = model.logits(images, None);
            let classes = logits.clone().argmax(1).into_data();
            let classes = classes.iter::<i64>();
            right += classes
                .zip(&labels)
                .filter(|(class, label)| *class == **label as i64)
                .count();
            loss += soft_loss(logits, targets).into_scalar().elem::<f64>() * n as f64;
        }
        Ok(Evaluation {
            loss: loss / len as f64,
            accuracy: Some(right as f64 / len as f64),
        })
    }
}

impl<B: AutodiffBackend> TracedTask<B> for ImageTask<'_> {
    fn loss_traced(
        &self,
        model: &ViT<B>,
        batch: ImageBatch,
        step: usize,
        part: usize,
    ) -> (Tensor<B, 1>, Vec<AttentionTrace<B>>) {
        let (images, targets) = tensors(batch, &model.head.weight.val().device());
        let (hidden, traces) = model.forward_traced(images, Some(&self.noise(step, part)));
        (soft_loss(model.classify(hidden), targets), traces)
    }
}

/// Pixels and targets of a batch on a device.
fn tensors<B: Backend>(batch: ImageBatch, device: &Device<B>) -> (Tensor<B, 4>, Tensor<B, 2>) {
    let n_classes = batch.targets.len() / batch.n.max(1);
    let pixels = TensorData::new(batch.pixels, [batch.n, CHANNELS, batch.size, batch.size]);
    let targets = TensorData::new(batch.targets, [batch.n, n_classes]);
    (
        Tensor::from_data(pixels, device),
        Tensor::from_data(targets, device),
    )
}
