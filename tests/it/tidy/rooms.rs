//! What rooms promise: no files that reach each other in a circle, and ranks inside a room.
//!
//! Promise: the rules are functions from a graph to complaints, and each is shown to see a planted
//! offence. `make tidy-report` prints the same graphs as figures.

use super::graph::Graph;
use super::{is_rust, is_test};
use crate::support::source::{File, files};

/// The ranks inside a room, lowest first: a file or folder of it reaches lower ones only, and those
/// of one rank do not reach each other. The room's own file (`src/proxy.rs`) is the map above them.
const ROOMS: &[(&str, &[&[&str]])] = &[
    (
        "src/proxy",
        &[
            &["quoted", "refuse", "life", "key_record"],
            &["purchase"],
            &["hops", "downstream"],
            &["upstream"],
            &["settings", "limits"],
            &["door"],
            &["request_head"],
            &["gateway"],
            &["settle", "client_watch"],
            &["report", "dispatch"],
            &["relay", "own_call"],
            &["evidence", "serve"],
            &["accept"],
        ],
    ),
    (
        "src/config",
        &[
            &["env", "errors", "token", "value"],
            &["opened"],
            &["key", "rows", "written"],
            &["reader"],
            &[
                "fleet", "ledger", "listen", "notify", "requests", "upstream",
            ],
            &["app"],
        ],
    ),
    (
        "src/caps",
        &[
            &["window"],
            &["leases", "orders"],
            &["rules"],
            &["refused", "view"],
            &["engine"],
        ],
    ),
    (
        "src/telemetry",
        &[&["exposition", "journal", "labels"], &["metrics"]],
    ),
    (
        "src/apps",
        &[
            &["declared", "error", "namespace"],
            &["awaited", "runs", "stored"],
            &["table"],
            &["rules"],
        ],
    ),
    (
        "src/fleet",
        &[
            &[
                "address",
                "chain",
                "identity",
                "lease_file",
                "orders",
                "schema",
                "shipped",
            ],
            &["answer", "marks"],
            &["leases", "shared"],
            &["database", "listen"],
            &["operator", "pace", "ship"],
            &["carry"],
            &["worker"],
        ],
    ),
    ("src/notices", &[&["marks", "notice"], &["send"]]),
    (
        "src/admin",
        &[
            &["body", "cells", "documents", "door", "once", "reconcile"],
            &["explain", "query"],
            &["failure", "page"],
            &["shared"],
            &["reading"],
            &["line", "orders", "overview", "runs"],
            &["change"],
            &["routes"],
            &["schedule"],
        ],
    ),
    (
        "src/server",
        &[
            &["descriptors", "itself", "listen", "notify", "signals"],
            &["reload", "spenders"],
        ],
    ),
    (
        "src/cli",
        &[
            &["client", "look", "systemd"],
            &["table"],
            &["error"],
            &["daemon", "output", "runtime"],
            &["csv"],
            &[
                "arguments",
                "clients",
                "entry_csv",
                "focus",
                "source",
                "whole_file",
            ],
            &["locate"],
            &[
                "app",
                "check",
                "compact",
                "elsewhere",
                "exec",
                "explain",
                "freeze",
                "key",
                "line",
                "receipts",
                "run",
                "sandbox",
                "shell_files",
                "version",
            ],
            &["fleet"],
            &["reconcile", "spend"],
            &["caps", "demo", "doctor", "export"],
            &["ledger", "status"],
            &["top"],
        ],
    ),
    (
        "sandbox/src",
        &[
            &[
                "assumptions",
                "clock",
                "connection",
                "fingerprint",
                "money",
                "openapi",
                "settings",
                "spec",
                "store",
            ],
            &["error", "fault", "received", "rollup"],
            &[
                "fields", "key_id", "limits", "models", "speech", "sse", "steps", "verdict",
            ],
            &["form", "inbound", "keep", "receipt", "remote"],
            &["fleet", "idempotency", "pins"],
            &["books"],
            &["billing", "catalog", "options"],
            &["auth", "endpoints", "scenario", "scoring"],
            &["checkpoint", "deploy"],
            &["evals"],
            &["state"],
            &["control", "front", "purchase"],
            &["routes"],
            &["server"],
        ],
    ),
    (
        "sandbox/src/models",
        &[
            &["lane", "roster"],
            &["forward"],
            &["request"],
            &["plan", "judge"],
            &["served"],
            &["turn"],
        ],
    ),
    (
        "sandbox/src/speech",
        &[
            &["length", "language", "espeak"],
            &["mp4", "webm"],
            &["listen"],
        ],
    ),
    (
        "sandbox/models/src",
        &[
            &["rng", "tokens", "font", "category", "text", "vision"],
            &["facts", "embedding", "speech"],
            &["skill", "logprobs", "pattern", "page"],
            &["prompt"],
            &["drawing", "talk", "arithmetic"],
            &["given", "minutes", "summary"],
            &["code", "form", "label", "sql", "translation"],
            &["answering"],
            &["relevance"],
            &["reader"],
            &["schema", "prose"],
            &["tools"],
            &["draft"],
            &["lib"],
        ],
    ),
    (
        "src/ledger",
        &[
            &["fingerprint", "id", "options", "shared_text"],
            &["error", "kept_key", "leases", "marks"],
            &["entry"],
            &["delivery", "sums"],
            &["tallies"],
            &["rollup"],
            &["record"],
            &["journal"],
            &["fold"],
            &["index"],
            &["read"],
            &["upkeep"],
            &["write"],
            &["handle"],
        ],
    ),
    (
        "src/ledger/journal",
        &[
            &["faults", "state_dir", "lines", "report"],
            &["high_water", "segments", "order"],
            &["scan", "quarantine"],
            &["reader"],
            &["append"],
        ],
    ),
    (
        "src/ledger/fold",
        &[
            &["state", "effect", "charge"],
            &["leases", "models", "sessions"],
            &["totals", "keys", "quarters", "undelivered", "usage"],
            &["books"],
        ],
    ),
    (
        "src/ledger/index",
        &[
            &["db", "figures", "usage_file"],
            &["blocks", "lines"],
            &["rows"],
            &["write"],
            &["snapshot"],
            &["tree"],
            &["copy"],
        ],
    ),
    (
        "src/ledger/read",
        &[
            &["views", "usage", "group_by"],
            &["filter", "window"],
            &["lookup"],
            &["listing", "find", "reconcile", "since"],
            &["spend"],
            &["indexed"],
        ],
    ),
    (
        "src/ledger/upkeep",
        &[
            &["indexing"],
            &["compact", "lookups"],
            &["retention"],
            &["verify"],
        ],
    ),
    (
        "src/ledger/write",
        &[
            &["queue", "backlog", "left", "rebuild", "prune_clock"],
            &["load"],
            &["hub"],
            &["committer"],
            &["writer"],
            &["shared"],
        ],
    ),
];

/// The packages, by where their source lies.
const PACKAGES: [&str; 3] = ["src/", "sandbox/src/", "sandbox/models/src/"];

/// Source that is built into a program: no tests, and not the model check.
fn is_product(file: &File) -> bool {
    let is_model = file.path.starts_with("src/proxy/purchase/simulation");
    is_rust(file) && !is_test(&file.path) && !is_model
}

/// The source of a package without its tests.
fn graph(root: &str) -> Graph {
    let files = files();
    let source = files.iter().filter(|file| is_product(file));
    Graph::of(
        root,
        source.map(|file| (file.path.as_str(), file.text.as_str())),
    )
}

/// Files that reach each other.
fn circles(graph: &Graph) -> Vec<String> {
    let circles = graph.circles().into_iter();
    circles
        .map(|circle| format!("a circle:\n{}", graph.inside(&circle).join("\n")))
        .collect()
}

/// Reaches inside a room to its own rank or a higher one.
fn climbs(graph: &Graph, room: &str, ranks: &[&[&str]]) -> Vec<String> {
    let inside = format!("{room}/");
    let name = |file: &str| -> Option<String> {
        let first = file.strip_prefix(&inside)?.split('/').next()?;
        Some(first.trim_end_matches(".rs").to_owned())
    };
    let rank = |name: &str| ranks.iter().position(|names| names.contains(&name));
    let mut complaints = Vec::new();
    for (from, targets) in &graph.reaches {
        let Some(own) = name(from) else { continue };
        let Some(own_rank) = rank(&own) else {
            complaints.push(format!("{from}: {own} has no rank in {room}"));
            continue;
        };
        for (to, (line, path)) in targets {
            let target = match name(to) {
                Some(target) => target,
                None if *to == format!("{room}.rs") => "the room itself".to_owned(),
                None => continue,
            };
            if target != own && rank(&target).is_none_or(|other| other >= own_rank) {
                complaints.push(format!("{from}:{line}: {own} reaches {target} ({path})"));
            }
        }
    }
    complaints
}

#[test]
fn no_files_reach_each_other_in_a_circle() {
    let found: Vec<String> = PACKAGES
        .iter()
        .flat_map(|root| circles(&graph(root)))
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn inside_a_room_files_reach_lower_ranks_only() {
    let found: Vec<String> = ROOMS
        .iter()
        .flat_map(|(room, ranks)| {
            let package = PACKAGES
                .iter()
                .filter(|root| format!("{room}/").starts_with(*root));
            let package = package.max_by_key(|root| root.len()).expect(room);
            climbs(&graph(package), room, ranks)
        })
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Plain data may be open to other files; what changes by methods is not.
#[test]
fn what_changes_by_methods_keeps_its_fields_and_its_impl_in_one_file() {
    let graphs = PACKAGES.map(graph);
    let open: Vec<_> = graphs.iter().flat_map(|graph| &graph.open).collect();
    let strays: Vec<_> = graphs.iter().flat_map(|graph| &graph.strays).collect();
    assert!(
        open.is_empty() && strays.is_empty(),
        "open:\n{open:#?}\naway from their type:\n{strays:#?}"
    );
}

/// `make tidy-report`: the size and the shape of the source, to set beside those of another commit.
#[test]
#[ignore = "prints figures and holds nothing"]
fn report() {
    for root in PACKAGES {
        let graph = graph(root);
        let source = files();
        let source = source
            .iter()
            .filter(|file| file.path.starts_with(root) && is_product(file));
        let lengths: Vec<usize> = source.map(|file| file.text.lines().count()).collect();
        let circles: Vec<usize> = graph.circles().iter().map(Vec::len).collect();
        let twice = graph.types.values().filter(|homes| homes.len() > 1).count();
        println!(
            "{root:16} {:6} lines, {:4} files, the longest {:4}; circles of {circles:?} files; {:3} own \
             impls away from their type; {twice:3} type names that stand twice",
            lengths.iter().sum::<usize>(),
            lengths.len(),
            lengths.iter().max().expect("a file"),
            graph.strays.len(),
        );
        for (name, homes) in graph.types.iter().filter(|(_, homes)| homes.len() > 1) {
            println!(
                "    {name}: {}",
                homes
                    .iter()
                    .map(String::as_str)
                    .collect::<Vec<_>>()
                    .join(" ")
            );
        }
    }
}

#[test]
fn each_rule_sees_a_planted_offence() {
    let package = |files: &[(&str, &str)]| Graph::of("src/", files.iter().copied());
    let circle = package(&[
        ("src/lib.rs", "mod x;"),
        ("src/x.rs", "mod a; mod b; pub use a::One;"),
        (
            "src/x/a.rs",
            "pub struct One; fn f() { println!(\"{}\", super::b::two()) }",
        ),
        (
            "src/x/b.rs",
            "use crate::x::One; pub fn two() -> One { One }",
        ),
    ]);
    assert_eq!(circles(&circle).len(), 1, "{circle:?}");
    let ranks: &[&[&str]] = &[&["b"], &["a"]];
    let climbing = climbs(&circle, "src/x", ranks);
    assert!(
        climbing.len() == 1 && climbing[0].starts_with("src/x/b.rs:1"),
        "{climbing:?}"
    );
    assert_eq!(climbs(&circle, "src/x", &[&["b"]]).len(), 2);
    let line = package(&[
        ("src/lib.rs", "mod x;"),
        ("src/x.rs", "mod a; mod b; pub use a::One;"),
        (
            "src/x/a.rs",
            "pub struct One; #[cfg(test)] mod tests { use crate::x::b; }",
        ),
        ("src/x/b.rs", "use super::One; impl One { fn two() {} }"),
    ]);
    assert!(circles(&line).is_empty(), "{line:?}");
    assert!(climbs(&line, "src/x", &[&["a"], &["b"]]).is_empty());
    let stray = ("src/x/b.rs".to_owned(), 1, "One".to_owned());
    assert_eq!(line.strays, [stray]);
    let fields = package(&[
        ("src/lib.rs", "mod x;"),
        (
            "src/x.rs",
            "pub struct Data { pub a: u8 } impl Data { pub fn a(&self) -> u8 { self.a } }
             pub struct Kept { a: u8 } impl Kept { pub fn add(&mut self) { self.a += 1 } }
             pub struct Open { pub(super) a: u8 } impl Open { pub fn add(&mut self) { self.a += 1 } }",
        ),
    ]);
    assert_eq!(fields.open, [("src/x.rs".to_owned(), "Open".to_owned())]);
}
