//! Compares the table of threats (`docs/threats.md`) with the repository: which file defends against each
//! row, and which cases and tests hold it.
//!
//! Promise: the following fail here, within seconds: a missing row, a missing case or test, a row with
//! fewer cases than it states or fewer than three, and a defence whose planned removal
//! (`tests/faults/defences.toml`) no longer fits its file. `make defences` shows that each removal is
//! noticed.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::support::source::{File, Source, files, read};

const TABLE: &str = "docs/threats.md";
const REMOVALS: &str = "tests/faults/defences.toml";
const ROWS: std::ops::RangeInclusive<u8> = 1..=32;
const LEAST: usize = 3;

/// Tests that play a table of raw requests and name the cases that failed.
const CORPUS: &str = "attack::no_request";

/// What a request or an upstream can trigger: taking out a defence of each is planned.
const TRIGGERED: [std::ops::RangeInclusive<u8>; 3] = [1..=5, 9..=16, 20..=26];

/// Held by no case: the supply chain, which a command checks.
const BY_COMMAND: [u8; 1] = [28];

/// A line of the table.
#[derive(Debug)]
struct Row {
    number: u8,
    /// Files that defend.
    files: Vec<String>,
    /// Beginnings of names: of tests if they contain `::`, otherwise of cases of this row, or
    /// commands.
    held_by: Vec<String>,
    stated: usize,
}

#[derive(Debug, Deserialize)]
struct Removals {
    defence: Vec<Removal>,
}

/// A defence taken out by one replacement.
#[derive(Debug, Deserialize)]
struct Removal {
    rows: Vec<u8>,
    what: String,
    file: String,
    old: String,
    new: String,
    test: String,
    /// For each row the beginning of the cases that must notice it, if `test` plays a corpus.
    #[serde(default)]
    cases: Vec<String>,
    group: u8,
}

/// The words in backticks.
fn quoted(cell: &str) -> Vec<String> {
    cell.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

/// `| row | attack | defence | held by | at least |`
fn row(line: &str) -> Option<Row> {
    let cells: Vec<&str> = line
        .split(" | ")
        .map(|cell| cell.trim_matches(['|', ' ']))
        .collect();
    let [number, _attack, defence, held_by, stated] = cells.as_slice() else {
        return None;
    };
    Some(Row {
        number: number.parse().ok()?,
        files: quoted(defence),
        held_by: quoted(held_by),
        stated: stated.parse().ok()?,
    })
}

/// The tests of a file, with their modules before them as the runner names them. Ignored tests hold
/// nothing.
fn tests(file: &File) -> Vec<String> {
    let module = match file.path.strip_suffix(".rs") {
        Some(path) => path,
        None => return Vec::new(),
    };
    let Some(inside) = ["tests/it/", "src/"]
        .iter()
        .find_map(|root| module.strip_prefix(root))
    else {
        return Vec::new();
    };
    if !file.text.contains("test]") && !file.text.contains("test(") {
        return Vec::new();
    }
    let module = inside.replace('/', "::");
    let code = Source::read(&file.text).code;
    let inline = if module.ends_with("::tests")
        || module.contains("::tests::")
        || file.path.starts_with("tests/")
    {
        ""
    } else {
        "tests::"
    };
    let mut names = Vec::new();
    for mark in ["#[test]", "#[tokio::test]", "#[tokio::test("] {
        for (at, _) in code.match_indices(mark) {
            let head = code[at..].split('{').next().unwrap_or_default();
            let name = head
                .rsplit_once("fn ")
                .and_then(|(_, name)| name.split('(').next());
            if let Some(name) = name.filter(|_| !head.contains("#[ignore")) {
                names.push(format!("{module}::{inline}{name}"));
            }
        }
    }
    names
}

/// Names of all tests, and of the cases of both corpora by row.
struct Known {
    paths: BTreeSet<String>,
    tests: BTreeSet<String>,
    cases: BTreeMap<u8, Vec<String>>,
}

// === impl Known ===

impl Known {
    fn look() -> Self {
        let files = files();
        let mut cases: BTreeMap<u8, Vec<String>> = BTreeMap::new();
        for (row, name) in crate::attack::named()
            .into_iter()
            .chain(crate::hostile::named())
        {
            cases.entry(row).or_default().push(name);
        }
        Self {
            tests: files.iter().flat_map(tests).collect(),
            paths: files.into_iter().map(|file| file.path).collect(),
            cases,
        }
    }

    /// Tests, or cases of a row, whose name begins so.
    fn named<'a>(&'a self, row: u8, prefix: &'a str) -> BTreeSet<&'a str> {
        let cases = self.cases.get(&row).map(Vec::as_slice).unwrap_or_default();
        let names: Vec<&String> = if prefix.contains("::") {
            self.tests.iter().collect()
        } else {
            cases.iter().collect()
        };
        let begins = |name: &&str| name.starts_with(prefix);
        names
            .into_iter()
            .map(String::as_str)
            .filter(begins)
            .collect()
    }

    fn complaints(&self, row: &Row) -> Vec<String> {
        let number = row.number;
        let mut complaints = Vec::new();
        for file in row.files.iter().filter(|file| !self.paths.contains(*file)) {
            complaints.push(format!("row {number}: there is no {file}"));
        }
        if row.files.is_empty() {
            complaints.push(format!("row {number}: no file defends"));
        }
        if BY_COMMAND.contains(&number) {
            let gone = row
                .held_by
                .iter()
                .filter(|path| !self.paths.contains(*path));
            complaints.extend(gone.map(|path| format!("row {number}: there is no {path}")));
            return complaints;
        }
        let mut held = BTreeSet::new();
        for prefix in &row.held_by {
            let named = self.named(number, prefix);
            if named.is_empty() {
                complaints.push(format!(
                    "row {number}: no case or test begins with {prefix:?}"
                ));
            }
            held.extend(named);
        }
        if held.len() < row.stated || row.stated < LEAST {
            complaints.push(format!(
                "row {number}: {} cases; {} are stated and {LEAST} wanted",
                held.len(),
                row.stated
            ));
        }
        complaints
    }
}

fn table() -> Vec<Row> {
    read(TABLE).lines().filter_map(row).collect()
}

fn removals() -> Vec<Removal> {
    let planned: Removals = toml::from_str(&read(REMOVALS)).expect("the planned removals");
    planned.defence
}

#[test]
fn every_row_of_the_table_names_its_defence_and_enough_cases_that_exist() {
    let known = Known::look();
    let rows = table();
    let numbers: Vec<u8> = rows.iter().map(|row| row.number).collect();
    assert_eq!(numbers, ROWS.collect::<Vec<u8>>(), "the rows of {TABLE}");
    let complaints: Vec<String> = rows.iter().flat_map(|row| known.complaints(row)).collect();
    assert!(complaints.is_empty(), "{TABLE}:\n{}", complaints.join("\n"));
    // A case that belongs to no row of the table would hold nothing.
    let strange: Vec<&u8> = known
        .cases
        .keys()
        .filter(|row| !numbers.contains(row))
        .collect();
    assert!(strange.is_empty(), "cases of rows {strange:?}");
}

#[test]
fn every_test_that_the_documents_of_the_guard_name_is_there() {
    let known = Known::look();
    for document in [TABLE, "docs/secrets.md", "docs/hostile-service.md"] {
        for name in read(document).lines().flat_map(quoted) {
            let is_test = name.contains("::") && !name.contains(['(', ' ', '/']);
            assert!(
                !is_test || !known.named(0, &name).is_empty(),
                "{document}: no test begins with {name}"
            );
        }
    }
}

#[test]
fn every_row_that_can_be_triggered_has_a_removal_that_fits() {
    let known = Known::look();
    let defends: BTreeMap<u8, Vec<String>> = table()
        .into_iter()
        .map(|row| (row.number, row.files))
        .collect();
    let removals = removals();
    let mut complaints = Vec::new();
    for removal in &removals {
        let Removal {
            what,
            file,
            old,
            new,
            test,
            ..
        } = removal;
        let found = read(file).matches(old.as_str()).count();
        if found != 1 || old == new {
            complaints.push(format!("{what}: `old` stands {found} times in {file}"));
        }
        if known.named(0, test).is_empty() {
            complaints.push(format!("{what}: no test begins with {test}"));
        }
        let is_corpus = test.starts_with(CORPUS);
        if is_corpus && removal.cases.len() != removal.rows.len() {
            complaints.push(format!("{what}: not a case for each row"));
        }
        for (row, begin) in removal.rows.iter().zip(&removal.cases) {
            if known.named(*row, begin).is_empty() {
                complaints.push(format!(
                    "{what}: no case of row {row} begins with {begin:?}"
                ));
            }
        }
        for row in &removal.rows {
            if !defends.get(row).is_some_and(|files| files.contains(file)) {
                complaints.push(format!("{what}: {TABLE} does not name {file} in row {row}"));
            }
        }
    }
    // In one group each row, and each test, belongs to one removal.
    let mut seen = BTreeSet::new();
    for Removal {
        rows,
        test,
        group,
        what,
        ..
    } in &removals
    {
        for row in rows {
            if !seen.insert((*group, *row, test.as_str())) {
                complaints.push(format!(
                    "{what}: group {group} has row {row} of {test} already"
                ));
            }
        }
    }
    for row in TRIGGERED.into_iter().flatten() {
        if !removals.iter().any(|removal| removal.rows.contains(&row)) {
            complaints.push(format!("row {row}: no removal"));
        }
    }
    assert!(
        complaints.is_empty(),
        "{REMOVALS}:\n{}",
        complaints.join("\n")
    );
}

#[test]
fn a_table_that_claims_too_much_is_seen() {
    let known = Known {
        paths: BTreeSet::from(["src/door.rs".to_owned()]),
        tests: ["door::a", "door::b", "doors::c"].map(str::to_owned).into(),
        cases: BTreeMap::from([
            (7, vec!["the host x".to_owned()]),
            (8, vec!["the host y".to_owned()]),
        ]),
    };
    for (line, complaints) in [
        ("| 7 | in | `src/door.rs` | `the host`, `door::` | 3 |", 0),
        ("| 7 | in | `src/door.rs` | `the host`, `door::` | 4 |", 1),
        ("| 7 | in | `src/door.rs` | `door::` | 2 |", 1),
        ("| 7 | in | `src/gone.rs` | `the host`, `door::` | 3 |", 1),
        ("| 7 | in | – | `the host`, `door::` | 3 |", 1),
        (
            "| 7 | in | `src/door.rs` | `the host`, `door::`, `door::d` | 3 |",
            1,
        ),
        ("| 8 | in | `src/door.rs` | `the host x`, `door::` | 3 |", 2),
        ("| 28 | in | `src/door.rs` | `scripts/gone.sh` | 0 |", 1),
        ("| 28 | in | `src/door.rs` | `src/door.rs` | 0 |", 0),
    ] {
        let row = row(line).unwrap_or_else(|| panic!("no row: {line}"));
        let seen = known.complaints(&row);
        assert_eq!(seen.len(), complaints, "{line}: {seen:?}");
    }
    let file = File {
        path: "tests/it/door/heads.rs".to_owned(),
        text: "#[test]\nfn a() {}\n// #[test]\n// fn b() {}\n#[tokio::test]\n#[ignore = \"slow\"]\nasync fn c() {}\n#[tokio::test]\nasync fn d() {}\n".to_owned(),
    };
    assert_eq!(tests(&file), ["door::heads::a", "door::heads::d"]);
}
