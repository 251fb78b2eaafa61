//! CPU time between two moments: of the proxy, of the two ends (load and echo), and of everything
//! else on the machine.

use std::time::Duration;

use tokio::time::Instant;

use crate::procfs::{MachineTime, Tree};

/// The processes of one run.
pub struct Meter {
    /// Nothing where there is no proxy.
    proxy: Tree,
    ends: Tree,
}

/// The clocks at one moment.
pub struct Reading {
    proxy_ns: u64,
    ends_ns: u64,
    machine: MachineTime,
    at: Instant,
}

/// What was spent between two readings.
#[derive(Debug)]
pub struct Cost {
    pub proxy_ns: u64,
    pub ends_ns: u64,
    pub wall: Duration,
    /// Cores that other processes kept busy.
    pub others: f64,
}

impl Meter {
    pub fn new(proxy: Option<Tree>, echo: u32) -> Self {
        // The proxy is a child of this process, but not one of the ends.
        let mut ends = Tree::only(std::process::id());
        ends.join(Tree::of(echo));
        Self {
            proxy: proxy.unwrap_or_default(),
            ends,
        }
    }

    pub fn read(&self) -> Reading {
        Reading {
            proxy_ns: self.proxy.cpu_ns(),
            ends_ns: self.ends.cpu_ns(),
            machine: MachineTime::now(),
            at: Instant::now(),
        }
    }

    /// Resident memory of the proxy.
    pub fn resident_kib(&self) -> u64 {
        self.proxy.resident_kib()
    }

    /// The most that it has had since it began.
    pub fn peak_kib(&self) -> u64 {
        self.proxy.peak_kib()
    }

    pub fn proxy(&self) -> &Tree {
        &self.proxy
    }
}

impl Reading {
    pub fn since(&self, before: &Self) -> Cost {
        let proxy_ns = self.proxy_ns.saturating_sub(before.proxy_ns);
        let ends_ns = self.ends_ns.saturating_sub(before.ends_ns);
        let wall = self.at.duration_since(before.at);
        let ours_s = (proxy_ns + ends_ns) as f64 / 1e9;
        let others_s = self.machine.seconds_since(before.machine) - ours_s;
        Cost {
            proxy_ns,
            ends_ns,
            wall,
            others: (others_s / wall.as_secs_f64()).max(0.0),
        }
    }
}
