//! Asymmetric growth of columns and rows.

use rand_distr::{Distribution, StandardNormal};

use super::matrix::{Matrix, dot, mean_and_error, moments};
use super::{Check, Outcome, Part, TextEvidence};
use crate::random;
use crate::report::plot::{Axis, Colour, Curves, Figure, Series};

/// What the claim says.
pub const STATEMENT: &str = "With an isotropic context token and anisotropic tokens that it predicts, E‖Δw_·k‖² / E‖Δw_m·‖² > 1 for every \
     column k and every row m whose variance Σ_mm is below the mean; and the reverse for prediction.";

/// Tokens of given variances and one context token.
#[derive(Debug, Clone)]
pub struct Setting {
    /// Variances of the coordinates of the tokens that are predicted.
    pub predicted: Vec<f64>,
    /// Variances of the coordinates of the context token.
    pub context: Vec<f64>,
    /// Predicted tokens in a draw.
    pub n: usize,
    /// Draws.
    pub draws: usize,
    /// Lets the errors grow with the context token's first coordinate, so that the two are not independent.
    pub dependent: bool,
}

/// Variances of which one in eight is `large` and the others 1.
pub fn spread(d: usize, large: f64) -> Vec<f64> {
    (0..d).map(|k| if k % 8 == 0 { large } else { 1.0 }).collect()
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            predicted: spread(32, 8.0),
            context: vec![1.0; 32],
            n: 16,
            draws: 8000,
            dependent: false,
        }
    }
}

/// A context token and `Σ_i β_i x_i` over what it is context for.
pub(super) type Draw = (Vec<f64>, Vec<f64>);

/// What the draws say of columns and rows.
struct Growth {
    /// `E[y_k²]` and `E[u_m²]`, divided by their means.
    context: Vec<f64>,
    predicted: Vec<f64>,
    /// `E‖Δw_·k‖²` for each k and `E‖Δw_m·‖²` for each m.
    columns: Vec<(f64, f64)>,
    rows: Vec<(f64, f64)>,
    /// Correlation of `‖y‖²` with `‖u‖²`.
    dependence: f64,
    /// Squared norm of the mean context token over the mean squared norm.
    bias: f64,
    draws: usize,
}

impl Growth {
    fn of(draws: &[Draw]) -> Self {
        let d = draws.first().map_or(0, |(y, _)| y.len());
        let size = |v: &[f64]| dot(v, v);
        let each = |f: &dyn Fn(&Draw) -> f64| mean_and_error(&draws.iter().map(f).collect::<Vec<_>>());
        let relative = |f: &dyn Fn(&Draw, usize) -> f64| {
            let second: Vec<f64> = (0..d).map(|k| each(&|draw| f(draw, k).powi(2)).0).collect();
            let mean = second.iter().sum::<f64>() / d as f64;
            second.iter().map(|s| s / mean).collect::<Vec<_>>()
        };
        let (sizes, others): (Vec<f64>, Vec<f64>) = draws.iter().map(|(y, u)| (size(y), size(u))).unzip();
        let means: Vec<f64> = (0..d).map(|k| each(&|(y, _)| y[k]).0).collect();
        Self {
            context: relative(&|(y, _), k| y[k]),
            predicted: relative(&|(_, u), k| u[k]),
            columns: (0..d).map(|k| each(&|(y, u)| y[k].powi(2) * size(u))).collect(),
            rows: (0..d).map(|m| each(&|(y, u)| u[m].powi(2) * size(y))).collect(),
            dependence: correlation(&sizes, &others),
            bias: size(&means) / moments(&sizes).0,
            draws: draws.len(),
        }
    }

    /// The smallest `E‖Δw_·k‖² / E‖Δw_m·‖²` over all k and the m below average, at three standard errors in favour of
    /// the claim; and the largest departure of the ratio from `(Γ_kk/Tr Γ)(Tr Σ/Σ_mm)`.
    fn smallest_ratio(&self) -> (f64, f64) {
        let d = self.rows.len() as f64;
        let (mut smallest, mut departure) = (f64::INFINITY, 0.0f64);
        for (m, row) in self.rows.iter().enumerate() {
            // What is just below the mean cannot be told from it.
            if self.predicted[m] >= 0.95 {
                continue;
            }
            for (k, column) in self.columns.iter().enumerate() {
                smallest = smallest.min((column.0 + 3.0 * column.1) / (row.0 - 3.0 * row.1).max(1e-300));
                let expected = (self.context[k] / d) * (d / self.predicted[m]);
                departure = departure.max((column.0 / row.0 / expected - 1.0).abs());
            }
        }
        (smallest, departure)
    }

    fn part(&self, name: &str) -> Part {
        let noise = 5.0 * (2.0 / self.draws as f64).sqrt();
        let (smallest, _) = self.smallest_ratio();
        Part::new(
            name,
            vec![
                Check::at_most(
                    "isotropy: largest departure of the variances of the context token from their mean",
                    furthest(&self.context),
                    0.05 + noise,
                ),
                Check::at_least(
                    "anisotropy: the same of the tokens that it predicts",
                    furthest(&self.predicted),
                    0.2 + noise,
                ),
                Check::at_most(
                    "zero mean: share of the mean in the squared norm of the context token",
                    self.bias,
                    0.01 + 25.0 / self.draws as f64,
                ),
                Check::at_most(
                    "independence: correlation of the squared norms of the two sides",
                    self.dependence.abs(),
                    0.02 + 4.0 / (self.draws as f64).sqrt(),
                ),
            ],
            vec![Check::at_least(
                "smallest E‖column‖²/E‖row‖² over the rows below average (three standard errors in favour)",
                smallest,
                1.0,
            )],
        )
    }

    /// The corollary: the same with rows and columns exchanged, of a token that is predicted.
    fn mirrored(&self, name: &str) -> Part {
        let mut part = self.part(name);
        let (smallest, _) = self.smallest_ratio();
        part.conclusions = vec![Check::at_most(
            "largest E‖column‖²/E‖row‖² over the columns below average (three standard errors in favour)",
            1.0 / smallest,
            1.0,
        )];
        Part::new(part.name, part.assumptions, part.conclusions)
    }
}

fn furthest(relative: &[f64]) -> f64 {
    relative.iter().map(|v| (v - 1.0).abs()).fold(0.0, f64::max)
}

pub(super) fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let ((mean_a, var_a), (mean_b, var_b)) = (moments(a), moments(b));
    let product: Vec<f64> = a
        .iter()
        .zip(b)
        .map(|(x, y)| (x - mean_a) * (y - mean_b))
        .collect();
    let scale = (var_a * var_b).sqrt();
    if scale == 0.0 {
        0.0
    } else {
        moments(&product).0 / scale
    }
}

fn draws(setting: &Setting, seed: u64) -> Vec<Draw> {
    let mut rng = random::stream(seed, ["theory", "growth"]);
    let beta = Matrix::normal(1, setting.n, 1.0, &mut rng);
    (0..setting.draws)
        .map(|_| {
            let mut token = |variances: &[f64]| -> Vec<f64> {
                let draw = |v: &f64| {
                    let z: f64 = StandardNormal.sample(&mut rng);
                    v.sqrt() * z
                };
                variances.iter().map(draw).collect()
            };
            let y = token(&setting.context);
            let mut u = vec![0.0; setting.predicted.len()];
            for i in 0..setting.n {
                let x = token(&setting.predicted);
                let error = beta.at(0, i) * if setting.dependent { y[0] } else { 1.0 };
                u.iter_mut().zip(x).for_each(|(u, x)| *u += error * x);
            }
            (y, u)
        })
        .collect()
}

/// On tokens that meet the assumptions.
pub fn synthetic(seed: u64) -> Outcome {
    with(&Setting::default(), seed)
}

/// On tokens of any setting.
pub fn with(setting: &Setting, seed: u64) -> Outcome {
    let growth = Growth::of(&draws(setting, seed));
    let squares = |x: &[(f64, f64)]| moments(&x.iter().map(|v| v.0).collect::<Vec<_>>());
    let (rows, columns) = (squares(&growth.rows), squares(&growth.columns));
    let (_, departure) = growth.smallest_ratio();
    Outcome {
        statement: STATEMENT,
        data: format!(
            "{} draws of a context token and {} tokens that it predicts, width {}",
            setting.draws,
            setting.n,
            setting.context.len()
        ),
        parts: vec![
            growth.part("context (the proposition)"),
            growth.mirrored("prediction (the corollary)"),
        ],
        notes: vec![
            format!("The ratio is (Γ_kk/Tr Γ)(Tr Σ/Σ_mm) as printed, within {departure:.3} of itself."),
            format!(
                "It says nothing of outliers: rows and columns have the same mean of squared norms ({:.4} of each \
                 other, always: both sum to ‖ΔW‖²), and it is the rows that spread: their standard deviation over the \
                 coordinates is {:.2} of the mean, that of the columns {:.2}.",
                columns.0 / rows.0,
                rows.1.sqrt() / rows.0,
                columns.1.sqrt() / columns.0
            ),
        ],
        figure: figure(&[("synthetic".to_owned(), &growth)]),
    }
}

/// On the layers of trained models, a draw for each position of each sequence.
pub fn on_text(evidence: &TextEvidence) -> Outcome {
    let mut grown = Vec::new();
    for model in &evidence.models {
        for layer in &model.layers {
            grown.push((
                layer.module.clone(),
                Growth::of(&layer.draws(true)),
                Growth::of(&layer.draws(false)),
            ));
        }
    }
    let parts = grown
        .iter()
        .flat_map(|(module, context, prediction)| {
            [
                context.part(&format!("{module}: context")),
                prediction.mirrored(&format!("{module}: prediction")),
            ]
        })
        .collect();
    let curves: Vec<_> = grown
        .iter()
        .map(|(module, context, _)| (module.clone(), context))
        .collect();
    Outcome {
        statement: STATEMENT,
        data: evidence.source.clone(),
        parts,
        notes: vec![
            "The same embeddings ask and are asked, so a context token cannot be isotropic where those that it predicts \
             are not."
                .into(),
        ],
        figure: figure(&curves),
    }
}

/// The norms of columns and rows, sorted.
fn figure(cases: &[(String, &Growth)]) -> Figure {
    let series = cases.iter().enumerate().flat_map(|(index, (name, growth))| {
        let sorted = |norms: &[(f64, f64)]| {
            let mean = norms.iter().map(|n| n.0).sum::<f64>() / norms.len() as f64;
            let mut norms: Vec<f64> = norms.iter().map(|n| n.0 / mean).collect();
            norms.sort_by(|a, b| b.total_cmp(a));
            norms
        };
        let line = |what: &str, norms: Vec<f64>| {
            let at: Vec<f64> = (1..=norms.len()).map(|i| i as f64).collect();
            Series::new(format!("{name}, {what}"), &at, &norms, Colour::Category(index))
        };
        [
            line("rows", sorted(&growth.rows)),
            line("columns", sorted(&growth.columns)).dashed(),
        ]
    });
    Curves::new(
        "Mean squared norms of the rows and columns that context adds",
        Axis::integer("rank of the row or column"),
        Axis::linear("E‖·‖², of the mean"),
    )
    .with_all(series)
    .figure()
}
