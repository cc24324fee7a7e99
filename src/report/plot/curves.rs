//! Curves over training steps or layers, with bands, alone or as small multiples.

use super::Figure;
use super::axis::Axis;
use super::panel::{BOTTOM, Entry, LEFT, Panel, draw_legend, legend_height};
use super::style::{Colour, Ink, LABEL, SMALL, TITLE, sequential, text_width};
use super::svg::{Anchor, Svg};

/// A line through points, and perhaps a band around it.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    label: String,
    x: Vec<f64>,
    y: Vec<f64>,
    band: Option<(Vec<f64>, Vec<f64>)>,
    colour: Colour,
    dashed: bool,
}

impl Series {
    /// A line through `(x[i], y[i])`; values that are not finite leave a gap. Of two slices of unequal
    /// length the shorter counts.
    pub fn new(label: impl Into<String>, x: &[f64], y: &[f64], colour: Colour) -> Self {
        Self {
            label: label.into(),
            x: x.to_vec(),
            y: y.to_vec(),
            band: None,
            colour,
            dashed: false,
        }
    }

    /// Adds a band from `low` to `high`, such as quartiles, over the same x.
    pub fn with_band(mut self, low: &[f64], high: &[f64]) -> Self {
        self.band = Some((low.to_vec(), high.to_vec()));
        self
    }

    /// Draws the line with dashes, to tell a second arm of an experiment from the first.
    pub fn dashed(mut self) -> Self {
        self.dashed = true;
        self
    }

    fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        self.x.iter().copied().zip(self.y.iter().copied())
    }
}

/// Several series on one pair of axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Curves {
    title: String,
    x: Axis,
    y: Axis,
    series: Vec<Series>,
}

impl Curves {
    /// An empty plot.
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Self {
        Self {
            title: title.into(),
            x,
            y,
            series: Vec::new(),
        }
    }

    /// Adds a series.
    pub fn with(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// Adds a series for each item.
    pub fn with_all(mut self, series: impl IntoIterator<Item = Series>) -> Self {
        self.series.extend(series);
        self
    }

    /// Adds a line for each name, all over the same x, in the colours of their order.
    pub fn with_lines<N: Into<String>, Y: AsRef<[f64]>>(
        self,
        x: &[f64],
        lines: impl IntoIterator<Item = (N, Y)>,
    ) -> Self {
        let series = lines
            .into_iter()
            .enumerate()
            .map(|(index, (name, y))| Series::new(name, x, y.as_ref(), Colour::Category(index)));
        self.with_all(series)
    }

    /// Draws it.
    pub fn figure(&self) -> Figure {
        Grid::new(self.title.clone(), 1)
            .with(Curves {
                title: String::new(),
                ..self.clone()
            })
            .draw(640.0, 360.0)
    }

    fn x_values(&self) -> impl Iterator<Item = f64> {
        // A point whose y cannot be shown must not stretch the x axis.
        self.series
            .iter()
            .flat_map(|s| s.points())
            .filter(|p| self.y.accepts(p.1))
            .map(|p| p.0)
    }

    fn y_values(&self) -> impl Iterator<Item = f64> {
        self.series.iter().flat_map(|series| {
            let band = series.band.iter().flat_map(|(low, high)| low.iter().chain(high));
            series.y.iter().chain(band).copied()
        })
    }

    fn draw_into(&self, panel: &Panel, svg: &mut Svg) {
        for series in &self.series {
            if let Some((low, high)) = &series.band {
                let (low, high) = (panel.places(&series.x, low), panel.places(&series.x, high));
                svg.band(&low, &high, Ink::Data(series.colour));
            }
        }
        let width = if self.series.len() > 12 { 1.2 } else { 2.0 };
        let mut drawn = false;
        for series in &self.series {
            let points = panel.places(&series.x, &series.y);
            let shown = points.iter().filter(|p| p.0.is_finite() && p.1.is_finite());
            drawn |= shown.clone().next().is_some();
            svg.polyline(&points, Ink::Data(series.colour), width, series.dashed);
            // Where points are few they are what was measured, and the line between them is not.
            if points.len() <= 40 && self.series.len() <= 12 {
                for &point in shown {
                    svg.dot(point, 2.5, Ink::Data(series.colour), "");
                }
            }
        }
        if !drawn {
            super::nothing_to_show(svg, panel.centre());
        }
    }
}

/// Several [`Curves`] side by side in one picture, over common ranges of x and y.
///
/// What is labelled alike in several panels has one entry in the common legend.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    title: String,
    columns: usize,
    panels: Vec<Curves>,
}

impl Grid {
    /// An empty grid with so many panels in a row.
    pub fn new(title: impl Into<String>, columns: usize) -> Self {
        Self {
            title: title.into(),
            columns: columns.max(1),
            panels: Vec::new(),
        }
    }

    /// Adds a panel. The axes of the first one are those of all.
    pub fn with(mut self, panel: Curves) -> Self {
        self.panels.push(panel);
        self
    }

    /// Draws it.
    pub fn figure(&self) -> Figure {
        let width = if self.columns == 1 { 640.0 } else { 380.0 };
        self.draw(width, width * 0.68)
    }

    fn draw(&self, cell_width: f64, cell_height: f64) -> Figure {
        const MARGIN: f64 = 14.0;
        const GAP: f64 = 36.0;
        // The last tick label reaches beyond the axis.
        const RIGHT: f64 = 26.0;
        let columns = self.columns.min(self.panels.len()).max(1);
        let rows = self.panels.len().div_ceil(columns).max(1);
        let titled = self.panels.iter().any(|panel| !panel.title.is_empty());
        let head = if titled { 22.0 } else { 0.0 };
        let width = LEFT + RIGHT + columns as f64 * cell_width + (columns - 1) as f64 * GAP;

        // Room for a title that is longer than the panels are wide.
        let canvas = width.max(LEFT + text_width(&self.title, TITLE) * 1.1 + MARGIN);

        let legend = Legend::of(&self.panels);
        let legend_top = if self.title.is_empty() {
            MARGIN
        } else {
            MARGIN + 26.0
        };
        let top = legend_top + legend.height(width - LEFT) + 8.0;
        let row_height = head + cell_height + if rows > 1 { 28.0 } else { 0.0 };
        let height = top + rows as f64 * row_height + BOTTOM;

        let mut svg = Svg::default();
        svg.bold_text(
            (LEFT, MARGIN + 12.0),
            TITLE,
            Anchor::Start,
            Ink::Text,
            &self.title,
        );
        legend.draw(&mut svg, (LEFT, legend_top), width - LEFT);

        let Some(first) = self.panels.first() else {
            super::nothing_to_show(&mut svg, (width / 2.0, height / 2.0));
            return Figure::new(canvas, height, &self.title, svg);
        };
        let x = first.x.fit(
            self.panels.iter().flat_map(Curves::x_values),
            (cell_width / 80.0) as usize,
        );
        let y = first.y.fit(
            self.panels.iter().flat_map(Curves::y_values),
            (cell_height / 50.0) as usize,
        );
        for (i, curves) in self.panels.iter().enumerate() {
            let (row, column) = (i / columns, i % columns);
            let at = (
                LEFT + column as f64 * (cell_width + GAP),
                top + row as f64 * row_height + head,
            );
            let panel = Panel::new(at, (cell_width, cell_height), x.clone(), y.clone());
            let last_of_its_column = i + columns >= self.panels.len();
            panel.draw_axes(
                &mut svg,
                last_of_its_column.then_some(&first.x),
                (column == 0).then_some(&first.y),
            );
            svg.text((at.0, at.1 - 7.0), LABEL, Anchor::Start, Ink::Text, &curves.title);
            curves.draw_into(&panel, &mut svg);
        }
        Figure::new(canvas, height, &self.title, svg)
    }
}

/// What tells the series apart: entries, or a bar where they are the many steps of one order.
enum Legend {
    Entries(Vec<Entry>),
    Bar { first: String, last: String },
}

impl Legend {
    fn of(panels: &[Curves]) -> Self {
        let mut entries: Vec<Entry> = Vec::new();
        for series in panels.iter().flat_map(|panel| &panel.series) {
            let known = entries
                .iter()
                .any(|e| e.label == series.label && e.dashed == series.dashed);
            if !known && !series.label.is_empty() {
                let Series {
                    label,
                    colour,
                    dashed,
                    ..
                } = series;
                entries.push(Entry {
                    label: label.clone(),
                    colour: *colour,
                    dashed: *dashed,
                });
            }
        }
        let ordered = entries
            .iter()
            .all(|entry| matches!(entry.colour, Colour::Ordinal(_)));
        match entries.as_slice() {
            [first, .., last] if ordered && entries.len() > 8 => Self::Bar {
                first: first.label.clone(),
                last: last.label.clone(),
            },
            // A single series is named by the title.
            [_] => Self::Entries(Vec::new()),
            _ => Self::Entries(entries),
        }
    }

    fn height(&self, width: f64) -> f64 {
        match self {
            Self::Entries(entries) => legend_height(entries, width),
            Self::Bar { .. } => 20.0,
        }
    }

    fn draw(&self, svg: &mut Svg, at: (f64, f64), width: f64) {
        match self {
            Self::Entries(entries) => draw_legend(svg, at, width, entries, false),
            Self::Bar { first, last } => {
                const STEPS: usize = 60;
                const STEP: f64 = 3.0;
                let bar = at.0 + text_width(first, SMALL) + 4.0;
                svg.text((at.0, at.1 + 14.0), SMALL, Anchor::Start, Ink::Text, first);
                let pixels: Vec<_> = (0..STEPS)
                    .map(|i| sequential(i as f64 / (STEPS - 1) as f64))
                    .collect();
                let png = super::raster::png(&pixels, STEPS, 1, 1);
                svg.image((bar, at.1 + 4.0), (STEPS as f64 * STEP, 12.0), &png);
                let end = bar + STEPS as f64 * STEP + 8.0;
                svg.text((end, at.1 + 14.0), SMALL, Anchor::Start, Ink::Text, last);
            }
        }
    }
}
