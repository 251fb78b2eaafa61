//! What the fleet's operators ordered: the apps that may spend nothing on any machine. The file `fleet-orders` in the
//! state directory keeps what was heard last.
//!
//! Why a file: a freeze is a switch that stops the money, so it holds over a restart while the database is away.
//!
//! Promise: written whole or not at all. A file that cannot be read may have held a freeze: all apps are frozen until
//! the database is heard.

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

/// All of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetOrders(Vec<FleetFreeze>);

/// As the database has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FleetFreeze {
    /// Empty: all apps.
    app: String,
    since_ms: u64,
    by: String,
}

#[derive(Serialize, Deserialize)]
struct OrdersFile {
    format: u32,
    freezes: Vec<FleetFreeze>,
}

// === impl FleetOrders ===

impl FleetOrders {
    /// Of the answer to a hello. `None`: it is none.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).map(Self).ok()
    }

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
            return Ok(Self::default());
        };
        let found: Option<OrdersFile> = unsealed(START, text.as_bytes());
        match found.filter(|found| found.format == FORMAT) {
            Some(found) => Ok(Self(found.freezes)),
            None => {
                tracing::error!(
                    "the file `fleet-orders` in the state directory is damaged: all apps are frozen until the fleet's \
                     database is heard"
                );
                Ok(Self(vec![FleetFreeze {
                    app: String::new(),
                    since_ms: now_ms,
                    by: "bursar, because its copy of the fleet's orders is damaged".to_owned(),
                }]))
            }
        }
    }

    /// Where others are there.
    pub fn store_new(&self, state: &Directory) -> Result<(), LedgerError> {
        match Self::read(state, 0)? == *self {
            true => Ok(()),
            false => self.store(state),
        }
    }

    fn store(&self, state: &Directory) -> Result<(), LedgerError> {
        let body = OrdersFile {
            format: FORMAT,
            freezes: self.0.clone(),
        };
        let line = sealed(START, &body).map_err(|error| LedgerError::io(state.path(), error))?;
        state.replace(FILE, &line)
    }

    /// No order of a fleet is left here.
    pub fn remove(state: &Directory) -> Result<(), LedgerError> {
        state.remove(FILE)
    }

    /// As the caps take them.
    pub fn freezes(&self) -> Orders {
        self.0.iter().fold(Orders::default(), |orders, freeze| {
            let app = Some(freeze.app.as_str()).filter(|app| !app.is_empty());
            let frozen = Frozen {
                since_ms: freeze.since_ms,
                by: format!("{}, for the whole fleet", freeze.by),
            };
            orders.freeze(app, frozen)
        })
    }
}

#[cfg(test)]
mod tests;
