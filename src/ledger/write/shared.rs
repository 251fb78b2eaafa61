//! The writer, and whose turn it is: a task that asks for something while nobody writes, or the writer's own thread.
//! The task writes on the thread that it runs on: handing a job over and back costs more than a fast disk does.
//!
//! Promise: one at a time writes, and what was handed over first is written first. A task writes one batch, with
//! what others handed over, and only while nothing has failed and the disk is fast; while it does, the runtime goes on
//! without its thread, however long the disk takes. All else is left to the ledger's thread. After a panic of either the
//! writer is gone: nobody is answered from half a batch, and no sender waits for ever.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

use crate::ledger::write::hub::Hub;
use crate::ledger::write::queue::{Job, Reply};
use crate::ledger::write::writer::Writer;

/// How long the thread waits for work before it looks after what is due, and shows that it lives.
const PATIENCE: Duration = Duration::from_millis(500);

/// On a slow disk a batch takes longer than this.
const SLOW: Duration = Duration::from_micros(500);

/// A batch that took longer has met a disk that stalls.
const STALL: Duration = Duration::from_millis(10);

/// How long such a disk is left to the thread, however fast it is in between.
const STALL_PAUSE: Duration = Duration::from_secs(1);

/// One writer for all that ask.
pub struct SharedWriter {
    hub: Arc<Hub>,
    seat: Mutex<Seat>,
}

/// Where the writer is while nobody writes.
struct Seat {
    /// `None`: it has stopped.
    writer: Option<Box<Writer>>,
    pace: DiskPace,
}

/// How fast the disk is.
#[derive(Debug, Default)]
struct DiskPace {
    /// Moving mean of what a batch takes.
    typical: Duration,
    /// When a batch took far too long, on the monotonic clock.
    stalled_at: Option<Duration>,
}

// === impl SharedWriter ===

impl SharedWriter {
    pub fn new(hub: Arc<Hub>, writer: Writer) -> Self {
        let seat = Seat {
            writer: Some(Box::new(writer)),
            pace: DiskPace::default(),
        };
        Self {
            hub,
            seat: Mutex::new(seat),
        }
    }

    /// Hands a job over and waits for its answer. Once handed over it is carried out even when the caller stops
    /// waiting.
    pub async fn ask(&self, job: Job) -> Reply {
        let (is_first, answer) = self.hub.queue().hand_over(job).await?;
        // Of those that are not, the first has them written with its own.
        if is_first {
            self.have_written();
        }
        answer.given().await
    }

    /// Has what waits written: here and now if that can be, otherwise by the one that is writing or by the thread.
    fn have_written(&self) {
        let is_written = {
            // Whoever has the seat looks for more when it has left it.
            let Some(mut seat) = self.seat.try_lock() else {
                return;
            };
            seat.is_quick() && in_place(|| seat.write(&self.hub))
        };
        // What came in the meantime is for the thread: this one has other tasks.
        if !is_written || !self.hub.queue().is_empty() {
            self.hub.queue().wake();
        }
    }

    /// The thread: writes what is left to it, and looks after what is due beside that, until the queue is closed
    /// and empty.
    pub fn run(&self) {
        while self.hub.queue().wait(PATIENCE) {
            let mut seat = self.seat.lock();
            let is_there = seat.write(&self.hub) && seat.keep_up();
            if !is_there {
                return;
            }
        }
        // A task that writes is at its end first.
        let writer = self.seat.lock().writer.take();
        match writer {
            Some(mut writer) => writer.end(),
            None => tracing::error!("the ledger's writer ended by a panic; the journal decides"),
        }
    }
}

// === impl Seat ===

impl Seat {
    /// What waits takes one write to a fast disk.
    fn is_quick(&self) -> bool {
        let writer = self.writer.as_ref();
        writer.is_some_and(|writer| writer.is_at_ease() && self.pace.is_fast(writer.now()))
    }

    /// Writes what waits. False: the writer has stopped.
    fn write(&mut self, hub: &Hub) -> bool {
        // Nobody finds it here after a panic.
        let Some(mut writer) = self.writer.take() else {
            return false;
        };
        let requests = hub.queue().take();
        let writes = requests.iter().any(|request| !request.job.is_question());
        let began = writer.now();
        let goes_on = writer.serve(requests);
        if writes {
            let now = writer.now();
            self.pace.note(now, now.saturating_sub(began));
        }
        self.writer = goes_on.then_some(writer);
        goes_on
    }

    /// Looks after what is due beside the batches. False: the writer has stopped.
    fn keep_up(&mut self) -> bool {
        let Some(mut writer) = self.writer.take() else {
            return false;
        };
        writer.keep_up();
        self.writer = Some(writer);
        true
    }
}

/// Does what may block. Meanwhile the runtime's other tasks go on, and its sockets are heard, whatever the disk does.
fn in_place<T>(write: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => block_in_place(write),
        _ => write(),
    }
}

// === impl DiskPace ===

impl DiskPace {
    fn is_fast(&self, now: Duration) -> bool {
        let stalls = |stalled_at| now.saturating_sub(stalled_at) < STALL_PAUSE;
        self.typical <= SLOW && !self.stalled_at.is_some_and(stalls)
    }

    /// A batch took so long.
    fn note(&mut self, now: Duration, took: Duration) {
        self.typical = (self.typical * 7 + took) / 8;
        if took > STALL {
            self.stalled_at = Some(now);
        }
    }
}

#[cfg(test)]
mod tests;
