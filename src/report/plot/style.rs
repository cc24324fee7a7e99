//! The one style of all figures: colours, sizes, and the colour maps.
//!
//! Colours come from Okabe and Ito's palette, which stays distinct under the common forms of colour
//! blindness; layers are ordered by viridis, signed values by a blue-white-red map of even lightness on
//! both sides. Every element carries its light colour as an attribute and a class beside it, by which a
//! page restyles it for a dark screen.

/// Size of tick labels and legends, in pixels.
pub(super) const SMALL: f64 = 12.0;
/// Size of axis labels.
pub(super) const LABEL: f64 = 13.0;
/// Size of titles.
pub(super) const TITLE: f64 = 15.0;

/// The colour of a series or a dot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Colour {
    /// Models and stacks that attend in both directions.
    Encoder,
    /// Models and stacks that attend to the past only.
    Decoder,
    /// The text stack of a model of two kinds of input.
    Text,
    /// The vision stack of a model of two kinds of input.
    Vision,
    /// The i-th of several things without an order; repeats after seven.
    Category(usize),
    /// A place in an order, from 0 (first) to 1 (last), such as the depth of a layer.
    Ordinal(f64),
}

impl Colour {
    /// The colour of a stack by its name in a report: `encoder`, `decoder`, `text` or `vision`.
    pub fn of_stack(stack: &str) -> Self {
        match stack {
            "encoder" => Self::Encoder,
            "decoder" => Self::Decoder,
            "text" => Self::Text,
            "vision" => Self::Vision,
            _ => Self::Category(4),
        }
    }

    /// The colour of layer `index` of `count`.
    pub fn of_layer(index: usize, count: usize) -> Self {
        Self::Ordinal(index as f64 / count.saturating_sub(1).max(1) as f64)
    }
}

/// What an element is drawn with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Ink {
    Text,
    Muted,
    Axis,
    Grid,
    Data(Colour),
}

/// Blue, vermilion, green, purple, orange, sky blue, grey.
const PALETTE: [&str; 7] = [
    "#0072b2", "#d55e00", "#009e73", "#b35a8c", "#e69f00", "#56b4e9", "#777777",
];
const DARK_PALETTE: [&str; 7] = [
    "#4aa8e0", "#ff8a3d", "#2fc79a", "#de8fbb", "#f2b632", "#8bd0fa", "#aaaaaa",
];

impl Ink {
    /// The class of an element filled with it; `-s` is added for one that is stroked.
    pub(super) fn class(self) -> String {
        match self {
            Self::Text => "wt".into(),
            Self::Muted => "wm".into(),
            Self::Axis => "wa".into(),
            Self::Grid => "wg".into(),
            Self::Data(Colour::Ordinal(_)) => "wo".into(),
            Self::Data(colour) => format!("w{}", category(colour)),
        }
    }

    /// Its colour on white.
    pub(super) fn colour(self) -> String {
        match self {
            Self::Text => "#1a1a1a".into(),
            Self::Muted => "#555555".into(),
            Self::Axis => "#444444".into(),
            Self::Grid => "#e3e3e3".into(),
            Self::Data(Colour::Ordinal(t)) => hex(sequential(t)),
            Self::Data(colour) => PALETTE[category(colour)].into(),
        }
    }
}

fn category(colour: Colour) -> usize {
    match colour {
        Colour::Encoder => 0,
        Colour::Decoder => 1,
        Colour::Text => 2,
        Colour::Vision => 3,
        Colour::Category(i) => i % PALETTE.len(),
        Colour::Ordinal(_) => unreachable!("an ordinal colour is no category"),
    }
}

/// The rules by which a page redraws the figures in it on a dark screen.
pub(crate) fn dark_rules() -> String {
    let inks = [
        ("wt", "#e8e8e8"),
        ("wm", "#b5b5b5"),
        ("wa", "#a0a0a0"),
        ("wg", "#33373c"),
    ];
    let categories = (0..PALETTE.len()).map(|i| (format!("w{i}"), DARK_PALETTE[i]));
    inks.into_iter()
        .map(|(class, colour)| (class.to_owned(), colour))
        .chain(categories)
        .map(|(class, colour)| format!(".{class}{{fill:{colour}}}.{class}-s{{stroke:{colour}}}"))
        .collect()
}

/// An order as a colour, dark blue to yellow-green: viridis, without its lightest end, which is
/// invisible on white, and its darkest, which is so on black.
pub(super) fn sequential(t: f64) -> [u8; 3] {
    const STOPS: [[u8; 3]; 7] = [
        [0x46, 0x32, 0x7e],
        [0x3b, 0x52, 0x8b],
        [0x2c, 0x72, 0x8e],
        [0x21, 0x91, 0x8c],
        [0x28, 0xae, 0x80],
        [0x5e, 0xc9, 0x62],
        [0xa5, 0xcf, 0x2a],
    ];
    interpolate(&STOPS, t)
}

/// A signed value in [−1, 1] as a colour: blue below, white at 0, red above.
pub(super) fn diverging(v: f64) -> [u8; 3] {
    const STOPS: [[u8; 3]; 9] = [
        [0x05, 0x30, 0x61],
        [0x21, 0x66, 0xac],
        [0x5f, 0xa2, 0xcb],
        [0xb3, 0xd3, 0xe8],
        [0xff, 0xff, 0xff],
        [0xf9, 0xc9, 0xb0],
        [0xe0, 0x84, 0x68],
        [0xb2, 0x18, 0x2b],
        [0x67, 0x00, 0x1f],
    ];
    interpolate(&STOPS, (v + 1.0) / 2.0)
}

fn interpolate(stops: &[[u8; 3]], t: f64) -> [u8; 3] {
    let position = t.clamp(0.0, 1.0) * (stops.len() - 1) as f64;
    let i = (position as usize).min(stops.len() - 2);
    let part = position - i as f64;
    std::array::from_fn(|c| {
        let (low, high) = (f64::from(stops[i][c]), f64::from(stops[i + 1][c]));
        (low + (high - low) * part).round() as u8
    })
}

pub(super) fn hex([r, g, b]: [u8; 3]) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// Width of a text of the given size, a little more than any common sans-serif face needs.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    let em: f64 = text
        .chars()
        .map(|c| match c {
            'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '|' | '!' | '\'' => 0.33,
            ' ' | '/' | '(' | ')' | '[' | ']' | '-' | 'f' | 't' | 'r' => 0.42,
            'm' | 'w' | 'M' | 'W' | '%' | '@' => 0.98,
            c if c.is_ascii_uppercase() => 0.72,
            _ => 0.63,
        })
        .sum();
    em * size
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_diverging_map_is_white_at_zero_and_mirrors() {
        assert_eq!(diverging(0.0), [255; 3]);
        let ([blue_r, _, blue_b], [red_r, _, red_b]) = (diverging(-0.6), diverging(0.6));
        assert!(blue_b > blue_r && red_r > red_b);
        assert_eq!(diverging(-7.0), diverging(-1.0));
    }

    #[test]
    fn layers_run_through_the_whole_order() {
        assert_eq!(Colour::of_layer(0, 12), Colour::Ordinal(0.0));
        assert_eq!(Colour::of_layer(11, 12), Colour::Ordinal(1.0));
        assert_eq!(Colour::of_layer(0, 1), Colour::Ordinal(0.0));
    }
}
