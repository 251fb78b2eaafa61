//! How long the service may be silent, for all reads of one exchange.
//!
//! Why one timer: a stream has hundreds of reads, and a timer for each is set and taken back under the
//! runtime's lock. This one is set once; when it fires early, it is set for what is left.
//!
//! Promise: a read ends within the limit, counted from its own beginning.

use std::pin::{Pin, pin};
use std::task::{Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

/// The timer of one exchange.
#[derive(Debug)]
pub struct Silence {
    limit: Duration,
    timer: Pin<Box<Sleep>>,
}

/// The service was silent for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

// === impl Silence ===

impl Silence {
    pub fn of(limit: Duration) -> Self {
        Self {
            limit,
            timer: Box::pin(sleep(limit)),
        }
    }

    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// What `read` resolves to, if it does so in time.
    pub async fn bounds<F: Future>(&mut self, read: F) -> Result<F::Output, TooLong> {
        let mut read = pin!(read);
        let began = Instant::now();
        std::future::poll_fn(|cx| {
            if let Poll::Ready(output) = read.as_mut().poll(cx) {
                return Poll::Ready(Ok(output));
            }
            loop {
                ready!(self.timer.as_mut().poll(cx));
                let ends = began + self.limit;
                if Instant::now() >= ends {
                    return Poll::Ready(Err(TooLong));
                }
                self.timer.as_mut().reset(ends);
            }
        })
        .await
    }
}

#[cfg(test)]
mod tests;
