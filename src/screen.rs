//! Foreign text on a person's screen: models, keys and receipt lines contain text of an app or the service.
//!
//! A terminal obeys control characters, and any Unicode display obeys marks that turn the direction of a
//! line, end it, or show nothing at all, so that the text on the screen differs from the real one.
//!
//! Promise: the shown text contains none of them; each is written as its number, `\u{202e}`, and all other
//! text is unchanged.

use std::borrow::Cow;
use std::fmt::Write;

/// Besides control characters (C0, DEL, C1): characters that turn the direction, end a line, have no width,
/// or show nothing. Unicode 16: the property `Default_Ignorable_Code_Point` (all marks of direction are in
/// it), the separators of lines and paragraphs, and the anchors of annotations.
const UNSEEN: [(char, char); 17] = [
    ('\u{00ad}', '\u{00ad}'),
    ('\u{034f}', '\u{034f}'),
    ('\u{061c}', '\u{061c}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180f}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{fe00}', '\u{fe0f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{fff0}', '\u{fffb}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0000}', '\u{e0fff}'),
];

/// What takes two columns of a terminal: wide characters of East Asia and pictures. Some narrow signs among them
/// count as wide, so that no line is longer than it was reckoned.
const WIDE: [(char, char); 12] = [
    ('\u{1100}', '\u{115e}'),
    ('\u{231a}', '\u{23f3}'),
    ('\u{2600}', '\u{27bf}'),
    ('\u{2b1b}', '\u{2b55}'),
    ('\u{2e80}', '\u{a4cf}'),
    ('\u{a960}', '\u{a97c}'),
    ('\u{ac00}', '\u{d7a3}'),
    ('\u{f900}', '\u{faff}'),
    ('\u{fe10}', '\u{fe6f}'),
    ('\u{ff01}', '\u{ffe6}'),
    ('\u{16fe0}', '\u{1b2ff}'),
    ('\u{1f000}', '\u{3fffd}'),
];

/// How many columns of a terminal a text takes, at most.
pub fn columns(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// The text, or as much of its beginning as fits, with a `…` behind it.
pub fn cut(text: &str, width: usize) -> Cow<'_, str> {
    if columns(text) <= width {
        return Cow::Borrowed(text);
    }
    let mut left = width.saturating_sub(1);
    let kept = text.chars().take_while(|character| {
        let rest = left.checked_sub(columns_of(*character));
        left = rest.unwrap_or(left);
        rest.is_some()
    });
    Cow::Owned(kept.chain(['…']).collect())
}

fn columns_of(character: char) -> usize {
    let is_listed = |(first, last): &(char, char)| (*first..=*last).contains(&character);
    1 + usize::from(!character.is_ascii() && WIDE.iter().any(is_listed))
}

/// The text as a person may see it.
pub fn shown(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unseen) {
        return Cow::Borrowed(text);
    }
    let written = text.chars().fold(String::new(), |mut shown, character| {
        if is_unseen(character) {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
        shown
    });
    Cow::Owned(written)
}

/// The same for a JSON document: another spelling of the same document, because such characters
/// occur in its strings only.
pub fn shown_json(document: &str) -> Cow<'_, str> {
    if !document.chars().any(is_unseen) {
        return Cow::Borrowed(document);
    }
    let written = document
        .chars()
        .fold(String::new(), |mut shown, character| {
            if is_unseen(character) {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    // Writing to a string does not fail.
                    let _ = write!(shown, "\\u{unit:04x}");
                }
            } else {
                shown.push(character);
            }
            shown
        });
    Cow::Owned(written)
}

fn is_unseen(character: char) -> bool {
    let is_listed = |(first, last): &(char, char)| (*first..=*last).contains(&character);
    character.is_control() || (!character.is_ascii() && UNSEEN.iter().any(is_listed))
}

#[cfg(test)]
mod tests;
