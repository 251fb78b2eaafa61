//! The attempts of one request, until there is an answer for the app. When the next one is made is decided
//! in [`crate::proxy::purchase::attempts`]; this carries it out.
//!
//! Promise: every attempt repeats the same head and the same bytes; a running attempt is cut by bursar's
//! stop alone, for that would burn a paid answer; a wait ends at once where the app may not spend any more.

pub mod place;
pub mod sending;
mod times;
pub mod words;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode};
use pingora::http::ResponseHeader;
use tokio::sync::OwnedSemaphorePermit;

use self::place::UpstreamPlace;
use self::sending::Sending;
use self::times::Times;
use self::words::{attempt_result, refusal_of, so_far};
use super::client_watch::{ClientWatch, Cut};
use super::limits::queue::{Priority, Unserved, UpstreamSlot};
use super::purchase::attempts::{AttemptAction, AttemptEvent, AttemptView, RetryLoop};
use super::purchase::backoff::{asked_wait, declines_retry, random_share};
use super::purchase::drain::UnreadSince;
use super::purchase::lost::Cause;
use super::purchase::retry::{Bounds, Ending, ErrorHead, Repeat, Retries};
use super::refuse::{Code, Refusal};
use super::upstream::exchange::{self, Answering, BodyBroke, Failed, WHOLE_BYTES_MAX};
use super::upstream::heads;
use crate::clock::millis;
use crate::ledger::entry::{Attempt, AttemptEnd};
use crate::protocol::receipt::Receipt;
use crate::protocol::receipt::lines::ReceiptLines;
use crate::protocol::routes::AnswerKind;

/// The attempts of one logical request.
pub struct Dispatch<'a> {
    sending: Sending<'a>,
    retries: Retries,
    times: Times,
    place: UpstreamPlace,
    /// Memory for an answer that is read whole and is large, until it is given.
    answer_room: Option<OwnedSemaphorePermit>,
    unreached: Option<String>,
    service_detail: Option<String>,
    /// The table allowed another attempt, and none was left.
    exhausted: bool,
}

/// Where the attempts ended.
pub enum DispatchOutcome {
    /// The service's answer, complete.
    Whole { head: ResponseHeader, body: Bytes },
    /// A 2xx answer whose rest is still to come: a stream, or more than 1 MiB.
    Flowing(Box<Flowing>),
    /// No answer, or none that bursar may ask for again.
    Nothing { refusal: Refusal },
    /// bursar's own shutdown ended it.
    Cut,
}

/// An answer that flows.
pub struct Flowing {
    pub answering: Box<Answering>,
    /// What was read before it was clear that it flows; never empty.
    pub first: Bytes,
    pub event_stream: bool,
    attempt: AttemptClock,
}

/// What one attempt came to.
enum Attempted {
    Final(DispatchOutcome),
    /// Without an answer for the app: another attempt may follow; if not, this is the end.
    Ended {
        ending: Ending,
        otherwise: DispatchOutcome,
    },
}

/// When an attempt began, and how long it had been waited for.
#[derive(Clone, Copy)]
struct AttemptClock {
    waited: Duration,
    began: Duration,
}

// === impl Dispatch ===

impl<'a> Dispatch<'a> {
    /// Before the first attempt, for whose place it had waited `queued`.
    pub fn new(
        sending: Sending<'a>,
        bounds: Bounds,
        place: UpstreamPlace,
        queued: Duration,
    ) -> Self {
        Self {
            retries: Retries::new(sending.route, bounds),
            sending,
            times: Times::behind(queued),
            place,
            answer_room: None,
            unreached: None,
            service_detail: None,
            exhausted: false,
        }
    }

    /// The body that is sent.
    pub fn body(&self) -> &Bytes {
        &self.sending.outgoing.body
    }

    pub fn retries(&self) -> &Retries {
        &self.retries
    }

    pub fn times(&self) -> &Times {
        &self.times
    }

    pub fn place(&self) -> &UpstreamPlace {
        &self.place
    }

    /// What the last failure to connect was, in words, for the log.
    pub fn unreached(&self) -> Option<&str> {
        self.unreached.as_deref()
    }

    /// What the service said when it last refused an attempt.
    pub fn service_detail(&self) -> Option<&str> {
        self.service_detail.as_deref()
    }

    /// See [`Retries::is_final`].
    pub fn is_final(&self, is_known_zero: bool, adoptions: u32, own: Option<bool>) -> bool {
        self.retries
            .is_final(is_known_zero, adoptions, self.exhausted, own)
    }

    /// The service is done.
    pub fn give_back_place(&mut self) {
        self.place.give_back();
    }

    /// The place, to be given back by the caller.
    pub fn take_place(&mut self) -> Option<UpstreamSlot> {
        self.place.take()
    }

    /// The service had the word while its answer flowed.
    pub fn service_took(&mut self, took: Duration) {
        self.times.service_took(took);
    }

    /// The receipt of an entry that got no whole answer.
    pub fn take_broken(&mut self) -> Receipt {
        self.retries.take_broken()
    }

    /// The attempts for the outcome, which is written once; to the last belong the receipt lines that came behind its
    /// head.
    pub fn for_outcome(&mut self, lines: &ReceiptLines) -> Vec<Attempt> {
        if let Some(last) = self.retries.last_mut() {
            lines.append_to(&mut last.receipt_lines);
        }
        self.retries.for_outcome()
    }

    /// Runs attempts until there is an answer.
    pub async fn run(&mut self, app: &mut ClientWatch<'_>) -> DispatchOutcome {
        let clock = &*self.sending.gateway.clock;
        let may_begin = app
            .purchase()
            .is_none_or(|purchase| purchase.may_begin(clock));
        let (mut attempts, mut action) =
            RetryLoop::begin(self.sending.route.is_inference(), may_begin);
        let mut last = DispatchOutcome::from(Code::Internal);
        // Between two attempts it is one of the requests that wait.
        let mut waiter = None;
        loop {
            let event = match action {
                AttemptAction::Send(repeat) => {
                    waiter = None;
                    if let Some(repeat) = &repeat {
                        let Sending { gateway, app, .. } = &self.sending;
                        gateway.metrics.retry(app, repeat.reason);
                    }
                    match self.attempt(app, repeat.unwrap_or_default()).await {
                        Attempted::Final(reached) => return reached,
                        Attempted::Ended { ending, otherwise } => {
                            last = otherwise;
                            AttemptEvent::Ended(ending)
                        }
                    }
                }
                AttemptAction::Wait { wait, beyond } => match self.sending.waiter(beyond) {
                    Ok(entered) => {
                        // The attempt is over at the service, too. The place of the last one is given
                        // back with its price.
                        self.place.give_back();
                        waiter = Some(entered);
                        match self.rest(app, wait).await {
                            Ok(event) => event,
                            Err(Cut) => return DispatchOutcome::Cut,
                        }
                    }
                    Err(crowd) => AttemptEvent::Crowded(crowd),
                },
                AttemptAction::Queue { while_here } => match self.queue(app, while_here).await {
                    Ok(event) => event,
                    Err(Cut) => return DispatchOutcome::Cut,
                },
                AttemptAction::Ask => self.sending.leave(app),
                AttemptAction::EndAsLast { exhausted } => {
                    if waiter.is_some() {
                        self.place.give_back();
                    }
                    self.exhausted = exhausted;
                    return last;
                }
                AttemptAction::Refuse(refusal) => {
                    self.place.give_back();
                    self.unreached = None;
                    let refusal = match so_far(&self.retries) {
                        Some(words) => refusal.and(&words),
                        None => refusal,
                    };
                    return DispatchOutcome::Nothing { refusal };
                }
            };
            let view = self.view(app);
            action = attempts.on(event, &self.retries, view);
        }
    }

    fn view(&self, app: &mut ClientWatch<'_>) -> AttemptView {
        let clock = &*self.sending.gateway.clock;
        let purchase = app.purchase();
        AttemptView {
            now: clock.monotonic(),
            share: random_share(),
            may_repeat: purchase.is_none_or(|purchase| purchase.may_repeat(clock)),
            wanted: app.wanted(),
        }
    }

    async fn attempt(&mut self, app: &mut ClientWatch<'_>, repeat: Repeat) -> Attempted {
        let gateway = self.sending.gateway;
        let clock = AttemptClock {
            waited: repeat.wait,
            began: self.sending.now(),
        };
        self.times.attempt_begins();
        self.unreached = None;
        self.answer_room = None;
        let settings = Arc::clone(&self.sending.settings);
        let outgoing = self.sending.outgoing;
        self.place.sends();
        let attempt = pin!(async {
            let fresh_connection = outgoing.fresh_connection || repeat.fresh_connection;
            let (connections, peers) = (&settings.connections, &settings.peers);
            let attempt = exchange::attempt(connections, peers, outgoing, fresh_connection);
            // It is large, and goes from hand to hand from here on.
            attempt.await.map(Box::new)
        });
        let answering = app.attend(attempt).await;
        match answering {
            Err(Cut) => {
                // The request may be on its way: what it cost is not known.
                self.record(clock, AttemptEnd::NoHead, None, Some("shutdown"));
                Attempted::Final(DispatchOutcome::Cut)
            }
            Ok(Err(failed)) => self.lost(clock, failed),
            Ok(Ok(answering)) => {
                self.place.heard(&answering);
                let traffic = &gateway.metrics.traffic;
                traffic.answered(answering.on_kept_connection());
                if answering.head().status.is_success() {
                    self.success(app, clock, answering).await
                } else {
                    self.refused(app, clock, answering).await
                }
            }
        }
    }

    fn lost(&mut self, clock: AttemptClock, failed: Failed) -> Attempted {
        let settings = Arc::clone(&self.sending.settings);
        let base_url = &settings.config.upstream.base_url;
        self.place.lost(&failed, base_url);
        let Failed { lost, words } = failed;
        self.unreached = words;
        let ending = Ending::Lost(lost);
        let end = self.retries.end_of(&ending);
        self.record(clock, end, None, Some(lost.cause().as_str()));
        let refusal = refusal_of(lost, self.retries.may_have_run(), base_url);
        Attempted::Ended {
            ending,
            otherwise: DispatchOutcome::Nothing { refusal },
        }
    }

    async fn success(
        &mut self,
        app: &mut ClientWatch<'_>,
        clock: AttemptClock,
        mut answering: Box<Answering>,
    ) -> Attempted {
        let event_stream = heads::is_event_stream(&answering.head().headers);
        if self.sending.is_for_head() || answering.head().status == StatusCode::NO_CONTENT {
            return self.whole(clock, answering, Bytes::new()).await;
        }
        // A stream that ends with `data: [DONE]` has not ended before its first byte.
        let route = self.sending.route;
        let wants_bytes =
            event_stream && route.is_metered() && route.answer != AnswerKind::NamedEvents;
        if answering.is_unfit() {
            return self.broke(clock, answering.head(), Cause::Protocol);
        }
        let mut body = BytesMut::new();
        let mut unread_since = UnreadSince::default();
        let limit = self.sending.outgoing.read_timeout;
        loop {
            let bytes = body
                .len()
                .saturating_add(self.sending.outgoing.echoed_bytes);
            let wants_room = bytes > WHOLE_BYTES_MAX && self.answer_room.is_none();
            let room = wants_room.then(|| self.sending.room_for(answering.head()));
            let reads = async {
                // Without memory nothing is read: the service waits with the rest.
                let room = match room {
                    Some(room) => room.await.ok(),
                    None => None,
                };
                (room, answering.next_chunk().await)
            };
            let read = app.attend(pin!(reads)).await;
            let chunk = match read {
                Ok((room, chunk)) => {
                    self.answer_room = self.answer_room.take().or(room);
                    chunk
                }
                Err(Cut) => {
                    let head = Some(answering.head());
                    self.record(clock, AttemptEnd::Broken, head, Some("shutdown"));
                    self.saw_broken_head(&answering.head().headers);
                    return Attempted::Final(DispatchOutcome::Cut);
                }
            };
            let now = self.sending.now();
            let chunk = match chunk {
                Ok(None) if wants_bytes => Err(BodyBroke(Cause::Closed)),
                Ok(Some(_)) if unread_since.for_longer_than(limit, app.is_alone(), now) => {
                    Err(BodyBroke(Cause::Timeout))
                }
                chunk => chunk,
            };
            match chunk {
                Ok(Some(chunk)) => {
                    self.times.bytes_came(now);
                    body.extend_from_slice(&chunk);
                    let flows = event_stream || body.len() > self.sending.outgoing.whole_bytes_max;
                    if flows && !body.is_empty() {
                        self.times.service_took(self.sending.since(clock.began));
                        return Attempted::Final(DispatchOutcome::Flowing(Box::new(Flowing {
                            answering,
                            first: body.freeze(),
                            event_stream,
                            attempt: clock,
                        })));
                    }
                }
                Ok(None) => return self.whole(clock, answering, body.freeze()).await,
                Err(BodyBroke(cause)) => return self.broke(clock, answering.head(), cause),
            }
        }
    }

    /// A 2xx answer that did not come whole.
    fn broke(&mut self, clock: AttemptClock, head: &ResponseHeader, cause: Cause) -> Attempted {
        self.record(clock, AttemptEnd::Broken, Some(head), Some(cause.as_str()));
        self.saw_broken_head(&head.headers);
        Attempted::Ended {
            ending: Ending::Broken,
            otherwise: Code::UpstreamBroken.into(),
        }
    }

    /// Keeps the price in the head of a broken answer.
    fn saw_broken_head(&mut self, headers: &HeaderMap) {
        let receipt = || self.sending.broken_receipt(headers);
        self.retries.saw_broken_head(receipt);
    }

    async fn whole(
        &mut self,
        clock: AttemptClock,
        answering: Box<Answering>,
        body: Bytes,
    ) -> Attempted {
        self.record(clock, AttemptEnd::Answered, Some(answering.head()), None);
        let head = answering.release(&self.sending.settings.connections).await;
        Attempted::Final(DispatchOutcome::Whole { head, body })
    }

    /// An answer that is not a 2xx. Its head decides what it means; whether its body could be read
    /// decides only whether the connection is used again.
    async fn refused(
        &mut self,
        app: &mut ClientWatch<'_>,
        clock: AttemptClock,
        mut answering: Box<Answering>,
    ) -> Attempted {
        let head = answering.head().clone();
        let status = head.status;
        let bodyless = self.sending.is_for_head() || status == StatusCode::NOT_MODIFIED;
        let declines = declines_retry(&head.headers);
        let is_followed_up = self.retries.is_followed_up(status, declines);
        let body = if answering.is_unfit() {
            Ok(None)
        } else if bodyless {
            Ok(Some(Bytes::new()))
        } else if is_followed_up {
            app.attend(pin!(answering.read_small_body())).await
        } else {
            app.attend(pin!(answering.read_body(WHOLE_BYTES_MAX))).await
        };
        let is_json = |body: &Bytes| serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok();
        let wall_ms = self.sending.gateway.clock.wall_ms();
        let ending = |body: Option<&Bytes>| {
            Ending::Refused(ErrorHead {
                status,
                has_json: body.is_some_and(is_json),
                declines,
                asked: asked_wait(&head.headers, wall_ms),
            })
        };
        let body = match body {
            Ok(body) => body,
            Err(Cut) => {
                let end = self.retries.end_of(&ending(None));
                self.record(clock, end, Some(&head), Some("shutdown"));
                return Attempted::Final(DispatchOutcome::Cut);
            }
        };
        self.times.bytes_came(self.sending.now());
        self.place.heard_refusal(&head, body.as_ref(), wall_ms);
        let ending = ending(body.as_ref());
        let end = self.retries.end_of(&ending);
        self.record(clock, end, Some(&head), None);
        if body.is_some() {
            answering.release(&self.sending.settings.connections).await;
        } else {
            answering.abandon().await;
        }
        // Last: the time that it takes is bursar's own, and the service's connection is free meanwhile.
        if let Some(said) = &body {
            // An answer without words does not take away what the one before it said.
            let quoted = self.sending.quoted(app, said).await;
            self.service_detail = quoted.or_else(|| self.service_detail.take());
        }
        let otherwise = match body {
            Some(body) => DispatchOutcome::Whole { head, body },
            None => Code::UpstreamBroken.into(),
        };
        Attempted::Ended { ending, otherwise }
    }

    fn record(
        &mut self,
        clock: AttemptClock,
        end: AttemptEnd,
        head: Option<&ResponseHeader>,
        cause: Option<&'static str>,
    ) {
        let took = self.sending.since(clock.began);
        self.times.service_took(took);
        self.note(clock, took, end, head, cause);
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
        let Sending { gateway, route, .. } = &self.sending;
        let result = attempt_result(end, status);
        gateway.metrics.attempt(route.operation, result);
        self.retries.record(Attempt {
            wait_ms: millis(clock.waited),
            took_ms: millis(took),
            cause: cause.map(str::to_owned),
            receipt_lines: self.sending.receipt_lines(head),
            ..Attempt::new(end, status.map(|status| status.as_u16()))
        });
    }

    /// A flowing answer has ended; its attempt is complete only now. While it flowed, the service's
    /// time was counted read by read, so that writing to the app counts as our own.
    pub fn record_flow(&mut self, flowing: &Flowing, end: AttemptEnd, cause: Option<&'static str>) {
        let took = self.sending.since(flowing.attempt.began);
        let head = Some(flowing.answering.head());
        self.note(flowing.attempt, took, end, head, cause);
    }

    /// Waits between attempts.
    async fn rest(
        &mut self,
        app: &mut ClientWatch<'_>,
        wait: Duration,
    ) -> Result<AttemptEvent, Cut> {
        let began = self.sending.now();
        let nap = pin!(tokio::time::sleep(wait));
        let rested = tokio::select! {
            biased;
            halt = self.sending.halted() => AttemptEvent::Halted(halt),
            rested = app.attend(nap) => {
                rested?;
                AttemptEvent::Waited
            }
        };
        let took = self.sending.since(began);
        self.times.rested(took);
        Ok(rested)
    }

    /// Waits for a place for the next attempt.
    async fn queue(
        &mut self,
        app: &mut ClientWatch<'_>,
        while_here: bool,
    ) -> Result<AttemptEvent, Cut> {
        let began = self.sending.now();
        let enter = pin!(self.sending.gateway.queue.enter(
            &self.sending.app,
            Priority::Again,
            self.retries.deadline()
        ));
        let entered = async {
            if while_here {
                app.attend_while_here(enter).await
            } else {
                app.attend(enter).await.map(Some)
            }
        };
        let entered = tokio::select! {
            biased;
            halt = self.sending.halted() => Err(halt),
            entered = entered => Ok(entered?),
        };
        let took = self.sending.since(began);
        self.times.queued(took);
        Ok(match entered {
            Ok(Some(Ok((slot, _)))) => {
                self.place.take_over(slot);
                AttemptEvent::Placed
            }
            Ok(Some(Err(Unserved::Closed))) => AttemptEvent::QueueClosed,
            Ok(Some(Err(_))) => AttemptEvent::NoPlace,
            Ok(None) => AttemptEvent::AppLeft,
            Err(halt) => AttemptEvent::Halted(halt),
        })
    }
}

impl From<Code> for DispatchOutcome {
    fn from(code: Code) -> Self {
        Self::Nothing {
            refusal: code.into(),
        }
    }
}
