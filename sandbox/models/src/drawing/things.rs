//! How each thing looks, in its own measure (see [`Pen`]).
//!
//! Promise: a thing stays within its circle, so that things side by side do not touch; its colour is the
//! colour asked for, small parts aside.

use super::{
    canvas::{Area, Pen, fill},
    letters,
    vocabulary::{BLACK, Kind, Rgb, WHITE, mix},
};
use image::RgbaImage;
use std::f32::consts::{PI, TAU};

const WOOD: Rgb = [120, 80, 45];
const ROOF: Rgb = [165, 60, 45];
const GLASS: Rgb = [200, 228, 245];
const LEAF: Rgb = [50, 140, 60];

pub fn paint(pen: &mut Pen<'_>, kind: Kind, colour: Rgb) {
    match kind {
        Kind::Circle => pen.disc(colour, (0.0, 0.0), 0.95),
        Kind::Square => pen.rectangle(colour, (-0.7, -0.7), (0.7, 0.7)),
        Kind::Rectangle => pen.rectangle(colour, (-0.85, -0.5), (0.85, 0.5)),
        Kind::Triangle => pen.figure(colour, &[(0.0, -0.95), (0.82, 0.48), (-0.82, 0.48)]),
        Kind::Diamond => pen.figure(
            colour,
            &[(0.0, -0.95), (0.7, 0.0), (0.0, 0.95), (-0.7, 0.0)],
        ),
        Kind::Star => pen.figure(colour, &star()),
        Kind::Heart => pen.fill(colour, 1.0, |u, v| {
            let (x, y) = (u * 1.2, -v * 1.2);
            (x * x + y * y - 1.0).powi(3) <= x * x * y * y * y
        }),
        Kind::Ring => pen.fill(colour, 1.0, |u, v| (0.55..=0.95).contains(&u.hypot(v))),
        Kind::Cross => pen.fill(colour, 0.9, |u, v| u.abs() <= 0.27 || v.abs() <= 0.27),
        Kind::House => house(pen, colour),
        Kind::Tree => {
            pen.rectangle(WOOD, (-0.12, 0.2), (0.12, 0.95));
            for (at, radius) in [
                ((-0.32, 0.0), 0.42),
                ((0.32, 0.0), 0.42),
                ((0.0, -0.4), 0.5),
            ] {
                pen.disc(colour, at, radius);
            }
        }
        Kind::Flower => flower(pen, colour),
        Kind::Car => car(pen, colour),
        Kind::Face => face(pen, colour),
        Kind::Sun => {
            pen.disc(colour, (0.0, 0.0), 0.55);
            pen.fill(colour, 0.97, |u, v| {
                let eighth = TAU / 8.0;
                let off = (v.atan2(u) / eighth).fract().abs();
                let far = u.hypot(v);
                (0.65..=0.95).contains(&far) && !(0.18..=0.82).contains(&off)
            });
        }
        Kind::Moon => pen.fill(colour, 1.0, |u, v| {
            u.hypot(v) <= 0.9 && (u - 0.42).hypot(v + 0.1) > 0.75
        }),
        Kind::Cloud => {
            for (at, radius) in [
                ((-0.45, 0.12), 0.36),
                ((0.0, -0.1), 0.45),
                ((0.45, 0.12), 0.36),
            ] {
                pen.disc(colour, at, radius);
            }
            pen.rectangle(colour, (-0.45, 0.1), (0.45, 0.48));
        }
        Kind::Mountain => {
            pen.figure(colour, &[(0.0, -0.75), (0.98, 0.7), (-0.98, 0.7)]);
            pen.figure(
                WHITE,
                &[(0.0, -0.75), (0.24, -0.4), (0.0, -0.3), (-0.24, -0.4)],
            );
        }
        Kind::Boat => {
            pen.figure(
                colour,
                &[(-0.9, 0.3), (0.9, 0.3), (0.6, 0.75), (-0.6, 0.75)],
            );
            pen.rectangle(WOOD, (-0.04, -0.9), (0.04, 0.3));
            pen.figure(WHITE, &[(0.08, -0.85), (0.7, 0.2), (0.08, 0.2)]);
        }
        Kind::Fish => {
            pen.fill(colour, 0.95, |u, v| (u + 0.15).hypot(v * 1.7) <= 0.7);
            pen.figure(colour, &[(0.4, 0.0), (0.92, -0.38), (0.92, 0.38)]);
            pen.disc(BLACK, (-0.5, -0.1), 0.07);
        }
        // Ground and text have no circle of their own.
        Kind::Sea | Kind::Grass | Kind::Sand | Kind::Snow | Kind::Text => {}
    }
}

fn star() -> Vec<(f32, f32)> {
    (0..10)
        .map(|corner| {
            let far = if corner % 2 == 0 { 0.95 } else { 0.4 };
            let angle = corner as f32 * PI / 5.0 - PI / 2.0;
            (angle.cos() * far, angle.sin() * far)
        })
        .collect()
}

fn house(pen: &mut Pen<'_>, colour: Rgb) {
    pen.rectangle(colour, (-0.65, -0.1), (0.65, 0.9));
    pen.figure(ROOF, &[(0.0, -0.8), (0.85, -0.1), (-0.85, -0.1)]);
    pen.rectangle(WOOD, (-0.15, 0.4), (0.15, 0.9));
    pen.rectangle(GLASS, (-0.52, 0.1), (-0.25, 0.35));
    pen.rectangle(GLASS, (0.25, 0.1), (0.52, 0.35));
}

fn flower(pen: &mut Pen<'_>, colour: Rgb) {
    pen.rectangle(LEAF, (-0.05, -0.2), (0.05, 0.95));
    for petal in 0..5 {
        let angle = petal as f32 * TAU / 5.0;
        let at = (angle.sin() * 0.34, -0.35 - angle.cos() * 0.34);
        pen.disc(colour, at, 0.26);
    }
    pen.disc([250, 205, 60], (0.0, -0.35), 0.18);
}

fn car(pen: &mut Pen<'_>, colour: Rgb) {
    pen.figure(
        colour,
        &[(-0.5, -0.1), (-0.3, -0.5), (0.3, -0.5), (0.5, -0.1)],
    );
    pen.rectangle(colour, (-0.9, -0.1), (0.9, 0.35));
    pen.figure(
        GLASS,
        &[(-0.36, -0.12), (-0.22, -0.4), (0.22, -0.4), (0.36, -0.12)],
    );
    for side in [-0.5, 0.5] {
        pen.disc(BLACK, (side, 0.38), 0.2);
        pen.disc([170, 170, 170], (side, 0.38), 0.08);
    }
}

fn face(pen: &mut Pen<'_>, colour: Rgb) {
    pen.disc(colour, (0.0, 0.0), 0.95);
    for side in [-0.33, 0.33] {
        pen.disc(BLACK, (side, -0.25), 0.1);
    }
    pen.fill(BLACK, 0.7, |u, v| {
        v > 0.15 && (0.5..=0.62).contains(&u.hypot(v))
    });
}

/// A band from the area's horizon to its lower edge.
pub fn paint_ground(image: &mut RgbaImage, area: Area, kind: Kind, colour: Rgb) {
    fill(image, area, colour, |_, _| true);
    if kind == Kind::Sea {
        let crest = mix(colour, WHITE, 0.35);
        let step = (area.height() / 5.0).max(2.0);
        fill(image, area, crest, |x, y| {
            let wave = (x / step * 1.5).sin() * step * 0.12;
            ((y - area.top + wave) / step).fract() < 0.12
        });
    }
}

/// The text as large as fits into the area, in its middle.
pub fn paint_text(image: &mut RgbaImage, area: Area, text: &str, colour: Rgb) {
    let lines = letters::lines(text);
    let longest = lines.iter().map(|line| line.chars().count()).max();
    let Some(longest) = longest else {
        return;
    };
    // A letter is followed by one column of space, a line by two rows.
    let columns = (longest * (letters::COLUMNS + 1) - 1) as f32;
    let rows = (lines.len() * (letters::ROWS + 2) - 2) as f32;
    let dot = (area.width() / columns).min(area.height() / rows);
    let left = area.left + (area.width() - dot * columns) / 2.0;
    let top = area.top + (area.height() - dot * rows) / 2.0;
    let lines: Vec<Vec<char>> = lines.iter().map(|line| line.chars().collect()).collect();
    fill(image, area, colour, |x, y| {
        let (x, y) = ((x - left) / dot, (y - top) / dot);
        if x < 0.0 || y < 0.0 {
            return false;
        }
        let (column, row) = (x as usize, y as usize);
        let sign = lines
            .get(row / (letters::ROWS + 2))
            .and_then(|line| line.get(column / (letters::COLUMNS + 1)));
        sign.is_some_and(|sign| {
            letters::dot(
                *sign,
                column % (letters::COLUMNS + 1),
                row % (letters::ROWS + 2),
            )
        })
    });
}
