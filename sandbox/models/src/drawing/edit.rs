//! A picture changed as a prompt says: colours, light, direction, and things drawn into it.
//!
//! The changes are made in the order of the list in [`Change`], then things are drawn; a prompt that names
//! no change and nothing to draw gives an abstract picture in its place.
//! Promise: where the mask is opaque every pixel stays as it was; where it is half transparent a pixel is
//! half changed.

mod change;

use super::{
    Order, Picture, abstract_scene,
    canvas::{Area, blend, fill},
    paint_things,
    scene::{Scene, Token, tokens},
};
use change::Change;
use image::{Rgba, RgbaImage};

/// Words that ask for something to be put into the picture.
const DRAWING: &[&str] = &[
    "add", "draw", "include", "insert", "place", "put", "sketch", "write",
];

/// The mask has the size of the picture; without one all of it may change.
pub fn edit(before: &RgbaImage, mask: Option<&RgbaImage>, order: &Order) -> Picture {
    let tokens = tokens(&order.prompt);
    let says = |wanted: &[&str]| {
        tokens
            .iter()
            .any(|token| matches!(token, Token::Word(word) if wanted.contains(&word.as_str())))
    };
    // "Paint a house" draws; "paint it blue" changes.
    let paints = says(&["paint"]) && !Scene::read(&order.prompt).things.is_empty();
    let asks_to_draw = says(DRAWING) || paints;
    let changes = Change::read(&tokens, asks_to_draw);
    let area = mask.map_or_else(|| Area::of(before), open_area);
    let mut image = before.clone();
    let mut said: Vec<String> = Vec::new();
    for change in &changes {
        change.apply(&mut image, area);
        said.push(change.describe());
    }
    if asks_to_draw || changes.is_empty() {
        said.push(draw(&mut image, area, order));
    }
    if let Some(mask) = mask {
        keep_masked(&mut image, before, mask);
    }
    Picture {
        image,
        description: said.join(", then "),
    }
}

fn draw(image: &mut RgbaImage, area: Area, order: &Order) -> String {
    let mut chance = order.chance();
    let read = Scene::read(&order.prompt);
    let (scene, what) = if read.is_empty() {
        (abstract_scene(&mut chance), "an abstract picture: ")
    } else {
        (read, "draw ")
    };
    if let Some(colour) = &scene.background {
        fill(image, area, colour.rgb, |_, _| true);
    }
    paint_things(image, area, &scene, &mut chance);
    format!("{what}{}", scene.describe())
}

/// The smallest area that holds every pixel the mask leaves open; a soft edge counts by its open half.
fn open_area(mask: &RgbaImage) -> Area {
    let mut area: Option<Area> = None;
    for (x, y, pixel) in mask.enumerate_pixels() {
        let [_, _, _, closed] = pixel.0;
        if closed >= 128 {
            continue;
        }
        let (x, y) = (x as f32, y as f32);
        let here = Area {
            left: x,
            top: y,
            right: x + 1.0,
            bottom: y + 1.0,
        };
        area = Some(area.map_or(here, |area| Area {
            left: area.left.min(here.left),
            top: area.top.min(here.top),
            right: area.right.max(here.right),
            bottom: area.bottom.max(here.bottom),
        }));
    }
    area.unwrap_or_else(|| Area::of(mask))
}

/// Whether the mask leaves anything open.
pub fn is_open(mask: &RgbaImage) -> bool {
    mask.pixels().any(|Rgba([_, _, _, closed])| *closed < 255)
}

fn keep_masked(image: &mut RgbaImage, before: &RgbaImage, mask: &RgbaImage) {
    for ((after, before), mask) in image.pixels_mut().zip(before.pixels()).zip(mask.pixels()) {
        let Rgba([_, _, _, closed]) = *mask;
        *after = blend(*after, *before, f32::from(closed) / 255.0);
    }
}
