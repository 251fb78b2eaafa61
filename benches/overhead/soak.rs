//! The soak: a mixed load for many minutes with a burst of connections in each, and whether memory, CPU,
//! descriptors and threads are at its end what they were near its beginning.
//!
//! Promise: memory may grow by what the keys of the new requests take, as stated, and a twentieth; everything
//! else by a twentieth. A load with errors, and a ledger that differs from the far end's books, fail.
//!
//! CPU is judged as a share of the CPU that load and far end took in the same minute: they do the same work for each
//! request from the first minute to the last, so a machine that slows down for half an hour moves both alike.

use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::time::sleep;

use crate::ask::Ask;
use crate::load::{Measured, Pace, at_once, open_loop};
use crate::numbers::{median, show};
use crate::setting::Setting;
use crate::target::Target;

/// What was seen at the end of a minute.
#[derive(Debug)]
struct Minute {
    measured: Measured,
    /// All requests so far, each under a key of its own.
    keys: u64,
    memory_kib: u64,
    descriptors: u64,
    threads: u64,
}

/// One soak.
#[derive(Debug)]
pub struct Soaked {
    title: &'static str,
    /// Room that a new key may take.
    bytes_a_key: u64,
    setting: Setting,
    minutes: Vec<Minute>,
    pub failures: Vec<String>,
}

/// A figure of a minute.
struct Figure {
    name: &'static str,
    of: fn(&Minute) -> f64,
    grows: Growth,
}

/// What a figure may grow by, beside a twentieth.
enum Growth {
    /// The room of the new keys.
    Keys,
    /// Nothing; it is noisy, so some minutes stand for one.
    Smoothed,
    /// A few.
    Count,
}

const PER_SECOND: u32 = 500;
const CONNECTIONS: usize = 128;
const BURST_CONNECTIONS: usize = 1_000;
pub const MINUTE: Duration = Duration::from_secs(60);

/// As `src/ledger/fold/keys.rs` states it. Of a full table the oldest go.
const BYTES_A_KEY: u64 = 100;

/// What a figure may differ by, a twentieth, and small counts by so many.
const SHARE: f64 = 0.05;
const COUNT_SLACK: f64 = 4.0;

/// The minute that the last one is compared with is the sixth part of all: of 30 the fifth.
const PART: u32 = 6;

fn compared_with(minutes: u32) -> u32 {
    minutes.div_ceil(PART)
}

/// CPU is the median of so many minutes, this one the last.
const SMOOTHED: usize = 3;

/// Time for connections to close; and in a minute that is compared, for those to the service, which bursar keeps for
/// 55 s (`src/proxy/upstream/connections.rs`): how many a burst has left says nothing about growth.
const SETTLE: Duration = Duration::from_millis(500);
const REST: Duration = Duration::from_secs(65);

const FIGURES: [Figure; 4] = [
    Figure {
        name: "resident memory, MiB",
        of: |minute| minute.memory_kib as f64 / 1024.0,
        grows: Growth::Keys,
    },
    Figure {
        name: "CPU a request, share of the ends'",
        of: |minute| {
            let Measured {
                proxy_us, path_us, ..
            } = minute.measured;
            proxy_us / (path_us - proxy_us)
        },
        grows: Growth::Smoothed,
    },
    Figure {
        name: "descriptors",
        of: |minute| minute.descriptors as f64,
        grows: Growth::Count,
    },
    Figure {
        name: "threads",
        of: |minute| minute.threads as f64,
        grows: Growth::Count,
    },
];

/// Of a thousand requests: 850 small ones, 130 quick streams, 15 slow streams, 5 uploads of 1 MB.
fn mix(serial: u64) -> Ask {
    // 617 and 1,000 have no divisor in common, so that each kind is spread evenly.
    match serial * 617 % 1_000 {
        0..850 => Ask::JSON,
        850..980 => Ask::stream(100, Duration::ZERO),
        980..995 => Ask::stream(50, Duration::from_millis(50)),
        _ => Ask::upload(1_000_000),
    }
}

/// Runs it. `minute`: shorter for a trial of this program. `directory` is this soak's own.
pub async fn soak(
    target: &Target,
    minutes: u32,
    minute: Duration,
    directory: &Path,
) -> io::Result<Soaked> {
    let is_full = target.state.is_some();
    let running = target.start(directory).await?;
    let mut soaked = Soaked {
        title: if is_full {
            "The table of keys full from the start"
        } else {
            "From an empty ledger"
        },
        bytes_a_key: if is_full { 0 } else { BYTES_A_KEY },
        setting: Setting::of(std::slice::from_ref(target)),
        minutes: Vec::new(),
        failures: Vec::new(),
    };
    let (address, meter) = (running.address, &running.meter);
    let mut keys = 0;
    for number in 1..=minutes {
        let pace = Pace {
            per_second: PER_SECOND,
            connections: CONNECTIONS,
            span: minute,
            warm_up: Duration::ZERO,
            mix,
        };
        let load = open_loop(address, pace, meter);
        let burst = at_once(address, Ask::JSON, BURST_CONNECTIONS, Duration::ZERO, meter);
        let (measured, burst) = tokio::try_join!(load, burst)?;
        let is_compared = number == minutes || number == compared_with(minutes);
        sleep(if is_compared { REST } else { SETTLE }).await;
        keys += measured.answers + burst.answers;
        let errors = measured.errors + burst.errors;
        if errors > 0 {
            let failure = format!(
                "{}, minute {number}: {errors} requests failed",
                soaked.title
            );
            soaked.failures.push(failure);
        }
        let seen = Minute {
            keys,
            memory_kib: meter.resident_kib(),
            descriptors: meter.proxy().descriptors(),
            threads: meter.proxy().threads(),
            measured,
        };
        eprintln!(
            "{}, minute {number} of {minutes}: {} MiB, {} us a request",
            soaked.title,
            seen.memory_kib / 1024,
            show(Some(seen.measured.proxy_us))
        );
        soaked.minutes.push(seen);
    }
    let difference = running.stop().await?;
    soaked.failures.extend(difference);
    let beyond = soaked.beyond();
    soaked.failures.extend(beyond);
    Ok(soaked)
}

// === impl Soaked ===

impl Soaked {
    /// The minute that the last one is compared with, and the last one; counted from 0.
    fn compared(&self) -> Option<(usize, usize)> {
        let last = self.minutes.len().checked_sub(1)?;
        let minutes = u32::try_from(self.minutes.len()).ok()?;
        Some((compared_with(minutes) as usize - 1, last))
    }

    fn smoothed(&self, at: usize, of: fn(&Minute) -> f64) -> Option<f64> {
        let from = (at + 1).saturating_sub(SMOOTHED);
        median(self.minutes.get(from..=at)?.iter().map(of))
    }

    /// A figure of the two minutes, and how much the later one may be.
    fn figure(&self, figure: &Figure) -> Option<(f64, f64, f64)> {
        let (first, last) = self.compared()?;
        let at = |minute: usize| match figure.grows {
            Growth::Smoothed => self.smoothed(minute, figure.of),
            Growth::Keys | Growth::Count => self.minutes.get(minute).map(figure.of),
        };
        let (before, after) = (at(first)?, at(last)?);
        let new_keys = self.minutes.get(last)?.keys - self.minutes.get(first)?.keys;
        let more = match figure.grows {
            Growth::Keys => (new_keys * self.bytes_a_key) as f64 / 1_048_576.0,
            Growth::Smoothed => 0.0,
            Growth::Count => COUNT_SLACK,
        };
        Some((before, after, before * (1.0 + SHARE) + more))
    }

    fn beyond(&self) -> Vec<String> {
        let beyond = FIGURES.iter().filter_map(|figure| {
            let (before, after, most) = self.figure(figure)?;
            (after > most).then(|| {
                format!(
                    "{}, {}: {} at first, {} at last, {} at most",
                    self.title,
                    figure.name,
                    show(Some(before)),
                    show(Some(after)),
                    show(Some(most))
                )
            })
        });
        beyond.collect()
    }

    pub fn markdown(&self) -> String {
        let mut out = format!("\n### {}\n\n", self.title);
        let setting = &self.setting;
        let _ = writeln!(
            out,
            "{}, {} cores ({}), Linux {}. {PER_SECOND} requests a second on {CONNECTIONS} connections (of \
             1,000: 850 small, 130 streams of 100 chunks, 15 streams of 50 chunks 50 ms apart, 5 uploads of 1 \
             MB), and {BURST_CONNECTIONS} connections at once in each minute.\n",
            setting.date, setting.cores, setting.cpu, setting.kernel
        );
        let _ = writeln!(
            out,
            "| minute | requests so far | {} | CPU a request, us | p50, us |\n|---|---|---|---|---|---|---|---|",
            FIGURES.map(|figure| figure.name).join(" | ")
        );
        let last = self.minutes.len();
        let shown = |number: &usize| *number == 1 || number.is_multiple_of(5) || *number == last;
        for number in (1..=last).filter(shown) {
            if let Some(minute) = self.minutes.get(number - 1) {
                let cells = FIGURES.map(|figure| show(Some((figure.of)(minute))));
                let _ = writeln!(
                    out,
                    "| {number} | {} | {} | {} | {} |",
                    show(Some(minute.keys as f64)),
                    cells.join(" | "),
                    show(Some(minute.measured.proxy_us)),
                    show(Some(minute.measured.latency.p50))
                );
            }
        }
        let Some((first, last)) = self.compared() else {
            return out;
        };
        let _ = writeln!(
            out,
            "\n| figure | minute {} | minute {} | at most |\n|---|---|---|---|",
            first + 1,
            last + 1
        );
        for figure in &FIGURES {
            if let Some((before, after, most)) = self.figure(figure) {
                let cells = [before, after, most].map(|value| show(Some(value)));
                let _ = writeln!(out, "| {} | {} |", figure.name, cells.join(" | "));
            }
        }
        let _ = match self.failures.as_slice() {
            [] => writeln!(
                out,
                "\nNo request failed, and the ledger has what the far end billed."
            ),
            failures => writeln!(out, "\n**Failed:** {}.", failures.join("; ")),
        };
        out
    }
}
