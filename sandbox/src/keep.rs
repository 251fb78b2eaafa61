//! What the running service writes to the state directory: debits, balances, keys, pins, the clock.
//!
//! | what | file |
//! |---|---|
//! | a debit, and the sums of all | `debit` |
//! | the position of the clock | `clock` |
//! | one change to write | `change` |
//! | the queue, and the transaction that empties it | `queue` |

mod change;
mod clock;
mod debit;
mod queue;

pub use change::{
    CLOCK, COUNTERS, DEBITS, KEYS, LIMITS, Mutation, ORGANIZATIONS, PINS, SETTINGS, SINGLES, STEPS,
    TOTALS,
};
pub use clock::KeptClock;
pub use debit::{Debit, Totals};
pub use queue::Keep;
