//! One request between its claim and its close: the async machine of the proxy, step by step. Every
//! decision is the proxy's own function; only the waiting is the model's.

mod deliver;
mod wire;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use http::{HeaderMap, HeaderValue, StatusCode};
use pingora::http::ResponseHeader;

use super::scribe::Command;
use super::service::{Ask, Repeats, ServiceAnswer};
use super::transcript::Transcript;
use super::world::{Process, World};
use crate::ledger::entry::{Attempt, AttemptEnd, EntryId, InDoubt, Outcome, State};
use crate::ledger::undelivered::Delivery;
use crate::money::MicroUsd;
use crate::protocol::Reported;
use crate::protocol::receipt::Receipt;
use crate::protocol::routes::{ReceiptFrom, Route};
use crate::proxy::purchase::answer::{AnswerFlow, may_give};
use crate::proxy::purchase::attempts::{
    AttemptAction, AttemptEvent, AttemptView, RetryLoop, WantedBy,
};
use crate::proxy::purchase::backoff::{asked_wait, declines_retry};
use crate::proxy::purchase::client::{AppProbe, Presence, Written};
use crate::proxy::purchase::event::{Action, AnswerEnd, AnswerForm, AppView, Event, Terms};
use crate::proxy::purchase::lost::{Cause, Lost};
use crate::proxy::purchase::retry::{Bounds, Ending, ErrorHead, Retries};
use crate::proxy::purchase::shared::Fate;
use crate::proxy::purchase::shared::Purchase;
use crate::proxy::refuse::Code;

/// A request that leads.
pub struct Flight {
    pub id: EntryId,
    pub purchase: Arc<Purchase>,
    pub route: Arc<Route>,
    pub repeats: Repeats,
    pub stream: bool,
    pub body: u64,
    /// The organization that the service bills.
    pub organization: u64,
    /// Its app is connected, as far as bursar has noticed.
    pub here: bool,
    /// Its app's input had ended before its intent: it is sent all the same.
    pub suspected: bool,
    /// A suspect that took bytes.
    is_proven: bool,
    hang_up: HangUp,
    /// The end of its connection is the end of its answer: each piece waits for its successor.
    is_close_delimited: bool,
    held: Option<Bytes>,
    given: Transcript,
    pub retries: Retries,
    /// From its first attempt on.
    attempts: Option<RetryLoop>,
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
    /// Between two attempts.
    Between {
        action: AttemptAction,
        since: Duration,
        /// What the last one came to.
        last: Outlook,
    },
    Flowing(Box<Flowing>),
    /// Its outcome waits for a commit.
    Settling(Arc<Outcome>, Outlook),
    Settled {
        ok: bool,
        outcome: Arc<Outcome>,
        reached: Outlook,
    },
    /// About to write.
    Giving(Outlook),
    Over,
}

/// What the attempts came to.
#[derive(Debug)]
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
    /// A stream's, whose outcome is being written.
    Flow(Box<Flowing>),
}

/// A stream on its way to the app.
#[derive(Debug)]
pub struct Flowing {
    receipt: Receipt,
    answer: AnswerFlow,
    /// What is to be done next.
    action: Action,
    /// Since when.
    since: Duration,
}

/// An app's connection: whether it hung up, noticed or not.
#[derive(Clone, Debug, Default)]
struct HangUp(Arc<AtomicBool>);

// === impl HangUp ===

impl AppProbe for HangUp {
    fn has_hung_up(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn taken_bytes(&self) -> u64 {
        0
    }
}

// === impl Step ===

impl Step {
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Intending => "waits for its intent",
            Self::Intended(_) => "has its intent",
            Self::Waiting(_) => "waits for an answer",
            Self::Between { .. } => "is between two attempts",
            Self::Flowing(_) => "flows",
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
        let hang_up = HangUp::default();
        purchase.led_by(hang_up.clone());
        Self {
            id: purchase.entry,
            purchase,
            retries: Retries::new(&route, bounds),
            attempts: None,
            route,
            repeats,
            stream: false,
            body: 0,
            organization: 0,
            here: true,
            suspected: false,
            is_proven: false,
            hang_up,
            is_close_delimited: false,
            held: None,
            given: Transcript::default(),
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

    /// The app's connection ends, and bursar notices.
    pub fn leave(&mut self) {
        self.here = false;
        self.suspected = false;
        self.hangs_up();
        self.purchase.app_left();
    }

    /// The app's connection ends, and bursar has not noticed yet.
    pub fn hangs_up(&self) {
        self.hang_up.0.store(true, Ordering::Relaxed);
    }

    /// The app's input had ended before its intent, and it is sent all the same.
    pub fn is_suspected(&mut self) {
        self.suspected = true;
    }

    pub fn ends_with_its_connection(&mut self) {
        self.is_close_delimited = true;
    }

    /// Its app is there, whatever bursar has noticed.
    pub fn is_connected(&self) -> bool {
        self.here && !self.has_hung_up()
    }

    fn has_hung_up(&self) -> bool {
        self.hang_up.has_hung_up()
    }

    /// `ClientWatch::look`.
    fn look(&mut self) {
        if self.here && self.has_hung_up() {
            self.leave();
        }
    }

    fn presence(&self) -> Presence {
        match (self.here, self.suspected) {
            (true, _) => Presence::Here,
            (false, true) => Presence::Suspect,
            (false, false) => Presence::Gone,
        }
    }

    pub fn advance(&mut self, world: &mut World, process: &mut Process) -> Result<(), String> {
        let step = std::mem::replace(&mut self.step, Step::Over);
        self.step = match step {
            Step::Intending | Step::Settling(..) | Step::Over => step,
            Step::Intended(true) if self.purchase.is_abandoned(self.presence()) => {
                world.count("left before sending");
                self.settle(world, process, Outlook::Unsent)
            }
            Step::Intended(true) => self.first_send(world, process)?,
            Step::Intended(false) => {
                world.count("intent refused");
                self.close(world, process, self.purchase.fate_unsent(false));
                Step::Over
            }
            Step::Waiting(job) => self.wait(world, process, job)?,
            Step::Between {
                action,
                since,
                last,
            } => self.between(world, process, action, since, last)?,
            Step::Flowing(flowing) => self.flow(world, process, flowing)?,
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
            took_ms: 1,
            ..Attempt::new(end, status)
        });
    }

    fn settle(&mut self, world: &World, process: &mut Process, reached: Outlook) -> Step {
        let (receipt, cut_by) = match &reached {
            Outlook::Success { receipt, .. } | Outlook::Refusal(receipt) => (receipt.clone(), None),
            Outlook::Cut => (self.retries.take_broken(), Some(InDoubt::Shutdown)),
            Outlook::Nothing => (self.retries.take_broken(), None),
            Outlook::Unsent | Outlook::Flow(_) => (Receipt::default(), None),
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
        let answered = self.retries.is_answered();
        let delivery = match &reached {
            Outlook::Unsent => Delivery::Missed,
            _ => self.purchase.delivery(answered, cut_by, self.presence()),
        };
        let run_id = match &reached {
            Outlook::Success { run_id, .. } => run_id.clone(),
            _ => None,
        };
        let outcome = Arc::new(Outcome {
            attempts: self.retries.attempts().to_vec(),
            receipt,
            broken_billed: self.retries.broken_billed(),
            run_id,
            cut_by,
            delivery,
            ..Outcome::new(self.id, world.wall_ms())
        });
        process
            .scribe
            .queue
            .push(Command::Settle(Arc::clone(&outcome)));
        Step::Settling(outcome, reached)
    }

    /// The reply of a commit has come.
    fn settled(
        &mut self,
        world: &mut World,
        process: &mut Process,
        ok: bool,
        outcome: Arc<Outcome>,
        reached: Outlook,
    ) -> Result<Step, String> {
        if !ok && self.tries < 2 {
            self.tries += 1;
            world.count("outcome offered again");
            process
                .scribe
                .queue
                .push(Command::Settle(Arc::clone(&outcome)));
            return Ok(Step::Settling(outcome, reached));
        }
        let delivery = outcome.delivery;
        if ok {
            self.state = world.reading.states.get(&self.id).copied();
        } else {
            world.count("outcome left for later");
            let mut outcome = Arc::unwrap_or_clone(outcome);
            if outcome.delivery == Delivery::Pending {
                outcome.delivery = self.purchase.delivery_if_missed();
            }
            process.scribe.later.push(outcome);
        }
        self.purchase.settled_as(delivery, self.state);
        if let Outlook::Flow(flowing) = reached {
            return self.flow_settled(world, process, flowing, ok);
        }
        Ok(match reached {
            Outlook::Unsent => {
                self.close(world, process, self.purchase.fate_unsent(true));
                Step::Over
            }
            reached => {
                let is_success = matches!(reached, Outlook::Success { .. });
                Step::Giving(match may_give(is_success, true, ok) {
                    true => reached,
                    false => Outlook::Nothing,
                })
            }
        })
    }
}
