//! What the attempts came to, given to the app in the way that fits it.
//!
//! Promise: each way ends with one settled entry, and one line in the log.

use super::whole::give_refusal;
use super::{Answered, Relay, flow, whole};
use crate::ledger::entry::{AttemptEnd, InDoubt};
use crate::proxy::dispatch::{DispatchOutcome, Flowing};
use crate::proxy::refuse::{Code, Refusal};
use crate::proxy::report::{Report, report};
use crate::proxy::settle::Gathered;

/// Gives the app what the attempts came to. Returns whether its connection can be kept.
pub async fn give(mut relay: Relay<'_>, reached: DispatchOutcome) -> bool {
    if !matches!(reached, DispatchOutcome::Flowing(_)) {
        // The service has done its part.
        relay.place = relay.dispatch.take_place();
    }
    let (answered, keep) = match reached {
        DispatchOutcome::Whole { head, body } => whole::whole(&mut relay, head, body).await,
        DispatchOutcome::Flowing(flowing)
            if !relay.led.given.takes_flowing(flowing.answering.head()) =>
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
        relay.led.gateway,
        relay.app.downstream(),
        &Report {
            admitted: Some(relay.led.admitted),
            model: relay.led.model.as_deref(),
            adopted: relay.led.adopted,
            stream: answered.stream,
            status: answered.status,
            code: answered.code,
            attempts: relay.dispatch.retries().attempts().len(),
            state: relay.state,
            measured,
            detail: relay.dispatch.service_detail(),
            cause: relay.dispatch.unreached(),
            ..Report::new(relay.led.entry_id)
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
    let gathered = Gathered::from_broken(relay.dispatch.take_broken());
    refuse(relay, &gathered, refusal, cut_by).await
}

/// An answer that should have been whole, to be made into something else, and is too large or a stream. Its
/// amount is known from its head.
async fn unfit(relay: &mut Relay<'_>, flowing: Flowing) -> (Answered, bool) {
    let headers = &flowing.answering.head().headers;
    let gathered = Gathered::from_head(&relay.led.settings, headers);
    let cause = match flowing.event_stream {
        true => "not_whole",
        false => "too_large",
    };
    relay
        .dispatch
        .record_flow(&flowing, AttemptEnd::Broken, Some(cause));
    flowing.answering.abandon().await;
    refuse(relay, &gathered, Code::UpstreamBroken.into(), None).await
}

/// Settles, and gives the refusal in place of an answer.
async fn refuse(
    relay: &mut Relay<'_>,
    gathered: &Gathered,
    refusal: Refusal,
    cut_by: Option<InDoubt>,
) -> (Answered, bool) {
    let refusal = match relay.settle(gathered, false, cut_by).await {
        Ok(()) => refusal,
        Err(_) => Code::LedgerUnavailable.into(),
    };
    let keep = give_refusal(relay, &refusal).await;
    (Answered::from(&refusal), keep)
}
