use super::*;
use crate::ledger::entry::{Anomaly, InDoubt};
use crate::money::MicroUsd;
use crate::protocol::Operation;

fn sum(micro_usd: u64) -> MicroUsdSum {
    MicroUsd::new(micro_usd).into()
}

/// 1000 are known; a chat answer cost 100 at most.
fn known() -> Period {
    Period {
        billed: sum(1000),
        dearest: [(Operation::Chat, MicroUsd::new(100))].into(),
        ..Period::default()
    }
}

/// A malformed receipt is an anomaly, and its entry is unreported: it explains once.
#[test]
fn an_anomaly_that_held_no_amount_back_is_no_reason() {
    let window = Period {
        anomalies: [(Anomaly::Malformed, 1)].into(),
        ..known()
    };
    assert_eq!(compare(sum(1001), &window).reasons, []);
}

#[test]
fn what_is_not_known_explains_up_to_its_bound_and_on_its_side_only() {
    let chat = |unknown, count| Period {
        unknown: [((unknown, Operation::Chat), count)].into(),
        ..known()
    };
    let crash = Unknown::InDoubt(InDoubt::Crash);
    let agent = Period {
        unknown: [((Unknown::Unreported, Operation::AgentTurn), 1)].into(),
        ..known()
    };
    let odd = Period {
        anomalies: [(Anomaly::SecondAmountForKey, 1)].into(),
        not_added: sum(30),
        ..known()
    };
    let damaged = Period {
        damaged: 1,
        ..known()
    };
    let edges = Period {
        before_since: sum(5),
        after_until: sum(6),
        after_since: sum(7),
        before_until: sum(8),
        ..known()
    };
    use Conclusion::{Equal, Explained, Unexplained};
    let rows: Vec<(&str, Period, u64, Conclusion, u64)> = vec![
        ("nothing unknown, equal", known(), 1000, Equal, 0),
        ("nothing unknown, higher", known(), 1001, Unexplained, 1),
        ("nothing unknown, lower", known(), 999, Unexplained, 1),
        ("equal beside a doubt", chat(crash, 2), 1000, Equal, 0),
        ("two doubts", chat(crash, 2), 1200, Explained, 0),
        ("two doubts and more", chat(crash, 2), 1201, Unexplained, 1),
        (
            "a doubt is no reason to be lower",
            chat(crash, 2),
            999,
            Unexplained,
            1,
        ),
        ("one in flight", chat(Unknown::Open, 1), 1100, Explained, 0),
        (
            "one in flight and more",
            chat(Unknown::Open, 1),
            1150,
            Unexplained,
            50,
        ),
        (
            "an operation without any price",
            agent.clone(),
            9_000_000,
            Explained,
            0,
        ),
        ("and lower", agent, 900, Unexplained, 100),
        (
            "an unreported one beside priced ones of its operation",
            chat(Unknown::Unreported, 1),
            9_000_000,
            Explained,
            0,
        ),
        ("a second amount", odd.clone(), 1030, Explained, 0),
        ("a second amount and more", odd, 1031, Unexplained, 1),
        ("damage", damaged.clone(), 9_000_000, Explained, 0),
        ("damage and lower", damaged, 1, Unexplained, 999),
        ("just outside", edges.clone(), 1011, Explained, 0),
        ("just outside and more", edges.clone(), 1012, Unexplained, 1),
        ("just inside", edges.clone(), 985, Explained, 0),
        ("just inside and more", edges, 984, Unexplained, 1),
    ];
    for (name, window, service, conclusion, unexplained) in rows {
        let compared = compare(sum(service), &window);
        assert_eq!(compared.conclusion, conclusion, "{name}");
        assert_eq!(compared.unexplained, sum(unexplained), "{name}");
        assert_eq!(compared.difference, i128::from(service) - 1000, "{name}");
    }
}

/// What only entries without a price can explain is an amount of its own, and never "not explained".
#[test]
fn what_rests_on_unreported_entries_alone_is_an_amount_beside_the_verdict() {
    let unreported = ((Unknown::Unreported, Operation::Chat), 3);
    let crash = ((Unknown::InDoubt(InDoubt::Crash), Operation::Chat), 1);
    let window = |unknown: &[((Unknown, Operation), u64)]| Period {
        unknown: unknown.iter().copied().collect(),
        ..known()
    };
    let rows = [
        (window(&[]), 1040, 40, 0),
        (window(&[crash]), 1040, 0, 0),
        (window(&[crash]), 1140, 40, 0),
        (window(&[crash, unreported]), 1040, 0, 0),
        (window(&[crash, unreported]), 1140, 0, 40),
        (window(&[unreported]), 1040, 0, 40),
        (window(&[unreported]), 960, 40, 0),
    ];
    for (window, service, unexplained, unbounded) in rows {
        let compared = compare(sum(service), &window);
        let found = (compared.unexplained, compared.unbounded);
        assert_eq!(
            found,
            (sum(unexplained), sum(unbounded)),
            "{service}: {window:?}"
        );
    }
}

#[test]
fn every_kind_that_is_there_is_named_with_its_bound() {
    let window = Period {
        unknown: [
            ((Unknown::InDoubt(InDoubt::Gateway), Operation::Chat), 3),
            ((Unknown::Unreported, Operation::Speech), 2),
        ]
        .into(),
        ..known()
    };
    let reasons = serde_json::to_value(compare(sum(1), &window).reasons).unwrap();
    let wanted = serde_json::json!([
        {"kind": "in_doubt", "detail": "gateway, chat", "count": 3, "at_most_micro_usd": 300,
         "service_is": "higher"},
        {"kind": "unreported", "detail": "speech", "count": 2, "at_most_micro_usd": null,
         "service_is": "higher"},
    ]);
    assert_eq!(reasons, wanted);
}
