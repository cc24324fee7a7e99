//! The update as a sum of rank-one matrices.

use super::matrix::{Matrix, dot};
use super::{Check, Outcome, Part, TextEvidence};
use crate::random;
use crate::report::plot::{Axis, Colour, Curves, Figure, Series};

/// What the claim says.
pub const STATEMENT: &str = "The implicit gradient update of W_qk is proportional to Σ_ij β_ij x_i x_jᵀ.";

/// Which β is put into the sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Errors {
    /// The gradient of the loss in the raw scores.
    Exact,
    /// That of the paper's proof, which leaves the softmax out.
    WithoutSoftmax,
}

/// A layer of causal attention whose loss is differentiated by differences.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Tokens.
    pub n: usize,
    /// Width.
    pub d: usize,
    /// Width of the head of the second part; `d` makes `W_q W_qᵀ` a multiple of the identity.
    pub head_dim: usize,
    /// Turns queries and keys by their positions, as rotary embeddings do.
    pub rotary: bool,
    /// Which β is put into the sum.
    pub errors: Errors,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            n: 8,
            d: 6,
            head_dim: 6,
            rotary: false,
            errors: Errors::Exact,
        }
    }
}

/// `½‖A X V − T‖²` with `A` the causal softmax of the scores.
struct Layer {
    x: Matrix,
    value: Matrix,
    target: Matrix,
    rotary: bool,
}

impl Layer {
    fn scores(&self, form: &Matrix) -> Matrix {
        let n = self.x.rows();
        if !self.rotary {
            return self.x.times(form).times(&self.x.transposed());
        }
        // Each token turned in pairs of coordinates, by an angle that grows with its position.
        let turned = Matrix::from_fn(n, self.x.columns(), |i, k| {
            let (sin, cos) = (i as f64 * 0.7).sin_cos();
            let (even, odd) = (self.x.at(i, k & !1), self.x.at(i, k | 1));
            if k % 2 == 0 {
                cos * even - sin * odd
            } else {
                sin * even + cos * odd
            }
        });
        turned.times(form).times(&turned.transposed())
    }

    fn weights(&self, scores: &Matrix) -> Matrix {
        let scale = 1.0 / (self.x.columns() as f64).sqrt();
        let n = scores.rows();
        let exp = Matrix::from_fn(n, n, |i, j| {
            if j <= i {
                (scale * scores.at(i, j)).exp()
            } else {
                0.0
            }
        });
        Matrix::from_fn(n, n, |i, j| exp.at(i, j) / exp.row(i).iter().sum::<f64>())
    }

    fn error(&self, weights: &Matrix) -> Matrix {
        weights.times(&self.x).times(&self.value).plus(&self.target, -1.0)
    }

    fn loss(&self, form: &Matrix) -> f64 {
        let error = self.error(&self.weights(&self.scores(form)));
        error.inner(&error) / 2.0
    }

    fn beta(&self, form: &Matrix, errors: Errors) -> Matrix {
        let weights = self.weights(&self.scores(form));
        let scale = 1.0 / (self.x.columns() as f64).sqrt();
        let values = self.x.times(&self.value);
        let upstream = self.error(&weights).times(&values.transposed());
        let n = weights.rows();
        Matrix::from_fn(n, n, |i, j| {
            let visible = if j <= i { scale } else { 0.0 };
            match errors {
                Errors::Exact => {
                    visible * weights.at(i, j) * (upstream.at(i, j) - dot(weights.row(i), upstream.row(i)))
                }
                Errors::WithoutSoftmax => visible * upstream.at(i, j),
            }
        })
    }
}

/// On a layer that meets the assumptions.
pub fn synthetic(seed: u64) -> Outcome {
    with(Setting::default(), seed)
}

/// On a layer of any setting.
pub fn with(setting: Setting, seed: u64) -> Outcome {
    let Setting { n, d, head_dim, .. } = setting;
    let mut rng = random::stream(seed, ["theory", "rank one"]);
    let layer = Layer {
        x: Matrix::normal(n, d, 1.0, &mut rng),
        value: Matrix::normal(d, d, 1.0, &mut rng),
        target: Matrix::normal(n, d, 1.0, &mut rng),
        rotary: setting.rotary,
    };
    let orthogonal = |rng: &mut random::Rng| Matrix::orthogonal(d, rng).block(0, head_dim.min(d));
    let (w_q, w_k) = (orthogonal(&mut rng), orthogonal(&mut rng));
    let form = w_q.times(&w_k.transposed());

    // The gradient by differences, which knows nothing of β. Steps of 1e-5 leave 1e-9 of it in f64.
    let step = 1e-5;
    let numeric = Matrix::from_fn(d, d, |i, j| {
        let moved = |by: f64| {
            let mut moved = form.clone();
            moved.set(i, j, form.at(i, j) + by);
            layer.loss(&moved)
        };
        (moved(step) - moved(-step)) / (2.0 * step)
    });
    let beta = layer.beta(&form, setting.errors);
    let sum = layer.x.transposed().times(&beta.times(&layer.x));
    let bilinear = layer.x.times(&form).times(&layer.x.transposed());
    let gradient = Part::new(
        "the gradient in W_qk itself",
        vec![Check::at_most(
            "deviation of the raw scores from X W_qk Xᵀ",
            layer.scores(&form).relative_error(&bilinear),
            1e-9,
        )],
        vec![Check::at_most(
            "deviation of Σ β_ij x_i x_jᵀ from the gradient by differences",
            sum.relative_error(&numeric),
            1e-6,
        )],
    );
    let factors = factor_part("the update through W_q and W_k", &w_q, &w_k, &sum);
    let without = layer.beta(&form, Errors::WithoutSoftmax);
    let dropped = layer.x.transposed().times(&without.times(&layer.x));
    Outcome {
        statement: STATEMENT,
        data: format!("a causal attention layer, {n} tokens of width {d}, head width {head_dim}"),
        parts: vec![gradient, factors],
        notes: vec![format!(
            "With the β of the paper's proof, which leaves the softmax out, the sum is off the gradient by {:.2} of its \
             norm.",
            dropped.relative_error(&numeric)
        )],
        figure: partial_sums(&[("synthetic".to_owned(), layer.x, beta)]),
    }
}

/// Whether descent on the factors moves their product along `−G`.
fn factor_part(name: &str, w_q: &Matrix, w_k: &Matrix, g: &Matrix) -> Part {
    let gram = |w: &Matrix| w.times(&w.transposed());
    let (q, k) = (gram(w_q), gram(w_k));
    let update = q.times(g).plus(&g.times(&k), 1.0);
    Part::new(
        name,
        vec![Check::at_most(
            "distance of W_q W_qᵀ and W_k W_kᵀ from multiples of the identity, the larger",
            q.anisotropy().max(k.anisotropy()),
            0.05,
        )],
        vec![Check::at_least(
            "cosine of W_q W_qᵀ G + G W_k W_kᵀ with G",
            update.cosine(g),
            0.99,
        )],
    )
}

/// On the layers of trained models.
pub fn on_text(evidence: &TextEvidence) -> Outcome {
    let (mut parts, mut notes, mut curves) = (Vec::new(), Vec::new(), Vec::new());
    for model in &evidence.models {
        for layer in &model.layers {
            let (mut query, mut key) = (layer.grad_q.clone(), layer.grad_k.clone());
            let r = layer.head_dim();
            for head in 0..layer.heads.n_heads() {
                let group = layer.heads.group_of(head);
                for (s, x) in layer.x.iter().enumerate() {
                    let beta = &layer.beta[head][s];
                    let to_q = x.transposed().times(&beta.times(&layer.keys[group][s]));
                    let to_k = x
                        .transposed()
                        .times(&beta.transposed().times(&layer.queries[head][s]));
                    // What autodiff has and the identity lacks, and the other way round, is left over.
                    for i in 0..x.columns() {
                        for j in 0..r {
                            let (at_q, at_k) = (head * r + j, group * r + j);
                            query.set(i, at_q, query.at(i, at_q) - to_q.at(i, j));
                            key.set(i, at_k, key.at(i, at_k) - to_k.at(i, j));
                        }
                    }
                }
            }
            let left = query.norm() / layer.grad_q.norm();
            let left_k = key.norm() / layer.grad_k.norm();
            parts.push(Part::new(
                format!("{}: the gradient", layer.module),
                vec![Check::at_most(
                    "deviation of the raw scores from Q Kᵀ",
                    layer.deviation,
                    1e-3,
                )],
                vec![
                    Check::at_most("deviation of Xᵀ B K from autodiff's ∂L/∂W_q", left, 1e-3),
                    Check::at_most("deviation of Xᵀ Bᵀ Q from autodiff's ∂L/∂W_k", left_k, 1e-3),
                ],
            ));
            let (w_q, w_k) = layer.head_weights(0);
            let name = format!("{}: the update of head 0 through W_q and W_k", layer.module);
            parts.push(factor_part(&name, &w_q, &w_k, &layer.gradient(0)));
            curves.push((layer.module.clone(), layer.x[0].clone(), layer.beta[0][0].clone()));
        }
        for (layer, symmetry, cosine) in &model.updates {
            notes.push(format!(
                "{} layer {layer}: the cosine between AdamW's actual update and gradient descent to first order is \
                 {cosine:.3} (median over training), the symmetry of the update {symmetry:.3}.",
                model.name
            ));
        }
    }
    Outcome {
        statement: STATEMENT,
        data: evidence.source.clone(),
        parts,
        notes,
        figure: partial_sums(&curves),
    }
}

/// How much of `G` the largest terms of the sum already are.
fn partial_sums(cases: &[(String, Matrix, Matrix)]) -> Figure {
    let series = cases.iter().enumerate().map(|(index, (name, x, beta))| {
        let n = x.rows();
        let whole = x.transposed().times(&beta.times(x));
        let size = |i: usize, j: usize| {
            beta.at(i, j).abs() * dot(x.row(i), x.row(i)).sqrt() * dot(x.row(j), x.row(j)).sqrt()
        };
        let mut terms: Vec<(usize, usize)> = (0..n * n)
            .map(|at| (at / n, at % n))
            .filter(|&(i, j)| beta.at(i, j) != 0.0)
            .collect();
        terms.sort_by(|&(a, b), &(c, d)| size(c, d).total_cmp(&size(a, b)));
        let mut sum = Matrix::zeros(x.columns(), x.columns());
        let every = (terms.len() / 100).max(1);
        let (mut at, mut left) = (vec![0.0], vec![1.0]);
        for (count, &(i, j)) in terms.iter().enumerate() {
            sum.add_outer(x.row(i), x.row(j), beta.at(i, j));
            if (count + 1) % every == 0 || count + 1 == terms.len() {
                at.push((count + 1) as f64 / terms.len() as f64);
                left.push(sum.relative_error(&whole));
            }
        }
        Series::new(name, &at, &left, Colour::Category(index))
    });
    Curves::new(
        "What is left of G without its smaller terms",
        Axis::linear("share of the terms β_ij x_i x_jᵀ, largest first").with_range(0.0, 1.0),
        Axis::linear("‖partial sum − G‖ / ‖G‖"),
    )
    .with_all(series)
    .figure()
}
