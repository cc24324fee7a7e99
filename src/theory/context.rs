//! Different updates for context and prediction.

use std::collections::BTreeMap;

use super::matrix::{Matrix, dot};
use super::{Check, Evidence, Outcome, Part, TextEvidence};
use crate::bilinear::by_token;
use crate::random;
use crate::report::plot::{Axis, Colour, Curves, Series};

/// What the claim says.
pub const STATEMENT: &str = "As context a token adds columns along Σ_i β_i* x_i and rows along itself; when predicted it adds rows along \
     Σ_j β_*j x_j and columns along itself.";

/// Random tokens and errors.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Positions.
    pub n: usize,
    /// Width.
    pub d: usize,
    /// At how many positions the token in question stands.
    pub occurrences: usize,
    /// Takes `G` from other errors than the parts, as a wrong program would.
    pub foreign_gradient: bool,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            n: 16,
            d: 12,
            occurrences: 1,
            foreign_gradient: false,
        }
    }
}

/// The parts of a token at some positions, as context and when predicted, found by taking its errors away.
struct Parts {
    context: Matrix,
    prediction: Matrix,
}

fn gradient(x: &Matrix, beta: &Matrix) -> Matrix {
    x.transposed().times(&beta.times(x))
}

fn parts(x: &Matrix, beta: &Matrix, positions: &[usize]) -> Parts {
    let n = x.rows();
    let kept = |as_key: bool| {
        Matrix::from_fn(n, n, |i, j| {
            let at = if as_key { j } else { i };
            if positions.contains(&at) {
                beta.at(i, j)
            } else {
                0.0
            }
        })
    };
    Parts {
        context: gradient(x, &kept(true)),
        prediction: gradient(x, &kept(false)),
    }
}

/// How far the columns of one matrix and the rows of the other are from those that the proposition prints.
fn formulas(x: &Matrix, beta: &Matrix, position: usize, parts: &Parts) -> (f64, f64) {
    let (n, d) = (x.rows(), x.columns());
    let sum = |weight: &dyn Fn(usize) -> f64| -> Vec<f64> {
        (0..d)
            .map(|k| (0..n).map(|i| weight(i) * x.at(i, k)).sum())
            .collect()
    };
    let u = sum(&|i| beta.at(i, position));
    let v = sum(&|j| beta.at(position, j));
    let token = x.row(position);
    let context = Matrix::from_fn(d, d, |m, k| token[k] * u[m]);
    let prediction = Matrix::from_fn(d, d, |m, k| token[m] * v[k]);
    (
        context.relative_error(&parts.context),
        prediction.relative_error(&parts.prediction),
    )
}

/// The checks of one token at `positions` of one sequence.
fn part(name: String, x: &Matrix, beta: &Matrix, positions: &[usize], whole: &Matrix) -> Part {
    let n = x.rows();
    let found = parts(x, beta, positions);
    let (context, prediction) = positions
        .first()
        .map_or((f64::NAN, f64::NAN), |&p| formulas(x, beta, p, &found));
    let nothing = Matrix::zeros(whole.rows(), whole.rows());
    let (mut by_context, mut by_prediction) = (nothing.clone(), nothing);
    for p in 0..n {
        let each = parts(x, beta, &[p]);
        by_context.add(&each.context, 1.0);
        by_prediction.add(&each.prediction, 1.0);
    }
    Part::new(
        name,
        vec![Check::at_most(
            "positions at which the token stands",
            positions.len() as f64,
            1.0,
        )],
        vec![
            Check::at_most("deviation of its part as context from the formula", context, 1e-9),
            Check::at_most(
                "deviation of its part when predicted from the formula",
                prediction,
                1e-9,
            ),
            Check::at_least(
                "share of rank one in its part as context",
                found.context.rank_one_share(),
                1.0 - 1e-9,
            ),
            Check::at_most(
                "deviation of the sum of all parts as context from G",
                by_context.relative_error(whole),
                1e-9,
            ),
            Check::at_most(
                "deviation of the sum of all parts when predicted from G",
                by_prediction.relative_error(whole),
                1e-9,
            ),
        ],
    )
}

/// On random tokens.
pub fn synthetic(seed: u64) -> Outcome {
    with(Setting::default(), seed)
}

/// On random tokens of any setting.
pub fn with(setting: Setting, seed: u64) -> Outcome {
    let Setting { n, d, .. } = setting;
    let mut rng = random::stream(seed, ["theory", "context"]);
    let x = Matrix::normal(n, d, 1.0, &mut rng);
    let beta = Matrix::normal(n, n, 1.0, &mut rng);
    let whole = if setting.foreign_gradient {
        gradient(&x, &Matrix::normal(n, n, 1.0, &mut rng))
    } else {
        gradient(&x, &beta)
    };
    let positions: Vec<usize> = (0..setting.occurrences.min(n)).map(|i| (3 + 5 * i) % n).collect();
    let (side, norms) = by_position(&x, &beta);
    Outcome {
        statement: STATEMENT,
        data: format!("{n} random tokens of width {d} with random errors"),
        parts: vec![part("a random token".into(), &x, &beta, &positions, &whole)],
        notes: vec![
            "The proposition's third formula is headed 'column' but indexed as a row; it is the column that agrees."
                .into(),
        ],
        figure: figure(vec![("as key".into(), side, 0), ("as query".into(), norms, 1)]),
    }
}

/// Norms of the parts of each position, as key and as query, as shares of their sum.
fn by_position(x: &Matrix, beta: &Matrix) -> (Vec<f64>, Vec<f64>) {
    let norms = |beta: &Matrix| {
        let sums = beta.times(x);
        let sizes: Vec<f64> = (0..x.rows())
            .map(|p| (dot(sums.row(p), sums.row(p)) * dot(x.row(p), x.row(p))).sqrt())
            .collect();
        let total: f64 = sizes.iter().sum();
        sizes.iter().map(|s| s / total).collect::<Vec<f64>>()
    };
    (norms(&beta.transposed()), norms(beta))
}

fn figure(series: Vec<(String, Vec<f64>, usize)>) -> crate::report::plot::Figure {
    let series = series.into_iter().map(|(name, shares, colour)| {
        let at: Vec<f64> = (0..shares.len()).map(|p| p as f64).collect();
        Series::new(name, &at, &shares, Colour::Category(colour))
    });
    Curves::new(
        "How much each position adds to G",
        Axis::integer("position"),
        Axis::linear("norm of its part, of the sum over positions"),
    )
    .with_all(series)
    .figure()
}

/// On the layers of trained models.
pub fn on_text(evidence: &TextEvidence) -> Outcome {
    let (mut cases, mut notes, mut curves) = (Vec::new(), Vec::new(), Vec::new());
    for (index, model) in evidence.models.iter().enumerate() {
        // Any sequence does that has an error to show.
        let Some(sequence) = model.predicting().iter().position(|set| !set.is_empty()) else {
            continue;
        };
        let held = model.held(sequence);
        let mut places: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (position, &token) in held.iter().enumerate() {
            places.entry(token).or_default().push(position);
        }
        let symbol = |token: u32| {
            let name = evidence.symbols.get(token as usize);
            name.map_or_else(|| token.to_string(), |name| format!("'{}'", name.escape_debug()))
        };
        for layer in &model.layers {
            let x = &layer.x[sequence];
            let beta = layer.total_beta(sequence);
            let whole = gradient(x, &beta);
            let column = |p: usize| (0..x.rows()).any(|i| beta.at(i, p) != 0.0);
            let row = |p: usize| (0..x.rows()).any(|j| beta.at(p, j) != 0.0);
            let once = places
                .iter()
                .find(|(_, at)| at.len() == 1 && at.iter().all(|&p| column(p) && row(p)));
            if let Some((token, at)) = once {
                let name = format!("{}: {}, at one position", layer.module, symbol(*token));
                cases.push(part(name, x, &beta, at, &whole));
            }
            if let Some((token, at)) = places.iter().max_by_key(|(_, at)| at.len()) {
                let name = format!("{}: {}, at {} positions", layer.module, symbol(*token), at.len());
                cases.push(part(name, x, &beta, at, &whole));
            }
        }
        if let Some(layer) = model.layers.last() {
            let (key, query) = mean_by_position(model, layer);
            curves.push((format!("{}, as key", model.name), key, 2 * index));
            curves.push((format!("{}, as query", model.name), query, 2 * index + 1));
        }
        notes.extend(masked_note(model, evidence));
        notes.extend(token_note(model, &symbol));
    }
    Outcome {
        statement: STATEMENT,
        data: evidence.source.clone(),
        parts: cases,
        notes,
        figure: figure(curves),
    }
}

/// Means over the sequences that have errors.
fn mean_by_position(model: &Evidence, layer: &super::LayerEvidence) -> (Vec<f64>, Vec<f64>) {
    let n = model.batch.n;
    let (mut key, mut query, mut count) = (vec![0.0; n], vec![0.0; n], 0.0);
    for (sequence, x) in layer.x.iter().enumerate() {
        let beta = layer.total_beta(sequence);
        if beta.norm() == 0.0 {
            continue;
        }
        count += 1.0;
        let (k, q) = by_position(x, &beta);
        key.iter_mut().zip(k).for_each(|(sum, v)| *sum += v);
        query.iter_mut().zip(q).for_each(|(sum, v)| *sum += v);
    }
    let mean = |sum: Vec<f64>| sum.into_iter().map(|v| v / count).collect();
    (mean(key), mean(query))
}

/// What the rows of `G` that ask in the last layer hold, where tokens are masked.
fn masked_note(model: &Evidence, evidence: &TextEvidence) -> Option<String> {
    let layer = model.layers.last()?;
    let mask = evidence.symbols.iter().position(|symbol| symbol == "[MASK]")? as u32;
    let (mut masked, mut all) = (0.0, 0.0);
    for (sequence, x) in layer.x.iter().enumerate() {
        let beta = layer.total_beta(sequence);
        let sums = beta.times(x);
        for (p, &token) in model.held(sequence).iter().enumerate() {
            let size = (dot(sums.row(p), sums.row(p)) * dot(x.row(p), x.row(p))).sqrt();
            all += size;
            masked += if token == mask { size } else { 0.0 };
        }
    }
    (masked > 0.0).then(|| {
        format!(
            "{}: {:.0} % of what positions add as queries in the last layer comes from rows that hold [MASK]: the token \
             that is predicted there is another one.",
            model.name,
            100.0 * masked / all
        )
    })
}

/// Which tokens the gradient of the last layer comes from, as context and as what is predicted.
fn token_note(model: &Evidence, symbol: &dyn Fn(u32) -> String) -> Option<String> {
    let layer = model.layers.last()?;
    let d = layer.d_model();
    let mut whole = Matrix::zeros(d, d);
    for (sequence, x) in layer.x.iter().enumerate() {
        whole.add(&gradient(x, &layer.total_beta(sequence)), 1.0);
    }
    let square = whole.inner(&whole);
    let shares = |as_key: bool| -> Vec<f64> {
        let mut shares = Vec::new();
        for (sequence, x) in layer.x.iter().enumerate() {
            let beta = layer.total_beta(sequence);
            // ⟨u x_pᵀ, G⟩ = uᵀ G x_p as key, ⟨x_p vᵀ, G⟩ = x_pᵀ G v as query.
            let (sums, along) = if as_key {
                (beta.transposed().times(x), x.times(&whole.transposed()))
            } else {
                (beta.times(x), x.times(&whole))
            };
            shares.extend((0..x.rows()).map(|p| dot(sums.row(p), along.row(p)) / square));
        }
        shares
    };
    let largest = |shares: &[f64], tokens: &[Option<u32>]| {
        let mut sums: Vec<(u32, f64)> = by_token(shares, tokens).into_iter().collect();
        sums.sort_by(|a, b| b.1.total_cmp(&a.1));
        let words = sums.iter().take(4);
        let words = words.map(|(token, share)| format!("{} {:.0} %", symbol(*token), 100.0 * share));
        words.collect::<Vec<_>>().join(", ")
    };
    (square > 0.0).then(|| {
        format!(
            "{}, last layer, shares of G by token: as context {}; as what is predicted {}.",
            model.name,
            largest(&shares(true), &model.batch.held()),
            largest(&shares(false), &model.batch.predicted())
        )
    })
}
