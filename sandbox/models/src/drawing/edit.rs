//! A picture changed as a prompt says: one colour to another, inverted, grey, blurred, mirrored, brighter, darker.
//!
//! A prompt that names none of these covers the picture with a new one.
//! Promise: where the mask is opaque every pixel stays as it was; where it is half transparent a pixel is half changed.

use super::{Order, Picture, Rgb, colours, generate, mix};
use crate::prompt;
use image::{Rgba, RgbaImage, imageops};

/// How far a pixel may be from a colour to count as it, in steps of all three parts together.
const SAME_COLOUR: i32 = 160;
/// How much brighter or darker, in steps of a part.
const STEP: i32 = 48;

/// The mask has the size of the picture; without one all of it may change.
pub fn edit(before: &RgbaImage, mask: Option<&RgbaImage>, order: &Order) -> Picture {
    let mut image = before.clone();
    let mut done = changes(&mut image, &order.prompt).join(", then ");
    if done.is_empty() {
        let drawn = generate(order, before.width(), before.height());
        (image, done) = (drawn.image, drawn.description);
    }
    for ((after, before), mask) in image
        .pixels_mut()
        .zip(before.pixels())
        .zip(mask.into_iter().flat_map(|mask| mask.pixels()))
    {
        let Rgba([_, _, _, closed]) = *mask;
        *after = mix(*after, *before, closed);
    }
    Picture {
        image,
        description: done,
    }
}

/// Makes the changes that the prompt names; returns them in words.
fn changes(image: &mut RgbaImage, prompt: &str) -> Vec<String> {
    let says = |any_of: &str| prompt::has_any(&prompt::words(prompt), any_of);
    let mut done = Vec::new();
    if let [(old, from), (new, to), ..] = colours(prompt).as_slice()
        && says("change replace turn make swap recolor recolour convert")
    {
        each(image, |pixel| recolour(pixel, *from, *to));
        done.push(format!("change {old} to {new}"));
    } else if says("grey gray grayscale greyscale monochrome desaturate") {
        each(image, |[red, green, blue]| {
            let sum = 299 * u32::from(red) + 587 * u32::from(green) + 114 * u32::from(blue);
            [u8::try_from(sum / 1_000).unwrap_or(u8::MAX); 3]
        });
        done.push("turn grey".to_owned());
    }
    if says("invert inverted negative") {
        each(image, |pixel| pixel.map(|part| 255 - part));
        done.push("invert".to_owned());
    }
    if says("brighten brighter lighten lighter") {
        imageops::colorops::brighten_in_place(image, STEP);
        done.push("brighten".to_owned());
    }
    if says("darken darker") {
        imageops::colorops::brighten_in_place(image, -STEP);
        done.push("darken".to_owned());
    }
    if says("blur blurred blurry soften") {
        let side = image.width().max(image.height());
        *image = imageops::fast_blur(image, (side as f32 / 40.0).max(1.0));
        done.push("blur".to_owned());
    }
    if says("mirror mirrored flip flipped") {
        imageops::flip_horizontal_in_place(image);
        done.push("mirror".to_owned());
    }
    done
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
