//! What the source promises about itself: which module imports which, which file may name which
//! crate, how long files are, and words that have no place in them.
//!
//! Promise: each rule is a function from files to complaints, and each is shown to see a planted
//! offence.

mod graph;
mod rooms;

use std::collections::BTreeSet;

use crate::support::source::{File, Source, files, read};

/// Lowest first; a module imports lower ranks only, never its own. The order is written down in
/// ARCHITECTURE.md ("Who may import whom") and in `src/lib.rs`.
const RANKS: [&[&str]; 10] = [
    &[
        "money",
        "clock",
        "calendar",
        "ceilings",
        "screen",
        "places",
        "release",
        "generated",
    ],
    &["protocol"],
    &["config"],
    &["ledger"],
    &["caps"],
    &["telemetry", "apps"],
    &["notices", "fleet", "no_fleet"],
    &["proxy", "admin"],
    &["server"],
    &["cli", "main", "lib"],
];

/// A crate, and the beginnings of the paths that may name it.
const NAMED_BY: [(&str, &[&str]); 4] = [
    ("bursar_models", &["sandbox/"]),
    ("sled", &["src/ledger/index.rs", "src/ledger/index/"]),
    ("pingora", &["src/proxy.rs", "src/proxy/"]),
    (
        "bursar_sandbox",
        &[
            "src/cli/sandbox.rs",
            "src/cli/sandbox/",
            "src/cli/demo.rs",
            "src/cli/demo/",
            "tests/it/",
            "sandbox/",
        ],
    ),
];

const LINES_MAX: usize = 600;
const TEST_LINES_MAX: usize = 600;

// === what a file is ===

fn is_rust(file: &File) -> bool {
    file.path.ends_with(".rs")
}

/// Unit tests (`x/tests.rs`, `x/tests/…`), integration tests, and what only they use.
fn is_test(path: &str) -> bool {
    path.starts_with("tests/")
        || path.starts_with("sandbox/tests/")
        || path.ends_with("/tests.rs")
        || path.contains("/tests/")
}

/// The module of the root package that a file belongs to.
fn module(path: &str) -> Option<&str> {
    let inside = path.strip_prefix("src/")?;
    let first = inside.split('/').next()?;
    Some(first.strip_suffix(".rs").unwrap_or(first))
}

fn rank(module: &str) -> Option<usize> {
    RANKS.iter().position(|names| names.contains(&module))
}

fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|letter: char| !(letter.is_alphanumeric() || letter == '_'))
}

// === rules ===

/// Modules reach lower ranks only. `crate::x` counts in every place, in `use` or in a path.
fn imports(file: &File) -> Vec<String> {
    let Some(from) = module(&file.path) else {
        return Vec::new();
    };
    let Some(own) = rank(from) else {
        return vec![format!("{}: {from} has no rank", file.path)];
    };
    let source = Source::read(&file.text);
    let mut complaints = Vec::new();
    for (line, code) in source.lines() {
        for (at, _) in code.match_indices("crate::") {
            let target = words(&code[at + 7..]).next().unwrap_or_default();
            let allowed = target == from || rank(target).is_some_and(|other| other < own);
            // A group in braces would hide its modules, so it does not pass.
            if !allowed {
                complaints.push(format!("{}:{line}: {from} imports `{target}`", file.path));
            }
        }
    }
    complaints
}

/// Only some may name a crate.
fn crates(file: &File) -> Vec<String> {
    let source = Source::read(&file.text);
    let mut complaints = Vec::new();
    for (name, homes) in NAMED_BY {
        if homes.iter().any(|home| file.path.starts_with(home)) {
            continue;
        }
        let named = source
            .lines()
            .filter(|(_, code)| words(code).any(|word| word == name));
        complaints.extend(named.map(|(line, _)| format!("{}:{line}: names {name}", file.path)));
    }
    complaints
}

/// A file opens with what it is. A module's own unit tests are described by their module.
fn opening(file: &File) -> Vec<String> {
    let unit_tests =
        file.path.ends_with("/tests.rs") || file.path.contains("/src/") && is_test(&file.path);
    let is_described = file.text.starts_with("//!") || unit_tests || file.path.contains("/tests/");
    if is_described {
        return Vec::new();
    }
    vec![format!("{}:1: does not open with `//!`", file.path)]
}

fn length(file: &File) -> Vec<String> {
    let lines = file.text.lines().count();
    let usual = if is_test(&file.path) {
        TEST_LINES_MAX
    } else {
        LINES_MAX
    };
    if lines <= usual {
        return Vec::new();
    }
    vec![format!("{}: {lines} lines, {usual} at most", file.path)]
}

/// A debt names its class: correctness, coverage or cleanup.
fn debts(file: &File) -> Vec<String> {
    let word = concat!("TO", "DO");
    let classes = ["-correctness", "-coverage", "-cleanup"];
    let comments = Source::read(&file.text).comments;
    let unclassed = comments.iter().filter(|comment| {
        comment.text.match_indices(word).any(|(at, _)| {
            let rest = &comment.text[at + word.len()..];
            !classes.iter().any(|class| rest.starts_with(class))
        })
    });
    unclassed
        .map(|comment| format!("{}:{}: a debt without a class", file.path, comment.line))
        .collect()
}

/// `expect` with a reason, not `allow`; tests may.
fn allowances(file: &File) -> Vec<String> {
    if is_test(&file.path) {
        return Vec::new();
    }
    let source = Source::read(&file.text);
    let found = source.lines().filter(|(_, code)| {
        let dense: String = code
            .chars()
            .filter(|letter| !letter.is_whitespace())
            .collect();
        dense.contains("#[allow(") || dense.contains("#![allow(")
    });
    found
        .map(|(line, _)| format!("{}:{line}: `allow`; use `expect` with a reason", file.path))
        .collect()
}

/// A missing amount is not 0.
fn invented_zeros(file: &File) -> Vec<String> {
    if is_test(&file.path) {
        return Vec::new();
    }
    let money = ["billed", "cost", "amount", "micro"];
    let source = Source::read(&file.text);
    let found = source.lines().filter(|(_, code)| {
        let zero = code.contains("unwrap_or(0)") || code.contains("unwrap_or_default()");
        let lower = code.to_ascii_lowercase();
        zero && money.iter().any(|word| lower.contains(word))
    });
    found
        .map(|(line, _)| format!("{}:{line}: makes 0 of a missing amount", file.path))
        .collect()
}

/// Tests poll with a deadline; they never just sleep on a thread.
fn sleeps(file: &File) -> Vec<String> {
    let source = Source::read(&file.text);
    let found = source
        .lines()
        .filter(|(_, code)| code.contains("thread::sleep"));
    found
        .map(|(line, _)| format!("{}:{line}: sleeps on a thread", file.path))
        .collect()
}

/// The index that every package comes from, and the words of its address that are its own: those
/// with a dot, without the end that Cargo gives it.
fn registry_words(lock: &str) -> Vec<String> {
    let mut words: Vec<String> = lock
        .lines()
        .filter_map(|line| line.strip_prefix("source = \"registry+https://"))
        .flat_map(|address| address.trim_end_matches('"').split('/').skip(1))
        .filter(|part| part.contains('.'))
        .map(|part| part.trim_end_matches("-index").to_owned())
        .collect();
    words.sort();
    words.dedup();
    words
}

/// The beginnings of paths that only one machine has: its own checkout, and what lies below the
/// homes of people and of work.
fn machine_paths() -> Vec<String> {
    let root = env!("CARGO_MANIFEST_DIR");
    let own = (root.matches('/').count() > 1).then(|| root.to_owned());
    let homes = ["home", "root", "work", "Users"];
    homes
        .iter()
        .map(|home| format!("/{home}/"))
        .chain(own)
        .collect()
}

/// Whether `text` holds a path that begins so. In the middle of a longer path it is another's.
fn names_path(text: &str, beginning: &str) -> bool {
    text.match_indices(beginning).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        !before.is_some_and(|letter| letter.is_alphanumeric() || "_.-~*}$".contains(letter))
    })
}

/// No trace of the machine or the registry that the work was done with. Only the lock file's own
/// lines say where packages come from.
fn traces(file: &File) -> Vec<String> {
    let registries = registry_words(&read("Cargo.lock"));
    let is_lock = file.path.ends_with("Cargo.lock");
    let mut complaints = Vec::new();
    for (at, text) in file.text.lines().enumerate() {
        if is_lock && text.starts_with("source = ") {
            continue;
        }
        let paths = machine_paths().into_iter();
        let paths = paths.filter(|path| names_path(text, path));
        let hosts = registries.iter().filter(|word| text.contains(*word));
        for trace in paths.chain(hosts.cloned()) {
            complaints.push(format!("{}:{}: has {trace:?}", file.path, at + 1));
        }
    }
    complaints
}

// === the repository against the rules ===

fn check(rule: impl Fn(&File) -> Vec<String>, concerns: impl Fn(&File) -> bool) {
    let files: Vec<File> = files().into_iter().filter(concerns).collect();
    assert!(files.len() > 10, "only {} files were found", files.len());
    let complaints: Vec<String> = files.iter().flat_map(rule).collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn modules_import_lower_ranks_only() {
    check(imports, |file| {
        is_rust(file) && file.path.starts_with("src/")
    });
}

#[test]
fn the_ranks_are_those_that_are_written_down() {
    let page = read("ARCHITECTURE.md");
    let part = page
        .split("## Who may import whom")
        .nth(1)
        .expect("the part on imports");
    let sentence = part.split(". ").next().expect("the order");
    let written: Vec<Vec<&str>> = sentence
        .split('<')
        .map(|rank| {
            rank.split('`')
                .skip(1)
                .step_by(2)
                .flat_map(str::split_whitespace)
                .collect()
        })
        .collect();
    let ranks: Vec<Vec<&str>> = RANKS
        .iter()
        .map(|names| {
            names
                .iter()
                .copied()
                .filter(|name| *name != "lib")
                .collect()
        })
        .collect();
    assert_eq!(written, ranks, "ARCHITECTURE.md");

    let rows = read("src/lib.rs");
    let rows = rows.lines().filter_map(|line| line.strip_prefix("//! | "));
    for row in rows {
        let mut cells = row.split(" | ");
        let Some(number) = cells
            .next()
            .and_then(|cell| cell.trim().parse::<usize>().ok())
        else {
            continue;
        };
        let names = cells
            .next()
            .unwrap_or_default()
            .split('`')
            .skip(1)
            .step_by(2);
        for name in names {
            assert_eq!(rank(name), Some(number), "src/lib.rs: {name}");
        }
    }
}

#[test]
fn only_their_homes_name_sled_pingora_and_the_sandbox() {
    check(crates, is_rust);
}

#[test]
fn every_file_opens_with_what_it_is() {
    check(opening, is_rust);
}

#[test]
fn no_file_is_too_long() {
    check(length, is_rust);
}

#[test]
fn every_debt_has_a_class() {
    check(debts, is_rust);
}

#[test]
fn lints_are_expected_and_not_allowed() {
    check(allowances, is_rust);
}

#[test]
fn no_missing_amount_becomes_0() {
    check(invented_zeros, is_rust);
}

#[test]
fn no_test_sleeps_on_a_thread() {
    check(sleeps, is_rust);
}

#[test]
fn no_file_names_the_machine_it_was_made_on() {
    check(traces, |_| true);
}

/// `make test` does not build the fuzz targets, so a stale lock file would show in `make test-all` only.
#[test]
fn the_lock_file_of_the_fuzz_targets_fits_the_manifest() {
    let parsed = |path: &str| -> toml::Table { read(path).parse().expect(path) };
    let manifest = parsed("Cargo.toml");
    let wanted: BTreeSet<&str> = manifest["dependencies"]
        .as_table()
        .expect("dependencies")
        .iter()
        .filter(|(_, wish)| wish.get("optional").is_none())
        .map(|(name, _)| name.as_str())
        .collect();
    let lock = parsed("fuzz/Cargo.lock");
    let locked: BTreeSet<&str> = lock["package"]
        .as_array()
        .expect("packages")
        .iter()
        .filter(|package| package["name"].as_str() == Some("bursar"))
        .flat_map(|package| package["dependencies"].as_array().expect("an array"))
        .filter_map(|name| name.as_str()?.split(' ').next())
        .collect();
    assert_eq!(
        locked, wanted,
        "run cargo metadata in fuzz/ to renew its lock file"
    );
}

#[tokio::test]
async fn every_metric_has_the_prefix() {
    let files = [
        "src/telemetry/metrics.rs",
        "src/telemetry/metrics/evidence.rs",
        "src/telemetry/metrics/ledger.rs",
        "src/telemetry/metrics/money.rs",
        "src/telemetry/metrics/timings.rs",
    ];
    let source = Source::read(&files.map(read).concat());
    let suffixes = [
        "_total",
        "_seconds",
        "_bytes",
        "_info",
        "_usd",
        "_requests",
        "_records",
        "_ranges",
    ];
    let named: Vec<&str> = source
        .strings
        .iter()
        .map(|found| found.text.as_str())
        .filter(|text| suffixes.iter().any(|suffix| text.ends_with(suffix)))
        .collect();
    assert!(named.len() > 25, "only {} names were found", named.len());
    let bare: Vec<&&str> = named
        .iter()
        .filter(|name| !name.starts_with("bursar_"))
        .collect();
    assert!(bare.is_empty(), "{bare:?}");

    // And what a scrape shows, whatever its name ends in. What the kernel knows has the names of every process.
    let bursar = crate::support::Bursar::before("http://127.0.0.1:9").await;
    let text = bursar
        .metrics
        .render(&bursar.ledger.totals(), &bursar.ledger.health())
        .expect("a scrape");
    let lines = text.lines().map(|line| {
        let help = line
            .strip_prefix("# HELP ")
            .or_else(|| line.strip_prefix("# TYPE "));
        help.unwrap_or(line)
    });
    let has_prefix = |line: &&str| line.starts_with("bursar_") || line.starts_with("process_");
    let bare: Vec<&str> = lines.filter(|line| !has_prefix(line)).collect();
    assert!(bare.is_empty(), "{bare:?}");
}

// === the rules against offences ===

#[test]
fn every_rule_sees_a_planted_offence() {
    let file = |path: &str, text: &str| File {
        path: path.to_owned(),
        text: text.to_owned(),
    };
    type Rule = fn(&File) -> Vec<String>;
    let debt = concat!("// TO", "DO: later");
    let offences: [(Rule, &str, String); 20] = [
        (
            imports,
            "src/ledger/x.rs",
            "use crate::proxy::Gateway;".into(),
        ),
        (
            imports,
            "src/admin/x.rs",
            "use crate::proxy::Gateway;".into(),
        ),
        (
            imports,
            "src/money.rs",
            "fn f() -> crate::clock::X {}".into(),
        ),
        (
            imports,
            "src/config.rs",
            "use crate::{ledger, protocol};".into(),
        ),
        (imports, "src/news.rs", "use crate::money::X;".into()),
        (crates, "src/ledger/write/load.rs", "use sled::Db;".into()),
        (crates, "src/admin.rs", "fn f(x: pingora::Y) {}".into()),
        (
            crates,
            "src/cli/run.rs",
            "use bursar_sandbox::serve;".into(),
        ),
        (opening, "src/x.rs", "use std::fs;".into()),
        (length, "src/x.rs", "x\n".repeat(LINES_MAX + 1)),
        (length, "tests/it/x.rs", "x\n".repeat(601)),
        (debts, "src/x.rs", debt.into()),
        (allowances, "src/x.rs", "#[allow(dead_code)]".into()),
        (allowances, "src/x.rs", "#![allow(dead_code)]".into()),
        (
            invented_zeros,
            "src/x.rs",
            "let billed = told.unwrap_or(0);".into(),
        ),
        (
            invented_zeros,
            "src/x.rs",
            "let x = cost.unwrap_or_default();".into(),
        ),
        (sleeps, "tests/it/x.rs", "std::thread::sleep(x);".into()),
        (
            traces,
            "README.md",
            format!("see {}/target", env!("CARGO_MANIFEST_DIR")),
        ),
        (
            traces,
            "src/x.rs",
            format!("// static.{}", registry_words(&read("Cargo.lock"))[0]),
        ),
        (
            traces,
            "Cargo.lock",
            format!("name = \"{}\"", registry_words(&read("Cargo.lock"))[0]),
        ),
    ];
    for (rule, path, text) in offences {
        assert!(
            !rule(&file(path, &text)).is_empty(),
            "{path}: {text} passed"
        );
    }
    let lock = read("Cargo.lock");
    let innocent: [(Rule, &str, &str); 8] = [
        (
            imports,
            "src/proxy/x.rs",
            "use crate::proxy::y; // crate::server",
        ),
        (
            imports,
            "src/cli/x.rs",
            "let _ = \"crate::nothing\"; use crate::server::X;",
        ),
        (
            crates,
            "src/ledger/write/load.rs",
            "// sled writes on opening\nlet x = \"sled\"; let sledge = 1;",
        ),
        (opening, "src/x/tests.rs", "use super::*;"),
        (debts, "src/x.rs", concat!("// TO", "DO-cleanup: split")),
        (
            allowances,
            "src/x.rs",
            "#[expect(dead_code, reason = \"#[allow(x)]\")]",
        ),
        (
            invented_zeros,
            "src/x.rs",
            "let count = told.unwrap_or(0); // billed",
        ),
        (
            traces,
            "Cargo.lock",
            lock.lines()
                .find(|line| line.starts_with("source = "))
                .expect("a source"),
        ),
    ];
    for (rule, path, text) in innocent {
        let complaints = rule(&file(path, text));
        assert!(complaints.is_empty(), "{complaints:?}");
    }
}
