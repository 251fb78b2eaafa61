//! A run: repetitions, in each of them the stages, in each stage every row on all targets in turn.
//!
//! Why so: a ratio is taken between two figures that were measured seconds apart. The order of targets rotates
//! from repetition to repetition; a stage begins with new processes.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use crate::ask::Ask;
use crate::disk::{self, DiskBeside, DiskCost};
use crate::load::{Measured, Pace, at_once, closed_loop, idle, open_loop};
use crate::rows::{Row, STAGES};
use crate::setting::Setting;
use crate::target::{Kind, Running, Target};

/// Everything that was measured, and where.
#[derive(Debug, Serialize, Deserialize)]
pub struct Run {
    pub setting: Setting,
    pub repetitions: Vec<Repetition>,
}

/// What one round over all targets found.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Repetition {
    pub found: Vec<Found>,
    /// Appends with fdatasync, with nothing else to do.
    pub disk_alone: DiskCost,
    /// The same beside a row's load on the pass-through.
    pub disk_beside: BTreeMap<String, DiskCost>,
    /// Ledgers that differ from what the far end billed.
    pub differences: Vec<String>,
}

/// One row on one target.
#[derive(Debug, Serialize, Deserialize)]
pub struct Found {
    pub row: Row,
    pub target: String,
    pub measured: Measured,
}

/// How long and how often.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    pub repetitions: usize,
    pub span: Duration,
    /// Of [`Row::Rate`] and [`Row::RateHigh`], by what the pass-through holds; nothing where none is held.
    pub rate: Option<u32>,
    pub rate_high: Option<u32>,
}

/// Connections of W1b and W2b, and those of an open loop.
const BUSY: usize = 64;

const IDLE: usize = 5_000;
const SLOW_STREAMS: usize = 1_000;
const FAST_STREAMS: usize = 500;
const SLOW_STREAM: Ask = Ask::stream(50, Duration::from_millis(50));
const PACED_STREAM: Ask = Ask::stream(50, Duration::from_millis(5));
const QUICK_STREAM: Ask = Ask::stream(100, Duration::ZERO);
const MB: usize = 1_000_000;

const BURSTS: usize = 3;
const BURST_CONNECTIONS: usize = 1_000;

const RATE_CALM: u32 = 1_000;

/// Rates that are tried for [`Row::Rate`], the highest first, and for [`Row::RateHigh`].
pub const RATES: [u32; 5] = [5_000, 4_000, 3_000, 2_000, 1_000];
pub const RATES_HIGH: [u32; 1] = [10_000];

/// A rate is held when so much of it is answered in its time, and when no answer waits longer.
const HELD_SHARE: f64 = 0.98;
const HELD_P99_US: f64 = 250_000.0;

const DISK_SPAN: Duration = Duration::from_secs(1);

/// Time for a process to notice what changed.
const SETTLE: Duration = Duration::from_millis(400);

/// Runs all rows of one repetition. `directory` is the run's own.
pub async fn repetition(
    targets: &[Target],
    rows: &[Row],
    number: usize,
    extent: Extent,
    directory: &Path,
) -> io::Result<Repetition> {
    let mut repetition = Repetition {
        disk_alone: disk::cost(directory, DISK_SPAN)?,
        ..Repetition::default()
    };
    for stage in STAGES {
        let rows: Vec<Row> = rows
            .iter()
            .copied()
            .filter(|row| row.stage() == stage && row.rate(extent).is_none_or(|rate| rate > 0))
            .collect();
        let mut order: Vec<&Target> = targets
            .iter()
            .filter(|target| rows.iter().any(|row| row.runs_on(target.kind)))
            .collect();
        let turns = number.checked_rem(order.len()).unwrap_or_default();
        order.rotate_left(turns);
        let below = directory.join("stage");
        let ended = stage_of(&mut repetition, &order, &rows, extent, &below).await;
        // Nothing was started where there was nothing to measure.
        if below.exists() {
            fs::remove_dir_all(&below)?;
        }
        ended?;
    }
    Ok(repetition)
}

async fn stage_of(
    repetition: &mut Repetition,
    order: &[&Target],
    rows: &[Row],
    extent: Extent,
    directory: &Path,
) -> io::Result<()> {
    let mut running: Vec<Running> = Vec::new();
    for (place, target) in order.iter().enumerate() {
        let started = target.start(&directory.join(place.to_string())).await;
        running.push(started.map_err(|why| io::Error::other(format!("{target}: {why}")))?);
    }
    sleep(SETTLE).await;
    for row in rows {
        for target in running.iter().filter(|target| row.runs_on(target.kind)) {
            let measured = row.measure(target, extent).await;
            let measured = measured.map_err(|why| {
                io::Error::other(format!("{} through {}: {why}", row.name(), target.name))
            })?;
            repetition.found.push(Found {
                row: *row,
                target: target.name.clone(),
                measured,
            });
        }
        let bare = running
            .iter()
            .find(|target| target.kind == Kind::PassThrough);
        if let Some(target) = bare.filter(|_| row.loads_disk()) {
            let beside = DiskBeside::start(directory, extent.span)?;
            row.measure(target, extent).await?;
            let cost = beside.end()?;
            repetition.disk_beside.insert(row.name().to_owned(), cost);
        }
    }
    for target in running {
        let name = target.name.clone();
        let differs = target.stop().await;
        let differs = differs.map_err(|why| io::Error::other(format!("{name}: {why}")))?;
        repetition
            .differences
            .extend(differs.map(|how| format!("{name}: {how}")));
    }
    Ok(())
}

/// The first of some rates that the target holds.
pub async fn rate_held(
    target: &Target,
    rates: &[u32],
    span: Duration,
    directory: &Path,
) -> io::Result<Option<u32>> {
    let running = target.start(directory).await?;
    let mut held = None;
    for rate in rates.iter().copied() {
        let measured = open_loop(running.address, pace(rate, span), &running.meter).await?;
        if holds(&measured, rate) {
            held = Some(rate);
            break;
        }
    }
    running.stop().await?;
    Ok(held)
}

fn holds(measured: &Measured, rate: u32) -> bool {
    measured.errors == 0
        && measured.per_second >= f64::from(rate) * HELD_SHARE
        && measured.latency.p99 <= HELD_P99_US
}

fn pace(per_second: u32, span: Duration) -> Pace {
    Pace {
        per_second,
        connections: BUSY,
        span,
        warm_up: span / 5,
        mix: |_| Ask::JSON,
    }
}

// === impl Row ===

impl Row {
    /// Of an open loop; 0 where there is none to be tried.
    fn rate(self, extent: Extent) -> Option<u32> {
        match self {
            Self::W1o => Some(RATE_CALM),
            Self::Rate => Some(extent.rate.unwrap_or(0)),
            Self::RateHigh => Some(extent.rate_high.unwrap_or(0)),
            _ => None,
        }
    }

    async fn measure(self, target: &Running, extent: Extent) -> io::Result<Measured> {
        let (address, meter, span) = (target.address, &target.meter, extent.span);
        if let Some(rate) = self.rate(extent) {
            return open_loop(address, pace(rate, span), meter).await;
        }
        let closed = |ask, connections| closed_loop(address, ask, connections, span, meter);
        match self {
            Self::Idle => idle(address, IDLE, meter).await,
            Self::W3r => {
                let ramp = Duration::from_secs(1);
                at_once(address, SLOW_STREAM, SLOW_STREAMS, ramp, meter).await
            }
            Self::W4a => closed(Ask::upload(MB), 4).await,
            Self::W4b => closed(Ask::upload(20 * MB), 2).await,
            Self::Burst => {
                let mut all = Measured::default();
                for _ in 0..BURSTS {
                    let ramp = Duration::ZERO;
                    let one = at_once(address, Ask::JSON, BURST_CONNECTIONS, ramp, meter).await?;
                    let errors = all.errors + one.errors;
                    all = Measured { errors, ..one };
                }
                sleep(SETTLE).await;
                Ok(all)
            }
            Self::W1a => closed(Ask::JSON, 1).await,
            Self::W2a => closed(QUICK_STREAM, 1).await,
            Self::W2b | Self::MeteredStream => closed(QUICK_STREAM, BUSY).await,
            Self::W3 => closed(PACED_STREAM, FAST_STREAMS).await,
            Self::Free => closed(Ask::JSON.without_entry(), BUSY).await,
            Self::FreeStream => closed(QUICK_STREAM.without_entry(), BUSY).await,
            _ => closed(Ask::JSON, BUSY).await,
        }
    }
}
