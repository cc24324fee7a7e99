//! The lemma on tails.

use super::matrix::moments;
use super::{Check, Outcome, Part, TextEvidence};
use crate::report::plot::{Axis, Curves, Figure};

/// What the claim says.
pub const STATEMENT: &str = "Of two distributions with the same mean μ, the one of the greater variance has the heavier upper tail: \
     Pr[X_a > z] ≥ Pr[X_b > z] for all z > √(σ_a σ_b) − μ.";

/// A distribution whose tail has a closed form.
#[derive(Debug, Clone, PartialEq)]
pub enum Law {
    /// Density `exp(−|x − μ|/b)/(2b)`: mean, scale.
    Laplace(f64, f64),
    /// The first value with the given chance, else the second.
    TwoPoint(f64, f64, f64),
    /// Equally likely values.
    Values(Vec<f64>),
}

impl Law {
    fn moments(&self) -> (f64, f64) {
        match self {
            Self::Laplace(mean, scale) => (*mean, 2.0 * scale * scale),
            Self::TwoPoint(a, p, b) => {
                let mean = p * a + (1.0 - p) * b;
                (mean, p * (a - mean).powi(2) + (1.0 - p) * (b - mean).powi(2))
            }
            Self::Values(values) => moments(values),
        }
    }

    /// `Pr[X > z]`.
    fn tail(&self, z: f64) -> f64 {
        match self {
            Self::Laplace(mean, scale) => {
                let t = (z - mean) / scale;
                if t >= 0.0 {
                    0.5 * (-t).exp()
                } else {
                    1.0 - 0.5 * t.exp()
                }
            }
            Self::TwoPoint(a, p, b) => (if *a > z { *p } else { 0.0 }) + (if *b > z { 1.0 - p } else { 0.0 }),
            Self::Values(values) => values.iter().filter(|&&v| v > z).count() as f64 / values.len() as f64,
        }
    }

    /// Values at which the tail changes its course.
    fn corners(&self) -> Vec<f64> {
        match self {
            Self::Laplace(mean, scale) => vec![*mean, mean + 10.0 * scale],
            Self::TwoPoint(a, _, b) => vec![*a, *b],
            Self::Values(values) => values.clone(),
        }
    }
}

/// The lemma for two laws, with the threshold `√(σ_a σ_b) + sign · μ`.
pub fn part(name: &str, a: &Law, b: &Law, sign: f64) -> Part {
    let ((mean_a, var_a), (mean_b, var_b)) = (a.moments(), b.moments());
    let threshold = (var_a * var_b).powf(0.25) + sign * mean_a;
    let mut places = a.corners();
    places.extend(b.corners());
    let highest = places.iter().copied().fold(threshold, f64::max);
    // Just above the threshold, a fine grid, and both sides of every corner.
    let width = (highest - threshold).max(1e-12);
    let grid = (1..=2000).map(|i| threshold + width * f64::from(i) / 2000.0);
    let near = places.iter().flat_map(|z| [z - 1e-9 * width, *z]);
    let worst = grid
        .chain(near)
        .filter(|&z| z > threshold)
        .map(|z| b.tail(z) - a.tail(z))
        .fold(f64::NEG_INFINITY, f64::max);
    Part::new(
        name,
        vec![
            Check::at_most(
                "difference of the means, in standard deviations",
                (mean_a - mean_b).abs() / var_a.sqrt().max(1e-300),
                1e-3,
            ),
            Check::at_least("variance of a over that of b", var_a / var_b, 1.0 + 1e-9),
        ],
        vec![Check::at_most(
            "largest Pr[X_b > z] − Pr[X_a > z] above the threshold",
            worst,
            1e-12,
        )],
    )
}

/// The cases of the synthetic experiment: name, law a, law b, sign of μ in the threshold.
pub fn cases() -> Vec<(&'static str, Law, Law, f64)> {
    let (wide, narrow) = (Law::Laplace(3.0, 2.0), Law::Laplace(3.0, 1.0));
    vec![
        (
            "one family of laws, threshold √(σ_a σ_b) + μ",
            wide.clone(),
            narrow.clone(),
            1.0,
        ),
        (
            "one family of laws, threshold as printed, √(σ_a σ_b) − μ",
            wide,
            narrow,
            -1.0,
        ),
        // Mean 0 both; variances 100/9 and 1. Between √(10/3) and 3 only b has anything.
        (
            "counterexample, threshold √(σ_a σ_b) + μ",
            Law::TwoPoint(-10.0, 0.1, 10.0 / 9.0),
            Law::TwoPoint(3.0, 0.1, -1.0 / 3.0),
            1.0,
        ),
    ]
}

/// On laws with closed forms: one family for which it is true, and a counterexample.
pub fn synthetic(_seed: u64) -> Outcome {
    let cases = cases();
    Outcome {
        statement: STATEMENT,
        data: "laws with closed forms".to_owned(),
        parts: cases.iter().map(|(name, a, b, sign)| part(name, a, b, *sign)).collect(),
        notes: vec![
            "The proof bounds Pr[X_a > z] from below by (μ − z)²/σ_a², as a second-moment bound for a variable whose mean \
             is negative where z > μ: there is none. Its inequality also asks for z > μ + √(σ_a σ_b), not − μ."
                .into(),
            "Counterexample: a is −10 with chance 0.1 and 10/9 else; b is 3 with chance 0.1 and −1/3 else. Means 0, \
             variances 100/9 and 1, and yet Pr[X_b > 2] = 0.1 and Pr[X_a > 2] = 0."
                .into(),
        ],
        figure: figure(
            cases
                .last()
                .map(|(_, a, b, _)| {
                    vec![
                        ("a, the greater variance".to_owned(), a.clone()),
                        ("b".to_owned(), b.clone()),
                    ]
                })
                .unwrap_or_default(),
            -2.0,
            4.0,
        ),
    }
}

/// On the squared norms of rows and columns of trained models, which always have the same mean.
pub fn on_text(evidence: &TextEvidence) -> Outcome {
    let (mut parts, mut laws) = (Vec::new(), Vec::new());
    for model in &evidence.models {
        for layer in &model.layers {
            let form = layer.form();
            let squares = |norms: Vec<f64>| -> Vec<f64> { norms.iter().map(|n| n * n).collect() };
            let (rows, columns) = (squares(form.row_norms()), squares(form.column_norms()));
            let (a, b, which) = if moments(&rows).1 > moments(&columns).1 {
                (rows, columns, "rows")
            } else {
                (columns, rows, "columns")
            };
            let name = format!("{}: a the squared norms of the {which}", layer.module);
            let (a, b) = (Law::Values(a), Law::Values(b));
            parts.push(part(&format!("{name}, threshold with + μ"), &a, &b, 1.0));
            parts.push(part(&format!("{name}, threshold as printed"), &a, &b, -1.0));
            laws.push((format!("{}, {which} (a)", layer.module), a));
            laws.push((format!("{}, the other side (b)", layer.module), b));
        }
    }
    laws.truncate(2);
    let high = laws.iter().flat_map(|(_, law)| law.corners()).fold(0.0, f64::max);
    Outcome {
        statement: STATEMENT,
        data: evidence.source.clone(),
        parts,
        notes: Vec::new(),
        figure: figure(laws, 0.0, high),
    }
}

fn figure(laws: Vec<(String, Law)>, low: f64, high: f64) -> Figure {
    let at: Vec<f64> = (0..=600)
        .map(|i| low + (high - low) * f64::from(i) / 600.0)
        .collect();
    Curves::new(
        "Tails",
        Axis::linear("z"),
        Axis::linear("Pr[X > z]").with_range(0.0, 1.0),
    )
    .with_lines(
        &at,
        laws.iter().map(|(name, law)| {
            let tail: Vec<f64> = at.iter().map(|&z| law.tail(z)).collect();
            (name, tail)
        }),
    )
    .figure()
}
