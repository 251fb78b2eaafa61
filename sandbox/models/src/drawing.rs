//! Pictures computed from a prompt: what it names is drawn, in the colours, numbers and places it names.
//!
//! There is no learned model here. [`scene`] reads the prompt, [`layout`] finds a place for everything,
//! [`things`] paints; [`edit`] changes a picture that came along. A prompt that names nothing known gives an
//! abstract picture of its own.
//! Promise: the same prompt, number and user give the same pixels on every machine; every picture is a PNG.

mod canvas;
mod chance;
pub mod edit;
mod layout;
mod letters;
mod scene;
mod things;
mod vocabulary;

use canvas::{Area, Pen};
use chance::Chance;
use image::{
    Rgba, RgbaImage,
    codecs::png::{CompressionType, FilterType, PngEncoder},
};
use scene::{Colour, Place, Scene, Thing};
use vocabulary::{Kind, Rgb, WHITE, any_colour, mix};

/// What a picture is made from.
#[derive(Clone, Debug)]
pub struct Order {
    pub prompt: String,
    /// The pictures of one request differ by their number.
    pub number: usize,
    /// As the client names its user: another user gets another composition.
    pub user: String,
}

pub struct Picture {
    pub image: RgbaImage,
    /// What was drawn, in words.
    pub description: String,
}

#[derive(Debug, thiserror::Error)]
#[error("the picture cannot be written: {0}")]
pub struct EncodeError(#[from] image::ImageError);

pub fn generate(order: &Order, width: u32, height: u32) -> Picture {
    let read = Scene::read(&order.prompt);
    let mut chance = order.chance();
    let (scene, abstracted) = if read.is_empty() {
        (abstract_scene(&mut chance), true)
    } else {
        (read, false)
    };
    let [red, green, blue] = background(&scene);
    let mut image = RgbaImage::from_pixel(width, height, Rgba([red, green, blue, 255]));
    let whole = Area::of(&image);
    paint_things(&mut image, whole, &scene, &mut chance);
    let drawn = scene.describe();
    let description = if abstracted {
        format!("an abstract picture: {drawn}")
    } else {
        drawn
    };
    Picture { image, description }
}

/// Packed for speed; "like the row above" suits areas of one colour.
pub fn png(image: &RgbaImage) -> Result<Vec<u8>, EncodeError> {
    let mut bytes = Vec::new();
    let encoder = PngEncoder::new_with_quality(&mut bytes, CompressionType::Fast, FilterType::Up);
    image.write_with_encoder(encoder)?;
    Ok(bytes)
}

// === impl Order ===

impl Order {
    fn chance(&self) -> Chance {
        Chance::of(&[
            self.prompt.as_bytes(),
            &(self.number as u64).to_le_bytes(),
            self.user.as_bytes(),
        ])
    }
}

/// For a prompt that names nothing known: shapes and colours by chance, hence by its words.
fn abstract_scene(chance: &mut Chance) -> Scene {
    let shapes = [
        Kind::Circle,
        Kind::Square,
        Kind::Triangle,
        Kind::Diamond,
        Kind::Ring,
        Kind::Star,
    ];
    let things = (0..chance.between(2, 4))
        .map(|_| Thing {
            kind: shapes
                .get(chance.between(0, shapes.len() - 1))
                .copied()
                .unwrap_or(Kind::Circle),
            colour: None,
            count: chance.between(1, 3),
            size: 0.6 + chance.share() * 0.7,
            place: Place::default(),
            text: String::new(),
        })
        .collect();
    let pale = mix(any_colour(chance.number()), WHITE, 0.8);
    Scene {
        background: Some(Colour::new("pale", pale)),
        things,
    }
}

/// The colour asked for; without one a sky behind what stands in the open air, else white.
fn background(scene: &Scene) -> Rgb {
    let any = |is: fn(Kind) -> bool| scene.things.iter().any(|thing| is(thing.kind));
    match &scene.background {
        Some(colour) => colour.rgb,
        None if any(|kind| kind == Kind::Moon) => vocabulary::NIGHT,
        None if any(Kind::is_outdoors) => vocabulary::SKY,
        None => WHITE,
    }
}

fn paint_things(image: &mut RgbaImage, area: Area, scene: &Scene, chance: &mut Chance) {
    let ink = vocabulary::ink_on(background(scene));
    // Things of one word that name no colour have one colour together.
    let colours: Vec<(&Thing, Rgb)> = scene
        .things
        .iter()
        .map(|thing| (thing, colour_of(thing, ink, chance)))
        .collect();
    for (ground, colour) in colours.iter().filter(|(thing, _)| thing.kind.is_ground()) {
        let band = area.part((0.0, layout::HORIZON), (1.0, 1.0));
        things::paint_ground(image, band, ground.kind, *colour);
    }
    for placed in layout::place(scene, area, chance) {
        let colour = colours
            .iter()
            .find(|(thing, _)| std::ptr::eq(*thing, placed.thing))
            .map_or(ink, |(_, colour)| *colour);
        if placed.thing.kind == Kind::Text {
            things::paint_text(image, placed.cell, &placed.thing.text, colour);
            continue;
        }
        let mut pen = Pen {
            image,
            x: placed.x,
            y: placed.y,
            radius: placed.radius,
        };
        things::paint(&mut pen, placed.thing.kind, colour);
    }
}

fn colour_of(thing: &Thing, ink: Rgb, chance: &mut Chance) -> Rgb {
    match (&thing.colour, thing.kind) {
        (Some(colour), _) => colour.rgb,
        (None, Kind::Text) => ink,
        (None, kind) => kind
            .own_colour()
            .unwrap_or_else(|| any_colour(chance.number())),
    }
}

#[cfg(test)]
mod tests;
