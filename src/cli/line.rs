//! `bursar line`: spend and trouble in one line, for a prompt, tmux, or a program's status line.
//!
//! A program that runs it as its status line (Claude Code) writes a JSON object into standard input, whose
//! `session_id` is the session of the figure in front.
//!
//! Promise: one question to a daemon that has the figures in memory, no file but the configuration, and a bounded wait:
//! what asks each second is not kept waiting. Whatever it finds out it prints, with exit code 0, for a status line that
//! ends otherwise is left empty by what shows it. A figure that is not known is left out, and never 0; text of a daemon
//! does not control the terminal.

use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout};

use super::daemon::Question;
use super::error::CliError;
use super::locate::SourceArgs;
use super::output::{say, say_document};
use super::runtime::block_on;
use crate::admin::line::LineDocument;
use crate::config::ListenAddr;
use crate::ledger::MicroUsdSum;
use crate::screen::shown;

/// A daemon that hangs is not waited for any longer.
const DEADLINE: Duration = Duration::from_millis(500);

/// Neither is a program that leaves standard input open and writes nothing.
const INPUT_DEADLINE: Duration = Duration::from_millis(100);

/// Most of standard input that is read.
const INPUT_BYTES_MAX: usize = 256 * 1024;

const SILENT: &str = "bursar: no answer";
const AWAY: &str = "bursar: not running";

const CENT_MICRO_USD: u128 = 10_000;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The app whose day is shown; without it that of all apps
    #[arg(long, value_name = "NAME")]
    app: Option<String>,
    /// The session whose sum stands in front; without it the `session_id` of a JSON object on standard input
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Print one JSON object: the line, and the figures behind it
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    source: SourceArgs,
}

/// `bursar line --json`.
#[derive(Serialize)]
struct LineAnswer {
    line: String,
    /// `null`: there are none, and the line says why.
    day: Option<LineDocument>,
    /// The address that they are from. `null`: no daemon gave them.
    asked: Option<String>,
}

/// What a program writes into its status line's command, as far as it is read.
#[derive(Debug, Deserialize)]
struct StatusLineInput {
    session_id: Option<String>,
}

pub fn line(args: &Args) -> Result<(), CliError> {
    let mut question = Question::new("/api/line");
    if let Some(app) = &args.app {
        question.add("app", app);
    }
    if let Some(session) = args.session.clone().or_else(named_session) {
        question.add("session", &session);
    }
    let asked = block_on(async {
        let asking = args.source.ask_quickly::<LineDocument>(&question, DEADLINE);
        timeout(DEADLINE, asking)
            .await
            .map_err(|_| CliError::Said)?
    });
    let without_figures = |line: &str| LineAnswer {
        line: line.to_owned(),
        day: None,
        asked: None,
    };
    let answer = match asked {
        Ok(Some((day, address))) => LineAnswer {
            line: text(&day, &address),
            day: Some(day),
            asked: Some(address.to_string()),
        },
        Ok(None) => without_figures(AWAY),
        Err(CliError::Said) => without_figures(SILENT),
        Err(CliError::Client(error)) if error.means_silence() => without_figures(SILENT),
        // What was typed or configured wrong is reported as by every command.
        Err(error @ (CliError::Usage(_) | CliError::Config(_))) => return Err(error),
        Err(error) => {
            let words = error.to_string();
            let first = words.lines().next().unwrap_or_default();
            without_figures(&format!("bursar: {}", shown(first)))
        }
    };
    match args.json {
        true => say_document(&answer),
        false => say(answer.line),
    }
}

/// The session that a program names on standard input. A terminal is not asked: a person would be waited for.
fn named_session() -> Option<String> {
    let input = io::stdin();
    if input.is_terminal() {
        return None;
    }
    session_in(input.as_fd())
}

/// Reads as much as there is of one object, and no longer than [`INPUT_DEADLINE`].
fn session_in(input: BorrowedFd<'_>) -> Option<String> {
    let until = Instant::now() + INPUT_DEADLINE;
    let mut read = Vec::new();
    let mut piece = [0; 16 * 1024];
    while read.len() < INPUT_BYTES_MAX {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).ok()?;
        let mut waiting = [PollFd::new(&input, PollFlags::IN)];
        if poll(&mut waiting, Some(&left)).ok()? == 0 {
            return None;
        }
        let bytes = rustix::io::read(input, &mut piece).ok()?;
        read.extend_from_slice(piece.get(..bytes)?);
        // The object may be whole before its writer closes.
        match serde_json::from_slice::<StatusLineInput>(&read) {
            Ok(input) => return input.session_id.filter(|session| !session.is_empty()),
            Err(_) if bytes == 0 => return None,
            Err(_) => {}
        }
    }
    None
}

/// `$0.42 session · $3.10 of $5.00 today · 2 in doubt · FROZEN · held back: balance · 127.0.0.1:8328`: the last where the
/// figures are from a port, behind which any user of this machine may listen.
fn text(day: &LineDocument, asked: &ListenAddr) -> String {
    let today = &day.today;
    let mut parts = Vec::new();
    if let Some(session) = day.session_micro_usd {
        parts.push(format!("{} session", cents(session)));
    }
    let of = today
        .limit
        .map(|limit| format!(" of {}", cents(limit.into())));
    parts.push(format!(
        "{}{} today",
        cents(today.spent),
        of.unwrap_or_default()
    ));
    if today.in_doubt > 0 {
        parts.push(format!("{} in doubt", today.in_doubt));
    }
    if today.frozen {
        parts.push("FROZEN".to_owned());
    }
    if !day.held_back_by.is_empty() {
        parts.push(format!("held back: {}", day.held_back_by.join(" ")));
    }
    if !day.writable {
        parts.push("ledger not writable".to_owned());
    }
    if matches!(asked, ListenAddr::Tcp(_)) {
        parts.push(asked.to_string());
    }
    shown(&parts.join(" · ")).into_owned()
}

/// In whole cents, the nearest; what is less than half of one and not nothing is `<$0.01`.
fn cents(sum: MicroUsdSum) -> String {
    let cents = sum.get().saturating_add(CENT_MICRO_USD / 2) / CENT_MICRO_USD;
    if cents == 0 && !sum.is_zero() {
        return "<$0.01".to_owned();
    }
    format!("${}.{:02}", cents / 100, cents % 100)
}

#[cfg(test)]
mod tests;
