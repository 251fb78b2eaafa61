//! Rows by key, in the order in which they began.
//!
//! A row of an ordinary key (one entry, and its price) takes 80 bytes in a ring, and its place there 5 in
//! a hash table of numbers; both have room to spare that grows by doubling. Promise: less than 100 bytes
//! for each key at [`super::KEYS_MAX`]; what else is known of a key is in a box of its own.

use std::collections::VecDeque;

use hashbrown::HashTable;

use super::row::KeyRow;
use crate::ledger::kept_key::ShortHash;

/// The place of a row: a number that counts up, and around.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowNumber(u32);

/// Room that is never given back, in rows.
const ROWS_MIN: usize = 1 << 16;

#[derive(Debug, Default)]
pub struct KeyTable {
    rows: VecDeque<KeyRow>,
    /// Of the first row.
    first: u32,
    places: HashTable<RowNumber>,
}

// === impl KeyTable ===

impl KeyTable {
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn rows(&self) -> impl Iterator<Item = &KeyRow> {
        self.rows.iter()
    }

    pub fn rows_mut(&mut self) -> impl Iterator<Item = &mut KeyRow> {
        self.rows.iter_mut()
    }

    /// The rows of a key, of whatever organization.
    pub fn of(&self, key: ShortHash) -> impl Iterator<Item = (RowNumber, &KeyRow)> {
        self.places
            .iter_hash(hash(key))
            .filter_map(|place| Some((*place, self.get(*place)?)))
            .filter(move |(_, row)| row.key() == key)
    }

    pub fn get(&self, place: RowNumber) -> Option<&KeyRow> {
        self.rows.get(offset(self.first, place))
    }

    pub fn get_mut(&mut self, place: RowNumber) -> Option<&mut KeyRow> {
        self.rows.get_mut(offset(self.first, place))
    }

    pub fn push_back(&mut self, row: KeyRow) -> RowNumber {
        let count = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
        let place = RowNumber(self.first.wrapping_add(count));
        let key = row.key();
        self.rows.push_back(row);
        self.note(key, place);
        place
    }

    /// The row is found no more. It keeps its place in the order until its turn comes.
    pub fn forget(&mut self, place: RowNumber) {
        let Some(key) = self.get(place).map(KeyRow::key) else {
            return;
        };
        if let Ok(found) = self.places.find_entry(hash(key), |other| *other == place) {
            found.remove();
        }
    }

    /// Back to the front, where it came from.
    pub fn push_front(&mut self, row: KeyRow) {
        self.first = self.first.wrapping_sub(1);
        let key = row.key();
        self.rows.push_front(row);
        self.note(key, RowNumber(self.first));
    }

    pub fn front(&self) -> Option<&KeyRow> {
        self.rows.front()
    }

    pub fn pop_front(&mut self) -> Option<KeyRow> {
        self.forget(RowNumber(self.first));
        let row = self.rows.pop_front()?;
        self.first = self.first.wrapping_add(1);
        Some(row)
    }

    /// What is allocated for all of it, boxes left out.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.rows.capacity() * size_of::<KeyRow>() + self.places.allocation_size()
    }

    /// Gives back what a busier time took.
    pub fn give_back(&mut self) {
        // A power of two, as growing makes them: at the bound there is no other.
        let wanted = self.rows.len().saturating_mul(2).max(ROWS_MIN);
        let wanted = wanted.next_power_of_two();
        if self.rows.capacity() <= wanted.saturating_mul(2) {
            return;
        }
        self.rows.shrink_to(wanted);
        let (rows, first) = (&self.rows, self.first);
        self.places
            .shrink_to(wanted, |place| hash_at(rows, first, *place));
    }

    fn note(&mut self, key: ShortHash, place: RowNumber) {
        let (rows, first) = (&self.rows, self.first);
        let rehash = |place: &RowNumber| hash_at(rows, first, *place);
        self.places.insert_unique(hash(key), place, rehash);
    }
}

fn hash_at(rows: &VecDeque<KeyRow>, first: u32, place: RowNumber) -> u64 {
    let row = rows.get(offset(first, place));
    row.map_or(0, |row| hash(row.key()))
}

fn offset(first: u32, place: RowNumber) -> usize {
    usize::try_from(place.0.wrapping_sub(first)).unwrap_or(usize::MAX)
}

/// It is one already.
fn hash(key: ShortHash) -> u64 {
    u64::from_be_bytes(key.0.first_chunk().copied().unwrap_or_default())
}
