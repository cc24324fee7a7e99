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

/// A line from a dot to its name.
type Leader = ((f64, f64), (f64, f64));

/// Lines of text that a name may stand above or below its dot.
const MOST_LINES: usize = 10;

/// Writes each name beside its dot, or, where another name or dot is in the way, some lines above or below with a thin
/// line to it. Where there is no room at all a dot stays unnamed, and shows its name when pointed at.
fn draw_labels(svg: &mut Svg, panel: &Panel, dots: &[&Dot]) {
    const SIZE: f64 = SMALL - 1.0;
    // A bar that is crossed counts as much as so many lines away: a name close by is better than a clear one far off.
    const BAR: usize = 3;
    let places: Vec<_> = dots.iter().map(|dot| panel.place(dot.x, dot.median)).collect();
    let discs: Vec<Taken> = places
        .iter()
        .map(|&(x, y)| [x - RADIUS, y - RADIUS, x + RADIUS, y + RADIUS])
        .collect();
    let (mut names, mut leaders): (Vec<Taken>, Vec<Leader>) = (Vec::new(), Vec::new());
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
        let fits = |(lines, side, down): (usize, f64, f64)| {
            let near = (x + side * far, y + 4.0 + down * lines as f64 * (SIZE + 2.0));
            let other = near.0 + side * width;
            let area = [near.0.min(other), near.1 - SIZE, near.0.max(other), near.1 + 2.0];
            // From the edge of the dot to the middle of the near end of the name.
            let leader = (lines > 1).then(|| {
                let to = (near.0 - side, near.1 - SIZE / 3.0);
                let length = (to.0 - x).hypot(to.1 - y);
                let at = |r: f64| (x + (to.0 - x) * r / length, y + (to.1 - y) * r / length);
                (at(RADIUS + 1.0), to)
            });
            let inside = panel.contains((area[0], area[1])) && panel.contains((area[2], area[3]));
            let mut taken = discs.iter().chain(&names);
            // A line may pass over the dots of models of one size, which lie on each other.
            let free = inside
                && taken.all(|other| !overlap(&area, other))
                && leaders.iter().all(|leader| !crosses(leader, &area))
                && leader.is_none_or(|leader| names.iter().all(|name| !crosses(&leader, name)));
            let barred = bars.iter().any(|bar| overlap(&area, bar));
            let cost = lines + if barred { BAR } else { 0 };
            free.then_some((cost, side, near, area, leader))
        };
        let best = (0..=MOST_LINES)
            .flat_map(|lines| {
                [(1.0, -1.0), (-1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)].map(|(side, down)| (lines, side, down))
            })
            .filter_map(fits)
            // The first of those that cost the same.
            .min_by_key(|(cost, ..)| *cost);
        if let Some((_, side, near, area, leader)) = best {
            if let Some((from, to)) = leader {
                svg.line(from, to, Ink::Muted, 0.6);
            }
            leaders.extend(leader);
            let anchor = if side > 0.0 { Anchor::Start } else { Anchor::End };
            svg.text(near, SIZE, anchor, Ink::Muted, &dot.label);
            names.push(area);
        }
    }
}

/// Whether a line goes through an area, looked at in steps of a pixel or two.
fn crosses(&(from, to): &Leader, area: &Taken) -> bool {
    const STEPS: usize = 64;
    (0..=STEPS).any(|step| {
        let t = step as f64 / STEPS as f64;
        let (x, y) = (from.0 + t * (to.0 - from.0), from.1 + t * (to.1 - from.1));
        area[0] < x && x < area[2] && area[1] < y && y < area[3]
    })
}

fn overlap(a: &Taken, b: &Taken) -> bool {
    a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The areas of the names in a picture, by the attributes of their elements.
    fn names(svg: &str) -> Vec<Taken> {
        let attribute = |line: &str, name: &str| {
            let value = line.split(&format!(" {name}=\"")).nth(1).unwrap();
            value.split('"').next().unwrap().to_owned()
        };
        svg.lines()
            .filter(|line| line.starts_with("<text") && line.contains(">model-"))
            .map(|line| {
                let number = |name| attribute(line, name).parse::<f64>().unwrap();
                let (x, y, size) = (number("x"), number("y"), number("font-size"));
                let text = line.split('>').nth(1).unwrap().split('<').next().unwrap();
                let width = text_width(text, size);
                match attribute(line, "text-anchor").as_str() {
                    "start" => [x, y - size, x + width, y],
                    _ => [x - width, y - size, x, y],
                }
            })
            .collect()
    }

    #[test]
    fn names_of_models_of_one_size_do_not_overlap() {
        let dots = (0..12)
            .map(|i| Dot {
                label: format!("model-{i}-of-one-size"),
                group: "decoder".to_owned(),
                colour: Colour::Decoder,
                x: 1.1e8 + 1e5 * f64::from(i),
                median: 0.3 + 0.002 * f64::from(i),
                quartiles: Some((0.2, 0.5)),
            })
            .collect();
        let svg = Scatter::new("t", Axis::log("x"), Axis::linear("y"), dots)
            .figure()
            .to_svg();
        let names = names(&svg);
        assert_eq!(names.len(), 12, "{svg}");
        for (i, a) in names.iter().enumerate() {
            assert!(names[..i].iter().all(|b| !overlap(a, b)), "{i}: {a:?}");
        }
    }
}
