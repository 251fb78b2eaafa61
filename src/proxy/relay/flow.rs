//! An answer that flows: a stream, chunk by chunk as it arrives, or a body of more than 1 MiB.
//!
//! What is written, kept, read on, settled as and broken off with is decided in
//! [`crate::proxy::purchase::answer`]; this carries it out.
//!
//! Promise: each action is carried out as it is handed out, and its event says how that went; a write or
//! a read that waits is cut by bursar's stop, by a request that waits for the place of an app that stalls,
//! and by nothing else; an app that leaves is noticed also while the service is silent.

mod content;
mod incoming;
mod keep_alive;
mod redactor;
mod stall;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use pingora::http::ResponseHeader;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use self::content::Content;
use self::incoming::Incoming;
use self::keep_alive::{KeepAlive, attend_with_comments};
use self::stall::wanted_by_others;
use super::whole::give_refusal;
use super::{Answered, Relay};
use crate::config::OnDisconnect;
use crate::ledger::entry::{AttemptEnd, Stage};
use crate::protocol::routes::{AnswerKind, ReceiptFrom};
use crate::protocol::sse::StreamKind;
use crate::protocol::translate::responses::live::HEARD_BYTES_MAX;
use crate::proxy::client_watch::Cut;
use crate::proxy::dispatch::Flowing;
use crate::proxy::limits::queue::Drained;
use crate::proxy::purchase::answer::AnswerFlow;
use crate::proxy::purchase::client::{AppProbe, Presence};
use crate::proxy::purchase::event::{
    Action, AnswerEnd, AnswerForm, AppView, Event, Leave, Loss, Read, Terms, Then, Wait,
};
use crate::proxy::refuse::{Code, Refusal};
use crate::proxy::settle::Gathered;
use crate::proxy::upstream::exchange::{Answering, BodyBroke, WHOLE_BYTES_MAX};
use crate::proxy::upstream::heads;

/// Memory for a large answer that is translated while it comes: seven times what is kept of it, as of one that is
/// translated whole.
const LIVE_MIB: usize = 7 * HEARD_BYTES_MAX / (1024 * 1024);

/// One answer that flows, and what it holds.
struct Flow<'r, 'a> {
    relay: &'r mut Relay<'a>,
    /// Until the service is left.
    flowing: Option<Box<Flowing>>,
    incoming: Incoming,
    content: Content,
    gathered: Gathered,
    held: HeldForDrain,
    /// Memory for a large answer that is translated while it comes.
    room: Option<OwnedSemaphorePermit>,
    keep_alive: KeepAlive,
    status: StatusCode,
    is_stream: bool,
    /// It was settled with no app there to read it.
    is_drained: bool,
}

/// What reading without a reader holds of bursar and of the service.
#[derive(Default)]
struct HeldForDrain {
    permit: Option<OwnedSemaphorePermit>,
    /// Its place at the service may be asked for by a request that waits.
    place: Option<Drained>,
}

/// What came of waiting for the service.
enum Moved {
    Read(Result<Option<Bytes>, BodyBroke>),
    /// The reader has changed.
    Changed,
    TimeUp,
    Stopped,
}

/// Gives a flowing answer to whichever app is there for it. Returns whether its connection can be kept.
pub(super) async fn flow(relay: &mut Relay<'_>, flowing: Box<Flowing>) -> (Answered, bool) {
    let upstream_head = flowing.answering.head();
    let status = upstream_head.status;
    let is_stream = flowing.event_stream;
    let key = &relay.led.settings.key;
    let head = heads::answer_head(upstream_head, !is_stream, key)
        .and_then(|mut head| relay.mark(&mut head).map(|()| head));
    let Ok(head) = head else {
        let answered = Answered {
            status: status.as_u16(),
            code: Some(Code::Internal),
            stream: is_stream,
        };
        return (answered, false);
    };
    let is_coded = heads::is_encoded(&upstream_head.headers);
    let mut gathered = Gathered::from_head(&relay.led.settings, &upstream_head.headers);
    if is_stream && is_coded {
        // Its comments cannot be read.
        gathered.forget_early_zero();
    }
    let route = &relay.led.admitted.route;
    let kind = match route.answer {
        AnswerKind::NamedEvents => StreamKind::NamedEvents,
        AnswerKind::JsonOrStream | AnswerKind::Json => StreamKind::Data,
    };
    let is_metered = relay.entry.is_some();
    let (content, form) = match (is_stream, is_coded) {
        (false, _) => (Content::document(key.clone()), AnswerForm::Document),
        (true, true) => (Content::coded(key.clone()), AnswerForm::Stream),
        (true, false) => {
            let has_comments = route.receipt == ReceiptFrom::HeadersAndComments;
            match relay.live() {
                Some(live) => (
                    Content::live(key.clone(), has_comments, live),
                    AnswerForm::Translated,
                ),
                None => (
                    Content::events(key.clone(), kind, has_comments, relay.led.shows_cost),
                    match kind {
                        StreamKind::Data if is_metered => AnswerForm::Chat,
                        _ => AnswerForm::Stream,
                    },
                ),
            }
        }
    };
    let config = &relay.led.settings.config;
    let on_disconnect = relay.led.declared.on_disconnect;
    let terms = Terms {
        form,
        is_metered,
        is_cancelled: on_disconnect.unwrap_or(config.streams.on_disconnect) == OnDisconnect::Cancel,
        stream_time: config.streams.drain_timeout,
        document_time: config.upstream.read_timeout,
    };
    let keepalive = config.streams.keepalive;
    let answer = AnswerFlow::flowing(terms, Arc::new(head), relay.app.purchase().cloned());
    relay.app.reaches(Stage::Streaming);
    relay.app.downstream_mut().keeps(&relay.led.declared.name);
    let flow = Flow {
        relay,
        flowing: Some(flowing),
        incoming: Incoming::default(),
        content,
        gathered,
        held: HeldForDrain::default(),
        room: None,
        // Nothing is known of where events end in a coding.
        keep_alive: KeepAlive::after(keepalive.filter(|_| is_stream && !is_coded)),
        status,
        is_stream,
        is_drained: false,
    };
    flow.run(answer).await
}

// === impl Flow ===

impl Flow<'_, '_> {
    async fn run(mut self, mut answer: AnswerFlow) -> (Answered, bool) {
        let gateway = self.relay.led.gateway;
        let first = self.flowing.as_ref().map(|flowing| flowing.first.clone());
        let mut event = self.heard(Moved::Read(Ok(first)));
        loop {
            if answer.asks_for_app() {
                self.relay.app.look_closely();
            }
            let action = answer.on(event, &self.app());
            // Behind its outcome the ledger counts on the answer being given.
            let purchase = self.relay.app.purchase();
            let owes = purchase.filter(|_| answer.is_settled()).cloned();
            event = match action {
                Action::Read(wait) => {
                    if answer.is_settled() {
                        self.relay.app.satisfied();
                    } else if !answer.is_drained() {
                        self.held = HeldForDrain::default();
                    }
                    // A settled stream of which bytes are kept still: its app has no end of it.
                    let owes = owes.filter(|_| self.relay.app.downstream().kept_bytes() > 0);
                    let read = pin!(self.read(&answer, wait));
                    gateway.handed_over(owes.as_deref(), read).await
                }
                Action::Drain => self.drain(),
                Action::Write { head, piece } => {
                    let write = pin!(self.write(head, piece, answer.is_settled()));
                    gateway.handed_over(owes.as_deref(), write).await
                }
                Action::Keep(piece) => {
                    let keep = pin!(self.keep(piece, answer.is_settled()));
                    gateway.handed_over(owes.as_deref(), keep).await
                }
                Action::Warn(warning) => self.warn(warning).await,
                Action::Settle { ending, is_drained } => self.settle(ending, is_drained).await,
                Action::FreePlace => {
                    // The service is done, and the app may take its time for the rest.
                    self.relay.dispatch.give_back_place();
                    Event::Did
                }
                Action::Leave(leave) => self.leave(leave).await,
                Action::Finish => {
                    let finish = pin!(self.finish());
                    gateway.handed_over(owes.as_deref(), finish).await
                }
                Action::Break => {
                    self.break_connection().await;
                    Event::Did
                }
                Action::Refuse(code) => {
                    let refusal = Refusal::new(code);
                    let keep = give_refusal(self.relay, &refusal).await;
                    return (self.answered(refusal.status(), Some(code)), keep);
                }
                Action::Done(done) => {
                    return (self.answered(self.status, done.code), done.is_whole);
                }
                // An answer that flows is written piece by piece.
                Action::WriteWhole(_) => Event::Lost(Loss::AppGone),
            };
        }
    }

    fn app(&self) -> AppView {
        let downstream = self.relay.app.downstream();
        let place = self.held.place.as_ref();
        AppView {
            now: self.relay.led.gateway.clock.monotonic(),
            presence: downstream.presence(),
            is_proven: downstream.is_proven(),
            held: downstream.held(),
            is_displaced: place.is_some_and(Drained::is_displaced),
        }
    }

    fn answered(&self, status: StatusCode, code: Option<Code>) -> Answered {
        Answered {
            status: status.as_u16(),
            code,
            stream: self.is_stream,
        }
    }

    /// What the service's move means, with what the redactor held where it is the last.
    fn heard(&mut self, moved: Moved) -> Event {
        let (chunk, last) = match moved {
            Moved::Changed => return Event::Changed,
            Moved::TimeUp => return Event::TimeUp,
            Moved::Stopped => (None, Some(Then::Stopped)),
            Moved::Read(Ok(Some(chunk))) => (Some(chunk), Some(Then::More)),
            Moved::Read(Ok(None)) => (None, None),
            Moved::Read(Err(BodyBroke(cause))) => (None, Some(Then::Broke(cause))),
        };
        let settings = &self.relay.led.settings;
        let passed = self.content.pass(chunk, &mut self.gathered, settings);
        let then = last.unwrap_or_else(|| Then::Ended {
            rest: self.content.rest(),
            is_priced: self.gathered.is_priced(),
        });
        Event::Read(Read {
            bytes: passed.bytes,
            piece: passed.piece,
            end_mark: passed.end_mark,
            then,
        })
    }

    /// The service's next move.
    async fn read(&mut self, answer: &AnswerFlow, wait: Wait) -> Event {
        let clock = &self.relay.led.gateway.clock;
        let before = clock.monotonic();
        let presence = self.relay.app.downstream().presence();
        let moved = match (self.flowing.as_mut(), wait) {
            (None, _) => Moved::Stopped,
            (Some(flowing), Wait::TheEnd(limit)) => {
                let read = read_the_end(&mut self.incoming, &mut flowing.answering);
                let read = timeout(limit, read);
                let moved = read.await.map_or(Moved::TimeUp, Moved::Read);
                return self.heard(moved);
            }
            (Some(flowing), Wait::Long | Wait::WhileFollowed | Wait::AtMost(_)) => {
                let place = self.held.place.as_ref().filter(|_| answer.yields_place());
                let displaced = place.map(Drained::displaced);
                let purchase = self.relay.app.purchase();
                let follower = purchase.filter(|_| wait == Wait::WhileFollowed).cloned();
                let echoed_bytes = self.relay.led.given.echoed_bytes();
                let live_bytes = self.content.live_bytes().saturating_add(echoed_bytes);
                let wants_room = live_bytes > WHOLE_BYTES_MAX && self.room.is_none();
                let room = wants_room.then(|| self.relay.led.gateway.room_for(LIVE_MIB));
                let chunk = pin!(async {
                    // Without memory nothing is read: the service waits with the rest.
                    if let Some(room) = room {
                        self.room = room.await.ok();
                    }
                    tokio::select! {
                        biased;
                        () = of(displaced) => None,
                        () = of(follower.as_ref().map(|purchase| purchase.unfollowed())) => None,
                        read = self.incoming.next(&mut flowing.answering) => Some(read),
                    }
                });
                let app = &mut self.relay.app;
                // Towards a close-delimited app the last piece waits for its successor.
                let may_comment = !answer.is_settled() && app.downstream().held().is_none();
                let keep_alive = may_comment.then_some(&mut self.keep_alive);
                let read = match (presence, wait) {
                    (Presence::Here, _) => Ok(attend_with_comments(app, chunk, keep_alive).await),
                    (_, Wait::AtMost(limit)) => {
                        timeout(limit, app.attend_unless_broken(chunk)).await
                    }
                    (_, _) => Ok(app.attend_unless_broken(chunk).await),
                };
                // `None` in either place: the reader has changed.
                match read.map(|read| read.map(Option::flatten)) {
                    Ok(Ok(Some(read))) => Moved::Read(read),
                    Ok(Ok(None)) => Moved::Changed,
                    Ok(Err(Cut)) => Moved::Stopped,
                    Err(_) => Moved::TimeUp,
                }
            }
        };
        self.service_took(before, answer, presence);
        self.heard(moved)
    }

    /// What is awaited behind the end mark, with the app there, is no part of the answer's time.
    fn service_took(&mut self, before: Duration, answer: &AnswerFlow, presence: Presence) {
        if !answer.awaits_end_only() || presence != Presence::Here {
            let now = self.relay.led.gateway.clock.monotonic();
            let took = now.saturating_sub(before);
            self.relay.dispatch.service_took(took);
        }
    }

    fn drain(&mut self) -> Event {
        let drains = Arc::clone(&self.relay.led.gateway.drains);
        let Ok(permit) = drains.try_acquire_owned() else {
            return Event::Refused;
        };
        self.held.permit = Some(permit);
        // An app that stalled has lost it already.
        if self.held.place.is_none() {
            self.held.place = self.relay.dispatch.place().drains();
        }
        Event::Did
    }

    async fn write(
        &mut self,
        head: Option<Arc<ResponseHeader>>,
        piece: Bytes,
        is_settled: bool,
    ) -> Event {
        let downstream = self.relay.app.downstream_mut();
        if let Some(head) = head
            && downstream.write_head(&head).is_err()
        {
            return self.lost();
        }
        self.keep_alive.gave(&piece);
        let before = self.relay.led.gateway.clock.monotonic();
        // What is settled and paid for makes no room for another.
        let place = self.relay.dispatch.place().slot().filter(|_| !is_settled);
        let probe = downstream.probe();
        let written = {
            let write = pin!(downstream.write_chunk(piece));
            tokio::select! {
                biased;
                written = write => written.ok(),
                wanted = wanted_by_others(place, || probe.taken_bytes()) => {
                    // Until the place goes: no other has to make room for the same.
                    self.held.place = Some(wanted);
                    None
                }
            }
        };
        self.relay.app_took_since(before);
        match written {
            Some(written) => Event::Wrote(written),
            None => {
                // Half a chunk may have gone out.
                self.relay.app.downstream_mut().mark_broken();
                self.lost()
            }
        }
    }

    fn lost(&mut self) -> Event {
        self.relay.app.notice();
        Event::Lost(if self.relay.app.downstream().is_cut() {
            Loss::Cut
        } else {
            Loss::AppGone
        })
    }

    /// Waits for a slow follower, but not beyond bursar's shutdown, and not in the way of others.
    async fn keep(&mut self, piece: Bytes, is_settled: bool) -> Event {
        let Some(purchase) = self.relay.app.purchase().cloned() else {
            return Event::Did;
        };
        let mut cut = self.relay.led.gateway.life.cut_signal();
        let before = self.relay.led.gateway.clock.monotonic();
        let place = self.relay.dispatch.place().slot().filter(|_| !is_settled);
        let kept = tokio::select! {
            biased;
            () = purchase.record_chunk(piece) => Event::Did,
            wanted = wanted_by_others(place, || purchase.follower_went()) => {
                purchase.gives_up_follower();
                self.held.place = Some(wanted);
                Event::Did
            }
            () = cut.wait() => Event::Lost(Loss::Cut),
        };
        self.relay.app_took_since(before);
        kept
    }

    /// The connection breaks either way.
    async fn warn(&mut self, warning: Bytes) -> Event {
        match self.relay.app.downstream_mut().write_chunk(warning).await {
            Ok(written) => Event::Wrote(written),
            Err(_) => Event::Lost(Loss::AppGone),
        }
    }

    async fn settle(&mut self, ending: AnswerEnd, is_drained: bool) -> Event {
        let (end, cause, cut_by) = ending.recorded();
        if let AnswerEnd::Stopped(stop) = ending
            && let Some(word) = stop.drain_word()
        {
            self.relay.led.gateway.metrics.drain(word);
        }
        self.is_drained = is_drained;
        let peek = self.content.peek().filter(|_| end == AttemptEnd::Answered);
        if let Some(peek) = &peek {
            let (settings, route) = (&self.relay.led.settings, &self.relay.led.admitted.route);
            self.gathered.absorb_peek(settings, route, peek);
        }
        if self.is_stream && end == AttemptEnd::Broken {
            self.gathered.forget_early_zero();
        }
        if let Some(flowing) = &self.flowing {
            self.relay.dispatch.record_flow(flowing, end, cause);
        }
        if self
            .relay
            .settle(&self.gathered, is_drained, cut_by)
            .await
            .is_err()
        {
            let says_so = self.content.live_break(&Code::LedgerUnavailable.into());
            return says_so.map_or(Event::Refused, Event::Unwritten);
        }
        if let Some(peek) = &peek
            && let Err(error) = self.relay.reconcile_run(peek).await
        {
            tracing::warn!(%error, "the amount of an eval run could not be recorded");
        }
        self.behind_outcome(ending)
    }

    /// What goes out first behind the outcome, where that is not what was held.
    fn behind_outcome(&mut self, ending: AnswerEnd) -> Event {
        let cost = self.relay.shown_cost();
        if ending != AnswerEnd::Complete {
            let event = self.content.live_break(&ending.code().into());
            return event.map_or(Event::Did, Event::Settled);
        }
        if let Some(end) = self.content.live_end(cost, &self.relay.led.settings.key) {
            if let Some(document) = &end.document {
                self.relay.remember(self.status, document);
            }
            return Event::Settled(end.events);
        }
        let priced = cost.and_then(|cost| self.content.with_cost(cost));
        priced.map_or(Event::Did, Event::Settled)
    }

    async fn leave(&mut self, leave: Leave) -> Event {
        // A stop that cuts the giving of the last pieces comes behind the end of the exchange.
        let Some(flowing) = self.flowing.take() else {
            return Event::Did;
        };
        match leave {
            Leave::Released => {
                let connections = &self.relay.led.settings.connections;
                flowing.answering.release(connections).await;
            }
            Leave::Abandoned | Leave::GivenUp => flowing.answering.abandon().await,
        }
        self.relay.dispatch.give_back_place();
        match leave {
            Leave::Released | Leave::Abandoned => {
                if self.is_drained {
                    self.relay.led.gateway.metrics.drain("completed");
                }
            }
            // Nothing is read on: the next drain has the room.
            Leave::GivenUp => self.held = HeldForDrain::default(),
        }
        Event::Did
    }

    /// Where the end of the connection is the end of the answer, the last piece goes out here.
    async fn finish(&mut self) -> Event {
        let before = self.relay.led.gateway.clock.monotonic();
        let finished = self.relay.app.downstream_mut().finish().await;
        self.relay.app_took_since(before);
        match finished {
            Ok(()) => Event::Did,
            Err(_) => self.lost(),
        }
    }

    /// The service is done: the app may take what is kept for it before it sees the break.
    async fn break_connection(&mut self) {
        let before = self.relay.led.gateway.clock.monotonic();
        self.relay.app.downstream_mut().take_up().await.ok();
        self.relay.app_took_since(before);
        self.relay.app.downstream_mut().mark_broken();
    }
}

/// Awaits what there is to await, else for ever.
async fn of(future: Option<impl Future<Output = ()>>) {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

/// The end of an answer of which no more is wanted.
async fn read_the_end(
    incoming: &mut Incoming,
    answering: &mut Answering,
) -> Result<Option<Bytes>, BodyBroke> {
    loop {
        match incoming.next(answering).await {
            Ok(Some(_)) => {}
            ended => return ended,
        }
    }
}
