//! An average of the weights over training.

use std::marker::PhantomData;

use burn::module::{AutodiffModule, Module, ModuleMapper, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;
use burn::tensor::backend::{AutodiffBackend, Backend};
use serde::{Deserialize, Serialize};

/// How weights are averaged: exponentially, `a ← decay · a + (1 − decay) · w` after every `every` updates.
///
/// The defaults are those that the structure paper states for its vision transformers.
///
/// # Source
/// A. Tarvainen and H. Valpola, arXiv 1703.01780.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AverageConfig {
    /// Weight of the past, at least 0 and below 1.
    pub decay: f64,
    /// Updates between averagings.
    pub every: usize,
    /// Updates before the average begins; until then it is the weights themselves. The warm-up, usually.
    pub from: usize,
}

impl Default for AverageConfig {
    fn default() -> Self {
        Self {
            decay: 0.99998,
            every: 32,
            from: 0,
        }
    }
}

impl AverageConfig {
    /// The decay at which the average reaches over the same share of a run, whatever its length:
    /// `1 − min(1, (1 − decay) · batch · every / epochs)`.
    ///
    /// At 0.99998 every 32 updates of 128 images an average of 500 epochs of CIFAR-10 would keep 88 % of the first
    /// weights to the end: `torchvision`'s training script, whose settings these are, adjusts the decay so.
    ///
    /// # Source
    /// `references/classification/train.py` of torchvision, which credits pycls.
    pub fn adjusted(self, batch: usize, epochs: usize) -> Self {
        let factor = batch as f64 * self.every as f64 / epochs.max(1) as f64;
        Self {
            decay: 1.0 - ((1.0 - self.decay) * factor).min(1.0),
            ..self
        }
    }

    /// Whether `done` updates are a moment to average.
    fn is_due(&self, done: usize) -> bool {
        done.is_multiple_of(self.every.max(1))
    }
}

/// The averaged weights of a model in training, as a model without autodiff.
#[derive(Debug, Clone)]
pub struct WeightAverage<B: AutodiffBackend, M: AutodiffModule<B>> {
    config: AverageConfig,
    model: M::InnerModule,
    backend: PhantomData<fn() -> B>,
}

impl<B: AutodiffBackend, M: AutodiffModule<B>> WeightAverage<B, M> {
    /// Begins with the weights of a model, or goes on from those of an earlier average.
    pub fn new(config: AverageConfig, model: M::InnerModule) -> Self {
        Self {
            config,
            model,
            backend: PhantomData,
        }
    }

    /// Takes in the weights after `done` updates.
    ///
    /// Cost: nothing but where an average is due, then a pass over the weights on their device.
    pub fn update(&mut self, done: usize, model: &M) {
        if done <= self.config.from {
            self.model = model.valid();
        } else if self.config.is_due(done) {
            let mut weights = Weights(GradientsParams::new());
            model.valid().visit(&mut weights);
            self.model = self.model.clone().map(&mut Blend {
                weights: weights.0,
                share: 1.0 - self.config.decay,
            });
        }
    }

    /// The averaged model.
    pub fn model(&self) -> &M::InnerModule {
        &self.model
    }

    /// A model with the averaged weights, and all that is not a weight, such as a temperature that goes by the
    /// step, as it is in `model`.
    pub fn within(&self, model: M::InnerModule) -> M::InnerModule {
        let mut weights = Weights(GradientsParams::new());
        self.model.visit(&mut weights);
        model.map(&mut Replace(weights.0))
    }

    /// Goes on from other averaged weights, such as those of a checkpoint.
    pub(super) fn set_model(&mut self, model: M::InnerModule) {
        self.model = model;
    }
}

/// Weights by the identity of their parameter. Burn's container of gradients holds tensors of any rank so.
struct Weights(GradientsParams);

impl<B: Backend> ModuleVisitor<B> for Weights {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
        self.0.register::<B, D>(param.id, param.val());
    }
}

struct Replace(GradientsParams);

impl<B: Backend> ModuleMapper<B> for Replace {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<B, D>>) -> Param<Tensor<B, D>> {
        let new = self.0.remove::<B, D>(param.id);
        param.map(|old| new.unwrap_or(old))
    }
}

struct Blend {
    weights: GradientsParams,
    share: f64,
}

impl<B: Backend> ModuleMapper<B> for Blend {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<B, D>>) -> Param<Tensor<B, D>> {
        let new = self.weights.remove::<B, D>(param.id);
        param.map(|old| match new {
            // By the difference: a share of 2e-5 is far from what f32 keeps of 1 − share.
            Some(new) => old.clone() + (new - old).mul_scalar(self.share),
            None => old,
        })
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use burn::nn::Linear;
    use burn::tensor::Device;

    use super::*;
    use crate::backend::{Autodiff, Flex};

    type B = Autodiff<Flex>;

    fn model(weight: f32) -> Linear<B> {
        let device = Device::<B>::default();
        Linear {
            weight: Param::initialized(7.into(), Tensor::from_floats([[weight]], &device)),
            bias: Some(Param::initialized(
                8.into(),
                Tensor::from_floats([2.0 * weight], &device),
            )),
        }
    }

    fn value(average: &WeightAverage<B, Linear<B>>) -> [f32; 2] {
        let model = average.model();
        let bias = model.bias.as_ref().unwrap().val().into_scalar();
        [model.weight.val().into_scalar(), bias]
    }

    #[test]
    fn copies_until_it_begins_then_averages_when_due() {
        let config = AverageConfig {
            decay: 0.75,
            every: 2,
            from: 2,
        };
        let mut average = WeightAverage::<B, Linear<B>>::new(config, model(0.0).valid());
        let mut seen = Vec::new();
        for done in 1..=6 {
            average.update(done, &model(done as f32));
            let [weight, bias] = value(&average);
            assert_eq!(bias, 2.0 * weight);
            seen.push(weight);
        }
        // 2, then 2 + (4 − 2)/4 at update 4 and 2.5 + (6 − 2.5)/4 at update 6: all exact in f32.
        assert_eq!(seen, [1.0, 2.0, 2.0, 2.5, 2.5, 3.375]);
    }

    #[test]
    fn the_adjusted_decay_is_torchvisions() {
        // alpha = 2e-5 · 128 · 32/500 = 1.6384e-4, by hand.
        let decay = AverageConfig::default().adjusted(128, 500).decay;
        assert!((decay - (1.0 - 1.6384e-4)).abs() < 1e-12, "{decay}");
        assert_eq!(AverageConfig::default().adjusted(1 << 20, 1).decay, 0.0);
    }
}
