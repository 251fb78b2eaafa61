//! The whole corpus before a real process, and everything that reports it afterwards: the log, the
//! metrics, the ledger's files, the output of the commands. No control byte, no forged line, no
//! key.

use std::path::Path;

use tokio::io::AsyncReadExt;
use tokio::task::JoinHandle;

use super::{Ask, Case, all, contains, exposition};
use crate::support::daemon::{Daemon, Signal, command, run_arguments};
use crate::support::{KEY, Origin, Wire, eventually};

/// The places that are searched for row 25.
pub const LOG_NAMES: &[&str] = &[
    "the log as text",
    "the log as JSON",
    "what the commands print",
];
/// And for row 26.
pub const METRICS_NAMES: &[&str] = &[
    "metrics after the corpus",
    "the export as CSV",
    "the status page",
];

/// The corpus without what only its size makes hostile.
fn corpus() -> Vec<Case> {
    let small = |case: &Case| case.sends.len() < 600_000;
    all().into_iter().filter(small).collect()
}

/// A daemon at its most verbose level, whose log is kept.
async fn talkative(origin: &Origin, state: &Path, format: &str) -> (Daemon, JoinHandle<Vec<u8>>) {
    let lines = format!(
        "[log]\nlevel = \"trace\"\nformat = \"{format}\"\n[shaping]\nin_flight = 0\nper_minute = 0\n{}",
        super::ONCE
    );
    let config = state.with_extension("toml");
    std::fs::write(&config, lines).expect("a file");
    let (url, state) = (origin.url(), state.to_str().expect("a path"));
    let mut arguments = run_arguments(&url, state);
    arguments.extend(["--config", config.to_str().expect("a path")]);
    let mut daemon = match Daemon::launched(command(&arguments)).await {
        Ok(daemon) => daemon,
        Err(_) => panic!("the daemon did not start"),
    };
    let mut stderr = daemon.child.stderr.take().expect("a pipe");
    let log = tokio::spawn(async move {
        let mut log = Vec::new();
        stderr.read_to_end(&mut log).await.expect("the log");
        log
    });
    (daemon, log)
}

/// Plays the corpus; returns the log, and the pages that were read at its end.
async fn played(state: &Path, format: &str) -> (Vec<u8>, Vec<(&'static str, Vec<u8>)>) {
    let origin = Origin::start([]).await;
    let (daemon, log) = talkative(&origin, state, format).await;
    let mut reloads = 0;
    for case in corpus() {
        origin.push(case.step());
        let mut app = Wire::tcp(daemon.proxy).await;
        app.send(case.asks()).await;
        let answer = app.answer().await;
        case.check_answer(&answer);
        if matches!(answer.status, 401 | 402) {
            reloads += 1;
            reload(&daemon, reloads).await;
        }
    }
    let mut pages = Vec::new();
    for page in ["/metrics", "/", "/api/receipts?limit=1000", "/api/spend"] {
        let answer = daemon.admin_page(page).await;
        assert_eq!(answer.status, 200, "{page}");
        pages.push((page, answer.body));
    }
    daemon.terminate().await;
    (log.await.expect("the log"), pages)
}

/// The service's words about the account are forgotten, and the next request is sent.
async fn reload(daemon: &Daemon, times: u32) {
    daemon.signal(Signal::HUP);
    let line = format!("bursar_config_reloads_total{{result=\"ok\"}} {times}");
    eventually("the reload", || async {
        let page = daemon.admin_page("/metrics").await.text();
        page.lines().any(|known| known == line).then_some(())
    })
    .await;
}

/// What a command prints.
async fn printed(state: &Path, arguments: &[&str]) -> Vec<u8> {
    let state = state.to_str().expect("a path");
    let more = [arguments, &["--state-dir", state]].concat();
    let done = command(&more).output().await.expect("it runs");
    assert_eq!(
        done.status.code(),
        Some(0),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    done.stdout
}

/// What is wrong with a text: it may hold only lines, and no byte that a terminal would obey.
fn complaints(what: &str, bytes: &[u8]) -> Vec<String> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return vec![format!("{what}: no text")];
    };
    let mut complaints = Vec::new();
    if contains(bytes, KEY.as_bytes()) {
        complaints.push(format!("{what}: the key"));
    }
    let control = |letter: char| letter.is_control() && letter != '\n';
    let line = text.lines().find(|line| line.chars().any(control));
    complaints.extend(line.map(|line| format!("{what}: a control character in {line:?}")));
    complaints
}

#[tokio::test]
async fn no_output_about_the_corpus_holds_the_key_or_a_control_byte() {
    let directory = tempfile::tempdir().expect("a directory");
    let state = directory.path().join("state");
    let (log, pages) = played(&state, "text").await;
    let mut wrong = complaints("the log as text", &log);
    let lines = String::from_utf8_lossy(&log).into_owned();
    let requests = lines.lines().filter(|line| line.contains("bursar::access"));
    assert_eq!(
        requests.count(),
        corpus().len(),
        "one access line a request"
    );
    for line in lines.lines() {
        let stamp = line
            .get(..4)
            .is_some_and(|year| year.parse::<u16>().is_ok());
        assert!(stamp, "a line without a time: {line:?}");
    }
    for (page, body) in pages {
        wrong.extend(complaints(page, &body));
        if page == "/metrics" {
            let read = exposition::samples(&String::from_utf8_lossy(&body));
            wrong.extend(read.err());
        }
    }
    super::assert_no_key_in(&state);
    let listed = printed(&state, &["receipts", "--json"]).await;
    let listed = String::from_utf8(listed).expect("text");
    let ids: Vec<String> = listed
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"))
        .map(|entry| entry["id"].as_str().expect("an id").to_owned())
        .collect();
    let paid = corpus().iter().filter(|case| case.ask != Ask::Free).count();
    assert_eq!(ids.len(), paid, "one entry a paid request");
    for arguments in [
        &["receipts", "--limit", "1000"][..],
        &["spend"],
        &["ledger", "verify"],
        &["ledger", "export", "--format", "csv"],
        &["ledger", "export", "--format", "jsonl"],
    ] {
        let what = format!("{arguments:?}");
        wrong.extend(complaints(&what, &printed(&state, arguments).await));
    }
    let csv = printed(&state, &["ledger", "export", "--format", "csv"]).await;
    let mut rows = csv::Reader::from_reader(csv.as_slice());
    for row in rows.records() {
        let row = row.expect("a row");
        let formula = row
            .iter()
            .find(|cell| cell.starts_with(['=', '+', '-', '@']));
        wrong.extend(formula.map(|cell| format!("a formula: {cell:?}")));
    }
    // Some entries are also explained one by one.
    for id in ids.iter().step_by(7) {
        wrong.extend(complaints(
            "explain",
            &printed(&state, &["explain", id]).await,
        ));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn the_log_as_json_is_one_object_a_line_whatever_the_service_says() {
    let directory = tempfile::tempdir().expect("a directory");
    let state = directory.path().join("state");
    let (log, _) = played(&state, "json").await;
    assert_eq!(complaints("the log as JSON", &log), [""; 0]);
    let lines = String::from_utf8(log).expect("text");
    for line in lines.lines() {
        let line_json: serde_json::Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        assert!(
            line_json["timestamp"].is_string() && line_json["level"].is_string(),
            "{line}"
        );
    }
    assert_eq!(
        lines
            .lines()
            .filter(|line| line.contains("bursar::access"))
            .count(),
        corpus().len()
    );
}
