//! Rows by key, in the order in which they began.
//!
//! A row of an ordinary key (one entry, and its price) takes 80 bytes in a ring, and its place there 5 in
//! a hash table of numbers; both have room to spare that grows by doubling. Promise: less than 100 bytes
//! for each key at [`super::KEYS_MAX`]; what else is known of a key is in a box of its own.

use std::collections::VecDeque;

use hashbrown::HashTable;

use super::row::Row;
use crate::ledger::kept_key::ShortHash;

/// The place of a row: a number that counts up, and around.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(u32);

/// Room that is never given back, in rows.
const ROWS_MIN: usize = 1 << 16;

#[derive(Debug, Default)]
pub struct Table {
    rows: VecDeque<Row>,
    /// Of the first row.
    first: u32,
    places: HashTable<Place>,
}

// === impl Table ===

impl Table {
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter()
    }

    pub fn rows_mut(&mut self) -> impl Iterator<Item = &mut Row> {
        self.rows.iter_mut()
    }

    /// The rows of a key, of whatever organization.
    pub fn of(&self, key: ShortHash) -> impl Iterator<Item = (Place, &Row)> {
        self.places
            .iter_hash(hash(key))
            .filter_map(|place| Some((*place, self.get(*place)?)))
            .filter(move |(_, row)| row.key == key)
    }

    pub fn get(&self, place: Place) -> Option<&Row> {
        self.rows.get(offset(self.first, place))
    }

    pub fn get_mut(&mut self, place: Place) -> Option<&mut Row> {
        self.rows.get_mut(offset(self.first, place))
    }

    pub fn push_back(&mut self, row: Row) -> Place {
        let count = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
        let place = Place(self.first.wrapping_add(count));
        let key = row.key;
        self.rows.push_back(row);
        self.note(key, place);
        place
    }

    /// The row is found no more. It keeps its place in the order until its turn comes.
    pub fn forget(&mut self, place: Place) {
        let Some(key) = self.get(place).map(|row| row.key) else {
            return;
        };
        if let Ok(found) = self.places.find_entry(hash(key), |other| *other == place) {
            found.remove();
        }
    }

    /// Back to the front, where it came from.
    pub fn push_front(&mut self, row: Row) {
        self.first = self.first.wrapping_sub(1);
        let key = row.key;
        self.rows.push_front(row);
        self.note(key, Place(self.first));
    }

    pub fn front(&self) -> Option<&Row> {
        self.rows.front()
    }

    pub fn pop_front(&mut self) -> Option<Row> {
        self.forget(Place(self.first));
        let row = self.rows.pop_front()?;
        self.first = self.first.wrapping_add(1);
        Some(row)
    }

    /// What is allocated for all of it, boxes left out.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.rows.capacity() * size_of::<Row>() + self.places.allocation_size()
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

    fn note(&mut self, key: ShortHash, place: Place) {
        let (rows, first) = (&self.rows, self.first);
        let rehash = |place: &Place| hash_at(rows, first, *place);
        self.places.insert_unique(hash(key), place, rehash);
    }
}

fn hash_at(rows: &VecDeque<Row>, first: u32, place: Place) -> u64 {
    let row = rows.get(offset(first, place));
    row.map_or(0, |row| hash(row.key))
}

fn offset(first: u32, place: Place) -> usize {
    usize::try_from(place.0.wrapping_sub(first)).unwrap_or(usize::MAX)
}

/// It is one already.
fn hash(key: ShortHash) -> u64 {
    u64::from_be_bytes(key.0.first_chunk().copied().unwrap_or_default())
}
