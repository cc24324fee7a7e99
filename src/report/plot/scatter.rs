//! Scores against the size of the models, one dot a model (the structure paper's Figure 2).

use super::Figure;
use super::axis::Axis;
use super::panel::{BOTTOM, Entry, LEFT, Panel, draw_legend, legend_height};
use super::style::{Colour, Ink, SMALL, TITLE, text_width};
use super::svg::{Anchor, Svg};

/// A model, or one stack of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Dot {
    /// Its name, drawn beside it where there is room.
    pub label: String,
    /// What it belongs to, as the legend names it; its colour too is that of the group.
    pub group: String,
    /// The colour of the group.
    pub colour: Colour,
    /// Where it lies along x, such as its number of parameters.
    pub x: f64,
    /// The median over its layers.
    pub median: f64,
    /// The quartiles, drawn as a bar.
    pub quartiles: Option<(f64, f64)>,
}

/// Dots with quartile bars over a logarithmic or linear x.
#[derive(Debug, Clone, PartialEq)]
pub struct Scatter {
    title: String,
    x: Axis,
    y: Axis,
    dots: Vec<Dot>,
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 380.0;
const RADIUS: f64 = 4.5;

impl Scatter {
    /// A plot of these dots.
    pub fn new(title: impl Into<String>, x: Axis, y: Axis, dots: Vec<Dot>) -> Self {
        Self {
            title: title.into(),
            x,
            y,
            dots,
        }
    }

    /// Draws it. A dot that an axis cannot show, such as one of unknown size, is left out.
    pub fn figure(&self) -> Figure {
        let entries = self.entries();
        let width = LEFT + WIDTH + 26.0;
        let top = 40.0 + legend_height(&entries, WIDTH) + 8.0;
        let height = top + HEIGHT + BOTTOM;

        let mut svg = Svg::default();
        svg.bold_text((LEFT, 26.0), TITLE, Anchor::Start, Ink::Text, &self.title);
        draw_legend(&mut svg, (LEFT, 40.0), WIDTH, &entries, true);

        let shown: Vec<&Dot> = self
            .dots
            .iter()
            .filter(|dot| self.x.accepts(dot.x) && self.y.accepts(dot.median))
            .collect();
        let bars = shown
            .iter()
            .filter_map(|dot| dot.quartiles)
            .flat_map(|(low, high)| [low, high]);
        let x = self.x.fit(shown.iter().map(|dot| dot.x), 7);
        let y = self.y.fit(shown.iter().map(|dot| dot.median).chain(bars), 7);
        let panel = Panel::new((LEFT, top), (WIDTH, HEIGHT), x, y);
        panel.draw_axes(&mut svg, Some(&self.x), Some(&self.y));
        for dot in &shown {
            if let Some((low, high)) = dot.quartiles {
                svg.line(
                    panel.place(dot.x, low),
                    panel.place(dot.x, high),
                    Ink::Data(dot.colour),
                    1.5,
                );
            }
        }
        for dot in &shown {
            let hint = format!("{}: {:.3}", dot.label, dot.median);
            svg.dot(
                panel.place(dot.x, dot.median),
                RADIUS,
                Ink::Data(dot.colour),
                &hint,
            );
        }
        draw_labels(&mut svg, &panel, &shown);
        if shown.is_empty() {
            super::nothing_to_show(&mut svg, panel.centre());
        }
        Figure::new(width, height, &self.title, svg)
    }

    fn entries(&self) -> Vec<Entry> {
        let mut entries: Vec<Entry> = Vec::new();
        for dot in &self.dots {
            if entries.iter().all(|entry| entry.label != dot.group) {
                entries.push(Entry {
                    label: dot.group.clone(),
                    colour: dot.colour,
                    dashed: false,
                });
            }
        }
        entries
    }
}

/// A rectangle that is taken: left, top, right, bottom.
type Taken = [f64; 4];

/// Writes each name beside its dot where it covers no dot and no other name; the rest stay unnamed, and
/// show their name when pointed at.
fn draw_labels(svg: &mut Svg, panel: &Panel, dots: &[&Dot]) {
    const SIZE: f64 = SMALL - 1.0;
    let places: Vec<_> = dots.iter().map(|dot| panel.place(dot.x, dot.median)).collect();
    let mut taken: Vec<Taken> = places
        .iter()
        .map(|&(x, y)| [x - RADIUS, y - RADIUS, x + RADIUS, y + RADIUS])
        .collect();
    let bars: Vec<Taken> = dots
        .iter()
        .filter_map(|dot| {
            let (low, high) = dot.quartiles?;
            let ((x, bottom), (_, top)) = (panel.place(dot.x, low), panel.place(dot.x, high));
            Some([x - 1.0, top, x + 1.0, bottom])
        })
        .collect();
    for (dot, &(x, y)) in dots.iter().zip(&places) {
        let (width, far) = (text_width(&dot.label, SIZE), RADIUS + 4.0);
        // Beside the dot first, then above and below, where the bar is in the way.
        let candidates = [
            (Anchor::Start, x + far, y + 4.0),
            (Anchor::End, x - far, y + 4.0),
            (Anchor::Start, x + far, y - 8.0),
            (Anchor::Start, x + far, y + 16.0),
            (Anchor::End, x - far, y - 8.0),
            (Anchor::End, x - far, y + 16.0),
        ];
        let fits = |&(anchor, at_x, at_y): &(Anchor, f64, f64)| {
            let left = if anchor == Anchor::Start {
                at_x
            } else {
                at_x - width
            };
            let area = [left, at_y - SIZE, left + width, at_y + 2.0];
            let inside = panel.contains((area[0], area[1])) && panel.contains((area[2], area[3]));
            (inside && taken.iter().all(|other| !overlap(&area, other))).then_some((anchor, at_x, at_y, area))
        };
        // Best where no bar is crossed; but a name across a bar is better than none.
        let free: Vec<_> = candidates.iter().filter_map(fits).collect();
        let clear = free
            .iter()
            .find(|(.., area)| bars.iter().all(|bar| !overlap(area, bar)));
        if let Some(&(anchor, at_x, at_y, area)) = clear.or(free.first()) {
            svg.text((at_x, at_y), SIZE, anchor, Ink::Muted, &dot.label);
            taken.push(area);
        }
    }
}

fn overlap(a: &Taken, b: &Taken) -> bool {
    a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]
}
