//! What is leased to this ledger, over a restart: the file `fleet-leases` in the state directory.
//!
//! Why: a bursar that starts while the database is away goes on spending what it holds, and one whose database was
//! restored from a backup shows it what it had granted.
//!
//! Promise: on the disk before it is spent; written whole or not at all, 0600, with a checksum. What another ledger,
//! another machine or another start of this one wrote is not spent until the database has said that it is this one's.
//! Of a damaged file nothing is spent.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::caps::leases::LeaseTotals;
use crate::caps::{Slice, Window};
use crate::ledger::LedgerError;
use crate::ledger::entry::LeaseId;
use crate::ledger::record::{sealed, unsealed};
use crate::ledger::state_dir::Directory;
use crate::ledger::totals::MicroUsdSum;
use crate::money::MicroUsd;

const FILE: &str = "fleet-leases";
const START: &[u8] = br#"{"kind":"fleet_leases""#;
const FORMAT: u32 = 1;

/// Of the system, and of the machine's start. A container has those of its machine, or none.
const MACHINE_ID: &str = "/etc/machine-id";
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// This machine and this start of it, as the database knows them: a hash, for the machine's own name stays on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine(String);

/// What was held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptLeases {
    pub slices: Vec<Slice>,
    /// By another machine, or before this one started anew: nothing of it is spent before the database was heard.
    pub is_void: bool,
}

#[derive(Serialize, Deserialize)]
struct LeasesLine {
    format: u32,
    ledger: String,
    machine: String,
    leases: Vec<LeaseRow>,
}

/// `up`: milliseconds since the machine's start.
#[derive(Serialize, Deserialize)]
struct LeaseRow {
    lease: LeaseId,
    cap: String,
    since_ms: u64,
    until_ms: u64,
    begins_up_ms: u64,
    ends_up_ms: u64,
    granted_micro_usd: MicroUsd,
    given_back_micro_usd: MicroUsd,
    give_back_number: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    giving_micro_usd: Option<MicroUsd>,
    billed_micro_usd: MicroUsdSum,
}

// === impl Machine ===

impl Machine {
    /// Without the kernel's word for its start this process is a machine of its own.
    pub fn this() -> Self {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let boot = match read(BOOT_ID) {
            none if none.trim().is_empty() => {
                let mut own = [0; 16];
                // Without randomness it is taken for others that have none: what they hold is not theirs by the ledger.
                getrandom::fill(&mut own).ok();
                Uuid::from_bytes(own).to_string()
            }
            boot => boot,
        };
        let mut hash = Sha256::new();
        for part in ["bursar's machine", read(MACHINE_ID).trim(), boot.trim()] {
            hash.update(part.as_bytes());
            hash.update([0]);
        }
        let digits = hash.finalize();
        Self(digits.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

// === impl KeptLeases ===

impl KeptLeases {
    pub fn read(
        state: &Directory,
        ledger: Uuid,
        machine: &Machine,
        up_ms: u64,
    ) -> Result<Self, LedgerError> {
        let Some(text) = state.read(FILE)? else {
            return Ok(Self::default());
        };
        let found: Option<LeasesLine> = unsealed(START, text.as_bytes());
        let Some(found) = found.filter(|found| found.format == FORMAT) else {
            tracing::error!(
                "the file `fleet-leases` in the state directory is damaged: of shared caps nothing is spent until the \
                 fleet's database is heard"
            );
            return Ok(Self::default());
        };
        if found.ledger != ledger.to_string() {
            return Ok(Self::default());
        }
        let is_void = found.machine != machine.0;
        let slices = found.leases.into_iter().map(LeaseRow::read);
        let slices = slices.filter(|slice| is_void || !slice.is_over(up_ms));
        Ok(Self {
            slices: slices.collect(),
            is_void,
        })
    }

    pub fn store(
        state: &Directory,
        ledger: Uuid,
        machine: &Machine,
        slices: &[Slice],
    ) -> Result<(), LedgerError> {
        let body = LeasesLine {
            format: FORMAT,
            ledger: ledger.to_string(),
            machine: machine.0.clone(),
            leases: slices.iter().map(LeaseRow::of).collect(),
        };
        let line = sealed(START, &body).map_err(|error| LedgerError::io(state.path(), error))?;
        state.replace(FILE, &line)
    }

    /// For a ledger that leaves: the fleet then takes back what was leased of windows that have not begun.
    pub fn forget_ahead(
        state: &Directory,
        ledger: Uuid,
        machine: &Machine,
        up_ms: u64,
    ) -> Result<(), LedgerError> {
        let kept = Self::read(state, ledger, machine, up_ms)?;
        let begun = kept.slices.iter();
        let begun = begun.filter(|slice| slice.begins_up_ms <= up_ms);
        let begun: Vec<Slice> = begun.cloned().collect();
        match kept.is_void || begun.len() == kept.slices.len() {
            true => Ok(()),
            false => Self::store(state, ledger, machine, &begun),
        }
    }

    /// Nothing is held by this ledger's name.
    pub fn remove(state: &Directory) -> Result<(), LedgerError> {
        state.remove(FILE)
    }
}

// === impl LeaseRow ===

impl LeaseRow {
    fn of(slice: &Slice) -> Self {
        Self {
            lease: slice.lease,
            cap: slice.cap.clone(),
            since_ms: slice.window.since_ms,
            until_ms: slice.window.until_ms,
            begins_up_ms: slice.begins_up_ms,
            ends_up_ms: slice.ends_up_ms,
            granted_micro_usd: slice.totals.granted,
            given_back_micro_usd: slice.totals.given_back,
            give_back_number: slice.totals.give_back_number,
            giving_micro_usd: slice.giving,
            billed_micro_usd: slice.billed,
        }
    }

    fn read(self) -> Slice {
        Slice {
            lease: self.lease,
            cap: self.cap,
            window: Window {
                since_ms: self.since_ms,
                until_ms: self.until_ms,
            },
            begins_up_ms: self.begins_up_ms,
            ends_up_ms: self.ends_up_ms,
            totals: LeaseTotals {
                granted: self.granted_micro_usd,
                given_back: self.given_back_micro_usd,
                give_back_number: self.give_back_number,
            },
            giving: self.giving_micro_usd,
            billed: self.billed_micro_usd,
        }
    }
}

#[cfg(test)]
mod tests;
