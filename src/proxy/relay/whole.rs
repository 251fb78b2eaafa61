//! An answer that was read whole: its receipt is committed, then head and body are written at once.

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{HeaderValue, StatusCode};
use pingora::http::ResponseHeader;

use super::clarification::clarified;
use super::made_stream::made_stream;
use super::{Answered, Relay, speech};
use crate::ledger::entry::Stage;
use crate::protocol::body::{add_error_object, add_error_object_with_hint};
use crate::protocol::names::X_SHOULD_RETRY;
use crate::protocol::routes::ReceiptFrom;
use crate::proxy::purchase::client::Presence;
use crate::proxy::purchase::forward::{Forward, Kind};
use crate::proxy::purchase::shared::ReplayEnd;
use crate::proxy::refuse::{Code, Refusal};
use crate::proxy::settle::Gathered;
use crate::proxy::upstream::heads;

impl Relay<'_> {
    pub(super) async fn whole(&mut self, head: ResponseHeader, body: Bytes) -> (Answered, bool) {
        let mut gathered = Gathered::from_head(&self.settings, &head.headers);
        let peek = gathered.absorb_body(&self.settings, &self.admitted.route, &body);
        let presence = self.app.look();
        gathered.drained =
            head.status.is_success() && self.entry.is_some() && self.is_read_by_nobody(presence);
        let committed = match self.settle(&gathered, None).await {
            Ok(()) => self.reconcile_run(&peek).await,
            Err(error) => Err(error),
        };
        if let Err(error) = &committed
            && self.entry.is_none()
        {
            // Free routes go on. The amount is still to be read from the run: the next poll brings it.
            tracing::warn!(%error, "the amount of an eval run could not be recorded");
        } else if committed.is_err() && head.status.is_success() {
            let refusal = Refusal::new(Code::LedgerUnavailable);
            let keep = self.give_refusal(&refusal).await;
            return (
                Answered {
                    status: refusal.status().as_u16(),
                    code: Some(refusal.code),
                    stream: false,
                },
                keep,
            );
        }
        if gathered.drained && committed.is_ok() {
            self.gateway.metrics.drain("completed");
        }
        let bodyless = self.app.downstream.is_bodyless(&head);
        let body = if bodyless {
            body
        } else {
            self.edited(&head, body)
        };
        let Ok(mut answer) = heads::answer_head(&head, bodyless, &self.settings.key) else {
            return (
                Answered {
                    status: Code::Internal.status().as_u16(),
                    code: Some(Code::Internal),
                    stream: false,
                },
                false,
            );
        };
        let clarified = clarified(
            self.declared.on_clarification,
            &self.settings.key,
            &mut answer,
            &body,
            &gathered.receipt,
        );
        let own = clarified.is_some().then_some(Code::Clarification);
        let body = clarified.unwrap_or(body);
        let made = match self.made_stream {
            true => made_stream(&mut answer, &body),
            false => None,
        };
        let stream = made.is_some();
        // What was taken out of JSON has lost the escapes that may have hidden the key.
        let body = match made.unwrap_or(body) {
            decoded if own.is_some() || stream => self.without_key(decoded),
            body => body,
        };
        if !bodyless {
            let length = HeaderValue::from(body.len());
            if answer.insert_header(CONTENT_LENGTH, length).is_err() {
                tracing::error!("a length could not be written");
            }
        }
        self.say_whether_to_retry(&mut answer, None);
        if account_hint(answer.status).is_some() {
            let inserted = answer.insert_header(X_SHOULD_RETRY, HeaderValue::from_static("false"));
            debug_assert!(inserted.is_ok(), "a static header is valid");
        }
        let status = answer.status;
        let keep = self.give_whole(answer, body).await;
        (
            Answered {
                status: status.as_u16(),
                code: own,
                stream,
            },
            keep,
        )
    }

    /// The terminal state of an eval run brings the amount of the request that started it.
    pub(super) async fn reconcile_run(
        &self,
        peek: &crate::protocol::body::AnswerPeek,
    ) -> Result<(), crate::ledger::LedgerError> {
        if self.admitted.route.receipt != ReceiptFrom::TerminalRun {
            return Ok(());
        }
        let Some(run) = peek.run.as_ref().filter(|run| run.is_terminal()) else {
            return Ok(());
        };
        if let Some(billed) = run.cost_micro_usd.value() {
            self.gateway.ledger.reconcile_run(&run.id, billed).await?;
        }
        Ok(())
    }

    /// The two changes to a body: `error` beside a lone `detail`, and the key struck out where a
    /// service echoes it (rule I9).
    fn edited(&self, head: &ResponseHeader, body: Bytes) -> Bytes {
        let status = head.status;
        let mut body = body;
        let adds_error = self.settings.config.errors.add_error_object
            && (status.is_client_error() || status.is_server_error());
        if adds_error {
            let hint = account_hint(status).map(str::to_owned);
            let hint = hint
                .or_else(|| self.alias_hint(status.as_u16()))
                .or_else(|| {
                    let (route, sent) = (&self.admitted.route, &self.dispatch.outgoing.body);
                    speech::hint(route, status, sent, || self.app.downstream.base())
                });
            let added = match hint {
                Some(hint) => add_error_object_with_hint(&body, status.as_u16(), Some(&hint)),
                None => add_error_object(&body, status.as_u16()),
            };
            if let Some(added) = added {
                body = Bytes::from(added);
            }
        }
        self.without_key(body)
    }

    fn without_key(&self, body: Bytes) -> Bytes {
        match self.settings.key.redacted(&body) {
            Some(clean) => Bytes::from(clean),
            None => body,
        }
    }

    /// "the literal `auto`; any other value returns 404", and 400 on the agent lane.
    fn alias_hint(&self, status: u16) -> Option<String> {
        let model = self.foreign_model.as_deref()?;
        matches!(status, 400 | 404).then(|| {
            format!(
                "To send requests for {model:?} as \"auto\", set [models] aliases = \
                 {{ {model:?} = \"auto\" }} in bursar's config."
            )
        })
    }

    /// Writes a complete answer to whoever is there to read it: the app, or the one that followed
    /// it. True when it went out whole on the app's own connection.
    pub(super) async fn give_whole(&mut self, mut head: ResponseHeader, body: Bytes) -> bool {
        if self.mark(&mut head).is_err() {
            return false;
        }
        let is_answer = head.status.is_success();
        let gone = self.app.look() == Presence::Gone;
        self.app.stage = Stage::Answering;
        let purchase = self.app.purchase.clone();
        let mut forward = Forward::new(if is_answer { Kind::Whole } else { Kind::Error });
        let head = Arc::new(head);
        forward.gives_way(purchase.as_deref(), &head);
        if forward.is_to_app() {
            if !gone && self.write_whole(&head, &body, is_answer).await {
                forward.finished(purchase.as_deref());
                return true;
            }
            forward.failed(purchase.as_deref(), &head);
        }
        if let Some(purchase) = purchase {
            purchase.record_chunk(body).await;
            purchase.record_end(ReplayEnd::Complete);
        }
        false
    }

    /// True when it went out to its end.
    async fn write_whole(&mut self, head: &ResponseHeader, body: &Bytes, is_answer: bool) -> bool {
        let bodyless = self.app.downstream.is_bodyless(head);
        let downstream = &mut *self.app.downstream;
        let purchase = self.app.purchase.as_deref().filter(|_| is_answer);
        let write = async {
            downstream.write_head(head.clone()).await?;
            if !bodyless {
                downstream.write_chunk(body.clone()).await?;
            }
            downstream.finish().await
        };
        let before = self.gateway.clock.monotonic();
        let written = self.gateway.handed_over(purchase, pin!(write)).await;
        self.app_had_the_word_since(before);
        if written.is_err() {
            self.app.lost();
        }
        written.is_ok()
    }
}

/// Whose account the service refuses: to an app its words read as if its own key were meant. A repeat by
/// the app helps in neither case.
fn account_hint(status: StatusCode) -> Option<&'static str> {
    match status {
        StatusCode::UNAUTHORIZED => Some(
            "The service said this of the organization's key, which bursar holds, not of the app's \
             own. Whoever runs bursar can set another one (`bursar key set`).",
        ),
        StatusCode::PAYMENT_REQUIRED => Some(
            "The service said this of the organization's balance; it is no cap of bursar's. It is \
             topped up in the service's dashboard.",
        ),
        _ => None,
    }
}
