//! What is lost, in sequence numbers and in places: the list that `ledger verify` prints.
//!
//! Promise: every record without a sound line lies in one of the ranges, and a range that names no
//! record lost none.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use crate::ledger::journal::quarantine::LOST;
use crate::ledger::journal::report::{BadRange, Missing, ScanReport};
use crate::protocol::closed_set;

closed_set! {
    /// What happened to a range.
    DamageKind {
        // Bytes that are no records lie there.
        Damaged => "damaged",
        // Lines are gone, and what is around them is sound.
        Missing => "missing",
        // The journal reached further, as its mark or the index says.
        CutOff => "cut_off",
        // Sound lines in another order, or twice. Nothing is lost.
        Misplaced => "misplaced",
        // Nothing records how far the journal reached.
        UnknownEnd => "unknown_end",
    }
}

/// A damaged range.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Damage {
    pub kind: DamageKind,
    /// The first and the last record that is lost. No first: none is. A first and no last: all from
    /// there on may be.
    pub first_seq: Option<u64>,
    pub last_seq: Option<u64>,
    /// Where it lies, when it is anywhere.
    pub segment: Option<u32>,
    pub offset: Option<u64>,
    pub bytes: Option<u64>,
}

/// All damage in a report, by sequence number, and then what lost no record.
pub fn list(report: &ScanReport, is_end_known: bool, notes: &[String]) -> Vec<Damage> {
    let after: HashMap<u64, &BadRange> = report
        .bad
        .iter()
        .map(|bad| (bad.after_seq.unwrap_or(0), bad))
        .collect();
    let before: HashMap<u64, &BadRange> = report
        .bad
        .iter()
        .filter_map(|bad| Some((bad.before_seq?, bad)))
        .collect();
    let mut listed = HashSet::new();
    let mut list = Vec::new();
    for missing in &report.missing {
        let bad = after.get(&missing.first.saturating_sub(1));
        let bad = bad.or_else(|| before.get(&missing.last.saturating_add(1)));
        if let Some(bad) = bad {
            listed.insert((bad.segment, bad.offset));
        }
        let kind = match bad {
            Some(_) => DamageKind::Damaged,
            None if missing.last.saturating_add(1) == report.next_seq => DamageKind::CutOff,
            None => DamageKind::Missing,
        };
        list.push(Damage::lost(kind, *missing, bad.copied()));
    }
    if !is_end_known {
        list.push(Damage::from_on(report.next_seq));
    }
    let noted = notes.iter().filter_map(|note| note.strip_prefix(LOST));
    list.extend(noted.filter_map(|first| first.parse().ok().map(Damage::from_on)));
    let rest = report.bad.iter();
    let rest = rest.filter(|bad| !listed.contains(&(bad.segment, bad.offset)));
    list.extend(rest.map(|bad| Damage {
        kind: DamageKind::Damaged,
        first_seq: None,
        last_seq: None,
        segment: Some(bad.segment),
        offset: Some(bad.offset),
        bytes: Some(bad.bytes),
    }));
    list.extend(report.misplaced.iter().map(|misplaced| Damage {
        kind: DamageKind::Misplaced,
        first_seq: None,
        last_seq: None,
        segment: Some(misplaced.segment),
        offset: Some(misplaced.offset),
        bytes: None,
    }));
    list
}

// === impl Damage ===

impl Damage {
    fn lost(kind: DamageKind, missing: Missing, bad: Option<&BadRange>) -> Self {
        Self {
            kind,
            first_seq: Some(missing.first),
            last_seq: Some(missing.last),
            segment: bad.map(|bad| bad.segment),
            offset: bad.map(|bad| bad.offset),
            bytes: bad.map(|bad| bad.bytes),
        }
    }

    fn from_on(first: u64) -> Self {
        Self {
            kind: DamageKind::UnknownEnd,
            first_seq: Some(first),
            last_seq: None,
            segment: None,
            offset: None,
            bytes: None,
        }
    }
}
