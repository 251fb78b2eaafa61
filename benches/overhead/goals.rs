//! What bursar must reach and what it reaches for, row by row; and what the pass-through must be for a run to
//! count. The only place where either stands.

use std::fmt;

use self::Bound::{AtLeast, AtMost};
use self::Figure::{ChunkP50, ChunkP99, Cpu, Errors, KibEach, P50, P99, PeakMib, PerSecond};
use self::Term::{Bp, Commit, CommitCpu, Direct, DiskP99, Nginx, One, Own};
use crate::load::Measured;
use crate::rows::Row;

/// A number of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// CPU of the proxy, microseconds an answer.
    Cpu,
    P50,
    P99,
    ChunkP50,
    ChunkP99,
    PerSecond,
    Errors,
    PeakMib,
    /// Of one idle connection.
    KibEach,
}

/// What is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    Of(Row, Figure),
    /// The packaged program, MiB.
    DaemonSize,
    /// Its start on an empty ledger, milliseconds.
    DaemonReady,
}

/// What a bound is made of, taken from the same repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Term {
    Bp,
    Nginx,
    Direct,
    /// The same program's figure in another row.
    Own(Row),
    /// CPU of one append with fdatasync, microseconds.
    CommitCpu,
    /// Its time, p50.
    Commit,
    /// Its p99 beside the same load.
    DiskP99,
    One,
}

/// A sum of terms that a figure must not exceed, or not fall below.
#[derive(Clone, Copy, Debug)]
pub enum Bound {
    AtMost(&'static [(f64, Term)]),
    AtLeast(&'static [(f64, Term)]),
}

pub struct Goal {
    pub subject: Subject,
    pub must: Option<Bound>,
    pub reach: Option<Bound>,
    /// The least ratio that can be had, where a profile has shown that; a figure up to it is called so.
    pub floor: Option<f64>,
}

/// CPU of nginx and of the pass-through, between two values, where the goals were set.
pub struct Expected {
    pub row: Row,
    pub nginx_us: f64,
    pub pass_through_us: (f64, f64),
}

/// How far the pass-through's ratio to nginx may be from the expected one.
pub const EXPECTED_WITHIN: f64 = 0.25;

/// Bytes in flight of the two uploads.
const W4A_MIB: f64 = 4e6 / 1_048_576.0;
const W4B_MIB: f64 = 40e6 / 1_048_576.0;

const fn goal(row: Row, figure: Figure, must: Bound, reach: Bound) -> Goal {
    Goal {
        subject: Subject::Of(row, figure),
        must: Some(must),
        reach: Some(reach),
        floor: None,
    }
}

pub const GOALS: &[Goal] = &[
    goal(Row::W1b, Cpu, AtMost(&[(1.9, Bp)]), AtMost(&[(0.9, Bp)])),
    goal(
        Row::W1a,
        Cpu,
        AtMost(&[(2.5, Bp), (2.0, CommitCpu)]),
        AtMost(&[(1.5, Bp), (2.0, CommitCpu)]),
    ),
    goal(
        Row::W1a,
        P50,
        AtMost(&[(1.0, Direct), (2.0, Commit), (60.0, One)]),
        AtMost(&[(1.0, Direct), (2.0, Commit), (20.0, One)]),
    ),
    goal(Row::W1b, P50, AtMost(&[(2.0, Bp)]), AtMost(&[(1.2, Bp)])),
    goal(Row::W1b, P99, AtMost(&[(2.0, Bp)]), AtMost(&[(1.2, Bp)])),
    goal(
        Row::W1o,
        P99,
        AtMost(&[(2.0, Bp), (2.0, DiskP99)]),
        AtMost(&[(1.2, Bp)]),
    ),
    goal(Row::W2a, Cpu, AtMost(&[(2.5, Bp)]), AtMost(&[(1.5, Bp)])),
    goal(Row::W3, Cpu, AtMost(&[(1.0, Bp)]), AtMost(&[(0.8, Bp)])),
    goal(
        Row::W3,
        PerSecond,
        AtLeast(&[(0.95, Bp)]),
        AtLeast(&[(0.95, Bp)]),
    ),
    goal(Row::W2b, Cpu, AtMost(&[(0.9, Bp)]), AtMost(&[(0.7, Bp)])),
    goal(
        Row::W2b,
        ChunkP50,
        AtMost(&[(1.2, Bp)]),
        AtMost(&[(1.2, Nginx)]),
    ),
    goal(
        Row::W2b,
        ChunkP99,
        AtMost(&[(1.2, Bp)]),
        AtMost(&[(1.2, Nginx)]),
    ),
    goal(
        Row::W3r,
        Errors,
        AtMost(&[(0.0, One)]),
        AtMost(&[(0.0, One)]),
    ),
    goal(Row::W3r, Cpu, AtMost(&[(0.9, Bp)]), AtMost(&[(0.65, Bp)])),
    goal(
        Row::W3r,
        PeakMib,
        AtMost(&[(80.0, One)]),
        AtMost(&[(41.0, One)]),
    ),
    goal(
        Row::Idle,
        Errors,
        AtMost(&[(0.0, One)]),
        AtMost(&[(0.0, One)]),
    ),
    goal(
        Row::Idle,
        KibEach,
        AtMost(&[(24.0, One)]),
        AtMost(&[(10.0, One)]),
    ),
    goal(Row::W4a, Cpu, AtMost(&[(1.5, Bp)]), AtMost(&[(1.1, Bp)])),
    goal(
        Row::W4a,
        PeakMib,
        AtMost(&[(1.0, Bp), (1.2 * W4A_MIB, One)]),
        AtMost(&[(1.0, Bp), (1.2 * W4A_MIB, One)]),
    ),
    goal(Row::W4b, Cpu, AtMost(&[(1.5, Bp)]), AtMost(&[(1.1, Bp)])),
    goal(
        Row::W4b,
        PeakMib,
        AtMost(&[(1.0, Bp), (1.2 * W4B_MIB, One)]),
        AtMost(&[(1.0, Bp), (1.2 * W4B_MIB, One)]),
    ),
    goal(
        Row::Burst,
        Errors,
        AtMost(&[(0.0, One)]),
        AtMost(&[(0.0, One)]),
    ),
    goal(
        Row::W1b,
        Cpu,
        AtMost(&[(1.15, Own(Row::W1bFresh))]),
        AtMost(&[(1.05, Own(Row::W1bFresh))]),
    ),
    goal(
        Row::Metered,
        Cpu,
        AtMost(&[(1.6, Own(Row::Free))]),
        AtMost(&[(1.25, Own(Row::Free))]),
    ),
    goal(
        Row::MeteredStream,
        Cpu,
        AtMost(&[(1.05, Own(Row::FreeStream))]),
        AtMost(&[(1.02, Own(Row::FreeStream))]),
    ),
    goal(
        Row::Rate,
        Errors,
        AtMost(&[(0.0, One)]),
        AtMost(&[(0.0, One)]),
    ),
    goal(
        Row::Rate,
        P99,
        AtMost(&[(2.0, Bp), (2.0, DiskP99)]),
        AtMost(&[(2.0, Bp), (2.0, DiskP99)]),
    ),
    Goal {
        must: None,
        ..goal(
            Row::RateHigh,
            Errors,
            AtMost(&[(0.0, One)]),
            AtMost(&[(0.0, One)]),
        )
    },
    Goal {
        must: None,
        ..goal(
            Row::RateHigh,
            P99,
            AtMost(&[(2.0, Bp), (2.0, DiskP99)]),
            AtMost(&[(2.0, Bp), (2.0, DiskP99)]),
        )
    },
    Goal {
        subject: Subject::DaemonSize,
        must: Some(AtMost(&[(14.0, One)])),
        reach: Some(AtMost(&[(10.0, One)])),
        floor: None,
    },
    Goal {
        subject: Subject::DaemonReady,
        must: Some(AtMost(&[(50.0, One)])),
        reach: Some(AtMost(&[(50.0, One)])),
        floor: None,
    },
];

const fn expected(row: Row, nginx_us: f64, least: f64, most: f64) -> Expected {
    Expected {
        row,
        nginx_us,
        pass_through_us: (least, most),
    }
}

pub const EXPECTED: [Expected; 9] = [
    expected(Row::W1a, 10.0, 27.0, 27.0),
    expected(Row::W1b, 11.0, 35.0, 35.0),
    expected(Row::W1o, 58.0, 148.0, 148.0),
    expected(Row::W2a, 87.0, 231.0, 231.0),
    expected(Row::W2b, 180.0, 400.0, 600.0),
    expected(Row::W3, 236.0, 380.0, 380.0),
    expected(Row::W3r, 656.0, 863.0, 863.0),
    expected(Row::W4a, 425.0, 660.0, 660.0),
    expected(Row::W4b, 9231.0, 11_632.0, 11_632.0),
];

// === impl Figure ===

impl Figure {
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "CPU, us",
            Self::P50 => "p50, us",
            Self::P99 => "p99, us",
            Self::ChunkP50 => "chunk delay p50, us",
            Self::ChunkP99 => "chunk delay p99, us",
            Self::PerSecond => "a second",
            Self::Errors => "errors",
            Self::PeakMib => "peak memory, MiB",
            Self::KibEach => "memory each, KiB",
        }
    }

    /// Of a load that failed only how often it did is a figure.
    pub fn of(self, measured: &Measured) -> Option<f64> {
        if self == Self::Errors {
            return Some(measured.errors as f64);
        }
        if measured.errors > 0 || measured.answers == 0 {
            return None;
        }
        // Nothing was measured of a way without a proxy.
        let of_proxy = |value: f64| (value > 0.0).then_some(value);
        Some(match self {
            Self::Cpu => of_proxy(measured.proxy_us)?,
            Self::P50 => measured.latency.p50,
            Self::P99 => measured.latency.p99,
            Self::ChunkP50 => measured.chunk.p50,
            Self::ChunkP99 => measured.chunk.p99,
            Self::PerSecond => measured.per_second,
            Self::Errors => measured.errors as f64,
            Self::PeakMib => of_proxy(measured.peak_kib as f64 / 1024.0)?,
            Self::KibEach => measured.kib_each,
        })
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Of(row, figure) => write!(f, "{}: {}", row.name(), figure.name()),
            Self::DaemonSize => f.write_str("daemon without sandbox, stripped: MiB"),
            Self::DaemonReady => f.write_str("its start on an empty ledger, ms"),
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, terms) = match self {
            Self::AtMost(terms) => ("≤", terms),
            Self::AtLeast(terms) => ("≥", terms),
        };
        f.write_str(sign)?;
        for (index, (factor, term)) in terms.iter().enumerate() {
            let plus = if index > 0 { " +" } else { "" };
            let rounded = (factor * 100.0).round() / 100.0;
            let unit = match term {
                Bp => " BP",
                Nginx => " nginx",
                Direct => " direct",
                Own(row) => &format!(" {}", row.name()),
                CommitCpu => " CPU of a commit",
                Commit => " commit",
                DiskP99 => " disk p99",
                One => "",
            };
            write!(f, "{plus} {rounded}{unit}")?;
        }
        Ok(())
    }
}
