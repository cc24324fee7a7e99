//! A row a layer, its column `head` empty, and a row a head where heads were scored.

use super::{Difference, Made};
use crate::bilinear::DirectionalityScores;
use crate::checkpoint::{LayerReport, ModelReport, Settings};
use crate::report::table::csv_line;

const COLUMNS: [&str; 19] = [
    "model",
    "family",
    "parameters",
    "stack",
    "layer",
    "module",
    "head",
    "d_model",
    "n_heads",
    "n_kv_heads",
    "head_dim",
    "symmetry",
    "directionality_definition",
    "directionality_excess",
    "gamma",
    "offset",
    "fold_norm",
    "digest",
    "step",
];

const PUBLISHED: [&str; 4] = [
    "published_symmetry",
    "published_directionality_definition",
    "published_directionality_excess",
    "published_faults",
];

const SIGNIFICANCE: [&str; 6] = [
    "symmetry_effect",
    "symmetry_z",
    "directionality_definition_p",
    "directionality_definition_p_corrected",
    "directionality_excess_p",
    "directionality_excess_p_corrected",
];

pub(super) fn head(settings: &Settings, made: &Made) -> String {
    let published = PUBLISHED.into_iter().filter(|_| settings.as_published);
    let significance = SIGNIFICANCE.into_iter().filter(|_| made.simulation.is_some());
    csv_line(
        &COLUMNS
            .into_iter()
            .chain(published)
            .chain(significance)
            .collect::<Vec<_>>(),
    )
}

pub(super) fn model(model: &ModelReport, settings: &Settings, made: &Made, first: bool) -> String {
    let mut text = if first {
        head(settings, made)
    } else {
        String::new()
    };
    for layer in &model.layers {
        let scores = &layer.scores;
        text += &row(
            model,
            layer,
            settings,
            made,
            None,
            scores.symmetry,
            scores.directionality,
        );
        for (h, head) in scores.heads.iter().flatten().enumerate() {
            text += &row(
                model,
                layer,
                settings,
                made,
                Some(h),
                head.symmetry,
                head.directionality,
            );
        }
    }
    text
}

fn row(
    model: &ModelReport,
    layer: &LayerReport,
    settings: &Settings,
    made: &Made,
    head: Option<usize>,
    symmetry: Option<f64>,
    directionality: DirectionalityScores,
) -> String {
    let scores = &layer.scores;
    let mut cells = vec![
        model.name.clone(),
        model.family.clone(),
        model.parameters.to_string(),
        layer.stack.name().to_owned(),
        layer.index.to_string(),
        layer.module.clone(),
        head.map_or_else(String::new, |h| h.to_string()),
        scores.d_model.to_string(),
        scores.n_heads.to_string(),
        scores.n_kv_heads.to_string(),
        scores.head_dim.to_string(),
        number(symmetry),
        number(Some(directionality.definition)),
        number(Some(directionality.excess)),
        settings.gamma.to_string(),
        settings.offset.to_string(),
        layer.folded_norm.is_some().to_string(),
        model.digest.clone(),
        number(model.step),
    ];
    if settings.as_published {
        // The published code scores whole layers only.
        let published = layer.as_published.as_ref().filter(|_| head.is_none());
        let d = published.and_then(|p| p.directionality);
        cells.push(number(published.and_then(|p| p.symmetry)));
        cells.push(number(d.map(|d| d.definition)));
        cells.push(number(d.map(|d| d.excess)));
        cells.push(published.map_or_else(String::new, super::faults));
    }
    if made.simulation.is_some() {
        let tests = layer.significance.as_ref();
        let of_head = head.and_then(|h| tests?.heads.get(h));
        // A whole layer has no test of its directionality.
        let s = if head.is_none() {
            tests.and_then(|t| t.symmetry)
        } else {
            of_head.and_then(|t| t.symmetry)
        };
        let d = of_head.map(|t| [t.directionality.definition, t.directionality.excess]);
        cells.extend([number(s.map(|s| s.effect)), number(s.map(|s| s.z))]);
        for variant in 0..2 {
            cells.extend([
                number(d.map(|d| d[variant].p)),
                number(d.map(|d| d[variant].p_corrected)),
            ]);
        }
    }
    csv_line(&cells)
}

/// A row a layer or head of two checkpoints of one model, in full precision.
pub fn difference(
    difference: &Difference,
    before: &ModelReport,
    after: &ModelReport,
    settings: &Settings,
) -> String {
    const SCORES: [&str; 3] = ["symmetry", "directionality_definition", "directionality_excess"];
    const SIDES: [&str; 3] = ["before", "after", "change"];
    let mut columns: Vec<String> = ["model_before", "model_after", "stack", "layer", "head"]
        .map(String::from)
        .into();
    columns.extend(
        SCORES
            .iter()
            .flat_map(|score| SIDES.map(|side| format!("{score}_{side}"))),
    );
    columns.extend(["gamma", "offset", "fold_norm", "digest_before", "digest_after"].map(String::from));
    let mut text = csv_line(&columns);
    for layer in &difference.layers {
        let mut cells = vec![
            before.name.clone(),
            after.name.clone(),
            layer.stack.name().to_owned(),
            layer.index.to_string(),
            layer.head.map_or_else(String::new, |head| head.to_string()),
        ];
        for [a, b] in [layer.symmetry, layer.definition, layer.excess] {
            cells.extend([a, b, a.zip(b).map(|(a, b)| b - a)].map(number));
        }
        cells.extend([
            settings.gamma.to_string(),
            settings.offset.to_string(),
            settings.fold_norm.to_string(),
            before.digest.clone(),
            after.digest.clone(),
        ]);
        text += &csv_line(&cells);
    }
    text
}

/// In full precision; adding 0 turns −0 into 0.
fn number(value: Option<f64>) -> String {
    value.map_or_else(String::new, |v| (v + 0.0).to_string())
}
