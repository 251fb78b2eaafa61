//! Reload: the whole configuration is read and checked again; what can be changed at run time is
//! swapped at once, and what cannot is refused by name.
//!
//! Promise: a bad file, or one that needs a restart, changes nothing.

use super::itself::UpstreamIsItself;
use crate::apps::AppsError;
use crate::config::ConfigErrors;
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
    NeedsRestart { keys: Vec<String> },
    #[error("{0}; the running configuration stays")]
    Apps(#[from] AppsError),
    #[error("reading the configuration took longer than {seconds} s; the running one stays")]
    TooSlow { seconds: u64 },
    #[error("reading the configuration failed; the running one stays")]
    Panicked,
}

#[cfg(test)]
mod tests;
