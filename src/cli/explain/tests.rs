use serde_json::json;

use super::*;

fn entry() -> Value {
    json!({
        "id": "0190aaaa-0000-7000-8000-000000000001", "at_ms": 1_700_000_000_000u64,
        "app": "notes", "lane": "inference", "operation": "chat", "stream": false,
        "model": "a\u{1b}[31mb", "key": "bursar-1", "key_origin": "minted",
        "request_bytes": 120, "state": "settled", "billed_micro_usd": 42,
        "attempts": [
            {"end": "refused", "status": 503, "wait_ms": 0, "took_ms": 12},
            {"end": "no_head", "wait_ms": 500, "took_ms": 1003, "cause": "reset"},
            {"end": "answered", "status": 200, "wait_ms": 1000, "took_ms": 210,
             "receipt_lines": ["x-service-billed: 42", "x-service-served-by: specialist"]},
        ],
        "closed": [{"by": "app", "stage": "waiting", "after_ms": 512}],
        "request_id": "req-9", "served_by": "specialist", "specialist": "coding",
        "escalated": "false", "usage": {"prompt_tokens": 12, "completion_tokens": 34},
        "why": "Because.", "what_would_settle": null, "odd": ["Odd."],
        "timings": {"queue_ms": 0, "first_byte_ms": 2700, "total_ms": 2725, "own_us": 1234},
    })
}

#[test]
fn an_entry_is_told_in_the_order_in_which_it_happened() {
    let told = timeline::told(&entry(), &TimeZone::UTC);

    assert_eq!(
        told,
        "entry         0190aaaa-0000-7000-8000-000000000001\n\
         began         2023-11-14 22:13:20 (UTC)\n\
         app           notes\n\
         request       chat, inference lane, model a\\u{1b}[31mb, 120 bytes\n\
         key           bursar-1 (minted by bursar)\n\
         attempts      1. at once: 503, refused by the service, took 0.012 s\n\
         \x20             2. after 0.500 s: sent, and no answer came (the connection was reset), took 1.003 s\n\
         \x20             3. after 1.000 s: 200, answered whole, took 0.210 s\n\
         \x20                  x-service-billed: 42\n\
         \x20                  x-service-served-by: specialist\n\
         closed        the app left before an answer came, 0.512 s after the request came\n\
         request id    req-9\n\
         answer        served by specialist (coding), not escalated, 12 tokens in, 34 tokens out\n\
         state         settled, $0.000042\n\
         why           Because.\n\
         odd           Odd.\n\
         times         queue 0.000 s, first byte after 2.700 s, in all 2.725 s, bursar's own 1.234 ms\n"
    );
}

#[test]
fn an_amount_that_is_not_known_is_said_to_be_not_known() {
    let mut doubt = entry();
    doubt["state"] = json!("in_doubt");
    doubt["reason"] = json!("no_response");
    doubt["billed_micro_usd"] = Value::Null;
    doubt["what_would_settle"] = json!("An answer.");
    doubt["key"] = Value::Null;
    doubt["key_origin"] = Value::Null;

    let told = timeline::told(&doubt, &TimeZone::UTC);

    assert!(
        told.contains("state         in doubt (no response), amount not known\n"),
        "{told}"
    );
    assert!(told.contains("settles it    An answer.\n"), "{told}");
    assert!(told.contains("key           none: "), "{told}");
    assert!(!told.contains("$0.000000"), "{told}");
}

#[test]
fn evidence_and_adoption_name_what_came_before() {
    let mut later = entry();
    later["key_origin"] = json!({"adopted": {"from": "0190bbbb"}});
    later["was"] = json!("in_doubt");
    later["was_reason"] = json!("client_gone");
    later["reconciled_ms"] = json!(1_700_000_060_000u64);

    let told = timeline::told(&later, &TimeZone::UTC);

    assert!(told.contains("(taken over from entry 0190bbbb, "), "{told}");
    assert!(
        told.contains("came 2023-11-14 22:14:20; until then it was in doubt (client gone)"),
        "{told}"
    );
}

#[test]
fn an_answer_that_was_not_received_says_so_and_where_its_key_went() {
    let rows = [
        (
            json!({"delivery": "missed", "adopted_by": ["0190cccc"]}),
            "the app did not receive the answer; its key went on to entry 0190cccc\n",
        ),
        (
            json!({"delivery": "late"}),
            "an equal request of the app was given the answer later\n",
        ),
        (
            json!({"adopted_by": ["0190cccc", "0190dddd"]}),
            "its key went on to entry 0190cccc, 0190dddd\n",
        ),
    ];
    for (told, wanted) in rows {
        let mut lost = entry();
        for (name, value) in told.as_object().expect("members") {
            lost[name] = value.clone();
        }
        let told = timeline::told(&lost, &TimeZone::UTC);
        assert!(told.contains(&format!("delivery      {wanted}")), "{told}");
    }
}

#[test]
fn a_purchase_of_one_entry_is_not_told_twice() {
    let line = |id: &str, billed: Value, state: &str| {
        json!({"id": id, "at_ms": 1_700_000_000_000u64, "app": "notes", "operation": "chat",
               "state": state, "billed_micro_usd": billed})
    };
    let one = json!({"key": "k", "billed_micro_usd": 42, "not_known": 0,
                     "entries": [line("a", json!(42), "settled")]});
    let two = json!({"key": "k", "billed_micro_usd": 42, "not_known": 1,
                     "entries": [line("a", Value::Null, "in_doubt"), line("b", json!(42), "settled")]});

    assert_eq!(told_purchase(&one, 1, &TimeZone::UTC), "");
    let told = told_purchase(&two, 1, &TimeZone::UTC);
    assert!(
        told.starts_with(
            "\nall of this key: billed $0.000042 in 2 entries, 1 of them with an amount that is not \
             known\n"
        ),
        "{told}"
    );
    assert!(told.contains("unknown  in_doubt"), "{told}");
}
