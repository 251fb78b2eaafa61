use super::*;
use crate::admin::documents::sample;

/// With a minted key, delivered, not escalated and without an estimate, unless said otherwise.
fn entry_of(others: &Value) -> EntryView {
    let mut members = json!({
        "escalated": "false", "key_origin": "minted", "delivery": null,
        "would_have_cost_micro_usd": null,
    });
    for (name, value) in others.as_object().into_iter().flatten() {
        members[name] = value.clone();
    }
    sample::entry(&members)
}

#[test]
fn a_run_is_the_sum_of_its_entries() {
    let mut receipt = RunReceipt::new();
    for entry in [
        json!({"state": "settled", "billed_micro_usd": 40, "would_have_cost_micro_usd": 100,
            "escalated": "false"}),
        json!({"state": "settled", "billed_micro_usd": 2, "escalated": "true",
            "key_origin": {"adopted": {"from": "018f3c00-0000-7000-8000-000000000009"}}}),
        json!({"state": "reconciled", "billed_micro_usd": 5, "would_have_cost_micro_usd": 7,
            "delivery": "late"}),
        json!({"state": "settled", "billed_micro_usd": 3, "escalated": "unknown"}),
        json!({"state": "replayed", "billed_micro_usd": 0}),
        json!({"state": "failed", "billed_micro_usd": 0}),
        json!({"state": "in_doubt", "reason": "crash", "billed_micro_usd": null}),
        json!({"state": "unreported", "billed_micro_usd": null}),
        json!({"state": "open", "billed_micro_usd": null}),
    ] {
        receipt.add(&entry_of(&entry));
    }

    let document = receipt.document("r", "nightly", Some(MicroUsd::new(2_000_000)));
    let wanted = json!({
        "run": "r", "app": "nightly", "max_micro_usd": 2_000_000, "requests": 9,
        "billed_micro_usd": 50, "escalated": 1, "escalated_unknown": 1, "saved_retries": 2, "joined": 1, "adopted": 1, "replayed": 1,
        "failed": 1, "in_doubt": 1, "unreported": 1, "open": 1, "compared": 1,
        "would_have_cost_micro_usd": 100, "saved_micro_usd": 60,
    });
    assert_eq!(document, wanted);
    let text = receipt.text("r", "nightly", Some(MicroUsd::new(2_000_000)));
    assert_eq!(
        text,
        "bursar: run r of nightly has ended\n\
         bursar:   requests                9\n\
         bursar:   billed                  $0.000050 of $2.000000\n\
         bursar:   escalated               1 (1 did not report it)\n\
         bursar:   retries saved           2 (1 joined, 1 adopted)\n\
         bursar:   saved against frontier  $0.000060 (1 answer carries both prices)\n\
         bursar:   replayed, billed 0      1\n\
         bursar:   failed, billed 0        1\n\
         bursar:   in doubt                1\n\
         bursar:   without a price         1\n\
         bursar:   not ended yet           1"
    );
}

#[test]
fn what_cannot_be_known_is_not_printed_as_a_number() {
    let mut dearer = RunReceipt::new();
    dearer.add(&entry_of(
        &json!({"state": "settled", "billed_micro_usd": 9, "would_have_cost_micro_usd": 8}),
    ));
    assert_eq!(dearer.compared.saved(), None);
    let text = dearer.text("r", "a", None);
    assert!(
        text.ends_with(
            "nothing: 1 answer cost $0.000009, a frontier model would have cost $0.000008"
        ),
        "{text}"
    );
    // The five figures stand there also when each is nothing.
    assert_eq!(
        RunReceipt::new().text("r", "a", None),
        "bursar: run r of a has ended\n\
         bursar:   requests                0\n\
         bursar:   billed                  $0.000000\n\
         bursar:   escalated               0\n\
         bursar:   retries saved           0\n\
         bursar:   saved against frontier  not known: no answer carries both prices"
    );
    let mut beyond = RunReceipt::new();
    for _ in 0..2 {
        beyond.add(&entry_of(
            &json!({"state": "settled", "billed_micro_usd": u64::MAX}),
        ));
    }
    assert_eq!(
        beyond.document("r", "a", None)["billed_micro_usd"],
        Value::Null
    );
}
