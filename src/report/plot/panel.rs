//! One pair of axes with what lies in it.

use super::axis::{Axis, Fitted};
use super::style::{Colour, Ink, LABEL, SMALL, text_width};
use super::svg::{Anchor, Svg};

/// A rectangle of data between axes, laid out and ready to be drawn into.
pub(super) struct Panel {
    /// Left and top of the data area.
    at: (f64, f64),
    size: (f64, f64),
    pub(super) x: Fitted,
    pub(super) y: Fitted,
}

/// Room for the labels left of and below the data.
pub(super) const LEFT: f64 = 66.0;
pub(super) const BOTTOM: f64 = 48.0;

impl Panel {
    pub(super) fn new(at: (f64, f64), size: (f64, f64), x: Fitted, y: Fitted) -> Self {
        Self { at, size, x, y }
    }

    pub(super) fn centre(&self) -> (f64, f64) {
        (self.at.0 + self.size.0 / 2.0, self.at.1 + self.size.1 / 2.0)
    }

    pub(super) fn place(&self, x: f64, y: f64) -> (f64, f64) {
        (
            self.at.0 + self.x.place(x) * self.size.0,
            self.at.1 + (1.0 - self.y.place(y)) * self.size.1,
        )
    }

    pub(super) fn places(&self, x: &[f64], y: &[f64]) -> Vec<(f64, f64)> {
        x.iter().zip(y).map(|(&x, &y)| self.place(x, y)).collect()
    }

    pub(super) fn contains(&self, (x, y): (f64, f64)) -> bool {
        (self.at.0..=self.at.0 + self.size.0).contains(&x)
            && (self.at.1..=self.at.1 + self.size.1).contains(&y)
    }

    /// Grid, frame, ticks and labels. Without `x` the ticks of x stay, for a panel above another; without
    /// `y` those of y go, for a panel beside another.
    pub(super) fn draw_axes(&self, svg: &mut Svg, x: Option<&Axis>, y: Option<&Axis>) {
        let (left, top) = self.at;
        let (right, bottom) = (left + self.size.0, top + self.size.1);
        for (value, label) in &self.x.ticks {
            let at = self.place(*value, f64::NAN).0;
            svg.line((at, top), (at, bottom), Ink::Grid, 1.0);
            svg.line((at, bottom), (at, bottom + 4.0), Ink::Axis, 1.0);
            svg.text((at, bottom + 17.0), SMALL, Anchor::Middle, Ink::Muted, label);
        }
        for (value, label) in &self.y.ticks {
            let at = self.place(f64::NAN, *value).1;
            svg.line((left, at), (right, at), Ink::Grid, 1.0);
            if y.is_some() {
                svg.line((left - 4.0, at), (left, at), Ink::Axis, 1.0);
                svg.text((left - 8.0, at + 4.0), SMALL, Anchor::End, Ink::Muted, label);
            }
        }
        // Scores are signed: where 0 lies inside it is worth a line of its own.
        if self.y.contains(0.0) && self.y.place(0.0) > 0.0 && self.y.place(0.0) < 1.0 {
            let at = self.place(f64::NAN, 0.0).1;
            svg.line((left, at), (right, at), Ink::Axis, 0.8);
        }
        svg.frame(self.at, self.size);
        if let Some(axis) = x {
            svg.text(
                (left + self.size.0 / 2.0, bottom + 38.0),
                LABEL,
                Anchor::Middle,
                Ink::Text,
                &axis.label,
            );
        }
        if let Some(axis) = y {
            svg.upright_text(
                (left - LEFT + 16.0, top + self.size.1 / 2.0),
                LABEL,
                Ink::Text,
                &axis.label,
            );
        }
    }
}

/// An entry of a legend.
pub(super) struct Entry {
    pub(super) label: String,
    pub(super) colour: Colour,
    pub(super) dashed: bool,
}

const ENTRY_HEIGHT: f64 = 20.0;
const KEY: f64 = 26.0;

/// Lays entries out in rows of the given width, and gives the place of each and the height of all.
fn lay_out(entries: &[Entry], width: f64) -> (Vec<(f64, f64)>, f64) {
    let (mut x, mut y) = (0.0, 0.0);
    let mut places = Vec::with_capacity(entries.len());
    for entry in entries {
        let needed = KEY + text_width(&entry.label, SMALL) + 18.0;
        if x > 0.0 && x + needed > width {
            (x, y) = (0.0, y + ENTRY_HEIGHT);
        }
        places.push((x, y));
        x += needed;
    }
    (places, if entries.is_empty() { 0.0 } else { y + ENTRY_HEIGHT })
}

pub(super) fn legend_height(entries: &[Entry], width: f64) -> f64 {
    lay_out(entries, width).1
}

/// Draws a legend in rows under the title, where it hides no data.
pub(super) fn draw_legend(svg: &mut Svg, at: (f64, f64), width: f64, entries: &[Entry], dots: bool) {
    for (entry, (x, y)) in entries.iter().zip(lay_out(entries, width).0) {
        let (x, y) = (at.0 + x, at.1 + y + ENTRY_HEIGHT / 2.0);
        let ink = Ink::Data(entry.colour);
        if dots {
            svg.dot((x + KEY / 2.0, y), 4.5, ink, "");
        } else {
            svg.polyline(&[(x, y), (x + KEY - 6.0, y)], ink, 2.5, entry.dashed);
        }
        svg.text((x + KEY, y + 4.0), SMALL, Anchor::Start, Ink::Text, &entry.label);
    }
}
