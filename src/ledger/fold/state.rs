//! The fold: what an entry is worth, from all its attempts, its receipt, and what is known of its
//! key. This is where rules I3 (bill once), I4 (failures are free) and I5 (three kinds of nothing)
//! are decided, and nowhere else.
//!
//! Promise: pure. An amount is taken only when it was reported; what is not known stays in doubt and is
//! never settled at zero.

use crate::ledger::entry::{Anomaly, Attempt, AttemptEnd, InDoubt, Outcome, Settlement, State};
use crate::money::MicroUsd;
use crate::protocol::{Reported, ServedBy};

/// 1,000 USD: more than one request can be expected to cost.
const CEILING: MicroUsd = MicroUsd::new(1_000_000_000);

/// What the ledger knows of a key in its epoch (24 h), apart from the entry being folded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyView {
    /// The first positive amount of an equal request. It stands on another entry and is in the sum
    /// already.
    pub amount: Option<MicroUsd>,
    /// An entry of an equal request was answered whole without an amount: the unreported purchase is that
    /// entry.
    pub is_unreported: bool,
    /// An entry of another request was billed, or was answered whole without an amount.
    pub stands_on_another_request: bool,
    /// An entry under the same key, sent with another key of the service or by an older bursar, was billed
    /// or was answered whole without an amount. Both may be one organization's.
    pub stands_under_another_organization: bool,
    /// Another entry of the key, whatever it asked and for whatever organization, is open, in doubt, or was answered.
    pub others_may_have_run: bool,
}

/// Folds an outcome. `key` is `None` for an entry without an Idempotency-Key.
pub fn fold(outcome: &Outcome, key: Option<&KeyView>) -> Settlement {
    let mut anomalies = Vec::new();
    if outcome.receipt.conflicting_amounts > 0 {
        anomalies.push(Anomaly::ConflictingAmounts);
    }
    if outcome.receipt.billed == Reported::Malformed {
        anomalies.push(Anomaly::Malformed);
    }

    // An amount in the head of an earlier attempt that broke is this key's amount: the service
    // bills a key once, whatever its later answers show.
    let reported_earlier = outcome.broken_billed.filter(|amount| !amount.is_zero());
    let on_another = key.and_then(|key| key.amount);
    let known = on_another.or(reported_earlier);

    let state = match speaker(&outcome.attempts) {
        Some((index, AttemptEnd::Answered | AttemptEnd::Broken)) => {
            answered(outcome, index, known, key, &mut anomalies)
        }
        _ => {
            // Rule I4: an amount on a failure is not believed, and not hidden either.
            if outcome.receipt.billed.value().is_some_and(is_positive) {
                anomalies.push(Anomaly::AmountOnFailure);
            }
            unanswered(outcome, key.is_some())
        }
    };

    let state = match (on_another, reported_earlier) {
        (None, Some(billed)) => State::Settled { billed },
        (Some(first), Some(second)) if first != second => {
            if !anomalies.contains(&Anomaly::SecondAmountForKey) {
                anomalies.push(Anomaly::SecondAmountForKey);
            }
            state
        }
        _ => state,
    };

    // One key, one amount, in whatever order the entries end: the amount stands elsewhere.
    let state = if state.is_unresolved() && known.is_some() {
        State::Replayed
    } else {
        state
    };
    // A reported amount is added in any case, so that the ledger agrees with the service's books.
    if matches!(state, State::Settled { billed } if billed > CEILING) {
        anomalies.push(Anomaly::AboveCeiling);
    }
    let price = match state {
        State::Replayed => known,
        state => state.billed(),
    };
    Settlement {
        state,
        price,
        anomalies,
    }
}

/// The attempt whose answer the receipt is: the answered one, else the last that had a head.
fn speaker(attempts: &[Attempt]) -> Option<(usize, AttemptEnd)> {
    let ends = || attempts.iter().map(|attempt| attempt.end).enumerate().rev();
    ends()
        .find(|(_, end)| *end == AttemptEnd::Answered)
        .or_else(|| {
            ends().find(|(_, end)| !matches!(end, AttemptEnd::NotSent | AttemptEnd::NoHead))
        })
}

/// Whether nothing but the attempt at `index` can have run under this key.
fn others_are_idle(attempts: &[Attempt], index: usize, key: Option<&KeyView>) -> bool {
    let others_may_have_run = key.is_some_and(|key| key.others_may_have_run);
    !others_may_have_run && own_are_idle(attempts, index, key.is_some())
}

/// The same of the entry's own attempts. A 409 means that another one *is* running, so it is no proof of
/// idleness although it is a complete refusal.
fn own_are_idle(attempts: &[Attempt], index: usize, keyed: bool) -> bool {
    attempts
        .iter()
        .enumerate()
        .filter(|(other, _)| *other != index)
        .all(|(_, attempt)| ran_nothing(attempt) && !(keyed && attempt.status == Some(409)))
}

/// The state of an entry that got a 2xx head.
fn answered(
    outcome: &Outcome,
    index: usize,
    known: Option<MicroUsd>,
    key: Option<&KeyView>,
    anomalies: &mut Vec<Anomaly>,
) -> State {
    let receipt = &outcome.receipt;
    let reported = receipt.billed.value();
    let lost = State::InDoubt {
        reason: InDoubt::ReplayLostAmount,
    };
    // Interface, Idempotency-Key: a repeat of what is not stored "runs again and is not billed a second
    // time", and a replay reports 0 also where the first answer reported nothing.
    let whole = end_at(outcome, index) == AttemptEnd::Answered && outcome.cut_by.is_none();
    let repeats_unreported = whole && key.is_some_and(|key| key.is_unreported);
    let stands_elsewhere = |otherwise| {
        if known.is_some() || repeats_unreported {
            State::Replayed
        } else {
            otherwise
        }
    };
    // Another request under the key is a purchase of its own, which the interface refuses. Where the
    // answer adds nothing all the same, the two were equal to the service.
    let is_of_another = key.is_some_and(|key| key.stands_on_another_request);
    let repeats = || {
        if is_of_another {
            State::Replayed
        } else {
            stands_elsewhere(lost)
        }
    };

    // Interface: a clarification is "200, billed 0, served by none".
    if receipt.input_required.is_some()
        && receipt.served_by == Some(ServedBy::None)
        && reported == Some(MicroUsd::ZERO)
    {
        return State::Settled {
            billed: MicroUsd::ZERO,
        };
    }
    if receipt.replayed {
        if reported.is_some_and(is_positive) {
            anomalies.push(Anomaly::AmountOnReplay);
        }
        // The service has the purchase stored. It is the one that stands there where this entry bought none.
        let is_theirs = key.is_some_and(|key| key.stands_under_another_organization);
        return if is_theirs && own_are_idle(&outcome.attempts, index, true) {
            State::Replayed
        } else {
            repeats()
        };
    }

    match (reported, known) {
        (Some(billed), None) if is_positive(billed) => {
            if is_of_another {
                anomalies.push(Anomaly::SecondAmountForKey);
            }
            State::Settled { billed }
        }
        (Some(billed), Some(first)) if is_positive(billed) => {
            if billed != first {
                anomalies.push(Anomaly::SecondAmountForKey);
            }
            State::Replayed
        }
        (Some(billed), _) if others_are_idle(&outcome.attempts, index, key) => {
            State::Settled { billed }
        }
        // A 0 beside another attempt that may have run: a repeat the service does not mark.
        (Some(_), _) => repeats(),
        (None, _) => stands_elsewhere(match (outcome.cut_by, end_at(outcome, index)) {
            (Some(reason), _) => State::InDoubt { reason },
            (None, AttemptEnd::Broken) => State::InDoubt {
                reason: InDoubt::StreamDrop,
            },
            (None, _) => State::Unreported,
        }),
    }
}

/// The state of an entry that got no 2xx head, or one that broke before a later refusal.
fn unanswered(outcome: &Outcome, keyed: bool) -> State {
    let attempts = &outcome.attempts;
    // No attempts *known*: the task that made them died with what it knew.
    if let Some(reason @ (InDoubt::Crash | InDoubt::Damaged)) = outcome.cut_by
        && attempts.is_empty()
    {
        return State::InDoubt { reason };
    }
    let Some(ambiguous) = last_that_may_have_run(attempts, keyed) else {
        return State::Failed;
    };

    let cut_by = outcome
        .cut_by
        .filter(|_| ambiguous.checked_add(1) == Some(attempts.len()));
    let reason = match end_at(outcome, ambiguous) {
        AttemptEnd::Refused => InDoubt::NoResponse,
        AttemptEnd::Gateway => InDoubt::Gateway,
        AttemptEnd::Broken => cut_by.unwrap_or(InDoubt::StreamDrop),
        _ => cut_by.unwrap_or(InDoubt::NoResponse),
    };
    State::InDoubt { reason }
}

/// Whether one of these attempts may have run, or what they ask for runs still (rule I4). What the entry
/// is worth, the answer to its app, and whether a limit stops its repeat follow from this one answer.
pub fn may_have_run(attempts: &[Attempt], keyed: bool) -> bool {
    last_that_may_have_run(attempts, keyed).is_some()
}

fn last_that_may_have_run(attempts: &[Attempt], keyed: bool) -> Option<usize> {
    let may_have_run = attempts.iter().rposition(|attempt| !ran_nothing(attempt));
    may_have_run.or_else(|| {
        // Interface, Idempotency-Key: a 409 means that the first request of the key still runs. What was
        // sent after it got another answer under the same key.
        let was_sent = |attempt: &Attempt| attempt.end != AttemptEnd::NotSent;
        let last = attempts.iter().rposition(was_sent)?;
        let is_conflict = attempts.get(last)?.status == Some(409);
        (keyed && is_conflict).then_some(last)
    })
}

fn end_at(outcome: &Outcome, index: usize) -> AttemptEnd {
    outcome
        .attempts
        .get(index)
        .map_or(AttemptEnd::NoHead, |attempt| attempt.end)
}

/// Not sent, or a complete non-2xx: nothing was billed for it (rule I4).
fn ran_nothing(attempt: &Attempt) -> bool {
    matches!(attempt.end, AttemptEnd::NotSent | AttemptEnd::Refused)
}

fn is_positive(amount: MicroUsd) -> bool {
    !amount.is_zero()
}

#[cfg(test)]
mod tests;
