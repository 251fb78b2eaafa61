//! The system service: where its units and the package have put it, and whether it runs.
//!
//! Why: systemd holds the service's socket open while the service is stopped, and starts it for whoever connects. A
//! prompt that shows `bursar line` would undo `systemctl stop`.
//!
//! Promise: nothing is connected to here; where it cannot be known whether the service runs, its socket is named.

use std::path::{Path, PathBuf};

use rustix::process::geteuid;
use tokio::process::Command;

use crate::cli::systemd;
use crate::config::ListenAddr;

/// The ledger of the system service.
pub const SYSTEM_STATE_DIR: &str = "/var/lib/bursar";

/// Where the shipped unit has its credential from.
pub const UNITS_KEY: &str = "/etc/bursar/api-key";

/// What the shipped unit starts it with.
pub const UNITS_CONFIG: &str = "/etc/bursar/config.toml";

/// Of `systemd/bursar-admin.socket`, for readers.
const UNITS_SOCKET: &str = "/run/bursar-admin.sock";

/// systemd has it there from the start of the service to its end.
const INVOCATION: &str = "/run/systemd/units/invocation:bursar.service";

/// Where the system service is, as its units and the package have it.
pub struct System {
    pub sockets: Vec<ListenAddr>,
    pub address: ListenAddr,
    pub state_dir: PathBuf,
}

/// What tells whether a connection would start the service.
struct SocketUnit<'a> {
    socket: &'a Path,
    invocation: &'a Path,
    /// Prints the state of the socket unit.
    state: Command,
}

// === impl System ===

impl System {
    /// For changes: an order to a stopped service starts it, where its socket is open.
    pub fn installed() -> Self {
        let mut sockets = vec![UNITS_SOCKET];
        // Where the unit of the socket is not enabled root may enter the directory.
        sockets.extend(geteuid().is_root().then_some("/var/lib/bursar/admin.sock"));
        let sockets = sockets
            .into_iter()
            .map(|path| ListenAddr::Unix(path.into()));
        Self {
            sockets: sockets.collect(),
            address: ListenAddr::DEFAULT_ADMIN,
            state_dir: SYSTEM_STATE_DIR.into(),
        }
    }

    /// For what only looks: without the socket where nobody but systemd holds it.
    pub async fn running() -> Self {
        let system = Self::installed();
        let unit = SocketUnit::shipped();
        match systemd::is_here() && unit.starts_service().await {
            true => system.without(Path::new(UNITS_SOCKET)),
            false => system,
        }
    }

    fn without(self, socket: &Path) -> Self {
        let is_other =
            |address: &ListenAddr| !matches!(address, ListenAddr::Unix(path) if path == socket);
        let sockets = self.sockets.into_iter();
        Self {
            sockets: sockets.filter(is_other).collect(),
            ..self
        }
    }
}

// === impl SocketUnit ===

impl SocketUnit<'_> {
    fn shipped() -> Self {
        let mut state = Command::new("systemctl");
        state.args(["show", "--property=SubState", "bursar-admin.socket"]);
        Self {
            socket: Path::new(UNITS_SOCKET),
            invocation: Path::new(INVOCATION),
            state,
        }
    }

    /// systemd alone holds the socket. Beside a running service one look at a file says that it does not.
    async fn starts_service(self) -> bool {
        let is_there = |path: &Path| path.symlink_metadata().is_ok();
        if !is_there(self.socket) || is_there(self.invocation) {
            return false;
        }
        // `running`: the service has it. No answer: connecting is the way to know.
        let state = systemd::answer(self.state).await;
        state.is_ok_and(|state| state.trim() == "SubState=listening")
    }
}

#[cfg(test)]
mod tests;
