use faer::Mat;
use serde::{Deserialize, Serialize};

use super::host::{from_mat, haar, to_mat};
use super::{Matrix, Projections, Streams};
use crate::random::Rng;

/// Queries tied to keys, so that the form of the layer and of each head is symmetric (`s = 1`).
///
/// With a key head for each query head, `W_k = W_q`. Where query heads share a key head, copying it to all of
/// them would make them identical for ever, in queries and keys; so by default `W_q,h = W_k,g S_h` with `S_h` a
/// random symmetric orthogonal matrix for each head: the heads then differ (from a width of 2 on) and each is
/// symmetric.
///
/// The tying holds at the start only: both matrices are trained.
///
/// # Source
/// arXiv 2502.10927, symmetric initialisation. Its own code draws values anew and leaves biases untied; here
/// nothing but queries and keys differs from the other schemes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SymmetricInit {
    /// Copies a shared key head to its query heads instead.
    pub copy: bool,
}

impl SymmetricInit {
    /// Tied queries and keys, distinct heads.
    pub const fn tied() -> Self {
        Self { copy: false }
    }

    /// The same with shared key heads copied to their query heads.
    pub const fn copied() -> Self {
        Self { copy: true }
    }

    pub(super) fn draw(&self, projections: &Projections, std: f64, streams: &Streams) -> (Matrix, Matrix) {
        let &Projections {
            d_model,
            heads,
            head_dim,
        } = projections;
        if heads.heads_per_group() == 1 {
            let query = streams.normal("query", [d_model, projections.query_width()], std);
            return (query.clone(), query);
        }
        let key = streams.normal("key", [d_model, projections.key_width()], std);
        let keys = to_mat(&key);
        let mut rng = streams.of("reflections");
        let mut query = Mat::<f64>::zeros(d_model, projections.query_width());
        for head in 0..heads.n_heads() {
            let block = keys.subcols(heads.group_of(head) * head_dim, head_dim);
            let mut target = query.as_mut().subcols_mut(head * head_dim, head_dim);
            if self.copy {
                target.copy_from(block);
            } else {
                target.copy_from(block * symmetric_orthogonal(&mut rng, head_dim));
            }
        }
        (from_mat(&query), key)
    }
}

/// `V D Vᵀ` with `V` uniform and half of the signs in `D` negative: symmetric, its own inverse, and for `n ≥ 2`
/// never `±I`, so that no two draws agree.
fn symmetric_orthogonal(rng: &mut Rng, n: usize) -> Mat<f64> {
    let v = haar(rng, n);
    let mut signed = v.clone();
    for (i, j) in (0..n).flat_map(|i| (0..n / 2).map(move |j| (i, j))) {
        signed[(i, j)] = -signed[(i, j)];
    }
    signed * v.transpose()
}

/// The control arm of [`SymmetricInit`]: the same queries and keys, the keys then turned, `W_k ← U W_k`, by a
/// uniform orthogonal `U [d_model, d_model]`.
///
/// Every head's form, and the layer's, becomes `W_qk Uᵀ`: the same singular values, and a symmetry near 0.
/// Independent queries and keys of the same variance are no such control: tying alone makes `‖W_qk‖` √2 larger
/// for square factors, and the logits of equal tokens larger.
///
/// Costs `O(d_model³)` on the host, for each layer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ControlInit {
    /// The arm that this one controls.
    pub of: SymmetricInit,
}

impl ControlInit {
    /// The control of [`SymmetricInit::tied`].
    pub const fn new() -> Self {
        Self {
            of: SymmetricInit::tied(),
        }
    }

    pub(super) fn draw(&self, projections: &Projections, std: f64, streams: &Streams) -> (Matrix, Matrix) {
        let (query, key) = self.of.draw(projections, std, streams);
        let turn = haar(&mut streams.of("turn"), projections.d_model);
        (query, from_mat(&(turn * to_mat(&key))))
    }
}
