//! `bursar demo --full`, the real binary: all seven parts, the account at the end read again from
//! outside, and exit code 1 if another program spends, or the service lies, while it runs.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{ExitStatus, Stdio};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout};
use tokio::time::timeout;

use super::{STORY_MAX, demo, fact, left_behind};
use crate::support::daemon::{Signal, send};

const PARTS: [&str; 7] = [
    "inference",
    "agent lane",
    "task catalog",
    "evals",
    "speech",
    "metrics and frontier comparison",
    "endpoints",
];

/// Operations that are billed, each touched by the story.
const OPERATIONS: [&str; 10] = [
    "agent_turn",
    "chat",
    "deploy",
    "embeddings",
    "eval_run",
    "frontier_comparison",
    "image_generation",
    "rerank",
    "speech",
    "transcription",
];

#[tokio::test]
async fn the_full_story_goes_through_all_seven_parts_and_fits_a_terminal() {
    let tmp = tempfile::tempdir().expect("a directory");
    let mut command = demo(tmp.path(), &["--full", "--once"]);
    let output = timeout(STORY_MAX, command.output())
        .await
        .expect("the story ends")
        .expect("the demo runs");

    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*stderr), (Some(0), ""), "{text}");
    for (at, part) in PARTS.iter().enumerate() {
        let heading = format!("part {}/7, {part}: ", at + 1);
        assert!(text.contains(&heading), "{heading:?}:\n{text}");
    }
    for operation in OPERATIONS {
        let row = format!("\n{operation} ");
        assert!(text.contains(&row), "{operation}:\n{text}");
    }
    assert!(!text.contains("WRONG"), "{text}");
    assert!(text.contains("3 attempts (503, 503, 200)"), "{text}");
    let said: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "served by frontier, escalated from",
        "in the session demo-full",
        "quality score 1.000",
        "26 steps in 7 parts did what they say",
    ] {
        assert!(said.contains(words), "{words:?}:\n{text}");
    }
    let widest = text.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(80), "{widest:?}:\n{text}");
    assert!(!text.contains('\x1b'), "a pipe gets no colours:\n{text}");
    assert_eq!(left_behind(tmp.path()), Vec::<std::path::PathBuf>::new());
}

fn amount(row: &Value, name: &str) -> u64 {
    let amount = row[name].as_u64();
    amount.unwrap_or_else(|| panic!("no {name} in {row}"))
}

/// Sums of the books' debits by path.
fn debited(books: &Value) -> BTreeMap<&str, u64> {
    let mut sums = BTreeMap::new();
    for debit in books["debits"].as_array().expect("debits") {
        let route = debit["route"].as_str().expect("a route");
        *sums.entry(route).or_default() += amount(debit, "amount_micro_usd");
    }
    sums
}

async fn get(url: String) -> Value {
    let answer = reqwest::get(url).await.expect("an answer");
    answer.json().await.expect("JSON")
}

#[tokio::test]
async fn the_full_accounts_figures_are_those_of_the_ledger_and_the_books() {
    let tmp = tempfile::tempdir().expect("a directory");
    let mut child = demo(tmp.path(), &["--full", "--json"])
        .spawn()
        .expect("the demo starts");
    let stdout = child.stdout.take().expect("a pipe");
    let mut lines = BufReader::new(stdout).lines();
    let line = timeout(STORY_MAX, lines.next_line())
        .await
        .expect("the story ends")
        .expect("a line")
        .expect("a document");
    let document: Value = serde_json::from_str(&line).expect("JSON");
    let url = |name: &str| document[name].as_str().expect("a URL").to_owned();
    let books = get(url("books")).await;
    let spend = get(format!(
        "{}/api/spend?by=operation&since_ms=0",
        url("admin")
    ))
    .await;
    send(&child, Signal::INT);
    let status = timeout(STORY_MAX, child.wait())
        .await
        .expect("it ends")
        .expect("a status");
    assert_eq!(status.code(), Some(0), "{document:#}");

    assert_eq!(document["wrong"], json!([]));
    let steps = document["steps"].as_array().expect("steps");
    let parts: BTreeSet<(u64, &str)> = steps
        .iter()
        .map(|step| (amount(step, "part"), step["name"].as_str().expect("a name")))
        .collect();
    assert_eq!(parts, (1..).zip(PARTS).collect());

    // The paths of the interface, spelled here.
    let paths = [
        ("agent_turn", "/agent/v1/chat/completions"),
        ("chat", "/v1/chat/completions"),
        ("deploy", "/v1/endpoints"),
        ("embeddings", "/v1/embeddings"),
        ("eval_run", "/v1/eval-runs"),
        ("frontier_comparison", "/v1/playground/frontier"),
        ("image_generation", "/v1/images/generations"),
        ("rerank", "/v1/rerank"),
        ("speech", "/v1/audio/speech"),
        ("transcription", "/v1/audio/transcriptions"),
    ];
    let debited = debited(&books);
    let rows = document["operations"].as_array().expect("operations");
    let spent = spend["rows"].as_array().expect("rows");
    assert_eq!((rows.len(), spent.len(), paths.len()), (10, 10, 10));
    for ((row, spent), (operation, path)) in rows.iter().zip(spent).zip(paths) {
        assert_eq!(
            (&row["operation"], &spent["operation"]),
            (&json!(operation), &json!(operation))
        );
        let booked = debited.get(path).copied().unwrap_or(0);
        assert_eq!(amount(row, "books_micro_usd"), booked, "{row}");
        assert_eq!(row["ledger_micro_usd"], spent["billed_micro_usd"], "{row}");
        assert_eq!(row["requests"], spent["requests"], "{row}");
        assert_eq!(row["unreported"], spent["unreported"], "{row}");
        let told = amount(row, "ledger_micro_usd");
        let untold = amount(row, "unreported_books_micro_usd");
        assert_eq!(told + untold, booked, "{row}");
        // Operations without an amount: speech both ways, deploys, calls to an endpoint.
        let silent = ["deploy", "speech", "transcription", "chat"].contains(&operation);
        assert_eq!(amount(row, "unreported") > 0, silent, "{row}");
        let sounds = operation == "speech" || operation == "transcription";
        assert_eq!(amount(row, "unreported_audio_ms") > 500, sounds, "{row}");
        assert_eq!(booked > 0, operation != "deploy", "{row}");
    }
    let total = &document["total"];
    assert_eq!(
        amount(total, "books_micro_usd"),
        amount(&books, "debited_micro_usd")
    );
    assert_eq!(total["ledger_micro_usd"], spend["billed_micro_usd"]);
    assert_eq!((&spend["in_doubt"], &spend["open"]), (&json!(0), &json!(0)));
}

/// A running demo, read up to the line that says where the books are.
struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    /// `http://ADDRESS` of the service.
    service: String,
}

impl Running {
    async fn start(tmp: &std::path::Path) -> Self {
        let mut child = demo(tmp, &["--full", "--once"])
            .stderr(Stdio::null())
            .spawn()
            .expect("the demo starts");
        let stdout = child.stdout.take().expect("a pipe");
        let mut lines = BufReader::new(stdout).lines();
        let found = async {
            loop {
                let line = lines.next_line().await.expect("a line");
                let line = line.expect("the demo is up");
                if line.contains("/sandbox/books") {
                    let url = fact(&line, "books").to_owned();
                    return url.replace("/sandbox/books", "");
                }
            }
        };
        let service = timeout(STORY_MAX, found).await.expect("it starts");
        Self {
            child,
            lines,
            service,
        }
    }

    /// What it prints from here on, and how it ends.
    async fn end(mut self) -> (String, ExitStatus) {
        let mut rest = String::new();
        let mut stdout = self.lines.into_inner();
        timeout(STORY_MAX, stdout.read_to_string(&mut rest))
            .await
            .expect("it ends")
            .expect("a text");
        let status = timeout(STORY_MAX, self.child.wait()).await;
        (rest, status.expect("it ends").expect("a status"))
    }
}

#[tokio::test]
async fn the_full_story_fails_when_somebody_spends_behind_bursars_back() {
    let tmp = tempfile::tempdir().expect("a directory");
    let running = Running::start(tmp.path()).await;
    let secret = reqwest::Client::new()
        .post(format!("{}/v1/embeddings", running.service))
        .bearer_auth("sandbox-key")
        .json(&json!({"model": "auto", "input": "nobody knows"}))
        .send()
        .await
        .expect("an answer");
    assert_eq!(secret.status(), 200);

    let (text, status) = running.end().await;

    assert_eq!(status.code(), Some(1), "{text}");
    let said: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let wrong = "WRONG the books have $0.000001 for /v1/embeddings";
    assert!(said.contains(wrong), "{text}");
    assert!(!said.contains("did what they say"), "{text}");
}

#[tokio::test]
async fn the_full_story_fails_when_the_service_tells_a_price_that_it_did_not_debit() {
    let tmp = tempfile::tempdir().expect("a directory");
    let running = Running::start(tmp.path()).await;
    let rule = json!({
        "match": {"path": "/v1/rerank"},
        "fault": {"receipt": {"billed": "7"}},
    });
    let ruled = reqwest::Client::new()
        .post(format!("{}/sandbox/faults", running.service))
        .json(&rule)
        .send()
        .await
        .expect("an answer");
    assert_eq!(ruled.status(), 200);

    let (text, status) = running.end().await;

    assert_eq!(status.code(), Some(1), "{text}");
    let said: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for wrong in [
        "WRONG the service's books differ from the ledger",
        "the ledger has $0.000007, the books have $0.000001",
    ] {
        assert!(said.contains(wrong), "{wrong}:\n{text}");
    }
}
