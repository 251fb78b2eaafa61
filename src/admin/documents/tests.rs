use std::collections::BTreeMap;

use serde_json::json;

use super::*;

pub mod sample;

fn sums() -> (SpendQuestion, Spend) {
    let row = SpendRow {
        labels: BTreeMap::from([(GroupBy::App, "agent".to_owned())]),
        requests: 3,
        billed_micro_usd: MicroUsd::new(1_234).into(),
        in_doubt: 1,
        ..SpendRow::default()
    };
    let total = SpendRow {
        labels: BTreeMap::new(),
        // Many entries of the largest amount.
        would_have_cost_micro_usd: MicroUsdSum::from_micro_usd(u128::from(u64::MAX)),
        ..row.clone()
    };
    let asked = SpendQuestion {
        since_ms: Some(1_700_000_000_000),
        until_ms: None,
        by: vec![GroupBy::App],
        zone: TimeZone::UTC,
    };
    let spend = Spend {
        rows: vec![row],
        total,
        damaged: 0,
        is_rounded: false,
        listed_since_ms: None,
    };
    (asked, spend)
}

#[test]
fn spend_is_one_flat_object_with_its_rows() {
    let (asked, spend) = sums();
    let figures = "\"compared\":0,\"compared_billed_micro_usd\":0,\
        \"compared_would_have_cost_micro_usd\":0,\"saved_micro_usd\":null,\"drained_micro_usd\":0,\
        \"settled\":0,\"reconciled\":0,\"in_doubt\":1,\"unreported\":0,\"failed\":0,\"replayed\":0,\
        \"open\":0,\"prompt_tokens\":0,\"completion_tokens\":0,\"total_tokens\":0,\"audio_ms\":0,\
        \"audio_untold\":0";
    let wanted = format!(
        "{{\"since\":\"2023-11-14T22:13:20.000Z\",\"until\":null,\"time_zone\":\"UTC\",\"by\":[\"app\"],\
         \"requests\":3,\"billed_micro_usd\":1234,\"would_have_cost_micro_usd\":{},{figures},\
         \"damaged\":0,\"rounded\":false,\"rows\":[{{\"app\":\"agent\",\"requests\":3,\
         \"billed_micro_usd\":1234,\"would_have_cost_micro_usd\":0,{figures}}}]}}",
        u64::MAX
    );

    let text = serde_json::to_string(&SpendDocument::new(&asked, spend)).unwrap();

    assert_eq!(text, wanted);
    let read: SpendDocument = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), text);
}

#[test]
fn a_figure_that_is_missing_is_not_zero_and_one_that_is_not_known_is_passed_over() {
    let (asked, spend) = sums();
    let whole = object(&SpendDocument::new(&asked, spend)).unwrap();
    let read = |members: Map<String, Value>| {
        serde_json::from_value::<SpendDocument>(Value::Object(members))
    };

    for name in [
        "requests",
        "billed_micro_usd",
        "compared",
        "damaged",
        "rows",
    ] {
        let mut members = whole.clone();
        members.remove(name);
        let error = read(members).expect_err(name).to_string();
        assert!(error.contains(name), "{name}: {error}");
    }
    // A daemon of a later release says more.
    let mut members = whole;
    members.insert("weather".to_owned(), json!("fine"));
    members["rows"][0]["weather"] = json!(7);
    let read = read(members).unwrap();
    assert_eq!(read.rows[0].labels[&GroupBy::App], "agent");
    assert!(read.total.labels.is_empty());
}

#[test]
fn the_document_of_an_entry_keeps_every_field_and_reads_back() {
    let entry = sample::entry(&json!({}));
    let shown = format!("{entry:?}").replace("kept_key: None", "");
    assert!(!shown.contains("None"), "the sample lacks a field: {shown}");

    let text = serde_json::to_string(&EntryDocument(entry)).unwrap();
    assert_eq!(text, sample::text());
}

#[test]
fn a_state_is_a_word_with_its_amount_or_its_reason_beside_it() {
    let rows = [
        (
            json!({"state": "open", "billed_micro_usd": null}),
            State::Open,
        ),
        (
            json!({"state": "settled", "billed_micro_usd": 0}),
            State::Settled {
                billed: MicroUsd::ZERO,
            },
        ),
        (
            json!({"state": "failed", "billed_micro_usd": 0}),
            State::Failed,
        ),
        (
            json!({"state": "replayed", "billed_micro_usd": 0}),
            State::Replayed,
        ),
        (
            json!({"state": "unreported", "billed_micro_usd": null}),
            State::Unreported,
        ),
        (
            json!({"state": "in_doubt", "reason": "client_gone", "billed_micro_usd": null}),
            State::InDoubt {
                reason: InDoubt::ClientGone,
            },
        ),
    ];
    for (members, state) in rows {
        let entry = sample::entry(&members);
        assert_eq!(entry.state, state);
        let document = object(&EntryDocument(entry)).unwrap();
        for name in ["state", "reason"] {
            assert_eq!(document.get(name), members.get(name), "{state:?}");
        }
    }
    for word in ["settled", "in_doubt", "lost"] {
        let mut members = sample::members();
        members.insert("state".to_owned(), word.into());
        members.remove("billed_micro_usd");
        assert!(EntryDocument::try_from(members).is_err(), "{word}");
    }
}

#[test]
fn other_users_read_no_keys() {
    let listing = Listing {
        entries: vec![sample::entry(&json!({}))],
        last_seq: Some(12),
    };

    let text = serde_json::to_string(&ReceiptsDocument::from(listing).without_keys()).unwrap();

    assert!(
        !text.contains("\"key\"") && !text.contains("\"key_hash\""),
        "{text}"
    );
    assert!(text.contains("\"key_origin\""), "{text}");
    assert!(text.ends_with("\"last_seq\":12}"), "{text}");
}

#[test]
fn a_status_says_what_it_knows() {
    let status = StatusDocument {
        version: "1".to_owned(),
        ..StatusDocument::default()
    };

    let adding_up = status.clone().with_totals(&Totals::default(), true);
    let whole = status.with_totals(&Totals::default(), false);

    let text = |status: &StatusDocument| serde_json::to_string(status).unwrap();
    assert_eq!(
        text(&whole),
        "{\"version\":\"1\",\"pid\":0,\"started\":null,\"uptime_s\":0,\"draining\":false,\
         \"in_flight\":0,\"anonymous\":false,\"proxy\":[],\"upstream\":\"\",\
         \"key\":{\"answered\":null,\"accepted\":null,\"refused\":null,\"balance_empty\":null},\"traffic\":{\"waiting\":0,\
         \"at_service\":0,\"in_flight_limit\":null,\"per_minute_limit\":null,\"held_back_by\":[]},\
         \"config\":null,\"waits_for_restart\":[],\
         \"billed_micro_usd\":0,\"drained_micro_usd\":0,\"requests\":0,\"in_doubt\":0,\"unreported\":0,\
         \"ledger\":{\"state_dir\":\"\",\"writable\":false,\"unavailable\":null,\"last_commit\":null,\
         \"commits\":0,\"journal_bytes\":0,\"index_lag_records\":0,\"adding_up\":false,\
         \"quarantined\":0,\"unwritten_waiting\":0,\"unwritten_dropped\":0},\"fleet\":null}"
    );
    assert_eq!(adding_up.billed_micro_usd, None);
    assert!(text(&adding_up).contains("\"requests\":null"));
    // A daemon that says little is a daemon all the same.
    let little = r#"{"ledger":{"state_dir":"/var/lib/bursar"}}"#;
    let read: StatusDocument = serde_json::from_str(little).unwrap();
    assert_eq!(read.ledger.state_dir, "/var/lib/bursar");
}
