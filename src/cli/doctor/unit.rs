//! The system service, as systemd says it stands.
//!
//! Promise: systemd is asked and told nothing; one that does not answer is not waited for longer than a moment.

use std::collections::HashMap;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

/// It is there where systemd has started the machine.
const BOOTED: &str = "/run/systemd/system";

const ANSWER_DEADLINE: Duration = Duration::from_secs(5);

const PROPERTIES: &str = "--property=Id,LoadState,ActiveState,SubState,Result,NeedDaemonReload";

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
    pub is_installed: bool,
    /// `active`, `inactive`, `failed`, `activating`, …
    pub active: String,
    pub sub: String,
    pub result: String,
    /// The files are newer than what systemd has read.
    pub needs_reload: bool,
    /// The unit's key is there, without which it stays down.
    pub has_key: bool,
}

pub async fn ask(key: &Path) -> Units {
    if !Path::new(BOOTED).is_dir() {
        return Units::NoSystemd;
    }
    let asked = Command::new("systemctl")
        .args(["show", PROPERTIES, "bursar.service", "bursar.socket"])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    match timeout(ANSWER_DEADLINE, asked).await {
        Ok(Ok(output)) if output.status.success() => {
            // A user without the right to enter the folder does not see it there.
            let has_key = key.try_exists().unwrap_or(true);
            Units::read(&String::from_utf8_lossy(&output.stdout), has_key)
        }
        Ok(Ok(output)) => Units::Unknown(format!("systemctl ended with {}", output.status)),
        Ok(Err(error)) => Units::Unknown(format!("systemctl cannot be run: {error}")),
        Err(_) => Units::Unknown("systemctl does not answer".to_owned()),
    }
}

// === impl Units ===

impl Units {
    /// Of what `systemctl show` prints: a block for each unit.
    fn read(text: &str, has_key: bool) -> Self {
        let mut service = ServiceUnit {
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
                        is_installed: of("LoadState") != "not-found",
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
}

#[cfg(test)]
mod tests;
