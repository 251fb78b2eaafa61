//! The journal's lines behind a number, as they stand, for those who keep a copy of them (the fleet).
//!
//! Promise: reads only, so many lines at once; nothing that was not acknowledged, so that a power cut takes no line
//! back that a copy has. Each number is in an answer once, in order: in a line, or in a range that the journal does not have.

use std::path::Path;

use crate::ledger::error::LedgerError;
use crate::ledger::journal::high_water::HighWater;
use crate::ledger::journal::reader::{JournalReader, steadily};
use crate::ledger::record::{Glance, Line};

/// Bytes of lines in an answer, beyond which no further one is begun.
const BYTES_MAX: usize = 4 << 20;

/// One number, or a range of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shelved {
    /// A record's line, without its newline.
    Line { seq: u64, bytes: Vec<u8> },
    /// Numbers without lines.
    Gap {
        first_seq: u64,
        last_seq: u64,
        why: GapWhy,
    },
}

/// Why numbers have no lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapWhy {
    /// Their entries stand in sums, at the beginning of the journal.
    Compacted,
    /// Damaged, or gone.
    Lost,
}

/// How far a reader of the journal is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The last number that it has; 0: none.
    pub seq: u64,
    /// The compacted segment with which its reading began. Another one's lines have other numbers.
    base: Option<Base>,
}

/// A compacted segment, by the numbers of its lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Base {
    first_seq: u64,
    last_seq: u64,
}

/// What the journal has behind a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Since {
    /// In order, without a hole. Empty: nothing behind it was acknowledged.
    These(Vec<Shelved>),
    /// The next line is not one by one any more: it was compacted.
    Compacted,
}

// === impl Place ===

impl Place {
    /// At a line that was not compacted, or before the first one (0).
    pub fn at(seq: u64) -> Self {
        Self { seq, base: None }
    }
}

// === impl Base ===

impl Base {
    fn of(reader: &JournalReader) -> Option<Self> {
        let first = reader.segments.first()?;
        Some(Self {
            last_seq: first.stands_for()?.seq,
            first_seq: first.header.as_ref()?.first_seq,
        })
    }
}

// === impl Shelved ===

impl Shelved {
    pub fn last_seq(&self) -> u64 {
        match self {
            Self::Line { seq, .. } => *seq,
            Self::Gap { last_seq, .. } => *last_seq,
        }
    }
}

/// The last acknowledged number; 0: none.
pub fn last_seq(state_dir: &Path) -> Result<u64, LedgerError> {
    let reader = JournalReader::open(state_dir)?;
    end_of(&reader)
}

/// Up to which number lines were compacted; 0: none was.
pub fn compacted_seq(state_dir: &Path) -> Result<u64, LedgerError> {
    let reader = JournalReader::open(state_dir)?;
    Ok(Base::of(&reader).map_or(0, |base| base.last_seq))
}

/// What follows a place: at most `lines_max` lines and ranges. A reader that goes on from their last one moves the same place there.
pub fn lines_since(
    state_dir: &Path,
    place: &mut Place,
    lines_max: usize,
) -> Result<Since, LedgerError> {
    let after = place.seq;
    steadily(|| {
        let reader = JournalReader::open(state_dir)?;
        let end = end_of(&reader)?;
        let base = Base::of(&reader);
        if after == 0 {
            place.base = base;
        } else if base.is_some_and(|base| after < base.last_seq && place.base != Some(base)) {
            return Ok(Since::Compacted);
        }
        match read_on(&reader, after, end, lines_max, false)? {
            Some(lines) => Ok(Since::These(lines)),
            // What is missing here may lie elsewhere.
            None => {
                let reader = reader.in_order()?;
                let lines = read_on(&reader, after, end, lines_max, true)?;
                Ok(Since::These(lines.unwrap_or_default()))
            }
        }
    })
}

/// `None`: the lines do not follow each other, and that is not taken for a gap.
fn read_on(
    reader: &JournalReader,
    after: u64,
    end: u64,
    lines_max: usize,
    takes_gaps: bool,
) -> Result<Option<Vec<Shelved>>, LedgerError> {
    let before_sums = Base::of(reader).map_or(0, |base| base.first_seq.saturating_sub(1));
    let mut forward = reader.forward(reader.place_after(after)?);
    let (mut found, mut bytes) = (Vec::new(), 0);
    let mut next = after.saturating_add(1);
    while found.len() < lines_max && bytes < BYTES_MAX && next <= end {
        let Some(line) = forward.next_line()? else {
            break;
        };
        let Some(Glance::Record { seq }) = Line::glance(line) else {
            continue;
        };
        if seq < next || seq > end {
            continue;
        }
        // The sums stand for the numbers before their own first one. What is missing behind that is lost.
        let compacted_seq = before_sums.min(seq - 1);
        if next == 1 && compacted_seq > 0 {
            found.push(Shelved::Gap {
                first_seq: next,
                last_seq: compacted_seq,
                why: GapWhy::Compacted,
            });
            next = compacted_seq + 1;
        }
        if seq > next && found.len() < lines_max {
            if !takes_gaps {
                return Ok(None);
            }
            found.push(Shelved::Gap {
                first_seq: next,
                last_seq: seq - 1,
                why: GapWhy::Lost,
            });
        }
        // Behind a range for which there was just room, the line is in the next answer.
        if found.len() == lines_max {
            break;
        }
        bytes += line.len();
        found.push(Shelved::Line {
            seq,
            bytes: line.to_vec(),
        });
        next = seq.saturating_add(1);
    }
    Ok(Some(found))
}

/// Up to which number was acknowledged.
fn end_of(reader: &JournalReader) -> Result<u64, LedgerError> {
    match reader.mark {
        HighWater::At(seq) => Ok(seq),
        // A journal without a mark is one of a bursar that is not running.
        HighWater::Absent | HighWater::Damaged => {
            let last = reader.stretches().saturating_sub(1);
            let mut backward = match reader.stretches() {
                0 => return Ok(0),
                _ => reader.backward(last, 0, None)?,
            };
            let record = backward
                .next_record()
                .map_err(|error| reader.error(last, error))?;
            Ok(record.map_or(0, |(seq, _)| seq))
        }
    }
}

#[cfg(test)]
mod tests;
