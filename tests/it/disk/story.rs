//! The fixed story that every fault is put into, and what must hold after it.

use std::collections::HashMap;
use std::path::Path;

use bursar::ledger::entry::State;
use bursar::ledger::query::{EntryView, verify};
use serde_json::Value;

use crate::support::bursar::entries;
use crate::support::daemon::Daemon;
use crate::support::rig::{Fault, RECOVERY, Rig};
use crate::support::wire::request;
use crate::support::{Answer, Sandbox, chat, chat_stream, within};

/// The result of a story.
pub struct Ran {
    /// Calls of the fault's kind before the disk was sound again.
    pub seen: u64,
    /// Those of the stop.
    pub seen_stopping: u64,
    /// Calls that failed.
    pub failed: u64,
}

/// What an app received.
#[derive(Debug, Default)]
pub struct ReceivedAnswers {
    /// Entry and amount of answers that were received whole.
    received: HashMap<String, u64>,
    /// Entries of requests that were refused with the word that a retry is of no use: not sent.
    refused: Vec<String>,
}

/// Start, a JSON answer, a stream, a free request, an app's retry, stop; the disk fails somewhere.
pub async fn run(fault: Fault) -> Ran {
    let sandbox = Sandbox::start().await;
    let rig = Rig::new();
    rig.fail(fault);
    let mut app = ReceivedAnswers::default();
    let mut seen = None;
    match rig.try_start(&sandbox.url()).await {
        Err(mut child) => {
            let status = child.wait().await.expect("a status");
            let log = rig.logged();
            assert_eq!(status.code(), Some(1), "{fault:?}: {log}");
            let line = log.trim_end().lines().last().unwrap_or_default();
            assert!(line.starts_with("bursar: "), "{fault:?}: {log}");
        }
        Ok(daemon) => {
            play(&daemon, &mut app, fault).await;
            seen = Some(rig.seen());
            let has_struck = rig.failed() > 0;
            rig.heal();
            resumed(&daemon, &mut app, fault).await;
            if fault.from == 0 {
                assert_eq!(app.received.len(), 4, "{app:?}");
            }
            // A failure that came too late for the requests occurs at the stop.
            let from = u64::from(fault.from > 0 && !has_struck);
            rig.fail(Fault { from, ..fault });
            daemon.terminate().await;
        }
    }
    let ran = Ran {
        seen: seen.unwrap_or_default(),
        seen_stopping: rig.seen(),
        failed: rig.failed(),
    };
    calm(&rig, &format!("{fault:?}"));

    // On a sound disk, without the shim.
    rig.heal();
    Daemon::start(&sandbox.url(), &rig.state_dir(), &[])
        .await
        .terminate()
        .await;
    app.check(&rig, &sandbox.debits().await, &format!("{fault:?}"));
    ran
}

async fn play(daemon: &Daemon, app: &mut ReceivedAnswers, fault: Fault) {
    let json = daemon
        .connect()
        .await
        .post("/v1/chat/completions", &chat("one"))
        .await;
    app.hear(&json, false, fault);
    let stream = daemon
        .connect()
        .await
        .post("/v1/chat/completions", &chat_stream("two"))
        .await;
    app.hear(&stream, true, fault);
    free(daemon, fault).await;
    // An app that hangs up and asks again.
    let mut wire = daemon.connect().await;
    let asked = request("POST", "/agent/v1/chat/completions", &[], &chat("three"));
    assert!(wire.try_send(&asked).await);
    drop(wire);
    let retried = daemon
        .connect()
        .await
        .post("/agent/v1/chat/completions", &chat("three"))
        .await;
    app.hear(&retried, false, fault);
}

/// No panic of bursar's own. Those of sled are caught, and cost the index only.
pub fn calm(rig: &Rig, fault: &str) {
    let log = rig.logged();
    let is_own = |line: &str| {
        let panicked = line.contains("panicked") || line.contains("by a panic");
        panicked && !line.contains("/sled-0.34.7/")
    };
    assert!(!log.lines().any(is_own), "{fault}: {log}");
}

/// Cuts off the room that the journal has made ahead: from now on its next line needs some of the disk's.
pub fn take_room(state_dir: &Path) {
    let path = state_dir.join("journal/00000001.jsonl");
    let text = std::fs::read(&path).expect("a journal");
    let lines = text.iter().rposition(|byte| *byte != b'\n');
    let bytes = lines.map_or(0, |last| last + 2).min(text.len());
    let file = std::fs::OpenOptions::new().write(true).open(&path);
    let cut = file.and_then(|file| file.set_len(bytes as u64));
    cut.expect("the segment is cut");
}

/// Free routes continue, whatever the state of the ledger.
pub async fn free(daemon: &Daemon, fault: impl std::fmt::Debug) {
    let answer = daemon.connect().await.get("/v1/models").await;
    assert_eq!(answer.status, 200, "{fault:?}: {}", answer.text());
}

/// Waits until the ledger can be written.
pub async fn ready(daemon: &Daemon, fault: impl std::fmt::Debug) {
    let what = format!("the ledger to be written again: {fault:?}");
    within(RECOVERY, &what, || async {
        (daemon.admin_page("/readyz").await.status == 200).then_some(())
    })
    .await;
}

/// Service resumes by itself. A failure that struck just now may still refuse one request.
async fn resumed(daemon: &Daemon, app: &mut ReceivedAnswers, fault: Fault) {
    let before = app.received.len();
    for _ in 0..3 {
        ready(daemon, fault).await;
        let asked = daemon.connect().await;
        let answer = asked.post("/v1/chat/completions", &chat("after")).await;
        app.hear(&answer, false, fault);
        if app.received.len() > before {
            return;
        }
    }
    panic!("{fault:?}: the ledger says that it can be written, and refuses");
}

// === impl ReceivedAnswers ===

impl ReceivedAnswers {
    /// Notes an answer: a whole one, or a refusal as designed.
    pub fn hear(&mut self, answer: &Answer, stream: bool, fault: impl std::fmt::Debug) {
        let id = answer.header("x-bursar-entry").unwrap_or_default();
        if answer.status == 200 && answer.complete {
            let amount = if stream {
                let text = answer.text();
                let line = text
                    .lines()
                    .find_map(|line| line.strip_prefix(": service-billed-micro-usd "));
                line.map(ToOwned::to_owned)
            } else {
                answer.header("x-service-billed").map(ToOwned::to_owned)
            };
            let amount = amount.expect("a receipt").parse().expect("an amount");
            self.received.insert(id.to_owned(), amount);
        } else if answer.status == 503 {
            assert_eq!(answer.code(), Some("ledger_unavailable"), "{fault:?}");
            assert_eq!(answer.header("retry-after"), Some("5"), "{fault:?}");
            if answer.header("x-should-retry") == Some("false") {
                self.refused.push(id.to_owned());
            }
        } else {
            // A stream in flight ends as a break with a reason.
            assert!(stream && !answer.complete, "{fault:?}: {}", answer.status);
            assert!(answer.text().contains("ledger_unavailable"), "{fault:?}");
        }
    }

    /// How many answers were received whole.
    pub fn received(&self) -> usize {
        self.received.len()
    }

    /// How many requests were refused before they were sent.
    pub fn refused(&self) -> usize {
        self.refused.len()
    }

    /// Compares what apps received, the ledger, and the sandbox's books.
    pub fn check(&self, rig: &Rig, debits: &[Value], fault: &str) {
        let state_dir = rig.state_dir();
        let found = entries(&state_dir);
        let by_id: HashMap<String, &EntryView> = found
            .iter()
            .map(|entry| (entry.id.0.to_string(), entry))
            .collect();
        for (id, amount) in &self.received {
            let entry = by_id.get(id).unwrap_or_else(|| panic!("{fault}: no {id}"));
            let billed = entry.billed_micro_usd.map(|billed| billed.get());
            assert_eq!(billed, Some(*amount), "{fault}: {id} {:?}", entry.state);
        }
        for id in &self.refused {
            if let Some(entry) = by_id.get(id) {
                assert_eq!(entry.state, State::Failed, "{fault}: {id} was not sent");
            }
        }
        agree(&found, debits, fault);
        let report = verify(&state_dir).expect("the ledger reads");
        assert!(report.ok, "{fault}: {report:?}\n{}", rig.logged());
    }
}

/// settled ≤ books ≤ settled + in doubt, key by key.
pub fn agree(found: &[EntryView], debits: &[Value], fault: &str) {
    let mut by_key: HashMap<&str, Vec<&EntryView>> = HashMap::new();
    for entry in found {
        assert_ne!(entry.state, State::Open, "{fault}");
        if let Some(key) = entry.key.as_deref() {
            by_key.entry(key).or_default().push(entry);
        }
    }
    let mut debited: HashMap<&str, u64> = HashMap::new();
    for debit in debits {
        let key = debit["key"].as_str().expect("every debit has a key");
        *debited.entry(key).or_default() += debit["amount_micro_usd"].as_u64().expect("an amount");
        assert!(
            by_key.contains_key(key),
            "{fault}: a debit without an entry"
        );
    }
    for (key, entries) in by_key {
        let billed = |entry: &&EntryView| entry.billed_micro_usd.map(|billed| billed.get());
        let settled: u64 = entries.iter().filter_map(billed).sum();
        let books = debited.get(key).copied().unwrap_or_default();
        let in_doubt = entries
            .iter()
            .any(|entry| matches!(entry.state, State::InDoubt { .. }));
        assert!(
            settled == books || (settled == 0 && in_doubt),
            "{fault}: settled {settled}, books {books}: {entries:?}"
        );
    }
}
