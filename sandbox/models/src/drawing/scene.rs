//! A prompt read as a scene: what is in it, how many, in which colours, where, and before what.
//!
//! The grammar is small: colours, numbers and sizes before a thing belong to it, a place after it does;
//! text in quotes is drawn as letters. Promise: the same prompt gives the same scene; whatever a prompt
//! holds, a scene has at most [`THINGS_MAX`] things.

use super::vocabulary::{self as words, Kind, Rgb, mix};

/// Things in one picture; what a prompt wants beyond that is left out.
pub const THINGS_MAX: usize = 100;
const OF_ONE_KIND_MAX: usize = 24;
/// How many words behind "background" a colour may stand.
const BACKGROUND_REACH: usize = 4;

#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    pub background: Option<Colour>,
    pub things: Vec<Thing>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Colour {
    pub name: String,
    pub rgb: Rgb,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Thing {
    pub kind: Kind,
    pub colour: Option<Colour>,
    pub count: usize,
    /// Beside the usual size.
    pub size: f32,
    pub place: Place,
    /// Of [`Kind::Text`].
    pub text: String,
}

/// A third of the picture each way, where the prompt names one: 0, 1 or 2 from the left and from the top.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub column: Option<u8>,
    pub row: Option<u8>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Token {
    Word(String),
    Quote(String),
    /// A comma or a full stop.
    Break,
}

/// What was said of the thing to come.
#[derive(Default)]
struct Pending {
    colour: Option<Colour>,
    shade: Option<(&'static str, Rgb, f32)>,
    count: Option<usize>,
    size: Option<f32>,
    place: Place,
}

// === impl Scene ===

impl Scene {
    pub fn read(prompt: &str) -> Self {
        let tokens = tokens(prompt);
        let mut scene = Self {
            background: None,
            things: Vec::new(),
        };
        let mut pending = Pending::default();
        let mut place_goes_back = false;
        // Words before this place were read with an earlier one.
        let mut next = 0;
        for (at, token) in tokens.iter().enumerate() {
            if at < next {
                continue;
            }
            let word = match token {
                Token::Word(word) => word.as_str(),
                Token::Quote(text) => {
                    scene.add(Kind::Text, false, &mut pending, text);
                    place_goes_back = true;
                    continue;
                }
                Token::Break => {
                    place_goes_back = false;
                    continue;
                }
            };
            if let Some((kind, plural)) = words::kind(word) {
                // "A snow field" is one ground, not two.
                let before = at.checked_sub(1).and_then(|before| tokens.get(before));
                let is_two_words = matches!(before, Some(Token::Word(before))
                    if words::kind(before).is_some_and(|(kind, _)| kind.is_ground()));
                if kind.is_ground() && is_two_words {
                    continue;
                }
                scene.add(kind, plural, &mut pending, "");
                place_goes_back = true;
            } else if matches!(word, "background" | "sky" | "backdrop") {
                let mut said = pending.colour.take();
                if said.is_none()
                    && let Some((colour, behind)) = ahead(&tokens, at)
                {
                    said = Some(colour);
                    next = behind;
                }
                let sky = || Colour::new("sky-blue", words::SKY);
                let known = scene.background.take();
                scene.background = said.or(known).or_else(|| (word == "sky").then(sky));
                pending = Pending::default();
            } else if let Some((name, rgb)) = air(word) {
                scene
                    .background
                    .get_or_insert_with(|| Colour::new(name, rgb));
            } else if let Some(place) = place(word) {
                let thing = scene.things.last_mut().filter(|_| place_goes_back);
                let to = thing.map_or(&mut pending.place, |thing| &mut thing.place);
                *to = to.and(place);
            } else {
                pending.read(word);
            }
        }
        scene
    }

    fn add(&mut self, kind: Kind, plural: bool, pending: &mut Pending, text: &str) {
        let so_far: usize = self.things.iter().map(|thing| thing.count).sum();
        let said = std::mem::take(pending);
        let wanted = said.count.unwrap_or(if plural { 3 } else { 1 });
        let most = if kind.is_ground() || kind == Kind::Text {
            1
        } else {
            OF_ONE_KIND_MAX
        };
        let count = wanted.min(most).min(THINGS_MAX.saturating_sub(so_far));
        if count > 0 {
            self.things.push(Thing {
                kind,
                colour: said.colour,
                count,
                size: said.size.unwrap_or(1.0),
                place: said.place,
                text: text.to_owned(),
            });
        }
    }

    pub fn is_empty(&self) -> bool {
        self.things.is_empty() && self.background.is_none()
    }

    /// What is drawn, in words.
    pub fn describe(&self) -> String {
        let things: Vec<String> = self.things.iter().map(Thing::describe).collect();
        let things = match things.split_last() {
            None => "nothing".to_owned(),
            Some((one, [])) => one.clone(),
            Some((last, others)) => format!("{} and {last}", others.join(", ")),
        };
        match &self.background {
            Some(colour) => format!("{things} on a {} background", colour.name),
            None => things,
        }
    }
}

// === impl Colour ===

impl Colour {
    pub fn new(name: &str, rgb: Rgb) -> Self {
        Self {
            name: name.to_owned(),
            rgb,
        }
    }
}

// === impl Thing ===

impl Thing {
    fn describe(&self) -> String {
        let mut said = match self.count {
            1 if self.kind.is_ground() => String::new(),
            1 => "one ".to_owned(),
            count => format!("{count} "),
        };
        if self.size < 1.0 {
            said.push_str("small ");
        } else if self.size > 1.0 {
            said.push_str("large ");
        }
        if let Some(colour) = &self.colour {
            said.push_str(&colour.name);
            said.push(' ');
        }
        said.push_str(self.kind.name());
        if self.count > 1 && self.kind != Kind::Fish {
            said.push_str(if self.kind == Kind::Cross { "es" } else { "s" });
        }
        if self.kind == Kind::Text {
            said.push_str(&format!(" \"{}\"", self.text));
        }
        said
    }
}

// === impl Pending ===

impl Pending {
    fn read(&mut self, word: &str) {
        if let Some((name, rgb)) = words::colour(word) {
            let colour = match self.shade.take() {
                Some((shade, other, share)) => {
                    Colour::new(&format!("{shade} {name}"), mix(rgb, other, share))
                }
                None => Colour::new(name, rgb),
            };
            self.colour = Some(colour);
        } else if let Some((other, share)) = words::shade(word) {
            let name = if other == words::WHITE {
                "light"
            } else {
                "dark"
            };
            self.shade = Some((name, other, share));
        } else if let Some(size) = words::size(word) {
            self.size = Some(size);
        } else if let Some(count) = words::number(word) {
            // "a dozen", "a few": the article does not count.
            if count != 1 || self.count.is_none() {
                self.count = Some(count);
            }
        }
    }
}

// === impl Place ===

impl Place {
    fn and(self, other: Self) -> Self {
        Self {
            column: other.column.or(self.column),
            row: other.row.or(self.row),
        }
    }
}

fn place(word: &str) -> Option<Place> {
    let (column, row) = match word {
        "left" => (Some(0), None),
        "right" => (Some(2), None),
        "top" | "above" | "upper" => (None, Some(0)),
        "bottom" | "below" | "lower" => (None, Some(2)),
        "middle" | "center" | "centre" => (Some(1), Some(1)),
        _ => return None,
    };
    Some(Place { column, row })
}

/// Times of day are backgrounds.
fn air(word: &str) -> Option<(&'static str, Rgb)> {
    match word {
        "night" | "midnight" => Some(("night-blue", words::NIGHT)),
        "sunset" | "sunrise" | "dusk" | "dawn" => Some(("sunset-orange", words::DUSK)),
        _ => None,
    }
}

/// The colour named soon after, as in "the background is light blue", and the place behind it.
fn ahead(tokens: &[Token], at: usize) -> Option<(Colour, usize)> {
    let mut pending = Pending::default();
    for (place, token) in tokens
        .iter()
        .enumerate()
        .skip(at + 1)
        .take(BACKGROUND_REACH)
    {
        let Token::Word(word) = token else {
            break;
        };
        if words::kind(word).is_some() {
            return None;
        }
        pending.read(word);
        if let Some(colour) = pending.colour.take() {
            return Some((colour, place + 1));
        }
    }
    None
}

/// Words in lower case, and what stands in quotes as it is.
pub fn tokens(prompt: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut word = String::new();
    let mut rest = prompt.chars();
    while let Some(c) = rest.next() {
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
            continue;
        }
        let inside_a_word = !word.is_empty();
        if inside_a_word {
            tokens.push(Token::Word(std::mem::take(&mut word)));
        }
        let close = match c {
            '"' => Some('"'),
            '\u{201c}' => Some('\u{201d}'),
            '\'' if !inside_a_word => Some('\''),
            _ => None,
        };
        match close.and_then(|close| rest.as_str().split_once(close)) {
            Some((quoted, behind)) => {
                if !quoted.trim().is_empty() {
                    tokens.push(Token::Quote(quoted.trim().to_owned()));
                }
                rest = behind.chars();
            }
            None if matches!(c, ',' | '.' | ';') => tokens.push(Token::Break),
            None => {}
        }
    }
    if !word.is_empty() {
        tokens.push(Token::Word(word));
    }
    tokens
}

#[cfg(test)]
mod tests;
