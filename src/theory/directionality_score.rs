//! The properties of the directionality score.

use super::matrix::{Matrix, mean_and_error, moments};
use super::{Check, Outcome, Part, TextEvidence, heads};
use crate::bilinear::Directionality;
use crate::random;
use crate::report::plot::{Axis, Curves};

/// What the claim says.
pub const STATEMENT: &str = "d lies in [−1, 1], is ±1 exactly where rows alone, or columns alone, have outliers, and tends to 0 for random \
     matrices as they grow.";

/// Random matrices, and such with outliers.
#[derive(Debug, Clone)]
pub struct Setting {
    /// Sizes.
    pub sizes: Vec<usize>,
    /// Matrices of each size.
    pub draws: usize,
    /// Multiplies one row in sixteen, so that rows and columns are not distributed alike; the claim takes 1.
    pub row_factor: f64,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            sizes: vec![32, 64, 128, 192],
            draws: 60,
            row_factor: 1.0,
        }
    }
}

const VARIANTS: [(&str, Directionality); 2] = [
    ("definition", Directionality::definition()),
    ("excess", Directionality::excess()),
];

fn score(m: &Matrix, variant: Directionality) -> f64 {
    m.directionality(variant).unwrap_or(f64::NAN)
}

/// How many norms lie above mean + 2 standard deviations.
fn outliers(norms: &[f64]) -> usize {
    let (mean, variance) = moments(norms);
    norms
        .iter()
        .filter(|&&n| n > mean + 2.0 * variance.sqrt())
        .count()
}

/// Range, extremes and transposition over some matrices.
fn properties(name: &str, matrices: &[Matrix]) -> Part {
    let scores = |m: &Matrix| VARIANTS.map(|(_, variant)| score(m, variant));
    let all = || matrices.iter().flat_map(scores);
    let definition = Directionality::definition();
    let wrong_extremes = matrices
        .iter()
        .filter(|m| {
            let (rows, columns) = (outliers(&m.row_norms()) > 0, outliers(&m.column_norms()) > 0);
            let d = score(m, definition);
            let expected = match (rows, columns) {
                (true, false) => d == 1.0,
                (false, true) => d == -1.0,
                (true, true) => d.abs() < 1.0,
                (false, false) => d == 0.0,
            };
            !expected
        })
        .count();
    let transposed = matrices
        .iter()
        .flat_map(|m| VARIANTS.map(|(_, v)| (score(m, v) + score(&m.transposed(), v)).abs()))
        .fold(0.0, f64::max);
    Part::new(
        name,
        Vec::new(),
        vec![
            Check::at_most(
                "largest |d|, both variants",
                all().map(f64::abs).fold(0.0, f64::max),
                1.0,
            ),
            Check::at_most(
                "matrices where d is ±1 without outliers on one side only, or the reverse",
                wrong_extremes as f64,
                0.0,
            ),
            Check::at_most("largest |d(M) + d(Mᵀ)|", transposed, 1e-9),
        ],
    )
}

/// On random matrices.
pub fn synthetic(seed: u64) -> Outcome {
    with(&Setting::default(), seed)
}

/// On random matrices of any setting.
pub fn with(setting: &Setting, seed: u64) -> Outcome {
    let mut rng = random::stream(seed, ["theory", "directionality score"]);
    // Rows scaled, columns scaled, both, none: every way of having outliers.
    let scaled: Vec<Matrix> = (0..64)
        .map(|i| {
            let m = Matrix::normal(32, 32, 1.0, &mut rng);
            Matrix::from_fn(32, 32, |r, c| {
                let row = if i % 2 == 1 && r < 2 { 5.0 } else { 1.0 };
                let column = if i % 4 >= 2 && c < 2 { 5.0 } else { 1.0 };
                m.at(r, c) * row * column
            })
        })
        .collect();
    let mut parts = vec![properties("matrices with and without outliers", &scaled)];
    let mut spreads: Vec<(String, Vec<f64>)> = Vec::new();
    for (kind, factored) in [("independent entries", false), ("products of two factors", true)] {
        let mut lines = Vec::new();
        for (index, &n) in setting.sizes.iter().enumerate() {
            let matrices: Vec<Matrix> = (0..setting.draws)
                .map(|_| {
                    let m = Matrix::normal(n, n, (n as f64).powf(-0.5), &mut rng);
                    let m = if factored {
                        m.times(&Matrix::normal(n, n, (n as f64).powf(-0.5), &mut rng).transposed())
                    } else {
                        m
                    };
                    Matrix::from_fn(n, n, |i, j| {
                        m.at(i, j) * if i % 16 == 0 { setting.row_factor } else { 1.0 }
                    })
                })
                .collect();
            let scores: Vec<f64> = matrices
                .iter()
                .map(|m| score(m, Directionality::excess()))
                .collect();
            let (mean, error) = mean_and_error(&scores);
            let spread = moments(&scores).1.sqrt();
            lines.push(spread);
            if index + 1 == setting.sizes.len() {
                // Alike in law: the mean squared row norms of one row and of the others.
                let row = |keep: bool| {
                    let norms: Vec<f64> = matrices
                        .iter()
                        .flat_map(|m| m.row_norms().into_iter().enumerate())
                        .filter(|(i, _)| (i % 16 == 0) == keep)
                        .map(|(_, norm)| norm)
                        .collect();
                    moments(&norms).0
                };
                parts.push(Part::new(
                    format!("{kind}, {n} × {n}"),
                    vec![Check::at_most(
                        "difference of the norms of one row in sixteen from the others, relative",
                        (row(true) / row(false) - 1.0).abs(),
                        0.05,
                    )],
                    vec![
                        Check::at_most(
                            "mean of d (excess), in standard errors",
                            (mean / error).abs(),
                            4.0,
                        ),
                        Check::at_most(
                            "standard deviation of d, of the largest at smaller sizes",
                            spread / lines.iter().rev().skip(1).fold(0.0, |most: f64, s| most.max(*s)),
                            0.8,
                        ),
                    ],
                ));
            }
        }
        spreads.push((kind.to_owned(), lines));
    }
    let at: Vec<f64> = setting.sizes.iter().map(|&n| n as f64).collect();
    let notes = spreads
        .iter()
        .map(|(kind, lines)| {
            let values: Vec<String> = setting
                .sizes
                .iter()
                .zip(lines)
                .map(|(n, s)| format!("{s:.2} at {n}"))
                .collect();
            format!(
                "{kind}: the standard deviation of d is {}: it tends to 0, but slowly, and at the sizes of real models \
                 an initialisation is far from 0.",
                values.join(", ")
            )
        })
        .collect();
    Outcome {
        statement: STATEMENT,
        data: format!(
            "{} random matrices of each of the sizes {:?}",
            setting.draws, setting.sizes
        ),
        parts,
        notes,
        figure: Curves::new(
            "Directionality of random matrices",
            Axis::log("size n"),
            Axis::log("standard deviation of d (excess)"),
        )
        .with_lines(&at, spreads)
        .figure(),
    }
}

/// On the forms of trained models and their heads.
pub fn on_text(evidence: &TextEvidence) -> Outcome {
    let parts = evidence.models.iter().map(|model| {
        let heads = model.layers.iter().flat_map(|layer| layer.head_forms());
        let all: Vec<Matrix> = model
            .layers
            .iter()
            .map(|layer| layer.form())
            .chain(heads)
            .collect();
        properties(&format!("{}: layers and heads", model.name), &all)
    });
    Outcome {
        statement: STATEMENT,
        data: evidence.source.clone(),
        parts: parts.collect(),
        notes: Vec::new(),
        figure: heads::figure(
            evidence,
            "Directionality of each head",
            "d (excess)",
            Matrix::excess,
        ),
    }
}
