//! Why an entry stands as it does, in one or two plain sentences.
//!
//! Promise: pure; a sentence names the evidence that the fold went by (`src/ledger/fold/state.rs`), and
//! where there is none it says so.

use crate::ledger::entry::{Anomaly, AttemptEnd, EntryId, InDoubt, State};
use crate::ledger::query::{EntryView, How, ReceiptWord};
use crate::money::MicroUsd;
use crate::protocol::receipt::ReceiptSource;
use crate::protocol::{Operation, ServedBy};

/// Why the ledger made of it what it made.
pub fn why(view: &EntryView, family: &[EntryView]) -> String {
    match view.state {
        State::Open => {
            "It has begun and has not ended: it is in flight, or the process that ran it \
                        died and no bursar has been started since."
                .to_owned()
        }
        State::Settled { billed } => settled(view, billed),
        State::Failed => failed(view),
        State::Replayed => replayed(view, family),
        State::Unreported => unreported(view).to_owned(),
        State::InDoubt { reason } => in_doubt(reason).to_owned(),
        State::Reconciled { billed } => reconciled(view, billed),
    }
}

fn settled(view: &EntryView, billed: MicroUsd) -> String {
    if view.broken_billed_micro_usd == Some(billed) && !billed.is_zero() {
        return "An earlier attempt's head contained this amount before its body broke; the service bills \
                a key once, whatever its repeats show."
            .to_owned();
    }
    if billed.is_zero() && view.served_by == Some(ServedBy::None) {
        return "The answer is a clarification (an input is missing), which the service gives for 0."
            .to_owned();
    }
    let place = match view.receipt_source {
        Some(ReceiptSource::Header) | None => "in a header of its answer",
        Some(ReceiptSource::Sse) => "in a comment line before the stream's end mark",
        Some(ReceiptSource::Body) => "in the body of its answer",
    };
    if billed.is_zero() {
        return format!(
            "The service reported 0 {place}, and nothing else under this key may have run."
        );
    }
    format!("The service reported this amount {place}.")
}

fn failed(view: &EntryView) -> String {
    let rule = "A request that fails bills nothing.";
    if view.attempts.is_empty() {
        return "No attempt was made, so nothing was billed.".to_owned();
    }
    let refused = view
        .attempts
        .iter()
        .any(|attempt| attempt.end == AttemptEnd::Refused);
    let unsent = view
        .attempts
        .iter()
        .any(|attempt| attempt.end == AttemptEnd::NotSent);
    match (refused, unsent) {
        (true, true) => {
            format!(
                "Each attempt ended with an error of the service, or was never sent whole. {rule}"
            )
        }
        (true, false) => format!("Each attempt ended with an error of the service. {rule}"),
        _ => "No attempt was sent whole, so the service cannot have run it.".to_owned(),
    }
}

fn replayed(view: &EntryView, family: &[EntryView]) -> String {
    let others = || family.iter().filter(|other| other.id != view.id);
    let bearer = others().find(|other| !other.state.adds().is_zero());
    match bearer {
        Some(other) => format!(
            "The service bills a key once, and this key's {} is on entry {}: this one adds 0.",
            other.state.adds(),
            other.id
        ),
        None => {
            "The service bills a key once, and this key's amount is on another entry, which is \
                 not in the journal any more: this one adds 0."
                .to_owned()
        }
    }
}

fn unreported(view: &EntryView) -> &'static str {
    if view.receipt == ReceiptWord::Malformed {
        return "The service reported an amount that cannot be read (see the receipt lines). It is not \
                guessed.";
    }
    match (view.operation, view.stream) {
        (Operation::AgentTurn, Some(true)) => {
            "The answer is complete, and the interface gives no amount for a streamed agent turn, \
             only its tokens."
        }
        (Operation::Transcription | Operation::Speech, _) => {
            "The answer is complete, and the interface gives no amount for audio, which is billed \
             by the minute."
        }
        (Operation::EvalRun, _) => "The run was started; its cost is reported when it has ended.",
        (Operation::Deploy, _) => {
            "The answer is complete, and the interface gives no amount for a deployment."
        }
        (Operation::EndpointChat, _) => {
            "The answer is complete, and the interface gives no amount for a call of an endpoint."
        }
        _ => "The answer is complete and carries no amount.",
    }
}

pub const fn in_doubt(reason: InDoubt) -> &'static str {
    match reason {
        InDoubt::ClientGone => {
            "The app left, and bursar ended the reading before the receipt came: draining is off, \
             or one of its bounds was reached. The service may have billed it."
        }
        InDoubt::StreamDrop => {
            "The answer broke off before its receipt came. The service may have billed it."
        }
        InDoubt::NoResponse => {
            "A request was sent and got no answer, or the service said that one still runs. It may \
             have run and been billed."
        }
        InDoubt::Gateway => {
            "A gateway answered in place of the service, perhaps after the work was done."
        }
        InDoubt::Crash => {
            "The process ended between the intent and the outcome. The request may have been sent, \
             run and billed."
        }
        InDoubt::Shutdown => {
            "bursar's shutdown ended it before the receipt came. The service may have billed it."
        }
        InDoubt::Damaged => "The journal lines that recorded its end are damaged.",
        InDoubt::ReplayLostAmount => {
            "The answer is the repeat of one that was lost, and the amount went with the lost one: a \
             repeat shows 0. The service billed the key once, an amount that bursar never saw."
        }
    }
}

fn reconciled(view: &EntryView, billed: MicroUsd) -> String {
    match &view.reconciled_by {
        Some(How::Key { entry }) => evidence_of_key(*entry),
        Some(How::Run { run_id }) => {
            format!("The end of eval run {run_id} reported {billed}.")
        }
        None => "Evidence came later.".to_owned(),
    }
}

fn evidence_of_key(entry: EntryId) -> String {
    format!("A later answer under the same key reported the amount; it is on entry {entry}.")
}

/// What could still bring the amount; `None` when it is known.
pub fn what_would_settle(view: &EntryView) -> Option<&'static str> {
    if !view.state.is_unresolved() {
        return None;
    }
    Some(match (view.kept_key.is_some(), view.operation) {
        (_, Operation::EvalRun) if view.run_id.is_some() => {
            "A GET /v1/eval-runs/{run_id} through bursar that finds the run completed or failed."
        }
        (true, _) => {
            "An answer under the same key that reports an amount above 0, within 24 hours of the key's \
             first use. bursar sends nothing by itself to learn a price: it might run and bill."
        }
        (false, _) => {
            "Nothing that the interface offers: only the service's own records or its invoice."
        }
    })
}

/// What is odd about a receipt.
pub const fn odd(kind: Anomaly) -> &'static str {
    match kind {
        Anomaly::ConflictingAmounts => {
            "The answer reported two different amounts; the first one counts."
        }
        Anomaly::SecondAmountForKey => {
            "A second, different amount came for a key that was billed already; it is not added."
        }
        Anomaly::AmountOnReplay => {
            "An answer marked as a replay showed an amount; replays bill 0, so it is not added."
        }
        Anomaly::AmountOnFailure => {
            "A failed answer showed an amount; failures bill nothing, so it is not added."
        }
        Anomaly::Malformed => "The reported amount cannot be read.",
        Anomaly::AboveCeiling => {
            "The amount is above 1,000 USD for one request; it is in the sum as the service reported it."
        }
    }
}
