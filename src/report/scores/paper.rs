//! The structure paper's tables: median and interquartile range over layers, a row a stack of a model.
//!
//! As there, `m ± [a, b]` means the median `m`, the 25 % quantile `m − a` and the 75 % quantile `m + b`.

use super::number::quantity;
use super::{describe, program};
use crate::bilinear::Summary;
use crate::checkpoint::{ModelReport, Settings};
use crate::report::table::{Align, Table};

fn table() -> Table {
    Table::new([
        ("Model", Align::Left),
        ("Stack", Align::Left),
        ("Parameters", Align::Right),
        ("Layers", Align::Right),
        ("Symmetry", Align::Right),
        ("Directionality (excess)", Align::Right),
        ("Directionality (definition)", Align::Right),
    ])
}

fn rows(model: &ModelReport) -> Table {
    let mut table = table();
    for (stack, summary) in &model.summary {
        table.push([
            model.name.clone(),
            stack.name().to_owned(),
            quantity(model.parameters),
            summary.layers.to_string(),
            spread(summary.symmetry),
            spread(summary.directionality.excess),
            spread(summary.directionality.definition),
        ]);
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
    if text == "-0.00" {
        "0.00".into()
    } else {
        text.replace('-', "−")
    }
}

fn caption(settings: &Settings) -> String {
    format!(
        "Whole-layer scores: median ± [median − q25, q75 − median] over layers; {}; {}.",
        describe(settings),
        program()
    )
}

pub(super) fn markdown(model: &ModelReport, first: bool) -> String {
    let rows = rows(model);
    if first {
        rows.to_markdown()
    } else {
        rows.markdown_rows()
    }
}

pub(super) fn markdown_end(settings: &Settings, empty: bool) -> String {
    let head = if empty {
        table().to_markdown()
    } else {
        String::new()
    };
    format!("{head}\n{}\n", caption(settings))
}

pub(super) fn latex(model: &ModelReport, first: bool) -> String {
    let rows = rows(model);
    if first {
        rows.latex_head() + &rows.latex_rows()
    } else {
        rows.latex_rows()
    }
}

pub(super) fn latex_end(settings: &Settings, empty: bool) -> String {
    let head = if empty {
        table().latex_head()
    } else {
        String::new()
    };
    format!("{head}{}% {}\n", table().latex_foot(), caption(settings))
}
