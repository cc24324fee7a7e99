//! How often a token is context, and how often it is predicted.

use std::collections::BTreeMap;

use rand::RngExt;

use super::matrix::{mean_and_error, moments};
use super::{Check, Outcome, Part, TextEvidence};
use crate::objective::ObjectiveMode;
use crate::random;
use crate::report::plot::{Axis, Colour, Dot, Figure, Scatter};

/// What the claim says.
pub const STATEMENT: &str = "A token that tends to stand early is context more often than it is predicted under autoregressive training, by \
     (N − μ)/(μ − 1); under bidirectional training the ratio is 1.";

/// Sequences in which one token's chance depends on the position.
#[derive(Debug, Clone)]
pub struct Setting {
    /// The chance that token 0 stands at each position.
    pub probabilities: Vec<f64>,
    /// Sequences.
    pub sequences: usize,
    /// Rate of masking, where the token in question is masked at …
    pub rate: f64,
    /// … this rate; the claim takes both to be the same.
    pub own_rate: f64,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            probabilities: (0..32).map(|k| 0.3 * 0.9f64.powi(k)).collect(),
            sequences: 4000,
            rate: 0.15,
            own_rate: 0.15,
        }
    }
}

/// Counts of one token over sequences.
struct Counts {
    /// `Pr[t_k = t]`, from the sequences.
    probabilities: Vec<f64>,
    /// Mean position, counted from 1, and its standard error.
    position: (f64, f64),
    occurrences: usize,
    /// Pairs in which the token is context, and in which it is predicted, counted one by one.
    autoregressive: (f64, f64),
    /// The same with positions masked at random, by sequence.
    masked: Vec<(f64, f64)>,
    /// Share of the token's occurrences that were masked, and of all others.
    masked_shares: (f64, f64),
}

fn count(sequences: &[Vec<u32>], token: u32, rate: f64, own_rate: f64, seed: u64) -> Counts {
    let n = sequences.first().map_or(0, Vec::len);
    let mut rng = random::stream(seed, ["theory", "counting", &token.to_string()]);
    let mut probabilities = vec![0.0; n];
    let (mut positions, mut autoregressive, mut masked) = (Vec::new(), (0.0, 0.0), Vec::new());
    let mut hidden = [[0.0; 2]; 2];
    for sequence in sequences {
        let is = |k: usize| sequence[k] == token;
        let mask: Vec<bool> = (0..n)
            .map(|k| rng.random_bool(if is(k) { own_rate } else { rate }))
            .collect();
        let mut pairs = (0.0, 0.0);
        for query in 0..n {
            let (own, at) = (usize::from(is(query)), usize::from(mask[query]));
            hidden[own][at] += 1.0;
            if is(query) {
                probabilities[query] += 1.0 / sequences.len() as f64;
                positions.push(query as f64 + 1.0);
            }
            for key in (0..n).filter(|&key| key != query) {
                if key < query {
                    autoregressive.0 += f64::from(u8::from(is(key)));
                    autoregressive.1 += f64::from(u8::from(is(query)));
                }
                if mask[query] && !mask[key] {
                    pairs.0 += f64::from(u8::from(is(key)));
                    pairs.1 += f64::from(u8::from(is(query)));
                }
            }
        }
        masked.push(pairs);
    }
    let share = |[kept, hidden]: [f64; 2]| hidden / (kept + hidden);
    Counts {
        probabilities,
        position: mean_and_error(&positions),
        occurrences: positions.len(),
        autoregressive,
        masked,
        masked_shares: (share(hidden[1]), share(hidden[0])),
    }
}

impl Counts {
    fn ratio(&self) -> f64 {
        self.autoregressive.0 / self.autoregressive.1
    }

    fn autoregressive_part(&self, name: &str) -> Part {
        let n = self.probabilities.len() as f64;
        let (position, error) = self.position;
        let expected = ObjectiveMode::autoregressive()
            .expected_counts(&self.probabilities)
            .ratio()
            .unwrap_or(f64::NAN);
        let early = (n + 1.0) / 2.0 - position;
        let bound = 1.0 + 2.0 * early / (position - 1.0);
        Part::new(
            name,
            vec![Check::at_least(
                "how far before the middle the token stands on average, in standard errors",
                early / error,
                4.0,
            )],
            vec![
                Check::at_least(
                    "times as context over times predicted, counted",
                    self.ratio(),
                    1.0,
                ),
                Check::at_most(
                    "relative difference from Σ(N−k)Pr / Σ(k−1)Pr",
                    (self.ratio() / expected - 1.0).abs(),
                    1e-9,
                ),
                Check::at_least(
                    "margin over the bound 1 + 2δ/(μ − 1)",
                    self.ratio() - bound,
                    -1e-9,
                ),
            ],
        )
    }

    fn masked_part(&self, name: &str) -> Part {
        let (own, other) = self.masked_shares;
        let error = (own * (1.0 - own) / self.occurrences.max(1) as f64).sqrt();
        // The ratio of two sums over sequences, and its standard error to first order.
        let (context, predicted): (Vec<f64>, Vec<f64>) = self.masked.iter().copied().unzip();
        let ratio = moments(&context).0 / moments(&predicted).0;
        let residuals: Vec<f64> = self.masked.iter().map(|(c, p)| c - ratio * p).collect();
        let spread = mean_and_error(&residuals).1 / moments(&predicted).0;
        Part::new(
            name,
            vec![Check::at_most(
                "difference of the masked share of the token from that of the others, in standard errors",
                (own - other).abs() / error,
                4.0,
            )],
            vec![Check::at_most(
                "difference of the ratio from 1, in standard errors",
                (ratio - 1.0).abs() / spread,
                4.0,
            )],
        )
    }

    fn dot(&self, label: String, group: &str, colour: usize) -> Dot {
        let n = self.probabilities.len() as f64;
        Dot {
            label,
            group: group.to_owned(),
            colour: Colour::Category(colour),
            x: self.position.0 / n,
            median: self.ratio(),
            quartiles: None,
        }
    }
}

/// On sequences that meet the assumptions.
pub fn synthetic(seed: u64) -> Outcome {
    with(&Setting::default(), seed)
}

/// On sequences of any setting.
pub fn with(setting: &Setting, seed: u64) -> Outcome {
    let mut rng = random::stream(seed, ["theory", "counting", "sequences"]);
    let sequences: Vec<Vec<u32>> = (0..setting.sequences)
        .map(|_| {
            setting
                .probabilities
                .iter()
                .map(|&p| {
                    if rng.random_bool(p) {
                        0
                    } else {
                        rng.random_range(1..10)
                    }
                })
                .collect()
        })
        .collect();
    let counts = count(&sequences, 0, setting.rate, setting.own_rate, seed);
    let n = setting.probabilities.len() as f64;
    let absolute = ObjectiveMode::masked(setting.rate).map_or(f64::NAN, |mode| {
        mode.expected_counts(&counts.probabilities).context
    });
    let counted = counts.masked.iter().map(|m| m.0).sum::<f64>() / counts.masked.len() as f64;
    Outcome {
        statement: STATEMENT,
        data: format!(
            "{} sequences of {n} tokens, one of which stands at position {:.2} on average",
            setting.sequences, counts.position.0
        ),
        parts: vec![
            counts.autoregressive_part("autoregressive"),
            counts.masked_part("bidirectional, masked"),
        ],
        notes: vec![format!(
            "Under masking the token is context {counted:.3} times a sequence; the closed form ρ(1−ρ)(N−1)Σ Pr says \
             {absolute:.3}, the paper's absolute count {:.1}: it carries a factor N too many, which its ratio does not \
             show.",
            n * absolute
        )],
        figure: figure(vec![counts.dot("the token".into(), "synthetic", 0)]),
    }
}

/// How far before the middle the earliest of the most frequent tokens stands, in standard errors.
pub(super) fn earliness(sequences: &[Vec<u32>]) -> f64 {
    let n = sequences.first().map_or(0, Vec::len) as f64;
    let mut positions: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for sequence in sequences {
        for (at, &token) in sequence.iter().enumerate() {
            positions.entry(token).or_default().push(at as f64 + 1.0);
        }
    }
    let mut positions: Vec<Vec<f64>> = positions.into_values().collect();
    positions.sort_by_key(|at| std::cmp::Reverse(at.len()));
    positions
        .iter()
        .take(FREQUENT)
        .map(|at| {
            let (mean, error) = mean_and_error(at);
            ((n + 1.0) / 2.0 - mean) / error
        })
        .fold(f64::NEG_INFINITY, f64::max)
}

/// The most frequent tokens of a text.
const FREQUENT: usize = 12;

/// On text as it is packed for training, and on the openings of its documents.
pub fn on_text(evidence: &TextEvidence) -> Outcome {
    let (mut parts, mut dots) = (Vec::new(), Vec::new());
    let texts = [
        ("packed sequences, as trained on", &evidence.packed),
        ("openings of documents", &evidence.openings),
    ];
    for (index, (name, sequences)) in texts.into_iter().enumerate() {
        // Counting pairs one by one is quadratic in the length; some thousand sequences are plenty.
        let sequences = &sequences[..sequences.len().min(3000)];
        let mut frequency: BTreeMap<u32, usize> = BTreeMap::new();
        for &token in sequences.iter().flatten() {
            *frequency.entry(token).or_default() += 1;
        }
        let mut tokens: Vec<(u32, usize)> = frequency.into_iter().collect();
        tokens.sort_by_key(|&(token, count)| (std::cmp::Reverse(count), token));
        let counted: Vec<(u32, Counts)> = tokens
            .into_iter()
            .take(FREQUENT)
            .map(|(token, _)| (token, count(sequences, token, 0.15, 0.15, 0)))
            .collect();
        let symbol = |token: u32| match evidence.symbols.get(token as usize).map(String::as_str) {
            Some(" ") => "space".to_owned(),
            Some("\n") => "newline".to_owned(),
            Some(symbol) => symbol.to_owned(),
            None => token.to_string(),
        };
        dots.extend(
            counted
                .iter()
                .map(|(token, counts)| counts.dot(symbol(*token), name, index)),
        );
        let earliness = |counts: &Counts| {
            let middle = (counts.probabilities.len() as f64 + 1.0) / 2.0;
            (middle - counts.position.0) / counts.position.1
        };
        let earliest = counted
            .iter()
            .max_by(|(_, a), (_, b)| earliness(a).total_cmp(&earliness(b)));
        if let Some((token, counts)) = earliest {
            let label = format!(
                "{name}: '{}', the earliest of the {FREQUENT} most frequent",
                symbol(*token)
            );
            parts.push(counts.autoregressive_part(&format!("{label}, autoregressive")));
            parts.push(counts.masked_part(&format!("{label}, masked")));
        }
    }
    Outcome {
        statement: STATEMENT,
        data: evidence.source.clone(),
        parts,
        notes: vec![
            "Text that is cut into sequences without regard to documents puts every token everywhere alike: whatever \
             order documents have is gone from the positions."
                .into(),
        ],
        figure: figure(dots),
    }
}

fn figure(dots: Vec<Dot>) -> Figure {
    Scatter::new(
        "Context over prediction under autoregressive training",
        Axis::linear("mean position of the token, of the length"),
        Axis::linear("times as context over times predicted"),
        dots,
    )
    .figure()
}
