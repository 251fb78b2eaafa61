//! What the kernel knows of this process, by the names that every dashboard for processes asks for.
//!
//! Promise: read at each scrape from `/proc/self` and nowhere else, so that it works in a unit that sees no
//! other process. What the kernel does not show has no sample, never a 0.

use std::fs;

use rustix::process::{Resource, getrlimit};

use crate::clock::process_cpu;
use crate::telemetry::exposition::{Exposition, MetricType, MsAsSeconds};

pub(super) fn write(started_ms: Option<u64>, text: &mut Exposition) {
    use MetricType::{Counter, Gauge};
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = |name| field(&status, name).and_then(|kib| kib.checked_mul(1024));
    let cpu = process_cpu();
    text.family(
        Counter,
        "process_cpu_seconds_total",
        "Time that the process has spent on processors, its own and the kernel's for it.",
    )
    .sample(
        &[],
        format_args!("{}.{:06}", cpu.as_secs(), cpu.subsec_micros()),
    );
    let mut family = text.family(
        Gauge,
        "process_start_time_seconds",
        "When the process started, in seconds since 1970.",
    );
    if let Some(started_ms) = started_ms {
        family.sample(&[], MsAsSeconds(started_ms));
    }
    for (name, help, value) in [
        (
            "process_open_fds",
            "Descriptors that are open: connections, files, sockets.",
            open_descriptors(),
        ),
        (
            "process_max_fds",
            "Descriptors that may be open.",
            getrlimit(Resource::Nofile).current,
        ),
        (
            "process_resident_memory_bytes",
            "Memory that is in use.",
            kib("VmRSS"),
        ),
        (
            "process_virtual_memory_bytes",
            "Addresses that are in use.",
            kib("VmSize"),
        ),
        (
            "process_threads",
            "Threads of the process.",
            field(&status, "Threads"),
        ),
    ] {
        let mut family = text.family(Gauge, name, help);
        if let Some(value) = value {
            family.sample(&[], value);
        }
    }
}

/// A line `VmRSS:   12345 kB`.
fn field(status: &str, name: &str) -> Option<u64> {
    let mut lines = status.lines();
    let text = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    text.split_whitespace().next()?.parse().ok()
}

/// Without the one that lists them.
fn open_descriptors() -> Option<u64> {
    let listed = fs::read_dir("/proc/self/fd").ok()?.count();
    u64::try_from(listed).ok()?.checked_sub(1)
}
