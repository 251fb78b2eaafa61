//! Ledgers of earlier versions, as their daemons left them (`tests/it/ledgers/`): 14 requests of one day, of every state,
//! one of them lost to a kill; then a stop in order.
//!
//! Promise: this version opens them and prints the same sums and receipts, with their index and without one.

use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use serde_json::Value;

use crate::support::daemon::{Daemon, command};
use crate::support::{Sandbox, chat};

const SINCE: [&str; 2] = ["--since", "2026-11-22T00:00:00Z"];
const UNTIL: [&str; 2] = ["--until", "2026-11-22T21:57:00Z"];

/// Copies a directory, readable by its owner alone.
fn copy(from: &Path, to: &Path) {
    let mut private = std::fs::DirBuilder::new();
    private.mode(0o700).create(to).expect("a directory");
    for found in std::fs::read_dir(from).expect("a listing") {
        let (from, to) = {
            let found = found.expect("a file");
            (found.path(), to.join(found.file_name()))
        };
        if from.is_dir() {
            copy(&from, &to);
        } else {
            std::fs::copy(&from, &to).expect("a copy");
            let mode = std::fs::Permissions::from_mode(0o600);
            std::fs::set_permissions(&to, mode).expect("a mode");
        }
    }
}

/// What a command prints as lines of JSON.
async fn printed(words: &[&str], state: &Path) -> Vec<Value> {
    let state = ["--json", "--state-dir", state.to_str().expect("a path")];
    let done = command(&[words, &state, &SINCE].concat())
        .output()
        .await
        .expect("it runs");
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{words:?}: {errors}");
    lines(&String::from_utf8_lossy(&done.stdout))
}

fn lines(text: &str) -> Vec<Value> {
    let parse = |line| serde_json::from_str(line).expect("JSON");
    text.lines().map(parse).collect()
}

/// Each line that the earlier version printed is printed first, with every member; there may be more of both.
fn assert_holds(now: &[Value], before: &[Value], what: &str) {
    assert!(now.len() >= before.len(), "{what}: {}", now.len());
    for (now, before) in now.iter().zip(before) {
        for (name, value) in before.as_object().expect("an object") {
            assert_eq!(now.get(name), Some(value), "{what}: {name}");
        }
    }
}

async fn assert_same(state: &Path, kept: &Path) {
    let before = |name| {
        let text = std::fs::read_to_string(kept.join(name));
        lines(&text.expect("what the earlier version printed"))
    };
    let day = [&["spend", "--tz", "Etc/UTC"][..], &UNTIL].concat();
    let spend = printed(&day, state).await;
    assert_holds(&spend, &before("spend.json"), "spend");
    let receipts = printed(&["receipts"], state).await;
    assert_holds(&receipts, &before("receipts.jsonl"), "receipts");
}

#[tokio::test]
async fn a_ledger_of_an_earlier_version_opens_with_the_same_sums_and_receipts() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/ledgers/2026-11");
    for has_index in [true, false] {
        let directory = tempfile::tempdir().expect("a directory");
        let state = directory.path().join("state");
        copy(&kept, &state);
        if !has_index {
            std::fs::remove_dir_all(state.join("index")).expect("the index goes");
        }
        assert_same(&state, &kept).await;

        let sandbox = Sandbox::start().await;
        let daemon = Daemon::start(&sandbox.url(), &state, &[]).await;
        let metrics = daemon.admin_page("/metrics").await.text();
        let sum = |family: &str, labels: &str| -> f64 {
            let of = |line: &&str| line.starts_with(family) && line.contains(labels);
            let lines = metrics.lines().filter(of);
            let values = lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
            values.sum()
        };
        let billed = sum("bursar_billed_usd_total{", "") * 1e6;
        assert!((billed - 40_342.0).abs() < 0.5, "{has_index}: {billed}");
        let doubts = sum("bursar_in_doubt_requests{", "reason=\"crash\"");
        assert!((doubts - 1.0).abs() < 0.5, "{has_index}: {doubts}");
        assert_same(&state, &kept).await;
        let answer = daemon.connect().await;
        let answer = answer
            .post("/v1/chat/completions", &chat("a new day"))
            .await;
        assert_eq!(answer.status, 200);
        daemon.terminate().await;
        assert_same(&state, &kept).await;

        let path = state.to_str().expect("a path");
        let verify = command(&["ledger", "verify", "--state-dir", path]);
        let verified = { verify }.output().await.expect("it runs");
        let text = String::from_utf8_lossy(&verified.stdout).into_owned();
        assert_eq!(verified.status.code(), Some(0), "{has_index}: {text}");
    }
}
