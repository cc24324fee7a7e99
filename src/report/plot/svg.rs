//! The SVG elements that the figures are made of, and no others.

use std::fmt::Write;

use super::style::Ink;
use crate::report::minus::typeset;

/// Where a text hangs on its point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// The body of a picture under construction, in pixels, y downwards.
#[derive(Debug, Default)]
pub(super) struct Svg {
    body: String,
}

impl Svg {
    pub(super) fn into_body(self) -> String {
        self.body
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), ink: Ink, width: f64) {
        let (class, colour) = (ink.class(), ink.colour());
        self.push(format_args!(
            r#"<line x1="{}" y1="{}" x2="{}" y2="{}" class="{class}-s" stroke="{colour}" stroke-width="{}"/>"#,
            N(from.0),
            N(from.1),
            N(to.0),
            N(to.1),
            N(width)
        ));
    }

    /// A line through the points, cut where one of them is not finite.
    pub(super) fn polyline(&mut self, points: &[(f64, f64)], ink: Ink, width: f64, dashed: bool) {
        let mut path = String::new();
        for run in points.split(|p| !is_finite(p)).filter(|run| !run.is_empty()) {
            trace(&mut path, run.iter());
        }
        if path.is_empty() {
            return;
        }
        let (class, colour) = (ink.class(), ink.colour());
        let dash = if dashed { r#" stroke-dasharray="6 4""# } else { "" };
        self.push(format_args!(
            r#"<path d="{path}" class="{class}-s" stroke="{colour}" stroke-width="{}" fill="none" stroke-linejoin="round" stroke-linecap="round"{dash}/>"#,
            N(width)
        ));
    }

    /// The area between two lines over the same x, cut where either is not finite.
    pub(super) fn band(&mut self, lower: &[(f64, f64)], upper: &[(f64, f64)], ink: Ink) {
        let both: Vec<_> = lower.iter().zip(upper).collect();
        let mut path = String::new();
        for run in both.split(|(l, u)| !is_finite(l) || !is_finite(u)) {
            if run.len() > 1 {
                trace(
                    &mut path,
                    run.iter()
                        .map(|(l, _)| *l)
                        .chain(run.iter().rev().map(|(_, u)| *u)),
                );
                path.push('z');
            }
        }
        if path.is_empty() {
            return;
        }
        let (class, colour) = (ink.class(), ink.colour());
        self.push(format_args!(
            r#"<path d="{path}" class="{class}" fill="{colour}" fill-opacity="0.2" stroke="none"/>"#
        ));
    }

    /// A dot, with a text that a reader sees when pointing at it.
    pub(super) fn dot(&mut self, at: (f64, f64), radius: f64, ink: Ink, hint: &str) {
        let (class, colour) = (ink.class(), ink.colour());
        let end = if hint.is_empty() {
            "/>".to_owned()
        } else {
            format!("><title>{}</title></circle>", escape(hint))
        };
        self.push(format_args!(
            r#"<circle cx="{}" cy="{}" r="{}" class="{class}" fill="{colour}"{end}"#,
            N(at.0),
            N(at.1),
            N(radius)
        ));
    }

    pub(super) fn frame(&mut self, at: (f64, f64), size: (f64, f64)) {
        let (class, colour) = (Ink::Axis.class(), Ink::Axis.colour());
        self.push(format_args!(
            r#"<rect x="{}" y="{}" width="{}" height="{}" fill="none" class="{class}-s" stroke="{colour}" stroke-width="1"/>"#,
            N(at.0),
            N(at.1),
            N(size.0),
            N(size.1)
        ));
    }

    pub(super) fn text(&mut self, at: (f64, f64), size: f64, anchor: Anchor, ink: Ink, text: &str) {
        self.styled_text(at, size, anchor, ink, "", text);
    }

    pub(super) fn bold_text(&mut self, at: (f64, f64), size: f64, anchor: Anchor, ink: Ink, text: &str) {
        self.styled_text(at, size, anchor, ink, r#" font-weight="bold""#, text);
    }

    /// Text that reads upwards.
    pub(super) fn upright_text(&mut self, at: (f64, f64), size: f64, ink: Ink, text: &str) {
        let turn = format!(r#" transform="rotate(-90 {} {})""#, N(at.0), N(at.1));
        self.styled_text(at, size, Anchor::Middle, ink, &turn, text);
    }

    fn styled_text(&mut self, at: (f64, f64), size: f64, anchor: Anchor, ink: Ink, extra: &str, text: &str) {
        let (class, colour) = (ink.class(), ink.colour());
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        self.push(format_args!(
            r#"<text x="{}" y="{}" font-size="{}" text-anchor="{anchor}" class="{class}" fill="{colour}"{extra}>{}</text>"#,
            N(at.0),
            N(at.1),
            N(size),
            escape(text)
        ));
    }

    /// A PNG picture, its pixels kept square and sharp.
    pub(super) fn image(&mut self, at: (f64, f64), size: (f64, f64), png: &[u8]) {
        use base64::Engine;
        let data = base64::engine::general_purpose::STANDARD.encode(png);
        self.push(format_args!(
            r#"<image x="{}" y="{}" width="{}" height="{}" preserveAspectRatio="none" image-rendering="optimizeSpeed" style="image-rendering:pixelated" href="data:image/png;base64,{data}"/>"#,
            N(at.0),
            N(at.1),
            N(size.0),
            N(size.1)
        ));
    }

    fn push(&mut self, element: std::fmt::Arguments<'_>) {
        self.body
            .write_fmt(element)
            .expect("writing to a String cannot fail");
        self.body.push('\n');
    }
}

fn is_finite(point: &(f64, f64)) -> bool {
    point.0.is_finite() && point.1.is_finite()
}

fn trace<'a>(path: &mut String, points: impl Iterator<Item = &'a (f64, f64)>) {
    for (i, point) in points.enumerate() {
        let command = if i == 0 { 'M' } else { 'L' };
        write!(path, "{command}{} {}", N(point.0), N(point.1)).expect("writing to a String cannot fail");
    }
}

/// A coordinate with two decimals at most, which is finer than any screen shows.
struct N(f64);

impl std::fmt::Display for N {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rounded = (self.0 * 100.0).round() / 100.0;
        // No "-0", and the shortest form of what is left.
        write!(f, "{}", rounded + 0.0)
    }
}

/// A text as it may stand in XML or HTML, also inside a double-quoted attribute.
///
/// Control characters that XML does not allow at all become the replacement character, and the signs of negative numbers
/// typographic ones.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in typeset(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\t' | '\n' | '\r' => escaped.push(c),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            c if c.is_control() => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_stays_text() {
        assert_eq!(
            escape("<script>\"a\" & 'b'\u{0}\u{1b}</script>"),
            "&lt;script&gt;&quot;a&quot; &amp; &#39;b&#39;\u{fffd}\u{fffd}&lt;/script&gt;"
        );
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(N(-0.001).to_string(), "0");
        assert_eq!(N(12.0).to_string(), "12");
        assert_eq!(N(2.34567).to_string(), "2.35");
    }

    #[test]
    fn a_gap_in_the_data_is_a_gap_in_the_line() {
        let mut svg = Svg::default();
        let points = [(0.0, 1.0), (1.0, 2.0), (2.0, f64::NAN), (3.0, 1.0), (4.0, 0.0)];
        svg.polyline(&points, Ink::Axis, 1.0, false);
        assert!(svg.into_body().contains("M0 1L1 2M3 1L4 0"));
    }
}
