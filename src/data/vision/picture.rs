//! One image in memory.

/// Colour channels of every image: red, green and blue.
pub const CHANNELS: usize = 3;

/// An image as bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    height: usize,
    width: usize,
    pixels: Vec<u8>,
}

impl Picture {
    /// An image from its pixels, `[3, height, width]`: all of red, then green, then blue, row by row.
    ///
    /// # Panics
    /// Where there are more or fewer pixels than that: a fault of the calling program.
    pub fn new(height: usize, width: usize, pixels: Vec<u8>) -> Self {
        assert_eq!(pixels.len(), CHANNELS * height * width, "pixels of an image");
        Self {
            height,
            width,
            pixels,
        }
    }

    /// Rows.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// `[3, height, width]`, flat.
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    /// The square of `size` pixels whose corner is at `(top, left)`, which may lie outside: what is not in the image
    /// is black. Mirrored, left to right, if `flip`.
    ///
    /// # Shape
    /// `[3, size, size]`.
    pub fn crop(&self, top: isize, left: isize, size: usize, flip: bool) -> Self {
        let mut pixels = vec![0; CHANNELS * size * size];
        for (channel, plane) in pixels.chunks_exact_mut(size * size).enumerate() {
            let source = &self.pixels[channel * self.height * self.width..][..self.height * self.width];
            for (y, row) in plane.chunks_exact_mut(size).enumerate() {
                let Some(line) = inside(top, y, self.height) else {
                    continue;
                };
                let line = &source[line * self.width..][..self.width];
                for (x, pixel) in row.iter_mut().enumerate() {
                    if let Some(column) = inside(left, x, self.width) {
                        *pixel = line[column];
                    }
                }
                if flip {
                    row.reverse();
                }
            }
        }
        Self {
            height: size,
            width: size,
            pixels,
        }
    }
}

/// `origin + offset`, if it is in `0..length`.
fn inside(origin: isize, offset: usize, length: usize) -> Option<usize> {
    origin
        .checked_add_unsigned(offset)?
        .try_into()
        .ok()
        .filter(|at| *at < length)
}
