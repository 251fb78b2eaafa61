//! What a command prints: results on standard output, remarks on standard error.
//!
//! Promise: a line goes out at once; a reader that closes the pipe is no mistake.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use serde::Serialize;

use super::error::CliError;
use crate::screen;

/// One line on standard output. It goes out at once: a pipe's reader may wait for it.
pub fn say(line: impl Display) -> Result<(), CliError> {
    let text = line.to_string();
    let mut out = io::stdout().lock();
    let written = out
        .write_all(text.trim_end_matches('\n').as_bytes())
        .and_then(|()| out.write_all(b"\n"))
        .and_then(|()| out.flush());
    match written {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(CliError::ReaderGone),
        Err(error) => Err(CliError::Output(error)),
    }
}

/// A document as one line of JSON on standard output, which may be a person's screen: see [`crate::screen`].
pub fn say_document(document: &impl Serialize) -> Result<(), CliError> {
    say(screen::shown_json(&serde_json::to_string(document)?))
}

/// A remark for the person at the terminal; never part of a result.
pub fn remark(text: impl Display) {
    // Without a standard error there is no place to report it.
    let _ = writeln!(io::stderr(), "{text}");
}

/// Whether standard output is a terminal and not a pipe or a file.
pub fn at_terminal() -> bool {
    io::stdout().is_terminal()
}
