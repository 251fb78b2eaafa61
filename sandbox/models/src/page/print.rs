//! Print in a picture: letters of five by seven dots in cells of six, as tills and labels print them.
//!
//! The size of a dot is measured, the cells are found by their gaps, and each cell is the letter it differs
//! from in fewest dots. Promise: bounded work; a picture without such print has no text.

use crate::font::{self, COLUMNS, ROWS};
use image::{GrayImage, ImageReader, Limits};
use std::io::Cursor;

/// The longest side of a picture that is read, in pixels.
const SIDE_MAX: u32 = 4_096;
const MEMORY_MAX: u64 = 64 * 1024 * 1024;
const DOT_MAX: usize = 16;
/// Dots of a cell that may differ from the letter it is.
const WRONG_DOTS_MAX: u32 = 4;
/// Of all cells with ink, the share that must be letters.
const LETTERS_SHARE_MIN: f64 = 0.8;
const ADVANCE: usize = font::ADVANCE.0 as usize;

/// The lines of print in a PNG.
pub fn text(file: &[u8]) -> String {
    let Some(picture) = decode(file) else {
        return String::new();
    };
    let rows = ink(&picture);
    let Some(dot) = dot_size(&rows) else {
        return String::new();
    };
    let bands = bands(&rows, dot);
    let Some(first) = margin(&bands) else {
        return String::new();
    };
    let mut lines = Vec::new();
    let (mut cells, mut letters) = (0_u32, 0_u32);
    for band in &bands {
        let mut line = String::new();
        for cell in band.get(first..).unwrap_or_default().chunks(ADVANCE) {
            let letter = letter(cell);
            if letter != Some(' ') {
                cells += 1;
                letters += u32::from(letter.is_some());
            }
            line.push(letter.unwrap_or('?'));
        }
        lines.push(line.trim_end().to_owned());
    }
    if f64::from(letters) < f64::from(cells) * LETTERS_SHARE_MIN {
        return String::new();
    }
    lines.join("\n")
}

fn decode(file: &[u8]) -> Option<GrayImage> {
    let mut reader = ImageReader::new(Cursor::new(file))
        .with_guessed_format()
        .ok()?;
    let mut limits = Limits::default();
    limits.max_image_width = Some(SIDE_MAX);
    limits.max_image_height = Some(SIDE_MAX);
    limits.max_alloc = Some(MEMORY_MAX);
    reader.limits(limits);
    Some(reader.decode().ok()?.into_luma8())
}

/// Which pixels are ink: the rarer side of the middle between the darkest and the lightest.
fn ink(picture: &GrayImage) -> Vec<Vec<bool>> {
    let pixels = || {
        picture
            .pixels()
            .map(|pixel| pixel.0.first().copied().unwrap_or(0))
    };
    let (low, high) = (pixels().min().unwrap_or(0), pixels().max().unwrap_or(0));
    let middle = low.midpoint(high);
    let dark = pixels().filter(|pixel| *pixel < middle).count();
    let dark_is_ink = dark * 2 <= pixels().count();
    picture
        .rows()
        .map(|row| {
            row.map(|pixel| {
                let is_dark = pixel.0.first().is_some_and(|level| *level < middle);
                high.saturating_sub(low) > 64 && is_dark == dark_is_ink
            })
            .collect()
        })
        .collect()
}

/// The side of a dot in pixels: the largest that nearly all runs of ink are multiples of.
fn dot_size(rows: &[Vec<bool>]) -> Option<usize> {
    let runs: Vec<usize> = rows
        .iter()
        .flat_map(|row| row.chunk_by(|a, b| a == b))
        .filter(|run| run.first() == Some(&true))
        .map(<[bool]>::len)
        .collect();
    (1..=DOT_MAX).rev().find(|dot| {
        let whole = runs.iter().filter(|run| *run % dot == 0).count();
        !runs.is_empty() && whole * 100 >= runs.len() * 95
    })
}

/// The lines of print: for each, its columns of dots, the top one the lowest bit.
fn bands(rows: &[Vec<bool>], dot: usize) -> Vec<Vec<u8>> {
    let mut bands = Vec::new();
    for band in rows.chunk_by(|a, b| a.contains(&true) == b.contains(&true)) {
        let height = band.len() / dot;
        if height != ROWS || !band.iter().any(|row| row.contains(&true)) {
            continue;
        }
        let width = band.first().map_or(0, Vec::len) / dot;
        let columns = (0..width).map(|column| {
            (0..ROWS).fold(0_u8, |bits, row| {
                let is_ink = band
                    .get(row * dot + dot / 2)
                    .and_then(|row| row.get(column * dot + dot / 2))
                    .copied()
                    .unwrap_or(false);
                bits | u8::from(is_ink) << row
            })
        });
        bands.push(columns.collect());
    }
    bands
}

/// The column where the first cell begins: where the gaps between cells hold least ink.
fn margin(bands: &[Vec<u8>]) -> Option<usize> {
    let first = bands
        .iter()
        .filter_map(|band| band.iter().position(|column| *column != 0))
        .min()?;
    // A letter may begin with an empty column, so the first ink may be the second column of its cell.
    (first.saturating_sub(2)..=first).rev().min_by_key(|start| {
        bands
            .iter()
            .flat_map(|band| band.iter().skip(start + COLUMNS).step_by(ADVANCE))
            .filter(|column| **column != 0)
            .count()
    })
}

/// The letter of a cell; `None` when it is no letter that we know.
fn letter(cell: &[u8]) -> Option<char> {
    let seen: [u8; COLUMNS] = std::array::from_fn(|at| cell.get(at).copied().unwrap_or(0));
    font::GLYPHS
        .iter()
        .map(|(letter, glyph)| {
            let dots = glyph.iter().zip(seen);
            let wrong: u32 = dots.map(|(one, other)| (one ^ other).count_ones()).sum();
            (wrong, *letter)
        })
        .min_by_key(|(wrong, _)| *wrong)
        .filter(|(wrong, _)| *wrong <= WRONG_DOTS_MAX)
        .map(|(_, letter)| letter)
}

#[cfg(test)]
mod tests;
