//! The configuration: flags over environment over file over defaults, checked once, all mistakes
//! told together. Everything behind it works with checked values only.
//!
//! Promise: a `Config` that exists is usable: no empty server name, no address beyond loopback that
//! was not asked for twice, no unencrypted way for the key, no key without effect.

mod app;
mod check;
mod env;
mod errors;
mod file;
mod key;
mod opened;
mod token;
mod value;

use std::path::PathBuf;
use std::time::Duration;

use crate::protocol::closed_set;
use crate::protocol::names::ServiceNames;

pub use app::{ALL_APPS, App, Caps, DEFAULT_APP, Limits, NameError, OTHER_APP, OnClarification};
pub use env::{BURSAR_STATE_DIR, Env, LISTEN_FDNAMES, NO_PROXY, PROXIES};
pub use errors::{ConfigErrors, Place};
pub use key::{ApiKey, KEY_CHARS_MAX, KeyError, KeyFile, read_key};
pub use token::{TOKEN_MARK, Token, TokenForm, TokenHash};
pub use value::{Aliases, BaseUrl, ExtraRoute, ListenAddr};

/// Everything that is configured. Each field's meaning, default and edge stand in `config.toml`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The file that was read; `None` when none was named.
    pub path: Option<PathBuf>,
    /// Made from `service_name`.
    pub names: ServiceNames,
    pub upstream: Upstream,
    pub listen: Listen,
    pub retry: Retry,
    pub shaping: Shaping,
    pub ledger: Ledger,
    pub streams: Streams,
    pub caps: Caps,
    /// In the order of the file.
    pub apps: Vec<App>,
    /// Where each of them stands: `config.toml:12`.
    pub app_places: Vec<String>,
    pub reconcile: Reconcile,
    pub models: Models,
    pub errors: Errors,
    pub log: Log,
    /// What is allowed and deserves a line in the log.
    pub warnings: Vec<String>,
}

/// `[upstream]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    pub base_url: BaseUrl,
    pub api_key: ApiKey,
    /// PEM file of certificate authorities that are trusted instead of the system's.
    pub ca_file: Option<PathBuf>,
    pub connect_timeout: Duration,
    pub read_timeout: Duration,
    pub extra_routes: Vec<ExtraRoute>,
}

/// `[listen]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    pub proxy: Vec<ListenAddr>,
    /// Nobody asked for these addresses: one whose family the machine lacks is skipped with a
    /// warning.
    pub proxy_is_default: bool,
    /// The configured addresses, then the socket below the state directory.
    pub admin: Vec<ListenAddr>,
    /// Whether callers may spend that are no app. `None`: as long as there is no app.
    pub anonymous: Option<bool>,
    /// Addresses beyond loopback may be listened on.
    pub allow_remote: bool,
    /// Lower-case names without a port, beside the loopback names.
    pub allowed_hosts: Vec<String>,
    /// Lower-case `scheme://host[:port]`.
    pub allowed_origins: Vec<String>,
    pub shutdown_timeout: Duration,
}

/// `[retry]`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Most attempts of one request, the first among them. 1: never repeated.
    pub attempts: u32,
    pub base: Duration,
    pub cap: Duration,
    pub adopt: Adopt,
    pub adopt_window: Duration,
}

closed_set! {
    /// Which requests take over the key of an equal undelivered one.
    Adopt {
        Always => "always",
        /// Only those an SDK marks as a retry (`x-stainless-retry-count`).
        Marked => "marked",
        Never => "never",
    }
}

/// `[shaping]`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shaping {
    /// Most requests at the service at once. `None`: no limit of bursar's.
    pub in_flight: Option<usize>,
    /// Most requests in any minute. `None`: no limit of bursar's.
    pub per_minute: Option<usize>,
    /// Most requests that wait.
    pub queue_max: usize,
    /// The longest wait.
    pub queue_wait: Duration,
}

/// `[ledger]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ledger {
    /// From the root of the file system.
    pub state_dir: PathBuf,
    pub durability: Durability,
    pub on_failure: OnFailure,
    /// How long entries are kept one by one. `None`: for ever.
    pub retention: Option<Duration>,
}

closed_set! {
    /// What an intent survives before its request leaves (rule I1).
    Durability {
        /// Power loss: fdatasync.
        Power => "power",
        /// kill -9: handed to the kernel.
        Process => "process",
    }
}

closed_set! {
    /// What becomes of metered requests while the ledger cannot be written.
    OnFailure {
        /// Refused before they are sent (rule I1).
        Refuse => "refuse",
        /// Sent; their entries wait in memory.
        Serve => "serve",
    }
}

/// `[streams]`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streams {
    pub on_disconnect: OnDisconnect,
    pub drain_timeout: Duration,
    pub agent_receipts: AgentReceipts,
}

closed_set! {
    /// What happens to a stream whose app has left.
    OnDisconnect {
        /// It is read on for its receipt.
        Drain => "drain",
        /// It is given up; its entry is in doubt.
        Cancel => "cancel",
    }
}

closed_set! {
    /// What is known of the price of an agent turn that the app asked for as a stream.
    AgentReceipts {
        /// The stream passes as it is, and carries no amount.
        Unreported => "unreported",
        /// The turn is asked for whole, which tells its amount, and given as a stream made here.
        Exact => "exact",
    }
}

/// `[reconcile]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reconcile {
    /// bursar asks for eval runs that it saw start, until they tell their price.
    pub poll_eval_runs: bool,
    /// The days that the service's document sums over.
    pub window_days: u64,
    /// The document's member with the billed spend; dots lead into objects.
    pub spend_field: String,
}

/// `[models]`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Models {
    pub aliases: Aliases,
}

/// `[errors]`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errors {
    pub add_error_object: bool,
}

/// `[log]`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Log {
    pub format: LogFormat,
    pub level: LogLevel,
}

closed_set! {
    /// How a log line is written.
    LogFormat {
        Json => "json",
        Text => "text",
    }
}

closed_set! {
    /// The least severe lines that are logged.
    LogLevel {
        Error => "error",
        Warn => "warn",
        Info => "info",
        Debug => "debug",
        Trace => "trace",
    }
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

/// Where the organization's key is read from, by the order of flag, environment, file and credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyPlace {
    /// Also systemd's credential, where the environment has its directory.
    File(PathBuf),
    /// `BURSAR_API_KEY`
    Variable,
    Nowhere,
}

/// Where the daemon's ledger and admin listener are: all that a reading command needs. Found
/// without a key and without an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whereabouts {
    pub state_dir: PathBuf,
    /// The file itself says so.
    pub state_dir_in_file: bool,
    /// As [`Listen::admin`].
    pub admin: Vec<ListenAddr>,
    /// As [`Ledger::retention`].
    pub retention: Option<Duration>,
    pub caps: Caps,
    /// As [`Listen::anonymous`].
    pub anonymous: Option<bool>,
    /// As [`Listen::proxy`].
    pub proxy: Vec<ListenAddr>,
    /// As [`Config::apps`], but without their tokens.
    pub apps: Vec<App>,
    /// As [`Config::app_places`].
    pub app_places: Vec<String>,
}

// === impl Config ===

impl Config {
    /// Reads and checks the whole configuration. Reads the named file, the key's file and nothing
    /// else; changes nothing.
    pub fn load(overrides: &Overrides, env: &Env) -> Result<Self, ConfigErrors> {
        check::load(overrides, env, None)
    }

    /// The same with this key in place of the configured one, which is not read and need not be there.
    pub fn load_with(overrides: &Overrides, env: &Env, key: ApiKey) -> Result<Self, ConfigErrors> {
        check::load(overrides, env, Some(key))
    }
}

// === impl KeyPlace ===

impl KeyPlace {
    /// Reads nothing but the configuration file; the key need not be there yet.
    pub fn find(overrides: &Overrides, env: &Env) -> Result<Self, ConfigErrors> {
        check::key_place(overrides, env)
    }
}

// === impl Listen ===

impl Listen {
    /// Whether other machines can reach the proxy.
    pub fn is_remote(&self) -> bool {
        is_remote(&self.proxy)
    }
}

fn is_remote(proxy: &[ListenAddr]) -> bool {
    proxy.iter().any(|address| !address.is_local())
}

// === impl Whereabouts ===

impl Whereabouts {
    /// As [`Config::load`]; mistakes in other parts of the file are told as well.
    pub fn find(overrides: &Overrides, env: &Env) -> Result<Self, ConfigErrors> {
        check::whereabouts(overrides, env)
    }

    /// As [`Listen::is_remote`].
    pub fn is_remote(&self) -> bool {
        is_remote(&self.proxy)
    }
}

#[cfg(test)]
mod tests;
