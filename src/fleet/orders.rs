//! What the fleet's operators ordered: the apps that may spend nothing on any machine. The file `fleet-orders` in the
//! state directory keeps what was heard last.
//!
//! Why a file: a freeze is a switch that stops the money, so it holds over a restart while the database is away, and
//! where the database was restored from a backup that does not have it.
//!
//! Promise: written whole or not at all. A thaw alone ends a freeze. A damaged file may have held one: all apps are
//! frozen until the database is heard.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::caps::{Frozen, Orders};
use crate::config::FleetTable;
use crate::ledger::LedgerError;
use crate::ledger::record::{sealed, unsealed};
use crate::ledger::state_dir::Directory;

const FILE: &str = "fleet-orders";
const START: &[u8] = br#"{"kind":"fleet_orders""#;
const FORMAT: u32 = 1;

/// What is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FleetOrders {
    Heard(Vec<FleetFreeze>),
    /// What was heard is not known any more. Unix milliseconds.
    Damaged {
        found_ms: u64,
    },
}

/// Of the answer to a hello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeardOrders {
    freezes: Vec<FleetFreeze>,
    /// `None`: of an older schema, which keeps none.
    thaws: Option<Vec<FleetThaw>>,
}

/// As the database has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetFreeze {
    /// Empty: all apps.
    app: String,
    since_ms: u64,
    by: String,
    /// Of a database that keeps thaws: one that does not have it any more is a restored one.
    #[serde(default)]
    ends_by_thaw: bool,
}

/// The last one of an app, by the database's clock as the freezes are.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct FleetThaw {
    app: String,
    at_ms: u64,
}

#[derive(Serialize, Deserialize)]
struct OrdersFile {
    format: u32,
    freezes: Vec<FleetFreeze>,
}

// === impl FleetOrders ===

impl FleetOrders {
    /// What was heard last by the ledger in `state_dir`, for a command beside no daemon: as its next daemon will have it.
    pub fn kept(table: &FleetTable, state_dir: &Path, now_ms: u64) -> Result<Orders, LedgerError> {
        match table.url_file {
            None => Ok(Orders::default()),
            Some(_) => {
                // A person who looks may be another user than the daemon's.
                let state = Directory::open_to_read(state_dir)?;
                Ok(Self::read(&state, now_ms)?.freezes())
            }
        }
    }

    /// What was heard last.
    pub fn read(state: &Directory, now_ms: u64) -> Result<Self, LedgerError> {
        let Some(text) = state.read(FILE)? else {
            return Ok(Self::Heard(Vec::new()));
        };
        let found: Option<OrdersFile> = unsealed(START, text.as_bytes());
        match found.filter(|found| found.format == FORMAT) {
            Some(found) => Ok(Self::Heard(found.freezes)),
            None => {
                tracing::error!(
                    "the file `fleet-orders` in the state directory is damaged: all apps are frozen until the fleet's \
                     database is heard"
                );
                Ok(Self::Damaged { found_ms: now_ms })
            }
        }
    }

    /// What is in force behind an answer. A freeze that the database does not have any more ends by its thaw, or as one of
    /// an older schema.
    pub fn after(&self, heard: &HeardOrders) -> Self {
        let mut freezes = heard.freezes.clone();
        for freeze in &mut freezes {
            freeze.ends_by_thaw = heard.thaws.is_some();
        }
        if let Self::Heard(before) = self {
            let is_there = |old: &FleetFreeze| heard.freezes.iter().any(|new| new.app == old.app);
            let thaws = heard.thaws.as_deref().unwrap_or_default();
            let is_thawed = |old: &FleetFreeze| {
                let mut thaws = thaws.iter();
                thaws.any(|thaw| thaw.app == old.app && thaw.at_ms >= old.since_ms)
            };
            let held = before.iter().filter(|old| old.ends_by_thaw);
            freezes.extend(
                held.filter(|old| !is_there(old) && !is_thawed(old))
                    .cloned(),
            );
            freezes.sort_by(|one, other| one.app.cmp(&other.app));
        }
        Self::Heard(freezes)
    }

    /// Where others are there.
    pub fn store_new(&self, state: &Directory) -> Result<(), LedgerError> {
        match (Self::read(state, 0)? == *self, self) {
            (false, Self::Heard(freezes)) => Self::store(freezes.clone(), state),
            (true, _) | (_, Self::Damaged { .. }) => Ok(()),
        }
    }

    fn store(freezes: Vec<FleetFreeze>, state: &Directory) -> Result<(), LedgerError> {
        let format = FORMAT;
        let body = OrdersFile { format, freezes };
        let line = sealed(START, &body).map_err(|error| LedgerError::io(state.path(), error))?;
        state.replace(FILE, &line)
    }

    /// No order of a fleet is left here.
    pub fn remove(state: &Directory) -> Result<(), LedgerError> {
        state.remove(FILE)
    }

    /// As the caps take them.
    pub fn freezes(&self) -> Orders {
        match self {
            Self::Heard(freezes) => freezes.iter().fold(Orders::default(), |orders, freeze| {
                let app = Some(freeze.app.as_str()).filter(|app| !app.is_empty());
                orders.freeze(app, of_fleet(freeze.since_ms, &freeze.by))
            }),
            Self::Damaged { found_ms } => {
                let by = "bursar, because its copy of the fleet's orders is damaged";
                Orders::default().freeze(None, of_fleet(*found_ms, by))
            }
        }
    }
}

fn of_fleet(since_ms: u64, by: &str) -> Frozen {
    let by = format!("{by}, for the whole fleet");
    Frozen { since_ms, by }
}

// === impl HeardOrders ===

impl HeardOrders {
    /// Both are JSON arrays. `None`: one is none.
    pub fn parse(freezes: &str, thaws: Option<&str>) -> Option<Self> {
        let freezes = serde_json::from_str(freezes).ok()?;
        let thaws = thaws.map(serde_json::from_str).transpose().ok()?;
        Some(Self { freezes, thaws })
    }
}

#[cfg(test)]
mod tests;
