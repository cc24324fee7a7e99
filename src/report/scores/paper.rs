//! The structure paper's tables: median and interquartile range over layers, a row a stack of a model.
//!
//! As there, `m ± [a, b]` means the median `m`, the 25 % quantile `m − a` and the 75 % quantile `m + b`.

use super::number::quantity;
use super::{describe, program};
use crate::bilinear::Summary;
use crate::checkpoint::{ModelReport, Settings};
use crate::report::table::{Align, Table};

fn table(heads: bool) -> Table {
    let of_heads = [
        ("Symmetry of heads", Align::Right),
        ("Directionality (excess) of heads", Align::Right),
    ];
    let columns = [
        ("Model", Align::Left),
        ("Stack", Align::Left),
        ("Parameters", Align::Right),
        ("Layers", Align::Right),
        ("Symmetry", Align::Right),
        ("Directionality (excess)", Align::Right),
        ("Directionality (definition)", Align::Right),
    ];
    Table::new(columns.into_iter().chain(of_heads.into_iter().filter(|_| heads)))
}

fn rows(model: &ModelReport, settings: &Settings) -> Table {
    let mut table = table(settings.per_head);
    for (stack, summary) in &model.summary {
        let heads = || {
            let layers = model.layers.iter().filter(|layer| layer.stack == *stack);
            layers.flat_map(|layer| layer.scores.heads.iter().flatten())
        };
        let of_heads = [
            spread(Summary::of(heads().filter_map(|head| head.symmetry))),
            spread(Summary::of(heads().map(|head| head.directionality.excess))),
        ];
        let cells = [
            model.name.clone(),
            stack.name().to_owned(),
            quantity(model.parameters),
            summary.layers.to_string(),
            spread(summary.symmetry),
            spread(summary.directionality.excess),
            spread(summary.directionality.definition),
        ];
        table.push(
            cells
                .into_iter()
                .chain(of_heads.into_iter().filter(|_| settings.per_head)),
        );
    }
    table
}

fn spread(summary: Option<Summary>) -> String {
    let Some(Summary { median, q25, q75 }) = summary else {
        return "–".into();
    };
    // As rounded, or the quartile that a reader computes from the two would be off by one in the last place.
    format!(
        "{} ± [{}, {}]",
        number(median),
        number(median - q25),
        number(q75 - median)
    )
}

fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    if text == "-0.00" { "0.00".into() } else { text }
}

fn caption(settings: &Settings, folded: bool) -> String {
    let heads = if settings.per_head {
        ", of heads over all heads of all layers"
    } else {
        ""
    };
    format!(
        "Whole-layer scores: median ± [median - q25, q75 - median] over layers{heads}; {}; {}.",
        describe(settings, folded),
        program()
    )
}

pub(super) fn markdown(model: &ModelReport, settings: &Settings, first: bool) -> String {
    let rows = rows(model, settings);
    if first {
        rows.to_markdown()
    } else {
        rows.markdown_rows()
    }
}

pub(super) fn markdown_end(settings: &Settings, empty: bool, folded: bool) -> String {
    let head = if empty {
        table(settings.per_head).to_markdown()
    } else {
        String::new()
    };
    format!("{head}\n{}\n", caption(settings, folded))
}

pub(super) fn latex(model: &ModelReport, settings: &Settings, first: bool) -> String {
    let rows = rows(model, settings);
    if first {
        rows.latex_head() + &rows.latex_rows()
    } else {
        rows.latex_rows()
    }
}

pub(super) fn latex_end(settings: &Settings, empty: bool, folded: bool) -> String {
    let head = if empty {
        table(settings.per_head).latex_head()
    } else {
        String::new()
    };
    format!(
        "{head}{}% {}\n",
        table(settings.per_head).latex_foot(),
        caption(settings, folded)
    )
}
