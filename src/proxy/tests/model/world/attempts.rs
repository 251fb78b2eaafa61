//! Attempts: what the network and the service make of them, and what is decided after each.

use super::*;
use crate::ledger::entry::{AttemptEnd, Outcome, Timings};
use crate::protocol::receipt::ReceiptSource;
use crate::protocol::{ServedBy, Told, Usage};
use crate::proxy::claim::age;
use crate::proxy::dispatch::decide::{Next, reason};

use super::super::audit::Send;
use super::super::service::Arrival;

const STATUSES: &[u16] = &[
    400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 429, 500, 502, 503, 503, 504,
];

impl World {
    /// One flight goes one step on.
    pub(super) fn progress(&mut self) {
        if self.flights.is_empty() {
            return;
        }
        let at = self.dice.below(self.flights.len());
        match self.flights[at].phase {
            Phase::Intending => {}
            Phase::Ready => self.start(at),
            Phase::Sending => self.sending(at),
            // The reply may be given up before it comes.
            Phase::AtService(_) if self.dice.chance(8) => {
                self.end_attempt(at, AttemptEnd::NoHead, None);
            }
            Phase::AtService(_) => {}
            Phase::Replying(reply) => self.replying(at, reply),
            Phase::Waiting(until) => self.waited(at, until),
            Phase::Settling => {
                // The ledger does not come back in time: an error now, the outcome is kept.
                if self.disk != Disk::Works && self.dice.chance(20) {
                    self.flights[at].answer = None;
                    self.settle_later(at);
                    self.deliver(at);
                }
            }
            Phase::Delivering => self.deliver(at),
        }
    }

    fn start(&mut self, at: usize) {
        if !self.flights[at].app_here && self.flights[at].attempts.is_empty() {
            // Nobody waits for it: nothing is sent.
            self.settle(at);
            return;
        }
        let now = self.now();
        let flight = &mut self.flights[at];
        self.paper.audit.send(&Send {
            entry: flight.entry,
            key: flight.live.key.as_ref().map(|key| &key.value),
            body: flight.body,
            now,
            began: flight.began,
            repeats: !flight.attempts.is_empty(),
        });
        flight.phase = Phase::Sending;
    }

    fn sending(&mut self, at: usize) {
        match self.dice.below(20) {
            0 | 1 => return self.end_attempt(at, AttemptEnd::NotSent, None),
            // Lost on the way, and nobody knows.
            2 => return self.end_attempt(at, AttemptEnd::NoHead, None),
            _ => {}
        }
        let amount = 1 + self.dice.below(1000) as u64;
        let flight = &self.flights[at];
        if let Some(key) = flight.live.key.as_ref()
            && let Some(first_ms) = self.own_first_ms.get(&key.value)
            && self.service.now_ms - first_ms >= 23 * HOUR_MS
        {
            self.paper.audit.outlived(flight.entry);
        }
        let flight = &mut self.flights[at];
        let key = flight.live.key.as_ref().map(|key| &key.value);
        let owner = flight.entry.0.as_u128();
        flight.phase = match self
            .service
            .arrive(key, flight.kind, flight.body, owner, amount)
        {
            Arrival::Replied(reply) => Phase::Replying(reply),
            Arrival::Runs(run) => Phase::AtService(run),
        };
    }

    /// Some run at the service goes on, whether anybody waits for it or not.
    pub(super) fn run_at_service(&mut self) {
        if self.service.running() == 0 {
            return;
        }
        let at = self.dice.below(self.service.running());
        let failure = self.dice.chance(25).then(|| self.dice.pick(STATUSES));
        let Some((run, reply)) = self.service.advance(at, failure) else {
            return;
        };
        let waiting =
            |flight: &&mut Flight| matches!(flight.phase, Phase::AtService(id) if id == run);
        if let Some(flight) = self.flights.iter_mut().find(waiting) {
            flight.phase = Phase::Replying(reply);
        }
    }

    fn replying(&mut self, at: usize, reply: Reply) {
        let keyed = self.flights[at].route.keyed;
        match (reply, self.dice.below(20)) {
            (_, 0) => self.end_attempt(at, AttemptEnd::NoHead, None),
            (Reply::Refused(status), _) => {
                // A 502 that the service means has its JSON body.
                self.end_attempt(at, AttemptEnd::Refused, Some(status));
            }
            (Reply::Done { .. }, 1) if !keyed => {
                self.note("gateway", 0);
                self.end_attempt(at, AttemptEnd::Gateway, Some(502));
            }
            (Reply::Done { .. }, 2 | 3) => {
                let receipt = self.receipt(at, reply);
                let flight = &mut self.flights[at];
                let told = |receipt: &Receipt| receipt.billed.value().is_some_and(|n| !n.is_zero());
                // As `Attendance::saw_broken_head`: heads tell, except on streams.
                if !flight.broken.as_ref().is_some_and(told) {
                    flight.broken = Some(if flight.kind.streams() {
                        Receipt::default()
                    } else {
                        receipt
                    });
                }
                self.end_attempt(at, AttemptEnd::Broken, Some(200));
            }
            (Reply::Done { job, .. }, _) => {
                let receipt = self.receipt(at, reply);
                let flight = &mut self.flights[at];
                if flight.kind.streams() && flight.app_here && flight.live.take() {
                    // The first byte counts as delivered, long before the receipt comes.
                    flight.live.handed_out();
                }
                flight.answer = Some(receipt);
                flight.job = job;
                self.end_attempt(at, AttemptEnd::Answered, Some(200));
            }
        }
    }

    /// What the answer tells, with the faults of receipts.
    fn receipt(&mut self, at: usize, reply: Reply) -> Receipt {
        let Reply::Done {
            shown,
            replayed,
            clarification,
            ..
        } = reply
        else {
            return Receipt::default();
        };
        let kind = self.flights[at].kind;
        let mut receipt = Receipt {
            replayed,
            served_by: Some(ServedBy::Specialist),
            billed: Told::Value(MicroUsd::new(shown)),
            source: Some(ReceiptSource::Header),
            ..Receipt::default()
        };
        if clarification {
            self.note("clarification", 0);
            receipt.served_by = Some(ServedBy::None);
            receipt.input_required = Some("image".to_owned());
        }
        if replayed {
            self.note("replayed", 0);
        }
        match self.dice.below(30) {
            _ if kind.is_silent() => receipt.billed = Told::Absent,
            0 => {
                self.note("malformed", 0);
                receipt.billed = Told::Malformed;
            }
            1 => {
                self.note("absent", 0);
                receipt.billed = Told::Absent;
            }
            2 => {
                self.note("conflicting", 0);
                receipt.conflicting_amounts = 1;
            }
            _ => {}
        }
        if receipt.billed == Told::Absent {
            receipt.source = None;
        }
        receipt
    }

    fn end_attempt(&mut self, at: usize, end: AttemptEnd, status: Option<u16>) {
        self.note(
            match (end, status) {
                (AttemptEnd::Refused, Some(409)) => "409",
                (AttemptEnd::Refused, Some(422)) => "422",
                (AttemptEnd::Refused, _) => "refused",
                (AttemptEnd::NotSent, _) => "not_sent",
                (AttemptEnd::NoHead, _) => "no_head",
                (AttemptEnd::Broken, _) => "broken",
                (AttemptEnd::Gateway, _) => "gateway",
                (AttemptEnd::Answered, _) => "answered",
            },
            self.flights[at].entry.0.as_u128(),
        );
        let asked = Duration::from_millis(self.dice.pick(&[0, 0, 500, 5000, 15_000, 700_000]));
        let now = self.clock.monotonic();
        let flight = &mut self.flights[at];
        flight.attempts.push(Attempt {
            end,
            status,
            wait_ms: 0,
            took_ms: 0,
            cause: None,
            receipt_lines: Vec::new(),
        });
        if !matches!(end, AttemptEnd::NotSent | AttemptEnd::Refused) {
            self.paper.audit.may_have_run(flight.entry);
        }
        if reason(flight.route.retry, end, status).is_none() {
            return self.settle(at);
        }
        let asked = (end == AttemptEnd::Refused).then_some(asked);
        let made = flight.attempts.len();
        match Next::decide(self.backoff, made, asked, false, now, flight.deadline) {
            Next::After(wait) if self.may_repeat(at) => {
                self.note("wait", 0);
                self.flights[at].phase = Phase::Waiting(now + wait);
            }
            Next::After(_) => self.settle(at),
            Next::Exhausted => {
                self.note("exhausted", 0);
                self.settle(at);
            }
            Next::TooLate => {
                self.note("too_late", 0);
                self.settle(at);
            }
        }
    }

    fn may_repeat(&mut self, at: usize) -> bool {
        let live = &self.flights[at].live;
        let may = live.key.is_none() || age::may_repeat(&live.first, &self.clock);
        if !may {
            self.note("age_refused", 0);
        }
        may
    }

    fn waited(&mut self, at: usize, until: Duration) {
        let flight = &self.flights[at];
        let is_wanted = flight.app_here || flight.live.is_followed();
        if !is_wanted {
            self.settle(at);
        } else if self.clock.monotonic() >= until {
            // The machine may have slept through the wait.
            if self.may_repeat(at) {
                self.start(at);
            } else {
                self.settle(at);
            }
        } else if self.dice.chance(50) {
            let rest = until.saturating_sub(self.clock.monotonic());
            self.service.now_ms += rest.as_millis() as u64;
            self.clock.advance(rest);
        }
    }

    /// bursar's own shutdown cuts what still runs.
    pub(super) fn cut(&mut self, at: usize) {
        let flight = &mut self.flights[at];
        match flight.phase {
            Phase::Sending | Phase::AtService(_) | Phase::Replying(_) => {
                flight.attempts.push(Attempt {
                    end: AttemptEnd::NoHead,
                    status: None,
                    wait_ms: 0,
                    took_ms: 0,
                    cause: Some("shutdown".to_owned()),
                    receipt_lines: Vec::new(),
                });
            }
            Phase::Ready | Phase::Waiting(_) => {}
            Phase::Intending | Phase::Settling | Phase::Delivering => return,
        }
        flight.cut_by = Some(InDoubt::Shutdown);
        self.settle(at);
    }

    /// As `settle::write`: the outcome waits, and says that its answer was not given (rule I2).
    fn settle_later(&mut self, at: usize) {
        let flight = &self.flights[at];
        flight.live.told_at_settling(flight.delivery, None);
        for command in &mut self.paper.pending {
            if let Command::Settle(outcome) = command
                && outcome.id == flight.entry
                && outcome.delivery == Delivery::Pending
            {
                outcome.delivery = Delivery::Missed;
            }
        }
    }

    fn settle(&mut self, at: usize) {
        let flight = &mut self.flights[at];
        // As `Relay::delivery`.
        let has_reader = flight.app_here || flight.live.is_followed();
        let is_given = flight.live.is_handed_out();
        let answered = flight.answer.is_some() && flight.cut_by.is_none();
        flight.delivery = if answered && has_reader && !is_given {
            Delivery::Pending
        } else {
            flight.live.delivery_if_missed()
        };
        let broken = flight.broken.as_ref();
        let receipt = flight.answer.as_ref().or(broken);
        let outcome = Outcome {
            id: flight.entry,
            at_ms: self.clock.wall_ms(),
            attempts: flight.attempts.clone(),
            receipt: receipt.cloned().unwrap_or_default(),
            // As `Relay::nothing`: without an answer the broken head's receipt is the receipt.
            broken_billed: broken
                .filter(|_| flight.answer.is_some())
                .and_then(|receipt| receipt.billed.value()),
            usage: Usage::default(),
            audio_ms: None,
            request_id: None,
            run_id: flight.job.map(|job| format!("run-{job}")),
            cut_by: flight.cut_by,
            closed: Vec::new(),
            delivery: flight.delivery,
            drained: false,
            response_bytes: 0,
            timings: Timings::default(),
        };
        flight.phase = Phase::Settling;
        self.paper.pending.push(Command::Settle(Box::new(outcome)));
    }
}
