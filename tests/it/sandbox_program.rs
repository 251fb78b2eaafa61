//! `bursar sandbox`, the real binary: what it keeps over a kill -9, and its verdict on the client at the end.
//!
//! The library's tests hold the rules; only a process can show that the flags reach them and that state
//! survives a kill.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout};
use tokio::time::timeout;

use crate::support::daemon::{Signal, command, send};
use crate::support::wire::{Wire, request};
use crate::support::{Answer, chat, chat_stream};

const CHAT: &str = "/v1/chat/completions";
const PATIENCE: Duration = Duration::from_secs(20);
const BALANCE: i64 = 5_000_000;

/// Each fault is met by the prompt that holds its word.
const SCENARIO: &str = r#"
balance_micro_usd = 5_000_000
api_key = "key-of-the-scenario"

[settings]
endpoint_stage_ms = 0
repeat_billed = "same"

[[fault]]
match = { body_contains = "impatient" }
times = 1
fault = { status = 503, retry_after = "30" }

[[fault]]
match = { body_contains = "forgetful" }
times = 1
fault = { status = 502 }

[[fault]]
match = { body_contains = "trusting" }
times = 1
fault = { cut_after_chunks = 2 }
"#;

/// A running `bursar sandbox`. Dropping it kills it.
struct Program {
    child: Child,
    address: SocketAddr,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Program {
    async fn start(place: &Path) -> Self {
        let state = place.join("state");
        let scenario = place.join("scenario.toml");
        let arguments = [
            "sandbox",
            "--listen",
            "127.0.0.1:0",
            "--state-dir",
            state.to_str().expect("a UTF-8 path"),
            "--scenario",
            scenario.to_str().expect("a UTF-8 path"),
            "--verdict",
        ];
        let mut child = command(&arguments)
            .stderr(Stdio::piped())
            .spawn()
            .expect("the sandbox starts");
        let stdout = child.stdout.take().expect("a pipe");
        let mut lines = BufReader::new(stdout).lines();
        let line = timeout(PATIENCE, lines.next_line())
            .await
            .expect("it is ready in time")
            .expect("a line")
            .expect("it did not end");
        let address = line
            .strip_prefix("sandbox listening on http://")
            .unwrap_or_else(|| panic!("{line}"));
        Self {
            child,
            address: address.parse().expect("an address"),
            lines,
        }
    }

    async fn send(&self, method: &str, path: &str, key: &str, body: &str) -> Answer {
        let headers = [
            ("Authorization", "Bearer key-of-the-scenario"),
            ("Idempotency-Key", key),
        ];
        let mut wire = Wire::tcp(self.address).await;
        wire.send(request(method, path, &headers, body)).await;
        wire.answer().await
    }

    async fn ask(&self, key: &str, prompt: &str) -> Answer {
        self.send("POST", CHAT, key, &chat(prompt)).await
    }

    async fn get(&self, path: &str) -> Value {
        self.send("GET", path, "unused", "").await.json()
    }

    async fn kill(mut self) {
        self.child.kill().await.expect("the child is killed");
    }

    /// SIGTERM; how it ended, what it printed after its first line, and what it complained of.
    async fn terminate(mut self) -> (ExitStatus, String, String) {
        send(&self.child, Signal::TERM);
        let mut said = String::new();
        let read = self.lines.get_mut().read_to_string(&mut said);
        timeout(PATIENCE, read)
            .await
            .expect("it ends in time")
            .expect("text");
        let status = timeout(PATIENCE, self.child.wait())
            .await
            .expect("it ends in time")
            .expect("a status");
        let mut complaint = String::new();
        let mut stderr = self.child.stderr.take().expect("a pipe");
        stderr.read_to_string(&mut complaint).await.expect("text");
        (status, said, complaint)
    }
}

fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().expect("a directory");
    std::fs::write(place.path().join("scenario.toml"), SCENARIO).expect("the scenario");
    place
}

fn billed(answer: &Answer) -> i64 {
    let billed = answer.header("x-service-billed").expect("a receipt");
    billed.parse().expect("an amount")
}

#[tokio::test]
async fn after_a_kill_the_sandbox_goes_on_where_it_was() {
    let place = place();
    let sandbox = Program::start(place.path()).await;
    let first = sandbox.ask("kept", "Name three rivers of Europe.").await;
    assert_eq!(first.status, 200, "{}", first.text());
    let wanted = json!({"task": "contact-extraction", "name": "mine"}).to_string();
    let deployed = sandbox.send("POST", "/v1/endpoints", "e", &wanted).await;
    assert!(
        deployed.text().contains("event: complete"),
        "{}",
        deployed.text()
    );
    let row =
        r#"{"input": {"message": "It came late."}, "expected_output": {"reply": "We are sorry."}}"#;
    let form = format!(
        "--edge\r\nContent-Disposition: form-data; name=\"items\"; filename=\"rows.jsonl\"\r\n\r\n{row}\r\n\
         --edge\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\nWrite a polite reply to the message.\r\n--edge--\r\n"
    );
    let headers = [
        ("Authorization", "Bearer key-of-the-scenario"),
        ("Content-Type", "multipart/form-data; boundary=edge"),
    ];
    let mut wire = Wire::tcp(sandbox.address).await;
    wire.send(request("POST", "/v1/eval-sets", &headers, &form))
        .await;
    let set = wire.answer().await.json()["eval_set"].clone();
    let mark = json!({"advance_s": 7_200}).to_string();
    sandbox
        .send("POST", "/sandbox/clock", "unused", &mark)
        .await;
    let clock = sandbox.get("/sandbox/clock").await["unix_s"].as_i64();
    let books = sandbox.get("/sandbox/books").await;
    assert_eq!(books["balance_micro_usd"], BALANCE - billed(&first));
    sandbox.kill().await;

    let sandbox = Program::start(place.path()).await;

    let after = sandbox.get("/sandbox/books").await;
    for part in ["balances_micro_usd", "debits", "debited_micro_usd"] {
        assert_eq!(after[part], books[part], "{part}");
    }
    let replay = sandbox.ask("kept", "Name three rivers of Europe.").await;
    assert_eq!(replay.header("idempotent-replayed"), Some("true"));
    assert_eq!((replay.status, billed(&replay)), (200, 0));
    assert_eq!(replay.body, first.body);
    let bound = sandbox.ask("kept", "Name three lakes of Europe.").await;
    assert_eq!(bound.status, 422);
    let endpoint = sandbox.get("/v1/endpoints/mine").await;
    assert_eq!(
        (&endpoint["id"], &endpoint["status"]),
        (&json!("mine"), &json!("live"))
    );
    let sets = sandbox.get("/v1/eval-sets").await;
    assert_eq!(sets, json!({"eval_sets": [set]}));
    let now = sandbox.get("/sandbox/clock").await["unix_s"].as_i64();
    assert!(now >= clock, "the clock went back: {now:?} {clock:?}");
    let next = sandbox.ask("next", "Name three seas of Europe.").await;
    let books = sandbox.get("/sandbox/books").await;
    let left = BALANCE - billed(&first) - billed(&next);
    assert_eq!(books["balance_micro_usd"], left);
    // The one finding is this test's own: it tried the bound key with another request.
    let (status, said, _) = sandbox.terminate().await;
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("finding: key-reused (1x)"), "{said}");
}

#[tokio::test]
async fn a_client_that_keeps_the_rules_gets_a_verdict_of_ok_and_exit_code_0() {
    let place = place();
    let sandbox = Program::start(place.path()).await;
    let failed = sandbox.ask("a", "impatient").await;
    assert_eq!(
        (failed.status, failed.header("retry-after")),
        (503, Some("30"))
    );
    let wait = json!({"advance_s": 30}).to_string();
    sandbox
        .send("POST", "/sandbox/clock", "unused", &wait)
        .await;
    assert_eq!(sandbox.ask("a", "impatient").await.status, 200);

    let (status, said, complaint) = sandbox.terminate().await;

    assert_eq!(status.code(), Some(0), "{said}{complaint}");
    assert_eq!(said, "verdict on the client: ok, 2 requests\n");
}

#[tokio::test]
async fn each_rule_that_a_client_broke_is_listed_at_the_end_with_exit_code_1() {
    let place = place();
    let sandbox = Program::start(place.path()).await;
    // It ignores the wait in Retry-After.
    for status in [503, 200] {
        assert_eq!(sandbox.ask("a", "impatient").await.status, status);
    }
    // It makes a new key for the retry.
    for (key, status) in [("b", 502), ("c", 200)] {
        assert_eq!(sandbox.ask(key, "forgetful").await.status, status);
    }
    // It treats half of a stream as the whole.
    let cut = sandbox
        .send("POST", CHAT, "d", &chat_stream("trusting"))
        .await;
    assert!(
        !cut.complete && !cut.text().contains("[DONE]"),
        "{}",
        cut.text()
    );

    let (status, said, complaint) = sandbox.terminate().await;

    assert_eq!(status.code(), Some(1), "{said}");
    assert!(
        said.starts_with("verdict on the client: NOT ok, 5 requests\n"),
        "{said}"
    );
    let rules: Vec<&str> = said
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.split_once(": "))
        .filter(|(kind, _)| ["finding", "remark"].contains(kind))
        .filter_map(|(_, rest)| rest.split(" (").next())
        .collect();
    assert_eq!(
        rules,
        ["retry-after-ignored", "key-changed", "not-asked-again"],
        "{said}"
    );
    assert!(
        complaint.contains("2 of the interface's rules"),
        "{complaint}"
    );
}

#[tokio::test]
async fn a_sandbox_that_cannot_start_does_not_say_that_it_listens() {
    use std::os::unix::fs::PermissionsExt;
    let place = place();
    let state = place.path().join("everybody's");
    std::fs::create_dir(&state).expect("a directory");
    std::fs::set_permissions(&state, std::fs::Permissions::from_mode(0o777)).expect("a mode");
    let arguments = ["sandbox", "--listen", "127.0.0.1:0", "--state-dir"];
    let mut starting = command(&arguments);
    starting.arg(&state);
    let ended = timeout(PATIENCE, starting.output()).await;
    let ended = ended.expect("an end within 20 s").expect("a process");
    assert_eq!(ended.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&ended.stdout), "");
    let error = String::from_utf8_lossy(&ended.stderr);
    assert!(error.contains("chmod 700"), "{error}");
}
