//! One answer on its way from the service to an app that is to have it: what is written, kept for a repeat,
//! read on, settled as, and broken off with.
//!
//! The machine hands out one [`Action`] at a time; its caller carries it out and reports how that went. What
//! is to be done next stands in a plan of steps, and each event changes the plan:
//!
//! | doing | event | what follows |
//! |---|---|---|
//! | reading | a piece came | give it |
//! | reading | the end mark came | settle, give what was held behind it, read the end |
//! | reading | the service ended, and the answer is complete | settle if nothing did, give the place back, give the rest, leave the service, finish |
//! | reading | broken, stopped, or ended without its end mark and its price | settle so, leave the service, break off; once it is settled: leave the service, finish |
//! | reading | the reader has changed, or the wait is over | look at the drain, then read, drain or stop; once it is settled, a wait that is over stops it |
//! | asking to drain | granted, refused | read; stop |
//! | writing | written | next step |
//! | writing | the write failed | the app has a part: next step; it has none: keep the piece for a repeat, with what was held |
//! | writing, keeping | bursar's stop cut it | settle so if nothing is settled, leave the service, break off |
//! | keeping | kept | next step |
//! | settling | durable | next step |
//! | settling | the ledger failed | leave the service, give what says so in another dialect, break off |
//! | finishing | the app has it to its end | delivered |
//! | finishing | the write failed | the app has a part: over; it has none: keep what was held, and the end |
//!
//! A *piece* goes to the app until an equal request follows, and into the replay buffer from then on
//! ([`super::forward`]); reading without a reader is bounded ([`super::drain`]).
//!
//! Why a second machine beside [`super::retry`]: an attempt has no app, and an answer has up to two apps.
//!
//! Promise: no I/O, clock or randomness. Nothing of a complete answer's end goes out before its outcome is
//! durable (rule I2); what is not complete is never finished.

mod plan;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use pingora::http::ResponseHeader;

use self::plan::{Outstanding, Phase, PlannedStep, Sent};
use super::client::{Presence, Written};
use super::drain::{Drain, DrainBounds, DrainCheck, Readership};
use super::event::{
    Action, AnswerEnd, AnswerForm, AppView, Done, EndMark, Event, Leave, Loss, Read, Stop, Terms,
    Then, Wait,
};
use super::forward::Forward;
use super::lost::Cause;
use super::shared::{Purchase, ReplayEnd};
use crate::proxy::refuse::{Code, Refusal};

/// One answer, and what is still to be done with it.
#[derive(Debug)]
pub struct AnswerFlow {
    terms: Terms,
    head: Arc<ResponseHeader>,
    /// `None` for what costs nothing: nothing of it is kept.
    purchase: Option<Arc<Purchase>>,
    forward: Forward,
    line: Sent,
    phase: Phase,
    drain: Drain,
    doing: Outstanding,
    plan: VecDeque<PlannedStep>,
    done: Done,
}

/// Most bytes that are read of a stream without a reader.
const STREAM_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Most bytes of a document that are read without a reader; the service stores answers up to 16 MB.
const DOCUMENT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Wait for the clean end behind an end mark, so that the upstream connection can be reused.
const AFTER_END_WAIT: Duration = Duration::from_secs(1);

// === impl AnswerFlow ===

impl AnswerFlow {
    /// An answer that flows; its first piece was read.
    pub fn flowing(
        terms: Terms,
        head: Arc<ResponseHeader>,
        purchase: Option<Arc<Purchase>>,
    ) -> Self {
        Self {
            terms,
            head,
            purchase,
            forward: Forward::new(terms.form),
            line: Sent::NotBegun,
            phase: Phase::Flows,
            drain: Drain::default(),
            doing: Outstanding::Reading,
            plan: VecDeque::new(),
            done: Done::default(),
        }
    }

    /// An answer that is settled and written at once: the service's, or a refusal.
    pub fn whole(
        is_answer: bool,
        head: Arc<ResponseHeader>,
        body: Bytes,
        purchase: Option<Arc<Purchase>>,
    ) -> Self {
        let terms = Terms {
            form: match is_answer {
                true => AnswerForm::Whole,
                false => AnswerForm::Error,
            },
            is_metered: purchase.is_some(),
            // Nothing is read any more.
            is_cancelled: false,
            stream_time: Duration::ZERO,
            document_time: Duration::ZERO,
        };
        Self {
            phase: Phase::Settled,
            doing: Outstanding::Nothing,
            plan: VecDeque::from([PlannedStep::GiveWhole(body)]),
            ..Self::flowing(terms, head, purchase)
        }
    }

    /// Whether it matters just now if the app has hung up: it is looked at before the next event.
    pub fn asks_for_app(&self) -> bool {
        let mut plan = self.plan.iter();
        let gives_more = matches!(self.doing, Outstanding::Reading)
            || plan.any(|step| matches!(step, PlannedStep::Give(_)));
        self.forward.asks_for_app(gives_more)
    }

    /// Its outcome is written, or being written.
    pub fn is_settled(&self) -> bool {
        self.phase == Phase::Settled
    }

    /// Its app has the answer, and only the service's end is awaited.
    pub fn awaits_end_only(&self) -> bool {
        self.is_settled() && self.forward.is_to_app()
    }

    /// A request that waits may have its place at the service when it is drained: not that of a document,
    /// which is read to its end, nor of what is settled, which ends by itself.
    pub fn yields_place(&self) -> bool {
        self.terms.form.is_stream() && !self.is_settled()
    }

    /// It is not certain that an app reads it: what a drain holds of bursar and of the service is needed.
    pub fn is_drained(&self) -> bool {
        self.drain != Drain::Off
    }

    /// The first action of an answer that is written at once.
    pub fn begin(&mut self, app: &AppView) -> Action {
        self.next(app)
    }

    /// What follows an event.
    pub fn on(&mut self, event: Event, app: &AppView) -> Action {
        let doing = std::mem::replace(&mut self.doing, Outstanding::Nothing);
        match (doing, event) {
            (Outstanding::Reading, Event::Read(read)) => self.came(read),
            (Outstanding::Reading, Event::TimeUp) if self.is_settled() => {
                self.ends(AnswerEnd::Stopped(Stop::Unread), Vec::new());
            }
            (Outstanding::Reading, Event::Changed | Event::TimeUp) => {
                self.plan.push_back(PlannedStep::Read)
            }
            (Outstanding::Draining, Event::Did) => {
                self.drain.begin(app.now);
                self.plan.push_front(PlannedStep::Read);
            }
            (Outstanding::Draining, _) => self.ends(AnswerEnd::Stopped(Stop::NoRoom), Vec::new()),
            (Outstanding::Writing { piece, .. }, Event::Wrote(written)) => {
                self.line = Sent::Begun {
                    ends_in_newline: piece.last() == Some(&b'\n'),
                };
                let is_out = written == Written::Out;
                self.forward.wrote(self.purchase.as_deref(), is_out);
            }
            (Outstanding::Writing { piece, held }, Event::Lost(Loss::AppGone)) => {
                self.write_failed(piece, held);
            }
            (Outstanding::Writing { .. } | Outstanding::Keeping, Event::Lost(_)) => self.cut(),
            (Outstanding::WritingWhole(_), Event::Did) => self.finished(),
            (Outstanding::WritingWhole(body), _) => {
                self.failed();
                self.plan.push_front(PlannedStep::KeepEnd);
                self.give_first(Some(body));
            }
            (Outstanding::Warning { had_held: true }, Event::Wrote(Written::Out)) => {
                // The bytes that were held went out, and the event is held now.
                self.forward.wrote(self.purchase.as_deref(), true);
            }
            (Outstanding::Settling, Event::Settled(first)) => {
                // What was held would come first behind the outcome.
                let is_held = |step: &mut PlannedStep| matches!(step, PlannedStep::Give(_));
                self.plan.pop_front_if(is_held);
                self.give_first(Some(first));
            }
            (Outstanding::Settling, Event::Refused) => {
                let last = PlannedStep::BreakOff(Code::LedgerUnavailable);
                self.plan = [PlannedStep::Leave(Leave::GivenUp), last].into();
            }
            (Outstanding::Settling, Event::Unwritten(event)) => {
                let (leave, event) = (Leave::GivenUp, PlannedStep::Give(event));
                let last = PlannedStep::BreakOff(Code::LedgerUnavailable);
                self.plan = [PlannedStep::Leave(leave), event, last].into();
            }
            (Outstanding::Finishing { .. }, Event::Did) => self.finished(),
            (Outstanding::Finishing { held }, Event::Lost(loss)) => {
                let given = self.purchase.as_ref();
                if let (Loss::Cut, Some(given)) = (loss, given.filter(|of| of.is_delivered())) {
                    given.cuts_short();
                }
                if self.failed() {
                    self.plan.push_front(PlannedStep::KeepEnd);
                    self.give_first(held);
                }
            }
            // What else an action came to changes nothing.
            _ => {}
        }
        self.next(app)
    }

    fn came(&mut self, read: Read) {
        self.drain.took(read.bytes);
        self.plan.extend(read.piece.map(PlannedStep::Give));
        if let EndMark::Came { held } = read.end_mark {
            self.settles(AnswerEnd::Complete);
            self.plan.extend(held.map(PlannedStep::Give));
        }
        match read.then {
            Then::More => self.plan.push_back(PlannedStep::Read),
            Then::Ended { rest, is_priced } => {
                let has_end = !self.terms.form.has_end_mark() || self.is_settling();
                // "all three SDK parsers take a clean end for success". Assumed: without its end mark a
                // chat stream is complete if its receipt came.
                if has_end || is_priced {
                    self.ends(AnswerEnd::Complete, rest);
                } else {
                    self.ends(AnswerEnd::Broke(Cause::Closed), Vec::new());
                }
            }
            Then::Broke(cause) => self.ends(AnswerEnd::Broke(cause), Vec::new()),
            Then::Stopped => self.ends(AnswerEnd::Stopped(Stop::Shutdown), Vec::new()),
        }
    }

    /// Once.
    fn settles(&mut self, ending: AnswerEnd) {
        if !self.is_settling() {
            self.plan.push_back(PlannedStep::Settle(ending));
        }
    }

    fn is_settling(&self) -> bool {
        let mut plan = self.plan.iter();
        self.is_settled() || plan.any(|step| matches!(step, PlannedStep::Settle(_)))
    }

    /// The service's part is over.
    fn ends(&mut self, ending: AnswerEnd, rest: Vec<Bytes>) {
        let settles_now = !self.is_settling();
        self.settles(ending);
        let (leave, last) = if ending == AnswerEnd::Complete {
            self.plan.push_back(PlannedStep::FreePlace);
            self.plan.extend(rest.into_iter().map(PlannedStep::Give));
            (Leave::Released, PlannedStep::Finish)
        } else if settles_now {
            (Leave::GivenUp, PlannedStep::BreakOff(ending.code()))
        } else {
            // The receipt is in and the end mark went out: a break after it changes nothing.
            (Leave::Abandoned, PlannedStep::Finish)
        };
        self.plan.push_back(PlannedStep::Leave(leave));
        self.plan.push_back(last);
    }

    /// bursar's stop ended the giving: what was given is not whole, settled or not.
    fn cut(&mut self) {
        if let Some(purchase) = &self.purchase {
            purchase.cuts_short();
        }
        self.plan.clear();
        self.ends(AnswerEnd::Stopped(Stop::Shutdown), Vec::new());
        self.plan.pop_back();
        self.plan
            .push_back(PlannedStep::BreakOff(Code::ShuttingDown));
    }

    fn finished(&mut self) {
        self.forward.finished(self.purchase.as_deref());
        self.done.is_whole = true;
    }

    /// A write failed. `true`: the app had nothing, and the answer goes into the replay buffer.
    fn failed(&mut self) -> bool {
        self.forward.failed(self.purchase.as_deref(), &self.head)
    }

    /// What the app did not take is kept for a repeat, unless the app has a part.
    fn write_failed(&mut self, piece: Bytes, held: Option<Bytes>) {
        if self.failed() {
            self.give_first(Some(piece));
            self.give_first(held);
        }
    }

    fn give_first(&mut self, piece: Option<Bytes>) {
        if let Some(piece) = piece {
            self.plan.push_front(PlannedStep::Give(piece));
        }
    }

    /// Before anything is given that counts. `None`: an equal request follows by now, and gets what was held
    /// for the app before this step is taken.
    fn unless_followed(&mut self, step: PlannedStep, app: &AppView) -> Option<PlannedStep> {
        let purchase = self.purchase.as_deref();
        if !self.forward.gives_way(purchase, &self.head) {
            return Some(step);
        }
        self.plan.push_front(step);
        self.give_first(app.held.clone());
        None
    }

    fn next(&mut self, app: &AppView) -> Action {
        while let Some(step) = self.plan.pop_front() {
            if let Some(action) = self.take(step, app) {
                return action;
            }
        }
        Action::Done(self.done)
    }

    /// The action of a step, where it has one.
    fn take(&mut self, step: PlannedStep, app: &AppView) -> Option<Action> {
        let gives = match &step {
            PlannedStep::Give(_) | PlannedStep::GiveWhole(_) | PlannedStep::Finish => true,
            // Without a head a refusal goes out in place of the answer.
            PlannedStep::BreakOff(_) => self.line != Sent::NotBegun,
            _ => false,
        };
        let step = if gives {
            self.unless_followed(step, app)?
        } else {
            step
        };
        let is_to_app = self.forward.is_to_app();
        match step {
            PlannedStep::Read => return self.read(app),
            PlannedStep::Give(piece) if is_to_app => return Some(self.write(piece, app)),
            PlannedStep::Give(piece) => {
                self.purchase.as_ref()?;
                self.doing = Outstanding::Keeping;
                return Some(Action::Keep(piece));
            }
            PlannedStep::GiveWhole(body) if is_to_app => {
                self.doing = Outstanding::WritingWhole(body.clone());
                return Some(Action::WriteWhole(body));
            }
            PlannedStep::GiveWhole(body) => {
                self.plan.push_front(PlannedStep::KeepEnd);
                self.give_first(Some(body));
            }
            PlannedStep::Settle(ending) => {
                self.phase = Phase::Settled;
                self.doing = Outstanding::Settling;
                let is_drained = self.terms.is_metered && self.reader(app) != Readership::Present;
                return Some(Action::Settle { ending, is_drained });
            }
            PlannedStep::FreePlace => return Some(Action::FreePlace),
            PlannedStep::Leave(leave) => {
                if leave == Leave::GivenUp {
                    // Nothing is read on: the next drain has the room.
                    self.drain = Drain::Off;
                }
                return Some(Action::Leave(leave));
            }
            PlannedStep::Finish if is_to_app => {
                let held = app.held.clone();
                self.doing = Outstanding::Finishing { held };
                return Some(Action::Finish);
            }
            PlannedStep::Finish | PlannedStep::KeepEnd => self.keep_end(ReplayEnd::Complete),
            PlannedStep::BreakOff(code) => return self.break_off(code, app),
            PlannedStep::Break => return Some(Action::Break),
        }
        None
    }

    fn write(&mut self, piece: Bytes, app: &AppView) -> Action {
        let head = match self.line {
            Sent::NotBegun => Some(Arc::clone(&self.head)),
            Sent::Begun { .. } => None,
        };
        if head.is_some() {
            self.line = Sent::Begun {
                ends_in_newline: true,
            };
        }
        self.doing = Outstanding::Writing {
            piece: piece.clone(),
            held: app.held.clone(),
        };
        Action::Write { head, piece }
    }

    /// The app learns that the answer is not complete: an error event where it reads events, and a
    /// connection that does not end cleanly.
    fn break_off(&mut self, code: Code, app: &AppView) -> Option<Action> {
        self.done.code = Some(code);
        let refusal = Refusal::new(code);
        if !self.forward.is_to_app() {
            self.keep_end(ReplayEnd::Broken(refusal));
            return None;
        }
        match self.line {
            // The refusal goes to whichever app is there for it.
            Sent::NotBegun => Some(Action::Refuse(code)),
            Sent::Begun { ends_in_newline } if self.terms.form == AnswerForm::Chat => {
                self.plan.push_front(PlannedStep::Break);
                let had_held = app.held.is_some();
                self.doing = Outstanding::Warning { had_held };
                Some(Action::Warn(refusal.event_behind(ends_in_newline)))
            }
            Sent::Begun { .. } => Some(Action::Break),
        }
    }

    fn keep_end(&self, end: ReplayEnd) {
        if let Some(purchase) = &self.purchase {
            purchase.record_end(end);
        }
    }

    /// The service's next piece, within the bounds of a drain when no app reads.
    fn read(&mut self, app: &AppView) -> Option<Action> {
        if self.phase == Phase::Flows {
            match self.bound(app) {
                ReadOn::GoesOn => {}
                ReadOn::Drains => {
                    self.doing = Outstanding::Draining;
                    return Some(Action::Drain);
                }
                ReadOn::Stops(stop) => {
                    self.ends(AnswerEnd::Stopped(stop), Vec::new());
                    return None;
                }
            }
        }
        let wait = match (self.phase, self.forward.is_to_app()) {
            (Phase::Flows, _) => match self.drain.since() {
                Some(since) => {
                    let until = since.saturating_add(self.bounds().time);
                    Wait::AtMost(until.saturating_sub(app.now))
                }
                None if self.app_reads(app) == Readership::Present => Wait::Long,
                None => Wait::WhileFollowed,
            },
            // With its end mark the app may leave; the service's end is then only worth a moment.
            (Phase::Settled, true) => match app.presence {
                // Its app waits for the end, and behind the end mark nothing comes that it would be given.
                Presence::Here if self.terms.form == AnswerForm::Translated => {
                    Wait::TheEnd(AFTER_END_WAIT)
                }
                Presence::Here => Wait::Long,
                Presence::Suspect => Wait::AtMost(AFTER_END_WAIT),
                Presence::Gone => Wait::TheEnd(AFTER_END_WAIT),
            },
            (Phase::Settled, false) if self.is_followed() => Wait::WhileFollowed,
            // No app reads, and everything is settled: no drain bounds this any more.
            (Phase::Settled, false) => Wait::TheEnd(AFTER_END_WAIT),
        };
        self.doing = Outstanding::Reading;
        Some(Action::Read(wait))
    }

    /// Begins, bounds and lifts the drain.
    fn bound(&mut self, app: &AppView) -> ReadOn {
        let is_document = self.is_document();
        let reader = match self.reader(app) {
            Readership::Uncertain if is_document => Readership::Absent,
            reader => reader,
        };
        let verdict = self.drain.look(reader, app.now, self.bounds());
        if self.drain.is_on() && !is_document && app.is_displaced {
            return ReadOn::Stops(Stop::Displaced);
        }
        match verdict {
            DrainCheck::GoesOn => ReadOn::GoesOn,
            DrainCheck::MayBegin if is_document => {
                self.drain.begin(app.now);
                ReadOn::GoesOn
            }
            // A free answer that no app reads is worth nothing.
            DrainCheck::MayBegin if !self.terms.is_metered => ReadOn::Stops(Stop::Unread),
            DrainCheck::MayBegin if self.terms.is_cancelled => ReadOn::Stops(Stop::Cancelled),
            DrainCheck::MayBegin => ReadOn::Drains,
            DrainCheck::Over => ReadOn::Stops(Stop::Bounds),
        }
    }

    /// A metered document is read to its end, unless it has none.
    fn is_document(&self) -> bool {
        self.terms.form == AnswerForm::Document && self.terms.is_metered
    }

    fn bounds(&self) -> DrainBounds {
        if self.is_document() {
            DrainBounds {
                time: self.terms.document_time,
                bytes: DOCUMENT_BYTES_MAX,
            }
        } else {
            DrainBounds {
                time: self.terms.stream_time,
                bytes: STREAM_BYTES_MAX,
            }
        }
    }

    fn is_followed(&self) -> bool {
        let purchase = self.purchase.as_ref();
        purchase.is_some_and(|purchase| purchase.is_followed())
    }

    fn reader(&self, app: &AppView) -> Readership {
        if self.is_followed() {
            return Readership::Present;
        }
        self.app_reads(app)
    }

    /// What goes into the replay buffer is not for the leading app any more, wherever that is.
    fn app_reads(&self, app: &AppView) -> Readership {
        match app.presence {
            _ if !self.forward.is_to_app() => Readership::Absent,
            Presence::Here => Readership::Present,
            Presence::Suspect if app.is_proven => Readership::Present,
            Presence::Suspect => Readership::Uncertain,
            Presence::Gone => Readership::Absent,
        }
    }
}

/// Rule I2: whether an answer that was read whole is given. `is_written`: its outcome is durable. What costs
/// nothing has none to wait for, and an error is none that has to be paid for.
pub fn may_give(is_success: bool, is_metered: bool, is_written: bool) -> bool {
    is_written || !is_metered || !is_success
}

/// Whether the reading goes on.
enum ReadOn {
    GoesOn,
    /// No app reads: a drain is asked for.
    Drains,
    Stops(Stop),
}

#[cfg(test)]
mod tests;
