//! One target's turn in one repetition, on processes that have served nothing before.
//!
//! Memory comes first, then the fast workloads on what is by then a process with a past: that is
//! the state a sidecar is in.

use std::io;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use tokio::time::sleep;

use crate::args::Args;
use crate::disk::fdatasync_cost;
use crate::load::{Ask, Measured, closed_loop, idle, streams_at_once};
use crate::meter::Meter;
use crate::numbers::Spread;
use crate::procfs::Tree;
use crate::target::{Target, start_echo};

/// All measurements of one turn.
#[derive(Clone, Debug, Serialize)]
pub struct Turn {
    pub repetition: usize,
    pub target: String,
    pub start_kib: Option<u64>,
    pub idle_kib: Option<u64>,
    pub w1a: Option<Measured>,
    pub w1b: Option<Measured>,
    pub w2b: Option<Measured>,
    pub w3r: Option<Measured>,
    /// Answers that the load saw, and that the ledger billed.
    pub answers: u64,
    pub billed: Option<u64>,
    pub fdatasync: Spread,
}

/// Connections that do nothing, and slow streams at once.
pub const MANY: usize = 500;

/// Connections of W1b and W2b.
pub const BUSY: usize = 64;

const SLOW_STREAM: Ask = Ask::Stream {
    chunks: 50,
    every: Duration::from_millis(50),
};

const FAST_STREAM: Ask = Ask::Stream {
    chunks: 100,
    every: Duration::ZERO,
};

/// Time for a process to notice what changed.
const SETTLE: Duration = Duration::from_millis(400);

/// Runs all workloads on one target. `directory` is this turn's own.
pub async fn turn(
    args: &Args,
    target: &Target,
    repetition: usize,
    directory: &Path,
) -> io::Result<Turn> {
    let fdatasync = fdatasync_cost(directory)?;
    let (echo, echo_address) = start_echo(directory)?;
    let running = target.start(echo_address, directory).await?;
    sleep(SETTLE).await;
    let proxy = running
        .process
        .as_ref()
        .map(|process| Tree::of(process.id()));
    let meter = Meter::new(proxy, echo.id());
    let address = running.address;

    let mut turn = Turn {
        repetition,
        target: target.to_string(),
        start_kib: running.process.as_ref().map(|_| meter.resident_kib()),
        idle_kib: None,
        w1a: None,
        w1b: None,
        w2b: None,
        w3r: None,
        answers: 0,
        billed: None,
        fdatasync,
    };
    if args.runs("idle") {
        let (open, good) = idle(address, MANY).await?;
        sleep(SETTLE).await;
        turn.idle_kib = running.process.as_ref().map(|_| meter.resident_kib());
        turn.answers += good;
        drop(open);
        sleep(SETTLE).await;
    }
    if args.runs("W3r") {
        let ramp = Duration::from_millis(500);
        let measured = streams_at_once(address, SLOW_STREAM, MANY, ramp, &meter).await?;
        turn.w3r = Some(turn.took(measured));
        sleep(SETTLE).await;
    }
    if args.runs("W1a") {
        let measured = closed_loop(address, Ask::Json, 1, args.span, &meter).await?;
        turn.w1a = Some(turn.took(measured));
    }
    if args.runs("W1b") {
        let measured = closed_loop(address, Ask::Json, BUSY, args.span, &meter).await?;
        turn.w1b = Some(turn.took(measured));
    }
    if args.runs("W2b") {
        let measured = closed_loop(address, FAST_STREAM, BUSY, args.span, &meter).await?;
        turn.w2b = Some(turn.took(measured));
    }
    turn.billed = running.billed_answers().await?;
    running.stop().await?;
    drop(echo);
    Ok(turn)
}

impl Turn {
    fn took(&mut self, measured: Measured) -> Measured {
        self.answers += measured.good;
        measured
    }

    pub fn workloads(&self) -> [(&'static str, Option<&Measured>); 4] {
        [
            ("W1a", self.w1a.as_ref()),
            ("W1b", self.w1b.as_ref()),
            ("W2b", self.w2b.as_ref()),
            ("W3r", self.w3r.as_ref()),
        ]
    }
}
