//! Handing the answer to the app: whole, flowing, followed from another connection, or our own
//! refusal.
//!
//! Promise: the app never receives a complete success whose receipt is not durable (rule I2); bytes
//! are the service's (rule I8), except for the `error` object added to bodies that have only
//! `detail`, and `cost` in `usage` for an app that asks for it; every answer carries its entry's id.

mod clarification;
mod closed;
mod flow;
pub mod follow;
pub mod given;
mod led;
pub mod own;
mod speech;
mod whole;

use self::led::Answered;
pub use self::led::Relay;
use self::whole::give_refusal;
use super::dispatch::{DispatchOutcome, Flowing};
use super::refuse::{Code, Refusal};
use super::report::{Report, report};
use super::settle::Gathered;
use crate::ledger::entry::{AttemptEnd, InDoubt};

/// Gives the app what the attempts came to. Returns whether its connection can be kept.
pub async fn run(mut relay: Relay<'_>, reached: DispatchOutcome) -> bool {
    if !matches!(reached, DispatchOutcome::Flowing(_)) {
        // The service has done its part.
        relay.place = relay.dispatch.place.take();
    }
    let (answered, keep) = match reached {
        DispatchOutcome::Whole { head, body } => whole::whole(&mut relay, head, body).await,
        DispatchOutcome::Flowing(flowing)
            if !relay.given.takes_flowing(&flowing.answering.head) =>
        {
            unfit(&mut relay, *flowing).await
        }
        DispatchOutcome::Flowing(flowing) => flow::flow(&mut relay, flowing).await,
        DispatchOutcome::Nothing { refusal } => nothing(&mut relay, refusal, None).await,
        DispatchOutcome::Cut => {
            let refusal = Refusal::new(Code::ShuttingDown);
            nothing(&mut relay, refusal, Some(InDoubt::Shutdown)).await
        }
    };
    let measured = relay.measured();
    let fate = relay.fate();
    if let Some(entry) = relay.entry.as_mut() {
        entry.close(fate);
    }
    report(
        relay.gateway,
        relay.app.downstream,
        &Report {
            admitted: Some(relay.admitted),
            model: relay.model.as_deref(),
            adopted: relay.adopted,
            stream: answered.stream,
            status: answered.status,
            code: answered.code,
            attempts: relay.dispatch.retries.attempts().len(),
            state: relay.state,
            measured,
            detail: relay.dispatch.service_detail.as_deref(),
            cause: relay.dispatch.unreached.as_deref(),
            ..Report::new(relay.entry_id)
        },
    );
    keep
}

/// No answer came, bursar may send nothing more, or it is shutting down.
async fn nothing(
    relay: &mut Relay<'_>,
    refusal: Refusal,
    cut_by: Option<InDoubt>,
) -> (Answered, bool) {
    let gathered = Gathered {
        receipt: relay.dispatch.retries.take_broken(),
        ..Gathered::default()
    };
    refuse(relay, gathered, refusal, cut_by).await
}

/// An answer that should have been whole, to be made into something else, and is too large or a stream. Its
/// amount is known from its head.
async fn unfit(relay: &mut Relay<'_>, flowing: Flowing) -> (Answered, bool) {
    let headers = &flowing.answering.head.headers;
    let gathered = Gathered::from_head(&relay.settings, headers);
    let cause = match flowing.event_stream {
        true => "not_whole",
        false => "too_large",
    };
    relay
        .dispatch
        .record_flow(&flowing, AttemptEnd::Broken, Some(cause));
    flowing.answering.abandon().await;
    refuse(relay, gathered, Code::UpstreamBroken.into(), None).await
}

/// Settles, and gives the refusal in place of an answer.
async fn refuse(
    relay: &mut Relay<'_>,
    mut gathered: Gathered,
    refusal: Refusal,
    cut_by: Option<InDoubt>,
) -> (Answered, bool) {
    let refusal = match relay.settle(&mut gathered, cut_by).await {
        Ok(()) => refusal,
        Err(_) => Code::LedgerUnavailable.into(),
    };
    let keep = give_refusal(relay, &refusal).await;
    (Answered::from(&refusal), keep)
}
