//! AdamW with the field's parameter groups.

use burn::module::AutodiffModule;
use burn::optim::adaptor::OptimizerAdaptor;
use burn::optim::{AdamW, AdamWConfig, AdamWState, LearningRate, SimpleOptimizer};
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{Device, Tensor};

use super::config::TrainConfig;

/// AdamW (Loshchilov and Hutter 2019) that decays matrices only.
///
/// Weight decay acts on parameters of rank two and above; biases and the gains of norms, which are
/// vectors, are left alone, as is usual in training transformers. Burn's own AdamW decays every
/// parameter alike.
#[derive(Clone)]
pub struct AdamWByRank {
    decayed: AdamW,
    plain: AdamW,
}

impl<B: Backend> SimpleOptimizer<B> for AdamWByRank {
    type State<const D: usize> = AdamWState<B, D>;

    fn step<const D: usize>(
        &self,
        rate: LearningRate,
        tensor: Tensor<B, D>,
        grad: Tensor<B, D>,
        state: Option<Self::State<D>>,
    ) -> (Tensor<B, D>, Option<Self::State<D>>) {
        let group = if D < 2 { &self.plain } else { &self.decayed };
        group.step(rate, tensor, grad, state)
    }

    fn to_device<const D: usize>(state: Self::State<D>, device: &Device<B>) -> Self::State<D> {
        <AdamW as SimpleOptimizer<B>>::to_device(state, device)
    }
}

/// The optimiser of a run.
pub fn adamw<B: AutodiffBackend, M: AutodiffModule<B>>(
    config: &TrainConfig,
) -> OptimizerAdaptor<AdamWByRank, M, B> {
    let group = |decay: f64| {
        AdamWConfig::new()
            .with_beta_1(config.beta_1 as f32)
            .with_beta_2(config.beta_2 as f32)
            .with_epsilon(config.epsilon as f32)
            .with_weight_decay(decay as f32)
            .build()
    };
    OptimizerAdaptor::from(AdamWByRank {
        decayed: group(config.weight_decay),
        plain: group(0.0),
    })
}
