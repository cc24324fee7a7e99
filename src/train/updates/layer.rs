//! What is kept of a layer from one watched update to the next, and what each gives.

use std::collections::BTreeMap;

use burn::tensor::backend::Backend;
use burn::tensor::{Tensor, TensorData};

use super::UpdateRow;
use crate::bilinear::{BilinearError, BilinearForm, Directionality, PairSymmetry, WeightGradients};
use crate::train::checkpoints::{Named, fitting};

/// What the batches of one update say of one layer, summed.
pub(super) struct LayerGradient<B: Backend> {
    pub weights: WeightGradients<B>,
    pub total: Tensor<B, 2>,
    pub pairs: PairSymmetry,
}

/// A layer between two watched updates.
#[derive(Debug)]
pub(super) struct Watched<B: Backend> {
    pub module: String,
    first: Tensor<B, 2>,
    /// At the last watched step.
    last: BilinearForm<B>,
    /// The exact updates from one watched step to the next, summed.
    sum: Tensor<B, 2>,
}

impl<B: Backend> Watched<B> {
    /// Begins with a layer as it is now.
    pub fn new(module: String, form: BilinearForm<B>) -> Self {
        let first = form.full();
        Self {
            module,
            sum: first.zeros_like(),
            first,
            last: form,
        }
    }

    /// What it holds, from which [`restored`](Self::restored) makes it again.
    pub fn state(&self) -> impl Iterator<Item = Named> {
        let names = NAMES.map(|name| self.name(name));
        names.into_iter().zip(self.tensors().map(Tensor::into_data))
    }

    /// The same layer with the tensors of another time.
    ///
    /// # Errors
    /// The tensor that is missing or does not fit.
    pub fn restored(self, stored: &mut BTreeMap<String, TensorData>) -> Result<Self, String> {
        let mut place = 0;
        let mut take = |old: Tensor<B, 2>| {
            let name = self.name(NAMES[place]);
            place += 1;
            let data = stored.remove(&name).ok_or_else(|| format!("it lacks '{name}'"))?;
            let device = old.device();
            fitting(&name, data, &old).map(|data| Tensor::from_data(data, &device))
        };
        let [first, sum, w_q, w_k] = self.tensors();
        let (first, sum) = (take(first)?, take(sum)?);
        let last = BilinearForm::new(take(w_q)?, take(w_k)?, self.last.heads_layout())
            .map_err(|error| format!("{}: {error}", self.module))?;
        Ok(Self {
            module: self.module,
            first,
            last,
            sum,
        })
    }

    fn tensors(&self) -> [Tensor<B, 2>; 4] {
        let (w_q, w_k) = (self.last.w_q(), self.last.w_k());
        [self.first.clone(), self.sum.clone(), w_q, w_k]
    }

    fn name(&self, of: &str) -> String {
        format!("{}.{of}", self.module)
    }

    /// The numbers of one update, and a step on: `after` becomes the last watched.
    pub fn row(
        &mut self,
        step: usize,
        layer: usize,
        before: &BilinearForm<B>,
        after: &BilinearForm<B>,
        gradient: &LayerGradient<B>,
    ) -> Result<UpdateRow, BilinearError> {
        let update = before.update_to(after)?;
        let moments = update.moments();
        // The rate does not change a cosine.
        let first_order = before.first_order_update(&gradient.weights, 1.0)?;
        self.sum = self.sum.clone() + self.last.update_to(after)?.full();
        self.last = after.clone();
        let change = after.full() - self.first.clone();
        let missed = norm(self.sum.clone() - change.clone());
        let change = BilinearForm::from_matrix(change)?.moments();
        let total = BilinearForm::from_matrix(gradient.total.clone())?.moments();
        let weights = after.moments();
        let excess = Directionality::excess();
        Ok(UpdateRow {
            step,
            layer,
            weights_symmetry: weights.symmetry(),
            weights_directionality: weights.directionality(excess)?,
            gradient_symmetry: total.symmetry(),
            gradient_directionality: total.directionality(excess)?,
            pair_symmetry: gradient.pairs.symmetry,
            mutual_pairs: gradient.pairs.mutual,
            update_symmetry: moments.symmetry(),
            update_directionality: moments.directionality(excess)?,
            update_norm: moments.frobenius_norm(),
            first_order_cosine: update.cosine(&first_order)?,
            change_symmetry: change.symmetry(),
            change_directionality: change.directionality(excess)?,
            change_norm: change.frobenius_norm(),
            accumulation_error: if missed == 0.0 {
                0.0
            } else {
                missed / change.frobenius_norm()
            },
        })
    }
}

fn norm<B: Backend>(x: Tensor<B, 2>) -> f64 {
    let data = x.into_data();
    data.iter::<f64>().map(|x| x * x).sum::<f64>().sqrt()
}

/// What the tensors of a layer are called, after its module.
const NAMES: [&str; 4] = ["first", "sum", "last_query", "last_key"];
