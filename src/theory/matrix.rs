//! Small dense matrices in f64, on the host: what the experiments compute with.

use rand_distr::{Distribution, StandardNormal};

use crate::bilinear::{BilinearError, Directionality};
use crate::random::Rng;

/// A matrix, row by row.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    rows: usize,
    columns: usize,
    values: Vec<f64>,
}

impl Matrix {
    /// All entries 0.
    pub fn zeros(rows: usize, columns: usize) -> Self {
        Self {
            rows,
            columns,
            values: vec![0.0; rows * columns],
        }
    }

    /// Entry by entry.
    pub fn from_fn(rows: usize, columns: usize, mut f: impl FnMut(usize, usize) -> f64) -> Self {
        let values = (0..rows * columns)
            .map(|at| f(at / columns, at % columns))
            .collect();
        Self {
            rows,
            columns,
            values,
        }
    }

    /// From values row by row, as many as the shape holds; missing ones are 0.
    pub fn from_values(rows: usize, columns: usize, values: &[f64]) -> Self {
        let mut values = values.to_vec();
        values.resize(rows * columns, 0.0);
        Self {
            rows,
            columns,
            values,
        }
    }

    /// 1 on the diagonal.
    pub fn identity(n: usize) -> Self {
        Self::from_fn(n, n, |i, j| f64::from(u8::from(i == j)))
    }

    /// Independent entries of the normal law with mean 0.
    pub fn normal(rows: usize, columns: usize, std: f64, rng: &mut Rng) -> Self {
        Self::from_fn(rows, columns, |_, _| {
            let z: f64 = StandardNormal.sample(rng);
            std * z
        })
    }

    /// A random orthogonal matrix: Gram-Schmidt, twice, on normal rows.
    pub fn orthogonal(n: usize, rng: &mut Rng) -> Self {
        let mut rows: Vec<Vec<f64>> = Vec::with_capacity(n);
        while rows.len() < n {
            let mut row = Self::normal(1, n, 1.0, rng).values;
            for _ in 0..2 {
                for other in &rows {
                    let along = dot(&row, other);
                    row.iter_mut().zip(other).for_each(|(x, o)| *x -= along * o);
                }
            }
            let norm = dot(&row, &row).sqrt();
            if norm > 1e-6 {
                rows.push(row.iter().map(|x| x / norm).collect());
            }
        }
        Self::from_fn(n, n, |i, j| rows[i][j])
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// All entries, row by row.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// One entry.
    pub fn at(&self, i: usize, j: usize) -> f64 {
        self.values[i * self.columns + j]
    }

    /// Sets one entry.
    pub fn set(&mut self, i: usize, j: usize, value: f64) {
        self.values[i * self.columns + j] = value;
    }

    /// One row.
    pub fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.columns..(i + 1) * self.columns]
    }

    /// Some neighbouring columns.
    pub fn block(&self, from: usize, width: usize) -> Self {
        Self::from_fn(self.rows, width, |i, j| self.at(i, from + j))
    }

    /// The transpose.
    pub fn transposed(&self) -> Self {
        Self::from_fn(self.columns, self.rows, |i, j| self.at(j, i))
    }

    /// The product with another.
    pub fn times(&self, other: &Self) -> Self {
        let mut product = Self::zeros(self.rows, other.columns);
        for i in 0..self.rows {
            let row = &mut product.values[i * other.columns..(i + 1) * other.columns];
            for (k, &x) in self.row(i).iter().enumerate().filter(|(_, x)| **x != 0.0) {
                row.iter_mut().zip(other.row(k)).for_each(|(p, o)| *p += x * o);
            }
        }
        product
    }

    /// Adds `factor · other`.
    pub fn add(&mut self, other: &Self, factor: f64) {
        self.values
            .iter_mut()
            .zip(&other.values)
            .for_each(|(x, o)| *x += factor * o);
    }

    /// `self + factor · other`.
    pub fn plus(&self, other: &Self, factor: f64) -> Self {
        let mut sum = self.clone();
        sum.add(other, factor);
        sum
    }

    /// Adds `factor · u vᵀ`.
    pub fn add_outer(&mut self, u: &[f64], v: &[f64], factor: f64) {
        for (i, x) in u.iter().enumerate() {
            let row = &mut self.values[i * self.columns..(i + 1) * self.columns];
            row.iter_mut().zip(v).for_each(|(m, y)| *m += factor * x * y);
        }
    }

    /// The sum of products of entries.
    pub fn inner(&self, other: &Self) -> f64 {
        dot(&self.values, &other.values)
    }

    /// The Frobenius norm.
    pub fn norm(&self) -> f64 {
        self.inner(self).sqrt()
    }

    /// The cosine with another; NaN where either is 0.
    pub fn cosine(&self, other: &Self) -> f64 {
        self.inner(other) / (self.norm() * other.norm())
    }

    /// `‖self − other‖ / ‖other‖`; 0 where both are equal.
    pub fn relative_error(&self, other: &Self) -> f64 {
        let difference = self.plus(other, -1.0).norm();
        if difference == 0.0 {
            0.0
        } else {
            difference / other.norm()
        }
    }

    /// The norm of each row.
    pub fn row_norms(&self) -> Vec<f64> {
        (0..self.rows)
            .map(|i| dot(self.row(i), self.row(i)).sqrt())
            .collect()
    }

    /// The norm of each column.
    pub fn column_norms(&self) -> Vec<f64> {
        self.transposed().row_norms()
    }

    /// The symmetry score `Tr(MM)/‖M‖²`; NaN for the zero matrix.
    pub fn symmetry(&self) -> f64 {
        self.inner(&self.transposed()) / self.inner(self)
    }

    /// The directionality score.
    ///
    /// # Errors
    /// Where γ is not finite.
    pub fn directionality(&self, directionality: Directionality) -> Result<f64, BilinearError> {
        directionality.of_norms(&self.row_norms(), &self.column_norms())
    }

    /// Variant `Excess` with γ = 2.
    pub(super) fn excess(&self) -> f64 {
        self.directionality(Directionality::excess()).unwrap_or(f64::NAN)
    }

    /// How far it is from a multiple of the identity: `‖M − (Tr M/n) I‖ / ‖M‖`.
    pub(super) fn anisotropy(&self) -> f64 {
        let n = self.rows;
        let mean = (0..n).map(|i| self.at(i, i)).sum::<f64>() / n as f64;
        self.plus(&Self::identity(n), -mean).norm() / self.norm()
    }

    /// The share of `‖M‖²` in its best approximation of rank one, by power iteration.
    pub(super) fn rank_one_share(&self) -> f64 {
        let mut v = vec![1.0; self.columns];
        let mut square = 0.0;
        for _ in 0..200 {
            let u: Vec<f64> = (0..self.rows).map(|i| dot(self.row(i), &v)).collect();
            let mut next = vec![0.0; self.columns];
            for (i, x) in u.iter().enumerate() {
                next.iter_mut().zip(self.row(i)).for_each(|(n, m)| *n += x * m);
            }
            let (size, length) = (dot(&next, &next).sqrt(), dot(&v, &v).sqrt());
            if size == 0.0 {
                break;
            }
            square = size / length;
            v = next.iter().map(|x| x / size).collect();
        }
        square / self.inner(self)
    }
}

pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// Mean and variance (of the population).
pub(super) fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n)
}

/// The mean and its standard error.
pub(super) fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let (mean, variance) = moments(values);
    (mean, (variance / (values.len() as f64 - 1.0).max(1.0)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random;

    #[test]
    fn by_hand() {
        let m = Matrix::from_values(2, 2, &[1.0, 2.0, 3.0, 4.0]);
        assert_eq!(m.times(&m.transposed()).values(), [5.0, 11.0, 11.0, 25.0]);
        // Tr(MM) = 1 + 2·6 + 16 = 29 of 30.
        assert!((m.symmetry() - 29.0 / 30.0).abs() < 1e-15);
        let mut outer = Matrix::zeros(2, 2);
        outer.add_outer(&[1.0, 2.0], &[3.0, 4.0], 0.5);
        assert_eq!(outer.values(), [1.5, 2.0, 3.0, 4.0]);
        assert!((outer.rank_one_share() - 1.0).abs() < 1e-12);
        // Singular values 2 and 1: 4 of 5.
        let diagonal = Matrix::from_values(2, 2, &[2.0, 0.0, 0.0, 1.0]);
        assert!((diagonal.rank_one_share() - 0.8).abs() < 1e-12);
        // Distance to 1.5 I is √(2/4), norm √5.
        assert!((diagonal.anisotropy() - (0.5f64 / 5.0).sqrt()).abs() < 1e-15);
    }

    #[test]
    fn orthogonal_is() {
        let q = Matrix::orthogonal(20, &mut random::stream(1, ["orthogonal"]));
        assert!(q.times(&q.transposed()).relative_error(&Matrix::identity(20)) < 1e-13);
    }
}
