//! Times. Spans within one process are tokio's monotonic instants; what one process stamps and
//! another one reads is the machine's clock; what must not wait for the next millisecond is a timer of the
//! kernel's.
//!
//! Why not a monotonic stamp: std hides its number, and a step of the machine's clock in the middle
//! of a run would show as delays of its size, not as a small error.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, SystemTime};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;

/// A steady beat that is finer than tokio's timers.
pub struct Ticks {
    timer: AsyncFd<OwnedFd>,
}

/// Nanoseconds of the clock that all processes of this machine share.
#[expect(
    clippy::disallowed_methods,
    reason = "a stamp that travels between two processes needs the machine's clock"
)]
pub fn stamp_ns() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    nanoseconds(since.unwrap_or_default())
}

/// A span as a whole number of nanoseconds.
pub fn nanoseconds(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

// === impl Ticks ===

impl Ticks {
    pub fn every(span: Duration) -> io::Result<Self> {
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )?;
        let every = Timespec::try_from(span).map_err(io::Error::other)?;
        let spec = Itimerspec {
            it_interval: every,
            it_value: every,
        };
        timerfd_settime(&timer, TimerfdTimerFlags::empty(), &spec)?;
        #[expect(
            deprecated,
            reason = "its successor is unsafe, for types that change their descriptor; an OwnedFd does not"
        )]
        let timer = AsyncFd::new(timer)?;
        Ok(Self { timer })
    }

    /// Waits for the next tick; answers how many have passed since the last look.
    pub async fn next(&mut self) -> io::Result<u64> {
        let mut count = [0; 8];
        loop {
            let mut ready = self.timer.readable().await?;
            let read = ready.try_io(|timer| Ok(rustix::io::read(timer.get_ref(), &mut count)?));
            match read {
                Ok(Ok(_)) => return Ok(u64::from_ne_bytes(count)),
                Ok(Err(error)) => return Err(error),
                Err(_would_block) => {}
            }
        }
    }
}
