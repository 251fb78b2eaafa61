//! An answer that flows: a stream, chunk by chunk as it arrives, or a body of more than 1 MiB.
//!
//! Promise: of a chat stream only the bytes that may begin `data: [DONE]` are held, and of a large
//! body its last chunk, until the receipt is durable; an app that leaves does not end the reading
//! (bounded), because the receipt comes last; a break reaches the app as a break; a document that its
//! app has not whole is not delivered.

mod drain;
mod give;
mod redactor;
mod state;

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;

use self::redactor::Redactor;
use self::state::{Flow, Halt, Move, Reading};
use super::{Answered, Relay};
use crate::ledger::entry::Stage;
use crate::ledger::entry::{AttemptEnd, InDoubt};
use crate::protocol::body::JsonFieldScanner;
use crate::protocol::routes::{AnswerKind, ReceiptFrom};
use crate::protocol::sse::{HoldBack, SseEvent, SseScanner, StreamKind};
use crate::proxy::dispatch::Flowing;
use crate::proxy::purchase::client::Written;
use crate::proxy::purchase::forward::{Forward, Kind};
use crate::proxy::purchase::lost::Cause;
use crate::proxy::purchase::shared::ReplayEnd;
use crate::proxy::refuse::{Code, Refusal};
use crate::proxy::settle::Gathered;
use crate::proxy::upstream::heads;

impl Relay<'_> {
    pub(super) async fn flow(&mut self, mut flowing: Box<Flowing>) -> (Answered, bool) {
        let upstream_head = &flowing.answering.head;
        let status = upstream_head.status.as_u16();
        let event_stream = flowing.event_stream;
        let answered = |code| Answered {
            status,
            code,
            stream: event_stream,
        };
        let head = heads::answer_head(upstream_head, !event_stream, &self.settings.key)
            .and_then(|mut head| self.mark(&mut head).map(|()| head));
        let Ok(head) = head else {
            return (answered(Some(Code::Internal)), false);
        };
        let is_encoded = heads::is_encoded(&upstream_head.headers);
        let mut gathered = Gathered::from_head(&self.settings, &upstream_head.headers);
        if event_stream && is_encoded {
            // What its comments tell cannot be read.
            gathered.receipt.forget_early_zero();
        }
        let kind = match self.admitted.route.answer {
            AnswerKind::NamedEvents => StreamKind::NamedEvents,
            AnswerKind::JsonOrStream | AnswerKind::Json => StreamKind::Data,
        };
        let mut flow = Flow {
            head: Arc::new(head),
            scanner: event_stream.then(|| SseScanner::new(kind)),
            chat: event_stream && kind == StreamKind::Data && self.entry.is_some() && !is_encoded,
            is_encoded,
            strike: Redactor::new(self.settings.key.clone()),
            hold: HoldBack::new(),
            last: None,
            sieve: JsonFieldScanner::default(),
            gathered,
            head_written: false,
            forward: Forward::new(if event_stream {
                Kind::Stream
            } else {
                Kind::Document
            }),
            ends_in_newline: true,
            settled: false,
            reading: Reading::default(),
        };
        self.app.stage = Stage::Streaming;
        self.app.downstream.keeps(&self.declared.name);
        let mut moved = Move::Chunk(flowing.first.clone());
        loop {
            let chunk = match &moved {
                Move::Chunk(chunk) => flow.strike.pass(chunk.clone()),
                Move::End | Move::Broke(_) | Move::Stop(_) | Move::Cut => flow.strike.rest(),
            };
            match self.pass(&mut flow, &flowing, chunk).await {
                Ok(()) => {}
                Err(Halt::Refused(code)) => return self.refused(&mut flow, *flowing, code).await,
                Err(Halt::Cut) => {
                    return self
                        .ended(&mut flow, *flowing, Move::Cut, answered(None))
                        .await;
                }
            }
            match moved {
                Move::Chunk(_) => {}
                Move::End => {
                    let complete = !flow.chat || flow.settled || flow.gathered.is_priced();
                    if !complete {
                        // "all three SDK parsers take a clean end for success"
                        let broke = Move::Broke(Cause::Closed);
                        return self.ended(&mut flow, *flowing, broke, answered(None)).await;
                    }
                    let end = match self.end(&mut flow, &flowing).await {
                        Ok(()) => Move::End,
                        Err(Halt::Cut) => Move::Cut,
                        Err(Halt::Refused(code)) => {
                            return self.refused(&mut flow, *flowing, code).await;
                        }
                    };
                    return self.ended(&mut flow, *flowing, end, answered(None)).await;
                }
                broke => return self.ended(&mut flow, *flowing, broke, answered(None)).await,
            }
            let gateway = self.gateway;
            // A settled stream of which bytes are kept still: its app has no end of it.
            let owes = flow.settled && self.app.downstream.kept_bytes() > 0;
            let purchase = self.app.purchase.clone().filter(|_| owes);
            let read = pin!(self.read_on(&mut flow, &mut flowing.answering));
            moved = gateway.handed_over(purchase.as_deref(), read).await;
        }
    }

    /// Scans a chunk and gives out what may flow.
    async fn pass(&mut self, flow: &mut Flow, flowing: &Flowing, chunk: Bytes) -> Result<(), Halt> {
        if chunk.is_empty() {
            return Ok(());
        }
        let bytes = u64::try_from(chunk.len()).unwrap_or(u64::MAX);
        flow.gathered.response_bytes = flow.gathered.response_bytes.saturating_add(bytes);
        flow.reading.drain.took(chunk.len());
        let Some(scanner) = flow.scanner.as_mut() else {
            flow.sieve.feed(&chunk);
            if let Some(earlier) = flow.last.replace(chunk) {
                self.give(flow, earlier).await?;
            }
            return Ok(());
        };
        if flow.is_encoded {
            return self.give(flow, chunk).await;
        }
        let settings = &self.settings;
        let takes_comments = self.admitted.route.receipt == ReceiptFrom::HeadersAndComments;
        let gathered = &mut flow.gathered;
        let scan = scanner.feed(&chunk, &mut |event| match event {
            SseEvent::Comment { name, value } if takes_comments => {
                gathered.absorb_comment(settings, name, value);
            }
            SseEvent::Usage(usage) => gathered.usage = usage,
            SseEvent::Comment { .. } | SseEvent::Event(_) => {}
        });
        let end_mark = scanner.bytes_to_end_mark();
        if let Some(released) = flow.hold.push(chunk, &scan) {
            self.give(flow, released).await?;
        }
        if let Some(bytes) = end_mark {
            // How much is behind it in this chunk is chance.
            flow.gathered.response_bytes = bytes;
            self.settle_flow(flow, flowing).await?;
            if let Some(tail) = flow.hold.take() {
                let (gateway, purchase) = (self.gateway, self.app.purchase.clone());
                let give = pin!(self.give(flow, tail));
                gateway.handed_over(purchase.as_deref(), give).await?;
            }
            self.app.satisfied();
        }
        Ok(())
    }

    /// A complete answer's receipt, before its last bytes go out. Once.
    async fn settle_flow(&mut self, flow: &mut Flow, flowing: &Flowing) -> Result<(), Halt> {
        if flow.settled {
            return Ok(());
        }
        flow.settled = true;
        flow.gathered.drained = self.drains(flow);
        let document = flow.scanner.is_none().then(|| flow.sieve.peek());
        if let Some(peek) = &document {
            let (settings, route) = (&self.settings, &self.admitted.route);
            flow.gathered.absorb_peek(settings, route, peek);
        }
        self.dispatch
            .record_flow(flowing, AttemptEnd::Answered, None);
        let settled = self.settle(&flow.gathered, None).await;
        settled.map_err(|_| Halt::Refused(Code::LedgerUnavailable))?;
        if let Some(peek) = &document
            && let Err(error) = self.reconcile_run(peek).await
        {
            tracing::warn!(%error, "the amount of an eval run could not be recorded");
        }
        Ok(())
    }

    /// The clean end of an answer.
    ///
    /// Assumed: without `data: [DONE]` a chat stream is complete if its receipt came, else broken.
    async fn end(&mut self, flow: &mut Flow, flowing: &Flowing) -> Result<(), Halt> {
        self.settle_flow(flow, flowing).await?;
        // The service is done, and the app may take its time for the rest.
        self.dispatch.place.give_back();
        let rest = [flow.hold.take(), flow.last.take()];
        let (gateway, purchase) = (self.gateway, self.app.purchase.clone());
        let give = async {
            for bytes in rest.into_iter().flatten() {
                self.give(flow, bytes).await?;
            }
            Ok(())
        };
        gateway.handed_over(purchase.as_deref(), pin!(give)).await
    }

    /// The answer has ended, one way or another.
    async fn ended(
        &mut self,
        flow: &mut Flow,
        flowing: Flowing,
        moved: Move,
        answered: Answered,
    ) -> (Answered, bool) {
        let (end, cause, cut_by) = match &moved {
            Move::Stop(reason) => (AttemptEnd::Broken, Some("stopped"), Some(*reason)),
            Move::Cut => (AttemptEnd::Broken, Some("stopped"), Some(InDoubt::Shutdown)),
            Move::Broke(cause) => (AttemptEnd::Broken, Some(cause.as_str()), None),
            Move::End | Move::Chunk(_) => (AttemptEnd::Answered, None, None),
        };
        if !flow.settled {
            flow.settled = true;
            flow.gathered.drained = self.drains(flow);
            if flow.scanner.is_some() && end == AttemptEnd::Broken {
                flow.gathered.receipt.forget_early_zero();
            }
            self.dispatch.record_flow(&flowing, end, cause);
            if self.settle(&flow.gathered, cut_by).await.is_err() {
                return self.refused(flow, flowing, Code::LedgerUnavailable).await;
            }
            if end == AttemptEnd::Broken {
                let code = match cut_by {
                    Some(InDoubt::Shutdown) => Code::ShuttingDown,
                    _ => Code::UpstreamBroken,
                };
                return self.refused(flow, flowing, code).await;
            }
        }
        let is_cut = matches!(moved, Move::Cut);
        // The receipt is in and the end mark went out: a break after it changes nothing.
        match moved {
            Move::End => flowing.answering.release(&self.settings.connector).await,
            _ => flowing.answering.abandon().await,
        }
        self.dispatch.place.give_back();
        if flow.gathered.drained {
            self.gateway.metrics.drain("completed");
        }
        if is_cut || self.give_way(flow).await.is_err() {
            return self.break_off(flow, Code::ShuttingDown).await;
        }
        if flow.forward.is_to_app() {
            let held = self.app.downstream.held();
            let (gateway, purchase) = (self.gateway, self.app.purchase.clone());
            // Where the end of the connection is the end of the answer, the last piece goes out here.
            let before = gateway.clock.monotonic();
            let finished = {
                let finish = pin!(self.app.downstream.finish());
                gateway.handed_over(purchase.as_deref(), finish).await
            };
            self.app_had_the_word_since(before);
            if finished.is_ok() {
                flow.forward.finished(self.app.purchase.as_deref());
                return (answered, true);
            }
            self.app.lost();
            if self.app.downstream.is_cut()
                && let Some(purchase) = self
                    .app
                    .purchase
                    .as_ref()
                    .filter(|purchase| purchase.is_delivered())
            {
                purchase.cuts_short();
            }
            if !matches!(self.turn_over(flow, held).await, Ok(true)) {
                return (answered, false);
            }
        }
        if let Some(purchase) = &self.app.purchase {
            purchase.record_end(ReplayEnd::Complete);
        }
        (answered, false)
    }

    /// The service is left, and nothing of it is held, before the app learns why.
    async fn refused(&mut self, flow: &mut Flow, flowing: Flowing, code: Code) -> (Answered, bool) {
        flowing.answering.abandon().await;
        self.dispatch.place.give_back();
        // Nothing is read on: the next drain has the room.
        flow.reading = Reading::default();
        self.break_off(flow, code).await
    }

    /// The app learns that the answer is not complete: an error event where it reads events, and a
    /// connection that does not end cleanly.
    async fn break_off(&mut self, flow: &mut Flow, code: Code) -> (Answered, bool) {
        let refusal = Refusal::new(code);
        let stream = flow.scanner.is_some();
        let answered = |status: u16| Answered {
            status,
            code: Some(code),
            stream,
        };
        // Without a head the refusal itself goes to whoever follows.
        if flow.head_written {
            self.give_way(flow).await.ok();
        }
        if !flow.forward.is_to_app() {
            if let Some(purchase) = &self.app.purchase {
                purchase.record_end(ReplayEnd::Broken(refusal));
            }
            return (answered(flow.head.status.as_u16()), false);
        }
        if !flow.head_written {
            // Nothing went out yet, so the app can be told in full.
            let keep = self.give_refusal(&refusal).await;
            return (answered(refusal.status().as_u16()), keep);
        }
        if flow.chat {
            let event = refusal.event_behind(flow.ends_in_newline);
            // The connection breaks either way.
            if let Ok(Written::Out) = self.app.downstream.write_chunk(event).await
                && self.app.downstream.is_close_delimited()
            {
                // The bytes that were held went out, and the event is held now.
                flow.forward.wrote(self.app.purchase.as_deref(), true);
            }
        }
        // The service is done: the app may take what is kept for it before it sees the break.
        let before = self.gateway.clock.monotonic();
        self.app.downstream.take_up().await.ok();
        self.app_had_the_word_since(before);
        self.app.downstream.mark_broken();
        (answered(flow.head.status.as_u16()), false)
    }
}
