//! What one model shows of its attention on one batch, on the host.

use std::collections::BTreeSet;

use super::matrix::Matrix;
use crate::bilinear::{Heads, PairSymmetry};
use crate::objective::{ObjectiveMode, Prepared, Visibility};

/// A model's attention on a batch.
#[derive(Debug, Clone)]
pub struct Evidence {
    /// What model it is, such as `decoder`.
    pub name: String,
    /// What it was trained for.
    pub objective: ObjectiveMode,
    /// The batch: inputs, positions that predict, targets.
    pub batch: Prepared,
    /// Each layer, in order.
    pub layers: Vec<LayerEvidence>,
    /// For two tokens that are predicted in turn, the sum over both of the products of their conditionals, by the
    /// first token: these sum to 1 where the product is a likelihood. Empty where the pairs are too many.
    pub pair_sums: Vec<f64>,
    /// The size of the vocabulary.
    pub vocabulary: usize,
    /// Symmetry of the layers' actual updates, and their cosine with gradient descent, over training:
    /// `(layer, update symmetry, cosine)`. Empty where the training was not watched.
    pub updates: Vec<(usize, f64, f64)>,
}

/// One layer of it. Matrices of scores and weights are by head and sequence.
#[derive(Debug, Clone)]
pub struct LayerEvidence {
    /// The path of the module.
    pub module: String,
    /// How its weights divide into heads.
    pub heads: Heads,
    /// The tokens, `[n, d_model]` for each sequence.
    pub x: Vec<Matrix>,
    /// `∂L/∂Â`, `[n, n]`.
    pub beta: Vec<Vec<Matrix>>,
    /// The raw scores, `[n, n]`.
    pub scores: Vec<Vec<Matrix>>,
    /// The weights, `[n, n]`.
    pub weights: Vec<Vec<Matrix>>,
    /// The queries with their bias, `[n, head_dim]`.
    pub queries: Vec<Vec<Matrix>>,
    /// The keys with their bias, by key head, `[n, head_dim]`.
    pub keys: Vec<Vec<Matrix>>,
    /// `W_q`, `[d_model, n_heads * head_dim]`.
    pub w_q: Matrix,
    /// `W_k`, `[d_model, n_kv_heads * head_dim]`.
    pub w_k: Matrix,
    /// `W_q` and `W_k` before training, where they are known.
    pub start: Option<(Matrix, Matrix)>,
    /// `∂L/∂W_q` by autodiff.
    pub grad_q: Matrix,
    /// `∂L/∂W_k` by autodiff.
    pub grad_k: Matrix,
    /// `‖Â − Q Kᵀ‖ / ‖Â‖`, by the stored projections.
    pub deviation: f64,
}

impl LayerEvidence {
    /// The width of a head.
    pub fn head_dim(&self) -> usize {
        self.w_q.columns() / self.heads.n_heads()
    }

    /// The width of the model.
    pub fn d_model(&self) -> usize {
        self.w_q.rows()
    }

    /// `W_q,h` and `W_k,g(h)`.
    pub fn head_weights(&self, head: usize) -> (Matrix, Matrix) {
        let r = self.head_dim();
        (
            self.w_q.block(head * r, r),
            self.w_k.block(self.heads.group_of(head) * r, r),
        )
    }

    /// `W_qk` of the layer.
    pub fn form(&self) -> Matrix {
        self.sum_of_heads(&self.w_q, &self.w_k)
    }

    /// What training added to `W_qk`, or, where its start is not known, `W_qk` itself; and which it is, in words.
    pub fn learned(&self) -> (Matrix, &'static str) {
        match &self.start {
            Some((w_q, w_k)) => (
                self.form().plus(&self.sum_of_heads(w_q, w_k), -1.0),
                "what training added to W_qk",
            ),
            None => (self.form(), "W_qk, whose start is not known"),
        }
    }

    fn sum_of_heads(&self, w_q: &Matrix, w_k: &Matrix) -> Matrix {
        let mut sum = Matrix::zeros(self.d_model(), self.d_model());
        for form in self.by_head(w_q, w_k) {
            sum.add(&form, 1.0);
        }
        sum
    }

    /// `W_qk` of each head.
    pub fn head_forms(&self) -> impl Iterator<Item = Matrix> {
        self.by_head(&self.w_q, &self.w_k)
    }

    /// `W_qk` of each head before training; none where it is not known.
    pub fn head_forms_at_start(&self) -> impl Iterator<Item = Matrix> {
        self.start
            .iter()
            .flat_map(move |(w_q, w_k)| self.by_head(w_q, w_k))
    }

    fn by_head(&self, w_q: &Matrix, w_k: &Matrix) -> impl Iterator<Item = Matrix> {
        let r = self.head_dim();
        (0..self.heads.n_heads()).map(move |head| {
            let key = w_k.block(self.heads.group_of(head) * r, r);
            w_q.block(head * r, r).times(&key.transposed())
        })
    }

    /// `G_h = Σ Xᵀ B_h X`, over the sequences.
    pub fn gradient(&self, head: usize) -> Matrix {
        let mut sum = Matrix::zeros(self.d_model(), self.d_model());
        for (x, beta) in self.x.iter().zip(&self.beta[head]) {
            sum.add(&x.transposed().times(&beta.times(x)), 1.0);
        }
        sum
    }

    /// The first-order update of `W_qk,h` under gradient descent on `W_q,h` and `W_k,g`, one head a group, without
    /// its rate: `−(W_q W_qᵀ G + G W_k W_kᵀ)`.
    pub fn first_order(&self, head: usize) -> Matrix {
        let (w_q, w_k) = self.head_weights(head);
        let g = self.gradient(head);
        let mut update = Matrix::zeros(g.rows(), g.columns());
        update.add(&w_q.times(&w_q.transposed().times(&g)), -1.0);
        update.add(&g.times(&w_k).times(&w_k.transposed()), -1.0);
        update
    }

    /// How the error signals of the two directions of a pair agree, over heads and sequences.
    pub fn pairs(&self) -> PairSymmetry {
        let n = self.x.first().map_or(0, Matrix::rows);
        let beta: Vec<f64> = self
            .beta
            .iter()
            .flatten()
            .flat_map(|beta| beta.values().iter().copied())
            .collect();
        PairSymmetry::of(&beta, n)
    }

    /// The sum over heads of `β` for one sequence.
    pub fn total_beta(&self, sequence: usize) -> Matrix {
        let n = self.x[sequence].rows();
        let mut sum = Matrix::zeros(n, n);
        for beta in &self.beta {
            sum.add(&beta[sequence], 1.0);
        }
        sum
    }

    /// Every context token with what it is context for: `x_p` and `u = Σ_i β_ip x_i` over `i ≠ p`, heads summed; and
    /// the same with the sides exchanged, `x_p` and `Σ_j β_pj x_j`. Positions without error are left out.
    pub fn draws(&self, as_context: bool) -> Vec<(Vec<f64>, Vec<f64>)> {
        let mut draws = Vec::new();
        for (sequence, x) in self.x.iter().enumerate() {
            let mut beta = self.total_beta(sequence);
            if !as_context {
                beta = beta.transposed();
            }
            for p in 0..x.rows() {
                let mut u = vec![0.0; x.columns()];
                for i in (0..x.rows()).filter(|&i| i != p && beta.at(i, p) != 0.0) {
                    let weight = beta.at(i, p);
                    u.iter_mut().zip(x.row(i)).for_each(|(u, x)| *u += weight * x);
                }
                if u.iter().any(|&u| u != 0.0) {
                    draws.push((x.row(p).to_vec(), u));
                }
            }
        }
        draws
    }

    /// The second moments of the tokens by coordinate, each weighted by its share of `Σ β²`: of those that ask, and
    /// of those that are asked.
    pub fn side_moments(&self) -> (Vec<f64>, Vec<f64>) {
        let d = self.d_model();
        let (mut queries, mut keys) = (vec![0.0; d], vec![0.0; d]);
        for (sequence, x) in self.x.iter().enumerate() {
            let beta = self.total_beta(sequence);
            let squares = Matrix::from_fn(x.rows(), x.rows(), |i, j| beta.at(i, j).powi(2));
            for (side, weights) in [(&mut queries, squares.clone()), (&mut keys, squares.transposed())] {
                for i in 0..x.rows() {
                    let weight: f64 = weights.row(i).iter().sum();
                    side.iter_mut()
                        .zip(x.row(i))
                        .for_each(|(s, x)| *s += weight * x * x);
                }
            }
        }
        (queries, keys)
    }
}

impl Evidence {
    /// Whether every position sees every other.
    pub fn is_encoder(&self) -> bool {
        self.objective.attention_mask(self.batch.n) == Visibility::Full
    }

    /// Whether positions see themselves and earlier ones alone.
    pub fn is_decoder(&self) -> bool {
        self.objective.attention_mask(self.batch.n) == Visibility::Causal
    }

    /// The positions of each sequence that predict something.
    pub fn predicting(&self) -> Vec<BTreeSet<usize>> {
        let mut sets = vec![BTreeSet::new(); self.batch.batch];
        for &position in &self.batch.positions {
            let (sequence, at) = (position as usize / self.batch.n, position as usize % self.batch.n);
            if let Some(set) = sets.get_mut(sequence) {
                set.insert(at);
            }
        }
        sets
    }

    /// The tokens that a sequence holds as it is fed to the model.
    pub fn held(&self, sequence: usize) -> &[u32] {
        let n = self.batch.n;
        &self.batch.inputs[sequence * n..(sequence + 1) * n]
    }
}
