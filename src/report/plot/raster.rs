//! A PNG writer for the pictures inside figures: truecolour, one filter, nothing optional.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

/// Encodes `width × height` colours, row by row from the top, each repeated `zoom` times both ways.
///
/// A viewer that smooths what it enlarges then blurs a small part of each cell only.
///
/// # Source
/// PNG specification, third edition, sections 5 and 11.
pub(super) fn png(pixels: &[[u8; 3]], width: usize, height: usize, zoom: usize) -> Vec<u8> {
    assert_eq!(pixels.len(), width * height, "a colour for each cell");
    let mut rows = ZlibEncoder::new(Vec::new(), Compression::best());
    let mut line = Vec::with_capacity(1 + 3 * width * zoom);
    for row in pixels.chunks(width.max(1)) {
        line.clear();
        line.push(0);
        line.extend(
            row.iter()
                .flat_map(|pixel| std::iter::repeat_n(pixel, zoom))
                .flatten(),
        );
        for _ in 0..zoom {
            rows.write_all(&line).expect("writing to memory cannot fail");
        }
    }
    let rows = rows.finish().expect("writing to memory cannot fail");

    let size = |cells: usize| {
        u32::try_from(cells * zoom)
            .expect("a picture fits its format")
            .to_be_bytes()
    };
    let mut header = Vec::with_capacity(13);
    header.extend(size(width));
    header.extend(size(height));
    // Eight bits a channel, truecolour; deflate, adaptive filters, no interlace.
    header.extend([8, 2, 0, 0, 0]);

    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    for (kind, data) in [(b"IHDR", header.as_slice()), (b"IDAT", &rows), (b"IEND", &[])] {
        file.extend((data.len() as u32).to_be_bytes());
        file.extend(kind);
        file.extend(data);
        let mut crc = flate2::Crc::new();
        crc.update(kind);
        crc.update(data);
        file.extend(crc.sum().to_be_bytes());
    }
    file
}
