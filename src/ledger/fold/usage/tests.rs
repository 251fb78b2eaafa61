use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::clock::{ManualClock, SharedClock};
use crate::ledger::entry::{AttemptEnd, Intent, StateWord};
use crate::ledger::fixtures::{self, START_MS, billed, ended, intent, kill_after_next};
use crate::ledger::fold::sessions::SessionAt;
use crate::ledger::index::usage_file::UsageFile;
use crate::ledger::journal::state_dir::Directory;
use crate::ledger::marks::{Marks, SessionHasher};
use crate::ledger::read::usage::{read, read_run};
use crate::ledger::record::seal;
use crate::ledger::rollup::Rollup;
use crate::ledger::sums::{Compared, LineSums};
use crate::ledger::tallies::Tallies;
use crate::ledger::{Ledger, LedgerOptions, compact};
use crate::protocol::receipt::Receipt;
use crate::protocol::{Escalated, Lane, Reported};

mod leases;

struct Bench {
    folder: tempfile::TempDir,
    clock: ManualClock,
}

impl Bench {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            clock: ManualClock::at(START_MS),
        }
    }

    fn state_dir(&self) -> std::path::PathBuf {
        self.folder.path().join("state")
    }

    fn options(&self) -> LedgerOptions {
        let clock: SharedClock = Arc::new(self.clock.clone());
        LedgerOptions {
            segment_bytes_max: 2_000,
            ..LedgerOptions::new(self.state_dir(), clock)
        }
    }

    fn open(&self) -> Ledger {
        Ledger::open(self.options()).unwrap()
    }

    /// As the ledger reports it, and as a reader of its files finds it.
    fn usage(&self, ledger: &Ledger) -> CapUsage {
        let watched = watched(ledger);
        let read = read(&self.state_dir(), self.now_ms()).unwrap();
        assert_eq!(watched, read, "files and daemon agree");
        watched
    }

    fn now_ms(&self) -> u64 {
        use crate::clock::Clock;
        self.clock.wall_ms()
    }

    async fn begin(&self, ledger: &Ledger, reserved: u64) -> EntryId {
        let id = ledger.new_entry_id();
        let mut intent = intent(id, self.now_ms(), Some(&id.to_string()));
        intent.reserved = Some(MicroUsd::new(reserved));
        ledger.intend(intent).await.unwrap();
        id
    }

    async fn buy(&self, ledger: &Ledger, reserved: u64, receipt: Receipt) {
        let id = self.begin(ledger, reserved).await;
        let outcome = ended(id, AttemptEnd::Answered, receipt);
        ledger.settle(outcome).await.unwrap();
    }
}

fn watched(ledger: &Ledger) -> CapUsage {
    let got: Arc<parking_lot::Mutex<CapUsage>> = Arc::default();
    let to = Arc::clone(&got);
    ledger.watch_usage(Box::new(move |news| {
        if let UsageUpdate::All { usage, .. } = news {
            *to.lock() = usage.clone();
        }
    }));
    std::mem::take(&mut *got.lock())
}

fn sums(usage: &CapUsage) -> (u128, u128) {
    let all = usage.charged(None, 0, u64::MAX);
    (all.billed.get(), all.held.now())
}

#[tokio::test]
async fn a_start_finds_what_the_process_before_it_had_also_after_a_kill() {
    let bench = Bench::new();
    let ledger = bench.open();
    bench.buy(&ledger, 50, billed(30)).await;
    bench.buy(&ledger, 50, Receipt::default()).await;
    assert_eq!(sums(&bench.usage(&ledger)), (30, 50), "unreported is held");
    let _open = bench.begin(&ledger, 70).await;
    let last = bench.begin(&ledger, 50).await;
    kill_after_next(&ledger);
    let outcome = ended(last, AttemptEnd::Answered, billed(90));
    ledger.settle(outcome).await.unwrap();
    drop(ledger);

    let ledger = bench.open();
    // The one that was open is held at the dearest price of its kind, not at what was reserved first.
    assert_eq!(sums(&bench.usage(&ledger)), (120, 50 + 90));
    ledger.close().await;
    assert!(
        bench.state_dir().join("usage").exists(),
        "kept at the end in order"
    );
    let ledger = bench.open();
    assert_eq!(sums(&bench.usage(&ledger)), (120, 140));
}

#[tokio::test]
async fn entries_in_doubt_are_counted_with_the_file_of_usage_and_without_it() {
    let bench = Bench::new();
    let ledger = bench.open();
    bench.buy(&ledger, 50, billed(30)).await;
    for _ in 0..2 {
        let lost = bench.begin(&ledger, 0).await;
        let outcome = ended(lost, AttemptEnd::NoHead, Receipt::default());
        ledger.settle(outcome).await.unwrap();
    }
    let in_doubt = |usage: &CapUsage| usage.in_doubt(None, 0, u64::MAX);
    assert_eq!(in_doubt(&bench.usage(&ledger)), 2);
    let usage = bench.usage(&ledger);
    let apps: Vec<_> = usage.doubts.values().flat_map(|apps| apps.keys()).collect();
    assert_eq!(apps.len(), 1);
    assert_eq!(usage.in_doubt(Some(apps[0]), 0, u64::MAX), 2);
    assert_eq!(usage.in_doubt(Some("another"), 0, u64::MAX), 0);
    assert_eq!(usage.in_doubt(None, 0, START_MS - GRAIN_MS), 0);
    ledger.close().await;
    let ledger = bench.open();
    assert_eq!(in_doubt(&bench.usage(&ledger)), 2);
    ledger.close().await;
    std::fs::remove_file(bench.state_dir().join("usage")).unwrap();
    let ledger = bench.open();
    assert_eq!(in_doubt(&bench.usage(&ledger)), 2);
}

#[tokio::test]
async fn a_damaged_or_missing_file_of_usage_costs_a_reading_and_nothing_else() {
    let bench = Bench::new();
    let ledger = bench.open();
    for _ in 0..40 {
        bench.buy(&ledger, 5, billed(3)).await;
        bench.clock.advance(Duration::from_secs(4 * 3600));
    }
    let before = bench.usage(&ledger);
    ledger.close().await;
    let path = bench.state_dir().join("usage");
    let sound = std::fs::read(&path).unwrap();
    let mut flipped = sound.clone();
    flipped[sound.len() / 2] ^= 2;
    for bytes in [
        Some(&sound[..]),
        Some(&flipped[..]),
        Some(&sound[..9]),
        None,
    ] {
        match bytes {
            Some(bytes) => std::fs::write(&path, bytes).unwrap(),
            None => std::fs::remove_file(&path).unwrap(),
        }
        let ledger = bench.open();
        assert_eq!(bench.usage(&ledger), before);
        ledger.close().await;
    }
    // One that reaches beyond the journal: the journal decides, and what comes next counts.
    let state = Directory::open(&bench.state_dir()).unwrap();
    let text = std::fs::read_to_string(bench.state_dir().join("identity.json")).unwrap();
    let identity: serde_json::Value = serde_json::from_str(&text).unwrap();
    let name = identity["ledger"].as_str().unwrap();
    let mut more = before.clone();
    more.quarters.clear();
    UsageFile::write(&state, name, 10_000, &more).unwrap();
    let ledger = bench.open();
    assert_eq!(bench.usage(&ledger).quarters, before.quarters);
    ledger.close().await;
    // One that is behind: what came after it is read from the journal.
    let ledger = bench.open();
    bench.buy(&ledger, 5, billed(1_000)).await;
    ledger.close().await;
    std::fs::write(&path, &sound).unwrap();
    let ledger = bench.open();
    assert_eq!(sums(&bench.usage(&ledger)), (40 * 3 + 1_000, 0));
}

#[tokio::test]
async fn what_was_compacted_still_counts() {
    let bench = Bench::new();
    let ledger = bench.open();
    for _ in 0..30 {
        bench.buy(&ledger, 5, billed(3)).await;
        bench.buy(&ledger, 8, Receipt::default()).await;
        bench.clock.advance(Duration::from_secs(4 * 3600));
    }
    let before = bench.usage(&ledger);
    ledger.close().await;
    let days = Duration::from_secs(2 * 24 * 3600);
    let report = compact(bench.options(), days).unwrap();
    assert!(
        report.entries.is_some_and(|entries| entries > 10),
        "{report:?}"
    );
    std::fs::remove_file(bench.state_dir().join("usage")).unwrap();
    let ledger = bench.open();
    let after = bench.usage(&ledger);
    assert_eq!(after.quarters, before.quarters);
    assert_eq!(sums(&after), (90, 240));
}

#[tokio::test]
async fn i11_the_oldest_quarter_hours_are_forgotten_and_their_prices_are_not() {
    let bench = Bench::new();
    let ledger = bench.open();
    bench.buy(&ledger, 5, billed(300)).await;
    let mut usage = watched(&ledger);
    for number in 1..=QUARTERS_MAX + 10 {
        let at_ms = START_MS + u64::try_from(number).unwrap() * GRAIN_MS;
        usage.quarters.entry(at_ms).or_default();
        usage.prune();
    }
    let first_ms = *usage.quarters.first_key_value().unwrap().0;
    assert_eq!(usage.quarters.len(), QUARTERS_MAX);
    assert_eq!(first_ms, START_MS + 11 * GRAIN_MS);
    assert_eq!(sums(&usage), (0, 0));
    let prices = usage.prices(&Arc::from("notes"), Operation::Chat).unwrap();
    assert_eq!(
        prices.dearest().map(Dearest::of_one),
        Some(MicroUsd::new(300))
    );
}

#[tokio::test]
async fn a_clock_that_was_ahead_takes_nothing_from_what_a_cap_was_charged() {
    let bench = Bench::new();
    let ledger = bench.open();
    bench.buy(&ledger, 5, billed(300)).await;
    bench.clock.set_wall_ms(START_MS + 2 * KEPT_MS);
    bench.buy(&ledger, 5, billed(4)).await;
    bench.clock.set_wall_ms(START_MS + 1_000);
    bench.buy(&ledger, 5, billed(50)).await;
    let charged = |ledger: &Ledger| {
        let charge = watched(ledger).charged(None, START_MS, START_MS + GRAIN_MS);
        charge.billed.get()
    };
    assert_eq!(charged(&ledger), 350);
    ledger.close().await;
    assert_eq!(charged(&bench.open()), 350);
}

/// The next one may cost something, and its app has not to wait as for the first.
#[tokio::test]
async fn an_answer_for_nothing_is_seen_and_a_failure_is_not() {
    let bench = Bench::new();
    let ledger = bench.open();
    let prices = |usage: &CapUsage| {
        let prices = usage.prices(&Arc::from("notes"), Operation::Chat);
        prices.map(PriceHistory::dearest)
    };
    let id = bench.begin(&ledger, 5).await;
    let failed = ended(id, AttemptEnd::Refused, Receipt::default());
    ledger.settle(failed).await.unwrap();
    assert_eq!(prices(&bench.usage(&ledger)), None);
    bench.buy(&ledger, 5, billed(0)).await;
    assert_eq!(prices(&bench.usage(&ledger)), Some(None));
    ledger.close().await;
    let ledger = bench.open();
    assert_eq!(prices(&bench.usage(&ledger)), Some(None));
}

#[tokio::test]
async fn the_charge_of_a_run_is_read_as_it_was_reported() {
    let bench = Bench::new();
    let ledger = bench.open();
    let reported: Arc<parking_lot::Mutex<Charge>> = Arc::default();
    let to = Arc::clone(&reported);
    ledger.watch_usage(Box::new(move |news| {
        if let UsageUpdate::Records(records) = news {
            let of_run = records.iter().filter(|one| one.run.as_deref() == Some("r"));
            of_run.for_each(|one| *to.lock() += one.charge);
        }
    }));
    let mut begun = Vec::new();
    for (run, reserved) in [
        (Some("r"), 50),
        (Some("other"), 60),
        (None, 70),
        (Some("r"), 80),
    ] {
        let id = ledger.new_entry_id();
        let mut intent = intent(id, bench.now_ms(), Some(&id.to_string()));
        intent.reserved = Some(MicroUsd::new(reserved));
        intent.run = run.map(str::to_owned);
        ledger.intend(intent).await.unwrap();
        begun.push(id);
    }
    for id in &begun[..3] {
        let outcome = ended(*id, AttemptEnd::Answered, billed(30));
        ledger.settle(outcome).await.unwrap();
    }
    let read = || read_run(&bench.state_dir(), "r", START_MS).unwrap();
    assert_eq!(read().charge.billed, reported.lock().billed);
    assert_eq!(read().charge.billed.get(), 30);
    assert_eq!(read().charge.held.now(), 80, "the one that has no end");
    assert_eq!(read().entries, [begun[0], begun[3]]);
    let outcome = ended(begun[3], AttemptEnd::Answered, Receipt::default());
    ledger.settle(outcome).await.unwrap();
    assert_eq!(read().charge, *reported.lock());
    assert_eq!(read().charge.held.now(), 80);
}

#[test]
fn the_dearest_is_that_of_the_last_thousand() {
    let mut prices = PriceHistory::default();
    let mut amounts: Vec<u64> = Vec::new();
    let mut random = 0x1234_5678_9abc_def1_u64;
    for _ in 0..5_000 {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let amount = random % 1_000_000;
        amounts.push(amount);
        // The one rises where the other falls.
        let frontier = 1_000_000 - amount;
        prices.add(Price::Reported {
            billed: MicroUsd::new(amount),
            frontier: MicroUsd::new(frontier),
            bytes: amount / 7,
        });
        let last = &amounts[amounts.len().saturating_sub(1_000)..];
        let dearest = prices.dearest().unwrap();
        assert_eq!(Some(dearest.billed.get()), last.iter().copied().max());
        let cheapest = last.iter().copied().min().unwrap();
        assert_eq!(dearest.frontier.get(), 1_000_000 - cheapest);
    }
    for kept in [prices.billed.len(), prices.frontier.len()] {
        assert!(kept < 100, "what a later one exceeds is not kept");
    }
}

fn cheap(billed: u64, frontier: u64) -> Receipt {
    Receipt {
        would_have_cost: Reported::Value(MicroUsd::new(frontier)),
        ..fixtures::billed(billed)
    }
}

#[tokio::test]
async fn what_was_billed_and_what_the_frontier_takes_are_kept_apart_also_in_what_was_compacted() {
    let bench = Bench::new();
    let ledger = bench.open();
    for (billed, frontier) in [(10, 260), (12, 90)] {
        bench.buy(&ledger, 5, cheap(billed, frontier)).await;
    }
    let dearest = |usage: &CapUsage| {
        let prices = usage.prices(&Arc::from("notes"), Operation::Chat).unwrap();
        let dearest = prices.dearest().unwrap();
        (dearest.billed.get(), dearest.frontier.get())
    };
    assert_eq!(dearest(&bench.usage(&ledger)), (12, 260));
    bench.clock.advance(Duration::from_secs(4 * 24 * 3600));
    // Enough to begin another segment.
    for _ in 0..20 {
        bench.buy(&ledger, 5, Receipt::default()).await;
    }
    ledger.close().await;
    compact(bench.options(), Duration::from_secs(2 * 24 * 3600)).unwrap();
    std::fs::remove_file(bench.state_dir().join("usage")).unwrap();
    let ledger = bench.open();
    assert_eq!(
        dearest(&bench.usage(&ledger)),
        (175, 175),
        "the larger of the means, 22 / 2 and 350 / 2, with the room to grow of a billed one"
    );
}

/// An image beside chats, or any answer without an estimate, says nothing of what the frontier takes.
#[test]
fn the_mean_of_the_frontiers_price_is_that_of_the_answers_that_carry_it() {
    let sum = |micro_usd| MicroUsdSum::from_micro_usd(micro_usd);
    let sums_of_line = LineSums {
        requests: 4,
        settled: 4,
        billed: sum(40),
        would_have_cost: sum(260),
        answers: [(Escalated::False, 4)].into(),
        ..LineSums::default()
    };
    let compared = Compared {
        answers: 1,
        billed: sum(10),
        frontier: sum(260),
    };
    for (compared, wanted) in [
        (compared, 260),
        // A line of an earlier release.
        (Compared::default(), 65),
    ] {
        let row = LineSums {
            compared,
            ..sums_of_line.clone()
        };
        let rollup = Rollup {
            at_ms: START_MS,
            app: Arc::from("notes"),
            lane: Lane::Inference,
            operation: Operation::Chat,
            served_by: None,
            state: StateWord::Settled,
            row,
            tallies: Tallies::default(),
            globals: None,
        };
        let charged = Charged::of(&Record::Rollup(Box::new(rollup)), 0).unwrap();
        let wanted = MicroUsd::new(wanted);
        assert_eq!(
            charged.price,
            Price::Reported {
                billed: wanted,
                frontier: wanted,
                bytes: 0
            }
        );
    }
}

/// The first format had one price of each receipt. Of what was compacted meanwhile the journal has means alone: the
/// file has more.
#[tokio::test]
async fn the_price_of_a_file_of_the_first_format_stands_for_both() {
    let bench = Bench::new();
    let ledger = bench.open();
    bench.buy(&ledger, 5, cheap(10, 260)).await;
    let before = bench.usage(&ledger);
    ledger.close().await;
    let path = bench.state_dir().join("usage");
    let second = std::fs::read_to_string(&path).unwrap();
    let body: serde_json::Value = serde_json::from_str(&second).unwrap();
    assert_eq!(body["format"], 2);
    let mut first = format!(
        r#"{{"kind":"usage","format":1,"ledger":{},"last_seq":{},"quarters":{},"prices":[{{"app":"notes","operation":"chat","prices":{{"receipts":1,"dearest":[[1,9999]],"largest":[[1,2]],"untold":false}}}}]"#,
        body["ledger"], body["last_seq"], body["quarters"]
    )
    .into_bytes();
    seal(0, &mut first);
    std::fs::write(&path, first).unwrap();
    let ledger = bench.open();
    let usage = watched(&ledger);
    assert_eq!(usage.quarters, before.quarters);
    let of_chat = |usage: &CapUsage| {
        let prices = usage.prices(&Arc::from("notes"), Operation::Chat).unwrap();
        let dearest = prices.for_body(1).unwrap();
        (dearest.billed.get(), dearest.frontier.get())
    };
    assert_eq!(of_chat(&usage), (9_999, 9_999), "not (10, 260)");
    // From here on the two prices are kept apart.
    bench.buy(&ledger, 5, cheap(12_000, 300)).await;
    assert_eq!(of_chat(&watched(&ledger)), (12_000, 9_999));
    ledger.close().await;
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(
        written.contains(r#""format":2"#) && !written.contains("dearest"),
        "{written}"
    );
    assert_eq!(of_chat(&watched(&bench.open())), (12_000, 9_999));
}

#[test]
fn a_file_of_another_ledger_is_not_believed() {
    let bench = Bench::new();
    let state = Directory::open_or_create(&bench.state_dir()).unwrap();
    let mut usage = CapUsage::default();
    usage
        .prices
        .insert((Arc::from("a"), Operation::Chat), PriceHistory::default());
    UsageFile::write(&state, "one", 7, &usage).unwrap();
    assert_eq!(UsageFile::read(&state, "one").last_seq, 7);
    assert_eq!(UsageFile::read(&state, "one").usage, usage);
    assert_eq!(UsageFile::read(&state, "two").last_seq, 0);
}

const SESSION: &str = "a conversation";

fn session() -> crate::ledger::marks::Session {
    SessionHasher::default().session("notes", SESSION)
}

async fn begin_in_session(bench: &Bench, ledger: &Ledger) -> EntryId {
    let id = ledger.new_entry_id();
    let marks = Marks {
        session: Some(session()),
        ..Marks::default()
    };
    let intent = Intent {
        reserved: Some(MicroUsd::new(50)),
        marks: marks.into_shared(),
        ..intent(id, bench.now_ms(), Some(&id.to_string()))
    };
    ledger.intend(intent).await.unwrap();
    id
}

async fn buy_in_session(bench: &Bench, ledger: &Ledger, receipt: Receipt) {
    let id = begin_in_session(bench, ledger).await;
    let outcome = ended(id, AttemptEnd::Answered, receipt);
    ledger.settle(outcome).await.unwrap();
}

/// Billed, held and counted.
fn of_session(usage: &CapUsage) -> (u128, u128, u64) {
    let sum = usage
        .sessions
        .get("notes", SessionAt::Named(session().hash));
    (sum.charge.billed.get(), sum.charge.held.now(), sum.requests)
}

#[tokio::test]
async fn a_session_is_remembered_over_a_kill_and_over_an_older_bursar() {
    let bench = Bench::new();
    let ledger = bench.open();
    buy_in_session(&bench, &ledger, billed(30)).await;
    buy_in_session(&bench, &ledger, Receipt::default()).await;
    bench.buy(&ledger, 50, billed(7)).await;
    assert_eq!(of_session(&bench.usage(&ledger)), (30, 50, 2));
    let last = begin_in_session(&bench, &ledger).await;
    kill_after_next(&ledger);
    let outcome = ended(last, AttemptEnd::Answered, billed(12));
    ledger.settle(outcome).await.unwrap();
    drop(ledger);
    let ledger = bench.open();
    assert_eq!(of_session(&bench.usage(&ledger)), (42, 50, 3));
    ledger.close().await;

    // An older bursar writes a file that says nothing of sessions.
    let path = bench.state_dir().join("usage");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut body: serde_json::Value = serde_json::from_str(&text).unwrap();
    let members = body.as_object_mut().unwrap();
    assert!(members.remove("sessions").is_some());
    members.remove("kind");
    members.remove("crc");
    let rest = serde_json::to_string(&body).unwrap();
    let mut older = format!(r#"{{"kind":"usage",{}"#, &rest[1..rest.len() - 1]).into_bytes();
    seal(0, &mut older);
    std::fs::write(&path, older).unwrap();
    let ledger = bench.open();
    assert_eq!(of_session(&bench.usage(&ledger)), (42, 50, 3));
    buy_in_session(&bench, &ledger, billed(1)).await;
    assert_eq!(of_session(&bench.usage(&ledger)), (43, 50, 4));
}

#[tokio::test]
async fn a_session_is_remembered_over_compaction() {
    let bench = Bench::new();
    let ledger = bench.open();
    for _ in 0..30 {
        buy_in_session(&bench, &ledger, billed(3)).await;
        bench.clock.advance(Duration::from_secs(4 * 3600));
    }
    ledger.close().await;
    let report = compact(bench.options(), Duration::from_secs(2 * 24 * 3600)).unwrap();
    assert!(
        report.entries.is_some_and(|entries| entries > 10),
        "{report:?}"
    );
    let ledger = bench.open();
    assert_eq!(of_session(&watched(&ledger)), (90, 0, 30));
}
