//! Whether autoregressive training makes columns dominate.

use rand::RngExt;

use super::growth::spread;
use super::matrix::{Matrix, mean_and_error, moments};
use super::{Check, Outcome, Part, TextEvidence};
use crate::random;
use crate::report::plot::{Axis, Colour, Curves, Figure, Series};

/// What the claim says.
pub const STATEMENT: &str =
    "Autoregressive training makes columns of W_qk more likely than rows to have a high norm.";

/// Which tokens have coordinates of unequal variance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anisotropy {
    /// Those that are predicted: what the theorem's proof assumes.
    Predicted,
    /// The context token.
    Context,
    /// Both.
    Both,
    /// None.
    Neither,
}

/// Autoregressive sequences, each about one context token.
#[derive(Debug, Clone)]
pub struct Setting {
    /// Width.
    pub d: usize,
    /// Positions.
    pub n: usize,
    /// Different context tokens.
    pub tokens: usize,
    /// Which tokens are anisotropic.
    pub anisotropy: Anisotropy,
    /// The variance of one coordinate in eight, of the others' 1.
    pub large: f64,
    /// Whether the context token stands early; otherwise anywhere.
    pub early: bool,
    /// Repetitions with new draws.
    pub repeats: usize,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            d: 64,
            n: 16,
            tokens: 200,
            anisotropy: Anisotropy::Predicted,
            large: 12.0,
            early: true,
            repeats: 12,
        }
    }
}

/// What one repetition gave.
struct Run {
    rows: Vec<f64>,
    columns: Vec<f64>,
    d: f64,
    /// Times as context over times predicted.
    ratio: f64,
    /// Second moments of the coordinates of the context tokens.
    context: Vec<f64>,
    /// The same of the tokens that they predict and are predicted from.
    predicted: Vec<f64>,
}

/// `W = W_0 + Σ ΔW`, with `ΔW = Σ_{i>k} β_i x_i yᵀ + y Σ_{j<k} β_j x_jᵀ` for a token `y` at position k.
fn run(setting: &Setting, seed: u64, repeat: usize) -> Run {
    let mut rng = random::stream(seed, ["theory", "directionality", &repeat.to_string()]);
    let (d, n) = (setting.d, setting.n);
    let variances = |anisotropic: bool| {
        if anisotropic {
            spread(d, setting.large)
        } else {
            vec![1.0; d]
        }
    };
    let (predicted, context) = (
        variances(matches!(
            setting.anisotropy,
            Anisotropy::Predicted | Anisotropy::Both
        )),
        variances(matches!(
            setting.anisotropy,
            Anisotropy::Context | Anisotropy::Both
        )),
    );
    let scaled = |x: Matrix, variances: &[f64]| {
        Matrix::from_fn(x.rows(), x.columns(), |i, k| x.at(i, k) * variances[k].sqrt())
    };
    // Entries as large as a few updates make them: the start is not what decides.
    let mut w = Matrix::normal(d, d, 1.0, &mut rng);
    let (mut as_context, mut as_predicted) = (0.0, 0.0);
    let (mut seen_context, mut seen_predicted) = (vec![0.0; d], vec![0.0; d]);
    let see = |seen: &mut [f64], token: &[f64]| seen.iter_mut().zip(token).for_each(|(s, x)| *s += x * x);
    for _ in 0..setting.tokens {
        let y = scaled(Matrix::normal(1, d, 1.0, &mut rng), &context);
        let x = scaled(Matrix::normal(n, d, 1.0, &mut rng), &predicted);
        see(&mut seen_context, y.row(0));
        (0..n).for_each(|i| see(&mut seen_predicted, x.row(i)));
        let beta = Matrix::normal(1, n, 1.0, &mut rng);
        let at = rng.random_range(0..if setting.early { n / 4 } else { n });
        let sum = |range: std::ops::Range<usize>| {
            let mut u = vec![0.0; d];
            for i in range {
                u.iter_mut()
                    .zip(x.row(i))
                    .for_each(|(u, x)| *u += beta.at(0, i) * x);
            }
            u
        };
        w.add_outer(&sum(at + 1..n), y.row(0), 1.0);
        w.add_outer(y.row(0), &sum(0..at), 1.0);
        as_context += (n - 1 - at) as f64;
        as_predicted += at as f64;
    }
    Run {
        d: w.excess(),
        rows: w.row_norms(),
        columns: w.column_norms(),
        ratio: as_context / as_predicted,
        context: seen_context,
        predicted: seen_predicted,
    }
}

/// In the case that the theorem's proof assumes, and the others beside it.
pub fn synthetic(seed: u64) -> Outcome {
    let cases = [
        (
            "only predicted tokens anisotropic (the proof)",
            Anisotropy::Predicted,
        ),
        ("only the context token anisotropic", Anisotropy::Context),
        ("both anisotropic", Anisotropy::Both),
    ];
    let settings = cases.map(|(name, anisotropy)| {
        let setting = Setting {
            anisotropy,
            ..Setting::default()
        };
        (name, setting)
    });
    with(&settings, seed)
}

/// In any cases.
pub fn with(cases: &[(&str, Setting)], seed: u64) -> Outcome {
    let (mut parts, mut curves, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    for (name, setting) in cases {
        let runs: Vec<Run> = (0..setting.repeats)
            .map(|repeat| run(setting, seed, repeat))
            .collect();
        let scores: Vec<f64> = runs.iter().map(|run| run.d).collect();
        let (d, error) = mean_and_error(&scores);
        let ratio = mean_and_error(&runs.iter().map(|run| run.ratio).collect::<Vec<_>>()).0;
        // The largest second moment of a coordinate over the mean, as drawn, and what sampling alone makes of it.
        let measured = |side: fn(&Run) -> &[f64]| {
            let mut sums = vec![0.0; setting.d];
            for run in &runs {
                sums.iter_mut().zip(side(run)).for_each(|(sum, m)| *sum += m);
            }
            let mean = sums.iter().sum::<f64>() / setting.d as f64;
            sums.iter().fold(0.0, |most: f64, m| most.max(m / mean - 1.0))
        };
        let context = measured(|run| &run.context);
        let predicted = measured(|run| &run.predicted);
        let noise = 5.0 * (2.0 / (setting.tokens * setting.repeats) as f64).sqrt();
        // Below-average rows: coordinates of the predicted tokens that have the small variance.
        let mean_square = |norms: fn(&Run) -> &[f64], keep: &dyn Fn(usize) -> bool| {
            let squares: Vec<f64> = runs
                .iter()
                .flat_map(|run| norms(run).iter().enumerate())
                .filter(|(at, _)| keep(*at))
                .map(|(_, norm)| norm * norm)
                .collect();
            moments(&squares).0
        };
        let columns = mean_square(|run| &run.columns, &|_| true);
        let rows = mean_square(|run| &run.rows, &|m| m % 8 != 0);
        parts.push(Part::new(
            *name,
            vec![
                Check::at_most(
                    "isotropic context token: excess of its largest variance over their mean",
                    context,
                    0.05 + noise,
                ),
                Check::at_least(
                    "anisotropic predicted tokens: the same of theirs",
                    predicted,
                    0.2 + noise,
                ),
                Check::at_least("times as context over times predicted", ratio, 1.2),
            ],
            vec![
                Check::at_least("E‖column‖² / E‖row‖² for rows below average", columns / rows, 1.0),
                Check::at_most(
                    "directionality (excess), columns dominating where negative, two standard errors in favour",
                    d - 2.0 * error,
                    0.0,
                ),
            ],
        ));
        notes.push(format!(
            "{name}: d = {d:+.3} ± {error:.3} over {} repetitions.",
            setting.repeats
        ));
        curves.push(((*name).to_owned(), runs));
    }
    notes.push(
        "Rows take the variances of the tokens that are predicted, columns those of context tokens: the side whose \
         tokens are anisotropic has the outliers. The proof makes the predicted tokens anisotropic, compares a row of \
         below-average variance with a column, and concludes on tails from that; the rows of above-average variance, \
         which are the outliers, it passes over."
            .to_owned(),
    );
    Outcome {
        statement: STATEMENT,
        data: "sums of simulated autoregressive updates on random initial weights".to_owned(),
        parts,
        notes,
        figure: norms_figure(curves.iter().map(|(name, runs)| {
            let first = &runs[0];
            (name.clone(), first.rows.clone(), first.columns.clone())
        })),
    }
}

/// On the layers of trained decoders.
pub fn on_text(evidence: &TextEvidence) -> Outcome {
    let (mut parts, mut curves) = (Vec::new(), Vec::new());
    let early = super::counting::earliness(&evidence.packed);
    for layer in evidence.decoder_layers() {
        let (change, learned) = layer.learned();
        let mut g = Matrix::zeros(change.rows(), change.columns());
        (0..layer.heads.n_heads()).for_each(|head| g.add(&layer.gradient(head), 1.0));
        let (queries, keys) = layer.side_moments();
        // For variances of d coordinates from so many tokens the sampling alone gives √(2/tokens).
        let uneven = |moments_of: &[f64]| {
            let (mean, variance) = moments(moments_of);
            variance.sqrt() / mean
        };
        parts.push(Part::new(
            layer.module.clone(),
            vec![
                Check::at_most(
                    "isotropic context tokens: spread of their variances over the coordinates",
                    uneven(&keys),
                    0.1,
                ),
                Check::at_least(
                    "anisotropic predicting tokens: the same of theirs",
                    uneven(&queries),
                    0.1,
                ),
                Check::at_least(
                    "how far before the middle the earliest frequent token stands, in standard errors",
                    early,
                    4.0,
                ),
            ],
            vec![
                Check::at_most(
                    format!("directionality (excess) of {learned}"),
                    change.excess(),
                    0.0,
                ),
                Check::at_most("directionality (excess) of G", g.excess(), 0.0),
            ],
        ));
        curves.push((layer.module.clone(), change.row_norms(), change.column_norms()));
    }
    if parts.is_empty() {
        parts.push(Part::without("decoder"));
    }
    Outcome {
        statement: STATEMENT,
        data: evidence.source.clone(),
        parts,
        notes: vec![
            "On a real model the same embeddings ask and are asked, so both sides are anisotropic; which side has the \
             outliers is then a matter of the errors."
                .into(),
        ],
        figure: norms_figure(curves.into_iter()),
    }
}

/// Norms of rows and columns, sorted.
pub(super) fn norms_figure(cases: impl Iterator<Item = (String, Vec<f64>, Vec<f64>)>) -> Figure {
    let mut curves = Curves::new(
        "Norms of rows and columns",
        Axis::integer("rank of the row or column"),
        Axis::linear("norm, of the mean"),
    );
    for (index, (name, rows, columns)) in cases.enumerate() {
        for (what, mut norms) in [("rows", rows), ("columns", columns)] {
            norms.sort_by(|a, b| b.total_cmp(a));
            let mean = moments(&norms).0;
            let at: Vec<f64> = (1..=norms.len()).map(|i| i as f64).collect();
            let of_mean: Vec<f64> = norms.iter().map(|n| n / mean).collect();
            let series = Series::new(format!("{name}, {what}"), &at, &of_mean, Colour::Category(index));
            curves = curves.with(if what == "columns" {
                series.dashed()
            } else {
                series
            });
        }
    }
    curves.figure()
}
