//! Letters as dots, for the text that a prompt puts in quotes.
//!
//! Promise: every sign has a form; one that the font lacks is an empty box, small letters are drawn as
//! capitals.

use std::{collections::HashMap, sync::LazyLock};

pub const COLUMNS: usize = 5;
pub const ROWS: usize = 7;
/// Signs of one line, and lines of one text: more is cut off.
const LINE_MAX: usize = 14;
const LINES_MAX: usize = 6;

type Rows = [u8; ROWS];

/// What stands for a sign that the font lacks.
const UNKNOWN: Rows = [0x1f, 0x11, 0x11, 0x11, 0x11, 0x11, 0x1f];

static FONT: LazyLock<HashMap<char, Rows>> = LazyLock::new(|| {
    include_str!("letters.txt")
        .lines()
        .filter_map(letter)
        .collect()
});

fn letter(line: &str) -> Option<(char, Rows)> {
    let mut parts = line.split(' ');
    let mut sign = parts.next()?.chars();
    let (sign, None) = (sign.next()?, sign.next()) else {
        return None;
    };
    let mut rows = [0; ROWS];
    for row in &mut rows {
        *row = u8::from_str_radix(parts.next()?, 16).ok()?;
    }
    Some((sign, rows))
}

/// Whether the dot at this column and row of the sign is set.
pub fn dot(sign: char, column: usize, row: usize) -> bool {
    if sign == ' ' || column >= COLUMNS {
        return false;
    }
    let capital = sign.to_uppercase().next().unwrap_or(sign);
    let rows = FONT.get(&capital).unwrap_or(&UNKNOWN);
    rows.get(row)
        .is_some_and(|bits| bits >> (COLUMNS - 1 - column) & 1 == 1)
}

/// The text in lines of whole words; a word longer than a line is cut.
pub fn lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let word: String = word.chars().take(LINE_MAX).collect();
        let room = lines
            .last_mut()
            .filter(|line| line.chars().count() + 1 + word.chars().count() <= LINE_MAX);
        match room {
            Some(line) => {
                line.push(' ');
                line.push_str(&word);
            }
            None => lines.push(word),
        }
    }
    lines.truncate(LINES_MAX);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(sign: char) -> Vec<String> {
        let row =
            |row| (0..COLUMNS).map(move |column| if dot(sign, column, row) { '#' } else { '.' });
        (0..ROWS).map(|at| row(at).collect()).collect()
    }

    #[test]
    fn letters_are_drawn_as_they_look() {
        assert_eq!(
            show('t'),
            [
                "#####", "..#..", "..#..", "..#..", "..#..", "..#..", "..#.."
            ]
        );
        assert_eq!(show('日')[0], "#####");
        assert_eq!(show('日')[1], "#...#");
        assert_eq!(show(' ').concat().matches('#').count(), 0);
        // The line of the note at the top of the file is no letter.
        assert_eq!(FONT.len(), 56);
    }

    #[test]
    fn a_text_is_cut_into_lines_of_whole_words() {
        assert_eq!(
            lines("Happy birthday dear Ann"),
            ["Happy birthday", "dear Ann"]
        );
        assert_eq!(lines("incomprehensibilities"), ["incomprehensib"]);
        assert_eq!(lines(&"word ".repeat(200)).len(), LINES_MAX);
        assert!(lines("  ").is_empty());
    }
}
