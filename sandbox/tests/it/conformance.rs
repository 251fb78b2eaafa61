//! Every clause of the interface has tests, and the tests are there.
//!
//! docs/conformance.md is the table; this reads it as a reviewer would: row by row against the page and the
//! source. It does not run what it finds, the suites do.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn read(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// The id that a line opens with, in a heading or a first cell.
fn clause(line: &str) -> Option<&str> {
    let rest = match line.strip_prefix("| ") {
        Some(rest) => rest,
        None => line.trim_start_matches('#').strip_prefix(' ')?,
    };
    let is_id = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '-';
    let id = rest.split(|c| !is_id(c)).next()?;
    let (family, number) = id.rsplit_once('-')?;
    let numbered = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    (!family.is_empty() && numbered && family != "OPEN").then_some(id)
}

/// Clause to the tests of its row.
fn rows(page: &str) -> BTreeMap<String, Vec<String>> {
    let mut rows: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in page.lines() {
        if let Some(id) = clause(line) {
            let tests = line.split('`').skip(1).step_by(2).map(str::to_owned);
            rows.entry(id.to_owned()).or_default().extend(tests);
        }
    }
    rows
}

/// What is wrong with a reference; `None` when the test is there and runs.
fn wrong(root: &Path, reference: &str, clause: &str) -> Option<String> {
    let Some((file, name)) = reference.split_once("::") else {
        let first = read(&root.join(reference)).unwrap_or_default();
        let first = first.lines().next().unwrap_or_default();
        let named = first.strip_prefix("# clauses:").unwrap_or_default();
        let found = named.split(',').any(|one| one.trim() == clause);
        return (!found).then(|| format!("{clause}: {reference} does not name it"));
    };
    let Some(source) = read(&root.join(file)) else {
        return Some(format!("{clause}: no file {file}"));
    };
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let start = format!("fn {name}(");
    let at = lines
        .iter()
        .position(|line| line.starts_with(&start) || line.starts_with(&format!("async {start}")));
    let Some(at) = at else {
        return Some(format!("{clause}: {file} has no {name}"));
    };
    let attributes: Vec<&&str> = lines[..at]
        .iter()
        .rev()
        .take_while(|line| line.starts_with("#[") || line.starts_with("//"))
        .collect();
    let is_test = attributes
        .iter()
        .any(|line| line.starts_with("#[test") || line.starts_with("#[tokio::test"));
    let is_off = attributes.iter().any(|line| line.starts_with("#[ignore"));
    (!is_test || is_off).then(|| format!("{clause}: {name} is no test that runs"))
}

/// Everything that is wrong between the interface and the table.
fn complaints(root: &Path, interface: &str, table: &str) -> Vec<String> {
    let clauses: BTreeSet<&str> = interface.lines().filter_map(clause).collect();
    let rows = rows(table);
    let mut wrongs: Vec<String> = Vec::new();
    for id in &clauses {
        match rows.get(*id) {
            None => wrongs.push(format!("{id}: no row")),
            Some(tests) if tests.is_empty() => wrongs.push(format!("{id}: no test")),
            Some(tests) => wrongs.extend(tests.iter().filter_map(|one| wrong(root, one, id))),
        }
    }
    let strangers = rows.keys().filter(|id| !clauses.contains(id.as_str()));
    wrongs.extend(strangers.map(|id| format!("{id}: no such clause")));
    wrongs
}

#[test]
fn every_clause_has_tests_that_exist() {
    let root = root();
    let interface = read(&root.join("docs/interface.md")).unwrap();
    let table = read(&root.join("docs/conformance.md")).unwrap();

    let clauses = interface.lines().filter_map(clause).count();
    let wrongs = complaints(&root, &interface, &table);

    assert!(clauses > 350, "only {clauses} clauses were found");
    assert!(wrongs.is_empty(), "{}", wrongs.join("\n"));
}

#[test]
fn a_clause_without_a_test_and_a_test_that_is_not_there_are_seen() {
    let root = root();
    let here = "sandbox/tests/it/conformance.rs::every_clause_has_tests_that_exist";
    let interface =
        "| GEN-1 | a |\n| GEN-2 | b |\n### GEN-3 c\n| OPEN-1 | d |\n| GEN-4 | e |\n| GEN-5 | f |\n";
    let table = format!(
        "| GEN-1 | `{here}` |\n| GEN-2 | |\n| GEN-4 | `sandbox/tests/it/conformance.rs::gone` |\n\
         | GEN-5 | `tests/golden/chat-json.http` |\n| GEN-9 | `{here}` |\n"
    );

    let found = complaints(&root, interface, &table);

    let ids: Vec<&str> = found
        .iter()
        .map(|one| one.split(':').next().unwrap())
        .collect();
    // The transcript names GEN-5, so it holds it.
    assert_eq!(ids, ["GEN-2", "GEN-3", "GEN-4", "GEN-9"], "{found:?}");
    let helper = complaints(
        &root,
        "| GEN-1 | a |",
        "| GEN-1 | `sandbox/tests/it/conformance.rs::root` |",
    );
    assert_eq!(helper.len(), 1, "a function that is no test holds nothing");
    let off = "| GEN-1 | `sandbox/tests/it/state.rs::serves_until_killed` |";
    assert_eq!(
        complaints(&root, "| GEN-1 | a |", off).len(),
        1,
        "an ignored test holds nothing"
    );
}
