//! The structure paper's figures from scores of checkpoints.

use std::fmt;
use std::str::FromStr;

use crate::bilinear::{HeadScores, LayerScores, Summary};
use crate::checkpoint::{ModelReport, StackSummary};
use crate::report::plot::{Axis, Colour, Curves, Dot, Figure, HeatMap, Limit, Scatter, Series};

/// The score that a figure shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Score {
    /// The symmetry.
    #[default]
    Symmetry,
    /// The directionality behind the paper's tables.
    Excess,
    /// The directionality of the paper's text.
    Definition,
}

impl Score {
    /// Every score.
    pub const ALL: [Self; 3] = [Self::Symmetry, Self::Excess, Self::Definition];

    /// The name by which a user chooses it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Symmetry => "symmetry",
            Self::Excess => "excess",
            Self::Definition => "definition",
        }
    }

    /// What an axis calls it.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Symmetry => "symmetry",
            Self::Excess => "directionality (excess)",
            Self::Definition => "directionality (definition)",
        }
    }

    /// Of a whole layer.
    pub fn of_layer(self, layer: &LayerScores) -> Option<f64> {
        match self {
            Self::Symmetry => layer.symmetry,
            Self::Excess => Some(layer.directionality.excess),
            Self::Definition => Some(layer.directionality.definition),
        }
    }

    /// Of a head.
    pub fn of_head(self, head: &HeadScores) -> Option<f64> {
        match self {
            Self::Symmetry => head.symmetry,
            Self::Excess => Some(head.directionality.excess),
            Self::Definition => Some(head.directionality.definition),
        }
    }

    /// Over the layers of a stack.
    pub fn of_stack(self, stack: &StackSummary) -> Option<Summary> {
        match self {
            Self::Symmetry => stack.symmetry,
            Self::Excess => stack.directionality.excess,
            Self::Definition => stack.directionality.definition,
        }
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Score {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|score| score.name() == name)
            .ok_or_else(|| format!("'{name}' is no score: choose symmetry, excess or definition"))
    }
}

/// Median and quartiles over layers against the number of parameters, one dot a stack of a model (Figure 2).
pub fn size_against(models: &[ModelReport], score: Score) -> Figure {
    let dots = models
        .iter()
        .flat_map(|model| {
            model
                .summary
                .iter()
                .map(move |(stack, summary)| (model, stack, summary))
        })
        .filter_map(|(model, stack, summary)| {
            let Summary { median, q25, q75 } = score.of_stack(summary)?;
            Some(Dot {
                label: model.name.clone(),
                group: stack.name().to_owned(),
                colour: Colour::of_stack(stack.name()),
                x: model.parameters as f64,
                median,
                quartiles: Some((q25, q75)),
            })
        })
        .collect();
    let y = Axis::linear(format!("median {} (bar: quartiles over layers)", score.label()));
    Scatter::new(
        title("against model size", score),
        Axis::log("parameters"),
        y,
        dots,
    )
    .figure()
}

/// The whole-layer score of each layer, and the quartiles over its heads where they were scored.
pub fn by_layer(models: &[ModelReport], score: Score) -> Figure {
    let mut series = Vec::new();
    let mut with_heads = false;
    for (m, model) in models.iter().enumerate() {
        for stack in model.summary.keys() {
            let layers: Vec<_> = model
                .layers
                .iter()
                .filter(|layer| layer.stack == *stack)
                .collect();
            let colour = if models.len() == 1 {
                Colour::of_stack(stack.name())
            } else {
                Colour::Category(m)
            };
            let label = match (models.len(), model.summary.len()) {
                (1, _) => stack.name().to_owned(),
                (_, 1) => model.name.clone(),
                _ => format!("{} {}", model.name, stack.name()),
            };
            let x: Vec<f64> = layers.iter().map(|layer| layer.index as f64).collect();
            let or_gap = |value: Option<f64>| value.unwrap_or(f64::NAN);
            let y: Vec<f64> = layers
                .iter()
                .map(|layer| or_gap(score.of_layer(&layer.scores)))
                .collect();
            series.push(Series::new(label.clone(), &x, &y, colour));
            let heads: Vec<Option<Summary>> = layers
                .iter()
                .map(|layer| layer.scores.over_heads(|head| score.of_head(head)))
                .collect();
            if heads.iter().any(Option::is_some) {
                with_heads = true;
                let of = |part: fn(Summary) -> f64| -> Vec<f64> {
                    heads.iter().map(|s| or_gap(s.map(part))).collect()
                };
                let median = Series::new(format!("{label}, median of heads"), &x, &of(|s| s.median), colour);
                series.push(median.dashed().with_band(&of(|s| s.q25), &of(|s| s.q75)));
            }
        }
    }
    let of_heads = if with_heads {
        " (band: quartiles over heads)"
    } else {
        ""
    };
    let name = match models {
        [model] => format!("by layer, {}", model.name),
        _ => "by layer".to_owned(),
    };
    let y = Axis::linear(format!("{}{of_heads}", score.label()));
    Curves::new(title(&name, score), Axis::integer("layer"), y)
        .with_all(series)
        .figure()
}

/// The score of every head of a model, layers downwards, stack after stack.
pub fn by_head(model: &ModelReport, score: Score) -> Figure {
    let heads = |layer: usize| model.layers[layer].scores.heads.as_deref().unwrap_or_default();
    let columns = (0..model.layers.len())
        .map(|layer| heads(layer).len())
        .max()
        .unwrap_or(0);
    let values: Vec<f64> = (0..model.layers.len())
        .flat_map(|layer| (0..columns).map(move |head| (layer, head)))
        .map(|(layer, head)| {
            heads(layer)
                .get(head)
                .and_then(|head| score.of_head(head))
                .unwrap_or(f64::NAN)
        })
        .collect();
    let names = model.layers.iter().map(|layer| match model.summary.len() {
        1 => layer.index.to_string(),
        _ => format!("{} {}", layer.stack.name(), layer.index),
    });
    HeatMap::new(
        title(&format!("of each head, {}", model.name), score),
        [model.layers.len(), columns],
        &values,
    )
    .with_labels("layer", "head", score.label())
    .with_row_names(names.collect())
    .figure()
}

/// The upper left corner of a layer's `W_qk`, `[n, n]` row by row, its colours reaching to the 99.5 % quantile.
pub fn crop(model: &str, layer: &str, n: usize, values: &[f64]) -> Figure {
    HeatMap::new(
        format!("W_qk of {layer}, {model}: first {n} × {n} entries"),
        [n, n],
        values,
    )
    .with_labels("row (query side)", "column (key side)", "entry of W_qk")
    .with_limit(Limit::Quantile(0.995))
    .figure()
}

/// Median and quartiles over layers of the revisions of a model, against the training steps of each.
pub fn over_steps(revisions: &[(f64, &ModelReport)], score: Score) -> Figure {
    let mut revisions = revisions.to_vec();
    revisions.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut stacks: Vec<_> = revisions
        .iter()
        .flat_map(|(_, model)| model.summary.keys())
        .collect();
    stacks.sort();
    stacks.dedup();
    let series = stacks.into_iter().map(|stack| {
        let x: Vec<f64> = revisions.iter().map(|(step, _)| *step).collect();
        let of = |part: fn(Summary) -> f64| -> Vec<f64> {
            let summary = |model: &ModelReport| model.summary.get(stack).and_then(|s| score.of_stack(s));
            revisions
                .iter()
                .map(|(_, model)| summary(model).map_or(f64::NAN, part))
                .collect()
        };
        Series::new(
            stack.name(),
            &x,
            &of(|s| s.median),
            Colour::of_stack(stack.name()),
        )
        .with_band(&of(|s| s.q25), &of(|s| s.q75))
    });
    let y = Axis::linear(format!("median {} (band: quartiles over layers)", score.label()));
    Curves::new(title("during training", score), Axis::linear("training step"), y)
        .with_all(series)
        .figure()
}

fn title(what: &str, score: Score) -> String {
    let label = score.label();
    let (first, rest) = label.split_at(1);
    format!("{}{rest} {what}", first.to_uppercase())
}
