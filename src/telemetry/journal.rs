//! Lines for systemd's journal, which has a time and a priority of its own for each.
//!
//! Why a prefix and not the journal's socket: standard error is what every service has, `journalctl` shows the line as
//! it was written, and what reads the lines elsewhere sees the same.
//!
//! Promise: a line begins with its priority (`<4>`) exactly where standard error is the stream that systemd names.

use std::ffi::OsStr;
use std::fmt;
use std::io;

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::config::{Env, JOURNAL_STREAM};

/// Where standard error goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogPlace {
    /// A terminal, a file, a pipe.
    Plain,
    Journal,
}

/// Priorities of syslog.
pub const ERROR: u8 = 3;
const WARNING: u8 = 4;
const INFO: u8 = 6;
const DEBUG: u8 = 7;

/// Puts its priority before each line.
pub(super) struct WithPriority<F>(pub F);

// === impl LogPlace ===

impl LogPlace {
    /// systemd names the stream that it opened, by device and inode; a process that was started by one that it
    /// started may have another.
    pub fn of_standard_error(env: &Env) -> Self {
        let own = rustix::fs::fstat(io::stderr()).map(|stat| (stat.st_dev, stat.st_ino));
        match (env.get(JOURNAL_STREAM).and_then(device_and_inode), own) {
            (Some(named), Ok(own)) if named == own => Self::Journal,
            _ => Self::Plain,
        }
    }

    /// What a line of this priority begins with.
    pub fn prefix(self, priority: u8) -> String {
        match self {
            Self::Plain => String::new(),
            Self::Journal => format!("<{priority}>"),
        }
    }
}

/// `10:12345`
fn device_and_inode(named: &OsStr) -> Option<(u64, u64)> {
    let (device, inode) = named.to_str()?.split_once(':')?;
    Some((device.parse().ok()?, inode.parse().ok()?))
}

const fn priority(level: Level) -> u8 {
    match level {
        Level::ERROR => ERROR,
        Level::WARN => WARNING,
        Level::INFO => INFO,
        _ => DEBUG,
    }
}

// === impl WithPriority ===

impl<S, N, F> FormatEvent<S, N> for WithPriority<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut line: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        write!(line, "<{}>", priority(*event.metadata().level()))?;
        self.0.format_event(context, line, event)
    }
}

#[cfg(test)]
mod tests;
