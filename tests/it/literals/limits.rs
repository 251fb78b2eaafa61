//! Numbers, in the spelling that the interface's page uses for them.

use super::{Claim, Page, assert_all_stand, assert_slips_are_seen};
use crate::support::source::{Source, read};

/// How the page writes a number.
#[derive(Clone, Copy)]
enum Spelling {
    Plain,
    /// `30 MB` for 30 × 1024 × 1024.
    Megabytes,
    RetryAfter,
    Characters,
    OneTo,
    /// `24 hours` for a number of milliseconds.
    MsAsHours,
}

use Spelling::{Characters, Megabytes, MsAsHours, OneTo, Plain, RetryAfter};

/// A constant, and the clause whose row has it in this spelling.
type Row = (&'static str, Spelling, &'static str);

/// Every number of `sandbox/src/spec.rs`, and where the page has it.
const SANDBOX: [Row; 23] = [
    ("CONTEXT_WINDOW_TOKENS", Plain, "LIM-1"),
    ("MAX_TOKENS_DEFAULT", Plain, "LIM-2"),
    ("BODY_BYTES_MAX", Megabytes, "LIM-4"),
    ("IN_FLIGHT_MAX", Plain, "LIM-5"),
    ("IN_FLIGHT_RETRY_AFTER_S", RetryAfter, "LIM-5"),
    ("IN_FLIGHT_RETRY_AFTER_S", RetryAfter, "ERR-429-1"),
    ("PER_MINUTE_MAX", Plain, "LIM-6"),
    ("PER_MINUTE_RETRY_AFTER_S", RetryAfter, "LIM-6"),
    ("PER_MINUTE_RETRY_AFTER_S", RetryAfter, "ERR-429-2"),
    ("KEY_CHARS_MAX", Characters, "IDEM-1"),
    ("REPLAY_WINDOW_S", Plain, "LIM-8"),
    ("DUPLICATE_WAIT_S", Plain, "LIM-9"),
    ("STORED_BYTES_MAX", Megabytes, "LIM-10"),
    ("IMAGE_STORED_BYTES_MAX", Megabytes, "LIM-11"),
    ("PIN_IDLE_S", Plain, "LIM-12"),
    ("EVAL_PROMPT_CHARS_MAX", Plain, "LIM-15"),
    ("INLINE_BLOB_BYTES", Plain, "LIM-16"),
    ("SPEECH_CHARS_MAX", Plain, "LIM-14"),
    ("SPEECH_CHARS_MAX", Plain, "TTS-1"),
    ("PLAYGROUND_MESSAGES_MAX", OneTo, "LIM-13"),
    ("PLAYGROUND_MESSAGES_MAX", OneTo, "CMP-3"),
    ("AGENT_WARM_UP_RETRY_AFTER_S", RetryAfter, "AGENT-18"),
    ("AGENT_WARM_UP_RETRY_AFTER_S", RetryAfter, "ERR-503-4"),
];

/// `const NAME: type = product of numbers;`, as far as it is one.
fn numbers(text: &str) -> Vec<(String, usize, u64)> {
    let code = Source::read(text).code;
    let mut found = Vec::new();
    for (at, _) in code.match_indices("const ") {
        let line = code[..at].matches('\n').count() + 1;
        let Some((declared, _)) = code[at + 6..].split_once(';') else {
            continue;
        };
        let Some((head, value)) = declared.split_once('=') else {
            continue;
        };
        let name = head.split(':').next().unwrap_or_default().trim();
        let product = value
            .split('*')
            .map(|factor| factor.trim().replace('_', "").parse::<u64>());
        if let Ok(factors) = product.collect::<Result<Vec<_>, _>>() {
            found.push((name.to_owned(), line, factors.iter().product()));
        }
    }
    found
}

fn spelt(number: u64, spelling: Spelling) -> String {
    let whole = |unit: u64, name: &str| {
        assert_eq!(number % unit, 0, "{number} is no whole number of {name}");
        format!("{} {name}", number / unit)
    };
    match spelling {
        Plain => number.to_string(),
        Megabytes => whole(1024 * 1024, "MB"),
        RetryAfter => format!("Retry-After: {number}"),
        Characters => format!("{number} characters"),
        OneTo => format!("1 to {number}"),
        MsAsHours => whole(3_600_000, "hours"),
    }
}

/// The claims of a table on one file. A number of the file that no row names is an error where the
/// table is `complete`.
fn claims(file: &str, text: &str, table: &[Row], complete: bool) -> Result<Vec<Claim>, String> {
    let numbers = numbers(text);
    let unnamed = numbers
        .iter()
        .find(|(name, ..)| !table.iter().any(|(known, ..)| known == name));
    if let Some((name, line, _)) = unnamed.filter(|_| complete) {
        return Err(format!(
            "{file}:{line}: where does the interface have {name}?"
        ));
    }
    table
        .iter()
        .map(|(name, spelling, clause)| {
            let found = numbers.iter().find(|(known, ..)| known == name);
            let (_, line, number) = found.ok_or_else(|| format!("{file}: no number {name}"))?;
            Ok(Claim {
                place: format!("{file}:{line}"),
                literal: spelt(*number, *spelling),
                any_case: false,
                clause: Some(clause),
            })
        })
        .collect()
}

#[test]
fn every_limit_of_the_sandbox_stands_in_its_clause() {
    let file = "sandbox/src/spec.rs";
    let claims = claims(file, &read(file), &SANDBOX, true).expect("known numbers");
    assert_all_stand(&claims);
    assert_slips_are_seen(&claims);
}

/// Limits of the interface that bursar keeps, file by file.
const BURSAR: [(&str, &[Row]); 2] = [
    (
        "src/proxy/door/admit/body.rs",
        &[("BODY_BYTES_MAX", Megabytes, "LIM-4")],
    ),
    (
        "src/ledger/kept_key.rs",
        &[
            ("EPOCH_MS", MsAsHours, "LIM-8"),
            ("EPOCH_MS", MsAsHours, "IDEM-8"),
        ],
    ),
];

#[test]
fn every_limit_of_bursar_stands_in_its_clause() {
    for (file, table) in BURSAR {
        let claims = claims(file, &read(file), table, false).expect("known numbers");
        assert_all_stand(&claims);
        assert_slips_are_seen(&claims);
    }
}

#[test]
fn no_key_is_repeated_after_its_23rd_hour_and_a_read_waits_longer_than_the_service_holds_a_repeat()
{
    let claim = Source::read(&read("src/proxy/purchase/age.rs"));
    let key_age = claim
        .lines()
        .find(|(_, line)| line.contains("const KEY_AGE_MAX"));
    assert!(
        key_age
            .expect("the limit")
            .1
            .contains("from_secs(23 * 3600)"),
        "{key_age:?}"
    );

    // RETRY-7: "a client has to read for more than `9 minutes`; `10 minutes` is a usual read timeout".
    let spec = numbers(&read("sandbox/src/spec.rs"));
    let wait = spec
        .iter()
        .find(|(name, ..)| name == "DUPLICATE_WAIT_S")
        .expect("the wait")
        .2;
    assert!(
        read("config.toml").contains("read_timeout_s = 600"),
        "the shipped read timeout"
    );
    assert!(wait < 600);
}

#[test]
fn the_statuses_that_are_retried_are_those_of_the_interface() {
    let page = read("docs/interface.md");
    let row = page
        .lines()
        .find(|line| line.starts_with("| RETRY-1 "))
        .expect("the clause");
    let mut wanted: Vec<&str> = row.split('`').skip(1).step_by(2).collect();
    let source = Source::read(&read("src/proxy/purchase/retry.rs"));
    let body = source
        .code
        .split("fn after_refusal")
        .nth(1)
        .expect("the function");
    let body = body.split("\n}").next().expect("its end");
    let mut given: Vec<&str> = body
        .split(|letter: char| !letter.is_ascii_digit())
        .filter(|number| number.len() == 3)
        .collect();
    wanted.sort_unstable();
    given.sort_unstable();
    assert_eq!(given, wanted);
}

#[test]
fn a_wrong_limit_is_seen_and_so_is_a_new_one() {
    let file = "sandbox/src/spec.rs";
    let text = read(file);
    for (from, to) in [
        ("131_072", "131_071"),
        ("PER_MINUTE_MAX: u32 = 120", "PER_MINUTE_MAX: u32 = 12"),
        ("24 * 60 * 60", "23 * 60 * 60"),
        ("30 * 1024 * 1024", "3 * 1024 * 1024"),
    ] {
        assert!(text.contains(from), "{from}");
        let claims = claims(file, &text.replace(from, to), &SANDBOX, true).expect("numbers");
        let missing = Page::load().missing(&claims);
        assert_eq!(missing.len(), 1, "{to}: {missing:?}");
    }
    let more = format!("{text}\npub const NEW_MAX: usize = 7;\n");
    assert!(claims(file, &more, &SANDBOX, true).is_err());
}
