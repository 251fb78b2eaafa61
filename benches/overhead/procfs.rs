//! What the kernel counted: CPU time and memory of a process with its children, and how busy the
//! machine was.
//!
//! CPU is the scheduler's own count in nanoseconds, thread by thread. The clock ticks of
//! `/proc/PID/stat` are 10 ms wide, too coarse for two seconds of work.

use std::fs;
use std::path::Path;

/// Clock ticks a second in `/proc/stat`; fixed on Linux.
const TICKS: f64 = 100.0;

/// A process and all its descendants.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    pids: Vec<u32>,
}

/// CPU time that the whole machine spent, by anybody.
#[derive(Clone, Copy, Debug)]
pub struct MachineTime {
    busy_s: f64,
}

impl Tree {
    /// The process `root` and what descends from it at this moment.
    pub fn of(root: u32) -> Self {
        let parents = parents();
        let mut pids = vec![root];
        let mut next = 0;
        while let Some(parent) = pids.get(next).copied() {
            next += 1;
            pids.extend(
                parents
                    .iter()
                    .filter(|(_, of)| *of == parent)
                    .map(|(pid, _)| *pid),
            );
        }
        Self { pids }
    }

    /// One process without its descendants.
    pub fn only(pid: u32) -> Self {
        Self { pids: vec![pid] }
    }

    pub fn join(&mut self, other: Self) {
        self.pids.extend(other.pids);
    }

    pub fn pids(&self) -> &[u32] {
        &self.pids
    }

    /// CPU time of all threads that live, in nanoseconds.
    pub fn cpu_ns(&self) -> u64 {
        self.pids.iter().map(|pid| process_cpu_ns(*pid)).sum()
    }

    /// Resident memory in KiB, shared pages once for each process.
    pub fn resident_kib(&self) -> u64 {
        self.sum(|pid| status_number(pid, "VmRSS:"))
    }

    /// The most resident memory that each has had.
    pub fn peak_kib(&self) -> u64 {
        self.sum(|pid| status_number(pid, "VmHWM:"))
    }

    pub fn threads(&self) -> u64 {
        self.sum(|pid| status_number(pid, "Threads:"))
    }

    /// Open descriptors.
    pub fn descriptors(&self) -> u64 {
        self.sum(|pid| {
            let open = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
            u64::try_from(open.count()).ok()
        })
    }

    fn sum(&self, of: impl Fn(u32) -> Option<u64>) -> u64 {
        self.pids.iter().filter_map(|pid| of(*pid)).sum()
    }
}

impl MachineTime {
    pub fn now() -> Self {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let fields: Vec<f64> = stat
            .lines()
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .skip(1)
            .filter_map(|field| field.parse().ok())
            .collect();
        // user nice system idle iowait irq softirq steal
        let busy = |index: &usize| !matches!(index, 3 | 4);
        let ticks: f64 = (0..8)
            .filter(busy)
            .filter_map(|index| fields.get(index))
            .sum();
        Self {
            busy_s: ticks / TICKS,
        }
    }

    pub fn seconds_since(self, before: Self) -> f64 {
        self.busy_s - before.busy_s
    }
}

/// `(pid, parent)` of every process.
fn parents() -> Vec<(u32, u32)> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter_map(|pid| Some((pid, parent(pid)?)))
        .collect()
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold spaces and brackets; what follows the last bracket does not.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

fn process_cpu_ns(pid: u32) -> u64 {
    let Ok(tasks) = fs::read_dir(Path::new("/proc").join(pid.to_string()).join("task")) else {
        return 0;
    };
    tasks
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("schedstat")).ok())
        .filter_map(|stat| stat.split_whitespace().next()?.parse::<u64>().ok())
        .sum()
}

fn status_number(pid: u32, name: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}
