//! A matrix as a picture: scores of layers × heads, or a crop of `W_qk`.

use super::Figure;
use super::panel::LEFT;
use super::style::{Ink, LABEL, SMALL, TITLE, diverging, text_width};
use super::svg::{Anchor, Svg};

/// How far the colours of a [`HeatMap`] reach, on both sides of 0 alike.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    /// To the largest absolute value.
    Max,
    /// To this quantile of the absolute values; what lies beyond has the last colour, and the scale says so.
    Quantile(f64),
    /// To this value.
    Value(f64),
}

/// A matrix of signed values, blue below 0 and red above.
#[derive(Debug, Clone, PartialEq)]
pub struct HeatMap {
    title: String,
    rows: String,
    columns: String,
    value: String,
    shape: [usize; 2],
    values: Vec<f64>,
    limit: Limit,
    names: Option<Vec<String>>,
}

/// What is not there: a head that a smaller layer lacks, a score that does not exist.
const ABSENT: [u8; 3] = [0xbb, 0xbb, 0xbb];
const LARGEST: f64 = 860.0;

impl HeatMap {
    /// A matrix `[rows, columns]`, row by row; values that are not finite are drawn in grey.
    ///
    /// # Panics
    /// Where the number of values is not that of the shape.
    pub fn new(title: impl Into<String>, shape: [usize; 2], values: &[f64]) -> Self {
        assert_eq!(values.len(), shape[0] * shape[1], "a value for each cell");
        Self {
            title: title.into(),
            rows: "layer".into(),
            columns: "head".into(),
            value: String::new(),
            shape,
            values: values.to_vec(),
            limit: Limit::Max,
            names: None,
        }
    }

    /// Names each row, in place of its number from 0.
    ///
    /// # Panics
    /// Where there are not as many names as rows.
    pub fn with_row_names(mut self, names: Vec<String>) -> Self {
        assert_eq!(names.len(), self.shape[0], "a name for each row");
        self.names = Some(names);
        self
    }

    /// Names the rows, the columns and the values.
    pub fn with_labels(
        mut self,
        rows: impl Into<String>,
        columns: impl Into<String>,
        value: impl Into<String>,
    ) -> Self {
        (self.rows, self.columns, self.value) = (rows.into(), columns.into(), value.into());
        self
    }

    /// Sets how far the colours reach. The default is [`Limit::Max`].
    pub fn with_limit(mut self, limit: Limit) -> Self {
        self.limit = limit;
        self
    }

    /// Draws it, row 0 at the top.
    pub fn figure(&self) -> Figure {
        let [rows, columns] = self.shape;
        let longest = rows.max(columns).max(1) as f64;
        let cell = (LARGEST / longest).clamp(1.0, (220.0 / longest).clamp(26.0, 56.0));
        let size = (columns as f64 * cell, rows as f64 * cell);
        // Numbers need no room; names such as "decoder 11" do.
        let widest = self.names.iter().flatten().map(|name| text_width(name, SMALL));
        let at = (LEFT.max(widest.fold(0.0, f64::max) + 46.0), 44.0);
        const BAR: f64 = 14.0;
        let width = (at.0 + size.0 + 34.0 + BAR + 78.0).max(text_width(&self.title, TITLE) * 1.1 + 28.0);
        let height = at.1 + size.1.max(180.0) + 52.0;

        let mut svg = Svg::default();
        svg.bold_text((14.0, 26.0), TITLE, Anchor::Start, Ink::Text, &self.title);
        if self.values.is_empty() {
            super::nothing_to_show(&mut svg, (width / 2.0, height / 2.0));
            return Figure::new(width, height, &self.title, svg);
        }

        let (limit, clipped) = self.limit();
        let pixels: Vec<_> = self
            .values
            .iter()
            .map(|&v| {
                if v.is_finite() {
                    diverging(v / limit)
                } else {
                    ABSENT
                }
            })
            .collect();
        // Twice the size on screen, so that nothing is lost at high resolution.
        let zoom = (2.0 * cell).round().max(1.0) as usize;
        svg.image(at, size, &super::raster::png(&pixels, columns, rows, zoom));
        svg.frame(at, size);
        self.draw_ticks(&mut svg, at, size, cell);
        self.draw_scale(
            &mut svg,
            (at.0 + size.0 + 34.0, at.1),
            (BAR, size.1.clamp(180.0, 240.0)),
            limit,
            clipped,
        );
        Figure::new(width, height, &self.title, svg)
    }

    fn draw_ticks(&self, svg: &mut Svg, at: (f64, f64), size: (f64, f64), cell: f64) {
        let [rows, columns] = self.shape;
        for row in (0..rows).step_by(every(18.0 / cell)) {
            let y = at.1 + (row as f64 + 0.5) * cell;
            svg.text(
                (at.0 - 7.0, y + 4.0),
                SMALL,
                Anchor::End,
                Ink::Muted,
                &self
                    .names
                    .as_ref()
                    .map_or_else(|| row.to_string(), |names| names[row].clone()),
            );
        }
        for column in (0..columns).step_by(every(26.0 / cell)) {
            let x = at.0 + (column as f64 + 0.5) * cell;
            svg.text(
                (x, at.1 + size.1 + 17.0),
                SMALL,
                Anchor::Middle,
                Ink::Muted,
                &column.to_string(),
            );
        }
        svg.upright_text((20.0, at.1 + size.1 / 2.0), LABEL, Ink::Text, &self.rows);
        let below = (at.0 + size.0 / 2.0, at.1 + size.1 + 38.0);
        svg.text(below, LABEL, Anchor::Middle, Ink::Text, &self.columns);
    }

    /// The bar of colours with its ends and its middle.
    fn draw_scale(&self, svg: &mut Svg, at: (f64, f64), size: (f64, f64), limit: f64, clipped: bool) {
        const STEPS: usize = 101;
        let pixels: Vec<_> = (0..STEPS)
            .map(|i| diverging(1.0 - 2.0 * i as f64 / (STEPS - 1) as f64))
            .collect();
        svg.image(at, size, &super::raster::png(&pixels, 1, STEPS, 2));
        svg.frame(at, size);
        let (over, under) = if clipped { ("≥ ", "≤ ") } else { ("", "") };
        let number = significant(limit);
        for (part, label) in [
            (0.0, format!("{over}{number}")),
            (0.5, "0".into()),
            (1.0, format!("{under}-{number}")),
        ] {
            svg.text(
                (at.0 + size.0 + 6.0, at.1 + part * size.1 + 4.0),
                SMALL,
                Anchor::Start,
                Ink::Muted,
                &label,
            );
        }
        svg.upright_text((at.0 - 8.0, at.1 + size.1 / 2.0), SMALL, Ink::Text, &self.value);
    }

    /// The value of the last colour, and whether values lie beyond it.
    fn limit(&self) -> (f64, bool) {
        let mut sizes: Vec<f64> = self
            .values
            .iter()
            .filter(|v| v.is_finite())
            .map(|v| v.abs())
            .collect();
        sizes.sort_by(f64::total_cmp);
        let max = sizes.last().copied().unwrap_or(0.0);
        let limit = match self.limit {
            Limit::Max => max,
            Limit::Value(value) => value.abs(),
            Limit::Quantile(q) => {
                let last = sizes.len().saturating_sub(1);
                sizes
                    .get((q.clamp(0.0, 1.0) * last as f64).round() as usize)
                    .copied()
                    .unwrap_or(0.0)
            }
        };
        // All zero: any scale does.
        let limit = if limit > 0.0 { limit } else { 1.0 };
        (limit, max > limit)
    }
}

/// The first of 1, 2, 5, 10, 20, … not below `least`.
fn every(least: f64) -> usize {
    let mut power = 1;
    loop {
        for mantissa in [1, 2, 5] {
            if (mantissa * power) as f64 >= least {
                return mantissa * power;
            }
        }
        power *= 10;
    }
}

/// Three significant digits.
fn significant(value: f64) -> String {
    if (1e-3..1e4).contains(&value) {
        let decimals = (2 - value.log10().floor() as i32).max(0) as usize;
        format!("{value:.decimals$}")
    } else {
        format!("{value:.2e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_thin_out() {
        assert_eq!([0.4, 1.0, 3.0, 6.0, 30.0].map(every), [1, 1, 5, 10, 50]);
    }

    #[test]
    fn the_scale_is_symmetric_and_says_when_it_clips() {
        let map = HeatMap::new("", [1, 4], &[-3.0, 1.0, 0.5, f64::NAN]);
        assert_eq!(map.limit(), (3.0, false));
        assert_eq!(map.clone().with_limit(Limit::Quantile(0.5)).limit(), (1.0, true));
        assert_eq!(HeatMap::new("", [1, 1], &[0.0]).limit(), (1.0, false));
    }

    #[test]
    fn numbers_have_three_digits() {
        assert_eq!(
            ["0.123", "12.3", "1.00e-5"],
            [0.1234, 12.345, 1e-5]
                .map(significant)
                .each_ref()
                .map(|s| s.as_str())
        );
    }
}
