//! The two ways to the moments of `W_qk`, both exact.
//!
//! Factors are head-major here: `q` and `k` are `W_qᵀ` and `W_kᵀ`, `[inner, d_model]`, so that a head is a block
//! of rows. That is how PyTorch's checkpoints lie, and every product below then works on contiguous blocks.

use burn::tensor::Tensor;
use burn::tensor::backend::Backend;
use serde::{Deserialize, Serialize};

use super::Moments;

/// A way to compute the moments of `M = A Bᵀ`, `A` and `B` of shape `[d, r]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Path {
    /// From the `r × r` matrices `BᵀA`, `AᵀA` and `BᵀB`, blocks of rows at a time and of the symmetric ones only
    /// the half: about `6 d r²` operations, and memory for blocks of at most 256 rows, `[256, d]` and `[256, r]`.
    ///
    /// # Formula
    /// `Tr(MM) = Tr((BᵀA)(BᵀA))`; squared row norms `diag(A (BᵀB) Aᵀ)`, squared column norms `diag(B (AᵀA) Bᵀ)`.
    Factored,
    /// From the entries of `M`, a panel of rows and the matching panel of columns at a time: `2 d² r`
    /// operations, and memory for two panels of `[PANEL, d]`. The whole matrix never exists.
    Dense,
}

/// Entries in a block of the factored path: 1 MiB in f32, which stays in a core's cache between the product and
/// the sums over it. With 16 MiB the heads of BERT-large and Llama-3-8B took 1.5 times as long.
const BLOCK: usize = 1 << 18;

/// Rows in a block of a whole layer's factored path: as few as matrix products still do well with, and as many
/// as pay.
const MIN_ROWS: usize = 128;
const MAX_ROWS: usize = 256;

/// Rows in a panel of the dense path.
const PANEL: usize = 256;

/// The `d/r` from which on the factored path is faster.
const FACTORED_PAYS: usize = 3;

impl Path {
    /// The faster path for factors of shape `[d_model, inner]`.
    ///
    /// Both work in panels of the size of a few hundred rows; the operations decide, `6 d r²` against `2 d² r`.
    pub const fn choose(d_model: usize, inner: usize) -> Self {
        if inner * FACTORED_PAYS <= d_model {
            Self::Factored
        } else {
            Self::Dense
        }
    }
}

/// The moments of a whole layer, from head-major factors of equal shape `[inner, d]`.
pub(super) fn layer<B: Backend>(q: Tensor<B, 2>, k: Tensor<B, 2>, path: Path) -> Moments {
    match path {
        Path::Factored => layer_factored(q, k),
        Path::Dense => layer_dense(q, k),
    }
}

fn layer_factored<B: Backend>(q: Tensor<B, 2>, k: Tensor<B, 2>) -> Moments {
    let [inner, d] = q.dims();
    let mut moments = Moments::zeros(d);
    let step = (BLOCK / d).clamp(MIN_ROWS, MAX_ROWS);
    for start in (0..inner).step_by(step) {
        let end = (start + step).min(inner);
        let size = end - start;
        let block = |x: &Tensor<B, 2>| x.clone().slice([start..end, 0..d]);
        let rest = |x: &Tensor<B, 2>| x.clone().slice([start..inner, 0..d]);
        // A block of rows of an `inner × inner` matrix, from the diagonal on: with what its mirror image adds.
        let twice = |block: Tensor<B, 2>| {
            if end == inner {
                return block;
            }
            let right = block.clone().slice([0..size, size..inner - start]) * 2.0;
            Tensor::cat(vec![block.slice([0..size, 0..size]), right], 1)
        };
        let (q_block, k_block) = (packed(block(&q)), packed(block(&k)));
        let (q_rest, k_rest) = (rest(&q), rest(&k));
        // Two products in place of four: it is the long factor that costs, as products have to transpose it.
        let both = Tensor::cat(vec![k_block.clone(), q_block.clone()], 0);
        let against_q = both.clone().matmul(q_rest.clone().transpose());
        let against_k = both.matmul(k_rest.clone().transpose());
        let half = |product: &Tensor<B, 2>, from: usize| {
            product.clone().slice([from..from + size, 0..inner - start])
        };
        let pairs = half(&against_q, 0) * half(&against_k, size);
        moments.trace += host(twice(pairs).sum_dim(1)).iter().sum::<f64>();
        let form = |gram: Tensor<B, 2>, x: &Tensor<B, 2>, x_block: Tensor<B, 2>| {
            host((twice(gram).matmul(x.clone()) * x_block).sum_dim(0))
        };
        add(&mut moments.rows, &form(half(&against_k, 0), &q_rest, q_block));
        add(
            &mut moments.columns,
            &form(half(&against_q, size), &k_rest, k_block),
        );
    }
    clamp(&mut moments);
    moments
}

fn layer_dense<B: Backend>(q: Tensor<B, 2>, k: Tensor<B, 2>) -> Moments {
    let [inner, d] = q.dims();
    let mut moments = Moments::zeros(d);
    let columns = |x: &Tensor<B, 2>, start: usize, end: usize| x.clone().slice([0..inner, start..end]);
    for start in (0..d).step_by(PANEL) {
        let end = (start + PANEL).min(d);
        let q_panel = columns(&q, start, end).transpose();
        let diagonal = q_panel.clone().matmul(columns(&k, start, end));
        moments.trace += trace_of_squares(diagonal.clone(), end - start)[0];
        let squares = diagonal.square();
        add(&mut moments.rows[start..end], &host(squares.clone().sum_dim(1)));
        add(&mut moments.columns[start..end], &host(squares.sum_dim(0)));
        if end == d {
            break;
        }
        // Right of the diagonal block, and (transposed) below it: together every other entry once, as pairs
        // M_ij and M_ji in the same place.
        let right = q_panel.matmul(columns(&k, end, d));
        let below = columns(&k, start, end).transpose().matmul(columns(&q, end, d));
        moments.trace += 2.0
            * host((right.clone() * below.clone()).sum_dim(1))
                .iter()
                .sum::<f64>();
        let squares = right.square();
        add(&mut moments.rows[start..end], &host(squares.clone().sum_dim(1)));
        add(&mut moments.columns[end..], &host(squares.sum_dim(0)));
        let squares = below.square();
        add(
            &mut moments.columns[start..end],
            &host(squares.clone().sum_dim(1)),
        );
        add(&mut moments.rows[end..], &host(squares.sum_dim(0)));
    }
    moments
}

/// The moments of every head by the factored path, from head-major factors `[n_heads · r, d]` and
/// `[n_kv_heads · r, d]`.
///
/// Heads go in blocks of at most [`BLOCK`] entries: heads of their own key many at a time, heads that share a
/// key by themselves, with the Gram matrix of that key computed once.
pub(super) fn heads_factored<B: Backend>(
    q: Tensor<B, 2>,
    k: Tensor<B, 2>,
    n_heads: usize,
    n_kv_heads: usize,
) -> Vec<Moments> {
    let [rows, d] = q.dims();
    let r = rows / n_heads;
    let per_group = n_heads / n_kv_heads;
    let block = (BLOCK / (r * d)).max(1);
    let take = |x: &Tensor<B, 2>, from: usize, to: usize| {
        x.clone()
            .slice([from * r..to * r, 0..d])
            .reshape([to - from, r, d])
    };
    let gram = |x: &Tensor<B, 3>| x.clone().matmul(x.clone().swap_dims(1, 2));
    let mut moments = Vec::with_capacity(n_heads);
    if per_group == 1 {
        for start in (0..n_heads).step_by(block) {
            let end = (start + block).min(n_heads);
            let key = take(&k, start, end);
            let key_gram = gram(&key);
            moments.extend(block_of_heads(take(&q, start, end), key, key_gram));
        }
    } else {
        for group in 0..n_kv_heads {
            let key = take(&k, group, group + 1);
            let key_gram = gram(&key);
            let group_end = (group + 1) * per_group;
            for start in (group * per_group..group_end).step_by(block) {
                let query = take(&q, start, (start + block).min(group_end));
                moments.extend(block_of_heads(query, key.clone(), key_gram.clone()));
            }
        }
    }
    moments
}

/// Heads `[heads, r, d]` against as many keys, or against one.
fn block_of_heads<B: Backend>(q: Tensor<B, 3>, k: Tensor<B, 3>, k_gram: Tensor<B, 3>) -> Vec<Moments> {
    let [heads, r, d] = q.dims();
    let keys = k.dims()[0];
    let traces = trace_of_squares(k.clone().matmul(q.clone().swap_dims(1, 2)), r);
    let q_gram = q.clone().matmul(q.clone().swap_dims(1, 2));
    let rows = host((k_gram.matmul(q.clone()) * q).sum_dim(1));
    // Flat, so that one key broadcasts over its heads along the first axis alone.
    let product = q_gram.matmul(k.clone()).reshape([heads, r * d]);
    let columns = host(
        (product * k.reshape([keys, r * d]))
            .reshape([heads, r, d])
            .sum_dim(1),
    );
    traces
        .into_iter()
        .zip(rows.chunks(d).zip(columns.chunks(d)))
        .map(|(trace, (rows, columns))| {
            let mut moments = Moments {
                trace,
                rows: rows.to_vec(),
                columns: columns.to_vec(),
            };
            clamp(&mut moments);
            moments
        })
        .collect()
}

/// `Tr(PP)` of each `n × n` matrix of a batch, summed in f64.
fn trace_of_squares<B: Backend, const D: usize>(p: Tensor<B, D>, n: usize) -> Vec<f64> {
    let data = p.into_data().convert::<f32>();
    let values = data.as_slice::<f32>().expect("converted to f32 above");
    values
        .chunks(n * n)
        .map(|p| {
            (0..n)
                .map(|i| {
                    let pair = |j: usize| f64::from(p[i * n + j]) * f64::from(p[j * n + i]);
                    pair(i) + 2.0 * (0..i).map(pair).sum::<f64>()
                })
                .sum()
        })
        .collect()
}

/// The values of a tensor in row-major order.
pub(super) fn host<B: Backend, const D: usize>(x: Tensor<B, D>) -> Vec<f64> {
    x.into_data().iter::<f64>().collect()
}

/// The same matrix with its entries in row-major order, by a copy where they are not.
fn packed<B: Backend>(x: Tensor<B, 2>) -> Tensor<B, 2> {
    let shape = x.dims();
    x.reshape([shape[0] * shape[1]]).reshape(shape)
}

fn add(sums: &mut [f64], terms: &[f64]) {
    for (sum, term) in sums.iter_mut().zip(terms) {
        *sum += term;
    }
}

/// A quadratic form of a Gram matrix is never negative, but its rounding may be.
fn clamp(moments: &mut Moments) {
    for x in moments.rows.iter_mut().chain(&mut moments.columns) {
        *x = x.max(0.0);
    }
}
