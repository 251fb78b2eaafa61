use super::*;
use crate::cli::demo::books::Debit;
use crate::money::MicroUsd;

fn sum(micro_usd: u64) -> MicroUsdSum {
    MicroUsd::new(micro_usd).into()
}

fn debit(key: &str, route: &str, micro_usd: u64) -> Debit {
    Debit {
        key: Some(key.to_owned()),
        route: route.to_owned(),
        request_id: "req".to_owned(),
        amount: MicroUsd::new(micro_usd),
    }
}

#[test]
fn a_difference_shows_which_sum_is_larger() {
    assert_eq!(difference(sum(5), sum(5)), "$0.000000");
    assert_eq!(difference(sum(8), sum(5)), "+$0.000003");
    assert_eq!(difference(sum(5), sum(1_000_006)), "-$1.000001");
}

#[test]
fn a_debit_that_the_ledger_does_not_know_is_wrong_twice() {
    let books = ServiceBooks {
        debits: vec![debit("k", "/v1/chat/completions", 12)],
    };

    let reckoning = Reckoning::of(&Spend::default(), &[], &books);

    assert_eq!(reckoning.difference(), "-$0.000012");
    assert_eq!(
        reckoning.wrong(),
        [
            "under key k the ledger has $0.000000, the books have $0.000012",
            "the ledger knows $0.000000, the books say $0.000012",
        ]
    );
    assert!(reckoning.table().to_string().contains("chat"));
}

#[test]
fn what_is_not_known_is_counted_beside_the_difference() {
    let total = SpendRow {
        requests: 2,
        unreported: 2,
        ..SpendRow::default()
    };
    let spend = Spend {
        total,
        ..Spend::default()
    };

    let reckoning = Reckoning::of(&spend, &[], &ServiceBooks { debits: Vec::new() });

    assert_eq!(
        reckoning.difference(),
        "$0.000000; 2 unreported (the service does not report their price)"
    );
    assert_eq!(reckoning.wrong(), ["2 unreported"]);
}
