//! Whether symmetric error signals make symmetric updates.

use rand::seq::SliceRandom;

use super::matrix::Matrix;
use super::{Check, Evidence, Outcome, Part, TextEvidence};
use crate::bilinear::PairSymmetry;
use crate::objective::masked_pair_share;
use crate::random;
use crate::report::plot::{Axis, Colour, Curves, Figure, Series};

/// What the claim says.
pub const STATEMENT: &str =
    "Where β_ij ≈ β_ji, as bidirectional training is taken to make them, the update of W_qk is symmetric.";

/// Random tokens with errors that are symmetric up to noise.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Positions.
    pub n: usize,
    /// Width.
    pub d: usize,
    /// The size of the asymmetric part of the errors against the symmetric one.
    pub noise: f64,
    /// How many positions are masked, so that they alone ask; `None` for all.
    pub masked: Option<usize>,
    /// Whether `W_k = W_q`.
    pub tied: bool,
    /// Puts other tokens on the key side, as cross-attention does: then the sum is no `Xᵀ B X`.
    pub crossed: bool,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            n: 24,
            d: 16,
            noise: 0.05,
            masked: None,
            tied: true,
            crossed: false,
        }
    }
}

/// The checks that all cases share: whether the errors are symmetric.
fn assumptions(pairs: &PairSymmetry) -> Vec<Check> {
    let value = |value: Option<f64>| value.unwrap_or(f64::NAN);
    vec![
        Check::at_least("Σ β_ij β_ji / Σ β_ij² over pairs", value(pairs.symmetry), 0.9),
        Check::at_least(
            "share of mutual pairs with equal signs",
            value(pairs.same_sign),
            0.9,
        ),
    ]
}

/// What asks, what is asked, and the errors.
struct Draw {
    queries: Matrix,
    keys: Matrix,
    beta: Matrix,
}

fn draw(setting: &Setting, seed: u64) -> Draw {
    let Setting { n, d, noise, .. } = *setting;
    let mut rng = random::stream(seed, ["theory", "symmetry"]);
    let queries = Matrix::normal(n, d, 1.0, &mut rng);
    let other = Matrix::normal(n, d, 1.0, &mut rng);
    let (a, b) = (
        Matrix::normal(n, n, 1.0, &mut rng),
        Matrix::normal(n, n, 1.0, &mut rng),
    );
    let mut positions: Vec<usize> = (0..n).collect();
    positions.shuffle(&mut rng);
    positions.truncate(setting.masked.unwrap_or(n).min(n));
    let beta = Matrix::from_fn(n, n, |i, j| {
        if positions.contains(&i) {
            a.at(i, j) + a.at(j, i) + noise * (b.at(i, j) - b.at(j, i))
        } else {
            0.0
        }
    });
    Draw {
        keys: if setting.crossed { other } else { queries.clone() },
        queries,
        beta,
    }
}

/// On symmetric errors, and on those of masked positions.
pub fn synthetic(seed: u64) -> Outcome {
    let full = Setting::default();
    with(
        &[
            ("all positions ask, W_k = W_q", full),
            ("all positions ask, W_k ≠ W_q", Setting { tied: false, ..full }),
            (
                "4 of 24 positions masked",
                Setting {
                    masked: Some(4),
                    ..full
                },
            ),
        ],
        seed,
    )
}

/// On any cases.
pub fn with(cases: &[(&str, Setting)], seed: u64) -> Outcome {
    let (mut parts, mut notes) = (Vec::new(), Vec::new());
    for (name, setting) in cases {
        let Draw { queries, keys, beta } = draw(setting, seed);
        let pairs = PairSymmetry::of(beta.values(), setting.n);
        let g = queries.transposed().times(&beta.times(&keys));
        parts.push(Part::new(
            format!("{name}: G"),
            assumptions(&pairs),
            vec![Check::at_least(
                "symmetry of G = Σ β_ij x_i x_jᵀ",
                g.symmetry(),
                0.85,
            )],
        ));
        let mut rng = random::stream(seed, ["theory", "symmetry", "weights"]);
        let r = (setting.d / 4).max(1);
        let w_q = Matrix::normal(setting.d, r, 1.0, &mut rng);
        let w_k = if setting.tied {
            w_q.clone()
        } else {
            Matrix::normal(setting.d, r, 1.0, &mut rng)
        };
        parts.push(update_part(
            format!("{name}: update through W_q and W_k"),
            &pairs,
            &w_q,
            &w_k,
            &g,
        ));
        if let Some(masked) = setting.masked {
            notes.push(format!(
                "{masked} of {} positions masked: {:.4} of the pairs that carry an error do so both ways; \
                 (m − 1)/(N − 1) is {:.4}.",
                setting.n,
                pairs.mutual.unwrap_or(f64::NAN),
                masked_pair_share(masked, setting.n).unwrap_or(f64::NAN)
            ));
        }
    }
    Outcome {
        statement: STATEMENT,
        data: "random tokens with errors that are symmetric up to a twentieth".to_owned(),
        parts,
        notes,
        figure: noise_figure(seed),
    }
}

/// The update of `W_qk` that descent on its factors makes, which needs more than symmetric errors.
fn update_part(name: String, pairs: &PairSymmetry, w_q: &Matrix, w_k: &Matrix, g: &Matrix) -> Part {
    let gram = |w: &Matrix| w.times(&w.transposed());
    let (q, k) = (gram(w_q), gram(w_k));
    let mut needs = assumptions(pairs);
    needs.push(Check::at_most(
        "distance of W_q W_qᵀ from W_k W_kᵀ, of the norm of the latter",
        q.relative_error(&k),
        0.05,
    ));
    let update = q.times(g).plus(&g.times(&k), 1.0);
    Part::new(
        name,
        needs,
        vec![Check::at_least(
            "symmetry of W_q W_qᵀ G + G W_k W_kᵀ",
            update.symmetry(),
            0.85,
        )],
    )
}

/// Symmetry of errors, gradient and update over the size of the noise.
fn noise_figure(seed: u64) -> Figure {
    let noises: Vec<f64> = (0..=20).map(|i| f64::from(i) * 0.1).collect();
    let mut lines = [Vec::new(), Vec::new(), Vec::new()];
    for &noise in &noises {
        let setting = Setting {
            noise,
            ..Setting::default()
        };
        let Draw { queries, keys, beta } = draw(&setting, seed);
        let g = queries.transposed().times(&beta.times(&keys));
        let mut rng = random::stream(seed, ["theory", "symmetry", "weights"]);
        let gram = |w: Matrix| w.times(&w.transposed());
        let q = gram(Matrix::normal(setting.d, setting.d / 4, 1.0, &mut rng));
        let k = gram(Matrix::normal(setting.d, setting.d / 4, 1.0, &mut rng));
        let values = [
            beta.symmetry(),
            g.symmetry(),
            q.times(&g).plus(&g.times(&k), 1.0).symmetry(),
        ];
        for (line, value) in lines.iter_mut().zip(values) {
            line.push(value);
        }
    }
    let names = ["β", "G = Xᵀ B X", "update through W_q ≠ W_k"];
    Curves::new(
        "Symmetry of errors, gradient and update",
        Axis::linear("asymmetric part of the errors, of the symmetric one"),
        Axis::linear("symmetry"),
    )
    .with_lines(&noises, names.into_iter().zip(lines))
    .figure()
}

/// On the layers of the trained encoder, and of the decoder for comparison.
pub fn on_text(evidence: &TextEvidence) -> Outcome {
    let (mut parts, mut notes) = (Vec::new(), Vec::new());
    let mut lines: Vec<(String, Vec<f64>)> = Vec::new();
    for model in &evidence.models {
        let mut columns = [Vec::new(), Vec::new(), Vec::new()];
        for layer in &model.layers {
            let pairs = layer.pairs();
            let mut g = Matrix::zeros(layer.d_model(), layer.d_model());
            (0..layer.heads.n_heads()).for_each(|head| g.add(&layer.gradient(head), 1.0));
            let (change, learned) = layer.learned();
            // A decoder's errors cannot be symmetric, and the theorem is not about them.
            if model.is_encoder() {
                parts.push(Part::new(
                    format!("{}: G", layer.module),
                    assumptions(&pairs),
                    vec![Check::at_least("symmetry of G", g.symmetry(), 0.85)],
                ));
                let (w_q, w_k) = layer.head_weights(0);
                parts.push(update_part(
                    format!("{}: update of head 0 through W_q and W_k", layer.module),
                    &pairs,
                    &w_q,
                    &w_k,
                    &layer.gradient(0),
                ));
            }
            notes.push(format!(
                "{}: pairs that carry an error both ways {}, symmetry of β {:+.3}, of G {:+.3}, of {learned} {:+.3}.",
                layer.module,
                pairs.mutual.map_or("none".into(), |share| format!("{:.1} %", 100.0 * share)),
                pairs.symmetry.unwrap_or(f64::NAN),
                g.symmetry(),
                change.symmetry()
            ));
            for (column, value) in columns.iter_mut().zip([
                pairs.symmetry.unwrap_or(f64::NAN),
                g.symmetry(),
                change.symmetry(),
            ]) {
                column.push(value);
            }
        }
        let known = model.layers.iter().all(|layer| layer.start.is_some());
        let change = if known { "W_qk − W_qk(0)" } else { "W_qk" };
        for (what, column) in ["β", "G", change].iter().zip(columns) {
            lines.push((format!("{}, {what}", model.name), column));
        }
        notes.extend(share_note(model));
    }
    if parts.is_empty() {
        parts.push(Part::without("encoder"));
    }
    let series = lines.into_iter().enumerate().map(|(index, (name, values))| {
        let at: Vec<f64> = (0..values.len()).map(|l| l as f64).collect();
        let series = Series::new(name, &at, &values, Colour::Category(index % 3));
        if index < 3 { series } else { series.dashed() }
    });
    Outcome {
        statement: STATEMENT,
        data: evidence.source.clone(),
        parts,
        notes,
        figure: Curves::new(
            "Symmetry by layer",
            Axis::integer("layer"),
            Axis::linear("symmetry"),
        )
        .with_all(series)
        .figure(),
    }
}

/// The share of mutual pairs in the last layer against its closed form, where positions were masked.
fn share_note(model: &Evidence) -> Option<String> {
    let pairs = model.layers.last()?.pairs();
    let (n, sets) = (model.batch.n, model.predicting());
    let (mutual, all) = sets
        .iter()
        .map(|set| (set.len(), n))
        .fold((0.0, 0.0), |(mutual, all), (m, n)| {
            let pairs = (m * (n - 1)) as f64;
            (
                mutual + pairs * masked_pair_share(m, n).unwrap_or(0.0),
                all + pairs,
            )
        });
    model.is_encoder().then(|| {
        format!(
            "encoder, last layer: {:.4} of the pairs that carry an error do so both ways; by the masked positions of this \
             batch (m − 1)/(N − 1) comes to {:.4}.",
            pairs.mutual.unwrap_or(f64::NAN),
            mutual / all
        )
    })
}
