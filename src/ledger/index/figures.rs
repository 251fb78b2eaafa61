//! The figures of a row of sums, numbered, and how they are spelled in the index: a bit for each one that is
//! not 0, then those, in as few bytes as each takes.
//!
//! Promise: every figure of a [`LineSums`] has its place, or this does not compile. What decodes was encoded by
//! this format.

use crate::ledger::entry::InDoubt;
use crate::ledger::sums::{Compared, HeldSums, LineSums, MicroUsdSum, Standing};
use crate::protocol::Escalated;

/// Figures that are no list.
const SINGLE: usize = 23;
const IN_DOUBT: usize = SINGLE;
const ANSWERS: usize = IN_DOUBT + 2 * InDoubt::ALL.len();
const COUNT: usize = ANSWERS + Escalated::ALL.len();

// A bit for each.
const _: () = assert!(COUNT <= 64);

/// The place of the count of entries that evidence came for.
const RECONCILED: usize = 4;

/// All figures of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figures([u128; COUNT]);

// === impl Figures ===

impl Default for Figures {
    fn default() -> Self {
        Self([0; COUNT])
    }
}

impl Figures {
    pub fn of(row: &LineSums) -> Self {
        let LineSums {
            requests,
            settled,
            failed,
            replayed,
            reconciled,
            unreported,
            in_doubt,
            billed,
            would_have_cost,
            compared,
            drained,
            prompt_tokens,
            completion_tokens,
            total_tokens,
            audio_ms,
            audio_untold,
            answers,
            clarifications,
            replays,
            adopted,
            held,
        } = row;
        let single: [u128; SINGLE] = [
            u128::from(*requests),
            u128::from(*settled),
            u128::from(*failed),
            u128::from(*replayed),
            u128::from(*reconciled),
            u128::from(unreported.came),
            u128::from(unreported.left),
            billed.get(),
            would_have_cost.get(),
            u128::from(compared.answers),
            compared.billed.get(),
            compared.frontier.get(),
            drained.get(),
            u128::from(*prompt_tokens),
            u128::from(*completion_tokens),
            u128::from(*total_tokens),
            u128::from(*audio_ms),
            u128::from(*audio_untold),
            u128::from(*clarifications),
            u128::from(*replays),
            u128::from(*adopted),
            held.came.get(),
            held.left.get(),
        ];
        let reasons = InDoubt::ALL.iter().flat_map(|reason| {
            let standing = in_doubt.get(reason).copied().unwrap_or_default();
            [standing.came, standing.left]
        });
        let escalated = Escalated::ALL
            .iter()
            .map(|word| answers.get(word).copied().unwrap_or(0));
        let listed = reasons.chain(escalated).map(u128::from);
        let mut figures = Self::default();
        for (place, figure) in figures.0.iter_mut().zip(single.into_iter().chain(listed)) {
            *place = figure;
        }
        figures
    }

    pub fn row(&self) -> LineSums {
        let sum = |place: usize| self.0.get(place).copied().unwrap_or(0);
        let count = |place: usize| u64::try_from(sum(place)).unwrap_or(u64::MAX);
        let money = |place: usize| MicroUsdSum::from_micro_usd(sum(place));
        let standing = |place: usize| Standing {
            came: count(place),
            left: count(place + 1),
        };
        let mut row = LineSums {
            requests: count(0),
            settled: count(1),
            failed: count(2),
            replayed: count(3),
            reconciled: count(RECONCILED),
            unreported: standing(5),
            billed: money(7),
            would_have_cost: money(8),
            compared: Compared {
                answers: count(9),
                billed: money(10),
                frontier: money(11),
            },
            drained: money(12),
            prompt_tokens: count(13),
            completion_tokens: count(14),
            total_tokens: count(15),
            audio_ms: count(16),
            audio_untold: count(17),
            clarifications: count(18),
            replays: count(19),
            adopted: count(20),
            held: HeldSums {
                came: money(21),
                left: money(22),
            },
            ..LineSums::default()
        };
        for (at, reason) in InDoubt::ALL.iter().enumerate() {
            let standing = standing(IN_DOUBT + 2 * at);
            if standing != Standing::default() {
                row.in_doubt.insert(*reason, standing);
            }
        }
        for (at, word) in Escalated::ALL.iter().enumerate() {
            let answers = count(ANSWERS + at);
            if answers > 0 {
                row.answers.insert(*word, answers);
            }
        }
        row
    }

    /// Entries that ended.
    pub fn requests(&self) -> u128 {
        self.0.first().copied().unwrap_or(0)
    }

    /// Entries that evidence came for.
    pub fn reconciled(&self) -> u128 {
        self.0.get(RECONCILED).copied().unwrap_or(0)
    }

    pub fn is_nothing(&self) -> bool {
        self.0.iter().all(|figure| *figure == 0)
    }

    pub fn add(&mut self, other: &Self) {
        for (sum, more) in self.0.iter_mut().zip(other.0) {
            *sum = sum.saturating_add(more);
        }
    }

    /// `None`: there is less than is to be taken away.
    pub fn take_away(&mut self, other: &Self) -> Option<()> {
        for (sum, less) in self.0.iter_mut().zip(other.0) {
            *sum = sum.checked_sub(less)?;
        }
        Some(())
    }

    pub fn encode(&self, to: &mut Vec<u8>) {
        let present = (0u32..).zip(self.0).filter(|(_, figure)| *figure > 0);
        let bits = present.clone().fold(0u64, |bits, (at, _)| bits | 1 << at);
        write_number(u128::from(bits), to);
        present.for_each(|(_, figure)| write_number(figure, to));
    }

    /// Adds what [`Self::encode`] wrote, and leaves the bytes behind it. `None`: it is damaged.
    pub fn add_encoded(&mut self, from: &mut &[u8]) -> Option<()> {
        let mut bits = u64::try_from(read_number(from)?).ok()?;
        while bits != 0 {
            let at = usize::try_from(bits.trailing_zeros()).ok()?;
            let figure = read_number(from)?;
            let sum = self.0.get_mut(at)?;
            *sum = sum.saturating_add(figure);
            bits &= bits - 1;
        }
        Some(())
    }
}

/// Seven bits a byte, the lowest first; the last byte lacks the eighth.
pub fn write_number(mut number: u128, to: &mut Vec<u8>) {
    loop {
        let low = u8::try_from(number & 0x7f).unwrap_or(0);
        number >>= 7;
        if number == 0 {
            to.push(low);
            return;
        }
        to.push(low | 0x80);
    }
}

/// The reverse of [`write_number`], which leaves the bytes behind it. `None`: it is damaged.
pub fn read_number(from: &mut &[u8]) -> Option<u128> {
    // Nearly all are short, and a block has thousands: these are read in 64 bits.
    let mut short = 0u64;
    for shift in (0..63).step_by(7) {
        let (byte, rest) = from.split_first()?;
        *from = rest;
        short |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(u128::from(short));
        }
    }
    let mut number = u128::from(short);
    for shift in (63..128).step_by(7) {
        let (byte, rest) = from.split_first()?;
        *from = rest;
        let low = u128::from(byte & 0x7f);
        let shifted = low << shift;
        if shifted >> shift != low {
            return None;
        }
        number |= shifted;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests;
