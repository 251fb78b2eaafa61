//! Comments in a stream in which the service is silent, for apps and what lies before them that cut silent
//! connections (`[streams] keepalive_s`).
//!
//! Promise: a comment, never an event, goes out only between two events of what the app has, only while the service's
//! connection stands, and never where bytes wait for the app; not a byte of the service's is changed or kept back.

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, timeout};

use crate::proxy::client_watch::{ClientWatch, Cut};

/// When comments are due in one stream.
#[derive(Default)]
pub(super) struct KeepAlive {
    /// After so much silence. `None`: never.
    after: Option<Duration>,
    /// The last bytes that the app was given.
    tail: Vec<u8>,
    /// When that was.
    gave_at: Option<Instant>,
}

/// In a block of its own: there are readers that divide a stream by blank lines, and look at the beginnings.
const COMMENT: Bytes = Bytes::from_static(b": keepalive\n\n");

/// The ends of an event.
const ENDS: [&[u8]; 3] = [b"\n\n", b"\r\r", b"\r\n\r\n"];
const END_BYTES_MAX: usize = 4;

// === impl KeepAlive ===

impl KeepAlive {
    pub fn after(after: Option<Duration>) -> Self {
        Self {
            after,
            ..Self::default()
        }
    }

    /// The app was given these bytes.
    pub fn gave(&mut self, piece: &[u8]) {
        if self.after.is_none() {
            return;
        }
        self.gave_at = Some(Instant::now());
        let newest = piece.len().saturating_sub(END_BYTES_MAX);
        self.tail
            .extend_from_slice(piece.get(newest..).unwrap_or_default());
        let oldest = self.tail.len().saturating_sub(END_BYTES_MAX);
        self.tail.drain(..oldest);
    }

    /// How much longer nothing may go to the app until a comment does. `None`: none may go out here. What the service
    /// sends and the app is not given is silence, too.
    fn due(&self) -> Option<Duration> {
        let is_between = ENDS.iter().any(|end| self.tail.ends_with(end));
        let after = self.after.filter(|_| is_between)?;
        let silent = self.gave_at.map_or(Duration::ZERO, |at| at.elapsed());
        Some(after.saturating_sub(silent))
    }
}

/// Waits for the service as long as the app is there, with a comment after each silence. `keep_alive`: where comments
/// may go out. `None`: the app left.
pub(super) async fn attend_with_comments<F: Future>(
    app: &mut ClientWatch<'_>,
    mut read: Pin<&mut F>,
    mut keep_alive: Option<&mut KeepAlive>,
) -> Result<Option<F::Output>, Cut> {
    loop {
        let Some((keep_alive, silence)) = keep_alive
            .as_mut()
            .and_then(|keep_alive| keep_alive.due().map(|due| (keep_alive, due)))
        else {
            return app.attend_while_here(read).await;
        };
        if let Ok(read) = timeout(silence, app.attend_while_here(read.as_mut())).await {
            return read;
        }
        // An app for which bytes wait has enough to read.
        if app.downstream().kept_bytes() == 0
            && app.downstream_mut().write_chunk(COMMENT).await.is_err()
        {
            app.notice();
            return Ok(None);
        }
        keep_alive.gave(&COMMENT);
    }
}

#[cfg(test)]
mod tests;
