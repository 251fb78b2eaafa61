//! How long a long ledger takes, and how much memory and room: `ledger verify`, `ledger rebuild`, a daemon's
//! start with its index and without, `explain`, `receipts`, `spend`, `line`, and a purchase beside one of a short ledger;
//! then the same room after entries that the ledger itself wrote. `make bench-ledger ENTRIES=1000000`.
//!
//! The entries are those of 200 days, of which 50,000 lie in the last day. What is measured for its memory runs
//! in a process of its own. With a directory as second argument the ledger is kept there, and one that is there
//! is measured again; `ask DIRECTORY` measures questions alone. `fill DIRECTORY ENTRIES` measures nothing and
//! writes a ledger whose entries are all of the last day: as many keys are known from the start (`make soak`).
//!
//! Promise: prints what was measured. Ends with a failure where 99 of 100 calls of `bursar line` take more than 20 ms with
//! a million entries or fewer; no other time is judged.

mod line;
mod lines;
mod long;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use bursar::clock::SystemClock;
use bursar::ledger::query::{EntryView, Filter, GroupBy, StateWord, find, list, spend};
use bursar::ledger::{Ledger, LedgerOptions};
use bursar::protocol::Operation;
use jiff::tz::TimeZone;

const ENTRIES_DEFAULT: u64 = 1_000_000;

/// Entries that the ledger itself writes.
const LIVE_MAX: u64 = 1_000_000;

/// Time from one of them to the next: as many a day as the last of the other ledger.
const LIVE_EVERY_MS: u64 = 1_728;

/// How many receipts are asked for.
const NEWEST: usize = 50;

/// What a commit of the long ledger is set against.
const ENTRIES_FEW: u64 = 10_000;

/// So many on each.
const PURCHASES: usize = 2_000;

/// How many entries are asked for one by one.
const SAMPLES: u64 = 8;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// What is asked, its bounds of time, and what is grouped by.
type SpendAsked = (&'static str, Option<u64>, Option<u64>, GroupBy);

fn main() -> ExitCode {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with("--"))
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut is_met = true;
    match words.as_slice() {
        ["start", state] => runtime.block_on(start(Path::new(state))),
        ["ask", state] => ask(Path::new(state)),
        ["commits", few, state] => {
            runtime.block_on(commits([Path::new(few), Path::new(state)]));
        }
        ["fill", state, entries] => {
            let entries = entries.parse().expect("a number");
            runtime.block_on(lines::write(Path::new(state), entries, entries));
        }
        ["live", state, entries] => {
            let entries = entries.parse().expect("a number");
            runtime.block_on(long::write(Path::new(state), entries, LIVE_EVERY_MS));
        }
        words => {
            let entries = words.first().and_then(|word| word.parse().ok());
            let kept = words.get(1).map(PathBuf::from);
            is_met = runtime.block_on(measure(entries.unwrap_or(ENTRIES_DEFAULT), kept));
        }
    }
    match is_met {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Whether the one time that is judged is within its bound.
async fn measure(entries: u64, kept: Option<PathBuf>) -> bool {
    let directory = tempfile::tempdir().expect("a directory");
    let state = kept.unwrap_or_else(|| directory.path().join("state"));
    if !state.exists() {
        let began = now();
        lines::write(&state, entries, lines::LAST_DAY).await;
        print_s(&format!("{entries} entries written"), since(began));
        println!("journal {} MiB", bytes(&state.join("journal")) >> 20);
        command("ledger verify", &["ledger", "verify"], &state).await;
        command("ledger rebuild", &["ledger", "rebuild"], &state).await;
    }
    print_room(&state, entries);
    ask(&state);
    own("start with its index", &["start", text(&state)]).await;
    let line_took = line::measure(&state).await;
    let few = directory.path().join("few");
    lines::write(&few, ENTRIES_FEW, lines::LAST_DAY).await;
    let arguments = ["commits", text(&few), text(&state)];
    own("purchases on both", &arguments).await;
    fs::remove_dir_all(state.join("index")).expect("the index goes");
    own("start without an index", &["start", text(&state)]).await;

    let live = directory.path().join("live");
    let live_entries = entries.min(LIVE_MAX);
    let asked = live_entries.to_string();
    own(
        &format!("{live_entries} live entries"),
        &["live", text(&live), &asked],
    )
    .await;
    print_room(&live, live_entries);
    line::judge(entries, line_took)
}

/// What is asked without a daemon.
fn ask(state: &Path) {
    look_ups(state);
    spend_by_itself(state);
}

/// A daemon's start and what is asked of it, in a process of its own.
async fn start(state: &Path) {
    let began = now();
    let ledger = Ledger::open(LedgerOptions::new(state, SystemClock::shared())).expect("it opens");
    print_s("  until it serves", since(began));
    while ledger.health().is_adding_up {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    print_s("  until it is whole", since(began));
    let berlin = TimeZone::get("Europe/Berlin").expect("a zone");
    for (what, since_ms, until_ms, by) in spend_asked() {
        let began = now();
        let sums = ledger.spend(since_ms, until_ms, &[by], &berlin);
        let rows = sums.expect("sums").rows.len();
        print_ms(&format!("  spend {what} ({rows} rows)"), since(began));
    }
    ledger.close().await;
}

/// Purchases, by turns on a short ledger and on this one: two commits each, as durable as in the daemon.
async fn commits(states: [&Path; 2]) {
    let ledgers = states.map(|state| {
        Ledger::open(LedgerOptions::new(state, SystemClock::shared())).expect("it opens")
    });
    for ledger in &ledgers {
        while ledger.health().is_adding_up {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    let mut times = [Vec::new(), Vec::new()];
    for number in 0..PURCHASES {
        for turn in 0..2 {
            let which = (number + turn) % 2;
            let began = now();
            long::buy(&ledgers[which], now_ms(), 10).await;
            times[which].push(since(began));
        }
    }
    for ledger in ledgers {
        ledger.close().await;
    }
    let [few, many] = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    });
    print_ms(&format!("  a purchase, of {ENTRIES_FEW} entries"), few);
    print_ms("  a purchase, of all of them", many);
    println!("  {:.2} times as long", many / few);
}

/// Of everything, by day in a zone that is not UTC's, of quarter hours, and of a time that cuts a quarter hour at
/// both ends.
fn spend_asked() -> [SpendAsked; 7] {
    let today_ms = now_ms() - now_ms() % DAY_MS;
    let (since, until) = (Some(today_ms - 2 * DAY_MS), Some(today_ms - DAY_MS));
    let cut = |bound: Option<u64>| bound.map(|bound| bound + 60_001);
    [
        ("all by app", None, None, GroupBy::App),
        ("all by state", None, None, GroupBy::State),
        ("all by day", None, None, GroupBy::Day),
        ("all by model", None, None, GroupBy::Model),
        ("of a day", since, until, GroupBy::Operation),
        ("of a day, cut", cut(since), cut(until), GroupBy::Operation),
        (
            "of a day by state, cut",
            cut(since),
            cut(until),
            GroupBy::State,
        ),
    ]
}

/// `bursar spend` without a daemon: the index is copied first.
fn spend_by_itself(state: &Path) {
    for (what, since_ms, until_ms, by) in spend_asked() {
        let began = now();
        spend(state, since_ms, until_ms, &[by], &TimeZone::UTC).expect("sums");
        print_ms(&format!("spend {what}, no daemon"), since(began));
    }
}

/// Entries of all ages.
fn samples(state: &Path) -> Vec<EntryView> {
    let (first, length) = (now_ms() - lines::DAYS * DAY_MS, lines::DAYS * DAY_MS);
    let sample = |number| {
        let asked = Filter {
            until_ms: Some(first + length * number / SAMPLES),
            limit: Some(1),
            ..Filter::default()
        };
        list(state, &asked).expect("an answer").entries.pop()
    };
    (1..=SAMPLES).filter_map(sample).collect()
}

/// Asks for entries of all ages; prints the middle and the longest time of each kind of question.
fn look_ups(state: &Path) {
    let samples = samples(state);
    let explain = |what: &str, ask: &dyn Fn(&EntryView) -> String| {
        let times = samples.iter().map(|entry| {
            let text = ask(entry);
            let began = now();
            let found = find(state, &text).expect("an answer");
            let took = since(began);
            assert_eq!(found.entries.len(), 1, "{text}");
            took
        });
        let mut times: Vec<f64> = times.collect();
        times.sort_by(f64::total_cmp);
        print_ms(&format!("explain by {what}"), times[times.len() / 2]);
        print_ms("  at most", times[times.len() - 1]);
    };
    explain("id", &|entry| entry.id.to_string());
    explain("an id's end", &|entry| {
        let id = entry.id.to_string();
        id[id.len() - 12..].to_owned()
    });
    explain("key", &|entry| entry.key.clone().expect("a key"));
    explain("request id", &|entry| {
        entry.request_id.clone().expect("a request id")
    });
    let began = now();
    let found = find(state, "nothing of this ledger").expect("an answer");
    assert!(found.by.is_none(), "nothing is found");
    print_ms("explain nothing", since(began));

    let middle = samples.get(samples.len() / 2).map(|entry| entry.at_ms);
    for (what, asked) in receipts_asked(middle) {
        let began = now();
        let listed = list(state, &asked).expect("an answer").entries.len();
        print_ms(&format!("receipts {what} ({listed})"), since(began));
    }
}

fn receipts_asked(middle: Option<u64>) -> [(&'static str, Filter); 9] {
    let newest = Filter {
        limit: Some(NEWEST),
        ..Filter::default()
    };
    let of_app = |app: &str| Filter {
        app: Some(app.to_owned()),
        ..newest.clone()
    };
    let in_state = |state| Filter {
        state: Some(state),
        ..newest.clone()
    };
    [
        ("newest", newest.clone()),
        ("by app", of_app("app-7")),
        ("of no app", of_app("nobody")),
        (
            "by operation",
            Filter {
                operation: Some(Operation::Rerank),
                ..newest.clone()
            },
        ),
        ("by state", in_state(StateWord::InDoubt)),
        ("of a rare state", in_state(StateWord::Malformed)),
        (
            "by model",
            Filter {
                model: Some("model-3".to_owned()),
                ..newest.clone()
            },
        ),
        (
            "before a time",
            Filter {
                until_ms: middle,
                ..newest.clone()
            },
        ),
        (
            "by all of them",
            Filter {
                until_ms: middle,
                model: Some("model-3".to_owned()),
                state: Some(StateWord::Settled),
                ..of_app("app-7")
            },
        ),
    ]
}

/// Runs a command of the program; prints its time and the most memory it had.
async fn command(what: &str, arguments: &[&str], state: &Path) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bursar"));
    command.args(arguments).arg("--state-dir").arg(state);
    timed(what, command.stdout(Stdio::null())).await;
}

/// The same of this program.
async fn own(what: &str, arguments: &[&str]) {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    timed(what, command.args(arguments)).await;
}

async fn timed(what: &str, command: &mut Command) {
    let began = now();
    let (status, peak_kib) = long::run(command).await;
    assert!(status.success(), "{what}: {status}");
    let (took, peak_mib) = (since(began), peak_kib >> 10);
    println!("{what:<36} {took:>9.1} s  {peak_mib:>5} MiB at most");
}

/// What the files beside the journal take.
fn print_room(state: &Path, entries: u64) {
    for name in ["index", "lookup"] {
        let bytes = bytes(&state.join(name));
        let each = bytes / entries;
        println!("{name:<36} {:>9} MiB, {each} bytes an entry", bytes >> 20);
    }
}

fn print_s(what: &str, seconds: f64) {
    println!("{what:<36} {seconds:>9.2} s");
}

fn print_ms(what: &str, seconds: f64) {
    println!("{what:<36} {:>9.2} ms", seconds * 1_000.0);
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of text")
}

fn now() -> Duration {
    // Its origin is the machine's, not this value's.
    SystemClock::shared().monotonic()
}

fn now_ms() -> u64 {
    SystemClock::shared().wall_ms()
}

fn since(began: Duration) -> f64 {
    now().saturating_sub(began).as_secs_f64()
}

/// What files and directories take on the disk, as `du` counts it.
fn bytes(path: &Path) -> u64 {
    let metadata = fs::symlink_metadata(path).expect("a file");
    let files = fs::read_dir(path).into_iter().flatten();
    let below: u64 = files.map(|file| bytes(&file.unwrap().path())).sum();
    metadata.blocks() * 512 + below
}
