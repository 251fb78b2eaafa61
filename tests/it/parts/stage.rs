//! The set-up of these tests: requests of any form, an eval set and its runs, and the two sides that
//! have to agree, `bursar spend` and the sandbox's books.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::daemon::command;
use crate::support::{Answer, KEY, Sandbox, Wire, eventually};

pub const RUNS: &str = "/v1/eval-runs";
pub const COMPARISON: &str = "/v1/playground/frontier";
pub const TRANSCRIPTIONS: &str = "/v1/audio/transcriptions";
pub const SPEECH: &str = "/v1/audio/speech";

/// `multipart/form-data` with this boundary.
pub const FORM: (&str, &str) = ("Content-Type", "multipart/form-data; boundary=edge");

/// A request without an answer yet.
pub async fn send(
    to: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Wire {
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n");
    let is_typed = headers.iter().any(|(name, _)| *name == "Content-Type");
    if !is_typed && !body.is_empty() {
        head.push_str("Content-Type: application/json\r\n");
    }
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
    let mut wire = Wire::tcp(to).await;
    wire.send([head.as_bytes(), body].concat()).await;
    wire
}

/// One request on a connection of its own, and its answer.
pub async fn ask(
    to: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Answer {
    send(to, method, path, headers, body).await.answer().await
}

pub async fn post(to: SocketAddr, path: &str, body: &Value) -> Answer {
    ask(to, "POST", path, &[], body.to_string().as_bytes()).await
}

/// A form of parts, each a name and, for a file, a name of that.
pub fn form(parts: &[(&str, Option<&str>, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, file, bytes) in parts {
        let file = file.map_or_else(String::new, |file| format!("; filename=\"{file}\""));
        let head =
            format!("--edge\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n");
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(bytes);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"--edge--\r\n");
    body
}

/// A new set of that many rows, made through bursar; its id.
pub async fn new_set(to: SocketAddr, headers: &[(&str, &str)], rows: usize) -> String {
    let rows: String = (0..rows)
        .map(|at| {
            let row = json!({
                "input": {"message": format!("Order {at} came late and the box was open.")},
                "expected_output": {"reply": format!("We are sorry that order {at} came late.")},
            });
            format!("{row}\n")
        })
        .collect();
    let body = form(&[
        ("items", Some("rows.jsonl"), rows.as_bytes()),
        ("prompt", None, b"Write a polite reply to the message."),
    ]);
    let headers = [headers, &[FORM]].concat();
    let answer = ask(to, "POST", "/v1/eval-sets", &headers, &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let id = answer.json()["eval_set"]["id"].as_str().map(str::to_owned);
    id.expect("an id")
}

/// The body that starts a run of a set.
pub fn run_of(set: &str) -> Value {
    json!({"eval_set_id": set, "candidate_model_ids": ["auto", "frontier-a"]})
}

/// Starts a run; its id and the answer.
pub async fn start(to: SocketAddr, headers: &[(&str, &str)], set: &str) -> (String, Answer) {
    let body = run_of(set).to_string();
    let answer = ask(to, "POST", RUNS, headers, body.as_bytes()).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let id = answer.json()["run_id"].as_str().map(str::to_owned);
    (id.expect("an id"), answer)
}

/// The fault of the next start of a run: a hold, or a failure.
pub async fn next_start(sandbox: &Sandbox, fault: Value) {
    let rule = json!({"match": {"method": "POST", "path": RUNS}, "fault": fault});
    sandbox.control("/sandbox/faults", rule).await;
}

/// Releases what is held.
pub async fn release(sandbox: &Sandbox, name: &str) {
    sandbox
        .control("/sandbox/release", json!({"hold": name}))
        .await;
}

/// The record of a run as the service returns it to a caller other than bursar, once `wanted`
/// holds.
pub async fn seen(sandbox: &Sandbox, run: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let authorization = format!("Bearer {KEY}");
    let headers = [("Authorization", authorization.as_str())];
    let path = format!("{RUNS}/{run}");
    eventually("the run to get there", || async {
        let answer = ask(sandbox.address, "GET", &path, &headers, b"").await;
        let run = answer.json()["run"].clone();
        wanted(&run).then_some(run)
    })
    .await
}

pub fn is_over(run: &Value) -> bool {
    run["status"] == "completed" || run["status"] == "failed"
}

/// The cost of a run by the books.
pub async fn cost_of(sandbox: &Sandbox, run: &str) -> u64 {
    let prefix = format!("{run}/");
    let debits = sandbox.debits().await;
    let of_run = debits.iter().filter(|debit| {
        let id = debit["request_id"].as_str();
        id.is_some_and(|id| id.starts_with(&prefix))
    });
    of_run.map(amount).sum()
}

pub fn amount(debit: &Value) -> u64 {
    debit["amount_micro_usd"].as_u64().expect("an amount")
}

/// `bursar spend` of all times, by these words: the document.
pub async fn spend(state_dir: &Path, by: &str) -> Value {
    let printed = spend_said(state_dir, &["--by", by, "--json"]).await;
    serde_json::from_str(&printed).expect("JSON")
}

/// What `bursar spend` prints.
pub async fn spend_said(state_dir: &Path, more: &[&str]) -> String {
    let state_dir = state_dir.to_str().expect("a path");
    let arguments = [
        &["spend", "--since", "2020-01-01", "--state-dir", state_dir],
        more,
    ];
    let done = command(&arguments.concat()).output().await;
    let done = done.expect("it runs");
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    String::from_utf8(done.stdout).expect("UTF-8")
}

/// The rows of a document by one of their words.
pub fn rows(document: &Value, by: &str) -> BTreeMap<String, Value> {
    let rows = document["rows"].as_array().expect("rows");
    rows.iter()
        .map(|row| (row[by].as_str().expect("a word").to_owned(), row.clone()))
        .collect()
}

/// How many lines of the journal bring the price of a run.
pub fn prices_in_journal(state_dir: &Path, run: &str) -> usize {
    let mut count = 0;
    for file in std::fs::read_dir(state_dir.join("journal")).expect("a journal") {
        let text = std::fs::read(file.expect("a file").path()).expect("bytes");
        let text = String::from_utf8_lossy(&text);
        let prices = text.lines().filter(|line| {
            line.contains(",\"kind\":\"reconciled\"") && line.contains(&format!("\"{run}\""))
        });
        count += prices.count();
    }
    count
}
