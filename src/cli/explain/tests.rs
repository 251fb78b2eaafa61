use serde_json::{Value, json};

use super::*;
use crate::admin::documents::sample;
use crate::admin::explain::ExplainedEntry;

fn explained(others: &Value) -> ExplainedEntry {
    let mut members = json!({
        "app": "notes", "model": "a\u{1b}[31mb", "stream": false, "key": "bursar-1",
        "key_hash": null, "key_origin": "minted", "at_ms": 1_700_000_000_000_u64,
        "state": "settled", "request_id": "req-9", "specialist": "coding", "escalated": "false",
        "route_version": null, "input_required": null, "audio_ms": null, "delivery": null,
        "would_have_cost_micro_usd": null, "response_bytes": null, "was": null, "run": null,
        "usage": {"prompt_tokens": 12, "completion_tokens": 34},
        "attempts": [
            {"end": "refused", "status": 503, "wait_ms": 0, "took_ms": 12},
            {"end": "no_head", "wait_ms": 500, "took_ms": 1003, "cause": "reset"},
            {"end": "answered", "status": 200, "wait_ms": 1000, "took_ms": 210,
             "receipt_lines": ["x-service-billed: 42", "x-service-served-by: specialist"]},
        ],
        "closed": [{"by": "app", "stage": "waiting", "after_ms": 512}],
        "timings": {"queue_ms": 0, "first_byte_ms": 2700, "total_ms": 2725, "own_us": 1234},
        "why": "Because.", "what_would_settle": null, "odd": ["Odd."],
    });
    for (name, value) in others.as_object().into_iter().flatten() {
        members[name] = value.clone();
    }
    let mut document = sample::members();
    for (name, value) in members.as_object_mut().unwrap() {
        document.insert(name.clone(), value.take());
    }
    document.retain(|_, value| !value.is_null());
    serde_json::from_value(Value::Object(document)).unwrap()
}

fn timeline_of(others: &Value) -> String {
    timeline::of(&explained(others), &TimeZone::UTC).to_string()
}

#[test]
fn an_entry_is_printed_in_the_order_in_which_it_happened() {
    assert_eq!(
        timeline_of(&json!({})),
        "entry         018f3c00-0000-7000-8000-000000000001\n\
         began         2023-11-14 22:13:20 (UTC)\n\
         app           notes\n\
         request       chat, inference lane, model a\\u{1b}[31mb, 120 bytes\n\
         session       =1+1.0b0b0b0b\n\
         user          +2\n\
         tags          customer=@3\n\
         key           bursar-1 (minted by bursar)\n\
         attempts      1. at once: 503, failed at the service, took 0.012 s\n\
         \x20             2. after 0.500 s: sent, and no answer came (the connection was reset), took 1.003 s\n\
         \x20             3. after 1.000 s: 200, answered whole, took 0.210 s\n\
         \x20                  x-service-billed: 42\n\
         \x20                  x-service-served-by: specialist\n\
         refused with  engine fell over\n\
         closed        the app left before an answer came, 0.512 s after the request came\n\
         request id    req-9\n\
         trace         4bf92f3577b34da6a3ce929d0e0e4736\n\
         spoken        messages\n\
         left out      cache_control ×4, top_k\n\
         answer        served by specialist (coding), not escalated, 12 tokens in, 34 tokens out\n\
         state         settled, $0.000042\n\
         why           Because.\n\
         odd           Odd.\n\
         times         queue 0.000 s, first byte after 2.700 s, in all 2.725 s, bursar's own 1.234 ms\n"
    );
}

#[test]
fn an_amount_that_is_not_known_is_said_to_be_not_known() {
    let text = timeline_of(&json!({
        "state": "in_doubt", "reason": "no_response", "billed_micro_usd": null,
        "what_would_settle": "An answer.", "key": null, "key_origin": null,
    }));

    assert!(
        text.contains("state         in doubt (no response), amount not known\n"),
        "{text}"
    );
    assert!(text.contains("settles it    An answer.\n"), "{text}");
    assert!(text.contains("key           none: "), "{text}");
    assert!(!text.contains("$0.000000"), "{text}");
}

#[test]
fn a_key_that_is_not_shown_is_not_taken_for_none() {
    let hidden = timeline_of(&json!({"key": null}));
    assert!(
        hidden.contains("key           not shown on a port; "),
        "{hidden}"
    );
    let hash = timeline_of(&json!({"key": null, "key_hash": "0a".repeat(32)}));
    assert!(
        hash.contains("key           longer than 256 characters, "),
        "{hash}"
    );
}

#[test]
fn evidence_and_adoption_name_what_came_before() {
    let text = timeline_of(&json!({
        "key_origin": {"adopted": {"from": "018f3c00-0000-7000-8000-00000000000b"}},
        "was": "in_doubt", "was_reason": "client_gone", "reconciled_ms": 1_700_000_060_000_u64,
    }));

    assert!(
        text.contains("(taken over from entry 00000000000b, "),
        "{text}"
    );
    assert!(
        text.contains("came 2023-11-14 22:14:20; until then it was in doubt (client gone)"),
        "{text}"
    );
}

#[test]
fn an_answer_that_was_not_received_says_so_and_where_its_key_went() {
    let [c, d] = ["c", "d"].map(|end| format!("018f3c00-0000-7000-8000-00000000000{end}"));
    let rows = [
        (
            json!({"delivery": "missed", "adopted_by": [&c]}),
            "the app did not receive the answer; its key went on to entry 00000000000c\n"
                .to_owned(),
        ),
        (
            json!({"delivery": "late"}),
            "an equal request of the app was given the answer later\n".to_owned(),
        ),
        (
            json!({"adopted_by": [c, d]}),
            "its key went on to entry 00000000000c, 00000000000d\n".to_owned(),
        ),
    ];
    for (members, wanted) in rows {
        let text = timeline_of(&members);
        assert!(text.contains(&format!("delivery      {wanted}")), "{text}");
    }
}

#[test]
fn a_purchase_of_one_entry_is_not_printed_twice() {
    let line = |end: &str, billed: Value, state: &str| {
        json!({"id": format!("018f3c00-0000-7000-8000-00000000000{end}"),
               "at": null, "at_ms": 1_700_000_000_000_u64, "app": "notes", "operation": "chat",
               "state": state, "billed_micro_usd": billed})
    };
    let purchase = |not_known: usize, entries: &[Value]| -> KeyPurchase {
        let document = json!({"key": "k", "billed_micro_usd": 42, "not_known": not_known,
                              "entries": entries});
        serde_json::from_value(document).unwrap()
    };
    let settled = || line("a", json!(42), "settled");
    let one = purchase(0, &[settled()]);
    let two = purchase(1, &[line("b", Value::Null, "in_doubt"), settled()]);

    assert_eq!(
        all_of_the_key(&one, 1, &TimeZone::UTC, &Look::unlimited()),
        None
    );
    let text = all_of_the_key(&two, 1, &TimeZone::UTC, &Look::unlimited()).expect("two entries");
    assert!(
        text.starts_with(
            "\nall of this key: billed $0.000042 in 2 entries, 1 of them with an amount that is not \
             known\n"
        ),
        "{text}"
    );
    assert!(text.contains("unknown  in_doubt"), "{text}");
}
