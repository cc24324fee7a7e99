//! Figures as PNG: the SVG drawn by resvg with a font that the library brings along.

use std::sync::{Arc, OnceLock};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{self, fontdb};

use super::Figure;

/// A figure that cannot be drawn as PNG.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PngError {
    /// The picture is too large for memory, or of no size.
    #[error("a picture of {0} × {1} pixels cannot be made: choose a smaller scale")]
    Size(f64, f64),
    /// resvg refuses the SVG, or cannot encode the picture.
    #[error("the figure cannot be drawn: {0}")]
    Drawing(String),
}

/// DejaVu Sans, reduced to the letters and signs that names and figures need.
///
/// A machine without any font, such as a bare container, draws the same text by it.
fn fonts() -> Arc<fontdb::Database> {
    static FONTS: OnceLock<Arc<fontdb::Database>> = OnceLock::new();
    let load = || {
        let mut fonts = fontdb::Database::new();
        fonts.load_font_data(include_bytes!("../../../assets/fonts/DejaVuSans.ttf").to_vec());
        fonts.load_font_data(include_bytes!("../../../assets/fonts/DejaVuSans-Bold.ttf").to_vec());
        fonts.set_sans_serif_family("DejaVu Sans");
        Arc::new(fonts)
    };
    FONTS.get_or_init(load).clone()
}

impl Figure {
    /// The picture on white as a PNG file, `scale` pixels for one of the SVG: 2 suits print and fine
    /// screens.
    ///
    /// # Errors
    /// Where the size at this scale is not a size.
    pub fn to_png(&self, scale: f64) -> Result<Vec<u8>, PngError> {
        let drawing = |error: &dyn std::fmt::Display| PngError::Drawing(error.to_string());
        let options = usvg::Options {
            fontdb: fonts(),
            ..usvg::Options::default()
        };
        let tree = usvg::Tree::from_str(&self.to_svg(), &options).map_err(|error| drawing(&error))?;
        let (width, height) = (self.width * scale, self.height * scale);
        let mut pixels = Some((width.round(), height.round()))
            .filter(|(w, h)| (1.0..32_768.0).contains(w) && (1.0..32_768.0).contains(h))
            .and_then(|(w, h)| Pixmap::new(w as u32, h as u32))
            .ok_or(PngError::Size(width, height))?;
        let scale = Transform::from_scale(scale as f32, scale as f32);
        resvg::render(&tree, scale, &mut pixels.as_mut());
        pixels.encode_png().map_err(|error| drawing(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Axis, Colour, Curves, Series};

    #[test]
    fn text_shows_without_any_font_of_the_system() {
        let blank = |title: &str| {
            let series = Series::new("", &[0.0, 1.0], &[0.0, 1.0], Colour::Encoder);
            let figure = Curves::new(title, Axis::linear(""), Axis::linear(""))
                .with(series)
                .figure();
            figure.to_png(1.0).unwrap()
        };
        // The same picture but for the title: only drawn text can make the files differ.
        assert_ne!(blank("Symmetry of W_qk"), blank(""));
        assert_eq!(&blank("")[..8], b"\x89PNG\r\n\x1a\n");
    }
}
