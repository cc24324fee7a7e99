//! The properties of the symmetry score.

use super::matrix::{Matrix, mean_and_error, moments};
use super::{Check, Outcome, Part, Rule, TextEvidence, heads};
use crate::random;
use crate::report::plot::{Axis, Colour, Curves, Figure, Series};

/// What the claim says.
pub const STATEMENT: &str = "s = 2(‖M_s‖² − ‖M_n‖²)/‖M‖² lies in [−1, 1], is ±1 for symmetric and skew-symmetric matrices alone, and is 8/n \
     for random matrices of size n.";

/// Random matrices.
#[derive(Debug, Clone)]
pub struct Setting {
    /// Sizes.
    pub sizes: Vec<usize>,
    /// Matrices of each size.
    pub draws: usize,
    /// The mean of the entries, whose standard deviation is 1; the claim takes it to be 0.
    pub mean: f64,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            sizes: vec![8, 16, 32, 64],
            draws: 400,
            mean: 0.0,
        }
    }
}

/// The symmetric and the skew part.
fn split(m: &Matrix) -> (Matrix, Matrix) {
    let t = m.transposed();
    let half = |sign: f64| {
        let sum = m.plus(&t, sign);
        Matrix::zeros(m.rows(), m.columns()).plus(&sum, 0.5)
    };
    (half(1.0), half(-1.0))
}

/// Range and extremes with a factor in front, and the orthogonality of the parts.
fn properties(name: &str, matrices: &[Matrix]) -> Vec<Part> {
    let score = |m: &Matrix| {
        let (symmetric, skew) = split(m);
        (symmetric.inner(&symmetric) - skew.inner(&skew)) / m.inner(m)
    };
    let largest = |f: &dyn Fn(&Matrix) -> f64| matrices.iter().map(f).fold(0.0, f64::max);
    let parts = |m: &Matrix| split(m);
    // A score from the parts, not by the library's formula Tr(MM)/‖M‖².
    let disagreement = largest(&|m| (score(m) - m.symmetry()).abs());
    let extreme = |m: &Matrix, wanted: f64, of: fn((Matrix, Matrix)) -> Matrix| {
        let part = of(parts(m));
        if part.norm() == 0.0 {
            0.0
        } else {
            (score(&part) - wanted).abs()
        }
    };
    let smallest = matrices.iter().map(Matrix::norm).fold(f64::INFINITY, f64::min);
    let nonzero = || Check::at_least("smallest ‖M‖", smallest, 1e-300);
    let range = |factor: f64| {
        Check::at_most(
            "largest |s| over the matrices and their parts",
            factor
                * largest(&|m| {
                    let (symmetric, skew) = parts(m);
                    [m, &symmetric, &skew]
                        .into_iter()
                        .filter(|m| m.norm() > 0.0)
                        .map(|m| score(m).abs())
                        .fold(0.0, f64::max)
                }),
            1.0 + 1e-9,
        )
    };
    vec![
        Part::new(
            format!("{name}: range and extremes, without the factor 2"),
            vec![nonzero()],
            vec![
                range(1.0),
                Check::at_most(
                    "largest |s − 1| of a symmetric part",
                    largest(&|m| extreme(m, 1.0, |parts| parts.0)),
                    1e-9,
                ),
                Check::at_most(
                    "largest |s + 1| of a skew part",
                    largest(&|m| extreme(m, -1.0, |parts| parts.1)),
                    1e-9,
                ),
                Check::at_most("largest difference from Tr(MM)/‖M‖²", disagreement, 1e-9),
            ],
        ),
        Part::new(
            format!("{name}: range as printed, with the factor 2"),
            vec![nonzero()],
            vec![range(2.0)],
        ),
        Part::new(
            format!("{name}: the parts are orthogonal (lemma)"),
            vec![nonzero()],
            vec![
                Check::at_most(
                    "largest |⟨M_s, M_n⟩| / ‖M‖²",
                    largest(&|m| {
                        let (symmetric, skew) = parts(m);
                        symmetric.inner(&skew).abs() / m.inner(m)
                    }),
                    1e-9,
                ),
                Check::at_most(
                    "largest |‖M_s‖² + ‖M_n‖² − ‖M‖²| / ‖M‖²",
                    largest(&|m| {
                        let (symmetric, skew) = parts(m);
                        ((symmetric.inner(&symmetric) + skew.inner(&skew)) / m.inner(m) - 1.0).abs()
                    }),
                    1e-9,
                ),
            ],
        ),
    ]
}

/// The mean score of random matrices against a limit over n.
fn limit(name: String, mean: Check, scores: &[f64], n: usize, constant: f64) -> Part {
    let (average, error) = mean_and_error(scores);
    let n = n as f64;
    Part::new(
        name,
        vec![mean],
        vec![Check::new(
            format!("n · mean of s over {} matrices", scores.len()),
            n * average,
            Rule::Between(constant - 4.0 * n * error, constant + 4.0 * n * error),
        )],
    )
}

fn mean_check(values: &[f64]) -> Check {
    let (mean, error) = mean_and_error(values);
    Check::at_most(
        "mean of the entries, in standard errors",
        (mean / error).abs(),
        5.0,
    )
}

/// On random matrices.
pub fn synthetic(seed: u64) -> Outcome {
    with(&Setting::default(), seed)
}

/// On random matrices of any setting.
pub fn with(setting: &Setting, seed: u64) -> Outcome {
    let mut rng = random::stream(seed, ["theory", "symmetry score"]);
    let mut parts = Vec::new();
    let (mut means, mut spreads) = (Vec::new(), Vec::new());
    for &n in &setting.sizes {
        let matrices: Vec<Matrix> = (0..setting.draws)
            .map(|_| {
                let m = Matrix::normal(n, n, 1.0, &mut rng);
                Matrix::from_fn(n, n, |i, j| m.at(i, j) + setting.mean)
            })
            .collect();
        if parts.is_empty() {
            parts.extend(properties(&format!("random {n} × {n}"), &matrices));
        }
        let scores: Vec<f64> = matrices.iter().map(Matrix::symmetry).collect();
        let entries: Vec<f64> = matrices.iter().flat_map(|m| m.values().iter().copied()).collect();
        let (mean, variance) = moments(&scores);
        means.push(mean);
        spreads.push(variance.sqrt());
        if Some(&n) == setting.sizes.last() {
            let name = |which: &str| format!("random {n} × {n}: limit {which}");
            parts.push(limit(
                name("8/n, as printed"),
                mean_check(&entries),
                &scores,
                n,
                8.0,
            ));
            parts.push(limit(name("1/n"), mean_check(&entries), &scores, n, 1.0));
        }
    }
    let last = setting.sizes.last().copied().unwrap_or(1) as f64;
    Outcome {
        statement: STATEMENT,
        data: format!("{} random matrices of each of the sizes {:?}", setting.draws, setting.sizes),
        parts,
        notes: vec![
            "The factor 2 of the printed definition contradicts the proposition that follows it, and the published \
             tables, which are without it."
                .into(),
            format!(
                "The standard deviation of s at the largest size is {:.4}; √2/n is {:.4}.",
                spreads.last().copied().unwrap_or(f64::NAN),
                std::f64::consts::SQRT_2 / last
            ),
        ],
        figure: limit_figure(&setting.sizes, &means),
    }
}

fn limit_figure(sizes: &[usize], means: &[f64]) -> Figure {
    let at: Vec<f64> = sizes.iter().map(|&n| n as f64).collect();
    let line = |constant: f64| at.iter().map(|n| constant / n).collect::<Vec<_>>();
    Curves::new(
        "Symmetry of random matrices",
        Axis::log("size n"),
        Axis::log("mean of s"),
    )
    .with(Series::new("measured", &at, means, Colour::Category(0)))
    .with(Series::new("1/n", &at, &line(1.0), Colour::Category(1)).dashed())
    .with(Series::new("8/n, as printed", &at, &line(8.0), Colour::Category(2)).dashed())
    .figure()
}

/// On the forms of trained models, and on those that they started from.
pub fn on_text(evidence: &TextEvidence) -> Outcome {
    let (mut parts, mut started) = (Vec::new(), Vec::new());
    for model in &evidence.models {
        let layers: Vec<Matrix> = model.layers.iter().map(|layer| layer.form()).collect();
        parts.extend(properties(&format!("{} layers", model.name), &layers));
        started.extend(model.layers.iter().flat_map(|layer| layer.head_forms_at_start()));
    }
    // Both models start from the same weights where they have the same shape.
    let half = started.len() / 2;
    if started.len() > 1 && started[..half] == started[half..] {
        started.truncate(half);
    }
    let scores: Vec<f64> = started.iter().map(Matrix::symmetry).collect();
    let entries: Vec<f64> = started.iter().flat_map(|m| m.values().iter().copied()).collect();
    let n = started.first().map_or(0, Matrix::rows);
    // The limit is one of random matrices: trained ones do not tell.
    if !started.is_empty() {
        for (words, constant) in [("8/n, as printed", 8.0), ("1/n", 1.0)] {
            let name = format!("heads at the start: limit {words}");
            parts.push(limit(name, mean_check(&entries), &scores, n, constant));
        }
    }
    Outcome {
        statement: STATEMENT,
        data: evidence.source.clone(),
        parts,
        notes: Vec::new(),
        figure: heads::figure(evidence, "Symmetry of each head", "s", Matrix::symmetry),
    }
}
