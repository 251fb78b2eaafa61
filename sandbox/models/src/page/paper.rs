//! Lines of print as a picture: a till receipt as a scanner sees it.
//!
//! Promise: a PNG whose dark dots are the letters of the lines and nothing else.

use crate::font::{self, ADVANCE};
use image::{GrayImage, ImageFormat, Luma};
use std::io::Cursor;

/// Dots of the picture for one dot of a glyph.
const SCALE: u32 = 3;
const MARGIN: u32 = 8;
const PAPER: Luma<u8> = Luma([244]);
const INK: Luma<u8> = Luma([30]);

/// Fails on a character the print does not have.
pub fn page(lines: &[&str]) -> Result<Vec<u8>, String> {
    let columns = lines.iter().map(|line| line.len()).max().unwrap_or(0);
    let size = |count: usize, advance: u32| {
        u32::try_from(count)
            .ok()
            .and_then(|count| count.checked_mul(advance * SCALE))
            .and_then(|dots| dots.checked_add(2 * MARGIN * SCALE))
            .filter(|dots| *dots <= 4_096)
            .ok_or_else(|| "too large a page".to_owned())
    };
    let (width, height) = (size(columns, ADVANCE.0)?, size(lines.len(), ADVANCE.1)?);
    let mut picture = GrayImage::from_pixel(width, height, PAPER);
    for (line, top) in lines.iter().zip((MARGIN..).step_by(ADVANCE.1 as usize)) {
        if let Some(letter) = line.chars().find(|letter| font::glyph(*letter).is_none()) {
            return Err(format!("no {letter:?} in the print"));
        }
        for (x, y) in font::dots(line) {
            for part in 0..SCALE * SCALE {
                let (x, y) = (
                    (MARGIN + x) * SCALE + part % SCALE,
                    (top + y) * SCALE + part / SCALE,
                );
                if let Some(pixel) = picture.get_pixel_mut_checked(x, y) {
                    *pixel = INK;
                }
            }
        }
    }
    let mut file = Cursor::new(Vec::new());
    picture
        .write_to(&mut file, ImageFormat::Png)
        .map_err(|error| error.to_string())?;
    Ok(file.into_inner())
}

#[cfg(test)]
mod tests;
