//! A run set against the goals: what each figure is, its ratio inside every repetition, and whether the median
//! is within the bound.

use std::fmt;

use crate::goals::{
    Bound, EXPECTED, EXPECTED_WITHIN, Expected, Figure, GOALS, Goal, Subject, Term,
};
use crate::load::Measured;
use crate::numbers::{Quartiles, median, show, show_spread};
use crate::rows::Row;
use crate::run::{Repetition, Run};
use crate::setting::Daemon;
use crate::target::Kind;

/// One goal and one bursar.
pub struct Judged {
    pub subject: Subject,
    /// As measured.
    pub value: Option<Quartiles>,
    /// In relation to the same repetition.
    pub relative: Relative,
    pub must: Option<Bound>,
    pub reach: Option<Bound>,
    pub verdict: Verdict,
    pub standing: Standing,
}

/// A figure set against the first term of its bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Relative {
    Ratio(Quartiles),
    /// More than the term, where the bound is the term and something.
    Added(Quartiles),
    /// As measured, for a bound that is a number.
    Itself(Quartiles),
    NotMeasured,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Reached,
    Met,
    Floor,
    NotMet,
    /// What need not be reached was not.
    NotReached,
    NotMeasured,
}

/// Whether a verdict counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Counts,
    FewPairs,
    /// In this row the pass-through is not what it was when the goals were set.
    YardstickOff,
    /// Without nginx nobody knows.
    YardstickUnknown,
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

/// Loads of these targets that had errors, and ledgers that differ.
pub fn failures(run: &Run, targets: &[&str]) -> Vec<String> {
    let mut failures = Vec::new();
    for (number, repetition) in (1..).zip(&run.repetitions) {
        let found = repetition.found.iter();
        for found in found.filter(|found| targets.contains(&found.target.as_str())) {
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
        let value = match self.subject {
            Subject::Of(row, figure) => run.figures(row, figure, target),
            Subject::DaemonSize => Quartiles::of(run.setting.daemon.iter().map(Daemon::mib)),
            Subject::DaemonReady => {
                let daemon = run.setting.daemon.iter();
                Quartiles::of(daemon.flat_map(|daemon| daemon.ready_ms.clone()))
            }
        };
        let relative = self.relative(run, target, value);
        let within = |bound: Option<Bound>| self.is_within(bound?, run, target);
        let is_floor = || Some(relative.spread()?.middle <= self.floor?);
        let verdict = match (within(self.reach), within(self.must)) {
            (Some(true), _) => Verdict::Reached,
            (None, None) => Verdict::NotMeasured,
            (_, Some(true)) => Verdict::Met,
            (Some(false), None) if self.must.is_none() => Verdict::NotReached,
            _ if is_floor() == Some(true) => Verdict::Floor,
            _ => Verdict::NotMet,
        };
        Judged {
            subject: self.subject,
            value,
            relative,
            must: self.must,
            reach: self.reach,
            verdict,
            standing: self.standing(run),
        }
    }

    fn standing(&self, run: &Run) -> Standing {
        let bounds = [self.must, self.reach].into_iter().flatten();
        let mut terms = bounds.flat_map(|bound| bound.terms());
        let is_relative = terms.any(|(factor, term)| *factor > 0.0 && *term != Term::One);
        let Subject::Of(row, _) = self.subject else {
            return Standing::Counts;
        };
        if is_relative && run.repetitions.len() < PAIRS_LEAST {
            return Standing::FewPairs;
        }
        let expected = EXPECTED.iter().find(|expected| expected.row == row);
        match expected.filter(|_| is_relative) {
            None => Standing::Counts,
            Some(expected) => match expected.ratio(run) {
                None => Standing::YardstickUnknown,
                Some(ratio) if expected.is_fit(ratio) => Standing::Counts,
                Some(_) => Standing::YardstickOff,
            },
        }
    }

    fn relative(&self, run: &Run, target: &str, value: Option<Quartiles>) -> Relative {
        let Some(value) = value else {
            return Relative::NotMeasured;
        };
        let bound = self.must.or(self.reach);
        let terms = bound.map_or(&[][..], |bound| bound.terms());
        let (Subject::Of(row, figure), Some((factor, term))) = (self.subject, terms.first()) else {
            return Relative::Itself(value);
        };
        if *term == Term::One {
            return Relative::Itself(value);
        }
        let spread = |with: fn(f64, f64) -> f64| {
            let all = run.repetitions.iter();
            Quartiles::of(all.filter_map(|of| {
                let value = of.figure(row, figure, target)?;
                Some(with(value, of.term(*term, row, figure, target)?))
            }))
        };
        let found = if terms.len() > 1 && *factor == 1.0 {
            spread(|value, of| value - of).map(Relative::Added)
        } else {
            spread(|value, of| value / of).map(Relative::Ratio)
        };
        found.unwrap_or(Relative::NotMeasured)
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
            Subject::DaemonSize => Some(daemon.mib()),
            _ => median(daemon.ready_ms.clone()),
        }
    }
}

// === impl Expected ===

impl Expected {
    /// CPU of the pass-through in relation to nginx's.
    fn ratio(&self, run: &Run) -> Option<f64> {
        let all = run.repetitions.iter();
        median(all.filter_map(|of| {
            let cpu = |kind: Kind| of.figure(self.row, Figure::Cpu, kind.name());
            Some(cpu(Kind::PassThrough)? / cpu(Kind::Nginx)?)
        }))
    }

    /// What it may be.
    fn bounds(&self) -> (f64, f64) {
        let (least, most) = self.pass_through_us;
        (
            least / self.nginx_us * (1.0 - EXPECTED_WITHIN),
            most / self.nginx_us * (1.0 + EXPECTED_WITHIN),
        )
    }

    fn is_fit(&self, ratio: f64) -> bool {
        let (least, most) = self.bounds();
        (least..=most).contains(&ratio)
    }

    fn unfit(&self, run: &Run) -> Option<String> {
        let ratio = self.ratio(run)?;
        let (least, most) = self.bounds();
        (!self.is_fit(ratio)).then(|| {
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
            Self::NotReached => "not reached",
            Self::NotMeasured => "not measured",
        })
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Counts => "",
            Self::FewPairs => " (no verdict: few pairs)",
            Self::YardstickOff => " (does not count: BP is off)",
            Self::YardstickUnknown => " (does not count: no nginx)",
        })
    }
}

// === impl Relative ===

impl Relative {
    pub fn spread(self) -> Option<Quartiles> {
        match self {
            Self::Ratio(of) | Self::Added(of) | Self::Itself(of) => Some(of),
            Self::NotMeasured => None,
        }
    }
}

impl fmt::Display for Relative {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self {
            Self::Ratio(_) => "× ",
            Self::Added(_) => "+ ",
            Self::Itself(_) | Self::NotMeasured => "",
        };
        write!(f, "{sign}{}", show_spread(self.spread()))
    }
}
