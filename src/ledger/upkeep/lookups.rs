//! Makes lookup files: after the start for the segments that lack one, for each segment that is sealed, and now and
//! then for the one that is being written.
//!
//! Promise: another thread reads and writes, at a lower priority; requests never wait for it. A failure is logged,
//! changes nothing, and is tried again.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;

use crate::ledger::error::LedgerError;
use crate::ledger::read::lookup::{Growing, Refresh, Refreshed, UNSEALED_BYTES, refresh};

/// Time from a failure to the next look.
const RETRY_PAUSE: Duration = Duration::from_secs(60 * 60);

/// How much lower the thread's priority is.
const NICE: i32 = 10;

/// The work beside the writer.
#[derive(Debug)]
pub struct LookupUpkeep {
    state_dir: PathBuf,
    next: NextLook,
    job: Option<JoinHandle<Result<Refreshed, LedgerError>>>,
    /// What was taken of the segment that is being written. Only one job at a time uses it.
    growing: Arc<Mutex<Option<Growing>>>,
    /// Nothing was looked at yet: files are read whole once.
    is_first: bool,
    /// The writer is stopping.
    cancel: Arc<AtomicBool>,
}

/// When the next look is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NextLook {
    /// When the journal is in another segment than this one, or that has grown.
    Behind(u32, u64),
    /// At this moment, on the monotonic clock.
    At(Duration),
}

// === impl LookupUpkeep ===

impl LookupUpkeep {
    pub fn new(state_dir: PathBuf) -> Self {
        Self {
            state_dir,
            next: NextLook::At(Duration::ZERO),
            job: None,
            growing: Arc::default(),
            is_first: true,
            cancel: Arc::default(),
        }
    }

    /// Goes on by one step, when one is due. Never waits for the work. `end`: the segment that is
    /// written, and its bytes.
    pub fn step(&mut self, now: Duration, end: (u32, u64)) {
        match self.job.take() {
            Some(job) if job.is_finished() => self.end(job, now),
            None if self.is_due(now, end) => self.begin(now, end),
            busy => self.job = busy,
        }
    }

    /// Segments became others.
    pub fn look_again(&mut self) {
        self.next = NextLook::At(Duration::ZERO);
    }

    /// Before the writer ends.
    pub fn stop(&mut self) {
        self.cancel.store(true, Ordering::Relaxed);
        if let Some(job) = self.job.take() {
            // What was not made is made after the next start.
            drop(job.join());
        }
    }

    fn is_due(&self, now: Duration, (segment, bytes): (u32, u64)) -> bool {
        match self.next {
            NextLook::Behind(known, known_bytes) => {
                segment != known || bytes >= known_bytes.saturating_add(UNSEALED_BYTES)
            }
            NextLook::At(at) => now >= at,
        }
    }

    fn begin(&mut self, now: Duration, (segment, bytes): (u32, u64)) {
        let state_dir = self.state_dir.clone();
        let cancel = Arc::clone(&self.cancel);
        let growing = Arc::clone(&self.growing);
        let is_thorough = std::mem::take(&mut self.is_first);
        let work = move || {
            // Of this thread alone. Where that is refused, it works as any other does.
            let _ = rustix::process::nice(NICE);
            let wanted = Refresh {
                is_thorough,
                ..Refresh::default()
            };
            refresh(&state_dir, &wanted, &mut growing.lock(), &cancel)
        };
        self.next = NextLook::Behind(segment, bytes);
        let thread = std::thread::Builder::new().name("ledger-lookup".to_owned());
        match thread.spawn(work) {
            Ok(job) => self.job = Some(job),
            Err(error) => {
                tracing::warn!(%error, "no thread to make lookup files");
                self.next = NextLook::At(now.saturating_add(RETRY_PAUSE));
            }
        }
    }

    fn end(&mut self, job: JoinHandle<Result<Refreshed, LedgerError>>, now: Duration) {
        match job.join() {
            Ok(Ok(refreshed)) => {
                tracing::debug!(?refreshed, "lookup files are complete");
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "lookup files could not be made; their segments are read instead");
                self.next = NextLook::At(now.saturating_add(RETRY_PAUSE));
            }
            Err(_) => {
                tracing::error!(
                    "lookup files could not be made: a panic; their segments are read instead"
                );
                self.next = NextLook::At(now.saturating_add(RETRY_PAUSE));
            }
        }
    }
}

#[cfg(test)]
mod tests;
