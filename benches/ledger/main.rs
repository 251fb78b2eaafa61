//! How long a long ledger takes: `ledger verify`, `ledger rebuild`, `spend`, and a daemon's start with its
//! index and without, each in a process of its own; then `explain` and `receipts`, which look up what they show.
//! `make bench-ledger ENTRIES=1000000`.
//!
//! The entries are those of 200 days and 20 apps, of which 50,000 lie in the last day.
//!
//! Promise: prints what was measured and asserts nothing about time.

mod lines;
mod long;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use bursar::clock::SystemClock;
use bursar::ledger::query::{Filter, GroupBy, StateWord, find, list};
use bursar::ledger::{Ledger, LedgerOptions};
use bursar::protocol::Operation;
use jiff::tz::TimeZone;

const ENTRIES_DEFAULT: u64 = 100_000;

/// How many receipts are asked for.
const NEWEST: usize = 50;

fn main() {
    let asked = std::env::args().skip(1).find_map(|word| word.parse().ok());
    let entries: u64 = asked.unwrap_or(ENTRIES_DEFAULT);
    let directory = tempfile::tempdir().expect("a directory");
    let state = directory.path().join("state");
    let began = now();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let known = runtime.block_on(lines::write(&state, entries));
    println!("{entries} entries written in {:.1} s", since(began));
    println!("journal {} MiB", bytes(&state.join("journal")) >> 20);
    runtime.block_on(timed("ledger verify", &["ledger", "verify"], &state));
    runtime.block_on(timed("ledger rebuild", &["ledger", "rebuild"], &state));
    for name in ["index", "lookup"] {
        let bytes = bytes(&state.join(name));
        println!(
            "{name:<7} {} MiB, {} bytes an entry",
            bytes >> 20,
            bytes / entries
        );
    }
    look_ups(&state, &known);
    runtime.block_on(timed(
        "spend, all",
        &["spend", "--since", "2020-01-01"],
        &state,
    ));
    std::fs::remove_dir_all(state.join("index")).expect("the index goes");
    for how in ["start without an index", "start with its index"] {
        let began = now();
        let ledger = Ledger::open(options(&state)).expect("it opens");
        println!("{how:<24} {:>7.1} s", since(began));
        runtime.block_on(until_whole(&ledger));
        println!("{:<24} {:>7.1} s", "  until it is whole", since(began));
        spend_in_a_daemon(&ledger);
        runtime.block_on(ledger.close());
    }
}

/// Waits for totals that are added up beside requests.
async fn until_whole(ledger: &Ledger) {
    while ledger.health().is_adding_up {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// `spend` as the admin API asks it: of everything, by day in a zone that is not UTC's, and of a time that
/// cuts a quarter hour at both ends.
fn spend_in_a_daemon(ledger: &Ledger) {
    let day_ms = 24 * 60 * 60 * 1000;
    let now_ms = SystemClock::shared().wall_ms();
    let berlin = TimeZone::get("Europe/Berlin").expect("a zone");
    let cut = (Some(now_ms - 2 * day_ms + 1), Some(now_ms - day_ms + 1));
    for (what, (since_ms, until_ms), by) in [
        ("  spend, all", (None, None), GroupBy::App),
        ("  spend by day", (None, None), GroupBy::Day),
        ("  spend of a day, cut", cut, GroupBy::State),
    ] {
        let began = now();
        let told = ledger.spend(since_ms, until_ms, &[by], &berlin);
        told.expect("sums");
        println!("{what:<24} {:>7.3} s", since(began));
    }
}

/// Asks for entries of all ages; prints the longest time of each kind of question.
fn look_ups(state: &Path, known: &[lines::Known]) {
    let longest = |what: &str, ask: &dyn Fn(&lines::Known) -> String| {
        let times = known.iter().map(|entry| {
            let text = ask(entry);
            let began = now();
            let found = find(state, &text).expect("an answer");
            assert_eq!(found.entries.len(), 1, "{text}");
            since(began)
        });
        print_ms(&format!("explain by {what}"), times.fold(0.0, f64::max));
    };
    longest("id", &|entry| entry.id.clone());
    longest("an id's end", &|entry| {
        entry.id[entry.id.len() - 12..].to_owned()
    });
    longest("key", &|entry| entry.key.clone());
    longest("request id", &|entry| entry.request_id.clone());
    let began = now();
    assert!(
        find(state, "nothing of this ledger")
            .expect("an answer")
            .by
            .is_none()
    );
    print_ms("explain nothing", since(began));

    let middle = known.get(known.len() / 2).map_or(0, |entry| entry.at_ms);
    let newest = Filter {
        limit: Some(NEWEST),
        ..Filter::default()
    };
    let questions = [
        ("receipts", newest.clone()),
        (
            "receipts by app",
            Filter {
                app: Some("app-7".to_owned()),
                ..newest.clone()
            },
        ),
        (
            "receipts of no app",
            Filter {
                app: Some("nobody".to_owned()),
                ..newest.clone()
            },
        ),
        (
            "receipts by operation",
            Filter {
                operation: Some(Operation::Rerank),
                ..newest.clone()
            },
        ),
        (
            "receipts by state",
            Filter {
                state: Some(StateWord::InDoubt),
                ..newest.clone()
            },
        ),
        (
            "receipts of a rare state",
            Filter {
                state: Some(StateWord::Malformed),
                ..newest.clone()
            },
        ),
        (
            "receipts by model",
            Filter {
                model: Some("model-3".to_owned()),
                ..newest.clone()
            },
        ),
        (
            "receipts before a time",
            Filter {
                until_ms: Some(middle),
                ..newest.clone()
            },
        ),
        (
            "receipts by all of them",
            Filter {
                until_ms: Some(middle),
                app: Some("app-7".to_owned()),
                model: Some("model-3".to_owned()),
                state: Some(StateWord::Settled),
                ..newest
            },
        ),
    ];
    for (what, asked) in questions {
        let began = now();
        let listed = list(state, &asked).expect("an answer").entries.len();
        print_ms(&format!("{what} ({listed})"), since(began));
    }
}

fn print_ms(what: &str, seconds: f64) {
    println!("{what:<32} {:>7.1} ms", seconds * 1_000.0);
}

fn options(state: &Path) -> LedgerOptions {
    LedgerOptions::new(state, SystemClock::shared())
}

fn now() -> Duration {
    // Its origin is the machine's, not this value's.
    SystemClock::shared().monotonic()
}

fn since(began: Duration) -> f64 {
    now().saturating_sub(began).as_secs_f64()
}

/// Runs a command of the program; prints its time and the most memory it had.
async fn timed(what: &str, arguments: &[&str], state: &Path) {
    let began = now();
    let mut command = Command::new(env!("CARGO_BIN_EXE_bursar"));
    command.args(arguments).arg("--state-dir").arg(state);
    let (status, peak_kib) = long::run(command.stdout(Stdio::null())).await;
    assert!(status.success(), "{what}: {status}");
    println!(
        "{what:<24} {:>7.1} s  {:>5} MiB",
        since(began),
        peak_kib >> 10
    );
}

fn bytes(directory: &Path) -> u64 {
    let files = std::fs::read_dir(directory).expect("a directory");
    files
        .map(|file| file.unwrap().metadata().unwrap().len())
        .sum()
}
