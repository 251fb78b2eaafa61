//! One request between its claim and its close: the async machine of the proxy, step by step. Every
//! decision is the proxy's own function; only the waiting is the model's.

mod give;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use http::{HeaderMap, HeaderValue, StatusCode};
use pingora::http::ResponseHeader;

use super::scribe::Command;
use super::service::{Answer, Ask, Repeats};
use super::world::{Process, World};
use crate::ledger::entry::{Attempt, AttemptEnd, EntryId, InDoubt, Outcome, State, Timings};
use crate::ledger::undelivered::Delivery;
use crate::money::MicroUsd;
use crate::protocol::receipt::Receipt;
use crate::protocol::routes::{ReceiptFrom, Route};
use crate::protocol::{Told, Usage};
use crate::proxy::purchase::backoff::{asked_wait, declines_retry};
use crate::proxy::purchase::fate::Fate;
use crate::proxy::purchase::forward::{Forward, Kind};
use crate::proxy::purchase::lost::{Cause, Lost};
use crate::proxy::purchase::retry::{Bounds, Ending, Next, Refused, Retries};
use crate::proxy::purchase::shared::{Purchase, ReplayEnd};
use crate::proxy::refuse::Code;

/// A request that leads.
pub struct Flight {
    pub id: EntryId,
    pub purchase: Arc<Purchase>,
    pub route: Arc<Route>,
    pub repeats: Repeats,
    pub stream: bool,
    pub body: u64,
    /// Whom the service bills.
    pub organization: u64,
    /// Its app is connected.
    pub here: bool,
    /// Its app's input had ended before its intent: it is sent all the same.
    pub suspected: bool,
    pub retries: Retries,
    state: Option<State>,
    tries: u32,
    pub step: Step,
}

/// Where a request stands.
#[derive(Debug)]
pub enum Step {
    /// Its intent waits for a commit.
    Intending,
    Intended(bool),
    /// Sent; a job of the service, unless it was lost on its way.
    Waiting(Option<u64>),
    Resting {
        until: Duration,
        otherwise: Outlook,
    },
    Flowing {
        receipt: Receipt,
        forward: Forward,
    },
    /// Its outcome waits for a commit.
    Settling(Box<Outcome>, Outlook),
    Settled {
        ok: bool,
        outcome: Box<Outcome>,
        reached: Outlook,
    },
    /// About to write.
    Giving(Outlook),
    Over,
}

/// What the attempts came to.
#[derive(Clone, Debug)]
pub enum Outlook {
    Success {
        receipt: Receipt,
        run_id: Option<String>,
    },
    Refusal(Receipt),
    Nothing,
    Cut,
    /// Nothing was sent: the app had left.
    Unsent,
    FlowDone(Forward),
    FlowBroken(Forward),
}

// === impl Step ===

impl Step {
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Intending => "waits for its intent",
            Self::Intended(_) => "has its intent",
            Self::Waiting(_) => "waits for an answer",
            Self::Resting { .. } => "rests",
            Self::Flowing { .. } => "flows",
            Self::Settling(..) => "waits for its outcome",
            Self::Settled { .. } => "has its outcome",
            Self::Giving(_) => "gives",
            Self::Over => "is over",
        }
    }
}

// === impl Flight ===

impl Flight {
    pub fn new(
        purchase: Arc<Purchase>,
        route: Arc<Route>,
        repeats: Repeats,
        bounds: Bounds,
    ) -> Self {
        Self {
            id: purchase.entry,
            purchase,
            retries: Retries::new(&route, bounds),
            route,
            repeats,
            stream: false,
            body: 0,
            organization: 0,
            here: true,
            suspected: false,
            state: None,
            tries: 0,
            step: Step::Intending,
        }
    }

    pub fn is_own(&self) -> bool {
        self.purchase.key.is_some() && self.purchase.key_use().is_none()
    }

    /// Its app has what counts as the answer.
    pub fn is_delivered(&self) -> bool {
        self.purchase.is_delivered()
    }

    pub fn ask(&self) -> Ask {
        Ask {
            repeats: self.repeats,
            organization: self.organization,
            key: self.purchase.key.as_ref().map(|key| Arc::clone(&key.value)),
            body: self.body,
            entry: self.id,
        }
    }

    /// The app's connection ends.
    pub fn leave(&mut self) {
        self.here = false;
        self.purchase.app_left();
    }

    pub fn advance(&mut self, world: &mut World, process: &mut Process) -> Result<(), String> {
        let step = std::mem::replace(&mut self.step, Step::Over);
        self.step = match step {
            Step::Intending | Step::Settling(..) | Step::Over => step,
            Step::Intended(true) if self.here || self.suspected => {
                self.first_send(world, process)?
            }
            Step::Intended(true) => {
                world.count("left before sending");
                self.settle(world, process, Outlook::Unsent)
            }
            Step::Intended(false) => {
                world.count("intent refused");
                self.close(world, process, self.purchase.fate_unsent(false));
                Step::Over
            }
            Step::Waiting(job) => self.wait(world, process, job),
            Step::Resting { until, otherwise } => self.rest(world, process, until, otherwise)?,
            Step::Flowing { receipt, forward } => self.flow(world, process, receipt, forward)?,
            Step::Settled {
                ok,
                outcome,
                reached,
            } => self.settled(world, process, ok, outcome, reached)?,
            Step::Giving(reached) => self.give(world, process, reached)?,
        };
        Ok(())
    }

    fn record(&mut self, end: AttemptEnd, status: Option<u16>) {
        self.retries.record(Attempt {
            end,
            status,
            wait_ms: 0,
            took_ms: 1,
            cause: None,
            receipt_lines: Vec::new(),
        });
    }

    fn settle(&mut self, world: &World, process: &mut Process, reached: Outlook) -> Step {
        let (receipt, cut_by) = match &reached {
            Outlook::Success { receipt, .. } | Outlook::Refusal(receipt) => (receipt.clone(), None),
            Outlook::Cut => (self.retries.take_broken(), Some(InDoubt::Shutdown)),
            Outlook::Nothing => (self.retries.take_broken(), None),
            Outlook::Unsent | Outlook::FlowDone(_) | Outlook::FlowBroken(_) => {
                (Receipt::default(), None)
            }
        };
        self.settle_with(world, process, reached, receipt, cut_by)
    }

    fn settle_with(
        &mut self,
        world: &World,
        process: &mut Process,
        reached: Outlook,
        receipt: Receipt,
        cut_by: Option<InDoubt>,
    ) -> Step {
        let last = self.retries.attempts().last();
        let answered = last.is_some_and(|last| last.end == AttemptEnd::Answered);
        let has_reader = self.here || self.purchase.is_followed();
        let delivery = match &reached {
            Outlook::Unsent => Delivery::Missed,
            _ => self.purchase.delivery(answered, cut_by, has_reader),
        };
        let run_id = match &reached {
            Outlook::Success { run_id, .. } => run_id.clone(),
            _ => None,
        };
        let outcome = Box::new(Outcome {
            id: self.id,
            at_ms: world.wall_ms(),
            attempts: self.retries.attempts().to_vec(),
            receipt,
            broken_billed: self.retries.broken_billed(),
            usage: Usage::default(),
            audio_ms: None,
            request_id: None,
            run_id,
            cut_by,
            closed: Vec::new(),
            delivery,
            drained: false,
            response_bytes: 0,
            timings: Timings::default(),
        });
        process.scribe.queue.push(Command::Settle(outcome.clone()));
        Step::Settling(outcome, reached)
    }

    /// The reply of a commit has come.
    fn settled(
        &mut self,
        world: &mut World,
        process: &mut Process,
        ok: bool,
        outcome: Box<Outcome>,
        reached: Outlook,
    ) -> Result<Step, String> {
        if !ok && self.tries < 2 {
            self.tries += 1;
            world.count("outcome offered again");
            process.scribe.queue.push(Command::Settle(outcome.clone()));
            return Ok(Step::Settling(outcome, reached));
        }
        let mut delivery = outcome.delivery;
        if ok {
            self.state = world.reading.states.get(&self.id).copied();
        } else {
            world.count("outcome left for later");
            delivery = self.purchase.delivery_if_missed();
            let mut outcome = outcome;
            if outcome.delivery == Delivery::Pending {
                outcome.delivery = delivery;
            }
            process.scribe.later.push(*outcome);
        }
        self.purchase.told_at_settling(delivery, self.state);
        Ok(match reached {
            Outlook::Unsent => {
                self.close(world, process, self.purchase.fate_unsent(true));
                Step::Over
            }
            Outlook::Success { .. } if !ok => Step::Giving(Outlook::Nothing),
            Outlook::FlowDone(forward) if !ok => Step::Giving(Outlook::FlowBroken(forward)),
            reached => Step::Giving(reached),
        })
    }
}
