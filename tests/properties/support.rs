//! Shapes, cases, and plain f64 matrices to check against.

use burn::tensor::backend::Backend;
use burn::tensor::{Tensor, TensorData};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use wqk::bilinear::{BilinearForm, Directionality, Heads, Moments};
use wqk::random;

/// How much a backend is tested.
pub struct Profile {
    pub cases: u32,
    pub shapes: &'static [Shape],
    /// Draws for the properties that are statistical.
    pub draws: usize,
}

/// The shape of a layer.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub d_model: usize,
    pub heads: Heads,
    pub head_dim: usize,
}

const fn shape(d_model: usize, n_heads: usize, n_kv_heads: usize, head_dim: usize) -> Shape {
    Shape {
        d_model,
        heads: Heads::grouped(n_heads, n_kv_heads),
        head_dim,
    }
}

/// Multi-head, grouped and multi-query; heads narrower and wider than `d_model / n_heads`, odd sizes; one shape
/// whose layer takes the factored path, one with more columns than a panel of the dense path.
pub const CPU: Profile = Profile {
    cases: 16,
    shapes: &[
        shape(16, 4, 4, 4),
        shape(24, 6, 2, 4),
        shape(20, 4, 1, 3),
        shape(13, 2, 2, 17),
        shape(40, 2, 2, 3),
        shape(300, 2, 1, 8),
    ],
    draws: 400,
};

#[cfg(feature = "wgpu")]
pub const GPU: Profile = Profile {
    cases: 2,
    shapes: &[shape(16, 4, 2, 4), shape(16, 2, 2, 2)],
    draws: 40,
};

/// Runs a property over shapes and seeds.
pub fn check(profile: &Profile, property: impl Fn(Shape, u64) -> Result<(), TestCaseError>) {
    let config = Config {
        cases: profile.cases,
        failure_persistence: None,
        ..Config::default()
    };
    let strategy = (proptest::sample::select(profile.shapes), any::<u64>());
    TestRunner::new(config)
        .run(&strategy, |(shape, seed)| property(shape, seed))
        .unwrap_or_else(|error| panic!("{error}"));
}

/// A matrix in f64, row-major.
#[derive(Debug, Clone)]
pub struct Dense {
    pub rows: usize,
    pub columns: usize,
    pub values: Vec<f64>,
}

impl Dense {
    pub fn from_fn(rows: usize, columns: usize, f: impl Fn(usize, usize) -> f64) -> Self {
        let values = (0..rows * columns).map(|i| f(i / columns, i % columns)).collect();
        Self {
            rows,
            columns,
            values,
        }
    }

    /// Entries of the standard normal law, rounded to f32.
    pub fn random(seed: u64, place: &str, rows: usize, columns: usize) -> Self {
        let values = random::normal(&mut random::stream(seed, [place]), rows * columns, 1.0);
        Self::from_fn(rows, columns, |i, j| f64::from(values[i * columns + j]))
    }

    /// A uniform orthogonal matrix.
    pub fn orthogonal(seed: u64, n: usize) -> Self {
        let g = Self::random(seed, "orthogonal", n, n);
        let q = faer::Mat::from_fn(n, n, |i, j| g.at(i, j)).qr().compute_thin_Q();
        Self::from_fn(n, n, |i, j| q[(i, j)])
    }

    pub fn of<B: Backend>(tensor: Tensor<B, 2>) -> Self {
        let [rows, columns] = tensor.dims();
        Self {
            rows,
            columns,
            values: host(tensor),
        }
    }

    pub fn at(&self, i: usize, j: usize) -> f64 {
        self.values[i * self.columns + j]
    }

    pub fn transposed(&self) -> Self {
        Self::from_fn(self.columns, self.rows, |i, j| self.at(j, i))
    }

    pub fn times(&self, other: &Self) -> Self {
        Self::from_fn(self.rows, other.columns, |i, j| {
            (0..self.columns).map(|k| self.at(i, k) * other.at(k, j)).sum()
        })
    }

    /// Some neighbouring columns.
    pub fn block(&self, from: usize, width: usize) -> Self {
        Self::from_fn(self.rows, width, |i, j| self.at(i, from + j))
    }

    pub fn norm(&self) -> f64 {
        self.values.iter().map(|x| x * x).sum::<f64>().sqrt()
    }

    pub fn tensor<B: Backend>(&self) -> Tensor<B, 2> {
        let values: Vec<f32> = self.values.iter().map(|&x| x as f32).collect();
        Tensor::from_data(
            TensorData::new(values, [self.rows, self.columns]),
            &Default::default(),
        )
    }
}

/// `W_q` and `W_k` of a shape.
pub fn factors(shape: Shape, seed: u64) -> (Dense, Dense) {
    let width = |heads: usize| heads * shape.head_dim;
    (
        Dense::random(seed, "w_q", shape.d_model, width(shape.heads.n_heads())),
        Dense::random(seed, "w_k", shape.d_model, width(shape.heads.n_kv_heads())),
    )
}

pub fn form<B: Backend>(w_q: &Dense, w_k: &Dense, heads: Heads) -> BilinearForm<B> {
    BilinearForm::new(w_q.tensor(), w_k.tensor(), heads).expect("finite weights of matching shapes")
}

/// The form of a matrix itself: `M Iᵀ`, one head.
pub fn form_of<B: Backend>(matrix: &Dense) -> BilinearForm<B> {
    let identity = Dense::from_fn(matrix.rows, matrix.rows, |i, j| f64::from(i == j));
    form(matrix, &identity, Heads::multi(1))
}

/// `W_q,h W_k,g(h)ᵀ`.
pub fn head_matrix(w_q: &Dense, w_k: &Dense, shape: Shape, head: usize) -> Dense {
    let r = shape.head_dim;
    let key = w_k.block(shape.heads.group_of(head) * r, r);
    w_q.block(head * r, r).times(&key.transposed())
}

/// `Σ_h W_q,h W_k,g(h)ᵀ`.
pub fn layer_matrix(w_q: &Dense, w_k: &Dense, shape: Shape) -> Dense {
    let heads: Vec<_> = (0..shape.heads.n_heads())
        .map(|head| head_matrix(w_q, w_k, shape, head))
        .collect();
    Dense::from_fn(shape.d_model, shape.d_model, |i, j| {
        heads.iter().map(|m| m.at(i, j)).sum()
    })
}

pub fn host<B: Backend, const D: usize>(tensor: Tensor<B, D>) -> Vec<f64> {
    tensor.into_data().iter::<f64>().collect()
}

/// Whether two vectors agree within `tolerance` of the largest entry of the second.
pub fn close(a: &[f64], b: &[f64], tolerance: f64) -> Result<(), TestCaseError> {
    prop_assert_eq!(a.len(), b.len());
    let scale = b.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    for (i, (x, y)) in a.iter().zip(b).enumerate() {
        prop_assert!(
            (x - y).abs() <= tolerance * scale,
            "entry {}: {} against {}, of {}",
            i,
            x,
            y,
            scale
        );
    }
    Ok(())
}

/// Both variants of d.
pub fn directions(moments: &Moments) -> [f64; 2] {
    [Directionality::definition(), Directionality::excess()]
        .map(|d| moments.directionality(d).expect("gamma is finite"))
}

/// Whether rounding could move a row or a column across the threshold of either variant, so that d is not
/// determined within the precision of f32.
pub fn near_threshold(moments: &Moments) -> bool {
    [moments.row_norms(), moments.column_norms()].iter().any(|norms| {
        let n = norms.len() as f64;
        let mean = norms.iter().sum::<f64>() / n;
        let squares: f64 = norms.iter().map(|x| (x - mean).powi(2)).sum();
        [n, n - 1.0].iter().any(|n| {
            let threshold = mean + Directionality::GAMMA * (squares / n).sqrt();
            norms.iter().any(|x| (x / threshold - 1.0).abs() < 1e-5)
        })
    })
}
