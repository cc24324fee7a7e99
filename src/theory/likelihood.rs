//! Likelihood and pseudo-likelihood, by the conditioning graph.

use rand::RngExt;

use super::observe::LARGEST_VOCABULARY;
use super::{Check, Outcome, Part, TextEvidence};
use crate::objective::{ConditioningGraph, ObjectiveMode};
use crate::random;
use crate::report::plot::{Axis, Colour, Curves, Series};

/// What the claim says.
pub const STATEMENT: &str = "Where the graph of conditioning sets has no cycle, the product of the conditionals is a normalised likelihood; \
     with cycles it need not be.";

/// Random conditional laws over few tokens.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Positions.
    pub n: usize,
    /// Different tokens.
    pub vocabulary: usize,
    /// What the probabilities of one conditional law sum to; laws sum to 1.
    pub mass: f64,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            n: 4,
            vocabulary: 3,
            mass: 1.0,
        }
    }
}

/// The sum over all sequences of the product of their conditionals, each drawn at random for every context.
fn total(graph: &ConditioningGraph, setting: &Setting, seed: u64) -> f64 {
    let (n, v) = (graph.n(), setting.vocabulary);
    let tables: Vec<Vec<f64>> = graph
        .sets()
        .iter()
        .enumerate()
        .map(|(i, set)| {
            let mut rng = random::stream(seed, ["theory", "likelihood", &i.to_string()]);
            (0..v.pow(set.len() as u32))
                .flat_map(|_| {
                    let raw: Vec<f64> = (0..v).map(|_| rng.random_range(0.05..1.0)).collect();
                    let sum = raw.iter().sum::<f64>() / setting.mass;
                    raw.into_iter().map(move |p| p / sum).collect::<Vec<_>>()
                })
                .collect()
        })
        .collect();
    (0..v.pow(n as u32))
        .map(|code| {
            let token = |i: usize| code / v.pow(i as u32) % v;
            graph
                .sets()
                .iter()
                .zip(&tables)
                .enumerate()
                .map(|(i, (set, table))| {
                    let context = set.iter().fold(0, |context, &j| context * v + token(j));
                    table[context * v + token(i)]
                })
                .product::<f64>()
        })
        .sum()
}

fn part(name: &str, graph: &ConditioningGraph, setting: &Setting, seed: u64) -> Part {
    judged(name, graph.is_acyclic(), total(graph, setting, seed), 1e-9)
}

fn judged(name: &str, acyclic: bool, total: f64, tolerance: f64) -> Part {
    Part::new(
        name,
        vec![Check::at_least(
            "no cycle in the conditioning graph (1 yes, 0 no)",
            f64::from(u8::from(acyclic)),
            1.0,
        )],
        vec![Check::at_most(
            "difference from 1 of the sum over all sequences of the product",
            (total - 1.0).abs(),
            tolerance,
        )],
    )
}

/// On random conditional laws, summed over every sequence.
pub fn synthetic(seed: u64) -> Outcome {
    with(Setting::default(), seed)
}

/// On random conditional laws of any setting.
pub fn with(setting: Setting, seed: u64) -> Outcome {
    let n = setting.n;
    let mut modes: Vec<(String, ConditioningGraph)> = vec![
        (
            "autoregressive".into(),
            ObjectiveMode::autoregressive().conditioning_graph(n),
        ),
        (
            "autoregressive in another order".into(),
            ConditioningGraph::new((0..n).map(|i| (i + 1..n).collect()).collect()),
        ),
        (
            "all tokens from all others (masked, pseudo-likelihood)".into(),
            ObjectiveMode::pseudo_likelihood().conditioning_graph(n),
        ),
    ];
    // A graph with one short cycle: two tokens from each other, the rest in order.
    let mut sets: Vec<Vec<usize>> = (0..n).map(|i| (0..i).collect()).collect();
    if let Some(first) = sets.first_mut() {
        first.push(1);
    }
    modes.push((
        "in order, but for one cycle of two".into(),
        ConditioningGraph::new(sets),
    ));
    let parts = modes
        .iter()
        .map(|(name, graph)| part(name, graph, &setting, seed))
        .collect();
    let lengths: Vec<usize> = (1..=n).collect();
    let at: Vec<f64> = lengths.iter().map(|&n| n as f64).collect();
    let line = |mode: ObjectiveMode| -> Vec<f64> {
        let sum = |&n: &usize| total(&mode.conditioning_graph(n), &setting, seed);
        lengths.iter().map(sum).collect()
    };
    let lines = [
        ("autoregressive", line(ObjectiveMode::autoregressive())),
        ("all from all others", line(ObjectiveMode::pseudo_likelihood())),
    ];
    Outcome {
        statement: STATEMENT,
        data: format!(
            "random conditional laws of {n} tokens out of {}",
            setting.vocabulary
        ),
        parts,
        notes: Vec::new(),
        figure: Curves::new(
            "The sum of the product of conditionals over all sequences",
            Axis::integer("tokens"),
            Axis::linear("sum"),
        )
        .with_lines(&at, lines)
        .figure(),
    }
}

/// On the conditionals of the trained models, for two neighbouring tokens of a real sequence.
pub fn on_text(evidence: &TextEvidence) -> Outcome {
    let mut curves = Curves::new(
        "Two neighbouring tokens, the product of their conditionals summed over the second",
        Axis::integer("first token, most likely first"),
        Axis::log("sum over the second token"),
    );
    let mut parts = Vec::new();
    for (index, model) in evidence.models.iter().enumerate() {
        if model.pair_sums.is_empty() {
            let size = model.vocabulary as f64;
            let few = Check::at_most(
                "tokens, whose pairs are all summed",
                size,
                LARGEST_VOCABULARY as f64,
            );
            let name = format!("{}: two tokens, which are too many to try", model.name);
            parts.push(Part::new(name, vec![few], Vec::new()));
            continue;
        }
        let total: f64 = model.pair_sums.iter().sum();
        parts.push(judged(
            &format!(
                "{}: two tokens, all {} × {} of them",
                model.name,
                model.pair_sums.len(),
                model.pair_sums.len()
            ),
            model.objective.is_normalised(),
            total,
            // Probabilities are f32, and some thousand of them are added.
            1e-4,
        ));
        let mut sums = model.pair_sums.clone();
        sums.sort_by(|a, b| b.total_cmp(a));
        let at: Vec<f64> = (1..=sums.len()).map(|i| i as f64).collect();
        curves = curves.with(Series::new(
            format!("{}, total {total:.4}", model.name),
            &at,
            &sums,
            Colour::Category(index),
        ));
    }
    Outcome {
        statement: STATEMENT,
        data: evidence.source.clone(),
        parts,
        notes: Vec::new(),
        figure: curves.figure(),
    }
}
