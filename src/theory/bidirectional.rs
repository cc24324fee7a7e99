//! Whether bidirectional training leaves rows and columns alike.

use super::directionality::norms_figure;
use super::growth::spread;
use super::matrix::{Matrix, mean_and_error, moments};
use super::{Check, Outcome, Part, TextEvidence};
use crate::random;

/// What the claim says.
pub const STATEMENT: &str =
    "Bidirectional training gives the norms of the rows and of the columns of W_qk the same variance.";

/// What stands at the positions that ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queries {
    /// Tokens like those that are asked.
    Tokens,
    /// One and the same embedding, that of `[MASK]`, with a little of its surroundings.
    Masks,
}

/// Bidirectional updates of random tokens.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Width.
    pub d: usize,
    /// Positions.
    pub n: usize,
    /// Sequences that are added up.
    pub sequences: usize,
    /// What asks.
    pub queries: Queries,
    /// Repetitions with new draws.
    pub repeats: usize,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            d: 32,
            n: 16,
            sequences: 60,
            queries: Queries::Tokens,
            repeats: 40,
        }
    }
}

/// Sum of `Xᵀ B X` over sequences, and the variances of the coordinates of both sides.
fn run(setting: &Setting, seed: u64, repeat: usize) -> (Matrix, Vec<f64>, Vec<f64>) {
    let mut rng = random::stream(seed, ["theory", "bidirectional", &repeat.to_string()]);
    let (d, n) = (setting.d, setting.n);
    let variances = spread(d, 6.0);
    let mask = Matrix::normal(1, d, 1.0, &mut rng);
    let mut w = Matrix::normal(d, d, 1.0, &mut rng);
    let (mut queries, mut keys) = (vec![0.0; d], vec![0.0; d]);
    for _ in 0..setting.sequences {
        let z = Matrix::normal(n, d, 1.0, &mut rng);
        let x = Matrix::from_fn(n, d, |i, k| z.at(i, k) * variances[k].sqrt());
        let asks = match setting.queries {
            Queries::Tokens => x.clone(),
            Queries::Masks => Matrix::from_fn(n, d, |i, k| mask.at(0, k) + 0.1 * x.at(i, k)),
        };
        let beta = Matrix::normal(n, n, 1.0, &mut rng);
        w.add(&asks.transposed().times(&beta.times(&x)), 1.0);
        for (side, tokens) in [(&mut queries, &asks), (&mut keys, &x)] {
            for i in 0..n {
                side.iter_mut().zip(tokens.row(i)).for_each(|(s, x)| *s += x * x);
            }
        }
    }
    (w, queries, keys)
}

/// How far two lists of second moments are apart, each of its sum: 0 the same, 1 disjoint.
fn apart(a: &[f64], b: &[f64]) -> f64 {
    let (sum_a, sum_b): (f64, f64) = (a.iter().sum(), b.iter().sum());
    a.iter()
        .zip(b)
        .map(|(x, y)| (x / sum_a - y / sum_b).abs())
        .sum::<f64>()
        / 2.0
}

/// On tokens that ask as they are asked.
pub fn synthetic(seed: u64) -> Outcome {
    with(Setting::default(), seed)
}

/// On tokens of any setting.
pub fn with(setting: Setting, seed: u64) -> Outcome {
    let runs: Vec<_> = (0..setting.repeats)
        .map(|repeat| run(&setting, seed, repeat))
        .collect();
    let relative: Vec<f64> = runs
        .iter()
        .map(|(w, ..)| {
            let (rows, columns) = (moments(&w.row_norms()).1, moments(&w.column_norms()).1);
            (rows - columns) / (rows + columns)
        })
        .collect();
    let (difference, error) = mean_and_error(&relative);
    let (d, d_error) = mean_and_error(&runs.iter().map(|(w, ..)| w.excess()).collect::<Vec<_>>());
    let distance = runs.iter().map(|(_, q, k)| apart(q, k)).fold(0.0, f64::max);
    let name = match setting.queries {
        Queries::Tokens => "tokens ask as they are asked",
        Queries::Masks => "masked positions ask",
    };
    Outcome {
        statement: STATEMENT,
        data: format!(
            "sums of {} bidirectional updates of random tokens, {} times",
            setting.sequences, setting.repeats
        ),
        parts: vec![Part::new(
            name,
            vec![Check::at_most(
                "exchangeable sides: distance of the second moments of what asks and what is asked",
                distance,
                0.1,
            )],
            vec![
                Check::at_most(
                    "difference of the variances of row and column norms, in standard errors",
                    difference.abs() / error,
                    3.5,
                ),
                Check::at_most("directionality (excess), in standard errors", d.abs() / d_error, 3.5),
            ],
        )],
        notes: vec![
            "The corollary's hypothesis is printed as 'autoregressive'; bidirectional is meant. Beyond equal counts it \
             needs, unsaid, that what asks is distributed as what is asked; with masking, what asks holds [MASK]."
                .into(),
            format!("d = {d:+.3} ± {d_error:.3}; (Var rows − Var columns)/(sum) = {difference:+.3} ± {error:.3}."),
        ],
        figure: norms_figure(
            runs.iter()
                .take(1)
                .map(|(w, ..)| (name.to_owned(), w.row_norms(), w.column_norms())),
        ),
    }
}

/// On the layers of trained encoders.
pub fn on_text(evidence: &TextEvidence) -> Outcome {
    let (mut parts, mut curves, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    for layer in evidence.encoder_layers() {
        let (change, learned) = layer.learned();
        let (rows, columns) = (moments(&change.row_norms()).1, moments(&change.column_norms()).1);
        let (queries, keys) = layer.side_moments();
        parts.push(Part::new(
            layer.module.clone(),
            vec![Check::at_most(
                "exchangeable sides: distance of the second moments of what asks and what is asked, by errors",
                apart(&queries, &keys),
                0.1,
            )],
            vec![Check::new(
                format!("Var‖row‖ / Var‖column‖ of {learned}"),
                rows / columns,
                // One matrix, whose variances over a few dozen coordinates scatter by a third or so.
                super::Rule::Between(0.5, 2.0),
            )],
        ));
        notes.push(format!(
            "{}: directionality (excess) of {learned} {:+.3}.",
            layer.module,
            change.excess()
        ));
        curves.push((layer.module.clone(), change.row_norms(), change.column_norms()));
    }
    if parts.is_empty() {
        parts.push(Part::without("encoder"));
    }
    Outcome {
        statement: STATEMENT,
        data: evidence.source.clone(),
        parts,
        notes,
        figure: norms_figure(curves.into_iter()),
    }
}
