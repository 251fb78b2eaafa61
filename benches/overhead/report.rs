//! The tables: medians over the repetitions, with ratios that were taken inside one repetition.

use std::fmt::Write as _;

use crate::load::Measured;
use crate::numbers::{median, show};
use crate::run::{MANY, Turn};

/// A number of a turn; `None` where it was not measured.
type Value<'a> = dyn Fn(&Turn) -> Option<f64> + 'a;

/// One column: a heading, and a number of a turn.
struct Column<'a> {
    name: String,
    value: Box<Value<'a>>,
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
    let all = ["W1a", "W1b", "W2b", "W3r"];
    let requests = ["W1a", "W1b"];
    let streams = ["W2b", "W3r"];
    let mut out = String::new();
    let proxy = each(&all, |name| with(name, "", &[NGINX], |of| of.proxy_us));
    table(
        &mut out,
        turns,
        "CPU of the proxy, us a request (W2b, W3r: a stream)",
        &proxy,
    );
    let path = each(&all, |name| with(name, "", &[DIRECT], |of| of.path_us));
    table(
        &mut out,
        turns,
        "CPU of load, proxy and echo together, us",
        &path,
    );
    let mut latency = each(&requests, |name| {
        with(name, " p50", &[ADDED], |of| of.latency.p50)
    });
    latency.extend(each(&requests, |name| {
        with(name, " p99", &[ADDED], |of| of.latency.p99)
    }));
    table(&mut out, turns, "Latency, us", &latency);
    let closed = ["W1a", "W1b", "W2b"];
    let rate = each(&closed, |name| {
        with(name, "", &[DIRECT, NGINX], |of| of.per_second)
    });
    table(
        &mut out,
        turns,
        "Throughput, requests (W2b: streams) a second",
        &rate,
    );
    let first = each(&streams, |name| {
        with(name, " p50", &[ADDED], |of| of.first_chunk.p50)
    });
    table(
        &mut out,
        turns,
        "Delay of a stream's first chunk, one way, us",
        &first,
    );
    let mut chunk = each(&streams, |name| {
        with(name, " p50", &[ADDED], |of| of.chunk.p50)
    });
    chunk.extend(each(&streams, |name| {
        with(name, " p99", &[ADDED], |of| of.chunk.p99)
    }));
    table(
        &mut out,
        turns,
        "Delay of a stream's chunks, one way, us",
        &chunk,
    );
    table(
        &mut out,
        turns,
        "Resident memory of the proxy, MiB",
        &memory(),
    );
    out
}

fn each<'a>(names: &[&'a str], columns: impl Fn(&'a str) -> Vec<Column<'a>>) -> Vec<Column<'a>> {
    names.iter().flat_map(|name| columns(name)).collect()
}

/// A workload's number, and beside it what it is compared with.
fn with<'a>(
    workload: &'a str,
    what: &str,
    compare: &[Compare],
    value: fn(&Measured) -> f64,
) -> Vec<Column<'a>> {
    let compared = compare
        .iter()
        .map(|compare| column(workload, compare.name(), *compare, value));
    let name = format!("{workload}{what}");
    let absolute = column(workload, name, Compare::Nothing, value);
    [absolute].into_iter().chain(compared).collect()
}

fn column<'a>(
    workload: &'a str,
    name: impl Into<String>,
    compare: Compare,
    value: fn(&Measured) -> f64,
) -> Column<'a> {
    let of = move |turn: &Turn| {
        let workloads = turn.workloads();
        let found = workloads.iter().find(|(name, _)| *name == workload)?.1?;
        // 0 is what was not measured: direct has no proxy.
        Some(value(found)).filter(|value| *value > 0.0)
    };
    Column {
        name: name.into(),
        value: Box::new(of),
        compare,
    }
}

fn memory() -> Vec<Column<'static>> {
    fn mib(kib: u64) -> f64 {
        kib as f64 / 1024.0
    }
    fn column(name: &str, value: fn(&Turn) -> Option<f64>) -> [Column<'static>; 2] {
        [(name, Compare::Nothing), (NGINX.name(), NGINX)].map(|(name, compare)| Column {
            name: name.to_owned(),
            value: Box::new(value),
            compare,
        })
    }
    let started = column("at start", |turn| turn.start_kib.map(mib));
    let idle = column("500 idle", |turn| turn.idle_kib.map(mib));
    let each = column("KiB an idle one", |turn| {
        let grown = turn.idle_kib?.saturating_sub(turn.start_kib?);
        Some(grown as f64 / MANY as f64)
    });
    let streams = column("500 streams, peak", |turn| {
        turn.start_kib?;
        turn.w3r.as_ref().map(|measured| mib(measured.peak_kib))
    });
    [started, idle, each, streams]
        .into_iter()
        .flatten()
        .collect()
}

fn table(out: &mut String, turns: &[Turn], title: &str, columns: &[Column<'_>]) {
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
    for column in columns {
        let _ = write!(out, " {} |", column.name);
    }
    let _ = writeln!(out, "\n|---|{}", "---|".repeat(columns.len()));
    for target in targets {
        let _ = write!(out, "| {target} |");
        for column in columns {
            let _ = write!(out, " {} |", show(column.median(turns, target)));
        }
        out.push('\n');
    }
}

impl Compare {
    fn name(self) -> &'static str {
        match self {
            Self::Nothing => "",
            Self::Ratio("nginx") => "x nginx",
            Self::Ratio(_) => "x direct",
            Self::Added(_) => "added",
        }
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
