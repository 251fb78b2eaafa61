//! Where log lines go: standard error, access lines several at once.
//!
//! Why: a write for each request costs more than all else that is counted of it, and worker threads that
//! write at the same moment wait for each other.
//!
//! Promise: lines keep their order. A line that is no access line is written when the call returns, with all
//! before it. An access line is written within [`GATHER`], and before a clean end; what a kill in that time
//! takes away is in the ledger. What waits is bounded: beyond it the thread that logs writes by itself.

use std::io::{self, Write};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tracing::Metadata;
use tracing_subscriber::fmt::MakeWriter;

/// The target of access lines: one for each request.
pub const ACCESS: &str = "bursar::access";

/// How long access lines are gathered.
const GATHER: Duration = Duration::from_millis(10);

/// Most bytes that wait to be written.
const WAITING_BYTES_MAX: usize = 256 * 1024;

/// The log's lines on their way out. Clones share them.
#[derive(Clone)]
pub(super) struct LogLines(Arc<LogBuffers>);

struct LogBuffers {
    waiting: Mutex<GatheredLines>,
    /// Something waits, and nothing did.
    came: Condvar,
    /// Locked before `waiting` for each write, so that lines keep their order.
    out: Mutex<LogOutput>,
}

#[derive(Default)]
struct GatheredLines {
    lines: Vec<u8>,
    /// The thread that writes waits for lines.
    is_idle: bool,
}

struct LogOutput {
    to: Box<dyn Write + Send>,
    /// The emptied buffer of the write before.
    spare: Vec<u8>,
}

/// Takes one line.
pub(super) struct LogLineWriter<'a> {
    lines: &'a LogLines,
    may_wait: bool,
}

// === impl LogLines ===

impl LogLines {
    /// Starts the thread that writes what was gathered.
    pub fn to(to: impl Write + Send + 'static) -> io::Result<Self> {
        let lines = Self(Arc::new(LogBuffers {
            waiting: Mutex::default(),
            came: Condvar::new(),
            out: Mutex::new(LogOutput {
                to: Box::new(to),
                spare: Vec::new(),
            }),
        }));
        let gathered = lines.clone();
        thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || gathered.write_gathered())?;
        Ok(lines)
    }

    fn write_gathered(&self) {
        loop {
            {
                let mut waiting = self.0.waiting.lock();
                while waiting.lines.is_empty() {
                    // Each time: what woke it may be written by now.
                    waiting.is_idle = true;
                    self.0.came.wait(&mut waiting);
                }
                waiting.is_idle = false;
                // More may come; nothing wakes it.
                self.0.came.wait_for(&mut waiting, GATHER);
            }
            self.flush();
        }
    }

    /// Writes all that waits.
    pub fn flush(&self) {
        self.write(b"");
    }

    /// Writes all that waits, and this behind it.
    fn write(&self, line: &[u8]) {
        let mut out = self.0.out.lock();
        let spare = std::mem::take(&mut out.spare);
        let mut lines = std::mem::replace(&mut self.0.waiting.lock().lines, spare);
        lines.extend_from_slice(line);
        // A closed standard error is no reason to end.
        out.to.write_all(&lines).ok();
        lines.clear();
        out.spare = lines;
    }

    fn gather(&self, line: &[u8]) {
        let mut waiting = self.0.waiting.lock();
        if waiting.lines.len() + line.len() > WAITING_BYTES_MAX {
            drop(waiting);
            return self.write(line);
        }
        waiting.lines.extend_from_slice(line);
        let wakes = std::mem::take(&mut waiting.is_idle);
        drop(waiting);
        if wakes {
            self.0.came.notify_one();
        }
    }
}

impl<'a> MakeWriter<'a> for LogLines {
    type Writer = LogLineWriter<'a>;

    fn make_writer(&'a self) -> LogLineWriter<'a> {
        LogLineWriter {
            lines: self,
            may_wait: false,
        }
    }

    fn make_writer_for(&'a self, metadata: &Metadata<'_>) -> LogLineWriter<'a> {
        LogLineWriter {
            lines: self,
            may_wait: metadata.target() == ACCESS,
        }
    }
}

// === impl LogLineWriter ===

impl Write for LogLineWriter<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.may_wait {
            self.lines.gather(line);
        } else {
            self.lines.write(line);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
