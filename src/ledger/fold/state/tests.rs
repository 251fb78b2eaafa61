//! The fold as a table: each row is a promise.

mod beside;
mod doubts;
mod replays;

use super::{KeyView, fold};
use crate::ledger::entry::Anomaly::{
    AmountOnFailure, AmountOnReplay, ConflictingAmounts, Malformed, SecondAmountForKey,
};
use crate::ledger::entry::AttemptEnd::{Answered, Broken, Gateway, NoHead, NotSent, Refused};
use crate::ledger::entry::InDoubt::{
    self, ClientGone, NoResponse, ReplayLostAmount, Shutdown, StreamDrop,
};
use crate::ledger::entry::{Anomaly, Attempt, AttemptEnd, State};
use crate::ledger::fixtures::{attempt, billed, outcome, refused};
use crate::ledger::id::EntryId;
use crate::money::MicroUsd;
use crate::protocol::receipt::Receipt;
use crate::protocol::{Reported, ServedBy};

/// One row: what was seen, and what it comes to.
struct Row {
    promise: &'static str,
    attempts: Vec<Attempt>,
    receipt: Receipt,
    cut_by: Option<InDoubt>,
    broken_billed: Option<u64>,
    key: Option<KeyView>,
    state: State,
    anomalies: Vec<Anomaly>,
}

/// A key that nothing else is known of.
const FRESH: Option<KeyView> = Some(KeyView {
    amount: None,
    is_unreported: false,
    stands_on_another_request: false,
    stands_under_another_organization: false,
    others_may_have_run: false,
});

/// A key of which another entry may have run.
const SHARED: Option<KeyView> = Some(KeyView {
    amount: None,
    is_unreported: false,
    stands_on_another_request: false,
    stands_under_another_organization: false,
    others_may_have_run: true,
});

/// A key of which another entry was answered whole without an amount.
const UNREPORTED: Option<KeyView> = Some(KeyView {
    amount: None,
    is_unreported: true,
    stands_on_another_request: false,
    stands_under_another_organization: false,
    others_may_have_run: true,
});

/// A key whose amount, 1234, stands on another entry.
const KNOWN: Option<KeyView> = Some(KeyView {
    amount: Some(MicroUsd::new(1234)),
    is_unreported: false,
    stands_on_another_request: false,
    stands_under_another_organization: false,
    others_may_have_run: true,
});

fn row(
    promise: &'static str,
    ends: &[AttemptEnd],
    receipt: Receipt,
    key: Option<KeyView>,
    state: State,
) -> Row {
    Row {
        promise,
        attempts: ends.iter().map(|end| attempt(*end)).collect(),
        receipt,
        cut_by: None,
        broken_billed: None,
        key,
        state,
        anomalies: Vec::new(),
    }
}

impl Row {
    fn cut_by(mut self, reason: InDoubt) -> Self {
        self.cut_by = Some(reason);
        self
    }

    fn with_broken_billed(mut self, amount: u64) -> Self {
        self.broken_billed = Some(amount);
        self
    }

    fn attempts(mut self, attempts: Vec<Attempt>) -> Self {
        self.attempts = attempts;
        self
    }

    fn anomaly(mut self, anomaly: Anomaly) -> Self {
        self.anomalies.push(anomaly);
        self
    }
}

fn check(rows: Vec<Row>) {
    for row in rows {
        let mut outcome = outcome(EntryId(uuid::Uuid::nil()), row.attempts, row.receipt);
        outcome.cut_by = row.cut_by;
        outcome.broken_billed = row.broken_billed.map(MicroUsd::new);

        let settlement = fold(&outcome, row.key.as_ref());

        assert_eq!(settlement.state, row.state, "{}", row.promise);
        assert_eq!(settlement.anomalies, row.anomalies, "{}", row.promise);
    }
}

fn settled(amount: u64) -> State {
    State::Settled {
        billed: MicroUsd::new(amount),
    }
}

fn in_doubt(reason: InDoubt) -> State {
    State::InDoubt { reason }
}

fn empty_receipt() -> Receipt {
    Receipt::default()
}

fn malformed() -> Receipt {
    Receipt {
        billed: Reported::Malformed,
        ..Receipt::default()
    }
}

fn replayed(amount: u64) -> Receipt {
    Receipt {
        replayed: true,
        ..billed(amount)
    }
}

fn clarification() -> Receipt {
    Receipt {
        input_required: Some("which_account".to_owned()),
        served_by: Some(ServedBy::None),
        ..billed(0)
    }
}

#[test]
fn i3_a_key_is_billed_once() {
    let s = State::Replayed;
    check(vec![
        row(
            "the first positive amount settles",
            &[Answered],
            billed(1234),
            FRESH,
            settled(1234),
        ),
        row(
            "also while others may have run",
            &[NoHead, Answered],
            billed(9),
            SHARED,
            settled(9),
        ),
        row(
            "an equal amount later adds nothing",
            &[Answered],
            billed(1234),
            KNOWN,
            s,
        ),
        row(
            "a different amount later adds nothing",
            &[Answered],
            billed(99),
            KNOWN,
            s,
        )
        .anomaly(SecondAmountForKey),
        row(
            "without a key every amount settles",
            &[Answered],
            billed(5),
            None,
            settled(5),
        ),
        row(
            "conflicting amounts: the first stands",
            &[Answered],
            Receipt {
                conflicting_amounts: 1,
                ..billed(7)
            },
            FRESH,
            settled(7),
        )
        .anomaly(ConflictingAmounts),
    ]);
}

#[test]
fn i3_a_zero_settles_only_when_nothing_else_may_have_run() {
    let lost = in_doubt(ReplayLostAmount);
    check(vec![
        row("alone", &[Answered], billed(0), FRESH, settled(0)),
        row("without a key", &[Answered], billed(0), None, settled(0)),
        row(
            "after attempts that ran nothing",
            &[NotSent, Refused, Answered],
            billed(0),
            FRESH,
            settled(0),
        ),
        row(
            "not after one without an answer",
            &[NoHead, Answered],
            billed(0),
            FRESH,
            lost,
        ),
        row(
            "not after one that broke",
            &[Broken, Answered],
            billed(0),
            FRESH,
            lost,
        ),
        row(
            "not after a gateway's error",
            &[Gateway, Answered],
            billed(0),
            FRESH,
            lost,
        ),
        row(
            "not while another entry may have run",
            &[Answered],
            billed(0),
            SHARED,
            lost,
        ),
        row(
            "it is the known amount's repeat",
            &[Answered],
            billed(0),
            KNOWN,
            State::Replayed,
        ),
        row(
            "not after a 409: the first was running then",
            &[],
            billed(0),
            FRESH,
            lost,
        )
        .attempts(vec![refused(409), attempt(Answered)]),
        row(
            "a clarification is free in any case",
            &[NoHead, Answered],
            clarification(),
            SHARED,
            settled(0),
        ),
    ]);
}

#[test]
fn i4_a_failure_is_free_and_one_ambiguous_attempt_is_a_doubt() {
    check(vec![
        row(
            "nothing was tried",
            &[],
            empty_receipt(),
            FRESH,
            State::Failed,
        ),
        row(
            "nothing was tried and the app left",
            &[],
            empty_receipt(),
            FRESH,
            State::Failed,
        )
        .cut_by(ClientGone),
        row(
            "what was tried is not known",
            &[],
            empty_receipt(),
            FRESH,
            in_doubt(InDoubt::Crash),
        )
        .cut_by(InDoubt::Crash),
        row(
            "nothing was sent",
            &[NotSent, NotSent],
            empty_receipt(),
            FRESH,
            State::Failed,
        ),
        row(
            "all were refused",
            &[Refused, Refused],
            empty_receipt(),
            FRESH,
            State::Failed,
        ),
        row(
            "refused, and the app left in the pause",
            &[Refused],
            empty_receipt(),
            None,
            State::Failed,
        )
        .cut_by(ClientGone),
        row(
            "an amount on a failure adds nothing",
            &[Refused],
            billed(10),
            FRESH,
            State::Failed,
        )
        .anomaly(AmountOnFailure),
        row(
            "a zero on a failure is as expected",
            &[Refused],
            billed(0),
            FRESH,
            State::Failed,
        ),
        row(
            "no answer",
            &[NoHead],
            empty_receipt(),
            FRESH,
            in_doubt(NoResponse),
        ),
        row(
            "no answer, then a refusal",
            &[NoHead, Refused],
            empty_receipt(),
            FRESH,
            in_doubt(NoResponse),
        ),
        row(
            "no answer before the app left",
            &[NoHead],
            empty_receipt(),
            FRESH,
            in_doubt(ClientGone),
        )
        .cut_by(ClientGone),
        row(
            "no answer before the shutdown",
            &[NoHead],
            empty_receipt(),
            None,
            in_doubt(Shutdown),
        )
        .cut_by(Shutdown),
        row(
            "the cut is the last attempt's, not the first's",
            &[NoHead, Refused],
            empty_receipt(),
            FRESH,
            in_doubt(NoResponse),
        )
        .cut_by(ClientGone),
        row(
            "a gateway may come after the work",
            &[Gateway],
            empty_receipt(),
            None,
            in_doubt(InDoubt::Gateway),
        ),
        row(
            "and its amount is not believed",
            &[Gateway],
            billed(3),
            None,
            in_doubt(InDoubt::Gateway),
        )
        .anomaly(AmountOnFailure),
        row(
            "a 409 says that the first still runs",
            &[],
            empty_receipt(),
            FRESH,
            in_doubt(NoResponse),
        )
        .attempts(vec![refused(409)]),
        row(
            "also when the next try was not sent",
            &[],
            empty_receipt(),
            FRESH,
            in_doubt(NoResponse),
        )
        .attempts(vec![refused(409), attempt(NotSent)]),
        row(
            "without a key a 409 is a conflict",
            &[],
            empty_receipt(),
            None,
            State::Failed,
        )
        .attempts(vec![refused(409)]),
        row(
            "in doubt and the amount stands elsewhere",
            &[NoHead],
            empty_receipt(),
            KNOWN,
            State::Replayed,
        ),
    ]);
}

#[test]
fn i5_absent_malformed_and_zero_are_three_things() {
    check(vec![
        row(
            "absent",
            &[Answered],
            empty_receipt(),
            FRESH,
            State::Unreported,
        ),
        row(
            "malformed",
            &[Answered],
            malformed(),
            FRESH,
            State::Unreported,
        )
        .anomaly(Malformed),
        row("zero", &[Answered], billed(0), FRESH, settled(0)),
        row(
            "absent, the amount is known",
            &[Answered],
            empty_receipt(),
            KNOWN,
            State::Replayed,
        ),
        row(
            "absent, as it was of the key's first answer",
            &[Answered],
            empty_receipt(),
            UNREPORTED,
            State::Replayed,
        ),
        row(
            "absent and broken, beside a first answer without an amount",
            &[Broken],
            empty_receipt(),
            UNREPORTED,
            in_doubt(StreamDrop),
        ),
        row(
            "absent, and we cut it",
            &[Answered],
            empty_receipt(),
            FRESH,
            in_doubt(ClientGone),
        )
        .cut_by(ClientGone),
        row(
            "absent, and it broke",
            &[Broken],
            empty_receipt(),
            FRESH,
            in_doubt(StreamDrop),
        ),
        row(
            "absent, and we broke it",
            &[Broken],
            empty_receipt(),
            None,
            in_doubt(Shutdown),
        )
        .cut_by(Shutdown),
        row(
            "malformed, and it broke",
            &[Broken],
            malformed(),
            FRESH,
            in_doubt(StreamDrop),
        )
        .anomaly(Malformed),
        row(
            "reported before it broke",
            &[Broken],
            billed(40),
            FRESH,
            settled(40),
        ),
        row(
            "reported before it broke, no answer after",
            &[Broken, NoHead],
            billed(40),
            FRESH,
            settled(40),
        ),
        row(
            "zero before it broke",
            &[Broken],
            billed(0),
            FRESH,
            settled(0),
        ),
        row(
            "zero before it broke, others may have run",
            &[NoHead, Broken],
            billed(0),
            FRESH,
            in_doubt(ReplayLostAmount),
        ),
        row(
            "broken, then refused: the refusal's amount is not believed",
            &[Broken, Refused],
            billed(40),
            FRESH,
            in_doubt(StreamDrop),
        )
        .anomaly(AmountOnFailure),
    ]);
}
