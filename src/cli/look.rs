//! How text stands on a person's screen: how wide, and in which colours.
//!
//! What goes to no terminal is as wide as a small one, so that a mail, a log and a screen show the same; programs
//! read `--json` and `--csv`.
//!
//! Promise: colours go to a terminal only, and to none with `NO_COLOR`; a line is broken between words. What has no
//! space is not broken, nor a command in backticks, so that a key or a command can be copied.

use std::fmt::Display;
use std::io::{self, IsTerminal};

use crate::screen::columns;

/// Columns where there is no terminal that says how many it has.
const WIDTH: usize = 80;

/// Fewer are not kept to.
const WIDTH_MIN: usize = 40;

/// How standard output looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// `None`: as wide as it gets.
    width: Option<usize>,
    has_colours: bool,
}

/// A colour, or another way to stand out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    Plain,
    Bold,
    Faint,
    Green,
    Red,
    Yellow,
}

// === impl Look ===

impl Look {
    pub fn of_standard_output() -> Self {
        let out = io::stdout();
        if !out.is_terminal() {
            return Self::of_width(WIDTH);
        }
        let size = rustix::termios::tcgetwinsize(&out).ok();
        // A terminal that does not know has 0.
        let width = size.map(|size| usize::from(size.ws_col));
        let width = width.filter(|width| *width > 0).unwrap_or(WIDTH);
        #[expect(
            clippy::disallowed_methods,
            reason = "a convention of terminals (no-color.org), no setting of bursar"
        )]
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let look = Self::of_width(width);
        if refused { look } else { look.with_colours() }
    }

    /// So many columns, without colours.
    pub fn of_width(width: usize) -> Self {
        Self {
            width: Some(width.max(WIDTH_MIN)),
            has_colours: false,
        }
    }

    /// Everything, without colours.
    pub fn unlimited() -> Self {
        Self {
            width: None,
            has_colours: false,
        }
    }

    /// The same without a limit of its width.
    #[must_use]
    pub fn wide(self) -> Self {
        Self {
            width: None,
            ..self
        }
    }

    #[must_use]
    pub fn with_colours(self) -> Self {
        Self {
            has_colours: true,
            ..self
        }
    }

    pub fn width(&self) -> Option<usize> {
        self.width
    }

    pub fn inked(&self, ink: Ink, text: impl Display) -> String {
        let code = match ink {
            Ink::Plain => return text.to_string(),
            Ink::Bold => "1",
            Ink::Faint => "2",
            Ink::Green => "32",
            Ink::Red => "31",
            Ink::Yellow => "33",
        };
        if self.has_colours {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_string()
        }
    }

    /// A text in lines that fit, the second and further ones behind `indent` spaces. Line ends of the text stay, and so
    /// do the spaces that a line begins with.
    pub fn wrapped(&self, text: &str, indent: usize) -> String {
        let Some(width) = self.width else {
            return text.to_owned();
        };
        let lines = text.split('\n').map(|line| wrapped(line, width, indent));
        lines.collect::<Vec<_>>().join("\n")
    }
}

fn wrapped(line: &str, width: usize, indent: usize) -> String {
    if columns(line) <= width {
        return line.to_owned();
    }
    let (mut laid, mut column) = (String::with_capacity(line.len()), 0);
    // A label with its gap is no place to break.
    let words = line.trim_start_matches(' ');
    let begin = line.len() - words.len();
    laid.extend(std::iter::repeat_n(' ', begin));
    column += begin;
    let mut is_command = false;
    let words = words.split(|letter: char| {
        is_command ^= letter == '`';
        letter == ' ' && !is_command
    });
    for (at, word) in words.enumerate() {
        let length = columns(word);
        if at > 0 && column + 1 + length > width && column > indent && length > 0 {
            laid.truncate(laid.trim_end_matches(' ').len());
            laid.push('\n');
            laid.extend(std::iter::repeat_n(' ', indent));
            column = indent;
        } else if at > 0 {
            laid.push(' ');
            column += 1;
        }
        laid.push_str(word);
        column += length;
    }
    laid
}

#[cfg(test)]
mod tests;
