//! An answer that was read whole: its receipt is committed, then head and body are written at once.

use std::borrow::Cow;
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{HeaderValue, StatusCode};
use pingora::http::ResponseHeader;

use super::clarification::clarified;
use super::given::Given;
use super::{Answered, Relay, own, speech};
use crate::config::Adopt;
use crate::ledger::entry::Stage;
use crate::protocol::body::{add_error_object, add_error_object_with_hint, add_usage_cost};
use crate::protocol::names::X_SHOULD_RETRY;
use crate::protocol::translate::AnswerFacts;
use crate::protocol::{Dialect, Lane};
use crate::proxy::purchase::answer::{AnswerFlow, may_give};
use crate::proxy::purchase::claimant::is_apps_own;
use crate::proxy::purchase::event::{Action, AppView, Event, Loss};
use crate::proxy::refuse::{Code, Refusal};
use crate::proxy::settle::Gathered;
use crate::proxy::upstream::heads;

/// "Responses that are not stored …: responses over 1 MB", which a repeat makes run again.
const STORED_BYTES_MAX: usize = 1_000_000;

pub(super) async fn whole(
    relay: &mut Relay<'_>,
    head: ResponseHeader,
    body: Bytes,
) -> (Answered, bool) {
    let mut gathered = Gathered::from_head(&relay.led.settings, &head.headers);
    let peek = gathered.absorb_body(&relay.led.settings, &relay.led.admitted.route, &body);
    relay.app.look();
    let drained = head.status.is_success() && relay.entry.is_some() && relay.app.is_alone();
    let committed = match relay.settle(&gathered, drained, None).await {
        Ok(()) => relay.reconcile_run(&peek).await,
        Err(error) => Err(error),
    };
    let is_metered = relay.entry.is_some();
    if let Err(error) = &committed
        && !is_metered
    {
        // The amount is still to be read from the run: the next poll brings it.
        tracing::warn!(%error, "the amount of an eval run could not be recorded");
    }
    if !may_give(head.status.is_success(), is_metered, committed.is_ok()) {
        let refusal = Refusal::new(Code::LedgerUnavailable);
        let keep = give_refusal(relay, &refusal).await;
        return (Answered::from(&refusal), keep);
    }
    if drained && committed.is_ok() {
        relay.led.gateway.metrics.drain("completed");
    }
    let bodyless = relay.app.downstream().is_bodyless(&head);
    let body = if bodyless {
        body
    } else {
        edited(relay, &head, body)
    };
    // "A server MUST NOT send a Content-Length header field in any response with a status code of [...] 204" (RFC
    // 9110, 8.6): an app may wait for its bytes.
    let keeps_length = bodyless && head.status != StatusCode::NO_CONTENT;
    let Ok(mut answer) = heads::answer_head(&head, keeps_length, &relay.led.settings.key) else {
        return (Answered::from(&Code::Internal.into()), false);
    };
    let clarified = clarified(
        relay.led.declared.on_clarification,
        &relay.led.settings.key,
        &mut answer,
        &body,
        gathered.receipt(),
    );
    let own = clarified.is_some().then_some(Code::Clarification);
    let body = clarified.unwrap_or(body);
    let entry = relay.led.gateway.ledger.answer_id(relay.led.entry_id);
    let facts = AnswerFacts {
        entry: &entry,
        created_s: relay.led.entry_id.unix_s(),
        cost: relay.shown_cost(),
    };
    let made = match relay.led.given.made(&mut answer, &body, facts) {
        Ok(made) => made,
        Err(refusal) => {
            let refusal = match behind_unrendered(relay, &refusal, body.len()) {
                Some(words) => refusal.and(&words),
                None => refusal,
            };
            let keep = give_refusal(relay, &refusal).await;
            return (Answered::from(&refusal), keep);
        }
    };
    // What was taken out of JSON has lost the escapes that may have hidden the key.
    let is_made = made.is_some();
    let is_decoded = own.is_some() || is_made;
    let body = match made.unwrap_or(body) {
        decoded if is_decoded => without_key(relay, decoded),
        body => body,
    };
    relay.remember(answer.status, &body);
    let stream = answer.status.is_success() && relay.led.given.is_stream(&answer.headers);
    // Also to a HEAD the length is that of what is made.
    if !bodyless || is_made {
        let length = HeaderValue::from(body.len());
        if answer.insert_header(CONTENT_LENGTH, length).is_err() {
            tracing::error!("a length could not be written");
        }
    }
    relay.say_whether_to_retry(&mut answer, None);
    if account_hint(answer.status).is_some() {
        let inserted = answer.insert_header(X_SHOULD_RETRY, HeaderValue::from_static("false"));
        debug_assert!(inserted.is_ok(), "a static header is valid");
    }
    let status = answer.status;
    let keep = give_whole(relay, answer, body).await;
    (
        Answered {
            status: status.as_u16(),
            code: own,
            stream,
        },
        keep,
    )
}

/// The changes to a body: `error` beside a lone `detail`, `cost` in `usage` where the app asks for it, and the key
/// struck out where a service echoes it (rule I9).
fn edited(relay: &Relay<'_>, head: &ResponseHeader, body: Bytes) -> Bytes {
    let status = head.status;
    let mut body = body;
    // A translation puts it where its dialect has it.
    let cost = relay.shown_cost().filter(|_| status.is_success());
    if let Some(cost) = cost.filter(|_| relay.led.given.dialect() == Dialect::Chat)
        && let Some(priced) = add_usage_cost(&body, cost)
    {
        body = Bytes::from(priced);
    }
    let adds_error = relay.led.settings.config.errors.add_error_object
        && (status.is_client_error() || status.is_server_error());
    if adds_error {
        let hint = account_hint(status).map(str::to_owned);
        let hint = hint
            .or_else(|| alias_hint(relay, status.as_u16()))
            .or_else(|| {
                let (route, sent) = (&relay.led.admitted.route, relay.dispatch.body());
                speech::hint(route, status, sent, || relay.app.downstream().base())
            });
        let added = match hint {
            Some(hint) => add_error_object_with_hint(&body, status.as_u16(), Some(&hint)),
            None => add_error_object(&body, status.as_u16()),
        };
        if let Some(added) = added {
            body = Bytes::from(added);
        }
    }
    without_key(relay, body)
}

fn without_key(relay: &Relay<'_>, body: Bytes) -> Bytes {
    match relay.led.settings.key.redacted(&body) {
        Some(clean) => Bytes::from(clean),
        None => body,
    }
}

/// "the literal `auto`; any other value returns 404", and 400 on the agent lane.
fn alias_hint(relay: &Relay<'_>, status: u16) -> Option<String> {
    let model = relay.led.foreign_model.as_deref()?;
    matches!(status, 400 | 404).then(|| {
        format!(
            "To send requests for {model:?} as \"auto\", set [models] aliases = \
             {{ {model:?} = \"auto\" }} in bursar's config."
        )
    })
}

/// What a repeat comes to behind an answer that was billed and cannot be given. `None`: that is said already.
fn behind_unrendered(relay: &Relay<'_>, refusal: &Refusal, bytes: usize) -> Option<String> {
    let key = relay.app.purchase()?.key.as_ref()?;
    let retry = &relay.led.settings.config.retry;
    let repeat = match (is_apps_own(key), retry.adopt) {
        (true, _) => "A repeat under this Idempotency-Key".to_owned(),
        (false, Adopt::Always | Adopt::Marked) => format!(
            "A repeat within {} s of the first request ([retry] adopt_window_s)",
            retry.adopt_window.as_secs()
        ),
        (false, Adopt::Never) => String::new(),
    };
    let is_stored = relay.led.admitted.route.lane != Lane::Agent && bytes <= STORED_BYTES_MAX;
    let words = match (repeat.is_empty(), is_stored) {
        (true, _) => "A repeat is another purchase.".to_owned(),
        (false, true) => format!(
            "{repeat} is given the same one, and is billed nothing; ask in other words for another answer."
        ),
        (false, false) => format!("{repeat} runs again, and is billed nothing."),
    };
    (refusal.code == Code::AnswerUntranslatable).then_some(words)
}

/// A refusal of our own after the request was dispatched.
pub(super) async fn give_refusal(relay: &mut Relay<'_>, refusal: &Refusal) -> bool {
    let Ok((mut head, body)) = own::refusal_answer(refusal, relay.led.given.dialect()) else {
        return false;
    };
    relay.say_whether_to_retry(&mut head, refusal.should_retry());
    if refusal.code.ends_connection() {
        relay.app.downstream_mut().ends_connection();
    }
    give_whole(relay, head, body).await
}

/// Writes a complete answer to whichever app is there to read it: the request's own, or one that followed
/// it. True when it went out whole on the app's own connection.
async fn give_whole(relay: &mut Relay<'_>, mut head: ResponseHeader, body: Bytes) -> bool {
    if relay.mark(&mut head).is_err() {
        return false;
    }
    let is_answer = head.status.is_success();
    let presence = relay.app.look_closely();
    relay.app.reaches(Stage::Answering);
    let purchase = relay.app.purchase().cloned();
    let head = Arc::new(head);
    let mut answer = AnswerFlow::whole(is_answer, Arc::clone(&head), body, purchase.clone());
    let app = AppView {
        now: relay.led.gateway.clock.monotonic(),
        presence,
        is_proven: relay.app.downstream().is_proven(),
        held: None,
        is_displaced: false,
    };
    let mut action = answer.begin(&app);
    loop {
        let event = match action {
            Action::WriteWhole(body) => write_whole(relay, &head, &body, is_answer).await,
            Action::Keep(body) => {
                if let Some(purchase) = &purchase {
                    purchase.record_chunk(body).await;
                }
                Event::Did
            }
            Action::Done(done) => return done.is_whole,
            // Nothing of it is read, settled or written piece by piece any more.
            _ => return false,
        };
        action = answer.on(event, &app);
    }
}

async fn write_whole(
    relay: &mut Relay<'_>,
    head: &ResponseHeader,
    body: &Bytes,
    is_answer: bool,
) -> Event {
    let bodyless = relay.app.downstream().is_bodyless(head);
    let (head, body) = in_the_apps_form(&relay.led.given, head, body);
    let purchase = relay.app.purchase().filter(|_| is_answer).cloned();
    let downstream = relay.app.downstream_mut();
    let write = async {
        downstream.write_head(&head)?;
        if !bodyless {
            downstream.write_chunk(body).await?;
        }
        downstream.finish().await
    };
    let gateway = relay.led.gateway;
    let before = gateway.clock.monotonic();
    let written = gateway.handed_over(purchase.as_deref(), pin!(write)).await;
    relay.app_took_since(before);
    match written {
        Ok(()) => Event::Did,
        Err(_) => {
            relay.app.notice();
            Event::Lost(Loss::AppGone)
        }
    }
}

/// An answer as its own app reads it; what is kept of it for a repeat stays a document.
fn in_the_apps_form<'a>(
    given: &Given,
    head: &'a ResponseHeader,
    body: &Bytes,
) -> (Cow<'a, ResponseHeader>, Bytes) {
    let events = match given.reads_as_events(head) {
        true => given.events(body),
        false => None,
    };
    match events {
        Some(events) => (Cow::Owned(Given::event_head(head)), events),
        None => (Cow::Borrowed(head), body.clone()),
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
            "The service said this of the organization's balance; it is not a cap of bursar's. It is \
             topped up in the service's dashboard.",
        ),
        _ => None,
    }
}
