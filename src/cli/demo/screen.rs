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

/// Behind the label; with it a line has 80 columns.
const TEXT_COLUMNS: usize = 80 - INDENT;

/// Where text begins, two spaces and the label.
const INDENT: usize = LABEL + 2;

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
    /// Spaces since the last word.
    gap: usize,
    /// A word whose end has not come.
    word: String,
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

    /// A label and what belongs to it.
    pub fn fact(&self, label: &str, text: impl Display) -> Result<(), CliError> {
        say(format!("{}{}", self.label(label), laid(&text.to_string())).trim_end())
    }

    pub fn good(&self, label: &str, text: impl Display) -> Result<(), CliError> {
        let text = self.inked(Ink::Green, laid(&text.to_string()));
        say(format!("{}{text}", self.label(label)))
    }

    pub fn bad(&self, label: &str, text: impl Display) -> Result<(), CliError> {
        let text = self.inked(Ink::Red, laid(&text.to_string()));
        say(format!("{}{text}", self.label(label)))
    }

    /// What is to be pasted, on one line.
    pub fn paste(&self, label: &str, text: impl Display) -> Result<(), CliError> {
        say(format!("{}{text}", self.label(label)))
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
    /// Writes the words that a piece ends now; the last one when its end has come.
    pub fn piece(&mut self, piece: &str) -> Result<(), CliError> {
        write(&self.layout.lay(piece))
    }

    pub fn end(mut self) -> Result<(), CliError> {
        write(&format!("{}\n", self.layout.end_word()))
    }
}

// === impl Layout ===

impl Layout {
    fn lay(&mut self, piece: &str) -> String {
        let mut laid = String::new();
        for character in piece.chars() {
            match character {
                '\n' => {
                    laid.push_str(&self.end_word());
                    self.break_line(&mut laid);
                }
                ' ' => {
                    laid.push_str(&self.end_word());
                    self.gap += 1;
                }
                _ if character.is_control() => self.word.extend(character.escape_default()),
                _ => self.word.push(character),
            }
        }
        laid
    }

    /// The word that was begun, on the line that has room for it.
    fn end_word(&mut self) -> String {
        let mut laid = String::new();
        let word = std::mem::take(&mut self.word);
        let width = word.chars().count();
        if width == 0 {
            return laid;
        }
        if self.column > 0 && self.column + self.gap + width > TEXT_COLUMNS {
            self.break_line(&mut laid);
        }
        // Not before there is something to indent: an empty line stays empty.
        if std::mem::take(&mut self.fresh) {
            laid.extend(std::iter::repeat_n(' ', INDENT));
        }
        let gap = std::mem::take(&mut self.gap);
        laid.extend(std::iter::repeat_n(' ', gap));
        laid.push_str(&word);
        self.column += gap + width;
        laid
    }

    fn break_line(&mut self, laid: &mut String) {
        laid.push('\n');
        self.fresh = true;
        self.column = 0;
        self.gap = 0;
    }
}

/// A whole text.
fn laid(text: &str) -> String {
    let mut layout = Layout::default();
    layout.lay(text) + &layout.end_word()
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
