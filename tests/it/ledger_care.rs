//! The accountant's export, retention, and compaction: from outside, as an operator does it.

use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bursar::clock::{Clock, ManualClock, SystemClock};
use bursar::ledger::entry::{Attempt, AttemptEnd, Fingerprint, Intent, KeyOrigin, Outcome};
use bursar::ledger::kept_key::{KeptKey, KeyForm};
use bursar::ledger::{Durability, Ledger, LedgerOptions};
use bursar::money::MicroUsd;
use bursar::protocol::receipt::{Receipt, ReceiptSource};
use bursar::protocol::{Lane, Operation, Reported};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::daemon::{Daemon, command, run_arguments};
use crate::support::{Sandbox, chat};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A ledger of a hundred days that end today: three requests a day.
async fn hundred_days(state_dir: &Path) {
    let clock = ManualClock::at(SystemClock::shared().wall_ms());
    let now_ms = clock.wall_ms();
    clock.set_wall_ms(now_ms - 100 * 24 * 60 * 60 * 1000);
    let ledger = Ledger::open(LedgerOptions {
        durability: Durability::Process,
        segment_bytes_max: 20_000,
        ..LedgerOptions::new(state_dir, Arc::new(clock.clone()))
    })
    .unwrap();
    for day in 0..100_u64 {
        for (app, amount) in [
            ("notes", Some(1_000 + day)),
            ("=agent", Some(7)),
            ("notes", None),
        ] {
            buy(&ledger, clock.wall_ms(), app, amount).await;
        }
        clock.advance(DAY);
    }
    ledger.close().await;
}

pub async fn buy(ledger: &Ledger, at_ms: u64, app: &str, amount: Option<u64>) {
    let billed = amount.map_or(Reported::Absent, |amount| {
        Reported::Value(MicroUsd::new(amount))
    });
    buy_reported(ledger, at_ms, app, billed).await;
}

/// The same, with whatever stands in the place of the amount. Without one it has no key either: no price comes later.
pub async fn buy_reported(ledger: &Ledger, at_ms: u64, app: &str, billed: Reported<MicroUsd>) {
    let id = ledger.new_entry_id();
    let is_priced = matches!(billed, Reported::Value(_));
    ledger
        .intend(Intent {
            model: Some("auto".to_owned()),
            key: is_priced.then(|| KeptKey {
                form: KeyForm::Text(Arc::from(id.to_string())),
                origin: KeyOrigin::Minted,
                organization: None,
                request: None,
                asked: None,
            }),
            request_bytes: 10,
            ..Intent::new(
                id,
                at_ms,
                Arc::from(app),
                Lane::Inference,
                Operation::Chat,
                Fingerprint([1; 32]),
            )
        })
        .await
        .unwrap();
    let receipt = Receipt {
        billed,
        source: (billed != Reported::Absent).then_some(ReceiptSource::Header),
        ..Receipt::default()
    };
    let outcome = Outcome {
        attempts: vec![Attempt {
            took_ms: 5,
            ..Attempt::new(AttemptEnd::Answered, Some(200))
        }],
        receipt,
        response_bytes: 10,
        ..Outcome::new(id, at_ms)
    };
    ledger.settle(outcome).await.unwrap();
}

/// What a command printed; it must have ended with this code.
async fn printed(code: i32, state_dir: &Path, arguments: &[&str]) -> (String, String) {
    let state_dir = state_dir.to_str().unwrap();
    let done = command(&[arguments, &["--state-dir", state_dir]].concat())
        .output()
        .await
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let (out, errors) = (text(done.stdout), text(done.stderr));
    assert_eq!(
        done.status.code(),
        Some(code),
        "{arguments:?}: {out}{errors}"
    );
    (out, errors)
}

/// All that is asked of spend, by everything and in a zone that is no whole hour from UTC.
async fn spends(state_dir: &Path) -> Vec<Value> {
    let mut answers = Vec::new();
    for by in [
        "app",
        "day",
        "state",
        "app,day,state,lane,operation,served-by",
    ] {
        let arguments = [
            "spend",
            "--json",
            "--since",
            "2020-01-01",
            "--tz",
            "Asia/Kathmandu",
            "--by",
            by,
        ];
        let (out, _) = printed(0, state_dir, &arguments).await;
        answers.push(serde_json::from_str(&out).unwrap());
    }
    answers
}

fn place() -> (TempDir, std::path::PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let state_dir = root.path().join("state");
    (root, state_dir)
}

#[tokio::test]
async fn an_export_adds_up_to_what_spend_says_in_both_formats() {
    let (root, state_dir) = place();
    hundred_days(&state_dir).await;
    let all: Value = spends(&state_dir).await.remove(0);

    let (jsonl, _) = printed(0, &state_dir, &["ledger", "export"]).await;
    let (receipts, _) = printed(0, &state_dir, &["receipts", "--json"]).await;
    assert_eq!(jsonl, receipts, "the same lines as `receipts --json`");

    let file = root.path().join("books.csv");
    let output = file.to_str().unwrap();
    std::fs::write(&file, "an older export").unwrap();
    let arguments = [
        "ledger", "export", "--format", "csv", "--tz", "UTC", "--output", output,
    ];
    let (out, _) = printed(0, &state_dir, &arguments).await;
    assert_eq!(out, "");
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(
        std::fs::read_dir(root.path()).unwrap().count(),
        2,
        "no file is left over"
    );

    let mut rows = csv::Reader::from_path(&file).unwrap();
    let header = rows.headers().unwrap().clone();
    assert!(header.iter().take(9).eq([
        "id",
        "seq",
        "at",
        "local_time",
        "at_ms",
        "ended_ms",
        "app",
        "lane",
        "operation"
    ]));
    let rows: Vec<HashMap<String, String>> = rows.deserialize().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 300);
    let billed = |row: &HashMap<String, String>| row["billed_micro_usd"].parse::<u64>().ok();
    let sum: u64 = rows.iter().filter_map(billed).sum();
    assert_eq!(all["billed_micro_usd"], sum);
    let unknown: Vec<_> = rows.iter().filter(|row| billed(row).is_none()).collect();
    assert_eq!(unknown.len(), 100);
    assert!(unknown.iter().all(|row| row["billed_micro_usd"].is_empty()));
    assert_eq!(
        rows.iter().filter(|row| row["app"] == "'=agent").count(),
        100
    );

    let narrow = [
        "ledger", "export", "--app", "notes", "--state", "settled", "--since", "10d",
    ];
    let (some, _) = printed(0, &state_dir, &narrow).await;
    assert!((9..=10).contains(&some.lines().count()), "{some}");
    let none = [
        "ledger",
        "export",
        "--format",
        "csv",
        "--until",
        "2020-01-01",
    ];
    let (none, _) = printed(0, &state_dir, &none).await;
    assert_eq!(none.lines().count(), 1, "a header and nothing else");
}

#[tokio::test]
async fn compacting_keeps_every_sum_and_says_what_it_did() {
    let (_root, state_dir) = place();
    hundred_days(&state_dir).await;
    let before = spends(&state_dir).await;
    let dry = [
        "ledger",
        "compact",
        "--older-than",
        "30d",
        "--dry-run",
        "--json",
    ];
    let (out, _) = printed(0, &state_dir, &dry).await;
    let planned: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(planned["bytes_after"], Value::Null);
    assert_eq!(spends(&state_dir).await, before);

    let arguments = ["ledger", "compact", "--older-than", "30d", "--json"];
    let (out, _) = printed(0, &state_dir, &arguments).await;
    let done: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(done["segments"], planned["segments"]);
    assert!(done["entries"].as_u64().unwrap() > 150, "{done}");
    assert!(
        done["bytes_after"].as_u64() < done["bytes_before"].as_u64(),
        "{done}"
    );

    assert_eq!(spends(&state_dir).await, before);
    printed(0, &state_dir, &["ledger", "verify"]).await;
    let (again, _) = printed(0, &state_dir, &["ledger", "compact", "--older-than", "30d"]).await;
    assert_eq!(again, "nothing to compact: no whole segment is that old\n");
    let (left, remark) = printed(0, &state_dir, &["ledger", "export"]).await;
    assert!(left.lines().count() < 150);
    assert!(
        remark.contains("were compacted and are only in the sums"),
        "{remark}"
    );

    let too_young = ["ledger", "compact", "--older-than", "1d"];
    let (_, errors) = printed(2, &state_dir, &too_young).await;
    assert!(errors.contains("write 2d or more"), "{errors}");
    let (_, errors) = printed(2, &state_dir, &["ledger", "compact"]).await;
    assert!(errors.contains("--older-than 90d"), "{errors}");
}

/// When each entry began that is listed one by one, by its id.
async fn began(state_dir: &Path) -> HashMap<String, String> {
    let (out, _) = printed(0, state_dir, &["receipts", "--json"]).await;
    let entry = |line: &str| {
        let entry: Value = serde_json::from_str(line).unwrap();
        let text = |name: &str| entry[name].as_str().unwrap().to_owned();
        (text("id"), text("at"))
    };
    out.lines().map(entry).collect()
}

/// The answer as JSON, and what is remarked beside the table.
async fn spent_by(state_dir: &Path, by: &str) -> (Value, String) {
    let asked = ["spend", "--since", "2020-01-01", "--by", by];
    let (_, remark) = printed(0, state_dir, &asked).await;
    let (out, _) = printed(0, state_dir, &[&asked[..], &["--json"]].concat()).await;
    (serde_json::from_str(&out).unwrap(), remark)
}

#[tokio::test]
async fn a_compacted_ledger_that_is_asked_by_session_says_from_when_it_answers() {
    let (_root, state_dir) = place();
    hundred_days(&state_dir).await;
    let all = began(&state_dir).await;
    let (before, remark) = spent_by(&state_dir, "session").await;
    assert_eq!(before["sessions_since"], Value::Null);
    assert!(!remark.contains("sessions are known"), "{remark}");

    printed(0, &state_dir, &["ledger", "compact", "--older-than", "30d"]).await;

    let left = began(&state_dir).await;
    let (document, remark) = spent_by(&state_dir, "session").await;
    let since = document["sessions_since"].as_str().expect("a moment");
    // One day lies between two moments of this ledger.
    let gone = all.iter().filter(|(id, _)| !left.contains_key(*id));
    let last_gone = gone
        .map(|(_, at)| at.as_str())
        .max()
        .expect("some are gone");
    let first_left = left.values().map(String::as_str).min();
    let first_left = first_left.expect("some are left");
    assert!(
        last_gone <= since && since <= first_left,
        "{last_gone} {since} {first_left}"
    );
    let words = format!("sessions are known of entries that began after {since};");
    assert!(remark.contains(&words), "{remark}");
    let rows = document["rows"].as_array().unwrap();
    let rows: Vec<_> = rows.iter().map(|row| row["session"].as_str()).collect();
    assert_eq!(rows, [Some("(compacted)"), Some("none")]);
    assert_eq!(document["billed_micro_usd"], before["billed_micro_usd"]);

    let (by_app, remark) = spent_by(&state_dir, "app").await;
    assert_eq!(by_app["sessions_since"], Value::Null);
    assert!(!remark.contains("sessions are known"), "{remark}");
}

#[tokio::test]
async fn a_compaction_that_is_killed_at_any_moment_loses_nothing() {
    let (_root, state_dir) = place();
    hundred_days(&state_dir).await;
    let before = spends(&state_dir).await;
    let dir = state_dir.to_str().unwrap();
    for round in 0..12_u64 {
        // Each round some more is old enough.
        let age = format!("{}d", 90 - 5 * round);
        let arguments = [
            "ledger",
            "compact",
            "--older-than",
            &age,
            "--state-dir",
            dir,
        ];
        let mut child = command(&arguments).spawn().unwrap();
        let moment = Duration::from_micros(2_000 + 4_700 * round);
        if tokio::time::timeout(moment, child.wait()).await.is_err() {
            child.kill().await.unwrap();
        }
        assert_eq!(spends(&state_dir).await, before, "round {round}");
    }
    printed(0, &state_dir, &["ledger", "compact", "--older-than", "30d"]).await;

    assert_eq!(spends(&state_dir).await, before);
    printed(0, &state_dir, &["ledger", "verify"]).await;
}

#[tokio::test]
async fn a_daemon_with_retention_compacts_at_start_and_holds_the_ledger() {
    let sandbox = Sandbox::start().await;
    let (root, state_dir) = place();
    hundred_days(&state_dir).await;
    let before = spends(&state_dir).await;
    let config = root.path().join("bursar.toml");
    std::fs::write(&config, "[ledger]\nretention_days = 30\n").unwrap();
    let (upstream, dir) = (sandbox.url(), state_dir.to_str().unwrap());
    let more = ["--config", config.to_str().unwrap()];
    let mut daemon = Daemon::ready(command(
        &[&run_arguments(&upstream, dir)[..], &more].concat(),
    ))
    .await;

    let compacted = state_dir.join("journal/00000000.jsonl");
    crate::support::eventually("the compacted segment", || {
        let is_there = compacted.exists().then_some(());
        async move { is_there }
    })
    .await;
    assert_eq!(spends(&state_dir).await, before);
    // The accountant's file by the daemon alone says that the older months are in no row.
    let (admin, bill) = (daemon.admin.to_string(), root.path().join("bill.csv"));
    let bill = bill.to_str().unwrap();
    let by_daemon = ["--format", "focus", "--admin", &admin, "--output", bill];
    let mut export = command(&[&["ledger", "export"], &by_daemon[..]].concat());
    let exported = export.output().await.unwrap();
    let remark = String::from_utf8_lossy(&exported.stderr).into_owned();
    assert!(remark.contains("were compacted"), "{remark}");
    let counts = std::fs::read_to_string(format!("{bill}.counts.json")).unwrap();
    let counts: Value = serde_json::from_str(&counts).unwrap();
    assert!(counts["compacted_before"].is_string(), "{counts}");
    let rows = std::fs::read_to_string(bill)
        .unwrap()
        .lines()
        .skip(1)
        .count();
    assert_eq!(counts["rows"], rows);
    let refused = ["ledger", "compact", "--older-than", "30d"];
    let (_, errors) = printed(1, &state_dir, &refused).await;
    assert!(errors.contains("the daemon with process id"), "{errors}");
    let app = daemon.connect().await;
    let answer = app.post("/v1/chat/completions", &chat("hello")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());

    daemon.signal(rustix::process::Signal::TERM);
    assert!(daemon.ended().await.success());
    printed(0, &state_dir, &["ledger", "verify"]).await;
}
