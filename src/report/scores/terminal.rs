//! Scores for reading on a terminal: a row a layer, its heads below, what they come to at the end.
//!
//! A stack of many layers is cut in the middle on a terminal, where the row of blocks above the table shows
//! the course of all of them; a pipe or a file gets every row.

use super::number::{quantity, score, signed, sparkline, spread};
use super::{Made, footer};
use crate::bilinear::significance::Simulation;
use crate::checkpoint::{LayerReport, ModelReport, Settings};
use crate::report::table::{Align, Table, visible};

/// Where the table is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Screen {
    /// Characters in a line.
    pub width: usize,
    /// Whether long stacks are cut in the middle.
    pub cut: bool,
    /// Whether headings are set in bold by escape codes.
    pub bold: bool,
}

impl Default for Screen {
    /// A file: 100 characters wide, with every row, without escape codes.
    fn default() -> Self {
        Self {
            width: 100,
            cut: false,
            bold: false,
        }
    }
}

impl Screen {
    fn heading(self, text: &str) -> String {
        if self.bold {
            format!("\x1b[1m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

/// Rows of a stack that a terminal shows before it cuts, and those left at each end when it does.
const MOST_ROWS: usize = 40;
const KEPT_ROWS: usize = 12;

pub(super) fn model(
    model: &ModelReport,
    settings: &Settings,
    made: &Made,
    screen: Screen,
    first: bool,
) -> String {
    let mut text = if first { String::new() } else { "\n".into() };
    let parameters = quantity(model.parameters);
    let digest = &model.digest[..model.digest.len().min(12)];
    text += &screen.heading(&visible(&model.name));
    text += &format!(
        " · {} · {parameters} parameters · weights {digest}\n",
        visible(&model.family)
    );
    for note in &model.notes {
        text += &format!("note: {}\n", visible(note));
    }
    for (stack, summary) in &model.summary {
        let layers: Vec<&LayerReport> = model
            .layers
            .iter()
            .filter(|layer| layer.stack == *stack)
            .collect();
        let Some(first) = layers.first() else { continue };
        text += &format!("\n{}: {}\n", screen.heading(stack.name()), shape(&layers));
        let symmetry: Vec<f64> = layers.iter().filter_map(|layer| layer.scores.symmetry).collect();
        if symmetry.len() > 3 {
            let low = symmetry.iter().copied().fold(f64::INFINITY, f64::min);
            let high = symmetry.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let blocks = sparkline(&symmetry, screen.width.saturating_sub(44));
            text += &format!(
                "symmetry by layer {blocks} {} to {}\n",
                score(Some(low)),
                score(Some(high))
            );
        }
        let with_heads = first.scores.heads.is_some();
        let mut table = layer_table(with_heads, settings.as_published);
        for layer in &layers {
            table.push(layer_row(layer, settings.as_published));
        }
        let mut lines = table.text_lines();
        let head: Vec<String> = lines.drain(..2).collect();
        text += &format!("{}\n{}\n", screen.heading(&head[0]), head[1]);
        text += &cut(&lines, 1, screen);
        let over = if layers.len() == 1 {
            "1 layer".into()
        } else {
            format!("{} layers", layers.len())
        };
        text += &format!(
            "{}\n  symmetry {}\n  directionality (excess) {}\n  directionality (definition) {}\n",
            screen.heading(&format!("median [quartiles] over {over}")),
            spread(summary.symmetry),
            spread(summary.directionality.excess),
            spread(summary.directionality.definition),
        );
        if with_heads {
            let head = |layer: &LayerReport, h: usize| {
                layer
                    .scores
                    .heads
                    .as_ref()
                    .and_then(|heads| heads.get(h).copied())
            };
            let symmetry =
                |layer: &LayerReport, h: usize| score(head(layer, h).and_then(|head| head.symmetry));
            text += &head_rows("symmetry of each head", &layers, symmetry, screen);
            let excess =
                |layer: &LayerReport, h: usize| score(head(layer, h).map(|head| head.directionality.excess));
            text += &head_rows("directionality (excess) of each head", &layers, excess, screen);
        }
        if let Some(simulation) = &made.simulation {
            text += &significance(&layers, simulation, screen);
        }
    }
    text
}

pub(super) fn end(settings: &Settings, made: &Made, folded: bool) -> String {
    format!("\n{}\n", footer(settings, made, folded))
}

/// The layers of a stack in words, by their common shape.
fn shape(layers: &[&LayerReport]) -> String {
    let range = |of: fn(&LayerReport) -> usize| {
        let values = || layers.iter().map(|layer| of(layer));
        let (low, high) = (values().min().unwrap_or(0), values().max().unwrap_or(0));
        if low == high {
            low.to_string()
        } else {
            format!("{low} to {high}")
        }
    };
    let keys = if layers
        .iter()
        .any(|layer| layer.scores.n_kv_heads != layer.scores.n_heads)
    {
        format!(
            " on {}",
            counted(range(|layer| layer.scores.n_kv_heads), "key head")
        )
    } else {
        String::new()
    };
    let repeats = match layers.iter().map(|layer| layer.repeats).max() {
        Some(n) if n > 1 => format!(", applied {n} times"),
        _ => String::new(),
    };
    format!(
        "{} of width {}, {}{keys} of {}{repeats}",
        if layers.len() == 1 {
            "1 layer".to_owned()
        } else {
            format!("{} layers", layers.len())
        },
        range(|layer| layer.scores.d_model),
        counted(range(|layer| layer.scores.n_heads), "head"),
        range(|layer| layer.scores.head_dim),
    )
}

/// `1 head`, `6 heads`.
fn counted(number: String, what: &str) -> String {
    let plural = if number == "1" { "" } else { "s" };
    format!("{number} {what}{plural}")
}

fn layer_table(with_heads: bool, as_published: bool) -> Table {
    let mut columns = vec![
        ("layer", Align::Right),
        ("symmetry", Align::Right),
        ("d (excess)", Align::Right),
        ("d (definition)", Align::Right),
    ];
    if with_heads {
        columns.extend([
            ("heads: symmetry", Align::Right),
            ("heads: d (excess)", Align::Right),
        ]);
    }
    if as_published {
        columns.extend([
            ("as published: symmetry", Align::Right),
            ("as published: d (excess)", Align::Right),
            ("its faults", Align::Left),
        ]);
    }
    Table::new(columns)
}

fn layer_row(layer: &LayerReport, as_published: bool) -> Vec<String> {
    let scores = &layer.scores;
    let mut cells = vec![
        layer.index.to_string(),
        score(scores.symmetry),
        score(Some(scores.directionality.excess)),
        score(Some(scores.directionality.definition)),
    ];
    if scores.heads.is_some() {
        cells.push(spread(scores.over_heads(|head| head.symmetry)));
        cells.push(spread(scores.over_heads(|head| Some(head.directionality.excess))));
    }
    if as_published {
        let published = layer.as_published.as_ref();
        cells.push(score(published.and_then(|p| p.symmetry)));
        cells.push(score(published.and_then(|p| p.directionality).map(|d| d.excess)));
        cells.push(published.map_or_else(String::new, super::faults));
    }
    cells
}

/// The tests of a stack, in words and numbers.
fn significance(layers: &[&LayerReport], simulation: &Simulation, screen: Screen) -> String {
    let of_head = |layer: &LayerReport, h: usize| {
        layer
            .significance
            .as_ref()
            .and_then(|tests| tests.heads.get(h).cloned())
    };
    let z = |layer: &LayerReport, h: usize| {
        signed(of_head(layer, h).and_then(|test| test.symmetry).map(|s| s.z), 1)
    };
    let p = |layer: &LayerReport, h: usize| {
        let Some(test) = of_head(layer, h).map(|test| test.directionality.excess) else {
            return "–".into();
        };
        // No draw lay as far: the p-value is below what so many draws can tell.
        let bound = if test.p <= simulation.floor() * 1.5 {
            "<"
        } else {
            ""
        };
        format!("{bound}{:.3}", test.p_corrected)
    };
    let note = format!(
        "p by {} draws of seed {}, whose floor is 1/{} = {:.2e} before the correction; < marks it",
        simulation.draws,
        simulation.seed,
        simulation.draws + 1,
        simulation.floor()
    );
    let of_layers: Vec<String> = layers
        .iter()
        .filter_map(|layer| Some((layer.index, layer.significance.as_ref()?.symmetry?)))
        .map(|(index, s)| {
            format!(
                "{index:>5}  {}  {:>6}",
                score(Some(s.effect)),
                signed(Some(s.z), 1)
            )
        })
        .collect();
    format!(
        "\n{}\n{}{}{}{note}\n",
        screen.heading("layer: symmetry above 1/width, and that in standard deviations at random (√2/width)"),
        cut(&of_layers, 1, screen),
        head_rows(
            "symmetry of each head, in standard deviations above random",
            layers,
            z,
            screen
        ),
        head_rows(
            "p of each head's directionality (excess), Holm's correction over the layer",
            layers,
            p,
            screen
        ),
    )
}

/// Each head of each layer, in as many lines a layer as the width needs.
fn head_rows(
    title: &str,
    layers: &[&LayerReport],
    cell: impl Fn(&LayerReport, usize) -> String,
    screen: Screen,
) -> String {
    const LEFT: usize = 7;
    let texts: Vec<Vec<String>> = layers
        .iter()
        .map(|layer| (0..layer.scores.n_heads).map(|head| cell(layer, head)).collect())
        .collect();
    let width = texts
        .iter()
        .flatten()
        .map(|text| text.chars().count())
        .max()
        .unwrap_or(0)
        .max(3)
        + 1;
    let per_line = (screen.width.saturating_sub(LEFT) / width).max(4);
    let most = texts.iter().map(Vec::len).max().unwrap_or(0);
    let lines_a_layer = most.div_ceil(per_line).max(1);
    let mut lines = Vec::new();
    for (layer, texts) in layers.iter().zip(&texts) {
        for (i, chunk) in texts.chunks(per_line).enumerate() {
            let left = if i == 0 {
                layer.index.to_string()
            } else {
                String::new()
            };
            let cells: String = chunk.iter().map(|text| format!("{text:>width$}")).collect();
            lines.push(format!("{left:>5}  {cells}"));
        }
    }
    let numbers: String = (0..most.min(per_line)).map(|h| format!("{h:>width$}")).collect();
    let wrapped = if lines_a_layer > 1 {
        format!(", {per_line} in a line")
    } else {
        String::new()
    };
    format!(
        "\n{}{wrapped}\n{}\n{}",
        screen.heading(title),
        screen.heading(&format!("layer  {numbers}")),
        cut(&lines, lines_a_layer, screen)
    )
}

/// All lines, or the first and last ones with a word about those between; whole layers in any case.
fn cut(lines: &[String], lines_a_layer: usize, screen: Screen) -> String {
    let joined = |lines: &[String]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    if !screen.cut || lines.len() <= MOST_ROWS {
        return joined(lines);
    }
    let kept = KEPT_ROWS.div_ceil(lines_a_layer) * lines_a_layer;
    let hidden = lines.len().saturating_sub(2 * kept) / lines_a_layer;
    if hidden == 0 {
        return joined(lines);
    }
    format!(
        "{}    ⋮  {hidden} more layers: all of them with -o FILE, --format csv, or through a pipe\n{}",
        joined(&lines[..kept]),
        joined(&lines[lines.len() - kept..])
    )
}
