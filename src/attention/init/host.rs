//! Dense linear algebra on the host, in f64.

use faer::Mat;

use super::Matrix;
use crate::random::{self, Rng};

/// A matrix of independent normal entries.
pub(super) fn gaussian(rng: &mut Rng, rows: usize, columns: usize, std: f64) -> Mat<f64> {
    let values = random::normal(rng, rows * columns, std);
    Mat::from_fn(rows, columns, |i, j| f64::from(values[i * columns + j]))
}

/// A random orthogonal matrix, uniform (Haar).
///
/// The orthogonal factor of a Gaussian matrix is uniform where the triangular factor's diagonal is positive.
/// Source: F. Mezzadri, Notices of the AMS 54 (2007).
pub(super) fn haar(rng: &mut Rng, n: usize) -> Mat<f64> {
    let qr = gaussian(rng, n, n, 1.0).qr();
    let mut q = qr.compute_thin_Q();
    let r = qr.thin_R();
    for j in 0..n {
        if r[(j, j)] < 0.0 {
            for i in 0..n {
                q[(i, j)] = -q[(i, j)];
            }
        }
    }
    q
}

pub(super) fn to_mat(matrix: &Matrix) -> Mat<f64> {
    let [rows, columns] = matrix.shape;
    Mat::from_fn(rows, columns, |i, j| f64::from(matrix.values[i * columns + j]))
}

pub(super) fn from_mat(mat: &Mat<f64>) -> Matrix {
    let shape = [mat.nrows(), mat.ncols()];
    let values = (0..shape[0] * shape[1])
        .map(|i| mat[(i / shape[1], i % shape[1])] as f32)
        .collect();
    Matrix { values, shape }
}
