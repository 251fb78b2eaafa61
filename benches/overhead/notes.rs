//! What stands below the tables: where and how it was measured, and whether the ledgers agree.

use std::fmt::Write as _;
use std::fs;
use std::thread::available_parallelism;

use crate::numbers::{median, show};
use crate::run::Turn;

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
    let _ = writeln!(out, "- {}.", machine());
    let _ = writeln!(
        out,
        "- `x nginx`, `x direct`: ratio inside one repetition; `added`: difference to direct, the \
         same way. Memory of nginx is the sum over its processes, shared pages counted in each."
    );
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
    let ledgers: u64 = turns.iter().filter_map(|turn| turn.billed).sum();
    let _ = writeln!(out, "- answers that the ledgers billed: {ledgers}.");
    out
}

/// Ledgers that did not bill what the load saw. A request that failed at this end may have been
/// billed all the same; an answer that was received must have been.
pub fn ledger_differences(turns: &[Turn]) -> Vec<String> {
    turns.iter().filter_map(difference).collect()
}

fn difference(turn: &Turn) -> Option<String> {
    let billed = turn.billed?;
    let failed: u64 = turn
        .workloads()
        .iter()
        .filter_map(|(_, found)| Some(found.as_ref()?.errors))
        .sum();
    let may_be = turn.answers..=turn.answers + failed;
    (!may_be.contains(&billed)).then(|| {
        format!(
            "the ledger of {} in repetition {} billed {billed} answers, the load saw {}",
            turn.target,
            turn.repetition + 1,
            turn.answers
        )
    })
}

/// Where this was measured, in a few words.
fn machine() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cores = available_parallelism().map_or(0, usize::from);
    let kernel = read("/proc/sys/kernel/osrelease");
    let load = read("/proc/loadavg");
    let load: Vec<&str> = load.split(' ').take(2).collect();
    format!(
        "{cores} cores, Linux {}, load average at the end {}",
        kernel.trim(),
        load.join(" ")
    )
}
