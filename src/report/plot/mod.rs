//! Figures in the papers' layout, as SVG and PNG, from plain numbers.
//!
//! | figure | made by |
//! | --- | --- |
//! | curves over training steps or over layers, with bands | [`Curves`], several of them in one picture by [`Grid`] |
//! | score against parameter count, one dot a model | [`Scatter`] |
//! | layers × heads, or a crop of `W_qk` itself | [`HeatMap`] |
//!
//! Each gives a [`Figure`]. All share one style: colours that colour-blind readers can tell apart,
//! encoders blue and decoders vermilion, axes with labels and units, legends outside the data.
//!
//! The SVG is written here rather than by a plotting crate: plotters puts everything on whole pixels,
//! which makes stairs of smooth curves, and neither it nor kuva gives its elements classes, which is what
//! lets a page draw the same figure for a light and a dark screen.

mod axis;
mod curves;
mod heatmap;
mod panel;
#[cfg(feature = "png")]
mod png;
mod raster;
mod scatter;
mod style;
mod svg;

pub use axis::{Axis, Scale};
pub use curves::{Curves, Grid, Series};
pub use heatmap::{HeatMap, Limit};
#[cfg(feature = "png")]
pub use png::PngError;
pub use scatter::{Dot, Scatter};
pub use style::Colour;

pub(crate) use style::dark_rules;
pub(crate) use svg::escape;

use svg::{Anchor, Svg};

const FONTS: &str = "system-ui, 'DejaVu Sans', Helvetica, Arial, sans-serif";

/// A finished picture.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    width: f64,
    height: f64,
    title: String,
    body: String,
}

impl Figure {
    fn new(width: f64, height: f64, title: &str, svg: Svg) -> Self {
        Self {
            width,
            height,
            title: title.to_owned(),
            body: svg.into_body(),
        }
    }

    /// The title, for a caption or a list.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Width and height in pixels.
    pub fn size(&self) -> (f64, f64) {
        (self.width, self.height)
    }

    /// A complete SVG document on white.
    pub fn to_svg(&self) -> String {
        let Self { width, height, .. } = self;
        let mut document = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        document.push_str(&self.element(
            &format!("width=\"{width}\" height=\"{height}\" "),
            r##"<rect width="100%" height="100%" fill="#ffffff"/>"##,
        ));
        document
    }

    /// The same picture without a ground, as an element for a page that brings its own.
    ///
    /// It takes the width that the page gives it, up to its own.
    pub fn to_inline_svg(&self) -> String {
        self.element(
            &format!(r#"style="width:100%;max-width:{}px;height:auto" "#, self.width),
            "",
        )
    }

    fn element(&self, size: &str, ground: &str) -> String {
        let Self {
            width, height, body, ..
        } = self;
        let title = escape(&self.title);
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" {size}viewBox="0 0 {width} {height}" role="img" aria-label="{title}" font-family="{FONTS}"><title>{title}</title>{ground}
{body}</svg>
"#
        )
    }
}

/// What stands in the place of a figure that has nothing to show.
fn nothing_to_show(svg: &mut Svg, centre: (f64, f64)) {
    svg.text(
        centre,
        style::LABEL,
        Anchor::Middle,
        style::Ink::Muted,
        "no values",
    );
}
