//! Lines of print as a picture, a till receipt as a scanner sees it, with the words in a text chunk of the PNG.
//!
//! Nothing here recognizes letters: a picture is read by its chunk, as a recording is by the words beside its samples.
//! Promise: the dark dots of a page are the letters of its lines; what is read was written beside them.

use crate::font::{self, ADVANCE};
use flate2::Crc;
use image::{GrayImage, ImageFormat, Luma};
use std::io::Cursor;

/// Dots of the picture for one dot of a glyph.
const SCALE: u32 = 3;
const MARGIN: u32 = 8;
const SIDE_MAX: u32 = 4_096;
const PAPER: Luma<u8> = Luma([244]);
const INK: Luma<u8> = Luma([30]);
/// A text chunk, and the keyword that its text stands behind.
const TEXT: &[u8; 4] = b"tEXt";
const KEYWORD: &[u8] = b"Comment\0";
const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";
/// The chunk that ends a file: no body between its size and its check.
const END_BYTES: usize = 12;

/// Fails on a character that the font does not have, and on a page without end.
pub fn page(lines: &[&str]) -> Result<Vec<u8>, String> {
    let columns = lines.iter().map(|line| line.len()).max().unwrap_or(0);
    let size = |count: usize, advance: u32| {
        let dots = u32::try_from(count)
            .ok()
            .and_then(|count| count.checked_mul(advance));
        let pixels = dots.and_then(|dots| (dots + 2 * MARGIN).checked_mul(SCALE));
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
        for (x, y) in font::dots(line) {
            for part in 0..SCALE * SCALE {
                let x = (MARGIN + x) * SCALE + part % SCALE;
                let y = (top + y) * SCALE + part / SCALE;
                if let Some(pixel) = picture.get_pixel_mut_checked(x, y) {
                    *pixel = INK;
                }
            }
        }
    }
    let mut file = Cursor::new(Vec::new());
    let written = picture.write_to(&mut file, ImageFormat::Png);
    written.map_err(|error| error.to_string())?;
    with_words(file.into_inner(), &lines.join("\n"))
}

fn with_words(mut png: Vec<u8>, words: &str) -> Result<Vec<u8>, String> {
    let body = [KEYWORD, words.as_bytes()].concat();
    let size = u32::try_from(body.len()).map_err(|error| error.to_string())?;
    let chunk = [TEXT.as_slice(), body.as_slice()].concat();
    let mut check = Crc::new();
    check.update(&chunk);
    let end = png.split_off(png.len().saturating_sub(END_BYTES));
    png.extend(size.to_be_bytes());
    png.extend(chunk);
    png.extend(check.sum().to_be_bytes());
    png.extend(end);
    Ok(png)
}

/// The words in the text chunks of a PNG; empty where there are none.
pub fn text(file: &[u8]) -> String {
    let mut words = String::new();
    let mut rest = file.strip_prefix(SIGNATURE).unwrap_or_default();
    while let Some((size, behind)) = rest.split_first_chunk::<4>() {
        let size = usize::try_from(u32::from_be_bytes(*size)).unwrap_or(usize::MAX);
        let Some((kind, body)) = behind.split_first_chunk::<4>() else {
            break;
        };
        let Some((body, more)) = body.split_at_checked(size) else {
            break;
        };
        if let Some(text) = body.strip_prefix(KEYWORD).filter(|_| kind == TEXT) {
            words.push_str(&String::from_utf8_lossy(text));
        }
        rest = more.get(4..).unwrap_or_default();
    }
    words
}

#[cfg(test)]
mod tests;
