//! Pictures from a prompt: a gradient in the colours that the prompt names, with the prompt's words on top.
//!
//! No model draws here: a picture has the size, the price and the form of a drawn one, and depends on its prompt.
//! [`edit`] changes a picture that came along.
//! Promise: the same prompt, number and user give the same pixels on every machine; every picture is a PNG.

pub mod edit;

use crate::{font, rng::Rng, text};
use image::{
    Pixel as _, Rgba, RgbaImage,
    codecs::png::{CompressionType, FilterType, PngEncoder},
};

/// What a picture is made from.
#[derive(Clone, Debug)]
pub struct Motif {
    pub prompt: String,
    /// The pictures of one request differ by their number.
    pub number: usize,
    /// As the client names its user: another user gets another picture.
    pub user: String,
}

pub struct Drawing {
    pub image: RgbaImage,
    /// What was drawn, in words.
    pub description: String,
}

#[derive(Debug, thiserror::Error)]
#[error("the picture cannot be written: {0}")]
pub struct EncodeError(#[from] image::ImageError);

type Rgb = [u8; 3];

#[rustfmt::skip]
const COLOURS: &[(&str, Rgb)] = &[
    ("red", [220, 40, 40]), ("green", [40, 160, 70]), ("blue", [40, 90, 220]), ("yellow", [245, 215, 50]),
    ("orange", [240, 140, 40]), ("purple", [130, 60, 170]), ("pink", [245, 130, 180]), ("brown", [130, 85, 50]),
    ("black", [0, 0, 0]), ("white", [255, 255, 255]), ("grey", [128, 128, 128]), ("gray", [128, 128, 128]),
    ("cyan", [40, 200, 215]), ("turquoise", [60, 200, 185]), ("teal", [20, 125, 125]), ("magenta", [210, 40, 160]),
    ("gold", [218, 170, 40]), ("silver", [192, 192, 200]), ("beige", [235, 220, 185]), ("navy", [20, 30, 100]),
];
/// Letters of one line.
const LINE_LETTERS: u32 = 16;
const MARGIN_DOTS: u32 = 3;

/// The colours that a text names, in its order.
fn colours(text: &str) -> Vec<(&'static str, Rgb)> {
    let words = text::words(text);
    let colour = |word: &String| COLOURS.iter().find(|(name, _)| name == word).copied();
    words.iter().filter_map(colour).collect()
}

pub fn generate(order: &Motif, width: u32, height: u32) -> Drawing {
    let mut rng = Rng::from_parts(&[
        order.prompt.as_bytes(),
        &(order.number as u64).to_le_bytes(),
        order.user.as_bytes(),
    ]);
    let mut named = colours(&order.prompt).into_iter();
    let mut next = || named.next().or_else(|| rng.choose(COLOURS).copied());
    let (from, to) = (next().unwrap_or_default(), next().unwrap_or_default());
    let mut image = gradient((width, height), from.1, to.1, &mut rng);
    print(&mut image, &order.prompt, ink(from.1, to.1));
    let words: Vec<&str> = order.prompt.split_whitespace().collect();
    Drawing {
        image,
        description: format!(
            "“{}” on a gradient from {} to {}",
            words.join(" "),
            from.0,
            to.0
        ),
    }
}

/// From one corner to the opposite one, which of them by chance.
fn gradient((width, height): (u32, u32), from: Rgb, to: Rgb, rng: &mut Rng) -> RgbaImage {
    let (right, bottom) = (width.saturating_sub(1), height.saturating_sub(1));
    let flips = rng.below(4);
    let weights = (rng.below(255) + 1, rng.below(255) + 1);
    let whole =
        ((weights.0 + weights.1) * u64::from(right.max(1)) * u64::from(bottom.max(1))).max(1);
    RgbaImage::from_fn(width, height, |x, y| {
        let x = if flips & 1 == 0 { x } else { right - x };
        let y = if flips & 2 == 0 { y } else { bottom - y };
        let at = weights.0 * u64::from(x) * u64::from(bottom.max(1))
            + weights.1 * u64::from(y) * u64::from(right.max(1));
        // In parts of 255, so that both corners have their colour exactly.
        let share = u8::try_from(at * 255 / whole).unwrap_or(u8::MAX);
        mix(opaque(from), opaque(to), share)
    })
}

fn opaque([red, green, blue]: Rgb) -> Rgba<u8> {
    Rgba([red, green, blue, 255])
}

/// Between two pixels: so many 255ths of the second.
fn mix(a: Rgba<u8>, b: Rgba<u8>, share: u8) -> Rgba<u8> {
    a.map2(&b, |a, b| {
        let sum = u32::from(a) * u32::from(255 - share) + u32::from(b) * u32::from(share);
        u8::try_from((sum + 127) / 255).unwrap_or(u8::MAX)
    })
}

/// Black or white, whichever is read more easily on both colours.
fn ink(from: Rgb, to: Rgb) -> Rgba<u8> {
    let light: u32 = from.iter().chain(&to).map(|part| u32::from(*part)).sum();
    opaque(if light > 6 * 127 { [0; 3] } else { [255; 3] })
}

/// The words in lines, as many as there is room for.
fn print(image: &mut RgbaImage, text: &str, ink: Rgba<u8>) {
    let dot = (image.width() / (LINE_LETTERS * font::ADVANCE.0 + 2 * MARGIN_DOTS)).max(1);
    let letters: Vec<char> = text.to_uppercase().chars().collect();
    let tops = (MARGIN_DOTS..).step_by(font::ADVANCE.1 as usize);
    for (line, top) in letters.chunks(LINE_LETTERS as usize).zip(tops) {
        if top * dot >= image.height() {
            break;
        }
        let line: String = line.iter().collect();
        font::print(image, &line, (MARGIN_DOTS, top), dot, ink);
    }
}

/// Packed for speed; "like the row above" suits gradients.
pub fn png(image: &RgbaImage) -> Result<Vec<u8>, EncodeError> {
    let mut bytes = Vec::new();
    let encoder = PngEncoder::new_with_quality(&mut bytes, CompressionType::Fast, FilterType::Up);
    image.write_with_encoder(encoder)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
