//! How far scores lie from those of random matrices.
//!
//! The symmetry of a random form has a law in closed form, [`SymmetryNull`]. Its directionality has not, and is
//! far from 0 at random, so it is compared with draws that keep what a head is made of, its singular values,
//! and turn the directions at random.

use std::collections::BTreeMap;

use faer::Mat;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::{BilinearError, Directionality, DirectionalityScores, SymmetryNull};
use crate::random;

/// A symmetry score beside the law of random forms.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SymmetryTest {
    /// How much it exceeds the mean at random, `1/d_model`.
    pub effect: f64,
    /// The same in standard deviations, `√2/d_model`.
    pub z: f64,
}

impl SymmetryTest {
    /// Compares a score of a form of this width.
    pub fn new(d_model: usize, symmetry: f64) -> Self {
        let null = SymmetryNull::new(d_model);
        Self {
            effect: symmetry - null.mean,
            z: null.z(symmetry),
        }
    }
}

/// A directionality score beside those of random forms with the same singular values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DirectionalityTest {
    /// The root mean square of the score at random; its mean there is 0.
    pub spread: f64,
    /// The share of draws that lie as far from 0 or farther, the score itself counted as one of them: never
    /// below `1 / (draws + 1)`.
    pub p: f64,
    /// `p` corrected by [`holm`] over the heads of the layer.
    pub p_corrected: f64,
}

/// The tests of both variants of the directionality.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DirectionalityTests {
    /// Of [`Variant::Definition`](super::Variant::Definition).
    pub definition: DirectionalityTest,
    /// Of [`Variant::Excess`](super::Variant::Excess).
    pub excess: DirectionalityTest,
}

/// A head as the simulation needs it.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// The width of the model.
    pub d_model: usize,
    /// The singular values of the head's form, without the zeros beyond its rank.
    pub singular_values: Vec<f64>,
    /// Its directionality.
    pub directionality: DirectionalityScores,
}

/// The simulation: how many draws, from which seed, at which threshold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Simulation {
    /// The number of draws.
    pub draws: usize,
    /// The seed of the draws.
    pub seed: u64,
    /// The γ of the directionality's threshold.
    pub gamma: f64,
}

/// What the draws came to for one head, per variant.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    as_far: [usize; 2],
    squares: [f64; 2],
}

impl Simulation {
    /// The smallest p that the simulation can give, `1 / (draws + 1)`.
    pub fn floor(&self) -> f64 {
        1.0 / (self.draws as f64 + 1.0)
    }

    /// Tests each head against forms `U diag(σ) Vᵀ` with its singular values σ and Haar-random orthonormal
    /// columns in U and V. `p_corrected` is left equal to `p`.
    ///
    /// Only `U` and σ make the row norms, `‖row i‖² = Σ_k σ_k² U_ik²`, and only `V` the column norms, so nothing
    /// of size `d_model²` is made. Heads of one shape share the draws of U and V, which leaves each p-value
    /// as it is.
    ///
    /// Cost: per draw and shape two QR decompositions of `[d_model, r]`, and `4 d_model r` operations a head;
    /// the draws go to all threads.
    ///
    /// # Errors
    /// [`BilinearError::Gamma`] where γ is not finite.
    pub fn run(&self, heads: &[Observed]) -> Result<Vec<DirectionalityTests>, BilinearError> {
        if !self.gamma.is_finite() {
            return Err(BilinearError::Gamma(self.gamma));
        }
        let mut shapes: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
        for (i, head) in heads.iter().enumerate() {
            shapes
                .entry((head.d_model, head.singular_values.len().min(head.d_model)))
                .or_default()
                .push(i);
        }
        let mut tallies = vec![Tally::default(); heads.len()];
        for ((d_model, rank), members) in shapes {
            let of_shape: Vec<&Observed> = members.iter().map(|&i| &heads[i]).collect();
            for (i, tally) in members.into_iter().zip(self.tally(d_model, rank, &of_shape)?) {
                tallies[i] = tally;
            }
        }
        let test = |tally: &Tally, variant: usize| {
            let p = (tally.as_far[variant] as f64 + 1.0) * self.floor();
            let spread = (tally.squares[variant] / self.draws.max(1) as f64).sqrt();
            DirectionalityTest {
                spread,
                p,
                p_corrected: p,
            }
        };
        Ok(tallies
            .iter()
            .map(|tally| DirectionalityTests {
                definition: test(tally, 0),
                excess: test(tally, 1),
            })
            .collect())
    }

    /// Draws for the heads of one shape.
    fn tally(&self, d_model: usize, rank: usize, heads: &[&Observed]) -> Result<Vec<Tally>, BilinearError> {
        let squares = Mat::<f32>::from_fn(rank, heads.len(), |k, h| {
            (heads[h].singular_values[k].powi(2)) as f32
        });
        let variants =
            [Directionality::definition(), Directionality::excess()].map(|d| d.with_gamma(self.gamma));
        let none = || vec![Tally::default(); heads.len()];
        (0..self.draws)
            .into_par_iter()
            .map(|draw| {
                let place = [d_model, rank, draw].map(|n| n.to_string());
                let mut rng = random::stream(self.seed, ["significance".to_owned()].into_iter().chain(place));
                let rows = norms(&mut rng, d_model, rank, &squares);
                let columns = norms(&mut rng, d_model, rank, &squares);
                let mut tallies = none();
                for (h, tally) in tallies.iter_mut().enumerate() {
                    let observed = [heads[h].directionality.definition, heads[h].directionality.excess];
                    for (v, variant) in variants.iter().enumerate() {
                        let d = variant.of_norms(&rows[h], &columns[h])?;
                        // Equal up to rounding is as far: a spectrum without spread gives 0 at every draw.
                        tally.as_far[v] += usize::from(d.abs() >= observed[v].abs() - 1e-9);
                        tally.squares[v] += d * d;
                    }
                }
                Ok(tallies)
            })
            .try_reduce(none, |mut sum, tallies| {
                for (sum, tally) in sum.iter_mut().zip(tallies) {
                    for v in 0..2 {
                        sum.as_far[v] += tally.as_far[v];
                        sum.squares[v] += tally.squares[v];
                    }
                }
                Ok(sum)
            })
    }
}

/// For each column `σ²` of `squares [r, heads]`: the norms `√(Σ_k σ_k² U_ik²)` of one Haar-random `U [d_model, r]`.
fn norms(rng: &mut random::Rng, d_model: usize, rank: usize, squares: &Mat<f32>) -> Vec<Vec<f64>> {
    let gaussian = random::normal(rng, d_model * rank, 1.0);
    let gaussian = Mat::<f32>::from_fn(d_model, rank, |i, k| gaussian[i * rank + k]);
    // The signs of Q depend on the algorithm, its squares do not: they are those of a Haar-random U.
    let q = gaussian.qr().compute_thin_Q();
    let weights = Mat::<f32>::from_fn(d_model, rank, |i, k| q[(i, k)] * q[(i, k)]);
    let sums = &weights * squares;
    (0..squares.ncols())
        .map(|h| {
            (0..d_model)
                .map(|i| f64::from(sums[(i, h)].max(0.0)).sqrt())
                .collect()
        })
        .collect()
}

/// Holm's step-down correction of p-values for the number of them: `p_(i)` in rising order becomes the largest of
/// `min(1, (m − j) p_(j))` for `j ≤ i` from 0. It holds whatever the dependence between the tests.
///
/// # Source
/// S. Holm, A simple sequentially rejective multiple test procedure, Scand. J. Statist. 6 (1979), 65–70.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    let mut corrected = vec![0.0; p.len()];
    let mut largest: f64 = 0.0;
    for (rank, i) in order.into_iter().enumerate() {
        largest = largest.max(((p.len() - rank) as f64 * p[i]).min(1.0));
        corrected[i] = largest;
    }
    corrected
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(d_model: usize, singular_values: Vec<f64>, d: f64) -> Observed {
        Observed {
            d_model,
            singular_values,
            directionality: DirectionalityScores {
                definition: d,
                excess: d,
            },
        }
    }

    #[test]
    fn holm_by_hand() {
        // R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")
        let corrected = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (value, expected) in corrected.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((value - expected).abs() < 1e-15, "{corrected:?}");
        }
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }

    #[test]
    fn symmetry_in_standard_deviations() {
        // Mean 1/100, standard deviation √2/100.
        let test = SymmetryTest::new(100, 0.01 + 3.0 * 2f64.sqrt() / 100.0);
        assert!((test.z - 3.0).abs() < 1e-12);
        assert!((test.effect - 3.0 * 2f64.sqrt() / 100.0).abs() < 1e-15);
    }

    #[test]
    fn p_is_never_zero_and_never_above_one() {
        let simulation = Simulation {
            draws: 99,
            seed: 1,
            gamma: 2.0,
        };
        let values = vec![3.0, 2.0, 1.0];
        let tests = simulation
            .run(&[head(24, values.clone(), 1.5), head(24, values, 0.0)])
            .unwrap();
        assert_eq!(tests[0].excess.p, 0.01);
        assert_eq!(tests[1].excess.p, 1.0);
        assert!(
            tests[0].excess.spread > 0.1 && tests[0].excess.spread < 1.0,
            "{tests:?}"
        );
    }

    #[test]
    fn p_values_of_random_heads_are_uniform() {
        // Heads drawn from the null itself: the mean of 60 uniform p-values is 1/2 ± 1/√(12 · 60), four of which
        // are allowed; two draws of one simulation are such heads.
        let values: Vec<f64> = (1..=6).map(f64::from).collect();
        let squares = Mat::<f32>::from_fn(6, 1, |k, _| (values[k] * values[k]) as f32);
        let observed: Vec<Observed> = (0..60)
            .map(|i| {
                let mut rng = random::stream(7, ["test".to_owned(), i.to_string()]);
                let (rows, columns) = (norms(&mut rng, 32, 6, &squares), norms(&mut rng, 32, 6, &squares));
                head(
                    32,
                    values.clone(),
                    Directionality::excess().of_norms(&rows[0], &columns[0]).unwrap(),
                )
            })
            .collect();
        let tests = Simulation {
            draws: 400,
            seed: 3,
            gamma: 2.0,
        }
        .run(&observed)
        .unwrap();
        let mean = tests.iter().map(|test| test.excess.p).sum::<f64>() / 60.0;
        assert!((mean - 0.5).abs() < 4.0 / (12.0f64 * 60.0).sqrt(), "{mean}");
    }

    #[test]
    fn the_norms_are_those_of_a_form_with_these_singular_values() {
        // ‖M‖_F² = Σ σ², whatever U is.
        let squares = Mat::<f32>::from_fn(2, 1, |k, _| [9.0, 16.0][k]);
        let rows = norms(&mut random::stream(1, ["norms"]), 10, 2, &squares);
        let total: f64 = rows[0].iter().map(|norm| norm * norm).sum();
        assert!((total - 25.0).abs() < 1e-4, "{total}");
    }
}
