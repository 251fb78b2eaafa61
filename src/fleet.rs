//! The fleet: many bursars on one organization's key, whose ledgers are added up in one PostgreSQL.
//!
//! Why: the account is one, and the machines that spend on it are many. Each bursar stays whole by itself; the
//! database has a copy of each journal, and no request waits for it.
//!
//! Promise: a line counts once, whatever is sent again, restored or copied: the database takes lines that follow
//! what it has of a ledger, and a running hash over all of them shows that both speak of the same ledger. No prompt,
//! no answer, and no name of a person leaves the machine ([`shipped`] lists what does). Without `[fleet]` nothing
//! here runs.
//!
//! Lowest first: `address` `chain` `identity` `orders` `schema` `shipped` < `database` `marks` < `operator` `ship` <
//! `worker`.

mod address;
mod chain;
mod database;
mod identity;
mod marks;
mod operator;
mod orders;
pub mod schema;
mod ship;
mod shipped;
mod worker;

pub use address::{Address, AddressError, UrlFile};
pub use database::{Fleet, FleetError, Greeting, Standing};
pub use identity::{FleetIdentity, IdentityError};
pub use operator::{FleetBy, FleetLedger, FleetSpend, Operator};
pub use orders::FleetOrders;
pub use ship::{Shipped, Shipping, Trouble};
pub use worker::Worker;
