//! An attempt's place at the service: asked for anew before each repeat, and what the service's
//! answers say of its ceilings, its account and its health.
//!
//! Promise: between attempts no place is held; a repeat waits before its app's new requests; a free
//! route never waits for a place; who rests is counted among those who wait.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use pingora::http::ResponseHeader;

use super::words::refusal_of;
use super::{Dispatch, Rested};
use crate::proxy::attend::{Attendance, Cut};
use crate::proxy::downstream::Presence;
use crate::proxy::limits::queue::ceilings::Busy;
use crate::proxy::limits::queue::{Turn, Unserved};
use crate::proxy::limits::waiters::CROWD_RETRY_AFTER;
use crate::proxy::purchase::backoff::asked_wait;
use crate::proxy::upstream::exchange::{Answering, Cause, Failed, Lost};

/// An answer's words are looked at up to here.
const WORDS_BYTES_MAX: usize = 1024;

impl Dispatch<'_> {
    /// Waits between attempts, and for a place for the next one. An order to freeze, or the end of the run, ends it at once.
    pub(super) async fn rest(
        &mut self,
        app: &mut Attendance<'_>,
        wait: Duration,
    ) -> Result<Rested, Cut> {
        let _waiting = match self.gateway.among_waiters(&self.app) {
            Ok(waiter) => waiter,
            Err(_) if self.is_in_doubt() || wait.is_zero() => {
                self.gateway.waiters.enter_again(&self.app)
            }
            Err(crowd) => {
                // Who comes again comes when the service wants it.
                let crowd = crowd.after(wait.max(CROWD_RETRY_AFTER));
                return Ok(Rested::Stopped(self.stopped_by(crowd)));
            }
        };
        let began = self.gateway.clock.monotonic();
        let awaited = tokio::select! {
            biased;
            halt = self.halted() => Err(halt),
            awaited = app.rest(wait) => Ok(awaited?),
        };
        match awaited {
            Ok(true) => {}
            Ok(false) => return Ok(Rested::NoMore),
            Err(halt) => {
                let rested = self.gateway.clock.monotonic().saturating_sub(began);
                self.waited = self.waited.saturating_add(rested);
                return Ok(Rested::Stopped(halt));
            }
        }
        let rested = self.next_turn(app).await?;
        Ok(match (rested, self.forbidden(app)) {
            (Rested::Goes, Some(refusal)) => {
                self.slot = None;
                Rested::Stopped(refusal)
            }
            (rested, _) => rested,
        })
    }

    /// A place for the next attempt.
    async fn next_turn(&mut self, app: &mut Attendance<'_>) -> Result<Rested, Cut> {
        if !self.route.is_inference() {
            return Ok(Rested::Goes);
        }
        let began = self.gateway.clock.monotonic();
        let enter = self
            .gateway
            .queue
            .enter(&self.app, Turn::Again, self.bounds.deadline);
        let is_here = app.look() == Presence::Here;
        let entered = async {
            if is_here {
                app.attend_while_here(enter).await
            } else {
                // Somebody follows: the place is for them.
                app.attend(enter).await.map(Some)
            }
        };
        let entered = tokio::select! {
            biased;
            halt = self.halted() => Err(halt),
            entered = entered => Ok(entered?),
        };
        let waited = self.gateway.clock.monotonic().saturating_sub(began);
        self.queued = self.queued.saturating_add(waited);
        Ok(match entered {
            // Who followed may have left meanwhile.
            Ok(Some(Ok(_))) if !app.is_awaited() => Rested::NoMore,
            Ok(Some(Ok((slot, _)))) => {
                self.slot = Some(slot);
                Rested::Goes
            }
            Ok(Some(Err(Unserved::Closed))) => {
                self.closed().map_or(Rested::NoMore, Rested::Stopped)
            }
            Ok(Some(Err(_)) | None) => Rested::NoMore,
            Err(halt) => Rested::Stopped(halt),
        })
    }

    pub(super) fn sends(&self) {
        if let Some(slot) = &self.slot {
            slot.sends();
        }
    }

    /// How the attempt went as far as its head.
    pub(super) fn heard(&mut self, answering: &Result<Result<Answering, Failed>, Cut>) {
        let slot = self.slot.as_ref();
        match answering {
            // The app has nothing, the service perhaps everything.
            Err(Cut) => {}
            Ok(Err(failed)) => {
                let lost = failed.lost;
                if did_not_connect(lost) {
                    let base_url = &self.settings.config.upstream.base_url;
                    let refusal = refusal_of(lost, &[], self.route.keyed, base_url);
                    self.pass.unreached(refusal);
                } else {
                    self.pass.reached();
                }
                match (lost, slot) {
                    (Lost::NotSent(_), Some(slot)) => slot.not_sent(),
                    (_, Some(slot)) => slot.arrived(),
                    (_, None) => {}
                }
            }
            Ok(Ok(answering)) => {
                let status = answering.head.status;
                self.pass.reached();
                if self.route.is_metered() {
                    self.pass.answered(status);
                }
                if let Some(slot) = slot {
                    slot.arrived();
                    if status.is_success() {
                        slot.served();
                    }
                }
            }
        }
    }

    /// A refusal was read; a 429 says that bursar lets too much go.
    pub(super) fn heard_busy(&self, head: &ResponseHeader, body: Option<&Bytes>) {
        let Some(slot) = &self.slot else { return };
        if head.status == StatusCode::TOO_MANY_REQUESTS {
            slot.busy(Busy {
                asked: asked_wait(&head.headers, self.gateway.clock.wall_ms()),
                names_rate: body.is_some_and(|body| names_rate(body)),
            });
        }
    }
}

/// Nothing of the request can have left: there was no connection to the service.
fn did_not_connect(lost: Lost) -> bool {
    match lost {
        Lost::NotSent(cause) => matches!(
            cause,
            Cause::Name
                | Cause::Connect
                | Cause::ConnectTimeout
                | Cause::Tls
                | Cause::NoTls
                | Cause::Certificate
        ),
        Lost::NoHead(_) | Lost::StaleConnection => false,
    }
}

/// Assumed: the words of a 429 tell the rate's from the other ceiling's where `Retry-After` does not.
fn names_rate(body: &[u8]) -> bool {
    let start = body.get(..WORDS_BYTES_MAX).unwrap_or(body);
    let text = String::from_utf8_lossy(start).to_ascii_lowercase();
    let words = || text.split(|letter: char| !letter.is_ascii_alphanumeric());
    words().any(|word| matches!(word, "rate" | "minute"))
        && !words().any(|word| matches!(word, "concurrency" | "concurrent" | "flight"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_429_tell_which_ceiling_it_was() {
        let rows: [(&[u8], bool); 7] = [
            (br#"{"detail":"rate ceiling exceeded"}"#, true),
            (br#"{"detail":"120 requests per minute"}"#, true),
            (br#"{"detail":"concurrency ceiling exceeded"}"#, false),
            (
                br#"{"detail":"at this rate 8 requests are in flight"}"#,
                false,
            ),
            (br#"{"detail":"could not generate"}"#, false),
            (b"", false),
            (b"\xff\xfe rate", true),
        ];
        for (body, wanted) in rows {
            let shown = String::from_utf8_lossy(body);
            assert_eq!(names_rate(body), wanted, "{shown}");
        }
        let late = [vec![b' '; WORDS_BYTES_MAX], b"rate".to_vec()].concat();
        assert!(!names_rate(&late), "words are looked for at the beginning");
    }
}
