use super::*;
use crate::{money::MicroUsd, store::Store};
use std::collections::BTreeMap;

fn micro(amount: u64) -> MicroUsd {
    MicroUsd::new(amount).unwrap()
}

fn debit(amount: u64) -> Mutation {
    Mutation::Debit {
        debit: Box::new(Debit {
            n: 1,
            org: "org-1".to_owned(),
            key: None,
            route: "/v1/chat/completions".to_owned(),
            amount_micro_usd: micro(amount),
            request_id: "req_1".to_owned(),
            at: "2026-01-01T00:00:00Z".to_owned(),
            stream: false,
            body_fingerprint: String::new(),
        }),
        dropped: None,
        key: None,
    }
}

fn withdrawn(amount: u64) -> Mutation {
    match debit(amount) {
        Mutation::Debit { debit, dropped, .. } => Mutation::Withdrawn { debit, dropped },
        other => other,
    }
}

fn store_with(balance: Option<MicroUsd>, debited: MicroUsd) -> Store {
    let store = Store::open(None).unwrap();
    let totals = Totals {
        balances: balance
            .map(|b| ("org-1".to_owned(), b))
            .into_iter()
            .collect(),
        debited,
        debits_made: 3,
    };
    store.put(SINGLES, TOTALS, &totals).unwrap();
    store
}

fn on_disk(store: &Store) -> (BTreeMap<String, MicroUsd>, MicroUsd, u64, usize) {
    let totals: Totals = store.get(SINGLES, TOTALS).unwrap().unwrap();
    let lines = store.all::<Debit>(DEBITS).unwrap().len();
    (totals.balances, totals.debited, totals.debits_made, lines)
}

#[test]
fn a_debit_that_does_not_fit_is_an_error_and_changes_nothing_on_disk() {
    let lowest = micro(0).checked_sub(micro(i64::MAX as u64)).unwrap();
    let rows = [
        (Some(lowest), micro(0), "the balance"),
        (Some(micro(9)), MicroUsd::MAX, "the sum of the debits"),
        (None, micro(0), "an organization without a balance"),
    ];
    for (balance, debited, why) in rows {
        let store = store_with(balance, debited);
        let before = on_disk(&store);

        let other = Mutation::Balance("org-2".to_owned(), micro(5));
        let written = store.write(|batch| {
            other.apply(batch)?;
            debit(7).apply(batch)
        });

        assert!(matches!(written, Err(StoreError::Books(_))), "{why}");
        assert_eq!(on_disk(&store), before, "{why}");
    }
}

#[test]
fn a_withdrawn_debit_is_undone_on_disk_if_it_came_there_and_else_nothing() {
    let store = store_with(Some(micro(100)), micro(40));
    let before = on_disk(&store);

    store.write(|batch| withdrawn(7).apply(batch)).unwrap();
    assert_eq!(on_disk(&store), before);

    store.write(|batch| debit(7).apply(batch)).unwrap();
    assert_eq!(on_disk(&store).1, micro(47));
    for _ in 0..2 {
        store.write(|batch| withdrawn(7).apply(batch)).unwrap();
        assert_eq!(on_disk(&store), before);
    }
}
