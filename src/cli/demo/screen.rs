//! What the reader sees: labelled lines, prose as it arrives, colours on a terminal only.
//!
//! Promise: in a pipe, or with `NO_COLOR` set, plain lines; no control character of an answer
//! reaches the terminal.

use std::fmt::Display;
use std::io::{self, Write};

use crate::cli::error::CliError;
use crate::cli::look::{Ink, Look};
use crate::cli::output::say;

/// Width of a label with its gap, in characters.
const LABEL: usize = 11;

/// Prose is broken at the first space behind this column.
const PROSE_COLUMN: usize = 84;

/// Standard output.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    look: Look,
}

/// Text that is written piece by piece under a label.
#[derive(Debug)]
pub struct Prose {
    layout: Layout,
}

/// Breaks lines between words.
#[derive(Debug, Default)]
struct Layout {
    column: usize,
    /// A new line was begun and nothing stands on it.
    fresh: bool,
}

// === impl Screen ===

impl Screen {
    pub fn of_standard_output() -> Self {
        Self {
            look: Look::of_standard_output(),
        }
    }

    pub fn heading(&self, text: impl Display) -> Result<(), CliError> {
        say(self.inked(Ink::Bold, text))
    }

    /// A label and what belongs to it, on one line.
    pub fn fact(&self, label: &str, text: impl Display) -> Result<(), CliError> {
        say(format!("{}{text}", self.label(label)).trim_end())
    }

    pub fn good(&self, label: &str, text: impl Display) -> Result<(), CliError> {
        self.fact(label, self.inked(Ink::Green, text))
    }

    pub fn bad(&self, label: &str, text: impl Display) -> Result<(), CliError> {
        self.fact(label, self.inked(Ink::Red, text))
    }

    /// A whole text at once.
    pub fn prose(&self, label: &str, text: &str) -> Result<(), CliError> {
        let mut prose = self.begin(label)?;
        for word in words(text) {
            prose.piece(word)?;
        }
        prose.end()
    }

    /// Begins a text whose pieces are still to come.
    pub fn begin(&self, label: &str) -> Result<Prose, CliError> {
        write(&self.label(label))?;
        Ok(Prose {
            layout: Layout::default(),
        })
    }

    fn label(&self, label: &str) -> String {
        let padded = format!("{label:<LABEL$}");
        format!("  {}", self.inked(Ink::Faint, padded))
    }

    fn inked(&self, ink: Ink, text: impl Display) -> String {
        self.look.inked(ink, text)
    }
}

// === impl Prose ===

impl Prose {
    /// Writes a piece now.
    pub fn piece(&mut self, piece: &str) -> Result<(), CliError> {
        write(&self.layout.lay(piece))
    }

    pub fn end(self) -> Result<(), CliError> {
        write("\n")
    }
}

// === impl Layout ===

impl Layout {
    fn lay(&mut self, piece: &str) -> String {
        let mut laid = String::new();
        let mut rest = piece;
        if piece.starts_with(' ') && self.column > PROSE_COLUMN {
            rest = piece.trim_start_matches(' ');
            self.break_line(&mut laid);
        }
        for character in rest.chars() {
            if character == '\n' {
                self.break_line(&mut laid);
                continue;
            }
            // Not before there is something to indent: an empty line stays empty.
            if std::mem::take(&mut self.fresh) {
                laid.extend(std::iter::repeat_n(' ', LABEL + 2));
            }
            if character.is_control() {
                laid.extend(character.escape_default());
            } else {
                laid.push(character);
            }
            self.column += 1;
        }
        laid
    }

    fn break_line(&mut self, laid: &mut String) {
        laid.push('\n');
        self.fresh = true;
        self.column = 0;
    }
}

/// A text in words, each but the first with the space before it.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let spaces = text.match_indices(' ').map(|(at, _)| at);
    let ends = spaces.clone().chain([text.len()]);
    let begins = std::iter::once(0).chain(spaces);
    begins
        .zip(ends)
        .filter_map(|(begin, end)| text.get(begin..end))
}

/// Writes without ending the line; it goes out at once.
fn write(text: &str) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(CliError::ReaderGone),
        Err(error) => Err(CliError::Output(error)),
    }
}

#[cfg(test)]
mod tests;
