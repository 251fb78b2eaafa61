//! The words a prompt may use, and what each means here.
//!
//! Promise: one table per kind of word; a word that stands in none is passed over.

/// What can be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Circle,
    Square,
    Rectangle,
    Triangle,
    Diamond,
    Star,
    Heart,
    Ring,
    Cross,
    House,
    Tree,
    Flower,
    Car,
    Face,
    Sun,
    Moon,
    Cloud,
    Mountain,
    Boat,
    Fish,
    Sea,
    Grass,
    Sand,
    Snow,
    Text,
}

pub type Rgb = [u8; 3];

pub const WHITE: Rgb = [255, 255, 255];
pub const BLACK: Rgb = [0, 0, 0];
pub const SKY: Rgb = [176, 216, 245];
pub const NIGHT: Rgb = [18, 24, 58];
pub const DUSK: Rgb = [246, 170, 110];

#[rustfmt::skip]
const COLOURS: &[(&str, Rgb)] = &[
    ("red", [220, 40, 40]), ("green", [40, 160, 70]), ("blue", [40, 90, 220]), ("yellow", [245, 215, 50]),
    ("orange", [240, 140, 40]), ("purple", [130, 60, 170]), ("violet", [143, 90, 200]), ("pink", [245, 130, 180]),
    ("brown", [130, 85, 50]), ("black", BLACK), ("white", WHITE), ("grey", [128, 128, 128]),
    ("gray", [128, 128, 128]), ("cyan", [40, 200, 215]), ("turquoise", [60, 200, 185]), ("teal", [20, 125, 125]),
    ("magenta", [210, 40, 160]), ("gold", [218, 170, 40]), ("golden", [218, 170, 40]), ("silver", [192, 192, 200]),
    ("beige", [235, 220, 185]), ("navy", [20, 30, 100]), ("crimson", [165, 20, 50]), ("lime", [150, 215, 40]),
    ("olive", [115, 120, 40]), ("maroon", [120, 20, 40]), ("indigo", [70, 40, 140]), ("lavender", [190, 165, 230]),
];

#[rustfmt::skip]
const KINDS: &[(&str, Kind)] = &[
    ("circle", Kind::Circle), ("ball", Kind::Circle), ("dot", Kind::Circle), ("disc", Kind::Circle),
    ("square", Kind::Square), ("box", Kind::Square), ("rectangle", Kind::Rectangle), ("triangle", Kind::Triangle),
    ("diamond", Kind::Diamond), ("rhombus", Kind::Diamond), ("star", Kind::Star), ("heart", Kind::Heart),
    ("ring", Kind::Ring), ("donut", Kind::Ring), ("cross", Kind::Cross), ("plus", Kind::Cross),
    ("house", Kind::House), ("home", Kind::House), ("cottage", Kind::House), ("hut", Kind::House),
    ("tree", Kind::Tree), ("forest", Kind::Tree), ("flower", Kind::Flower), ("rose", Kind::Flower),
    ("tulip", Kind::Flower), ("car", Kind::Car), ("face", Kind::Face), ("smiley", Kind::Face),
    ("sun", Kind::Sun), ("moon", Kind::Moon), ("cloud", Kind::Cloud), ("mountain", Kind::Mountain),
    ("hill", Kind::Mountain), ("boat", Kind::Boat), ("ship", Kind::Boat), ("fish", Kind::Fish),
    ("sea", Kind::Sea), ("ocean", Kind::Sea), ("lake", Kind::Sea), ("water", Kind::Sea),
    ("grass", Kind::Grass), ("meadow", Kind::Grass), ("field", Kind::Grass), ("lawn", Kind::Grass),
    ("sand", Kind::Sand), ("beach", Kind::Sand), ("desert", Kind::Sand), ("snow", Kind::Snow),
];

const NUMBERS: &[(&str, usize)] = &[
    ("a", 1),
    ("an", 1),
    ("one", 1),
    ("two", 2),
    ("couple", 2),
    ("pair", 2),
    ("three", 3),
    ("few", 3),
    ("four", 4),
    ("five", 5),
    ("several", 5),
    ("six", 6),
    ("seven", 7),
    ("eight", 8),
    ("nine", 9),
    ("many", 9),
    ("ten", 10),
    ("eleven", 11),
    ("twelve", 12),
    ("dozen", 12),
];

fn look_up<T: Copy>(table: &[(&'static str, T)], word: &str) -> Option<(&'static str, T)> {
    table.iter().find(|(name, _)| *name == word).copied()
}

pub fn colour(word: &str) -> Option<(&'static str, Rgb)> {
    look_up(COLOURS, word)
}

/// The thing, and whether the word is its plural.
pub fn kind(word: &str) -> Option<(Kind, bool)> {
    if let Some((_, kind)) = look_up(KINDS, word) {
        return Some((kind, false));
    }
    let singular = word.strip_suffix('s')?;
    look_up(KINDS, singular)
        .or_else(|| look_up(KINDS, singular.strip_suffix('e')?))
        .map(|(_, kind)| (kind, true))
}

pub fn number(word: &str) -> Option<usize> {
    look_up(NUMBERS, word)
        .map(|(_, number)| number)
        .or_else(|| word.parse().ok())
}

/// How large beside the usual.
pub fn size(word: &str) -> Option<f32> {
    match word {
        "tiny" => Some(0.4),
        "small" | "little" => Some(0.6),
        "big" | "large" => Some(1.25),
        "huge" | "giant" | "enormous" => Some(1.33),
        _ => None,
    }
}

/// How much a shade mixes in, and of what.
pub fn shade(word: &str) -> Option<(Rgb, f32)> {
    match word {
        "light" | "pale" | "pastel" => Some((WHITE, 0.5)),
        "dark" | "deep" => Some((BLACK, 0.45)),
        _ => None,
    }
}

/// `a` and `b` mixed; `share` of `b`, from 0 to 1.
pub fn mix(a: Rgb, b: Rgb, share: f32) -> Rgb {
    let mut mixed = a;
    for (to, from) in mixed.iter_mut().zip(b) {
        *to = (f32::from(*to) * (1.0 - share) + f32::from(from) * share).round() as u8;
    }
    mixed
}

// === impl Kind ===

impl Kind {
    pub fn name(self) -> &'static str {
        if self == Self::Text {
            return "text";
        }
        KINDS
            .iter()
            .find(|(_, kind)| *kind == self)
            .map_or("thing", |(name, _)| name)
    }

    /// Stretches over the whole width below the horizon.
    pub fn is_ground(self) -> bool {
        matches!(self, Self::Sea | Self::Grass | Self::Sand | Self::Snow)
    }

    /// Stands in the open air, so that a sky belongs behind it.
    pub fn is_outdoors(self) -> bool {
        self.is_ground()
            || matches!(
                self,
                Self::House
                    | Self::Tree
                    | Self::Sun
                    | Self::Moon
                    | Self::Cloud
                    | Self::Mountain
                    | Self::Boat
            )
    }

    /// The colour of a thing whose prompt names none; shapes have none of their own.
    pub fn own_colour(self) -> Option<Rgb> {
        let named = |name: &str| colour(name).map(|(_, rgb)| rgb);
        match self {
            Self::House => named("beige"),
            Self::Tree | Self::Grass => named("green"),
            Self::Sun | Self::Moon | Self::Star | Self::Face => named("yellow"),
            Self::Cloud | Self::Snow => Some(WHITE),
            Self::Mountain => named("grey"),
            Self::Boat => named("brown"),
            Self::Sea => named("blue"),
            Self::Sand => Some([225, 200, 130]),
            Self::Heart => named("red"),
            _ => None,
        }
    }
}

/// Black or white, whichever can be read on it.
pub fn ink_on([red, green, blue]: Rgb) -> Rgb {
    let light = 299 * u32::from(red) + 587 * u32::from(green) + 114 * u32::from(blue);
    if light > 128_000 { BLACK } else { WHITE }
}

/// For shapes whose prompt names no colour.
pub fn any_colour(number: u64) -> Rgb {
    const PLAIN: usize = 8;
    let at = usize::try_from(number).unwrap_or(0) % PLAIN;
    COLOURS.get(at).map_or(BLACK, |(_, rgb)| *rgb)
}
