//! AdamW with the field's parameter groups.

use burn::module::AutodiffModule;
use burn::optim::adaptor::OptimizerAdaptor;
use burn::optim::{LearningRate, SimpleOptimizer};
use burn::record::Record;
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{Device, Tensor};
use rayon::prelude::*;

use super::config::TrainConfig;
use crate::backend::in_host_memory;

/// AdamW (Loshchilov and Hutter 2019) that decays matrices only.
///
/// Weight decay acts on parameters of rank two and above; biases and the gains of norms, which are
/// vectors, are left alone, as is usual in training transformers. Burn's own AdamW decays every
/// parameter alike.
///
/// An update is limited by memory, not by arithmetic. So the moments are kept as decayed sums, whose
/// weights are divided out once for a whole tensor, and on backends that compute in host memory all of it
/// is one pass over parameter, gradient and moments.
#[derive(Debug, Clone)]
pub struct AdamWByRank {
    beta_1: f64,
    beta_2: f64,
    epsilon: f64,
    weight_decay: f64,
}

/// What [`AdamWByRank`] remembers of one parameter.
#[derive(Record, Clone, Debug)]
pub struct Moments<B: Backend, const D: usize> {
    /// Updates done.
    pub time: usize,
    /// `Σ_k β₁ᵏ g_{t−k}`: the first moment, but for its weights.
    pub first: Tensor<B, D>,
    /// `Σ_k β₂ᵏ g²_{t−k}`: the second moment, but for its weights.
    pub second: Tensor<B, D>,
}

/// One update, as factors that hold for every element: `p ← keep · p − step · first / (√second + floor)`.
#[derive(Debug, Clone, Copy)]
struct Factors {
    beta_1: f32,
    beta_2: f32,
    keep: f32,
    step: f32,
    floor: f32,
}

impl AdamWByRank {
    /// The factors of update number `time`, counted from 1.
    ///
    /// With `w = Σ_{k<t} βᵏ = (1 − βᵗ)/(1 − β)` the corrected moments are `first/w₁` and `second/w₂`, and
    /// `(first/w₁)/(√(second/w₂) + ε) = (√w₂/w₁) · first/(√second + ε√w₂)`.
    fn factors(&self, rate: LearningRate, rank: usize, time: usize) -> Factors {
        let weight = |beta: f64| (1.0 - beta.powi(time as i32)) / (1.0 - beta);
        let root = weight(self.beta_2).sqrt();
        let decay = if rank < 2 { 0.0 } else { self.weight_decay };
        Factors {
            beta_1: self.beta_1 as f32,
            beta_2: self.beta_2 as f32,
            keep: (1.0 - rate * decay) as f32,
            step: (rate * root / weight(self.beta_1)) as f32,
            floor: (self.epsilon * root) as f32,
        }
    }
}

impl<B: Backend> SimpleOptimizer<B> for AdamWByRank {
    type State<const D: usize> = Moments<B, D>;

    fn step<const D: usize>(
        &self,
        rate: LearningRate,
        tensor: Tensor<B, D>,
        grad: Tensor<B, D>,
        state: Option<Self::State<D>>,
    ) -> (Tensor<B, D>, Option<Self::State<D>>) {
        let mut state = state.unwrap_or_else(|| Moments {
            time: 0,
            first: grad.zeros_like(),
            second: grad.zeros_like(),
        });
        state.time += 1;
        let factors = self.factors(rate, D, state.time);
        let kept = [tensor, state.first, state.second];
        let [tensor, first, second] = match in_one_pass(factors, kept, grad) {
            Ok(updated) => updated,
            Err((kept, grad)) => by_operations(factors, kept, grad),
        };
        let time = state.time;
        (tensor, Some(Moments { time, first, second }))
    }

    fn to_device<const D: usize>(state: Self::State<D>, device: &Device<B>) -> Self::State<D> {
        Moments {
            time: state.time,
            first: state.first.to_device(device),
            second: state.second.to_device(device),
        }
    }
}

/// Parameter, first and second moment.
type Kept<B, const D: usize> = [Tensor<B, D>; 3];

/// By operations on whole tensors, ordered so that a backend can work in place.
fn by_operations<B: Backend, const D: usize>(
    factors: Factors,
    kept: Kept<B, D>,
    grad: Tensor<B, D>,
) -> Kept<B, D> {
    let [tensor, first, second] = kept;
    let first = first.mul_scalar(factors.beta_1) + grad.clone();
    let second = second.mul_scalar(factors.beta_2) + grad.square();
    let scale = second.clone().sqrt().add_scalar(factors.floor);
    let tensor = tensor.mul_scalar(factors.keep) - (first.clone() / scale).mul_scalar(factors.step);
    [tensor, first, second]
}

/// Element by element, in host memory; the tensors as they were where they are elsewhere.
fn in_one_pass<B: Backend, const D: usize>(
    factors: Factors,
    kept: Kept<B, D>,
    grad: Tensor<B, D>,
) -> Result<Kept<B, D>, (Kept<B, D>, Tensor<B, D>)> {
    /// Elements that one task updates: their four arrays fit a core's cache.
    const CHUNK: usize = 1 << 14;
    in_host_memory(kept, grad, |[p, m, v], g| {
        update_chunks(
            factors,
            p.par_chunks_mut(CHUNK),
            g.par_chunks(CHUNK),
            m.par_chunks_mut(CHUNK),
            v.par_chunks_mut(CHUNK),
        );
    })
}

fn update_chunks<'a>(
    factors: Factors,
    p: impl IndexedParallelIterator<Item = &'a mut [f32]>,
    g: impl IndexedParallelIterator<Item = &'a [f32]>,
    m: impl IndexedParallelIterator<Item = &'a mut [f32]>,
    v: impl IndexedParallelIterator<Item = &'a mut [f32]>,
) {
    let Factors {
        beta_1,
        beta_2,
        keep,
        step,
        floor,
    } = factors;
    p.zip(g).zip(m.zip(v)).for_each(|((p, g), (m, v))| {
        for (((p, g), m), v) in p.iter_mut().zip(g).zip(m).zip(v) {
            *m = *m * beta_1 + g;
            *v = *v * beta_2 + g * g;
            *p = *p * keep - *m / (v.sqrt() + floor) * step;
        }
    });
}

/// The optimiser of a run.
pub fn adamw<B: AutodiffBackend, M: AutodiffModule<B>>(
    config: &TrainConfig,
) -> OptimizerAdaptor<AdamWByRank, M, B> {
    OptimizerAdaptor::from(AdamWByRank {
        beta_1: config.beta_1,
        beta_2: config.beta_2,
        epsilon: config.epsilon,
        weight_decay: config.weight_decay,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The method as it is published, in f64: moments as weighted means, corrected for their start.
    fn published(rate: f64, decay: f64, mut p: f64, gradients: &[f64]) -> f64 {
        let (mut m, mut v) = (0.0, 0.0);
        for (t, g) in (1..).zip(gradients) {
            m = 0.9 * m + 0.1 * g;
            v = 0.999 * v + 0.001 * g * g;
            let (m, v) = (m / (1.0 - 0.9f64.powi(t)), v / (1.0 - 0.999f64.powi(t)));
            p = p * (1.0 - rate * decay) - rate * m / (v.sqrt() + 1e-8);
        }
        p
    }

    fn both_ways_are_the_published_method<B: Backend>() {
        let device = Default::default();
        let (rate, decay) = (1e-2, 0.1);
        let starts = [1.0, -2.0, 0.5];
        let gradients = |k: usize| -> Vec<f64> {
            (0..20)
                .map(|t| ((3 * t + 7 * k + 1) as f64).sin() * 10f64.powi(k as i32 - 2))
                .collect()
        };
        let optimiser = AdamWByRank {
            beta_1: 0.9,
            beta_2: 0.999,
            epsilon: 1e-8,
            weight_decay: decay,
        };
        let row = |values: [f64; 3]| Tensor::<B, 2>::from_data([values.map(|v| v as f32)], &device);
        let in_one_pass = |factors, kept, grad| in_one_pass(factors, kept, grad).expect("in host memory");
        for way in [by_operations::<B, 2>, in_one_pass] {
            let mut kept = [row(starts), row([0.0; 3]), row([0.0; 3])];
            for t in 0..20 {
                let grad = row([0, 1, 2].map(|k| gradients(k)[t]));
                kept = way(optimiser.factors(rate, 2, t + 1), kept, grad);
            }
            let got: Vec<f32> = kept[0].to_data().to_vec().unwrap();
            for (k, got) in got.into_iter().enumerate() {
                let want = published(rate, decay, starts[k], &gradients(k));
                // Twenty updates of about 0.01, each rounded to f32 at values below 2: 20 · 1.2e-7.
                assert!((f64::from(got) - want).abs() < 3e-6, "{got} against {want}");
            }
        }
    }

    #[cfg(feature = "flex")]
    #[test]
    fn both_ways_are_the_published_method_on_flex() {
        both_ways_are_the_published_method::<crate::backend::Flex>();
    }

    #[cfg(feature = "tch")]
    #[test]
    fn both_ways_are_the_published_method_on_tch() {
        both_ways_are_the_published_method::<crate::backend::Tch>();
    }
}
