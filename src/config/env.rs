//! The environment and the flags, as values. The environment is read once, at the edge, so that tests
//! and the demo can give another.
//!
//! Promise: this is the only place that reads the process environment; only the names below are
//! ever looked at, and no output shows a value.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;

pub const BURSAR_CONFIG: &str = "BURSAR_CONFIG";
pub const BURSAR_UPSTREAM: &str = "BURSAR_UPSTREAM";
pub const BURSAR_API_KEY_FILE: &str = "BURSAR_API_KEY_FILE";
pub const BURSAR_API_KEY: &str = "BURSAR_API_KEY";
/// The daemon that a command asks; `bursar run` does not look at it.
pub const BURSAR_ADMIN: &str = "BURSAR_ADMIN";
pub const BURSAR_STATE_DIR: &str = "BURSAR_STATE_DIR";
/// Set by systemd for `StateDirectory=`; may list several, divided by colons.
pub const STATE_DIRECTORY: &str = "STATE_DIRECTORY";
/// Set by systemd for `LoadCredential=`.
pub const CREDENTIALS_DIRECTORY: &str = "CREDENTIALS_DIRECTORY";
/// Set by systemd beside `LISTEN_FDS`: what each socket is for, divided by colons.
pub const LISTEN_FDNAMES: &str = "LISTEN_FDNAMES";
/// Set by systemd where standard output or error go to the journal: device and inode of that stream.
pub const JOURNAL_STREAM: &str = "JOURNAL_STREAM";
pub const XDG_CONFIG_HOME: &str = "XDG_CONFIG_HOME";
pub const XDG_STATE_HOME: &str = "XDG_STATE_HOME";
pub const HOME: &str = "HOME";

/// Set where the network is reached through a proxy; in both spellings.
pub const PROXIES: [&str; 6] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
];
/// What is reached without that proxy; in both spellings.
pub const NO_PROXY: [&str; 2] = ["NO_PROXY", "no_proxy"];

const NAMES: [&str; 13] = [
    BURSAR_CONFIG,
    BURSAR_UPSTREAM,
    BURSAR_API_KEY_FILE,
    BURSAR_API_KEY,
    BURSAR_ADMIN,
    BURSAR_STATE_DIR,
    STATE_DIRECTORY,
    CREDENTIALS_DIRECTORY,
    LISTEN_FDNAMES,
    JOURNAL_STREAM,
    XDG_CONFIG_HOME,
    XDG_STATE_HOME,
    HOME,
];

/// The variables that bursar knows. An empty value counts as not set.
#[derive(Clone, Default)]
pub struct Env {
    values: BTreeMap<String, OsString>,
}

/// What the command line gave. `None` and empty: not given.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// `--config FILE`
    pub config: Option<PathBuf>,
    /// `--upstream URL`
    pub upstream: Option<String>,
    /// `--api-key-file FILE`
    pub api_key_file: Option<PathBuf>,
    /// `--listen ADDR`, each of them; they replace `[listen] proxy`.
    pub listen: Vec<String>,
    /// `--admin ADDR`; replaces `[listen] admin`.
    pub admin: Option<String>,
    /// `--state-dir DIR`
    pub state_dir: Option<PathBuf>,
}

// === impl Env ===

impl Env {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that reads the process environment"
    )]
    pub fn from_process() -> Self {
        Self::from_pairs(
            NAMES
                .into_iter()
                .chain(PROXIES)
                .chain(NO_PROXY)
                .filter_map(|name| Some((name, std::env::var_os(name)?))),
        )
    }

    pub fn from_pairs<N: Into<String>, V: Into<OsString>>(
        pairs: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let values = pairs
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        Self { values }
    }

    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.values
            .get(name)
            .map(OsString::as_os_str)
            .filter(|value| !value.is_empty())
    }

    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from)
    }
}

impl fmt::Debug for Env {
    /// Names only: one of the values may be the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.values.keys()).finish()
    }
}
