//! Lines of print as a picture: a till receipt as a scanner sees it.
//!
//! Promise: a PNG whose dark dots are the letters of the lines and nothing else.

use image::{GrayImage, ImageFormat, Luma};
use std::io::Cursor;

/// Dots of the picture for one dot of a glyph.
const SCALE: u32 = 3;
const MARGIN: u32 = 8;
const GLYPH: (u32, u32) = (5, 7);
const ADVANCE: (u32, u32) = (6, 10);
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
    for (line, y) in lines.iter().zip((MARGIN..).step_by(ADVANCE.1 as usize)) {
        for (letter, x) in line.chars().zip((MARGIN..).step_by(ADVANCE.0 as usize)) {
            let glyph = glyph(letter).ok_or_else(|| format!("no {letter:?} in the print"))?;
            print(&mut picture, glyph, x, y);
        }
    }
    let mut file = Cursor::new(Vec::new());
    picture
        .write_to(&mut file, ImageFormat::Png)
        .map_err(|error| error.to_string())?;
    Ok(file.into_inner())
}

/// One glyph at a place in glyph dots.
fn print(picture: &mut GrayImage, glyph: [u8; 5], x: u32, y: u32) {
    for (column, bits) in (0..GLYPH.0).zip(glyph) {
        for row in (0..GLYPH.1).filter(|row| bits >> row & 1 == 1) {
            for dot in 0..SCALE * SCALE {
                let at = (
                    (x + column) * SCALE + dot % SCALE,
                    (y + row) * SCALE + dot / SCALE,
                );
                if let Some(pixel) = picture.get_pixel_mut_checked(at.0, at.1) {
                    *pixel = INK;
                }
            }
        }
    }
}

/// Five columns of seven dots, the top one the lowest bit.
#[rustfmt::skip]
pub fn glyph(letter: char) -> Option<[u8; 5]> {
    Some(match letter {
        ' ' => [0x00, 0x00, 0x00, 0x00, 0x00],
        '%' => [0x23, 0x13, 0x08, 0x64, 0x62],
        '*' => [0x14, 0x08, 0x3E, 0x08, 0x14],
        ',' => [0x00, 0x50, 0x30, 0x00, 0x00],
        '-' => [0x08, 0x08, 0x08, 0x08, 0x08],
        '.' => [0x00, 0x60, 0x60, 0x00, 0x00],
        '/' => [0x20, 0x10, 0x08, 0x04, 0x02],
        ':' => [0x00, 0x36, 0x36, 0x00, 0x00],
        '0' => [0x3E, 0x51, 0x49, 0x45, 0x3E],
        '1' => [0x00, 0x42, 0x7F, 0x40, 0x00],
        '2' => [0x42, 0x61, 0x51, 0x49, 0x46],
        '3' => [0x21, 0x41, 0x45, 0x4B, 0x31],
        '4' => [0x18, 0x14, 0x12, 0x7F, 0x10],
        '5' => [0x27, 0x45, 0x45, 0x45, 0x39],
        '6' => [0x3C, 0x4A, 0x49, 0x49, 0x30],
        '7' => [0x01, 0x71, 0x09, 0x05, 0x03],
        '8' => [0x36, 0x49, 0x49, 0x49, 0x36],
        '9' => [0x06, 0x49, 0x49, 0x29, 0x1E],
        'A' => [0x7E, 0x11, 0x11, 0x11, 0x7E],
        'B' => [0x7F, 0x49, 0x49, 0x49, 0x36],
        'C' => [0x3E, 0x41, 0x41, 0x41, 0x22],
        'D' => [0x7F, 0x41, 0x41, 0x22, 0x1C],
        'E' => [0x7F, 0x49, 0x49, 0x49, 0x41],
        'F' => [0x7F, 0x09, 0x09, 0x09, 0x01],
        'G' => [0x3E, 0x41, 0x49, 0x49, 0x7A],
        'H' => [0x7F, 0x08, 0x08, 0x08, 0x7F],
        'I' => [0x00, 0x41, 0x7F, 0x41, 0x00],
        'J' => [0x20, 0x40, 0x41, 0x3F, 0x01],
        'K' => [0x7F, 0x08, 0x14, 0x22, 0x41],
        'L' => [0x7F, 0x40, 0x40, 0x40, 0x40],
        'M' => [0x7F, 0x02, 0x0C, 0x02, 0x7F],
        'N' => [0x7F, 0x04, 0x08, 0x10, 0x7F],
        'O' => [0x3E, 0x41, 0x41, 0x41, 0x3E],
        'P' => [0x7F, 0x09, 0x09, 0x09, 0x06],
        'Q' => [0x3E, 0x41, 0x51, 0x21, 0x5E],
        'R' => [0x7F, 0x09, 0x19, 0x29, 0x46],
        'S' => [0x46, 0x49, 0x49, 0x49, 0x31],
        'T' => [0x01, 0x01, 0x7F, 0x01, 0x01],
        'U' => [0x3F, 0x40, 0x40, 0x40, 0x3F],
        'V' => [0x1F, 0x20, 0x40, 0x20, 0x1F],
        'W' => [0x3F, 0x40, 0x38, 0x40, 0x3F],
        'X' => [0x63, 0x14, 0x08, 0x14, 0x63],
        'Y' => [0x07, 0x08, 0x70, 0x08, 0x07],
        'Z' => [0x61, 0x51, 0x49, 0x45, 0x43],
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_can_be_read_back_dot_by_dot() {
        let file = page(&["TOTAL 11.40"]).unwrap();

        let picture = image::load_from_memory(&file).unwrap().to_luma8();
        assert_eq!(picture.dimensions(), ((11 * 6 + 16) * 3, (10 + 16) * 3));
        let line = "TOTAL 11.40";
        for (at, letter) in (0_u32..).zip(line.chars()) {
            let seen: [u8; 5] = std::array::from_fn(|column| {
                let x = (MARGIN + at * ADVANCE.0 + u32::try_from(column).unwrap()) * SCALE + 1;
                (0..7).fold(0, |bits, row| {
                    let dark = picture.get_pixel(x, (MARGIN + row) * SCALE + 1).0[0] < 128;
                    bits | u8::from(dark) << row
                })
            });
            assert_eq!(Some(seen), glyph(letter), "{letter}");
        }
    }

    #[test]
    fn letters_the_print_does_not_have_and_pages_without_end_are_refused() {
        assert!(page(&["total"]).is_err());
        assert!(page(&vec!["A"; 1_000]).is_err());
    }
}
