//! The books and the ledger side by side: everything that the service meters, through bursar, some of it
//! failing, and the sums of each operation agree to the micro-dollar.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bursar::ledger::entry::State;
use bursar::ledger::query::EntryView;
use bursar_sandbox::{Options, Settings, Synthesis};
use serde_json::{Value, json};

use super::stage::{
    COMPARISON, FORM, RUNS, SPEECH, TRANSCRIPTIONS, amount, ask, form, is_over, new_set, post,
    rows, run_of, seen, spend, spend_said,
};
use crate::support::{Answer, Bursar, Sandbox};

const CHAT: &str = "/v1/chat/completions";
const AGENT: &str = "/agent/v1/chat/completions";
const ENDPOINTS: &str = "/v1/endpoints";

/// Routes that are billed, with their operation, and whether bursar asks again after a 500.
const METERED: [(&str, &str, bool); 10] = [
    (CHAT, "chat", true),
    (AGENT, "agent_turn", true),
    ("/v1/embeddings", "embeddings", true),
    ("/v1/rerank", "rerank", true),
    ("/v1/images/generations", "image_generation", true),
    ("/v1/images/edits", "image_edit", true),
    (TRANSCRIPTIONS, "transcription", false),
    (SPEECH, "speech", false),
    (COMPARISON, "frontier_comparison", false),
    (RUNS, "eval_run", false),
];

/// One request of a route: how it is sent, and whether its answer carries a price.
struct Purchase {
    path: &'static str,
    headers: Vec<(&'static str, &'static str)>,
    body: Vec<u8>,
    reports_price: bool,
}

// === impl Purchase ===

impl Purchase {
    fn new(path: &'static str, body: &Value) -> Self {
        Self {
            path,
            headers: Vec::new(),
            body: body.to_string().into_bytes(),
            reports_price: true,
        }
    }

    fn unpriced(path: &'static str, body: &Value) -> Self {
        Self {
            reports_price: false,
            ..Self::new(path, body)
        }
    }

    async fn buy(&self, bursar: &Bursar) -> Answer {
        ask(bursar.address, "POST", self.path, &self.headers, &self.body).await
    }
}

fn turn(text: &str, stream: bool) -> Value {
    json!({"model": "auto", "stream": stream, "messages": [{"role": "user", "content": text}]})
}

/// One or more of each route. The picture is the service's own.
fn purchases(set: &str, endpoint: &str, picture: &[u8]) -> Vec<Purchase> {
    let image = json!({"model": "auto", "prompt": "a red circle", "size": "64x48"});
    let edit = form(&[
        ("prompt", None, b"change the red to blue"),
        ("image", Some("a.png"), picture),
    ]);
    let sound = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let sound = std::fs::read(sound.join("sandbox/tests/fixtures/tone.mp3")).expect("a sound");
    let sound = json!({"audio_base64": STANDARD.encode(sound)});
    let direct =
        json!({"model": endpoint, "messages": [{"role": "user", "content": "Ann, a@b.c"}]});
    let compared = json!({"model": "frontier-a", "messages": [{"role": "user", "content": "hi"}]});
    vec![
        Purchase::new(CHAT, &turn("What is 2 + 3?", false)),
        Purchase::new(CHAT, &turn("hard: why is the sky blue?", false)),
        Purchase::new(CHAT, &turn("What is 4 + 5?", true)),
        Purchase::new(CHAT, &turn("hard: why is grass green?", true)),
        // A configured model has no price.
        Purchase::unpriced(CHAT, &direct),
        Purchase::new(AGENT, &turn("What is 2 + 3?", false)),
        Purchase::unpriced(AGENT, &turn("What is 4 + 5?", true)),
        Purchase::new(
            "/v1/embeddings",
            &json!({"model": "auto", "input": ["a sea", "a lake"]}),
        ),
        Purchase::new(
            "/v1/rerank",
            &json!({"model": "auto", "query": "water", "documents": ["a sea", "a rock"]}),
        ),
        Purchase::new("/v1/images/generations", &image),
        Purchase {
            headers: vec![FORM],
            body: edit,
            ..Purchase::new("/v1/images/edits", &Value::Null)
        },
        Purchase::unpriced(TRANSCRIPTIONS, &sound),
        Purchase::unpriced(SPEECH, &json!({"text": "Rivers run."})),
        Purchase::new(COMPARISON, &compared),
        Purchase::new(RUNS, &run_of(set)),
    ]
}

async fn stage(lines: &str) -> (Sandbox, Bursar, Vec<Purchase>) {
    let sandbox = Sandbox::with(Options {
        settings: Settings {
            synthesis: Synthesis::BuiltIn,
            endpoint_stage_ms: 0,
            ..Settings::default()
        },
        ..Options::default()
    })
    .await;
    let bursar = Bursar::with(&sandbox.url(), lines).await;
    let set = new_set(bursar.address, &[], 2).await;
    let task = json!({"task": "contact-extraction", "name": "mine"});
    let deployed = post(bursar.address, ENDPOINTS, &task).await;
    assert!(
        deployed.text().contains("event: complete"),
        "{}",
        deployed.text()
    );
    let image = json!({"model": "auto", "prompt": "a red circle", "size": "64x48"});
    let drawn = post(bursar.address, "/v1/images/generations", &image).await;
    let picture = drawn.json()["data"][0]["b64_json"].clone();
    let picture = STANDARD.decode(picture.as_str().expect("a picture"));
    let bought = purchases(&set, "mine", &picture.expect("base64"));
    (sandbox, bursar, bought)
}

/// The books by operation: the debits of answers that carried a price, and of the others.
#[derive(Debug, Default, PartialEq, Eq)]
struct Side {
    reported: u64,
    unpriced: u64,
    unpriced_count: u64,
}

fn operation_of(route: &str) -> &'static str {
    let found = METERED.iter().find(|(path, ..)| *path == route);
    found.unwrap_or_else(|| panic!("a debit of {route}")).1
}

/// Sorts each debit by the ledger's entry that it belongs to.
async fn books(sandbox: &Sandbox, entries: &[EntryView]) -> BTreeMap<&'static str, Side> {
    let mut books: BTreeMap<&'static str, Side> = BTreeMap::new();
    for debit in sandbox.debits().await {
        let route = debit["route"].as_str().expect("a route");
        let side = books.entry(operation_of(route)).or_default();
        let entry = entry_of(&debit, entries);
        if entry.billed_micro_usd.is_some() {
            side.reported += amount(&debit);
        } else {
            side.unpriced += amount(&debit);
            side.unpriced_count += 1;
        }
    }
    books
}

/// The entry of a debit: by its key, its request id, or the run that the debit is of.
fn entry_of<'a>(debit: &Value, entries: &'a [EntryView]) -> &'a EntryView {
    let id = debit["request_id"].as_str().expect("an id");
    let run = id.split('/').next();
    let key = debit["key"].as_str();
    let found = entries.iter().find(|entry| {
        (key.is_some() && entry.key.as_deref() == key)
            || entry.request_id.as_deref() == Some(id)
            || (entry.run_id.is_some() && entry.run_id.as_deref() == run)
    });
    found.unwrap_or_else(|| panic!("a debit without an entry: {debit}"))
}

/// Ledger, command line and metrics, of each operation, beside the books.
async fn agrees(sandbox: &Sandbox, bursar: &Bursar) -> BTreeMap<&'static str, Side> {
    let books = books(sandbox, &bursar.entries()).await;
    let document = spend(&bursar.state_dir(), "operation").await;
    let by_operation = rows(&document, "operation");
    for (_, operation, _) in METERED {
        let (row, side) = (&by_operation[operation], &books[operation]);
        assert_eq!(row["billed_micro_usd"], side.reported, "{operation}: {row}");
        let unknown = row["unreported"].as_u64().zip(row["in_doubt"].as_u64());
        let (unreported, in_doubt) = unknown.expect("counts");
        assert_eq!(
            unreported + in_doubt,
            side.unpriced_count,
            "{operation}: {row}"
        );
        let label = format!("operation=\"{operation}\"");
        let metric = bursar.metric("bursar_billed_usd_total", &label);
        assert!(
            (metric - side.reported as f64 / 1e6).abs() < 1e-9,
            "{operation}: {metric}"
        );
        let metric = bursar.metric("bursar_unreported_requests", &label);
        assert!(
            (metric - unreported as f64).abs() < 1e-9,
            "{operation}: {metric}"
        );
    }
    let reported: u64 = books.values().map(|side| side.reported).sum();
    let unpriced: u64 = books.values().map(|side| side.unpriced).sum();
    assert_eq!(document["billed_micro_usd"], reported);
    assert_eq!(bursar.billed(), reported);
    assert_eq!(sandbox.debited().await, reported + unpriced);
    books
}

/// The started runs are over, and were polled through bursar.
async fn look_for_runs(sandbox: &Sandbox, bursar: &Bursar) {
    let entries = bursar.entries();
    for run in entries.iter().filter_map(|entry| entry.run_id.as_deref()) {
        seen(sandbox, run, is_over).await;
        let path = format!("{RUNS}/{run}");
        assert_eq!(
            ask(bursar.address, "GET", &path, &[], b"").await.status,
            200
        );
    }
}

#[tokio::test]
async fn the_books_agree_for_every_operation_while_some_of_each_fail() {
    let (sandbox, bursar, bought) = stage("").await;
    for purchase in &bought {
        let name = purchase.path;
        // Wrong in itself, then a service that fails, then well.
        for (status, is_retried) in [(422, false), (500, true)] {
            let fault =
                json!({"match": {"path": name, "method": "POST"}, "fault": {"status": status}});
            sandbox.control("/sandbox/faults", fault).await;
            let answer = purchase.buy(&bursar).await;
            let keyed = METERED
                .iter()
                .any(|(path, _, keyed)| *path == name && *keyed);
            let wanted = if is_retried && keyed { 200 } else { status };
            assert_eq!(answer.status, wanted, "{name}: {}", answer.text());
        }
        let answer = purchase.buy(&bursar).await;
        assert_eq!(answer.status, 200, "{name}: {}", answer.text());
        assert!(answer.complete, "{name}");
        let state = bursar
            .settled(1)
            .await
            .into_iter()
            .next_back()
            .expect("an entry")
            .state;
        let waits = purchase.path == RUNS;
        let is_known = matches!(state, State::Settled { .. });
        assert_eq!(
            is_known,
            purchase.reports_price && !waits,
            "{name}: {state:?}"
        );
    }
    look_for_runs(&sandbox, &bursar).await;

    let books = agrees(&sandbox, &bursar).await;

    // Each operation was billed, and each answer with a price carried it.
    for (path, operation, keyed) in METERED {
        let side = &books[operation];
        let reports_price = bought
            .iter()
            .any(|one| one.path == path && one.reports_price);
        assert_eq!(side.reported > 0, reports_price, "{operation}: {side:?}");
        let unpriced = bought
            .iter()
            .filter(|one| one.path == path && !one.reports_price);
        // A keyed one succeeded after its 500 as well.
        let times = if keyed { 2 } else { 1 };
        assert_eq!(
            side.unpriced_count,
            unpriced.count() as u64 * times,
            "{operation}"
        );
    }
    // Nothing reports the price of a deploy; here it costs nothing.
    let document = spend(&bursar.state_dir(), "operation").await;
    let by_operation = rows(&document, "operation");
    assert_eq!(by_operation["deploy"]["unreported"], 1);
    assert_eq!(by_operation.len(), METERED.len() + 1, "{document}");

    let table = spend_said(&bursar.state_dir(), &["--by", "operation"]).await;
    for (operation, row) in &by_operation {
        let line = table
            .lines()
            .find(|line| line.split(' ').next() == Some(operation));
        let line = line.unwrap_or_else(|| panic!("{operation}: {table}"));
        let cells: Vec<&str> = line.split_whitespace().collect();
        let billed = row["billed_micro_usd"].as_u64().expect("an amount");
        let billed = format!("${}.{:06}", billed / 1_000_000, billed % 1_000_000);
        let count = |name: &str| row[name].as_u64().expect("a count").to_string();
        let shown = [
            operation.as_str(),
            &count("requests"),
            &billed,
            &count("in_doubt"),
            &count("unreported"),
        ];
        assert_eq!(cells[..5], shown, "{table}");
    }

    // The same after a restart, from the index or without it.
    let bursar = bursar.restart("").await;
    assert_eq!(agrees(&sandbox, &bursar).await, books);
}

/// Lost replies: what the books have more is in doubt, entry by entry, and never in the sum.
#[tokio::test]
async fn what_the_books_have_more_after_lost_replies_is_what_is_in_doubt() {
    let (sandbox, bursar, bought) = stage("[retry]\nattempts = 1\n").await;
    for purchase in &bought {
        let name = purchase.path;
        let fault = json!({
            "match": {"path": name, "method": "POST"}, "fault": {"cut_before_head": true},
        });
        if name != RUNS {
            sandbox.control("/sandbox/faults", fault).await;
            let lost = purchase.buy(&bursar).await;
            assert_eq!(
                lost.code(),
                Some("outcome_unknown"),
                "{name}: {}",
                lost.text()
            );
        }
    }
    let lost = sandbox.debits().await.len() - 1;
    assert_eq!(lost, bought.len() - 1, "the picture, and every lost one");
    // Without an answer there is no request id; entries without a key are distinguished by their
    // operation alone.
    let entries = bursar.entries();
    let in_doubt = |entry: &&EntryView| matches!(entry.state, State::InDoubt { .. });
    assert_eq!(entries.iter().filter(in_doubt).count(), lost);
    let document = spend(&bursar.state_dir(), "operation").await;
    let by_operation = rows(&document, "operation");
    for debit in sandbox.debits().await {
        let operation = operation_of(debit["route"].as_str().expect("a route"));
        let row = &by_operation[operation];
        let picture = u64::from(operation == "image_generation");
        assert_eq!(
            row["billed_micro_usd"].as_u64() > Some(0),
            picture == 1,
            "{row}"
        );
        let of_route = |one: &&Purchase| operation_of(one.path) == operation;
        let wanted = bought.iter().filter(of_route).count();
        assert_eq!(row["in_doubt"], wanted, "{operation}: {row}");
    }

    // Each is requested again: a keyed one under its key, and nothing is billed twice there.
    let before = sandbox.debits().await.len();
    for purchase in &bought {
        let answer = purchase.buy(&bursar).await;
        assert_eq!(answer.status, 200, "{}: {}", purchase.path, answer.text());
    }
    look_for_runs(&sandbox, &bursar).await;
    let debits = sandbox.debits().await;
    let again: Vec<&Value> = debits[before..].iter().collect();
    let unkeyed = [TRANSCRIPTIONS, SPEECH, COMPARISON, RUNS, "/v1/images/edits"];
    for debit in again {
        let route = debit["route"].as_str().expect("a route");
        // A form's boundary is the same here, so that the edit is recognised.
        let expected = unkeyed.contains(&route) && route != "/v1/images/edits";
        assert!(expected, "bought twice: {debit}");
    }
}
