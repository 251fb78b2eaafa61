//! Lines of print as a picture, a till receipt as a scanner sees it, with the words in a text chunk of the PNG.
//!
//! Nothing here recognizes letters: a picture is read by its chunk, as a recording is by the words beside its samples.
//! Promise: the dark dots of a page are the letters of its lines; what is read was written beside them.

use crate::font::{self, ADVANCE};
use image::{GrayImage, Luma};
use std::io::Cursor;

/// Dots of the picture for one dot of a glyph.
const SCALE: u32 = 3;
const MARGIN: u32 = 8;
const SIDE_MAX: u32 = 4_096;
const PAPER: Luma<u8> = Luma([244]);
const INK: Luma<u8> = Luma([30]);
/// The keyword of the text chunk.
const KEYWORD: &str = "Comment";

/// Fails on a character that the font does not have, and on a page without end.
pub fn page(lines: &[&str]) -> Result<Vec<u8>, String> {
    let columns = lines.iter().map(|line| line.len()).max().unwrap_or(0);
    let size = |count: usize, advance: u32| {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let dots = count.saturating_mul(advance).saturating_add(2 * MARGIN);
        let pixels = Some(dots.saturating_mul(SCALE));
        pixels
            .filter(|pixels| *pixels <= SIDE_MAX)
            .ok_or("too large a page")
    };
    let (width, height) = (size(columns, ADVANCE.0)?, size(lines.len(), ADVANCE.1)?);
    let mut picture = GrayImage::from_pixel(width, height, PAPER);
    for (line, top) in lines.iter().zip((MARGIN..).step_by(ADVANCE.1 as usize)) {
        if let Some(letter) = line.chars().find(|letter| font::glyph(*letter).is_none()) {
            return Err(format!("no {letter:?} in the print"));
        }
        font::print(&mut picture, line, (MARGIN, top), SCALE, INK);
    }
    png_with_words(&picture, lines.join("\n")).map_err(|error| error.to_string())
}

fn png_with_words(picture: &GrayImage, words: String) -> Result<Vec<u8>, png::EncodingError> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, picture.width(), picture.height());
    encoder.set_color(png::ColorType::Grayscale);
    encoder.add_text_chunk(KEYWORD.to_owned(), words)?;
    let mut writer = encoder.write_header()?;
    writer.write_image_data(picture.as_raw())?;
    writer.finish()?;
    Ok(file)
}

/// The words in the text chunks of a PNG; empty where there are none.
pub fn text(file: &[u8]) -> String {
    let Ok(reader) = png::Decoder::new(Cursor::new(file)).read_info() else {
        return String::new();
    };
    let chunks = reader.info().uncompressed_latin1_text.iter();
    let words = chunks.filter(|chunk| chunk.keyword == KEYWORD);
    words.map(|chunk| chunk.text.as_str()).collect()
}

#[cfg(test)]
mod tests;
