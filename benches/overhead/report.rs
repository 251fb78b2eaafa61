//! A run as Markdown: the goals with their verdicts, the figures of all targets, and how it was measured.

use std::fmt::Write as _;

use crate::goals::{Figure, Subject};
use crate::numbers::{Quartiles, median, show};
use crate::rows::Row;
use crate::run::Run;
use crate::target::Kind;
use crate::verdict::{self, Judged, PAIRS_LEAST};

/// A figure that is shown for all targets, and the rows that have it.
const TABLES: [(&str, Figure, &[Row]); 7] = [
    (
        "CPU of the proxy, microseconds an answer",
        Figure::Cpu,
        &[
            Row::W1a,
            Row::W1b,
            Row::W1o,
            Row::Rate,
            Row::W2a,
            Row::W2b,
            Row::W3,
            Row::W3r,
            Row::W4a,
            Row::W4b,
        ],
    ),
    (
        "Latency p50, microseconds",
        Figure::P50,
        &[
            Row::W1a,
            Row::W1b,
            Row::W1o,
            Row::Rate,
            Row::RateHigh,
            Row::W4a,
            Row::W4b,
        ],
    ),
    (
        "Latency p99, microseconds",
        Figure::P99,
        &[
            Row::W1a,
            Row::W1b,
            Row::W1o,
            Row::Rate,
            Row::RateHigh,
            Row::W4a,
            Row::W4b,
        ],
    ),
    (
        "Delay of a chunk, one way, p50, microseconds",
        Figure::ChunkP50,
        &[Row::W2a, Row::W2b, Row::W3, Row::W3r],
    ),
    (
        "Delay of a chunk, one way, p99, microseconds",
        Figure::ChunkP99,
        &[Row::W2a, Row::W2b, Row::W3, Row::W3r],
    ),
    (
        "Answers a second",
        Figure::PerSecond,
        &[
            Row::W1a,
            Row::W1b,
            Row::W2a,
            Row::W2b,
            Row::W3,
            Row::W4a,
            Row::W4b,
        ],
    ),
    (
        "Most memory since the start, MiB (of nginx the sum over its processes)",
        Figure::PeakMib,
        &[Row::Idle, Row::W3r, Row::W4a, Row::W4b],
    ),
];

/// Names of the targets, in the order of the tables.
pub fn targets(run: &Run) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for found in run.repetitions.iter().flat_map(|of| &of.found) {
        if !names.contains(&found.target.as_str()) {
            names.push(&found.target);
        }
    }
    let plain = [Kind::Direct, Kind::Nginx, Kind::Haproxy, Kind::PassThrough];
    names.sort_by_key(|name| {
        let place = plain.iter().position(|kind| kind.name() == *name);
        place.unwrap_or(plain.len())
    });
    names
}

/// Names of all bursars of a run.
pub fn bursars(run: &Run) -> Vec<&str> {
    let plain = [Kind::Direct, Kind::Nginx, Kind::Haproxy, Kind::PassThrough];
    let mut names = targets(run);
    names.retain(|name| plain.iter().all(|kind| kind.name() != *name));
    names
}

/// Everything.
pub fn markdown(run: &Run) -> String {
    let mut out = String::new();
    for name in bursars(run) {
        goals(&mut out, run, name);
    }
    figures(&mut out, run);
    rows(&mut out);
    notes(&mut out, run);
    out
}

fn goals(out: &mut String, run: &Run, target: &str) {
    let _ = writeln!(out, "\n### {target} against the goals\n");
    let _ = writeln!(
        out,
        "| figure | BP | {target} | against the bound's first term, median (quartiles) | must | reach for | verdict |"
    );
    let _ = writeln!(out, "|---|---|---|---|---|---|---|");
    for judged in verdict::judge(run, target) {
        let bp = match judged.subject {
            Subject::Of(row, figure) => run.figures(row, figure, Kind::PassThrough.name()),
            Subject::DaemonSize | Subject::DaemonReady => None,
        };
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {}{} |",
            judged.subject,
            show(middle(bp)),
            show(middle(judged.value)),
            judged.relative,
            judged.must.map_or("-".to_owned(), |of| of.to_string()),
            judged.reach.map_or("-".to_owned(), |of| of.to_string()),
            judged.verdict,
            judged.standing
        );
    }
}

fn middle(of: Option<Quartiles>) -> Option<f64> {
    of.map(|of| of.middle)
}

fn figures(out: &mut String, run: &Run) {
    for (title, figure, rows) in TABLES {
        let _ = writeln!(out, "\n### {title}\n");
        let names: Vec<&str> = rows.iter().map(|row| row.name()).collect();
        let _ = writeln!(out, "| target | {} |", names.join(" | "));
        let _ = writeln!(out, "|---|{}", "---|".repeat(rows.len()));
        for target in targets(run) {
            let cells = rows.iter().map(|row| {
                let found = run.figures(*row, figure, target);
                found.map_or("not measured".to_owned(), |of| show(Some(of.middle)))
            });
            let cells: Vec<String> = cells.collect();
            if cells.iter().any(|cell| cell != "not measured") {
                let _ = writeln!(out, "| {target} | {} |", cells.join(" | "));
            }
        }
    }
}

fn rows(out: &mut String) {
    let _ = writeln!(out, "\n### The rows\n\n| row | what |\n|---|---|");
    for row in Row::ALL {
        let _ = writeln!(out, "| {} | {} |", row.name(), row.what());
    }
}

fn notes(out: &mut String, run: &Run) {
    let setting = &run.setting;
    let _ = writeln!(out, "\n### Setting\n");
    let _ = writeln!(
        out,
        "- {}: {} cores ({}), Linux {}, {}.",
        setting.date, setting.cores, setting.cpu, setting.kernel, setting.rustc
    );
    for (name, version) in &setting.versions {
        let _ = writeln!(out, "- {name}: {version}.");
    }
    let _ = writeln!(
        out,
        "- {} repetitions, {} s a row; arguments: `{}`.",
        run.repetitions.len(),
        setting.span_s,
        setting.arguments
    );
    let found = || run.repetitions.iter().flat_map(|of| &of.found);
    let held = [
        (Row::Rate, setting.rate, "the rates tried up to 5,000"),
        (Row::RateHigh, setting.rate_high, "10,000"),
    ];
    for (row, rate, tried) in held {
        // Which rates are held is asked only for the rows that need it.
        if found().any(|found| found.row == row) {
            let rate = rate.map_or("none".to_owned(), |rate| format!("{rate} a second"));
            let _ = writeln!(out, "- {}: BP holds {rate} of {tried}.", row.name());
        }
    }
    let others = || found().map(|found| found.measured.others);
    let _ = writeln!(
        out,
        "- Noise: other processes kept {} cores busy in the median, {} at most.",
        show(median(others())),
        show(Some(others().fold(0.0, f64::max)))
    );
    let all = || run.repetitions.iter();
    let _ = writeln!(
        out,
        "- An append of 1 KiB with fdatasync, alone: p50 {} us, p99 {} us, CPU {} us.",
        show(median(all().map(|of| of.disk_alone.wall.p50))),
        show(median(all().map(|of| of.disk_alone.wall.p99))),
        show(median(all().map(|of| of.disk_alone.cpu_us)))
    );
    for row in Row::ALL.into_iter().filter(|row| row.loads_disk()) {
        let beside = || all().filter_map(|of| of.disk_beside.get(row.name()));
        if beside().next().is_some() {
            let _ = writeln!(
                out,
                "- The same beside the load of {} on BP: p50 {} us, p99 {} us, CPU {} us.",
                row.name(),
                show(median(beside().map(|of| of.wall.p50))),
                show(median(beside().map(|of| of.wall.p99))),
                show(median(beside().map(|of| of.cpu_us)))
            );
        }
    }
    let unfit = verdict::unfit(run);
    for why in &unfit {
        let _ = writeln!(out, "- **Rows of which this run does not count.** {why}.");
    }
    if run.repetitions.len() < PAIRS_LEAST {
        let _ = writeln!(
            out,
            "- **No verdict**: {} repetitions, {PAIRS_LEAST} are needed.",
            run.repetitions.len()
        );
    }
    let failures = verdict::failures(run, &targets(run));
    let _ = writeln!(
        out,
        "- Failed loads, and ledgers that differ from what the far end billed: {}.",
        failures.len()
    );
    for failure in failures {
        let _ = writeln!(out, "  - {failure}.");
    }
}

/// A ratio of the table, by its name, as a baseline keeps it.
pub fn ratios(run: &Run, target: &str) -> Vec<(String, Quartiles)> {
    let judged: Vec<Judged> = verdict::judge(run, target);
    let named = judged.into_iter().filter_map(|judged| {
        let against = judged.must.or(judged.reach)?;
        Some((
            format!("{} {against}", judged.subject),
            judged.relative.spread()?,
        ))
    });
    named.collect()
}
