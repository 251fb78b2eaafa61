//! What records come to, decided in one place: an entry's state, its key's amount, sums, charges against
//! caps, undelivered answers.
//!
//! Promise: pure. No file, no clock, no randomness. Lowest first: `state`, `effect`, `charge`, `leases`, `models`, `sessions`, `totals`, `keys`,
//! `quarters`, `undelivered`, `usage`, `books`.

pub mod books;
pub mod charge;
pub mod effect;
pub mod keys;
pub mod leases;
pub mod models;
pub mod quarters;
pub mod sessions;
pub mod state;
pub mod totals;
pub mod undelivered;
pub mod usage;
