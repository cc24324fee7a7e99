//! Softmax keeps the order of scores, and outputs lie in the convex hull of the tokens.

use super::matrix::{Matrix, dot};
use super::{Check, Outcome, Part, TextEvidence};
use crate::random::{self, Rng};
use crate::report::plot::{Axis, Colour, Curves, Figure, Series};

/// What the claim says.
pub const STATEMENT: &str = "α_ij < α_ij' exactly where the raw scores are so ordered, and Σ_j α_ij x_j lies in the convex hull of the tokens.";

/// A layer of attention on random tokens.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Tokens.
    pub n: usize,
    /// Width.
    pub d: usize,
    /// The factor on the scores before the softmax.
    pub scale: f64,
    /// Uses the scores themselves as weights, without a softmax.
    pub linear: bool,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            n: 12,
            d: 6,
            scale: 0.4,
            linear: false,
        }
    }
}

/// The share of pairs of visible keys whose weights are ordered against their scores.
///
/// Scores that lie within `tolerance` of each other, of the largest, are not told apart: their order is that of
/// rounding.
fn inversions(
    scores: &Matrix,
    weights: &Matrix,
    visible: &dyn Fn(usize, usize) -> bool,
    tolerance: f64,
) -> f64 {
    let (mut inverted, mut pairs) = (0.0, 0.0);
    let apart = tolerance * scores.values().iter().fold(0.0, |m: f64, s| m.max(s.abs()));
    for i in 0..scores.rows() {
        for j in (0..scores.columns()).filter(|&j| visible(i, j)) {
            for k in (0..j).filter(|&k| visible(i, k)) {
                pairs += 1.0;
                let by_score = scores.at(i, j) - scores.at(i, k);
                let by_weight = weights.at(i, j) - weights.at(i, k);
                let against = by_score.abs() > apart && by_score * by_weight < 0.0;
                inverted += f64::from(u8::from(against));
            }
        }
    }
    if pairs == 0.0 { 0.0 } else { inverted / pairs }
}

/// How far the outputs reach beyond the tokens along random directions, of the tokens' extent there: at most 0 where
/// they lie in the convex hull.
fn beyond(outputs: &Matrix, tokens: &Matrix, rng: &mut Rng) -> f64 {
    const DIRECTIONS: usize = 200;
    let directions = Matrix::normal(DIRECTIONS, tokens.columns(), 1.0, rng);
    let mut worst = f64::NEG_INFINITY;
    for direction in (0..DIRECTIONS).map(|i| directions.row(i)) {
        let along = |m: &Matrix, f: fn(f64, f64) -> f64, start: f64| {
            (0..m.rows()).map(|i| dot(m.row(i), direction)).fold(start, f)
        };
        let high = along(tokens, f64::max, f64::NEG_INFINITY);
        let low = along(tokens, f64::min, f64::INFINITY);
        let reach = (along(outputs, f64::max, f64::NEG_INFINITY) - high)
            .max(low - along(outputs, f64::min, f64::INFINITY));
        worst = worst.max(reach / (high - low));
    }
    worst
}

/// The two conclusions for a layer; `tolerance` is the rounding of its numbers.
fn checks(
    scores: &Matrix,
    weights: &Matrix,
    outputs: &Matrix,
    tokens: &Matrix,
    visible: &dyn Fn(usize, usize) -> bool,
    tolerance: f64,
    rng: &mut Rng,
) -> Vec<Check> {
    vec![
        Check::at_most(
            "share of pairs of keys whose weights are ordered against their scores",
            inversions(scores, weights, visible, tolerance),
            0.0,
        ),
        Check::at_most(
            "how far outputs reach beyond the tokens, of the tokens' extent, 200 directions",
            beyond(outputs, tokens, rng),
            tolerance,
        ),
    ]
}

/// On random tokens.
pub fn synthetic(seed: u64) -> Outcome {
    with(Setting::default(), seed)
}

/// On random tokens of any setting.
pub fn with(setting: Setting, seed: u64) -> Outcome {
    let Setting { n, d, scale, linear } = setting;
    let mut rng = random::stream(seed, ["theory", "convex hull"]);
    let x = Matrix::normal(n, d, 1.0, &mut rng);
    let form = Matrix::normal(d, d, 1.0, &mut rng);
    let value = Matrix::normal(d, d, (d as f64).powf(-0.5), &mut rng);
    let scores = x.times(&form).times(&x.transposed());
    let weights = if linear {
        Matrix::from_fn(n, n, |i, j| scale * scores.at(i, j))
    } else {
        Matrix::from_fn(n, n, |i, j| {
            let highest = scores
                .row(i)
                .iter()
                .map(|s| scale * s)
                .fold(f64::NEG_INFINITY, f64::max);
            let exp = |j: usize| (scale * scores.at(i, j) - highest).exp();
            exp(j) / (0..n).map(exp).sum::<f64>()
        })
    };
    let assumptions = |projection: f64, residual: f64| {
        vec![
            Check::at_least("factor on the scores", scale, 1e-12),
            Check::at_most("distance of W_v from the identity", projection, 1e-9),
            Check::at_most("size of the residual that is added", residual, 0.0),
        ]
    };
    let mixed = weights.times(&x);
    let projected = mixed.times(&value);
    let residual = x.plus(&projected, 1.0);
    let everything = |_: usize, _: usize| true;
    let off = value.relative_error(&Matrix::identity(d));
    let mut case = |name: &str, outputs: &Matrix, projection: f64, added: f64| {
        Part::new(
            name,
            assumptions(projection, added),
            checks(&scores, &weights, outputs, &x, &everything, 1e-9, &mut rng),
        )
    };
    let parts = vec![
        case("the mixture Σ_j α_ij x_j", &mixed, 0.0, 0.0),
        case("after W_v", &projected, off, 0.0),
        case(
            "x_i + Σ_j α_ij W_v x_j, as the layer is printed",
            &residual,
            off,
            1.0,
        ),
    ];
    Outcome {
        statement: STATEMENT,
        data: format!("{n} random tokens of width {d}"),
        parts,
        notes: vec![
            "What leaves a layer has gone through W_v and been added to the residual: it lies in no hull of the tokens. \
             The claim is of the mixture alone."
                .into(),
        ],
        figure: figure(&[("synthetic".to_owned(), scores.row(0).to_vec(), weights.row(0).to_vec())]),
    }
}

/// On the layers of trained models.
pub fn on_text(evidence: &TextEvidence) -> Outcome {
    let mut rng = random::stream(0, ["theory", "convex hull", "text"]);
    let (mut parts, mut curves) = (Vec::new(), Vec::new());
    for model in &evidence.models {
        for layer in &model.layers {
            let n = model.batch.n;
            let sees = model.objective.attention_mask(n);
            for (name, hidden) in [("visible keys", false), ("all keys, hidden ones too", true)] {
                let visible = |i: usize, j: usize| hidden || sees.sees(i, j);
                let share = (0..n * n).filter(|at| sees.sees(at / n, at % n)).count() as f64 / (n * n) as f64;
                if hidden && share == 1.0 {
                    continue;
                }
                let (scores, weights) = (&layer.scores[0][0], &layer.weights[0][0]);
                let mixed = weights.times(&layer.x[0]);
                parts.push(Part::new(
                    format!("{}, head 0: {name}", layer.module),
                    vec![
                        Check::at_least(
                            "share of the compared keys that are visible",
                            if hidden { share } else { 1.0 },
                            1.0,
                        ),
                        Check::at_most(
                            "largest |score|, which must be finite",
                            scores.values().iter().fold(0.0, |m: f64, s| m.max(s.abs())),
                            f64::from(f32::MAX),
                        ),
                    ],
                    // Weights are f32: they sum to 1 within 1e-6, and outputs are off by as much.
                    checks(scores, weights, &mixed, &layer.x[0], &visible, 1e-5, &mut rng),
                ));
            }
            let last = n - 1;
            curves.push((
                layer.module.clone(),
                layer.scores[0][0].row(last).to_vec(),
                layer.weights[0][0].row(last).to_vec(),
            ));
        }
    }
    Outcome {
        statement: STATEMENT,
        data: evidence.source.clone(),
        parts,
        notes: Vec::new(),
        figure: figure(&curves),
    }
}

/// Weights over scores, of one query.
fn figure(cases: &[(String, Vec<f64>, Vec<f64>)]) -> Figure {
    Curves::new(
        "The weights of one query over its scores",
        Axis::linear("raw score"),
        Axis::linear("weight"),
    )
    .with_all(cases.iter().enumerate().map(|(index, (name, scores, weights))| {
        let mut pairs: Vec<(f64, f64)> = scores.iter().copied().zip(weights.iter().copied()).collect();
        pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (x, y): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        Series::new(name, &x, &y, Colour::Category(index))
    }))
    .figure()
}
