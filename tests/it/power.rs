//! Power cuts: a real daemon runs on a disk that is recorded, and is killed. From the recording the
//! disk is built as a cut at a random moment would have left it, and a daemon starts on that.
//!
//! What was acknowledged before the cut must be there, and what was sent must be known. With
//! `durability = "process"` the same cuts lose acknowledged entries: the rig can fail.

mod disk;
mod watch;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use bursar::ledger::entry::State;
use bursar::ledger::query::verify;
use bursar_sandbox::Options;
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use self::disk::Recording;
use self::watch::Watch;
use crate::crash::Random;
use crate::support::bursar::{NO_LIMITS, entries};
use crate::support::daemon::Daemon;
use crate::support::rig::Rig;
use crate::support::wire::{Wire, request};
use crate::support::{Sandbox, chat, chat_stream, messages_stream, responses_stream, within};

/// Cuts in `make test`; `make torture` sets more.
const CUTS: u64 = 50;

/// Answers in each of the two lives of the recorded daemon.
const ANSWERS: usize = 40;

const CLIENTS: u64 = 3;

/// Daemons that start at once.
const AT_ONCE: usize = 4;

/// An answer that was received whole, and how much was recorded when it was.
#[derive(Clone, Debug)]
struct Received {
    at: u64,
    id: String,
    amount: u64,
}

/// A run, and what its clients and the service saw.
struct Run {
    rig: Rig,
    recording: Recording,
    received: Vec<Received>,
    /// Key → how much was recorded when its first request reached the service.
    sent: HashMap<String, u64>,
    /// Key → amount.
    books: HashMap<String, u64>,
}

/// What a cut took.
#[derive(Debug, Default)]
struct Lost {
    /// Acknowledged answers without their amount.
    acknowledged: usize,
    /// Requests that reached the service and that the ledger knows nothing of.
    sent: usize,
}

#[expect(
    clippy::disallowed_methods,
    reason = "`make torture` asks for more cuts this way"
)]
fn cuts() -> u64 {
    std::env::var("BURSAR_CUTS").map_or(CUTS, |cuts| cuts.parse().expect("a count"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_instant_the_power_fails_at_nothing_acknowledged_is_missing() {
    let run = Arc::new(record("power").await);
    for lost in cut_often(&run, cuts(), true).await {
        assert_eq!((lost.acknowledged, lost.sent), (0, 0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_durability_process_the_same_cuts_do_lose_acknowledged_entries() {
    let run = Arc::new(record("process").await);
    let lost = cut_often(&run, 12, false).await;
    let acknowledged: usize = lost.iter().map(|lost| lost.acknowledged).sum();
    let sent: usize = lost.iter().map(|lost| lost.sent).sum();
    assert!(acknowledged > 0 && sent > 0, "the rig loses nothing");
}

/// Two lives of a daemon, each killed with requests in flight.
async fn record(durability: &str) -> Run {
    let sandbox = Sandbox::with(Options {
        in_flight_max: 1000,
        per_minute_max: 1_000_000,
        balance_micro_usd: u64::MAX / 4,
        ..Options::default()
    })
    .await;
    let rig = Rig::recorded();
    let watch = Watch::start(sandbox.address, rig.counter()).await;
    let config = rig.outside("config.toml");
    std::fs::write(
        &config,
        format!("[ledger]\ndurability = \"{durability}\"\n{NO_LIMITS}"),
    )
    .expect("a file");
    let more = ["--config", config.to_str().expect("a UTF-8 path")];

    let received: Arc<Mutex<Vec<Received>>> = Arc::default();
    for life in 1..=2 {
        let daemon = rig.start(&watch.url(), &more).await;
        let mut clients = JoinSet::new();
        for client in 0..CLIENTS {
            let (received, events, address) = (Arc::clone(&received), rig.counter(), daemon.proxy);
            clients.spawn(async move {
                for n in 0u64.. {
                    let prompt = format!("life {life} client {client} number {n}");
                    let Ok(stream) = TcpStream::connect(address).await else {
                        return;
                    };
                    let Some((id, amount)) = ask(Wire::over(stream), n % 5, &prompt).await else {
                        return;
                    };
                    let at = events();
                    received.lock().push(Received { at, id, amount });
                }
            });
        }
        within(std::time::Duration::from_secs(60), "answers", || async {
            (received.lock().len() >= life * ANSWERS).then_some(())
        })
        .await;
        daemon.kill().await;
        while clients.join_next().await.is_some() {}
        // The kill may have come between a record and its count.
        let records = Recording::read(&rig.outside("log"), &rig.state_dir()).len() as u64;
        assert!(records - rig.events() <= 1, "{records} records");
        rig.sets_events(records);
    }

    let debits = sandbox.debits().await;
    let books = debits.iter().map(|debit| {
        let key = debit["key"].as_str().expect("every debit has a key");
        let amount = debit["amount_micro_usd"].as_u64().expect("an amount");
        (key.to_owned(), amount)
    });
    let recording = Recording::read(&rig.outside("log"), &rig.state_dir());
    assert_eq!(recording.len() as u64, rig.events());
    Run {
        books: books.collect(),
        sent: watch.sent(),
        received: received.lock().clone(),
        recording,
        rig,
    }
}

/// One request; entry and amount of a whole answer. `None` when the daemon is gone.
async fn ask(mut wire: Wire, kind: u64, prompt: &str) -> Option<(String, u64)> {
    let (path, body) = match kind {
        0 => ("/v1/chat/completions", chat(prompt)),
        1 => ("/v1/chat/completions", chat_stream(prompt)),
        2 => ("/agent/v1/chat/completions", chat(prompt)),
        3 => ("/v1/responses", responses_stream(prompt)),
        _ => ("/agent/v1/messages", messages_stream(prompt)),
    };
    if !wire.try_send(request("POST", path, &[], &body)).await {
        return None;
    }
    let answer = wire.answer().await;
    if !answer.complete || answer.status != 200 {
        return None;
    }
    let text = answer.text();
    let amount = match kind {
        1 => text
            .lines()
            .find_map(|line| line.strip_prefix(": service-billed-micro-usd ")),
        _ => answer.header("x-service-billed"),
    };
    let amount = amount.expect("a receipt").parse().expect("an amount");
    let id = answer.header("x-bursar-entry").expect("an entry id");
    Some((id.to_owned(), amount))
}

/// Cuts at random moments, half of them right after an acknowledgement.
async fn cut_often(run: &Arc<Run>, cuts: u64, is_durable: bool) -> Vec<Lost> {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut starts = JoinSet::new();
    for seed in 1..=cuts {
        let (run, places) = (Arc::clone(run), Arc::clone(&places));
        starts.spawn(async move {
            let _place = places.acquire_owned().await.expect("a place");
            let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let at = if seed % 2 == 0 {
                let received = run.received.len() as u64;
                let one = usize::try_from(random.below(received)).expect("small");
                run.received[one].at
            } else {
                random.below(run.recording.len() as u64 + 1)
            };
            let target = run.rig.outside(&format!("cut-{seed}"));
            let events = usize::try_from(at).expect("small");
            run.recording.cut(events, &mut random, &target);
            let lost = run.after(at, &target, seed, is_durable).await;
            std::fs::remove_dir_all(&target).expect("the cut is removed");
            lost
        });
    }
    let mut all = Vec::new();
    while let Some(lost) = starts.join_next().await {
        all.push(lost.expect("the ledger stands the cut"));
    }
    all
}

// === impl Run ===

impl Run {
    /// A daemon starts on the disk after the cut; what it knows is compared with what happened.
    async fn after(&self, at: u64, state_dir: &Path, seed: u64, is_durable: bool) -> Lost {
        let log = self.rig.outside(&format!("cut-{seed}.stderr"));
        let state = state_dir.to_str().expect("a UTF-8 path");
        let mut command = crate::support::daemon::command(&crate::support::daemon::run_arguments(
            "http://127.0.0.1:9",
            state,
        ));
        command.stderr(std::fs::File::create(&log).expect("a file"));
        let logged = || std::fs::read_to_string(&log).unwrap_or_default();
        match Daemon::launched(command).await {
            Ok(daemon) => daemon.terminate().await,
            Err(_) => panic!("cut {seed} at {at}: no start: {}", logged()),
        }

        let found = entries(state_dir);
        let mut lost = Lost::default();
        for received in self.received.iter().filter(|received| received.at <= at) {
            let entry = found
                .iter()
                .find(|entry| entry.id.0.to_string() == received.id);
            let billed = entry
                .and_then(|entry| entry.billed_micro_usd)
                .map(|billed| billed.get());
            lost.acknowledged += usize::from(billed != Some(received.amount));
        }
        for key in self.sent.iter().filter(|(_, sent)| **sent <= at) {
            let is_known = |entry: &bursar::ledger::query::EntryView| {
                entry.key.as_deref() == Some(key.0.as_str())
            };
            lost.sent += usize::from(!found.iter().any(is_known));
        }
        // Key by key: settled ≤ books ≤ settled + in doubt.
        for entry in &found {
            assert_ne!(entry.state, State::Open, "cut {seed}");
            let key = entry.key.as_deref().expect("a key");
            let books = self.books.get(key).copied().unwrap_or_default();
            let settled = entry.billed_micro_usd.map(|billed| billed.get());
            let in_doubt = matches!(entry.state, State::InDoubt { .. });
            assert!(
                settled == Some(books) || (settled.is_none() && in_doubt),
                "cut {seed} at {at}: {entry:?}, books {books}"
            );
        }
        let report = verify(state_dir).expect("the ledger reads");
        let journal = &report.journal;
        let names_it = journal.bad_count + journal.gap_count > 0 || !report.lost.is_empty();
        assert!(report.ok || names_it, "cut {seed} at {at}: {report:?}");
        let is_lost = lost.acknowledged + lost.sent > 0;
        assert!(
            !(is_durable && is_lost),
            "cut {seed} at {at}: {lost:?}: {report:?}\n{}",
            logged()
        );
        lost
    }
}
