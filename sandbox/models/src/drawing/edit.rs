//! A picture changed as a prompt says: one colour to another, inverted, grey, blurred, mirrored, brighter, darker.
//!
//! A prompt that names none of these covers the picture with a new one.
//! Promise: where the mask is opaque every pixel stays as it was; where it is half transparent a pixel is half changed.

use super::{Drawing, Motif, Rgb, colours, generate, mix};
use crate::text;
use image::{Rgba, RgbaImage, imageops};

/// How far a pixel may be from a colour to count as it, in steps of all three parts together.
const SAME_COLOUR: i32 = 160;
/// How much brighter or darker, in steps of a part.
const STEP: i32 = 48;

/// The mask has the size of the picture; without one all of it may change.
pub fn edit(before: &RgbaImage, mask: Option<&RgbaImage>, order: &Motif) -> Drawing {
    let mut image = before.clone();
    let mut done = changes(&mut image, &order.prompt).join(", then ");
    if done.is_empty() {
        let drawn = generate(order, before.width(), before.height());
        (image, done) = (drawn.image, drawn.description);
    }
    let masks = mask.into_iter().flat_map(|mask| mask.pixels());
    for ((after, before), mask) in image.pixels_mut().zip(before.pixels()).zip(masks) {
        let Rgba([_, _, _, closed]) = *mask;
        *after = mix(*after, *before, closed);
    }
    Drawing {
        image,
        description: done,
    }
}

/// The words that ask for a change, its name, and the change.
type Effect = (&'static str, &'static str, fn(&mut RgbaImage));

#[rustfmt::skip]
const EFFECTS: &[Effect] = &[
    ("grey gray grayscale greyscale monochrome desaturate", "turn grey", |image| each(image, grey)),
    ("invert inverted negative", "invert", |image| each(image, |pixel| pixel.map(|part| 255 - part))),
    ("brighten brighter lighten lighter", "brighten", |image| imageops::colorops::brighten_in_place(image, STEP)),
    ("darken darker", "darken", |image| imageops::colorops::brighten_in_place(image, -STEP)),
    ("blur blurred blurry soften", "blur", |image| *image = imageops::fast_blur(image, blur_radius(image))),
    ("mirror mirrored flip flipped", "mirror", imageops::flip_horizontal_in_place),
];

/// Makes the changes that the prompt names; returns them in words.
fn changes(image: &mut RgbaImage, prompt: &str) -> Vec<String> {
    let mut done = Vec::new();
    if let [(old, from), (new, to), ..] = colours(prompt).as_slice()
        && text::has_word(
            prompt,
            "change replace turn make swap recolor recolour convert",
        )
    {
        each(image, |pixel| recolour(pixel, *from, *to));
        done.push(format!("change {old} to {new}"));
    }
    // A new colour may be grey.
    let changes = EFFECTS.iter().skip(done.len());
    for (_, name, change) in changes.filter(|(words, _, _)| text::has_word(prompt, words)) {
        change(image);
        done.push((*name).to_owned());
    }
    done
}

fn grey([red, green, blue]: Rgb) -> Rgb {
    let sum = 299 * u32::from(red) + 587 * u32::from(green) + 114 * u32::from(blue);
    [u8::try_from(sum / 1_000).unwrap_or(u8::MAX); 3]
}

fn blur_radius(image: &RgbaImage) -> f32 {
    let side = image.width().max(image.height());
    (side as f32 / 40.0).max(1.0)
}

fn each(image: &mut RgbaImage, change: impl Fn(Rgb) -> Rgb) {
    for pixel in image.pixels_mut() {
        let [red, green, blue, alpha] = pixel.0;
        let [red, green, blue] = change([red, green, blue]);
        *pixel = Rgba([red, green, blue, alpha]);
    }
}

/// What differs from the old colour differs from the new one as much.
fn recolour(pixel: Rgb, from: Rgb, to: Rgb) -> Rgb {
    let mut changed = pixel;
    let mut distance = 0;
    for ((part, from), to) in changed.iter_mut().zip(from).zip(to) {
        let apart = i32::from(*part) - i32::from(from);
        distance += apart.abs();
        *part = u8::try_from((i32::from(to) + apart).clamp(0, 255)).unwrap_or(u8::MAX);
    }
    if distance > SAME_COLOUR {
        pixel
    } else {
        changed
    }
}

/// Whether the mask leaves anything open.
pub fn is_open(mask: &RgbaImage) -> bool {
    mask.pixels().any(|Rgba([_, _, _, closed])| *closed < 255)
}
