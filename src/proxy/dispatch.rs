//! The retry loop: attempts until there is an answer for the app, by the route's row of the table,
//! within the app's patience.
//!
//! Promise: every attempt repeats the same head and the same bytes; nothing is repeated that the
//! table does not allow; a wait that does not fit into what is left of the deadline is not begun,
//! and a running attempt is never cut, for that would burn a paid answer.

mod record;
mod stop;
mod turn;
pub mod words;

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use pingora::http::ResponseHeader;

use self::words::refusal_of;
use super::attend::{Alone, Attendance, Cut};
use super::purchase::{backoff, retry};
use super::refuse::{Code, Refusal};
use super::upstream::exchange::WHOLE_BYTES_MAX;
use crate::ledger::entry::{Attempt, AttemptEnd};
use crate::protocol::routes::{AnswerKind, Route};
use crate::proxy::gateway::Gateway;
use crate::proxy::limits::breaker::Pass;
use crate::proxy::limits::guard::SpendGuard;
use crate::proxy::limits::queue::Slot;
use crate::proxy::purchase::age;
use crate::proxy::purchase::backoff::{declines_retry, random_share};
use crate::proxy::purchase::retry::{Bounds, Next, after_break, after_loss, after_refusal};
use crate::proxy::settings::Settings;
use crate::proxy::upstream::exchange::{Answering, BodyBroke, Cause, Failed, Lost, Outgoing};
use crate::proxy::upstream::{exchange, heads};

/// The attempts of one logical request.
pub struct Dispatch<'a> {
    pub gateway: &'a Arc<Gateway>,
    pub settings: Arc<Settings>,
    pub route: &'a Route,
    pub outgoing: &'a Outgoing,
    pub bounds: Bounds,
    pub attempts: Vec<Attempt>,
    /// Waits between attempts, together.
    pub waited: Duration,
    /// Time in which the service had the word.
    pub service_time: Duration,
    /// When the first byte of the final answer came, on the monotonic clock.
    pub first_byte_at: Option<Duration>,
    /// The attempt's place at the service; `None` between attempts, and where none is needed. That of
    /// the last one is given back with its price.
    pub slot: Option<Slot>,
    /// Waits for places, together.
    pub queued: Duration,
    pub pass: Pass,
    pub app: Arc<str>,
    /// `None` for what costs nothing.
    pub guard: Option<SpendGuard>,
    /// What the last failure to connect was, in words, for the log.
    pub unreached: Option<String>,
}

/// Where the attempts ended.
pub enum Reached {
    /// The service's answer, complete.
    Whole { head: ResponseHeader, body: Bytes },
    /// A 2xx answer whose rest is still to come: a stream, or more than 1 MiB.
    Flowing(Box<Flowing>),
    /// No answer.
    Nothing { refusal: Refusal },
    /// bursar may not send the next attempt, which the table would have allowed.
    Stopped { refusal: Refusal },
    /// bursar's own shutdown ended it.
    Cut,
}

/// An answer that flows.
pub struct Flowing {
    pub answering: Answering,
    /// What was read before it was clear that it flows; never empty.
    pub first: Bytes,
    pub event_stream: bool,
    attempt: AttemptClock,
}

/// What one attempt came to.
enum Attempted {
    Final(Reached),
    /// The table may allow another attempt; if not, this is the end.
    Retry {
        /// Wait that the service asked for.
        asked: Option<Duration>,
        reason: &'static str,
        otherwise: Reached,
        at_once: bool,
    },
}

/// How a wait for the next attempt ended.
enum Rested {
    Goes,
    /// No place came in time, or nobody waits for the answer any more.
    NoMore,
    /// bursar may not send it.
    Stopped(Refusal),
}

/// When an attempt began, and how long it had been waited for.
#[derive(Clone, Copy)]
struct AttemptClock {
    waited: Duration,
    began: Duration,
}

// === impl Dispatch ===

impl Dispatch<'_> {
    /// Runs attempts until there is an answer. The second value tells that the table would have
    /// allowed another attempt, had there been any left.
    pub async fn run(&mut self, app: &mut Attendance<'_>) -> (Reached, bool) {
        let (reached, exhausted) = self.run_attempts(app).await;
        if let Reached::Nothing { refusal } = &reached
            && let Some(cause) = &self.unreached
        {
            let (code, attempts) = (refusal.code, self.attempts.len());
            tracing::warn!(code = code.as_str(), attempts, %cause, "the service was not reached");
        }
        (reached, exhausted)
    }

    async fn run_attempts(&mut self, app: &mut Attendance<'_>) -> (Reached, bool) {
        let mut waited = Duration::ZERO;
        let mut fresh_connection = self.outgoing.fresh_connection;
        let live = app.live.as_ref();
        if live.is_some_and(|live| !live.may_begin(&*self.gateway.clock)) {
            // What the key stands for may have run, and may not be asked for under it any more.
            let refusal = Code::OutcomeUnknown.into();
            return (Reached::Nothing { refusal }, false);
        }
        loop {
            let attempted = self.attempt(app, waited, fresh_connection).await;
            let (asked, reason, otherwise, at_once) = match attempted {
                Attempted::Final(reached) => return (reached, false),
                Attempted::Retry {
                    asked,
                    reason,
                    otherwise,
                    at_once,
                } => (asked, reason, otherwise, at_once),
            };
            let wait = match self.bounds.next(
                self.attempts.len(),
                asked,
                at_once,
                random_share(),
                self.gateway.clock.monotonic(),
                self.may_repeat(app),
            ) {
                Next::Repeat { wait } => wait,
                Next::Exhausted => return (otherwise, true),
                Next::Stop => return (otherwise, false),
            };
            // The attempt is over at the service, too. The place of the last one is given back with its
            // price.
            self.slot = None;
            match self.rest(app, wait).await {
                // Nobody waits for the answer, so nothing more is spent on it.
                Ok(Rested::NoMore) => return (otherwise, false),
                Ok(Rested::Stopped(refusal)) => return (Reached::Stopped { refusal }, false),
                Ok(Rested::Goes) => {}
                Err(Cut) => return (Reached::Cut, false),
            }
            // The machine may have slept through the wait.
            if !self.may_repeat(app) {
                return (otherwise, false);
            }
            // The pool may hold more connections that the service has closed.
            fresh_connection = self.outgoing.fresh_connection || at_once;
            waited = wait;
            self.waited = self.waited.saturating_add(wait);
            self.gateway.metrics.retry(reason);
        }
    }

    /// Rule I6: a key is not sent again once its age is in doubt.
    fn may_repeat(&self, app: &Attendance<'_>) -> bool {
        let clock = &*self.gateway.clock;
        app.live
            .as_ref()
            .filter(|live| live.key.is_some())
            .is_none_or(|live| age::may_repeat(&live.first, clock))
    }

    async fn attempt(
        &mut self,
        app: &mut Attendance<'_>,
        waited: Duration,
        fresh_connection: bool,
    ) -> Attempted {
        let gateway = self.gateway;
        let clock = AttemptClock {
            waited,
            began: gateway.clock.monotonic(),
        };
        self.first_byte_at = None;
        self.unreached = None;
        let settings = app.settings();
        self.sends();
        let answering = app
            .attend(exchange::attempt(
                &settings.connector,
                &settings.peers,
                self.outgoing,
                fresh_connection,
            ))
            .await;
        self.heard(&answering);
        match answering {
            Err(Cut) => {
                // The request may be on its way: what it cost is not known.
                self.record(clock, AttemptEnd::NoHead, None, Some("shutdown"));
                Attempted::Final(Reached::Cut)
            }
            Ok(Err(failed)) => self.lost(clock, failed),
            Ok(Ok(answering)) if answering.head.status.is_success() => {
                self.success(app, clock, answering).await
            }
            Ok(Ok(answering)) => self.refused(app, clock, answering).await,
        }
    }

    fn lost(&mut self, clock: AttemptClock, failed: Failed) -> Attempted {
        let Failed { lost, words } = failed;
        self.unreached = words;
        let end = retry::end_of_loss(lost);
        self.record(clock, end, None, Some(lost.cause().as_str()));
        let base_url = &self.settings.config.upstream.base_url;
        let otherwise = Reached::Nothing {
            refusal: refusal_of(lost, &self.attempts, self.route.keyed, base_url),
        };
        match after_loss(lost, self.route.retry) {
            Some(reason) => Attempted::Retry {
                asked: None,
                reason,
                otherwise,
                at_once: lost == Lost::StaleConnection,
            },
            None => Attempted::Final(otherwise),
        }
    }

    async fn success(
        &mut self,
        app: &mut Attendance<'_>,
        clock: AttemptClock,
        mut answering: Answering,
    ) -> Attempted {
        let event_stream = heads::is_event_stream(&answering.head.headers);
        if app.is_head_request() || answering.head.status == StatusCode::NO_CONTENT {
            return self.whole(app, clock, answering, Bytes::new()).await;
        }
        // A stream that ends with `data: [DONE]` has not ended before its first byte.
        let wants_bytes = event_stream
            && self.route.is_metered()
            && self.route.answer == AnswerKind::JsonOrStream;
        if answering.is_unfit {
            return self.broke(app, clock, &answering.head, Cause::Protocol);
        }
        let mut body = BytesMut::new();
        let mut alone = Alone::default();
        loop {
            let chunk = match app.attend(answering.next_chunk()).await {
                Ok(chunk) => chunk,
                Err(Cut) => {
                    let head = Some(&answering.head);
                    self.record(clock, AttemptEnd::Broken, head, Some("shutdown"));
                    app.saw_broken_head(&answering.head.headers);
                    return Attempted::Final(Reached::Cut);
                }
            };
            let chunk = match chunk {
                Ok(None) if wants_bytes => Err(BodyBroke(Cause::Closed)),
                Ok(Some(_)) if alone.for_longer_than(self.outgoing.read_timeout, app) => {
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
                        return Attempted::Final(Reached::Flowing(Box::new(Flowing {
                            answering,
                            first: body.freeze(),
                            event_stream,
                            attempt: clock,
                        })));
                    }
                }
                Ok(None) => return self.whole(app, clock, answering, body.freeze()).await,
                Err(BodyBroke(cause)) => return self.broke(app, clock, &answering.head, cause),
            }
        }
    }

    /// A 2xx answer that did not come whole.
    fn broke(
        &mut self,
        app: &mut Attendance<'_>,
        clock: AttemptClock,
        head: &ResponseHeader,
        cause: Cause,
    ) -> Attempted {
        self.record(clock, AttemptEnd::Broken, Some(head), Some(cause.as_str()));
        app.saw_broken_head(&head.headers);
        let otherwise = Reached::Nothing {
            refusal: Code::UpstreamBroken.into(),
        };
        match after_break(self.route.retry) {
            Some(reason) => Attempted::Retry {
                asked: None,
                reason,
                otherwise,
                at_once: false,
            },
            None => Attempted::Final(otherwise),
        }
    }

    async fn whole(
        &mut self,
        app: &Attendance<'_>,
        clock: AttemptClock,
        answering: Answering,
        body: Bytes,
    ) -> Attempted {
        let head = answering.head.clone();
        self.record(clock, AttemptEnd::Answered, Some(&head), None);
        answering.release(&app.settings().connector).await;
        Attempted::Final(Reached::Whole { head, body })
    }

    /// An answer that is not a 2xx. Its head decides what it means; whether its body could be read
    /// decides only whether the connection is used again.
    async fn refused(
        &mut self,
        app: &mut Attendance<'_>,
        clock: AttemptClock,
        mut answering: Answering,
    ) -> Attempted {
        let head = answering.head.clone();
        let status = head.status;
        let bodyless = app.is_head_request() || status == StatusCode::NOT_MODIFIED;
        let declined = declines_retry(&head.headers);
        let reason = after_refusal(status, self.route.retry).filter(|_| !declined);
        // The attempts before this one are the retries done when it is counted too.
        let is_repeated = reason.is_some() && self.attempts.len() < self.bounds.backoff.retries_max;
        let body = if answering.is_unfit {
            Ok(None)
        } else if bodyless {
            Ok(Some(Bytes::new()))
        } else if is_repeated {
            app.attend(answering.read_small_body()).await
        } else {
            app.attend(answering.read_body(WHOLE_BYTES_MAX)).await
        };
        let body = match body {
            Ok(body) => body,
            Err(Cut) => {
                let end = self.end_of_refusal(status, None);
                self.record(clock, end, Some(&head), Some("shutdown"));
                return Attempted::Final(Reached::Cut);
            }
        };
        self.first_byte_at
            .get_or_insert(self.gateway.clock.monotonic());
        self.heard_busy(&head, body.as_ref());
        let end = self.end_of_refusal(status, body.as_ref());
        self.record(clock, end, Some(&head), None);
        if body.is_some() {
            answering.release(&app.settings().connector).await;
        } else {
            answering.abandon().await;
        }
        let otherwise = match body {
            Some(body) => Reached::Whole {
                head: head.clone(),
                body,
            },
            None => Reached::Nothing {
                refusal: Code::UpstreamBroken.into(),
            },
        };
        let may_have_run = end == AttemptEnd::Gateway;
        match reason.filter(|_| !may_have_run) {
            Some(reason) => Attempted::Retry {
                asked: backoff::asked_wait(&head.headers, self.gateway.clock.wall_ms()),
                reason,
                otherwise,
                at_once: false,
            },
            None => Attempted::Final(otherwise),
        }
    }

    fn end_of_refusal(&self, status: StatusCode, body: Option<&Bytes>) -> AttemptEnd {
        let is_json = |body: &Bytes| serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok();
        retry::end_of_refusal(self.route, status, body.is_some_and(is_json))
    }
}

/// Whether the status is one that SDKs retry by themselves.
pub fn is_transient(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 409 | 429) || status.is_server_error()
}
