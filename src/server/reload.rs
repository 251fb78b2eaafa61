//! Reload: the whole configuration is read and checked again; what can be changed at run time is
//! swapped at once, and what cannot is refused by name.
//!
//! Promise: a bad file, or one that needs a restart, changes nothing.

use super::itself::UpstreamIsItself;
use crate::apps::AppsError;
use crate::config::{Config, ConfigErrors};
use crate::proxy::TrustError;

/// Why a reload changed nothing.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    #[error("{}", .0.lines().join("; "))]
    Config(#[from] ConfigErrors),
    #[error("{0}")]
    Trust(#[from] TrustError),
    #[error("{0}; the running configuration stays")]
    UpstreamIsItself(#[from] UpstreamIsItself),
    #[error("a change of {} takes effect with a restart only; the running configuration stays", keys.join(", "))]
    NeedsRestart { keys: Vec<&'static str> },
    #[error("{0}; the running configuration stays")]
    Apps(#[from] AppsError),
    #[error("reading the configuration took longer than {seconds} s; the running one stays")]
    TooSlow { seconds: u64 },
    #[error("reading the configuration failed; the running one stays")]
    Panicked,
}

/// The keys that differ and that a running process cannot change.
pub fn keys_needing_restart(running: &Config, new: &Config) -> Vec<&'static str> {
    let fixed = [
        (running.listen.proxy != new.listen.proxy, "[listen] proxy"),
        (running.listen.admin != new.listen.admin, "[listen] admin"),
        (
            running.ledger.state_dir != new.ledger.state_dir,
            "[ledger] state_dir",
        ),
        (
            running.ledger.durability != new.ledger.durability,
            "[ledger] durability",
        ),
        (
            running.ledger.on_failure != new.ledger.on_failure,
            "[ledger] on_failure",
        ),
        (
            running.ledger.retention != new.ledger.retention,
            "[ledger] retention_days",
        ),
        (running.log.format != new.log.format, "[log] format"),
    ];
    fixed
        .into_iter()
        .filter_map(|(differs, key)| differs.then_some(key))
        .collect()
}

#[cfg(test)]
mod tests;
