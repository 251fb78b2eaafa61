//! The fleet: many bursars on one organization's key, whose ledgers are added up in one PostgreSQL.
//!
//! Why: the account is one, and the machines that spend on it are many. Each bursar stays whole by itself; the
//! database has a copy of each journal, and no request waits for it, but one whose part of a shared cap is used up.
//!
//! Promise: a line counts once, whatever is sent again, restored or copied: the database takes lines that follow
//! what it has of a ledger, and a running hash over all of them shows that both speak of the same ledger. No prompt,
//! no answer, and no name of a person leaves the machine ([`shipped`] lists what does). Without `[fleet]` nothing
//! here runs.
//!
//! Lowest first: `address` `chain` `identity` `lease_file` `orders` `schema` `shipped` < `answer` `marks` < `leases`
//! `shared` < `database` `listen` < `operator` `pace` `ship` < `carry` < `worker`.

mod address;
mod answer;
mod carry;
mod chain;
mod database;
mod identity;
mod lease_file;
mod leases;
mod listen;
mod marks;
mod operator;
mod orders;
mod pace;
pub mod schema;
mod shared;
mod ship;
mod shipped;
mod worker;

pub use address::{Address, AddressError, UrlFile};
pub use answer::FleetError;
pub use carry::last_visit;
pub use database::{Fleet, Greeting, Standing};
pub use identity::{FleetIdentity, IdentityError};
pub use operator::{FleetBy, FleetLedger, FleetSpend, Operator};
pub use orders::{FleetOrders, HeardOrders};
pub use shared::{CapNow, CapOrdered, LeaseNow, LedgerShare, Pause, ShareOrdered};
pub use ship::{Shipped, Shipping, Trouble};
pub use worker::Worker;
