//! The services of systemd, the machine's and the user's own, as systemd says they stand.
//!
//! Promise: systemd is asked and told nothing.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use tokio::process::Command;

use crate::cli::systemd;

const PROPERTIES: &str =
    "--property=Id,LoadState,UnitFileState,ActiveState,SubState,Result,NeedDaemonReload";

/// What is known of the units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Units {
    /// systemd did not start this machine.
    NoSystemd,
    /// It was asked in vain.
    Unknown(String),
    Known {
        service: ServiceUnit,
        /// `bursar.socket` holds the addresses for apps.
        is_socket_open: bool,
    },
}

/// `bursar.service`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceUnit {
    pub manager: Manager,
    pub is_installed: bool,
    /// It is to be started by itself.
    pub is_enabled: bool,
    /// `active`, `inactive`, `failed`, `activating`, …
    pub active: String,
    pub sub: String,
    pub result: String,
    /// The files are newer than what systemd has read.
    pub needs_reload: bool,
    /// The unit's key is there, without which it stays down.
    pub has_key: bool,
}

/// Whose systemd it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Manager {
    #[default]
    System,
    /// `systemctl --user`
    Own,
}

/// What helps with a service.
pub struct UnitRemedies {
    pub reread: &'static str,
    pub why: &'static str,
    pub key: &'static str,
    pub start: &'static str,
}

/// The keys that the units wait for.
pub struct UnitKeys<'a> {
    pub system: &'a Path,
    pub own: Option<PathBuf>,
}

/// The user's own service where that is in use, else the system's.
pub async fn ask(keys: &UnitKeys<'_>) -> Units {
    if !systemd::is_here() {
        return Units::NoSystemd;
    }
    if let Some(key) = &keys.own {
        let own = of(Manager::Own, key).await;
        if own.are_in_use() {
            return own;
        }
    }
    of(Manager::System, keys.system).await
}

async fn of(manager: Manager, key: &Path) -> Units {
    let mut systemctl = Command::new("systemctl");
    systemctl
        .args(manager.flag())
        .args(["show", PROPERTIES, "bursar.service", "bursar.socket"]);
    match systemd::answer(systemctl).await {
        // A user without the right to enter the folder does not see the key there.
        Ok(text) => Units::read(manager, &text, key.try_exists().unwrap_or(true)),
        Err(why) => Units::Unknown(why),
    }
}

// === impl Manager ===

impl Manager {
    fn flag(self) -> Option<&'static str> {
        match self {
            Self::System => None,
            Self::Own => Some("--user"),
        }
    }

    pub fn remedies(self) -> UnitRemedies {
        match self {
            Self::System => UnitRemedies {
                reread: "systemctl daemon-reload && systemctl restart bursar",
                why: "`journalctl -u bursar -n 20` says why",
                key: "sudo bursar key set",
                start: "systemctl enable --now bursar.socket bursar-admin.socket bursar",
            },
            Self::Own => UnitRemedies {
                reread: "systemctl --user daemon-reload && systemctl --user restart bursar",
                why: "`journalctl --user -u bursar -n 20` says why",
                key: "bursar key set",
                start: "systemctl --user enable --now bursar.socket bursar",
            },
        }
    }
}

// === impl Units ===

impl Units {
    /// Of what `systemctl show` prints: a block for each unit.
    fn read(manager: Manager, text: &str, has_key: bool) -> Self {
        let mut service = ServiceUnit {
            manager,
            has_key,
            ..ServiceUnit::default()
        };
        let mut is_socket_open = false;
        for block in text.split("\n\n") {
            let lines = block.lines().filter_map(|line| line.split_once('='));
            let properties: HashMap<&str, &str> = lines.collect();
            let of = |name: &str| properties.get(name).copied().unwrap_or_default();
            match of("Id") {
                "bursar.service" => {
                    service = ServiceUnit {
                        manager,
                        is_installed: of("LoadState") != "not-found",
                        is_enabled: of("UnitFileState") == "enabled",
                        active: of("ActiveState").to_owned(),
                        sub: of("SubState").to_owned(),
                        result: of("Result").to_owned(),
                        needs_reload: of("NeedDaemonReload") == "yes",
                        has_key,
                    };
                }
                "bursar.socket" => is_socket_open = of("ActiveState") == "active",
                _ => {}
            }
        }
        Self::Known {
            service,
            is_socket_open,
        }
    }

    /// The package installs the units of both; these are those that somebody uses.
    fn are_in_use(&self) -> bool {
        let Self::Known {
            service,
            is_socket_open,
        } = self
        else {
            return false;
        };
        let is_up = service.is_installed && service.active != "inactive";
        *is_socket_open || service.is_enabled || is_up
    }
}

#[cfg(test)]
mod tests;
