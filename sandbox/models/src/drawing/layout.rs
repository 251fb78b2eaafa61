//! Where each thing of a scene stands.
//!
//! A scene has bands: the sky above, mountains behind, what stands on the ground or floats, plain shapes, and
//! text. Things of one band and place share its room in cells, so that they can be counted.
//! Promise: the same scene and the same chance give the same places; cells of one band never overlap.

use super::{
    canvas::Area,
    chance::Chance,
    scene::{Place, Scene, Thing},
    vocabulary::Kind,
};
use std::collections::BTreeMap;

/// Where the ground begins, from the top.
pub const HORIZON: f32 = 0.68;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Band {
    Sky,
    Far,
    Standing,
    Afloat,
    Shapes,
    Text,
}

/// One thing at its place, in pixels.
#[derive(Clone, Debug)]
pub struct Placed<'a> {
    pub thing: &'a Thing,
    pub x: f32,
    pub y: f32,
    pub radius: f32,
    /// The whole cell, for text.
    pub cell: Area,
}

/// Everything but the ground, those behind first.
pub fn place<'a>(scene: &'a Scene, whole: Area, chance: &mut Chance) -> Vec<Placed<'a>> {
    let mut groups: BTreeMap<(Band, Place), Vec<&Thing>> = BTreeMap::new();
    let night = scene.things.iter().any(|thing| thing.kind == Kind::Moon);
    for thing in scene.things.iter().filter(|thing| !thing.kind.is_ground()) {
        let band = Band::of(thing.kind, night);
        let group = groups.entry((band, thing.place)).or_default();
        group.extend(std::iter::repeat_n(thing, thing.count));
    }
    let ground = scene.things.iter().any(|thing| thing.kind.is_ground());
    let bands = {
        let mut bands: Vec<Band> = groups.keys().map(|(band, _)| *band).collect();
        bands.dedup();
        bands.len()
    };
    let mut placed = Vec::new();
    for ((band, place), mut things) in groups {
        let room = if bands == 1 && !ground {
            whole.part((0.04, 0.04), (0.96, 0.96))
        } else {
            band.room(whole)
        };
        let room = within(place, room, whole);
        chance.shuffle(&mut things);
        let count = things.len();
        for (at, thing) in things.into_iter().enumerate() {
            placed.push(in_cell(thing, cell(room, at, count), chance));
        }
    }
    placed
}

fn in_cell<'a>(thing: &'a Thing, cell: Area, chance: &mut Chance) -> Placed<'a> {
    let half = cell.width().min(cell.height()) / 2.0;
    // The largest size fills the cell.
    let radius = half * (0.74 * thing.size).min(1.0);
    let sway = |room: f32, share: f32| (room / 2.0 - radius).max(0.0) * (share * 2.0 - 1.0) * 0.6;
    let (right, down) = (chance.share(), chance.share());
    Placed {
        thing,
        x: (cell.left + cell.right) / 2.0 + sway(cell.width(), right),
        y: (cell.top + cell.bottom) / 2.0 + sway(cell.height(), down),
        radius,
        cell,
    }
}

/// The room cut into as many cells as there are things, as square as may be.
fn cell(room: Area, at: usize, count: usize) -> Area {
    let wanted = (count as f32 * room.width() / room.height().max(1.0)).sqrt();
    let columns = (wanted.ceil() as usize).clamp(1, count.max(1));
    let rows = count.div_ceil(columns);
    let (column, row) = (at % columns, at / columns);
    let across = |column: usize| column as f32 / columns as f32;
    let down = |row: usize| row as f32 / rows as f32;
    room.part(
        (across(column), down(row)),
        (across(column + 1), down(row + 1)),
    )
}

// === impl Band ===

impl Band {
    fn of(kind: Kind, night: bool) -> Self {
        match kind {
            Kind::Star if night => Self::Sky,
            Kind::Sun | Kind::Moon | Kind::Cloud => Self::Sky,
            Kind::Mountain => Self::Far,
            Kind::House | Kind::Tree | Kind::Flower | Kind::Car => Self::Standing,
            Kind::Boat | Kind::Fish => Self::Afloat,
            Kind::Text => Self::Text,
            _ => Self::Shapes,
        }
    }

    /// Its room where it is not alone.
    fn room(self, whole: Area) -> Area {
        let (top, bottom) = match self {
            Self::Sky => (0.02, 0.36),
            Self::Far => (0.28, 0.76),
            Self::Standing => (0.42, 0.9),
            Self::Afloat => (0.6, 0.96),
            Self::Shapes => (0.3, 0.8),
            Self::Text => (0.8, 0.98),
        };
        whole.part((0.03, top), (0.97, bottom))
    }
}

/// A named third is taken from the whole picture, an unnamed side from the band.
fn within(place: Place, band: Area, whole: Area) -> Area {
    let third = |number: u8| f32::from(number.min(2)) / 3.0;
    let mut room = band;
    if let Some(column) = place.column {
        let part = whole.part((third(column), 0.0), (third(column) + 1.0 / 3.0, 1.0));
        (room.left, room.right) = (part.left, part.right);
    }
    if let Some(row) = place.row {
        let part = whole.part((0.0, third(row)), (1.0, third(row) + 1.0 / 3.0));
        (room.top, room.bottom) = (part.top, part.bottom);
    }
    room
}
