//! Clipping of gradients by their global norm.
//!
//! Burn clips each tensor by its own norm; the field clips all of them together (Pascanu et al. 2013),
//! which keeps the direction of the step.

use std::marker::PhantomData;

use burn::module::{AutodiffModule, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::backend::AutodiffBackend;
use burn::tensor::{ElementConversion, Tensor};

/// The norm of all gradients of a module taken as one vector.
pub fn global_norm<B: AutodiffBackend, M: AutodiffModule<B>>(module: &M, grads: &GradientsParams) -> f64 {
    let mut squares = SquareSums::<B> {
        grads,
        sums: Vec::new(),
    };
    module.visit(&mut squares);
    if squares.sums.is_empty() {
        return 0.0;
    }
    // One transfer from the device for all of them; the sum over tensors is on the host in f64.
    let sums = Tensor::cat(squares.sums, 0).into_data();
    sums.iter::<f64>().sum::<f64>().sqrt()
}

/// Scales all gradients by one factor so that their global norm is at most `limit`, and returns the norm
/// that they had before.
///
/// A norm that is not finite is returned as it is and nothing is scaled: the caller must not step.
pub fn clip_global_norm<B: AutodiffBackend, M: AutodiffModule<B>>(
    module: &M,
    grads: &mut GradientsParams,
    limit: f64,
) -> f64 {
    let norm = global_norm(module, grads);
    if norm.is_finite() && norm > limit {
        module.visit(&mut Scale::<B> {
            grads,
            factor: limit / norm,
            backend: PhantomData,
        });
    }
    norm
}

struct SquareSums<'a, B: AutodiffBackend> {
    grads: &'a GradientsParams,
    sums: Vec<Tensor<B::InnerBackend, 1>>,
}

impl<B: AutodiffBackend> ModuleVisitor<B> for SquareSums<'_, B> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
        if let Some(grad) = self.grads.get::<B::InnerBackend, D>(param.id) {
            self.sums.push(grad.square().sum());
        }
    }
}

struct Scale<'a, B: AutodiffBackend> {
    grads: &'a mut GradientsParams,
    factor: f64,
    backend: PhantomData<B>,
}

impl<B: AutodiffBackend> ModuleVisitor<B> for Scale<'_, B> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
        if let Some(grad) = self.grads.remove::<B::InnerBackend, D>(param.id) {
            self.grads
                .register(param.id, grad.mul_scalar(self.factor.elem::<f32>()));
        }
    }
}
