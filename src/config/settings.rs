//! The tables of the configuration as checked values, and what the command line gives beside them.

use std::path::PathBuf;
use std::time::Duration;

use super::key::ApiKey;
use super::value::{Aliases, BaseUrl, ExtraRoute, ListenAddr};
use crate::protocol::closed_set;

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

// === impl Listen ===

impl Listen {
    /// Whether other machines can reach the proxy.
    pub fn is_remote(&self) -> bool {
        is_remote(&self.proxy)
    }
}

pub(super) fn is_remote(proxy: &[ListenAddr]) -> bool {
    proxy.iter().any(|address| !address.is_local())
}
