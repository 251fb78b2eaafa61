//! Damage: whatever happens to the files of a ledger, nothing panics, nothing counts twice, and
//! either all sums are unchanged, or `ledger verify` names the lost records.
//!
//! The rig finds the lost records itself, by checksums, and not by bursar's reader.
//! `BURSAR_DAMAGE_SEED=n` repeats one case; `BURSAR_DAMAGES=n` sets the number of cases.

mod harm;
mod sample;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bursar::clock::ManualClock;
use bursar::ledger::entry::{InDoubt, State};
use bursar::ledger::query::{
    EntryView, Filter, IndexCheck, VerifyReport, entries, find, spend, verify,
};
use bursar::ledger::{Ledger, LedgerError};
use jiff::tz::TimeZone;

use crate::support::daemon::{Daemon, command};
use crate::support::{Sandbox, chat};
use harm::{Harmed, harm, harm_index};
use sample::{Sample, buy, options, write_tree};

/// Cases in `make test`; `make test-all` runs a thousand.
const CASES: u64 = 40;
const CASES_ALL: u64 = 1_000;

/// Money that the rig spends after the damage, each time.
const LATER: u64 = 1_000_000;

#[test]
fn damage_changes_no_sum_in_silence() {
    each_seed(CASES, &|sample, seed| check(sample, &harm(sample, seed)));
}

#[test]
#[ignore = "minutes; `make test-all` runs it"]
fn a_thousand_times_damage_changes_no_sum_in_silence() {
    each_seed(CASES_ALL, &|sample, seed| {
        check(sample, &harm(sample, seed));
    });
}

#[test]
fn damage_in_the_index_alone_changes_no_sum_and_no_lookup() {
    each_seed(CASES / 3, &|sample, seed| {
        let harmed = harm_index(sample, seed);
        check(sample, &harmed);
    });
}

/// `bursar` with these words on this ledger: exit code and output.
async fn bursar(words: &[&str], state: &Path) -> (Option<i32>, String) {
    let path = state.to_str().expect("a path");
    let words = [words, &["--state-dir", path]].concat();
    let done = command(&words).output().await.expect("it runs");
    let said = [done.stdout, done.stderr].concat();
    (
        done.status.code(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

#[tokio::test]
async fn the_daemon_and_the_commands_go_on_after_damage_and_say_what_is_lost() {
    let sandbox = Sandbox::start().await;
    let directory = tempfile::tempdir().expect("a directory");
    let state = directory.path().join("state");
    let daemon = Daemon::start(&sandbox.url(), &state, &[]).await;
    for n in 0..3 {
        let wire = daemon.connect().await;
        let answer = wire
            .post("/v1/chat/completions", &chat(&format!("n {n}")))
            .await;
        assert_eq!(answer.status, 200);
    }
    daemon.terminate().await;
    let segment = state.join("journal/00000001.jsonl");
    let mut bytes = std::fs::read(&segment).expect("a segment");
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    let fourth = ends.map(|(at, _)| at).nth(4).expect("four records");
    bytes[fourth - 40] ^= 1;
    std::fs::write(&segment, bytes).expect("written");

    let (code, said) = bursar(&["ledger", "verify"], &state).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("record 4 is lost"), "{said}");
    assert!(said.contains("1 entry may have lost its end"), "{said}");

    let daemon = Daemon::start(&sandbox.url(), &state, &[]).await;
    let pid = daemon.child.id().expect("a pid");
    let metrics = daemon.admin_page("/metrics").await.text();
    let wanted = r#"bursar_in_doubt_requests{app="default",reason="damaged"} 1"#;
    assert!(metrics.contains(wanted), "{metrics}");
    let (code, said) = bursar(&["ledger", "rebuild"], &state).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains(&format!("process {pid}")), "{said}");
    daemon.terminate().await;

    let (code, said) = bursar(&["ledger", "rebuild"], &state).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("3 entries in "), "{said}");
    let (code, said) = bursar(&["ledger", "verify", "--json"], &state).await;
    assert_eq!(code, Some(1), "{said}");
    let report: serde_json::Value = serde_json::from_str(said.trim()).expect("one object");
    assert_eq!(report["damage"][0]["first_seq"], 4, "{said}");
    assert_eq!(report["index"]["result"], "agrees", "{said}");
}

/// Runs cases on two threads and returns the seeds that failed.
#[expect(
    clippy::disallowed_methods,
    reason = "a failing case is repeated this way"
)]
fn each_seed(cases: u64, case: &(dyn Fn(&Sample, u64) + Sync)) {
    let number = |name| {
        let text = std::env::var(name).ok();
        text.map(|text| text.parse::<u64>().expect("a number"))
    };
    let seeds = match number("BURSAR_DAMAGE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("BURSAR_DAMAGES").unwrap_or(cases),
    };
    let sample = block_on(Sample::make());
    let next = AtomicU64::new(seeds.start);
    let failed = parking_lot::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    if catch_unwind(AssertUnwindSafe(|| case(&sample, seed))).is_err() {
                        failed.lock().push(seed);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner();
    assert!(
        failed.is_empty(),
        "repeat with BURSAR_DAMAGE_SEED=n: {failed:?}"
    );
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime")
        .block_on(work)
}

fn check(sample: &Sample, harmed: &Harmed) {
    // In memory if possible: the disk is not under test.
    let memory = Path::new("/dev/shm");
    let root = tempfile::tempdir_in(memory).or_else(|_| tempfile::tempdir());
    let root = root.expect("a directory");
    let state = root.path().join("state");
    write_tree(&state, &harmed.files);
    let done = &harmed.done;
    let clock = ManualClock::at(sample.end_ms + 1_000);
    let missing = sample.missing(&harmed.files);
    let there = sample.amount_without(&missing);
    let all = sample.totals.billed().get();

    let said = verify(&state).expect("verify reads anything");
    assert_eq!(said.billed_micro_usd.get(), there, "{done:?}: {said:?}");
    names_all(&said, &missing, done);
    assert!(!said.ok || missing.is_empty(), "{done:?}: {said:?}");

    let ledger = match Ledger::open(options(&state, &clock)) {
        Err(LedgerError::ForeignFormat { path, .. }) if harmed.identity => {
            assert!(said.identity_damaged, "{done:?}");
            // The text of the message.
            std::fs::remove_file(path).expect("it is there");
            Ledger::open(options(&state, &clock))
        }
        opened => opened,
    };
    let ledger = ledger.unwrap_or_else(|error| panic!("{done:?}: {error}"));
    let opened = ledger.totals();
    let billed = opened.billed().get();
    if missing.is_empty() {
        assert_eq!(*opened, sample.totals, "{done:?}");
        finds_all(sample, &state, &missing, done);
    } else if ledger.health().index_rebuilds > 0 {
        assert_eq!(billed, there, "{done:?}: {said:?}");
    } else {
        // The index remembers more than the journal, in a part of it that no start reads.
        assert!(billed == all || billed == there, "{done:?}: {billed}");
    }
    for n in 0..2u32 {
        let bought = block_on(buy(&ledger, &clock, &format!("after-{n}"), LATER));
        assert!(matches!(bought.state, State::Settled { .. }), "{done:?}");
    }
    let before = ledger.totals();
    assert_eq!(before.billed().get(), billed + 2 * u128::from(LATER));
    block_on(ledger.close());

    let again = Ledger::open(options(&state, &clock)).expect("it opens again");
    // A later start may read an older part of the journal, and find there what the index counts.
    let is_found_now = !missing.is_empty() && again.health().index_rebuilds > 0;
    if is_found_now {
        let journal = there + 2 * u128::from(LATER);
        assert_eq!(again.totals().billed().get(), journal, "{done:?}");
    } else {
        assert_eq!(*again.totals(), *before, "{done:?}");
    }
    block_on(again.close());
    let said = verify(&state).expect("verify reads anything");
    names_all(&said, &missing, done);
    let is_whole =
        harmed.files.iter().all(|(name, bytes)| {
            !name.starts_with("journal") || sample.files.get(name) == Some(bytes)
        }) && harmed.files.len() >= sample.files.len();
    if is_whole && missing.is_empty() {
        assert!(said.ok, "{done:?}: {said:?}");
    }

    Ledger::rebuild(options(&state, &clock), Arc::new(|_, _| {})).expect("a new index");
    let rebuilt = Ledger::open(options(&state, &clock)).expect("it opens");
    let totals = rebuilt.totals();
    assert_eq!(totals.billed().get(), there + 2 * u128::from(LATER));
    let sums = spend(&state, None, None, &[], &TimeZone::UTC)
        .expect("sums")
        .total;
    assert_eq!(sums.billed_micro_usd, totals.billed(), "{done:?}");
    assert_eq!(sums.requests, totals.requests(), "{done:?}");
    assert_eq!(sums.open, 0, "{done:?}");
    finds_all(sample, &state, &missing, done);
    block_on(rebuilt.close());
    damaged_ends(sample, &state, &missing, done);
    let said = verify(&state).expect("verify reads anything");
    names_all(&said, &missing, done);
    assert_eq!(said.index, IndexCheck::Agrees, "{done:?}");
}

/// Every record that is gone lies in a range that is named.
fn names_all(said: &VerifyReport, missing: &BTreeSet<u64>, done: &[String]) {
    for seq in missing {
        let is_named = said.damage.iter().any(|damage| {
            damage.first_seq.is_some_and(|first| first <= *seq)
                && damage.last_seq.is_none_or(|last| *seq <= last)
        });
        assert!(
            is_named,
            "{done:?}: {seq} is lost, and named is {:?}",
            said.damage
        );
    }
    assert!(missing.is_empty() || !said.ok, "{done:?}: {said:?}");
}

/// Entries of which no line is lost are found by id and by key.
fn finds_all(sample: &Sample, state: &Path, missing: &BTreeSet<u64>, done: &[String]) {
    let harmed: BTreeSet<&str> = missing
        .iter()
        .map(|seq| sample.lines[seq].id.as_str())
        .collect();
    let whole = sample.lines.values().filter(|known| {
        known.kind == "outcome" && known.adds > 0 && !harmed.contains(known.id.as_str())
    });
    let found = |text: &str| find(state, text).expect("a search").entries;
    for known in whole.step_by(7) {
        let views = found(&known.id);
        assert_eq!(views.len(), 1, "{done:?}: {known:?}");
        let billed = views[0].billed_micro_usd.map(|billed| billed.get());
        assert_eq!(billed, Some(known.adds), "{done:?}");
        if let Some(key) = &known.key {
            let is_it = |view: &EntryView| view.id == views[0].id;
            assert!(found(key).iter().any(is_it), "{done:?}: {known:?}");
        }
    }
}

/// What lost its end is in doubt because of the damage, and not because of a crash.
fn damaged_ends(sample: &Sample, state: &Path, missing: &BTreeSet<u64>, done: &[String]) {
    let endless = sample.endless(missing);
    let listed = entries(state, &Filter::default()).expect("a listing");
    for view in listed
        .iter()
        .filter(|view| endless.contains(&view.id.to_string()))
    {
        let reason = InDoubt::Damaged;
        let is_right = matches!(view.state, State::Replayed | State::Reconciled { .. })
            || view.state == State::InDoubt { reason };
        assert!(is_right, "{done:?}: {} is {:?}", view.id, view.state);
    }
}
