//! The apps as the configuration declares them.

use crate::config::{self, App, Config, Whereabouts};

/// The apps of the configuration, and which callers beside them may spend.
#[derive(Clone, Debug)]
pub struct Declared {
    pub apps: Vec<App>,
    /// Where each stands: `config.toml:12`.
    pub places: Vec<String>,
    pub anonymous: Option<bool>,
    /// An address beyond loopback is listened on.
    pub remote: bool,
    pub caps: config::CapsTable,
}

// === impl Declared ===

impl From<&Config> for Declared {
    fn from(config: &Config) -> Self {
        Self {
            apps: config.apps.clone(),
            places: config.app_places.clone(),
            anonymous: config.listen.anonymous,
            remote: config.listen.is_remote(),
            caps: config.caps.clone(),
        }
    }
}

impl From<&Whereabouts> for Declared {
    fn from(whereabouts: &Whereabouts) -> Self {
        Self {
            apps: whereabouts.apps.clone(),
            places: whereabouts.app_places.clone(),
            anonymous: whereabouts.anonymous,
            remote: whereabouts.is_remote(),
            caps: whereabouts.caps.clone(),
        }
    }
}
