//! The picture while it is painted: areas told by a rule, with soft edges.
//!
//! Promise: nothing is painted outside the picture; each pixel takes as much of a colour as lies inside.

use super::vocabulary::Rgb;
use image::{Rgba, RgbaImage};

/// Where in a pixel a rule is asked: a quarter of the way from each corner.
const SAMPLES: [(f32, f32); 4] = [(0.25, 0.25), (0.75, 0.25), (0.25, 0.75), (0.75, 0.75)];

/// A part of the picture, in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Area {
    pub left: f32,
    pub top: f32,
    pub right: f32,
    pub bottom: f32,
}

/// Paints one thing in its own measure: its middle is 0, its edges are -1 and 1, down is positive.
pub struct Pen<'a> {
    pub image: &'a mut RgbaImage,
    pub x: f32,
    pub y: f32,
    pub radius: f32,
}

// === impl Area ===

impl Area {
    pub fn of(image: &RgbaImage) -> Self {
        Self {
            left: 0.0,
            top: 0.0,
            right: image.width() as f32,
            bottom: image.height() as f32,
        }
    }

    pub fn width(self) -> f32 {
        self.right - self.left
    }

    pub fn height(self) -> f32 {
        self.bottom - self.top
    }

    /// The part from these shares of the width and height to those.
    pub fn part(self, from: (f32, f32), to: (f32, f32)) -> Self {
        Self {
            left: self.left + self.width() * from.0,
            top: self.top + self.height() * from.1,
            right: self.left + self.width() * to.0,
            bottom: self.top + self.height() * to.1,
        }
    }
}

// === impl Pen ===

impl Pen<'_> {
    /// Paints what is `inside`, within -reach to reach each way.
    pub fn fill(&mut self, colour: Rgb, reach: f32, inside: impl Fn(f32, f32) -> bool) {
        let (x, y, radius) = (self.x, self.y, self.radius.max(0.5));
        let area = Area {
            left: x - radius * reach,
            top: y - radius * reach,
            right: x + radius * reach,
            bottom: y + radius * reach,
        };
        fill(self.image, area, colour, |px, py| {
            inside((px - x) / radius, (py - y) / radius)
        });
    }

    pub fn disc(&mut self, colour: Rgb, (u, v): (f32, f32), radius: f32) {
        let reach = u.abs().max(v.abs()) + radius;
        self.fill(colour, reach, |a, b| (a - u).hypot(b - v) <= radius);
    }

    pub fn rectangle(&mut self, colour: Rgb, from: (f32, f32), to: (f32, f32)) {
        let reach = [from.0, from.1, to.0, to.1]
            .into_iter()
            .fold(0.0_f32, |most, edge| most.max(edge.abs()));
        self.fill(colour, reach, |u, v| {
            (from.0..=to.0).contains(&u) && (from.1..=to.1).contains(&v)
        });
    }

    /// A figure with straight edges, given by its corners in order.
    pub fn figure(&mut self, colour: Rgb, corners: &[(f32, f32)]) {
        let reach = corners
            .iter()
            .fold(0.0_f32, |most, (u, v)| most.max(u.abs()).max(v.abs()));
        self.fill(colour, reach, |u, v| crossings(corners, u, v) % 2 == 1);
    }
}

/// How many edges a ray to the right of the point meets.
fn crossings(corners: &[(f32, f32)], u: f32, v: f32) -> usize {
    let next = corners.iter().cycle().skip(1);
    corners
        .iter()
        .zip(next)
        .filter(|((au, av), (bu, bv))| {
            (*av > v) != (*bv > v) && u < au + (v - av) / (bv - av) * (bu - au)
        })
        .count()
}

/// Paints what is `inside` of an area of the picture.
pub fn fill(image: &mut RgbaImage, area: Area, colour: Rgb, inside: impl Fn(f32, f32) -> bool) {
    // A cast from a float ends at the type's bounds, so far-off areas are empty.
    let (left, top) = (area.left.floor() as u32, area.top.floor() as u32);
    let right = (area.right.ceil() as u32).min(image.width());
    let bottom = (area.bottom.ceil() as u32).min(image.height());
    for y in top..bottom {
        for x in left..right {
            let met = SAMPLES
                .iter()
                .filter(|(dx, dy)| inside(x as f32 + dx, y as f32 + dy))
                .count();
            if met > 0 {
                let share = met as f32 / SAMPLES.len() as f32;
                cover(image.get_pixel_mut(x, y), colour, share);
            }
        }
    }
}

fn cover(pixel: &mut Rgba<u8>, colour: Rgb, share: f32) {
    let [red, green, blue] = colour;
    *pixel = blend(*pixel, Rgba([red, green, blue, 255]), share);
}

/// Between two pixels: `share` of the second, from 0 to 1.
pub fn blend(a: Rgba<u8>, b: Rgba<u8>, share: f32) -> Rgba<u8> {
    let mut mixed = a;
    for (to, from) in mixed.0.iter_mut().zip(b.0) {
        *to = (f32::from(*to) * (1.0 - share) + f32::from(from) * share).round() as u8;
    }
    mixed
}
