//! A run set against the goals: what each figure is, its ratio inside every repetition, and whether the median
//! is within the bound.

use std::fmt;

use crate::goals::{
    Bound, EXPECTED, EXPECTED_WITHIN, Expected, Figure, GOALS, Goal, Subject, Term,
};
use crate::load::Measured;
use crate::numbers::{Quartiles, median, show};
use crate::rows::Row;
use crate::run::{Repetition, Run};
use crate::target::Kind;

/// One goal and one bursar.
pub struct Judged {
    pub subject: Subject,
    /// As measured.
    pub value: Option<Quartiles>,
    /// To the first term of the bound, where that is a figure; else as measured.
    pub ratio: Option<Quartiles>,
    pub must: Option<Bound>,
    pub reach: Option<Bound>,
    pub verdict: Verdict,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Reached,
    Met,
    Floor,
    NotMet,
    NotMeasured,
}

/// Ratios of so many repetitions are a verdict.
pub const PAIRS_LEAST: usize = 9;

/// All goals, for the bursar of this name.
pub fn judge(run: &Run, target: &str) -> Vec<Judged> {
    GOALS.iter().map(|goal| goal.judge(run, target)).collect()
}

/// Why the run does not count: the pass-through is not what it was when the goals were set.
pub fn unfit(run: &Run) -> Vec<String> {
    EXPECTED.iter().filter_map(|row| row.unfit(run)).collect()
}

/// Loads that had errors, and ledgers that differ.
pub fn failures(run: &Run) -> Vec<String> {
    let mut failures = Vec::new();
    for (number, repetition) in (1..).zip(&run.repetitions) {
        for found in &repetition.found {
            let measured = &found.measured;
            let failed = [
                (measured.errors, "failed requests"),
                (measured.bare, "answers without a receipt"),
                (u64::from(measured.answers == 0), "row without answers"),
            ];
            let failed = failed.iter().filter(|(count, _)| *count > 0);
            failures.extend(failed.map(|(count, what)| {
                format!(
                    "repetition {number}, {} through {}: {count} {what}",
                    found.row.name(),
                    found.target
                )
            }));
        }
        let differences = repetition.differences.iter();
        failures.extend(differences.map(|how| format!("repetition {number}, {how}")));
    }
    failures
}

// === impl Repetition ===

impl Repetition {
    pub fn measured(&self, row: Row, target: &str) -> Option<&Measured> {
        let found = self
            .found
            .iter()
            .find(|found| found.row == row && found.target == target);
        found.map(|found| &found.measured)
    }

    pub fn figure(&self, row: Row, figure: Figure, target: &str) -> Option<f64> {
        figure.of(self.measured(row, target)?)
    }

    fn term(&self, term: Term, row: Row, figure: Figure, target: &str) -> Option<f64> {
        let of = |kind: Kind| self.figure(row, figure, kind.name());
        match term {
            Term::Bp => of(Kind::PassThrough),
            Term::Nginx => of(Kind::Nginx),
            Term::Direct => of(Kind::Direct),
            Term::Own(other) => self.figure(other, figure, target),
            Term::CommitCpu => Some(self.disk_alone.cpu_us),
            Term::Commit => Some(self.disk_alone.wall.p50),
            Term::DiskP99 => Some(self.disk_beside.get(row.name())?.wall.p99),
            Term::One => Some(1.0),
        }
    }
}

// === impl Run ===

impl Run {
    /// A figure of every repetition.
    pub fn figures(&self, row: Row, figure: Figure, target: &str) -> Option<Quartiles> {
        let all = self.repetitions.iter();
        Quartiles::of(all.filter_map(|of| of.figure(row, figure, target)))
    }
}

// === impl Goal ===

impl Goal {
    fn judge(&self, run: &Run, target: &str) -> Judged {
        let (value, ratio) = match self.subject {
            Subject::Of(row, figure) => {
                let value = run.figures(row, figure, target);
                let ratio = self.relative_to().map_or(value, |term| {
                    let all = run.repetitions.iter();
                    Quartiles::of(all.filter_map(|of| {
                        let value = of.figure(row, figure, target)?;
                        Some(value / of.term(term, row, figure, target)?)
                    }))
                });
                (value, ratio)
            }
            Subject::DaemonSize => {
                let mib = run
                    .setting
                    .daemon
                    .iter()
                    .map(|daemon| daemon.bytes as f64 / 1_048_576.0);
                let value = Quartiles::of(mib);
                (value, value)
            }
            Subject::DaemonReady => {
                let daemon = run.setting.daemon.iter();
                let value = Quartiles::of(daemon.flat_map(|daemon| daemon.ready_ms.clone()));
                (value, value)
            }
        };
        let within = |bound: Option<Bound>| self.is_within(bound?, run, target);
        let is_floor = || Some(ratio?.middle <= self.floor?);
        let verdict = match (within(self.reach), within(self.must)) {
            (Some(true), _) => Verdict::Reached,
            (None, None) => Verdict::NotMeasured,
            (_, Some(true)) => Verdict::Met,
            // What need not be reached is not missed.
            (Some(false), None) if self.must.is_none() => Verdict::Met,
            _ if is_floor() == Some(true) => Verdict::Floor,
            _ => Verdict::NotMet,
        };
        Judged {
            subject: self.subject,
            value,
            ratio,
            must: self.must,
            reach: self.reach,
            verdict,
        }
    }

    /// The figure of the same row that a ratio is taken to.
    fn relative_to(&self) -> Option<Term> {
        let bound = self.must.or(self.reach)?;
        let (_, term) = bound.terms().first()?;
        matches!(term, Term::Bp | Term::Nginx | Term::Direct | Term::Own(_)).then_some(*term)
    }

    /// `None` where one side was not measured.
    fn is_within(&self, bound: Bound, run: &Run, target: &str) -> Option<bool> {
        let beyond = match self.subject {
            Subject::Of(row, figure) => {
                let all = run.repetitions.iter();
                median(all.filter_map(|of| {
                    let parts = bound.terms().iter();
                    let parts = parts
                        .map(|(factor, term)| Some(factor * of.term(*term, row, figure, target)?));
                    let limit: f64 = parts.sum::<Option<f64>>()?;
                    Some(of.figure(row, figure, target)? - limit)
                }))?
            }
            Subject::DaemonSize | Subject::DaemonReady => {
                let limit: f64 = bound.terms().iter().map(|(factor, _)| factor).sum();
                self.daemon(run)? - limit
            }
        };
        Some(match bound {
            Bound::AtMost(_) => beyond <= 0.0,
            Bound::AtLeast(_) => beyond >= 0.0,
        })
    }

    fn daemon(&self, run: &Run) -> Option<f64> {
        let daemon = run.setting.daemon.as_ref()?;
        match self.subject {
            Subject::DaemonSize => Some(daemon.bytes as f64 / 1_048_576.0),
            _ => median(daemon.ready_ms.clone()),
        }
    }
}

// === impl Expected ===

impl Expected {
    fn unfit(&self, run: &Run) -> Option<String> {
        let all = run.repetitions.iter();
        let ratio = median(all.filter_map(|of| {
            let cpu = |kind: Kind| of.figure(self.row, Figure::Cpu, kind.name());
            Some(cpu(Kind::PassThrough)? / cpu(Kind::Nginx)?)
        }))?;
        let (least, most) = self.pass_through_us;
        let least = least / self.nginx_us * (1.0 - EXPECTED_WITHIN);
        let most = most / self.nginx_us * (1.0 + EXPECTED_WITHIN);
        (!(least..=most).contains(&ratio)).then(|| {
            format!(
                "{}: BP's CPU is {} times nginx's, expected {} to {}",
                self.row.name(),
                show(Some(ratio)),
                show(Some(least)),
                show(Some(most))
            )
        })
    }
}

// === impl Bound ===

impl Bound {
    fn terms(&self) -> &'static [(f64, Term)] {
        match self {
            Self::AtMost(terms) | Self::AtLeast(terms) => terms,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reached => "met, and reached for",
            Self::Met => "met",
            Self::Floor => "floor",
            Self::NotMet => "**not met**",
            Self::NotMeasured => "not measured",
        })
    }
}
