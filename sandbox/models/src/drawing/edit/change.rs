//! The changes a prompt may name, and what each does to the pixels.
//!
//! Promise: a change reads its words from the prompt alone; each is told in words in the answer.

use crate::drawing::{
    canvas::{Area, fill},
    scene::Token,
    vocabulary::{self as words, Rgb},
};
use image::{Rgba, RgbaImage, imageops};

/// How far a pixel may be from a colour to count as it (a side of the colour cube is 255).
const SAME_COLOUR: f32 = 120.0;
/// How much brighter or darker.
const STEP: i32 = 48;

#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    Erase,
    Recolour {
        from: Named,
        to: Named,
    },
    Tint(Named),
    Invert,
    Grey,
    Sepia,
    Lighten(i32),
    Blur,
    MirrorAcross,
    MirrorDown,
    /// Degrees, with the clock.
    Turn(f32),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Named {
    name: &'static str,
    rgb: Rgb,
}

// === impl Change ===

impl Change {
    pub fn read(tokens: &[Token], asks_to_draw: bool) -> Vec<Self> {
        let words: Vec<&str> = tokens
            .iter()
            .filter_map(|token| match token {
                Token::Word(word) => Some(word.as_str()),
                Token::Quote(_) | Token::Break => None,
            })
            .collect();
        let any = |wanted: &[&str]| words.iter().any(|word| wanted.contains(word));
        let mut changes = Vec::new();
        if any(&["erase", "remove", "delete", "clear"]) {
            changes.push(Self::Erase);
        }
        let colours = colour_change(&words, asks_to_draw);
        let coloured = colours.is_some();
        changes.extend(colours);
        if any(&["invert", "inverted", "negative"]) {
            changes.push(Self::Invert);
        }
        if is_grey(&words, asks_to_draw || coloured) {
            changes.push(Self::Grey);
        }
        if any(&["sepia"]) {
            changes.push(Self::Sepia);
        }
        if any(&["brighten", "brighter", "lighten", "lighter"]) {
            changes.push(Self::Lighten(STEP));
        }
        if any(&["darken", "darker"]) {
            changes.push(Self::Lighten(-STEP));
        }
        if any(&["blur", "blurred", "blurry", "soften"]) {
            changes.push(Self::Blur);
        }
        if any(&["flip", "flipped", "mirror", "mirrored"]) {
            let down = any(&["vertical", "vertically"]);
            changes.push(if down {
                Self::MirrorDown
            } else {
                Self::MirrorAcross
            });
        }
        changes.extend(turn(&words).map(Self::Turn));
        changes
    }

    pub fn describe(&self) -> String {
        match self {
            Self::Erase => "erase".to_owned(),
            Self::Recolour { from, to } => format!("change {} to {}", from.name, to.name),
            Self::Tint(to) => format!("tint {}", to.name),
            Self::Invert => "invert".to_owned(),
            Self::Grey => "turn grey".to_owned(),
            Self::Sepia => "turn sepia".to_owned(),
            Self::Lighten(step) if *step > 0 => "brighten".to_owned(),
            Self::Lighten(_) => "darken".to_owned(),
            Self::Blur => "blur".to_owned(),
            Self::MirrorAcross => "mirror across".to_owned(),
            Self::MirrorDown => "mirror down".to_owned(),
            Self::Turn(degrees) => format!("rotate by {degrees} degrees"),
        }
    }

    pub fn apply(&self, image: &mut RgbaImage, area: Area) {
        match self {
            Self::Erase => {
                let around = colour_around(image, area);
                fill(image, area, around, |_, _| true);
            }
            Self::Recolour { from, to } => each(image, |pixel| recolour(pixel, *from, *to)),
            Self::Tint(to) => each(image, |pixel| {
                let light = 0.3 + 0.7 * f32::from(lightness(pixel)) / 255.0;
                to.rgb.map(|part| (f32::from(part) * light).round() as u8)
            }),
            Self::Invert => each(image, |pixel| pixel.map(|part| 255 - part)),
            Self::Grey => each(image, |pixel| [lightness(pixel); 3]),
            Self::Sepia => each(image, |pixel| {
                let light = f32::from(lightness(pixel));
                [light * 1.07, light * 0.85, light * 0.6].map(|part| part.round() as u8)
            }),
            Self::Lighten(step) => imageops::colorops::brighten_in_place(image, *step),
            Self::Blur => {
                let sigma = (image.width().max(image.height()) as f32 / 40.0).max(1.0);
                *image = imageops::fast_blur(image, sigma);
            }
            Self::MirrorAcross => imageops::flip_horizontal_in_place(image),
            Self::MirrorDown => imageops::flip_vertical_in_place(image),
            Self::Turn(degrees) => *image = turned(image, *degrees),
        }
    }
}

/// "Change red to blue", or "make it blue" where nothing is to be drawn in that colour.
fn colour_change(words: &[&str], asks_to_draw: bool) -> Option<Change> {
    const CHANGE: &[&str] = &[
        "change", "convert", "make", "recolor", "recolour", "replace", "swap", "turn",
    ];
    const TINT: &[&str] = &["color", "colour", "paint", "tint"];
    const BETWEEN: &[&str] = &["by", "for", "into", "to", "with"];
    let any = |wanted: &[&str]| words.iter().any(|word| wanted.contains(word));
    let mut named = words.iter().enumerate().filter_map(|(at, word)| {
        let (name, rgb) = words::colour(word)?;
        Some((at, Named { name, rgb }))
    });
    let (first_at, first) = named.next()?;
    if let Some((second_at, second)) = named.next() {
        let between = words.get(first_at..second_at)?;
        let from_to = between.iter().any(|word| BETWEEN.contains(word));
        if from_to && any(CHANGE) {
            return Some(Change::Recolour {
                from: first,
                to: second,
            });
        }
        return None;
    }
    let is_light_only = matches!(first.name, "black" | "grey" | "gray");
    let tints = !asks_to_draw && !is_light_only && (any(CHANGE) || any(TINT));
    tints.then_some(Change::Tint(first))
}

fn is_grey(words: &[&str], grey_is_a_colour: bool) -> bool {
    const ALWAYS: &[&str] = &[
        "desaturate",
        "desaturated",
        "grayscale",
        "greyscale",
        "monochrome",
    ];
    words.iter().any(|word| ALWAYS.contains(word))
        || words
            .windows(3)
            .any(|three| three == ["black", "and", "white"])
        || (!grey_is_a_colour && words.iter().any(|word| matches!(*word, "grey" | "gray")))
}

fn turn(words: &[&str]) -> Option<f32> {
    let has = |wanted: &str| words.contains(&wanted);
    if has("upside") {
        return Some(180.0);
    }
    if !has("rotate") && !has("rotated") {
        return None;
    }
    let number = words.iter().find_map(|word| word.parse::<u16>().ok());
    let degrees = f32::from(number.map_or(90, |number| number % 360));
    let against = has("left") || has("counterclockwise") || has("anticlockwise");
    Some(if against { -degrees } else { degrees })
}

fn each(image: &mut RgbaImage, change: impl Fn(Rgb) -> Rgb) {
    for pixel in image.pixels_mut() {
        let [red, green, blue, alpha] = pixel.0;
        let [red, green, blue] = change([red, green, blue]);
        *pixel = Rgba([red, green, blue, alpha]);
    }
}

fn lightness([red, green, blue]: Rgb) -> u8 {
    let sum = 299 * u32::from(red) + 587 * u32::from(green) + 114 * u32::from(blue);
    u8::try_from(sum / 1_000).unwrap_or(u8::MAX)
}

/// What differs from the old colour differs from the new one as much.
fn recolour(pixel: Rgb, from: Named, to: Named) -> Rgb {
    let apart = |at: usize| {
        let part = |rgb: &Rgb| rgb.get(at).copied().map_or(0.0, f32::from);
        (part(&pixel), part(&from.rgb), part(&to.rgb))
    };
    let parts = [apart(0), apart(1), apart(2)];
    let distance = parts
        .iter()
        .map(|(pixel, from, _)| (pixel - from).powi(2))
        .sum::<f32>()
        .sqrt();
    if distance > SAME_COLOUR {
        return pixel;
    }
    // A cast from a float ends at 0 and 255.
    parts.map(|(pixel, from, to)| (to + pixel - from).round() as u8)
}

/// The mean of the pixels just outside the area; white where the area is the whole picture.
fn colour_around(image: &RgbaImage, area: Area) -> Rgb {
    let mut sums = [0_u64; 3];
    let mut count = 0_u64;
    for (x, y, pixel) in image.enumerate_pixels() {
        let (x, y) = (x as f32, y as f32);
        let near = x >= area.left - 2.0
            && x < area.right + 2.0
            && y >= area.top - 2.0
            && y < area.bottom + 2.0;
        let inside = x >= area.left && x < area.right && y >= area.top && y < area.bottom;
        if near && !inside {
            count += 1;
            for (sum, part) in sums.iter_mut().zip(pixel.0) {
                *sum += u64::from(part);
            }
        }
    }
    sums.map(|sum| {
        let mean = sum.checked_div(count).unwrap_or(255);
        u8::try_from(mean).unwrap_or(u8::MAX)
    })
}

/// Turned about its middle in a picture of the same size; what comes from outside is transparent.
fn turned(image: &RgbaImage, degrees: f32) -> RgbaImage {
    let (sin, cos) = degrees.to_radians().sin_cos();
    let middle = (image.width() as f32 / 2.0, image.height() as f32 / 2.0);
    RgbaImage::from_fn(image.width(), image.height(), |x, y| {
        let (right, down) = (x as f32 + 0.5 - middle.0, y as f32 + 0.5 - middle.1);
        let from_x = right * cos + down * sin + middle.0;
        let from_y = down * cos - right * sin + middle.1;
        if from_x < 0.0 || from_y < 0.0 {
            return Rgba([0; 4]);
        }
        let found = image.get_pixel_checked(from_x as u32, from_y as u32);
        found.copied().unwrap_or(Rgba([0; 4]))
    })
}
