//! Reload: the whole configuration is read and checked again; what can be changed at run time is
//! swapped at once, and what cannot waits for a restart, and is named.
//!
//! Promise: a bad file changes nothing; a good one takes effect as far as a running process can, and the rest is
//! named in the log, in `bursar status`, in `/metrics` and to systemd until the restart.

use super::itself::UpstreamIsItself;
use crate::apps::AppsError;
use crate::config::Config;
use crate::config::ConfigErrors;
use crate::proxy::{Authorities, TrustError};

/// What a reload puts in force.
pub struct Reloaded {
    pub config: Config,
    pub authorities: Authorities,
    /// The keys of the file that are not in it, because they take a restart.
    pub waits_for_restart: Vec<String>,
}

/// Why a reload changed nothing.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    #[error("{}", .0.lines().join("; "))]
    Config(#[from] ConfigErrors),
    #[error("{0}")]
    Trust(#[from] TrustError),
    #[error("{0}; the running configuration stays")]
    UpstreamIsItself(#[from] UpstreamIsItself),
    #[error("{0}; the running configuration stays")]
    Apps(#[from] AppsError),
    #[error("reading the configuration took longer than {seconds} s; the running one stays")]
    TooSlow { seconds: u64 },
    #[error("reading the configuration failed; the running one stays")]
    Panicked,
}

#[cfg(test)]
mod tests;
