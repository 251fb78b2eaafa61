//! What an operator ordered: which apps are frozen, and which caps are raised for their window. One small
//! file in the state directory.
//!
//! Promise: an order is on the disk before it is confirmed, and it survives a restart. A file that cannot be
//! read freezes everything until `bursar thaw` writes a new one, for it may have held a freeze.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::window::{Period, Window};
use crate::config::ALL_APPS;
use crate::ledger::LedgerError;
use crate::ledger::record::{sealed, unsealed};
use crate::ledger::state_dir::Directory;
use crate::money::MicroUsd;

const NAME: &str = "orders";
const START: &[u8] = br#"{"kind":"orders""#;
const FORMAT: u32 = 1;

/// Since when an app is frozen, and by which command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frozen {
    /// Unix milliseconds.
    pub since_ms: u64,
    pub by: String,
}

/// Another limit for one window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Raise {
    /// `None`: the cap of all apps together.
    pub app: Option<String>,
    pub period: Period,
    /// The window it is for.
    pub since_ms: u64,
    pub until_ms: u64,
    pub to_micro_usd: MicroUsd,
    /// The cap that was raised, as it was configured then. `None`: an older release did not write it.
    #[serde(default)]
    pub configured_micro_usd: Option<MicroUsd>,
}

/// All orders.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Orders {
    /// All apps are frozen.
    pub all: Option<Frozen>,
    pub apps: BTreeMap<String, Frozen>,
    pub raised: Vec<Raise>,
}

/// Why an order was not given.
#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    #[error("it could not be written: {0}")]
    Ledger(#[from] LedgerError),
    #[error("{}", no_cap(.scope, *.period))]
    NoCap { scope: String, period: Period },
    #[error(
        "{to} is below the cap, which is {configured}; change the configuration to lower it, and take a \
         raise back with --undo"
    )]
    NotRaised { to: MicroUsd, configured: MicroUsd },
}

/// Why no cap is raised, and what to do.
pub fn no_cap(scope: &str, period: Period) -> String {
    let whose = match scope {
        ALL_APPS => "all apps together".to_owned(),
        app => format!("the app {app}"),
    };
    format!(
        "there is no cap of the {period} for {whose}: set one in the configuration, or with `bursar app set` for an app \
         that was added"
    )
}

/// No other process writes the file as long as this lives.
pub(super) struct Turn {
    _directory: Directory,
}

/// Which version of the file is there. Each is a file of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OrdersVersion {
    inode: u64,
    modified: (i64, i64),
}

#[derive(Serialize, Deserialize)]
struct OrdersFile {
    format: u32,
    orders: Orders,
}

// === impl Turn ===

impl Turn {
    pub(super) fn take(state_dir: &Path) -> Result<Self, LedgerError> {
        let directory = Directory::open_or_create(state_dir)?;
        if directory.take_turn()? {
            return Ok(Self {
                _directory: directory,
            });
        }
        Err(LedgerError::Unavailable {
            why: "another process writes the file of orders at this moment; try again".to_owned(),
        })
    }
}

// === impl OrdersVersion ===

impl OrdersVersion {
    /// `None`: no file, or none that can be looked at.
    pub(super) fn of(state_dir: &Path) -> Option<Self> {
        let metadata = std::fs::symlink_metadata(state_dir.join(NAME)).ok()?;
        Some(Self {
            inode: metadata.ino(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        })
    }
}

// === impl Orders ===

impl Orders {
    /// What was ordered below `state_dir`. Without a file: nothing.
    pub fn read(state_dir: &Path, now_ms: u64) -> Self {
        // A person who looks may be another user than the daemon's.
        let read = match Directory::open_to_read(state_dir) {
            Ok(directory) => directory.read(NAME),
            Err(error) if error.is_missing() => return Self::default(),
            Err(error) => Err(error),
        };
        let why = match read {
            Ok(None) => return Self::default(),
            Ok(Some(text)) => match parse(&text) {
                Some(orders) => return orders,
                None => "it is damaged".to_owned(),
            },
            Err(error) => error.to_string(),
        };
        tracing::error!(
            why,
            "the file `orders` in the state directory cannot be read: everything is frozen, and no cap is \
             raised; `bursar thaw` begins a new one"
        );
        Self {
            all: Some(Frozen {
                since_ms: now_ms,
                by: "bursar, because its file of orders cannot be read".to_owned(),
            }),
            ..Self::default()
        }
    }

    /// Puts them on the disk.
    pub fn write(&self, state_dir: &Path) -> Result<(), LedgerError> {
        let directory = Directory::open_or_create(state_dir)?;
        let body = OrdersFile {
            format: FORMAT,
            orders: self.clone(),
        };
        let line = sealed(START, &body).map_err(|error| LedgerError::io(state_dir, error))?;
        directory.replace(NAME, &line)
    }

    /// Gives an order where no daemon has the ledger. One that starts meanwhile waits for nothing: it
    /// finds the ledger in use.
    pub fn order(
        state_dir: &Path,
        now_ms: u64,
        change: impl FnOnce(&Self) -> Self,
    ) -> Result<Self, LedgerError> {
        let _lock = Directory::open_or_create(state_dir)?.lock()?;
        Self::order_beside(state_dir, now_ms, change)
    }

    /// Gives an order beside a daemon that has the ledger and does not answer. It is in force when that
    /// daemon looks at the file again ([`super::Caps::follow`]), or at the next start.
    pub fn order_beside(
        state_dir: &Path,
        now_ms: u64,
        change: impl FnOnce(&Self) -> Self,
    ) -> Result<Self, LedgerError> {
        let _turn = Turn::take(state_dir)?;
        let orders = change(&Self::read(state_dir, now_ms));
        orders.write(state_dir)?;
        Ok(orders)
    }

    /// What another process wrote, if it can be read.
    pub(super) fn read_sound(state_dir: &Path) -> Option<Self> {
        let text = Directory::open(state_dir).and_then(|directory| directory.read(NAME));
        parse(&text.ok().flatten()?)
    }

    /// What is frozen: all apps first, as `None`.
    pub fn frozen_by(&self) -> impl Iterator<Item = (Option<&str>, &Frozen)> {
        let apps = self.apps.iter();
        let apps = apps.map(|(app, frozen)| (Some(app.as_str()), frozen));
        self.all.iter().map(|frozen| (None, frozen)).chain(apps)
    }

    /// The freeze that applies to this app: that of all apps, else its own.
    pub fn frozen(&self, app: &str) -> Option<&Frozen> {
        self.all.as_ref().or_else(|| self.apps.get(app))
    }

    /// Freezes an app, or all. What is frozen stays so since when it was.
    #[must_use]
    pub fn freeze(&self, app: Option<&str>, frozen: Frozen) -> Self {
        let mut orders = self.clone();
        match app {
            None => orders.all.get_or_insert(frozen),
            Some(app) => orders.apps.entry(app.to_owned()).or_insert(frozen),
        };
        orders
    }

    /// Thaws an app; without a name all that was frozen in all. What was frozen by name stays.
    #[must_use]
    pub fn thaw(&self, app: Option<&str>) -> Self {
        let mut orders = self.clone();
        match app {
            None => orders.all = None,
            Some(app) => {
                orders.apps.remove(app);
            }
        }
        orders
    }

    /// Sets a limit for a window, and forgets those of windows that are over. A raise to the configured
    /// amount takes the one before it back.
    #[must_use]
    pub fn raise(&self, raise: Raise, now_ms: u64) -> Self {
        let mut orders = self.clone();
        orders.raised.retain(|other| {
            other.until_ms > now_ms && (&other.app, other.period) != (&raise.app, raise.period)
        });
        if raise.configured_micro_usd != Some(raise.to_micro_usd) {
            orders.raised.push(raise);
        }
        orders
    }

    /// The limit in this window of a cap that is configured as `configured`. A raise holds as long as the
    /// amount that it raised is the configured one: an edit is the younger word, also where it lowers
    /// the cap.
    pub fn limit(
        &self,
        app: Option<&str>,
        period: Period,
        window: Window,
        configured: MicroUsd,
    ) -> MicroUsd {
        let raise = self.raised.iter().find(|raise| {
            raise.app.as_deref() == app
                && raise.period == period
                && raise.since_ms == window.since_ms
                && raise
                    .configured_micro_usd
                    .is_none_or(|was| was == configured)
        });
        raise.map_or(configured, |raise| raise.to_micro_usd.max(configured))
    }
}

fn parse(text: &str) -> Option<Orders> {
    let body: OrdersFile = unsealed(START, text.as_bytes())?;
    (body.format == FORMAT).then_some(body.orders)
}

#[cfg(test)]
mod tests;
