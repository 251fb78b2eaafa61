//! The configuration: flags over environment over file over defaults, checked once, all mistakes
//! reported together. Everything behind it works with checked values only.
//!
//! Promise: a `Config` that exists is usable: no empty server name, no address beyond loopback that
//! was not asked for twice, no unencrypted way for the key, no key without effect.
//!
//! Lowest first: `env` `errors` `token` `value` < `opened` < `key` `rows` `written` < `reader` < a file for each
//! table or two (`app` above the others) < this file, which puts a configuration together. A key
//! stands once in the shipped `config.toml` (default, range, help) and once where it is read.

mod app;
mod env;
mod errors;
mod fleet;
mod key;
mod ledger;
mod listen;
mod notify;
mod opened;
mod reader;
mod requests;
mod rows;
mod token;
mod upstream;
mod value;
mod written;

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};
use toml::de::DeTable;

pub use self::app::{
    ALL_APPS, App, CapsTable, DEFAULT_APP, Limits, NameError, OTHER_APP, OnClarification,
    SessionLimits, TagValue,
};
pub use self::env::{
    BURSAR_ADMIN, BURSAR_CONFIG, BURSAR_STATE_DIR, Env, JOURNAL_STREAM, LISTEN_FDNAMES, NO_PROXY,
    Overrides, PROXIES,
};
pub use self::errors::{ConfigErrors, Location};
pub use self::fleet::{FleetTable, UrlFileError, cap_name, is_label, url_text};
pub use self::key::{ApiKey, KEY_CHARS_MAX, KeyError, KeyFile, read_key};
pub use self::ledger::{Durability, LedgerTable, OnFailure, Reconcile};
pub use self::listen::Listen;
use self::listen::is_remote;
pub use self::notify::{Notify, NotifyUrl, NotifyWay, Share};
pub use self::opened::users_folder;
use self::reader::{Need, Reader};
pub use self::requests::{
    Adopt, AgentReceipts, Errors, Log, LogFormat, LogLevel, ModelList, Models, OnDisconnect, Retry,
    Shaping, Streams, TranslatedStreams,
};
use self::rows::InForce;
pub use self::token::{TOKEN_MARK, Token, TokenForm, TokenHash};
pub use self::upstream::{KeyPlace, Upstream};
pub use self::value::{Aliases, BaseUrl, ListenAddr};
use crate::protocol::names::ServiceNames;

/// Everything that is configured. Each field's meaning, default and edge stand in `config.toml`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The file that was read; `None` when none was named and none is at a known place.
    pub path: Option<PathBuf>,
    /// Made from `service_name`.
    pub names: ServiceNames,
    pub upstream: Upstream,
    pub listen: Listen,
    pub retry: Retry,
    pub shaping: Shaping,
    pub ledger: LedgerTable,
    pub streams: Streams,
    pub caps: CapsTable,
    /// In the order of the file.
    pub apps: Vec<App>,
    /// Where each of them stands: `config.toml:12`.
    pub app_places: Vec<String>,
    pub notify: Notify,
    pub reconcile: Reconcile,
    pub models: Models,
    pub errors: Errors,
    pub log: Log,
    pub fleet: FleetTable,
    /// What is allowed and deserves a line in the log.
    pub warnings: Vec<String>,
    in_force: InForce,
}

/// What is read of all tables. `None`: what a mistake, or no need, left out.
struct Values {
    names: Option<ServiceNames>,
    upstream: Option<Upstream>,
    key_place: KeyPlace,
    ledger: Option<LedgerTable>,
    state_dir_in_file: bool,
    listen: Listen,
    retry: Retry,
    shaping: Shaping,
    streams: Streams,
    caps: CapsTable,
    apps: Vec<App>,
    app_places: Vec<String>,
    notify: Notify,
    reconcile: Reconcile,
    models: Models,
    errors: Errors,
    log: Log,
    fleet: FleetTable,
}

/// Where the daemon's ledger and admin listener are: all that a reading command needs. Found
/// without a key and without an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whereabouts {
    /// The configuration's file; `None`: there is none.
    pub path: Option<PathBuf>,
    pub state_dir: PathBuf,
    /// The file itself gives it.
    pub state_dir_in_file: bool,
    /// As [`Listen::admin`].
    pub admin: Vec<ListenAddr>,
    /// As [`LedgerTable::retention`].
    pub retention: Option<Duration>,
    pub fleet: Box<FleetTable>,
    pub caps: CapsTable,
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
        Self::read(overrides, env, &Need::Everything)
    }

    /// The same with this key in place of the configured one, which is not read and need not be there.
    pub fn load_with(overrides: &Overrides, env: &Env, key: ApiKey) -> Result<Self, ConfigErrors> {
        Self::read(overrides, env, &Need::EverythingWith(key))
    }

    /// Whether its file names no fleet any more: for the system service `bursar fleet leave` changes nothing else.
    pub fn has_left_fleet(&self) -> bool {
        let overrides = Overrides {
            config: self.path.clone(),
            state_dir: Some(self.ledger.state_dir.clone()),
            ..Overrides::default()
        };
        let now = Whereabouts::find(&overrides, &Env::from_process());
        self.path.is_some() && now.is_ok_and(|now| now.fleet.url_file.is_none())
    }

    /// Where the organization's key is read from. Reads nothing but the configuration file; the key
    /// need not be there yet.
    pub fn key_place(overrides: &Overrides, env: &Env) -> Result<KeyPlace, ConfigErrors> {
        let (values, findings) = Reader::read(overrides, env, &Need::KeyPlace, Values::read)?;
        if findings.errors.is_empty() {
            Ok(values.key_place)
        } else {
            Err(findings.errors)
        }
    }

    fn read(overrides: &Overrides, env: &Env, need: &Need) -> Result<Self, ConfigErrors> {
        let (values, findings) = Reader::read(overrides, env, need, Values::read)?;
        match (values.names, values.upstream, values.ledger) {
            (Some(names), Some(upstream), Some(ledger)) if findings.errors.is_empty() => Ok(Self {
                path: findings.path,
                names,
                upstream,
                listen: values.listen,
                retry: values.retry,
                shaping: values.shaping,
                ledger,
                streams: values.streams,
                caps: values.caps,
                apps: values.apps,
                app_places: values.app_places,
                notify: values.notify,
                reconcile: values.reconcile,
                models: values.models,
                errors: values.errors,
                log: values.log,
                fleet: values.fleet,
                warnings: findings.warnings,
                in_force: findings.in_force,
            }),
            _ => Err(findings.errors),
        }
    }

    /// The configuration in force as TOML, without the key.
    pub fn in_force(&self) -> String {
        self.in_force.to_toml()
    }

    /// The same, a member for each table.
    pub fn in_force_document(&self) -> Map<String, Value> {
        let text = self.in_force();
        let table = DeTable::parse(&text);
        table
            .map(|table| written::members(table.get_ref()))
            .unwrap_or_default()
    }

    /// This one as a running process can take it: with the values that it runs with where it cannot change them.
    pub fn keeping(self, running: &Self) -> Self {
        // All of the keys that are marked so in config.toml: a test compares.
        Self {
            listen: Listen {
                proxy: running.listen.proxy.clone(),
                proxy_is_default: running.listen.proxy_is_default,
                admin: running.listen.admin.clone(),
                connections_max: running.listen.connections_max,
                ..self.listen
            },
            ledger: running.ledger.clone(),
            fleet: running.fleet.clone(),
            log: Log {
                format: running.log.format,
                ..self.log
            },
            in_force: self.in_force.keeping(&running.in_force),
            ..self
        }
    }

    /// The keys whose values differ in `new` and that a running process cannot change: `[listen] proxy`.
    pub fn keys_needing_restart(&self, new: &Self) -> Vec<String> {
        self.in_force.needing_restart(&new.in_force)
    }
}

// === impl Values ===

impl Values {
    fn read(reader: &mut Reader<'_>) -> Self {
        let names = upstream::names(reader);
        let (upstream, key_place) = Upstream::read(reader);
        let ledger = LedgerTable::read(reader);
        let state_dir_in_file = reader.place("state_dir").is_some();
        let state_dir = ledger.as_ref().map(|ledger| ledger.state_dir.as_path());
        let listen = Listen::read(reader, state_dir);
        let retry = Retry::read(reader);
        let shaping = Shaping::read(reader);
        let streams = Streams::read(reader);
        let caps = CapsTable::read(reader);
        let (apps, app_places) = app::read_apps(reader);
        Self {
            names,
            upstream,
            key_place,
            ledger,
            state_dir_in_file,
            listen,
            retry,
            shaping,
            streams,
            caps,
            apps,
            app_places,
            notify: Notify::read(reader),
            reconcile: Reconcile::read(reader),
            models: Models::read(reader),
            errors: Errors::read(reader),
            log: Log::read(reader),
            fleet: FleetTable::read(reader),
        }
    }
}

// === impl Whereabouts ===

impl Whereabouts {
    /// As [`Config::load`]; mistakes in other parts of the file are reported as well.
    pub fn find(overrides: &Overrides, env: &Env) -> Result<Self, ConfigErrors> {
        let (values, findings) = Reader::read(overrides, env, &Need::Whereabouts, Values::read)?;
        match values.ledger {
            Some(ledger) if findings.errors.is_empty() => Ok(Self {
                path: findings.path,
                caps: values.caps,
                state_dir: ledger.state_dir,
                state_dir_in_file: values.state_dir_in_file,
                retention: ledger.retention,
                fleet: Box::new(values.fleet),
                anonymous: values.listen.anonymous,
                proxy: values.listen.proxy,
                apps: values.apps,
                app_places: values.app_places,
                admin: values.listen.admin,
            }),
            _ => Err(findings.errors),
        }
    }

    /// As [`Listen::is_remote`].
    pub fn is_remote(&self) -> bool {
        is_remote(&self.proxy)
    }
}

#[cfg(test)]
mod tests;
