//! What becomes of an attempt in the entry: how it ended, how long it took, and the receipt lines of
//! its head.
//!
//! Promise: each attempt is recorded once, when it has ended at the service; the key stands in no line.

use std::time::Duration;

use pingora::http::ResponseHeader;

use super::words::attempt_result;
use super::{AttemptClock, Dispatch, Flowing};
use crate::clock::millis;
use crate::ledger::entry::{Attempt, AttemptEnd};
use crate::protocol::receipt::lines::ReceiptLines;

impl Dispatch<'_> {
    pub(super) fn record(
        &mut self,
        clock: AttemptClock,
        end: AttemptEnd,
        head: Option<&ResponseHeader>,
        cause: Option<&'static str>,
    ) {
        let took = self.since(clock);
        self.service_time = self.service_time.saturating_add(took);
        self.note(clock, took, end, head, cause);
    }

    pub(super) fn since(&self, clock: AttemptClock) -> Duration {
        self.gateway.clock.monotonic().saturating_sub(clock.began)
    }

    fn note(
        &mut self,
        clock: AttemptClock,
        took: Duration,
        end: AttemptEnd,
        head: Option<&ResponseHeader>,
        cause: Option<&'static str>,
    ) {
        let status = head.map(|head| head.status);
        self.gateway
            .metrics
            .attempt(self.route.operation, attempt_result(end, status));
        self.attempts.push(Attempt {
            end,
            status: status.map(|status| status.as_u16()),
            wait_ms: millis(clock.waited),
            took_ms: millis(took),
            cause: cause.map(str::to_owned),
            receipt_lines: self.receipt_lines(head),
        });
    }

    /// A flowing answer has ended; its attempt is complete only now. While it flowed, the service's
    /// time was counted read by read, so that writing to the app counts as our own.
    pub fn record_flow(&mut self, flowing: &Flowing, end: AttemptEnd, cause: Option<&'static str>) {
        let took = self.since(flowing.attempt);
        let head = Some(&flowing.answering.head);
        self.note(flowing.attempt, took, end, head, cause);
    }

    fn receipt_lines(&self, head: Option<&ResponseHeader>) -> Vec<String> {
        let Some(head) = head.filter(|_| self.route.is_metered()) else {
            return Vec::new();
        };
        let settings = &self.settings;
        let clean = |line: &[u8]| settings.key.struck_out(line);
        ReceiptLines::of_headers(&settings.names, &head.headers, clean).into_vec()
    }
}
