use std::sync::Arc;

use super::{Effect, MicroUsdSum, Totals};
use crate::ledger::entry::{AttemptEnd, State};
use crate::ledger::fixtures::{START_MS, billed, ended, labels};
use crate::ledger::id::EntryId;
use crate::ledger::record::{Record, Verdict};
use crate::ledger::sums::{OTHER, SPECIALISTS_MAX};
use crate::money::MicroUsd;
use crate::protocol::receipt::Receipt;
use crate::protocol::{Escalated, Reported};

fn answered(receipt: Receipt, state: State) -> Record {
    let id = EntryId(uuid::Uuid::nil());
    let verdict = Verdict {
        state,
        adds_micro_usd: state.adds(),
        anomalies: Vec::new(),
    };
    let outcome = ended(id, AttemptEnd::Answered, receipt);
    Record::Outcome(Arc::new(outcome), labels(START_MS, None), verdict)
}

fn settled(amount: u64) -> State {
    State::Settled {
        billed: MicroUsd::new(amount),
    }
}

#[test]
fn a_sum_of_largest_amounts_does_not_overflow_and_survives_json() {
    let mut sum = MicroUsdSum::default();
    for _ in 0..3 {
        sum.add(MicroUsd::new(u64::MAX));
    }

    let text = serde_json::to_string(&sum).unwrap();

    assert_eq!(sum.get(), 3 * u128::from(u64::MAX));
    assert_eq!(serde_json::from_str::<MicroUsdSum>(&text).unwrap(), sum);
    assert_eq!(sum.as_amount(), None);
    assert_eq!(
        MicroUsdSum::from(MicroUsd::new(1_234_567)).to_string(),
        "$1.234567"
    );
}

#[test]
fn i5_estimates_and_replays_never_enter_the_billed_sum() {
    let mut totals = Totals::default();
    let first = Receipt {
        would_have_cost: Reported::Value(MicroUsd::new(900)),
        escalated: Escalated::True,
        ..billed(100)
    };
    let again = Receipt {
        replayed: true,
        ..first.clone()
    };

    for record in [
        answered(first, settled(100)),
        answered(again, State::Replayed),
    ] {
        totals += &Effect::of(&record).unwrap();
    }

    let row = totals.lines.values().next().unwrap();
    assert_eq!((row.billed.get(), row.would_have_cost.get()), (100, 900));
    assert_eq!(
        (row.requests, row.settled, row.replayed, row.replays),
        (2, 1, 1, 1)
    );
    assert_eq!(row.answers[&Escalated::True], 2);
}

#[test]
fn i10_what_was_drained_is_a_part_of_what_was_billed() {
    let mut totals = Totals::default();
    for (micro_usd, drained) in [(100, false), (20, true), (3, true)] {
        let mut record = answered(billed(micro_usd), settled(micro_usd));
        if let Record::Outcome(outcome, ..) = &mut record {
            Arc::make_mut(outcome).drained = drained;
        }
        totals += &Effect::of(&record).unwrap();
    }

    assert_eq!((totals.billed().get(), totals.drained().get()), (123, 23));
    // Rows of an index that an earlier release wrote have none.
    let row = serde_json::to_string(totals.lines.values().next().unwrap()).unwrap();
    let earlier = row.replace(",\"drained\":23", "");
    assert_ne!(earlier, row);
    assert!(
        serde_json::from_str::<super::LineSums>(&earlier)
            .unwrap()
            .drained
            .is_zero()
    );
}

/// An image carries no estimate; put beside its price, the estimates of other answers would say that nothing was
/// saved.
#[test]
fn only_answers_with_both_prices_are_compared() {
    let both = |billed_: u64, estimate: u64| Receipt {
        would_have_cost: Reported::Value(MicroUsd::new(estimate)),
        ..billed(billed_)
    };
    let unreported = Receipt {
        would_have_cost: Reported::Value(MicroUsd::new(70)),
        ..Receipt::default()
    };
    let replay = Receipt {
        replayed: true,
        ..both(40, 100)
    };
    let mut totals = Totals::default();
    for record in [
        answered(both(40, 100), settled(40)),
        answered(both(8, 20), settled(8)),
        answered(billed(5_000), settled(5_000)),
        answered(unreported, State::Unreported),
        answered(replay, State::Replayed),
    ] {
        totals += &Effect::of(&record).unwrap();
    }

    let compared = totals.compared();
    assert_eq!(
        (
            compared.answers,
            compared.billed.get(),
            compared.frontier.get()
        ),
        (2, 48, 120)
    );
    assert_eq!(compared.saved(), Some(MicroUsdSum::from_micro_usd(72)));
    assert_eq!(
        compared.to_string(),
        "$0.000072 (2 answers carry both prices)"
    );
    assert_eq!(totals.billed().get(), 5_048, "they are in no other sum");

    // A compacted line of an earlier release has none of it: not compared, and not "saved 0".
    let row = serde_json::to_string(totals.lines.values().next().unwrap()).unwrap();
    let member = row.find(",\"compared\":{").unwrap();
    let end = member + row[member..].find('}').unwrap() + 1;
    let earlier = [&row[..member], &row[end..]].concat();
    let earlier: super::LineSums = serde_json::from_str(&earlier).unwrap();
    assert_eq!(earlier.would_have_cost.get(), 190);
    assert_eq!(earlier.compared.saved(), None);
    assert_eq!(
        earlier.compared.to_string(),
        "not known: no answer carries both prices"
    );
}

#[test]
fn i11_specialist_categories_beyond_the_first_32_share_a_name() {
    let mut totals = Totals::default();
    for number in 0..40 {
        let receipt = Receipt {
            specialist: Some(format!("category-{number}")),
            ..billed(1)
        };
        totals += &Effect::of(&answered(receipt, settled(1))).unwrap();
    }

    let specialists = &totals.globals.specialists;
    assert_eq!(specialists.len(), SPECIALISTS_MAX + 1);
    assert_eq!(specialists[OTHER], 8);
}
