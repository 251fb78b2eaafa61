//! What the running service writes to the state directory: debits, balances, keys, pins, the clock.
//!
//! | what | file |
//! |---|---|
//! | a debit, and the sums of all | `debit` |
//! | the position of the clock | `clock` |
//! | what is not on disk yet, and the transaction that writes it | `queue` |

mod clock;
mod debit;
mod queue;

pub use clock::KeptClock;
pub use debit::{Debit, Totals};
pub use queue::{
    CLOCK, COUNTERS, DEBITS, ENDPOINT_HOURS, KEYS, Keep, LIMITS, Mutation, ORGANIZATIONS, PINS,
    ROLLUP_HOURS, SETTINGS, SINGLES, STEPS, TOTALS,
};
