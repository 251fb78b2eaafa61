//! The tables: medians over the repetitions, with ratios that were taken inside one repetition.

use std::fmt::Write as _;

use crate::load::Measured;
use crate::numbers::{median, show};
use crate::run::{MANY, Turn};

/// One column: a heading, and a number of a turn.
struct Column<'a> {
    name: &'a str,
    value: Box<dyn Fn(&Turn) -> Option<f64> + 'a>,
    compare: Compare,
}

/// What a number is set against, within its own repetition.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Compare {
    Nothing,
    Ratio(&'static str),
    Added(&'static str),
}

const NGINX: Compare = Compare::Ratio("nginx");
const DIRECT: Compare = Compare::Ratio("direct");
const ADDED: Compare = Compare::Added("direct");

/// Everything that is shown on standard output.
pub fn tables(turns: &[Turn]) -> String {
    let mut out = String::new();
    let workloads = ["W1a", "W1b", "W2b", "W3r"];
    let cpu: Vec<Column<'_>> = workloads
        .iter()
        .flat_map(|name| both(name, "x nginx", NGINX, |measured| measured.proxy_us))
        .collect();
    table(
        &mut out,
        turns,
        "CPU of the proxy, us a request (a stream)",
        cpu,
    );
    let path: Vec<Column<'_>> = workloads
        .iter()
        .flat_map(|name| both(name, "x direct", DIRECT, |measured| measured.path_us))
        .collect();
    table(
        &mut out,
        turns,
        "CPU of load, proxy and echo together, us a request (a stream)",
        path,
    );
    let latency: Vec<Column<'_>> = ["W1a", "W1b"]
        .iter()
        .flat_map(|name| {
            let p50 = both(name, "p50 added", ADDED, |measured| measured.latency.p50);
            let p99 = both(name, "p99 added", ADDED, |measured| measured.latency.p99);
            p50.into_iter().chain(p99)
        })
        .collect();
    table(&mut out, turns, "Latency p50 and p99, us", latency);
    let rate: Vec<Column<'_>> = ["W1a", "W1b", "W2b"]
        .iter()
        .flat_map(|name| {
            let direct = both(name, "x direct", DIRECT, |measured| measured.per_second);
            let nginx = column(name, "x nginx", NGINX, |measured| measured.per_second);
            direct.into_iter().chain([nginx])
        })
        .collect();
    table(
        &mut out,
        turns,
        "Throughput, requests (streams) a second",
        rate,
    );
    let chunks: Vec<Column<'_>> = ["W2b", "W3r"]
        .iter()
        .flat_map(|name| {
            let p50 = both(name, "p50 added", ADDED, |measured| measured.chunk.p50);
            let p99 = both(name, "p99 added", ADDED, |measured| measured.chunk.p99);
            let first = both(name, "first added", ADDED, |measured| {
                measured.first_chunk.p50
            });
            p50.into_iter().chain(p99).chain(first)
        })
        .collect();
    table(
        &mut out,
        turns,
        "One-way delay of a stream's chunk p50, p99, and of its first p50, us",
        chunks,
    );
    table(&mut out, turns, "Resident memory, MiB", memory());
    out
}

/// A workload's number, and beside it what it is compared with.
fn both<'a>(
    workload: &'a str,
    versus: &'a str,
    compare: Compare,
    value: fn(&Measured) -> f64,
) -> [Column<'a>; 2] {
    [
        column(workload, workload, Compare::Nothing, value),
        column(workload, versus, compare, value),
    ]
}

fn column<'a>(
    workload: &'a str,
    name: &'a str,
    compare: Compare,
    value: fn(&Measured) -> f64,
) -> Column<'a> {
    let of = move |turn: &Turn| {
        let workloads = turn.workloads();
        let found = workloads.iter().find(|(name, _)| *name == workload)?.1?;
        (found.answers > 0).then(|| value(found))
    };
    Column {
        name,
        value: Box::new(of),
        compare,
    }
}

fn memory() -> Vec<Column<'static>> {
    fn mib(kib: u64) -> f64 {
        kib as f64 / 1024.0
    }
    fn column(name: &'static str, value: fn(&Turn) -> Option<f64>) -> [Column<'static>; 2] {
        [("", Compare::Nothing), ("x nginx", NGINX)].map(|(versus, compare)| Column {
            name: if versus.is_empty() { name } else { versus },
            value: Box::new(value),
            compare,
        })
    }
    let started = column("at start", |turn| turn.start_kib.map(mib));
    let idle = column("500 idle connections", |turn| turn.idle_kib.map(mib));
    let each = column("KiB each", |turn| {
        let grown = turn.idle_kib?.saturating_sub(turn.start_kib?);
        Some(grown as f64 / MANY as f64)
    });
    let streams = column("500 streams (peak)", |turn| {
        turn.start_kib?;
        turn.w3r.as_ref().map(|measured| mib(measured.peak_kib))
    });
    [started, idle, each, streams]
        .into_iter()
        .flatten()
        .collect()
}

fn table(out: &mut String, turns: &[Turn], title: &str, columns: Vec<Column<'_>>) {
    let mut targets: Vec<&str> = Vec::new();
    for turn in turns {
        if !targets.contains(&turn.target.as_str()) {
            targets.push(&turn.target);
        }
    }
    targets.sort_by_key(|target| match *target {
        "direct" => 0,
        "nginx" => 1,
        _ => 2,
    });
    let _ = write!(out, "\n### {title}\n\n| target |");
    for column in &columns {
        let _ = write!(out, " {} |", column.name);
    }
    let _ = writeln!(out, "\n|---|{}", "---|".repeat(columns.len()));
    for target in targets {
        let _ = write!(out, "| {target} |");
        for column in &columns {
            let _ = write!(out, " {} |", show(column.median(turns, target)));
        }
        out.push('\n');
    }
}

impl Column<'_> {
    fn median(&self, turns: &[Turn], target: &str) -> Option<f64> {
        let own = turns.iter().filter(|turn| turn.target == target);
        median(own.filter_map(|turn| self.of(turns, turn)).collect())
    }

    fn of(&self, turns: &[Turn], turn: &Turn) -> Option<f64> {
        let value = (self.value)(turn)?;
        let (Compare::Ratio(base) | Compare::Added(base)) = self.compare else {
            return Some(value);
        };
        let of_base = turns
            .iter()
            .find(|other| other.repetition == turn.repetition && other.target == base);
        let against = (self.value)(of_base?)?;
        match self.compare {
            Compare::Added(_) if turn.target == base => None,
            Compare::Added(_) => Some(value - against),
            _ if against > 0.0 => Some(value / against),
            _ => None,
        }
    }
}

/// What one must know to believe the tables.
pub fn notes(turns: &[Turn]) -> String {
    let mut out = String::new();
    let all = || {
        turns
            .iter()
            .flat_map(|turn| turn.workloads())
            .filter_map(|(_, found)| found)
    };
    let others = median(all().map(|measured| measured.others).collect());
    let worst = all().map(|measured| measured.others).fold(0.0, f64::max);
    let p50 = median(turns.iter().map(|turn| turn.fdatasync.p50).collect());
    let p99 = median(turns.iter().map(|turn| turn.fdatasync.p99).collect());
    let errors: u64 = all().map(|measured| measured.errors).sum();
    let bare: u64 = all().map(|measured| measured.bare).sum();
    let _ = writeln!(out, "\n### Notes\n");
    let _ = writeln!(
        out,
        "- noise: CPU of other processes while measuring, median {} and at most {} cores.",
        show(others),
        show(Some(worst))
    );
    let _ = writeln!(
        out,
        "- one 4 KiB append with fdatasync in the same directory: p50 {} us, p99 {} us; bursar's \
         requests wait for two of them under durability = \"power\".",
        show(p50),
        show(p99)
    );
    let _ = writeln!(
        out,
        "- failed requests: {errors}; good answers without a receipt: {bare}."
    );
    for turn in turns {
        let Some(billed) = turn.billed.filter(|billed| *billed != turn.answers) else {
            continue;
        };
        let _ = writeln!(
            out,
            "- THE LEDGER DIFFERS: {} in repetition {} saw {} answers and billed {billed}.",
            turn.target, turn.repetition, turn.answers
        );
    }
    let ledgers: u64 = turns.iter().filter_map(|turn| turn.billed).sum();
    let _ = writeln!(out, "- answers that the ledgers billed: {ledgers}.");
    out
}
