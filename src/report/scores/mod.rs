//! Scores of checkpoints, written model by model as each is ready.
//!
//! | [`Format`] | what it holds |
//! | --- | --- |
//! | `table` | a row a layer, for reading on a terminal |
//! | `json` | everything, in the schema of [`Report`](crate::checkpoint::Report) |
//! | `csv` | a row a layer and, where heads were scored, a row a head |
//! | `markdown`, `latex` | a row a stack of a model, as in the structure paper's tables |

mod compare;
mod csv;
mod figures;
mod json;
mod number;
mod paper;
mod terminal;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use crate::bilinear::significance::Simulation;
use crate::checkpoint::{ModelReport, Published, Settings};

pub use compare::{Difference, LayerDifference, difference, steps_table};
pub use csv::difference as difference_csv;
pub use figures::{Score, by_head, by_layer, crop, over_steps, size_against};
pub use terminal::Screen;

/// How scores are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// For reading on a terminal.
    #[default]
    Table,
    /// The whole report.
    Json,
    /// A row a layer and a row a head.
    Csv,
    /// The paper's table in Markdown.
    Markdown,
    /// The paper's table in LaTeX.
    Latex,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 5] = [Self::Table, Self::Json, Self::Csv, Self::Markdown, Self::Latex];

    /// The name by which a user chooses it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Markdown => "markdown",
            Self::Latex => "latex",
        }
    }

    /// The extensions of files that tell their format.
    pub const EXTENSIONS: [&str; 7] = ["txt", "json", "csv", "md", "markdown", "tex", "latex"];

    /// The format that a file of this extension holds, where it tells.
    pub fn of_extension(extension: &str) -> Option<Self> {
        const FORMATS: [Format; 7] = {
            use Format::{Csv, Json, Latex, Markdown, Table};
            [Table, Json, Csv, Markdown, Markdown, Latex, Latex]
        };
        let place = Self::EXTENSIONS
            .iter()
            .position(|known| extension.eq_ignore_ascii_case(known));
        place.map(|place| FORMATS[place])
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|format| format.name() == name)
            .ok_or_else(|| format!("'{name}' is no format: choose table, json, csv, markdown or latex"))
    }
}

/// Writes models one after the other: what [`Writer::model`] gives, in order, and then what
/// [`Writer::finish`] gives, is the report.
#[derive(Debug)]
pub struct Writer {
    format: Format,
    settings: Settings,
    made: Made,
    screen: Screen,
    written: usize,
    /// Whether a norm's gain was folded into any layer so far.
    folded: bool,
}

/// How the scores were computed, beside their [`Settings`].
#[derive(Debug, Clone, PartialEq)]
pub struct Made {
    /// The name of the backend.
    pub backend: String,
    /// The simulation behind the p-values, where there is one.
    pub simulation: Option<Simulation>,
}

impl Writer {
    /// A writer of reports with these settings.
    pub fn new(format: Format, settings: Settings, made: Made, screen: Screen) -> Self {
        Self {
            format,
            settings,
            made,
            screen,
            written: 0,
            folded: false,
        }
    }

    /// The text that adds a model to the report.
    pub fn model(&mut self, model: &ModelReport) -> String {
        let first = self.written == 0;
        self.written += 1;
        self.folded |= model.layers.iter().any(|layer| layer.folded_norm.is_some());
        let (settings, made) = (&self.settings, &self.made);
        match self.format {
            Format::Table => terminal::model(model, settings, made, self.screen, first),
            Format::Json => json::model(model, first),
            Format::Csv => csv::model(model, settings, made, first),
            Format::Markdown => paper::markdown(model, settings, first),
            Format::Latex => paper::latex(model, settings, first),
        }
    }

    /// The text that ends the report; that of a report without models where there were none.
    pub fn finish(self) -> String {
        let (settings, made, empty) = (&self.settings, &self.made, self.written == 0);
        match self.format {
            Format::Table if empty => String::new(),
            Format::Table => terminal::end(settings, made, self.folded),
            Format::Json => json::end(settings, made, empty),
            Format::Csv if empty => csv::head(settings, made),
            Format::Csv => String::new(),
            Format::Markdown => paper::markdown_end(settings, empty, self.folded),
            Format::Latex => paper::latex_end(settings, empty, self.folded),
        }
    }
}

/// The program and its version, as reports name them.
fn program() -> &'static str {
    concat!("wqk ", env!("CARGO_PKG_VERSION"))
}

/// A line that says how scores were made: settings, program and backend.
///
/// `folded` tells whether the gain of a norm was folded into any of them.
pub fn footer(settings: &Settings, made: &Made, folded: bool) -> String {
    format!("{}; {}, {}", describe(settings, folded), program(), made.backend)
}

/// What a reader must know about how the scores were made, in a few words.
fn describe(settings: &Settings, folded: bool) -> String {
    let mut words = vec![format!("γ = {}", settings.gamma)];
    if settings.offset != 0 {
        words.push(format!("rotary offset {}", settings.offset));
    }
    match (settings.fold_norm, folded) {
        (true, true) => words.push("norm gains folded in".into()),
        (true, false) => words.push("no norm gain to fold in".into()),
        (false, _) => {}
    }
    words.join(", ")
}

/// The faults of the published extraction in a few words.
fn faults(published: &Published) -> String {
    let mut words: Vec<&str> = published.faults.iter().map(|fault| fault.describe()).collect();
    words.extend(published.stops.as_deref());
    if words.is_empty() {
        "none".into()
    } else {
        words.join("; ")
    }
}
