//! The attempts of one request, until there is an answer for the app. When the next one is made is decided
//! in [`crate::proxy::purchase::attempts`]; this carries it out.
//!
//! Promise: every attempt repeats the same head and the same bytes; a running attempt is cut by bursar's
//! stop alone, for that would burn a paid answer; a wait ends at once where the app may not spend any more.

pub mod place;
pub mod words;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method, StatusCode};
use pingora::http::ResponseHeader;
use tokio::sync::{AcquireError, OwnedSemaphorePermit};

use self::place::UpstreamPlace;
use self::words::{attempt_result, refusal_of, so_far};
use super::client_watch::{ClientWatch, Cut};
use super::gateway::Gateway;
use super::limits::guard::SpendGuard;
use super::limits::queue::{Priority, Unserved};
use super::limits::waiters::WaiterGuard;
use super::purchase::attempts::{AttemptAction, AttemptEvent, AttemptView, RetryLoop};
use super::purchase::backoff::{asked_wait, declines_retry, random_share};
use super::purchase::drain::UnreadSince;
use super::purchase::lost::Cause;
use super::purchase::retry::{Ending, ErrorHead, Repeat, Retries};
use super::quoted::{self, Private};
use super::refuse::{Code, Refusal};
use super::settings::Settings;
use super::upstream::exchange::{self, Answering, BodyBroke, Failed, WHOLE_BYTES_MAX};
use super::upstream::heads;
use super::upstream::outgoing::Outgoing;
use crate::clock::millis;
use crate::ledger::entry::{Attempt, AttemptEnd};
use crate::protocol::receipt::Receipt;
use crate::protocol::receipt::lines::ReceiptLines;
use crate::protocol::routes::{AnswerKind, Route};

/// The attempts of one logical request.
pub struct Dispatch<'a> {
    pub gateway: &'a Arc<Gateway>,
    pub settings: Arc<Settings>,
    pub route: &'a Route,
    pub outgoing: &'a Outgoing,
    pub retries: Retries,
    /// Waits between attempts, together.
    pub waited: Duration,
    /// Time in which the service had the word.
    pub service_time: Duration,
    /// When the first byte of the final answer came, on the monotonic clock.
    pub first_byte_at: Option<Duration>,
    pub place: UpstreamPlace,
    /// Waits for places, together.
    pub queued: Duration,
    /// Memory for an answer that is read whole and is large, until it is given.
    pub answer_room: Option<OwnedSemaphorePermit>,
    pub app: Arc<str>,
    /// `None` for what costs nothing.
    pub guard: Option<SpendGuard>,
    /// What the last failure to connect was, in words, for the log.
    pub unreached: Option<String>,
    /// What the service said when it last refused an attempt.
    pub service_detail: Option<String>,
    /// The table allowed another attempt, and none was left.
    pub exhausted: bool,
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

impl Dispatch<'_> {
    /// Runs attempts until there is an answer.
    pub async fn run(&mut self, app: &mut ClientWatch<'_>) -> DispatchOutcome {
        let purchase = app.purchase.as_ref();
        let may_begin = purchase.is_none_or(|purchase| purchase.may_begin(&*self.gateway.clock));
        let (mut attempts, mut action) = RetryLoop::begin(self.route.is_inference(), may_begin);
        let mut last = DispatchOutcome::from(Code::Internal);
        // Between two attempts it is one of the requests that wait.
        let mut waiter = None;
        loop {
            let event = match action {
                AttemptAction::Send(repeat) => {
                    waiter = None;
                    if let Some(repeat) = &repeat {
                        self.gateway.metrics.retry(&self.app, repeat.reason);
                    }
                    match self.attempt(app, repeat.unwrap_or_default()).await {
                        Attempted::Final(reached) => return reached,
                        Attempted::Ended { ending, otherwise } => {
                            last = otherwise;
                            AttemptEvent::Ended(ending)
                        }
                    }
                }
                AttemptAction::Wait { wait, beyond } => match self.waiter(beyond) {
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
                AttemptAction::Ask => self.leave(app),
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
        let clock = &*self.gateway.clock;
        let purchase = app.purchase.as_ref();
        AttemptView {
            now: clock.monotonic(),
            share: random_share(),
            may_repeat: purchase.is_none_or(|purchase| purchase.may_repeat(clock)),
            wanted: app.wanted(),
        }
    }

    fn waiter(&self, beyond: bool) -> Result<WaiterGuard, Refusal> {
        if beyond {
            return Ok(self.gateway.waiters.enter_again(&self.app));
        }
        self.gateway.among_waiters(&self.app)
    }

    async fn attempt(&mut self, app: &mut ClientWatch<'_>, repeat: Repeat) -> Attempted {
        let gateway = self.gateway;
        let clock = AttemptClock {
            waited: repeat.wait,
            began: gateway.clock.monotonic(),
        };
        self.first_byte_at = None;
        self.unreached = None;
        self.answer_room = None;
        let settings = Arc::clone(&app.settings);
        self.place.sends();
        let attempt = pin!(async {
            let fresh_connection = self.outgoing.fresh_connection || repeat.fresh_connection;
            let (connections, peers) = (&settings.connections, &settings.peers);
            let attempt = exchange::attempt(connections, peers, self.outgoing, fresh_connection);
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
                let traffic = &self.gateway.metrics.traffic;
                traffic.answered(answering.on_kept_connection);
                if answering.head.status.is_success() {
                    self.success(app, clock, answering).await
                } else {
                    self.refused(app, clock, answering).await
                }
            }
        }
    }

    fn lost(&mut self, clock: AttemptClock, failed: Failed) -> Attempted {
        let settings = Arc::clone(&self.settings);
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
        let event_stream = heads::is_event_stream(&answering.head.headers);
        if self.is_for_head() || answering.head.status == StatusCode::NO_CONTENT {
            return self.whole(app, clock, answering, Bytes::new()).await;
        }
        // A stream that ends with `data: [DONE]` has not ended before its first byte.
        let wants_bytes =
            event_stream && self.route.is_metered() && self.route.answer != AnswerKind::NamedEvents;
        if answering.is_unfit {
            return self.broke(clock, &answering.head, Cause::Protocol);
        }
        let mut body = BytesMut::new();
        let mut unread_since = UnreadSince::default();
        let limit = self.outgoing.read_timeout;
        loop {
            let wants_room = body.len() > WHOLE_BYTES_MAX && self.answer_room.is_none();
            let room = wants_room.then(|| self.room_for(&answering.head));
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
                    let head = Some(&answering.head);
                    self.record(clock, AttemptEnd::Broken, head, Some("shutdown"));
                    self.saw_broken_head(&answering.head.headers);
                    return Attempted::Final(DispatchOutcome::Cut);
                }
            };
            let now = self.gateway.clock.monotonic();
            let chunk = match chunk {
                Ok(None) if wants_bytes => Err(BodyBroke(Cause::Closed)),
                Ok(Some(_)) if unread_since.for_longer_than(limit, app.is_alone(), now) => {
                    Err(BodyBroke(Cause::Timeout))
                }
                chunk => chunk,
            };
            match chunk {
                Ok(Some(chunk)) => {
                    self.first_byte_at
                        .get_or_insert(self.gateway.clock.monotonic());
                    body.extend_from_slice(&chunk);
                    let flows = event_stream || body.len() > self.outgoing.whole_bytes_max;
                    if flows && !body.is_empty() {
                        self.service_time = self.service_time.saturating_add(self.since(clock));
                        return Attempted::Final(DispatchOutcome::Flowing(Box::new(Flowing {
                            answering,
                            first: body.freeze(),
                            event_stream,
                            attempt: clock,
                        })));
                    }
                }
                Ok(None) => return self.whole(app, clock, answering, body.freeze()).await,
                Err(BodyBroke(cause)) => return self.broke(clock, &answering.head, cause),
            }
        }
    }

    /// Memory for a large answer that is read whole.
    fn room_for(
        &self,
        head: &ResponseHeader,
    ) -> impl Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + use<> {
        let Outgoing {
            whole_bytes_max,
            whole_copies,
            ..
        } = self.outgoing;
        let announced = heads::content_length(&head.headers);
        let announced = announced.and_then(|length| usize::try_from(length).ok());
        let mib = announced
            .map_or(*whole_bytes_max, |length| length.min(*whole_bytes_max))
            .saturating_mul(*whole_copies)
            .div_ceil(1024 * 1024);
        self.gateway.room_for(mib)
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
        let Settings { names, key, .. } = &*self.settings;
        let receipt = || Receipt::from_broken_head(names, &heads::without_key(headers, key));
        self.retries.saw_broken_head(receipt);
    }

    async fn whole(
        &mut self,
        app: &ClientWatch<'_>,
        clock: AttemptClock,
        answering: Box<Answering>,
        body: Bytes,
    ) -> Attempted {
        self.record(clock, AttemptEnd::Answered, Some(&answering.head), None);
        let head = answering.release(&app.settings.connections).await;
        Attempted::Final(DispatchOutcome::Whole { head, body })
    }

    /// The service is asked for a head alone; not so for one whose app is, where something is made of the body.
    fn is_for_head(&self) -> bool {
        self.outgoing.header.method == Method::HEAD
    }

    /// An answer that is not a 2xx. Its head decides what it means; whether its body could be read
    /// decides only whether the connection is used again.
    async fn refused(
        &mut self,
        app: &mut ClientWatch<'_>,
        clock: AttemptClock,
        mut answering: Box<Answering>,
    ) -> Attempted {
        let head = answering.head.clone();
        let status = head.status;
        let bodyless = self.is_for_head() || status == StatusCode::NOT_MODIFIED;
        let declines = declines_retry(&head.headers);
        let is_followed_up = self.retries.is_followed_up(status, declines);
        let body = if answering.is_unfit {
            Ok(None)
        } else if bodyless {
            Ok(Some(Bytes::new()))
        } else if is_followed_up {
            app.attend(pin!(answering.read_small_body())).await
        } else {
            app.attend(pin!(answering.read_body(WHOLE_BYTES_MAX))).await
        };
        let is_json = |body: &Bytes| serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok();
        let wall_ms = self.gateway.clock.wall_ms();
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
        self.first_byte_at
            .get_or_insert(self.gateway.clock.monotonic());
        self.place.heard_refusal(&head, body.as_ref(), wall_ms);
        let ending = ending(body.as_ref());
        let end = self.retries.end_of(&ending);
        self.record(clock, end, Some(&head), None);
        if body.is_some() {
            answering.release(&app.settings.connections).await;
        } else {
            answering.abandon().await;
        }
        // Last: the time that it takes is bursar's own, and the service's connection is free meanwhile.
        if let Some(said) = &body {
            self.quote(app, said).await;
        }
        let otherwise = match body {
            Some(body) => DispatchOutcome::Whole { head, body },
            None => Code::UpstreamBroken.into(),
        };
        Attempted::Ended { ending, otherwise }
    }

    /// Keeps what the service says of a request that it refuses.
    async fn quote(&mut self, app: &ClientWatch<'_>, said: &Bytes) {
        if !self.settings.config.log.service_detail {
            return;
        }
        let Outgoing { header, body, .. } = self.outgoing;
        let private = Private::of(header, body, &app.downstream.head().headers);
        let quoted = quoted::service_detail(&self.settings.key, said, private).await;
        // An answer without words does not take away what the one before it said.
        self.service_detail = quoted.or_else(|| self.service_detail.take());
    }

    fn record(
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

    fn since(&self, clock: AttemptClock) -> Duration {
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
        self.retries.record(Attempt {
            wait_ms: millis(clock.waited),
            took_ms: millis(took),
            cause: cause.map(str::to_owned),
            receipt_lines: self.receipt_lines(head),
            ..Attempt::new(end, status.map(|status| status.as_u16()))
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
        let Settings { names, key, .. } = &*self.settings;
        ReceiptLines::of_headers(names, &heads::without_key(&head.headers, key)).into_vec()
    }

    /// Waits between attempts.
    async fn rest(
        &mut self,
        app: &mut ClientWatch<'_>,
        wait: Duration,
    ) -> Result<AttemptEvent, Cut> {
        let began = self.gateway.clock.monotonic();
        let nap = pin!(tokio::time::sleep(wait));
        let rested = tokio::select! {
            biased;
            halt = self.halted() => AttemptEvent::Halted(halt),
            rested = app.attend(nap) => {
                rested?;
                AttemptEvent::Waited
            }
        };
        let took = self.gateway.clock.monotonic().saturating_sub(began);
        self.waited = self.waited.saturating_add(took);
        Ok(rested)
    }

    /// Waits for a place for the next attempt.
    async fn queue(
        &mut self,
        app: &mut ClientWatch<'_>,
        while_here: bool,
    ) -> Result<AttemptEvent, Cut> {
        let began = self.gateway.clock.monotonic();
        let enter = pin!(self.gateway.queue.enter(
            &self.app,
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
            halt = self.halted() => Err(halt),
            entered = entered => Ok(entered?),
        };
        let took = self.gateway.clock.monotonic().saturating_sub(began);
        self.queued = self.queued.saturating_add(took);
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

    /// Resolves when an operator freezes the app, or its run ends; pends for ever for what costs nothing.
    async fn halted(&self) -> Refusal {
        match &self.guard {
            Some(guard) => guard.halted().await,
            None => std::future::pending().await,
        }
    }

    /// What forbids the next attempt.
    fn leave(&self, app: &ClientWatch<'_>) -> AttemptEvent {
        let guard = self.guard.as_ref();
        let limit = match &app.purchase {
            Some(purchase) => {
                let over = self.gateway.caps.over(purchase.entry);
                over.map(|over| Refusal::from(&over))
            }
            None => guard.and_then(SpendGuard::holds),
        };
        let halt = guard.and_then(SpendGuard::halts);
        AttemptEvent::Leave { halt, limit }
    }
}

impl From<Code> for DispatchOutcome {
    fn from(code: Code) -> Self {
        Self::Nothing {
            refusal: code.into(),
        }
    }
}
