//! Reads an event stream while its bytes pass: receipts in comment lines, `usage` in data lines,
//! names of events. It also reports which last bytes must not flow yet, so that an app never sees
//! `data: [DONE]` before the receipt is durable (rule I2).
//!
//! Promise: any chunking and LF or CRLF give the same events; nothing is changed; memory per stream
//! is at most one kept line (256 bytes of a comment, 64 KiB of a data line or what is asked for), and a line
//! without end costs none.

mod hold;

use std::ops::Range;
use std::sync::LazyLock;

use memchr::memchr_iter;
use memchr::memmem::Finder;

use crate::protocol::Usage;
use crate::protocol::body::AnswerPeek;

pub use hold::HoldBack;

/// Longest comment line that is read, in bytes, without its line end.
pub const COMMENT_BYTES_MAX: usize = 256;
/// Longest data line whose JSON is parsed, in bytes, without its line end.
pub const DATA_LINE_BYTES_MAX: usize = 64 * 1024;
/// Longest event name that is read, in bytes.
pub const EVENT_NAME_BYTES_MAX: usize = 64;

/// A chunk with `usage`, and what may follow it before it is not waited with any longer, in bytes.
const USAGE_HELD_BYTES_MAX: u64 = 2 * 64 * 1024;

/// What is kept of a carry buffer between lines, so that one long line does not stay for ever.
const CARRY_KEPT_BYTES: usize = 4 * 1024;
/// Both spellings of the end mark. It counts as soon as its `]` is there: SDK parsers treat
/// anything that follows on that line as the end as well.
const DONE_MARKS: [&[u8]; 2] = [b"data: [DONE]", b"data:[DONE]"];
const COMMENT: &[u8] = b": ";
const DATA: &[u8] = b"data:";
const EVENT: &[u8] = b"event:";

static USAGE_KEY: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"usage\""));

/// Which of the interface's two kinds of stream this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKind {
    /// Chat: data only, receipts in comments, ended by `data: [DONE]`.
    Data,
    /// Deploy: `progress`, then `complete` or `error`, which end it. Nothing is ever held.
    NamedEvents,
}

/// One event of a stream. Only complete lines count: a cut `12` may have been `1234`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SseEvent<'a> {
    /// A line `: name value`. `value` is everything after the first space that follows the name,
    /// and empty if there is no such space.
    Comment { name: &'a [u8], value: &'a [u8] },
    /// Token counts of a data line's top-level `usage` object. The last one counts.
    Usage(Usage),
    /// The name of an `event:` line.
    Event(&'a str),
    /// What a data line says, for [`SseScanner::giving_lines`], and of one with `usage` for
    /// [`SseScanner::holding_usage`].
    Line(&'a [u8]),
    /// A data line that was too long to be given.
    LineLost,
}

/// What must wait of the bytes fed so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// Bytes to hold back, counted from the end of the chunk just fed; may reach back into earlier
    /// chunks. Less than the end mark's 12 bytes while `done` is false.
    pub hold: usize,
    /// The end mark has come. Everything from the beginning of its line on is held, whatever
    /// follows.
    pub done: bool,
}

/// Reads one stream. Feed it every chunk, in order.
#[derive(Debug)]
pub struct SseScanner {
    kind: StreamKind,
    /// Bytes fed in all.
    fed: u64,
    /// Where the unfinished line began, counted in bytes fed.
    line_start: u64,
    /// The unfinished line, as long as it can still become one that is read.
    carry: Vec<u8>,
    skipping: Skipping,
    /// Data lines of up to so many bytes are given. `None`: what they say is not wanted.
    line_bytes_max: Option<usize>,
    /// The position of the end mark, counted in bytes fed.
    done_at: Option<Range<u64>>,
    usage: UsageHold,
    terminal: Terminal,
}

/// Whether the last chunk with `usage` waits for the end mark, so that something can be added to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UsageHold {
    Off,
    /// None has come that could be the last.
    None,
    /// The beginning of its line, counted in bytes fed.
    From(u64),
}

/// Whether the unfinished line can still become one that is read; none of it is kept else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Skipping {
    No,
    /// It is none that is read.
    NotRead,
    /// It is longer than what is read.
    TooLong,
}

/// How far the end of a named-event stream has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Terminal {
    NotYet,
    /// The terminal event's name was read; its data and blank line are still to come.
    Named,
    Reached,
}

// === impl SseScanner ===

impl SseScanner {
    pub fn new(kind: StreamKind) -> Self {
        Self {
            kind,
            fed: 0,
            line_start: 0,
            carry: Vec::new(),
            skipping: Skipping::No,
            line_bytes_max: None,
            done_at: None,
            usage: UsageHold::Off,
            terminal: Terminal::NotYet,
        }
    }

    /// The same, and the last chunk that has `usage` is held until the end mark or another chunk comes. What is held
    /// begins with its line then, and what each such line says is given. A line that is not whole is held, too, which
    /// costs an app nothing: it reads whole lines.
    #[must_use]
    pub fn holding_usage(mut self) -> Self {
        self.usage = UsageHold::None;
        self
    }

    /// The same, and what each data line before the end mark says is given, up to so many bytes of it.
    #[must_use]
    pub fn giving_lines(mut self, line_bytes_max: usize) -> Self {
        self.line_bytes_max = Some(line_bytes_max.max(DATA_LINE_BYTES_MAX));
        self
    }

    /// What is held begins with a chunk that has `usage`.
    pub fn holds_usage(&self) -> bool {
        matches!(self.usage, UsageHold::From(_))
    }

    /// Reads one chunk: passes the events of its complete lines to `sink`, returns what must wait.
    pub fn feed(&mut self, chunk: &[u8], sink: &mut impl FnMut(SseEvent<'_>)) -> Scan {
        let mut taken = 0;
        for end in memchr_iter(b'\n', chunk) {
            self.finish_line(chunk.get(taken..end).unwrap_or_default(), sink);
            taken = end + 1;
        }
        let rest = chunk.get(taken..).unwrap_or_default();
        if !rest.is_empty() {
            self.extend_line(rest);
        }
        if let UsageHold::From(line) = self.usage
            && self.done_at.is_none()
            && self.fed - line > USAGE_HELD_BYTES_MAX
        {
            self.usage = UsageHold::None;
        }
        self.scan()
    }

    /// Whether the stream is complete: `data: [DONE]` on a data stream, a whole `complete` or
    /// `error` event on a named one. An end before that is a break.
    pub fn is_clean_end(&self) -> bool {
        match self.kind {
            StreamKind::Data => self.done_at.is_some(),
            StreamKind::NamedEvents => self.terminal == Terminal::Reached,
        }
    }

    /// Bytes of a data stream up to the last one of its end mark, once that has come.
    pub fn bytes_to_end_mark(&self) -> Option<u64> {
        self.done_at.as_ref().map(|mark| mark.end)
    }

    fn scan(&self) -> Scan {
        let held_from = match &self.done_at {
            Some(mark) => mark.start,
            None if self.may_become_done() => self.line_start,
            None if self.usage != UsageHold::Off && !self.carry.is_empty() => self.line_start,
            None => self.fed,
        };
        let held_from = match self.usage {
            UsageHold::From(line) => held_from.min(line),
            UsageHold::Off | UsageHold::None => held_from,
        };
        Scan {
            hold: usize::try_from(self.fed - held_from).unwrap_or(usize::MAX),
            done: self.done_at.is_some(),
        }
    }

    fn may_become_done(&self) -> bool {
        self.kind == StreamKind::Data
            && self.skipping == Skipping::No
            && DONE_MARKS.iter().any(|mark| mark.starts_with(&self.carry))
    }

    /// Takes the last part of a line, its line feed left out, and reads the line.
    fn finish_line(&mut self, part: &[u8], sink: &mut impl FnMut(SseEvent<'_>)) {
        if self.fed == self.line_start {
            // The line lies whole in the chunk: nothing is copied.
            self.fed += length(part);
            self.read_line(part, sink);
        } else {
            self.extend_line(part);
            let mut line = std::mem::take(&mut self.carry);
            match self.skipping {
                Skipping::No => self.read_line(&line, sink),
                Skipping::TooLong if self.line_bytes_max.is_some() => sink(SseEvent::LineLost),
                Skipping::TooLong | Skipping::NotRead => {}
            }
            line.clear();
            line.shrink_to(CARRY_KEPT_BYTES);
            self.carry = line;
        }
        self.skipping = Skipping::No;
        self.fed += 1;
        self.line_start = self.fed;
    }

    /// Takes a part of a line that is not finished.
    fn extend_line(&mut self, part: &[u8]) {
        self.fed += length(part);
        if self.skipping != Skipping::No {
            return;
        }
        let first = self.carry.first().or(part.first()).copied();
        if self.carry.len() + part.len() > self.carry_bytes_max(first) {
            self.skip_line(match first {
                Some(b'd') => Skipping::TooLong,
                _ => Skipping::NotRead,
            });
            return;
        }
        self.carry.extend_from_slice(part);
        if !self.may_matter() {
            self.skip_line(Skipping::NotRead);
            return;
        }
        self.done_at = self.done_at.take().or(self.done_mark(&self.carry));
    }

    fn skip_line(&mut self, why: Skipping) {
        self.skipping = why;
        self.carry.clear();
        self.carry.shrink_to(CARRY_KEPT_BYTES);
    }

    /// Whether the unfinished line can still become one that is read.
    fn may_matter(&self) -> bool {
        let may_be = |field: &[u8]| {
            let both = field.len().min(self.carry.len());
            field.get(..both) == self.carry.get(..both)
        };
        match self.kind {
            StreamKind::Data => may_be(COMMENT) || may_be(DATA),
            StreamKind::NamedEvents => may_be(COMMENT) || may_be(EVENT) || self.carry == b"\r",
        }
    }

    /// The position of the end mark, if the line at `line_start` is one.
    fn done_mark(&self, line: &[u8]) -> Option<Range<u64>> {
        let is_mark = |mark: &&&[u8]| self.kind == StreamKind::Data && line.starts_with(mark);
        let mark = DONE_MARKS.iter().find(is_mark)?;
        Some(self.line_start..self.line_start + length(mark))
    }

    /// Reads a complete line, its line feed left out.
    fn read_line(&mut self, line: &[u8], sink: &mut impl FnMut(SseEvent<'_>)) {
        let text = line.strip_suffix(b"\r").unwrap_or(line);
        match (text.first(), self.kind) {
            // "comment lines before `[DONE]`". A line after it would be read if it came in the same
            // chunk, and not if it came in the next.
            (Some(b':' | b'd'), _) if self.done_at.is_some() => {}
            (Some(b':'), _) => read_comment(text, sink),
            (Some(b'd'), StreamKind::Data) => {
                self.done_at = self.done_mark(text);
                if self.done_at.is_none() {
                    self.give_line(text, sink);
                    let has_usage = read_data(text, sink);
                    self.usage = match self.usage {
                        UsageHold::Off => UsageHold::Off,
                        _ if has_usage => {
                            sink(SseEvent::Line(text.strip_prefix(DATA).unwrap_or(text)));
                            UsageHold::From(self.line_start)
                        }
                        _ => UsageHold::None,
                    };
                }
            }
            (Some(b'e'), StreamKind::NamedEvents) => self.read_event(text, sink),
            (None, _) if self.terminal == Terminal::Named => self.terminal = Terminal::Reached,
            _ => {}
        }
    }

    fn give_line(&self, line: &[u8], sink: &mut impl FnMut(SseEvent<'_>)) {
        let Some(line_bytes_max) = self.line_bytes_max else {
            return;
        };
        match line.strip_prefix(DATA) {
            Some(_) if line.len() > line_bytes_max => sink(SseEvent::LineLost),
            Some(said) => sink(SseEvent::Line(said)),
            None => {}
        }
    }

    /// Most bytes kept of an unfinished line, by its first byte; one more than is read, for a CR.
    fn carry_bytes_max(&self, first: Option<u8>) -> usize {
        match first {
            Some(b':') => COMMENT_BYTES_MAX + 1,
            Some(b'd') => self.line_bytes_max.unwrap_or(DATA_LINE_BYTES_MAX) + 1,
            Some(b'e') => EVENT.len() + 1 + EVENT_NAME_BYTES_MAX + 1,
            _ => 1,
        }
    }

    fn read_event(&mut self, line: &[u8], sink: &mut impl FnMut(SseEvent<'_>)) {
        let Some(name) = line.strip_prefix(EVENT) else {
            return;
        };
        let name = name.strip_prefix(b" ").unwrap_or(name);
        if name.len() > EVENT_NAME_BYTES_MAX {
            return;
        }
        let Ok(name) = std::str::from_utf8(name) else {
            return;
        };
        if self.terminal != Terminal::Reached {
            self.terminal = match name {
                "complete" | "error" => Terminal::Named,
                _ => Terminal::NotYet,
            };
        }
        sink(SseEvent::Event(name));
    }
}

fn read_comment(line: &[u8], sink: &mut impl FnMut(SseEvent<'_>)) {
    if line.len() > COMMENT_BYTES_MAX {
        return;
    }
    let Some(comment) = line.strip_prefix(COMMENT) else {
        return;
    };
    let (name, value) = match memchr::memchr(b' ', comment) {
        Some(space) => (
            comment.get(..space).unwrap_or_default(),
            comment.get(space + 1..).unwrap_or_default(),
        ),
        None => (comment, &b""[..]),
    };
    sink(SseEvent::Comment { name, value });
}

/// Whether it has `usage`.
fn read_data(line: &[u8], sink: &mut impl FnMut(SseEvent<'_>)) -> bool {
    if line.len() > DATA_LINE_BYTES_MAX {
        return false;
    }
    let Some(json) = line.strip_prefix(DATA) else {
        return false;
    };
    if !may_have_usage(json) {
        return false;
    }
    let usage = AnswerPeek::read(json).usage;
    let has_usage = usage != Usage::default();
    if has_usage {
        sink(SseEvent::Usage(usage));
    }
    has_usage
}

/// Whether some `"usage"` is followed by an object. Most chunks have none, or `null`.
fn may_have_usage(json: &[u8]) -> bool {
    USAGE_KEY.find_iter(json).any(|key| {
        json.get(key + USAGE_KEY.needle().len()..)
            .map(<[u8]>::trim_ascii_start)
            .and_then(|rest| rest.strip_prefix(b":"))
            .is_some_and(|value| value.trim_ascii_start().starts_with(b"{"))
    })
}

/// A length as a count of bytes fed.
fn length(part: &[u8]) -> u64 {
    u64::try_from(part.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
