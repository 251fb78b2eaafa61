//! What the person named, and where a daemon of it may answer.
//!
//! Promise: where a daemon or one ledger is named, no other one's addresses are among these.

use std::path::Path;

use super::system::System;
use crate::cli::client::Client;
use crate::config::{ListenAddr, Whereabouts};

/// What a command does with what it finds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Right {
    Look,
    Change,
}

/// What the person named.
pub enum Asked {
    /// This one, by the flag or the variable that is named beside it.
    Daemon(Client, &'static str),
    /// This ledger, by its directory or its configuration.
    Ledger(Whereabouts),
    /// Nothing: whichever is there.
    Any(Whereabouts),
}

// === impl Asked ===

impl Asked {
    fn place(&self) -> Option<&Whereabouts> {
        match self {
            Self::Daemon(..) => None,
            Self::Ledger(place) | Self::Any(place) => Some(place),
        }
    }

    /// Whether it is one of the daemon's whose ledger is meant first.
    pub fn is_own(&self, address: &ListenAddr) -> bool {
        self.place()
            .is_some_and(|place| place.admin.contains(address))
    }

    /// The sockets at which the daemon may answer, the own one first.
    pub fn sockets(&self, system: &System) -> Vec<ListenAddr> {
        let own = self.place().into_iter().flat_map(|place| &place.admin);
        let own = own.filter(|address| matches!(address, ListenAddr::Unix(_)));
        let system: &[ListenAddr] = match self {
            Self::Any(_) => &system.sockets,
            Self::Daemon(..) | Self::Ledger(_) => &[],
        };
        own.chain(system).cloned().collect()
    }

    /// Its files are the system service's: nothing was named, and the own place has no ledger.
    pub fn is_systems(&self, system: &System) -> bool {
        matches!(self, Self::Any(place) if !has_journal(&place.state_dir))
            && has_journal(&system.state_dir)
    }

    /// The ports at which it may answer a reader. Where one ledger is meant there are none: another's daemon may be
    /// at its port.
    pub fn ports(&self, system: &System) -> Vec<ListenAddr> {
        let Self::Any(place) = self else {
            return Vec::new();
        };
        let own = place.admin.iter();
        let own = own.filter(|address| matches!(address, ListenAddr::Tcp(_)));
        let mut ports: Vec<ListenAddr> = own.cloned().collect();
        if !ports.contains(&system.address) {
            ports.push(system.address.clone());
        }
        ports
    }

    /// Where another daemon than this one may answer.
    pub fn others(&self, system: &System, first: &Client) -> Vec<ListenAddr> {
        let mut others = [self.sockets(system), self.ports(system)].concat();
        others.retain(|address| address != first.address());
        others
    }
}

pub fn has_journal(state_dir: &Path) -> bool {
    std::fs::metadata(state_dir.join("journal")).is_ok()
}
