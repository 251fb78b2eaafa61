//! What the reader sees: labelled lines, prose as it arrives, colours on a terminal only.
//!
//! Promise: in a pipe, or with `NO_COLOR` set, plain lines; no control character of an answer
//! reaches the terminal.

use std::fmt::Display;
use std::io::{self, Write};

use crate::cli::error::CliError;
use crate::cli::output::{at_terminal, say};

/// Width of a label with its gap, in characters.
const LABEL: usize = 11;

/// Prose is broken at the first space behind this column.
const PROSE_COLUMN: usize = 84;

/// Characters of text on a line of a narrow page: 80 less the label and its indent.
const NARROW: usize = 80 - LABEL - 2;

/// The beginning of a word may be all of it that has come: room is kept for so many characters, with
/// the space before it and the full stop behind it.
const WORD: usize = 14;

/// Standard output.
#[derive(Clone, Copy, Debug)]
pub struct Stage {
    colours: bool,
    page: Page,
}

/// How much the reader has room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Page {
    /// A fact is one line, however long.
    #[default]
    Wide,
    /// 80 columns: facts are broken between words, too.
    Narrow,
    /// None: the reader is a program that gets one document at the end.
    Silent,
}

/// Text that is written piece by piece under a label.
#[derive(Debug)]
pub struct Prose {
    layout: Layout,
    page: Page,
}

/// Breaks lines between words.
#[derive(Debug, Default)]
struct Layout {
    page: Page,
    /// Least room for a word.
    word: usize,
    column: usize,
    /// A new line was begun and nothing stands on it.
    fresh: bool,
}

#[derive(Clone, Copy, Debug)]
enum Ink {
    Bold,
    Faint,
    Green,
    Red,
}

// === impl Stage ===

impl Stage {
    pub fn of_standard_output() -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "a convention of terminals (no-color.org), no setting of bursar"
        )]
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            colours: at_terminal() && !refused,
            page: Page::Wide,
        }
    }

    /// The same for 80 columns.
    #[must_use]
    pub fn narrow(self) -> Self {
        let page = Page::Narrow;
        Self { page, ..self }
    }

    /// The same for nobody: steps can be played without being told.
    #[must_use]
    pub fn silent(self) -> Self {
        let page = Page::Silent;
        Self { page, ..self }
    }

    /// Room for what matters only.
    pub fn is_brief(&self) -> bool {
        self.page != Page::Wide
    }

    pub fn heading(&self, text: impl Display) -> Result<(), CliError> {
        self.line(self.inked(Ink::Bold, text))
    }

    /// A whole line, as it is; an empty one between two paragraphs.
    pub fn line(&self, text: impl Display) -> Result<(), CliError> {
        match self.page {
            Page::Silent => Ok(()),
            Page::Wide | Page::Narrow => say(text),
        }
    }

    /// A label and what belongs to it. One line, where there is room.
    pub fn fact(&self, label: &str, text: impl Display) -> Result<(), CliError> {
        self.inked_fact(label, None, &text.to_string())
    }

    pub fn good(&self, label: &str, text: impl Display) -> Result<(), CliError> {
        self.inked_fact(label, Some(Ink::Green), &text.to_string())
    }

    pub fn bad(&self, label: &str, text: impl Display) -> Result<(), CliError> {
        self.inked_fact(label, Some(Ink::Red), &text.to_string())
    }

    fn inked_fact(&self, label: &str, ink: Option<Ink>, text: &str) -> Result<(), CliError> {
        let text = match self.page {
            Page::Wide => text.to_owned(),
            Page::Narrow | Page::Silent => Layout::new(self.page).lay_words(text),
        };
        let text = match ink {
            Some(ink) => self.inked(ink, text),
            None => text,
        };
        let line = format!("{}{text}", self.label(label));
        self.line(line.trim_end())
    }

    /// A whole text at once.
    pub fn prose(&self, label: &str, text: &str) -> Result<(), CliError> {
        let mut prose = self.write_label(label, Layout::new(self.page))?;
        for word in words(text) {
            prose.piece(word)?;
        }
        prose.end()
    }

    /// Begins a text whose pieces are still to come.
    pub fn begin(&self, label: &str) -> Result<Prose, CliError> {
        let layout = Layout {
            word: WORD,
            ..Layout::new(self.page)
        };
        self.write_label(label, layout)
    }

    fn write_label(&self, label: &str, layout: Layout) -> Result<Prose, CliError> {
        let prose = Prose {
            layout,
            page: self.page,
        };
        prose.write(&self.label(label))?;
        Ok(prose)
    }

    fn label(&self, label: &str) -> String {
        let padded = format!("{label:<LABEL$}");
        format!("  {}", self.inked(Ink::Faint, padded))
    }

    fn inked(&self, ink: Ink, text: impl Display) -> String {
        let code = match ink {
            Ink::Bold => "1",
            Ink::Faint => "2",
            Ink::Green => "32",
            Ink::Red => "31",
        };
        if self.colours {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_string()
        }
    }
}

// === impl Prose ===

impl Prose {
    /// Writes a piece now.
    pub fn piece(&mut self, piece: &str) -> Result<(), CliError> {
        let laid = self.layout.lay(piece);
        self.write(&laid)
    }

    pub fn end(self) -> Result<(), CliError> {
        self.write("\n")
    }

    fn write(&self, text: &str) -> Result<(), CliError> {
        match self.page {
            Page::Silent => Ok(()),
            Page::Wide | Page::Narrow => write(text),
        }
    }
}

// === impl Layout ===

impl Layout {
    fn new(page: Page) -> Self {
        Self {
            page,
            ..Self::default()
        }
    }

    fn lay_words(mut self, text: &str) -> String {
        words(text).map(|word| self.lay(word)).collect()
    }

    /// A new line is due before this piece.
    fn is_full_for(&self, piece: &str) -> bool {
        match self.page {
            Page::Wide => self.column > PROSE_COLUMN,
            Page::Narrow | Page::Silent => {
                let length = piece.trim_end().chars().count().max(self.word);
                self.column > 0 && self.column + length > NARROW
            }
        }
    }

    fn lay(&mut self, piece: &str) -> String {
        let mut laid = String::new();
        let mut rest = piece;
        if piece.starts_with(' ') && self.is_full_for(piece) {
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
