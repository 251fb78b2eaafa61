//! The configuration: flags over environment over file over defaults, checked once, all mistakes
//! told together. Everything behind it works with checked values only.
//!
//! Promise: a `Config` that exists is usable: no empty server name, no address beyond loopback that
//! was not asked for twice, no unencrypted way for the key, no key without effect.
//!
//! Lowest first: `env` `errors` `value` `token` `opened` < `key` `file` (as written) < `settings` < `app` <
//! `check` (a table at a time) < this file, which puts a configuration together.

mod app;
mod check;
mod env;
mod errors;
mod file;
mod key;
mod opened;
mod settings;
mod token;
mod value;

use std::path::PathBuf;
use std::time::Duration;

pub use self::app::{
    ALL_APPS, App, Caps, DEFAULT_APP, Limits, NameError, OTHER_APP, OnClarification,
};
use self::check::app::Tokens;
use self::check::upstream::KeySource;
use self::check::{Check, ledger, listen, reconcile, sections, upstream};
pub use self::env::{BURSAR_STATE_DIR, Env, LISTEN_FDNAMES, NO_PROXY, PROXIES};
pub use self::errors::{ConfigErrors, Place};
pub use self::key::{ApiKey, KEY_CHARS_MAX, KeyError, KeyFile, read_key};
use self::settings::is_remote;
pub use self::settings::{
    Adopt, AgentReceipts, Durability, Errors, Ledger, Listen, Log, LogFormat, LogLevel, Models,
    OnDisconnect, OnFailure, Overrides, Reconcile, Retry, Shaping, Streams, Upstream,
};
pub use self::token::{TOKEN_MARK, Token, TokenForm, TokenHash};
pub use self::value::{Aliases, BaseUrl, ExtraRoute, ListenAddr};
use crate::protocol::names::ServiceNames;

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
        Self::read(overrides, env, None)
    }

    /// The same with this key in place of the configured one, which is not read and need not be there.
    pub fn load_with(overrides: &Overrides, env: &Env, key: ApiKey) -> Result<Self, ConfigErrors> {
        Self::read(overrides, env, Some(key))
    }

    fn read(overrides: &Overrides, env: &Env, key: Option<ApiKey>) -> Result<Self, ConfigErrors> {
        let (mut check, file, path) = Check::read(overrides, env)?;

        let names = upstream::names(&mut check, file.service_name);
        let base_url = upstream::base_url(&mut check, file.upstream.base_url);
        let api_key = match key {
            Some(key) => Some(key),
            None => upstream::api_key(&mut check, file.upstream.api_key_file),
        };
        let ca_file = file
            .upstream
            .ca_file
            .and_then(|given| upstream::ca_file(&mut check, given));
        let connect_timeout = check.seconds(
            "upstream",
            "connect_timeout_s",
            file.upstream.connect_timeout_s,
            10,
            1..=300,
        );
        let read_timeout = check.seconds(
            "upstream",
            "read_timeout_s",
            file.upstream.read_timeout_s,
            600,
            1..=7200,
        );
        let extra_routes = check.each(file.upstream.extra_routes, ExtraRoute::parse);
        let ledger = ledger::ledger(&mut check, file.ledger);
        let state_dir = ledger.as_ref().map(|ledger| ledger.state_dir.as_path());
        let listen = listen::listen(&mut check, file.listen, state_dir);
        let retry = sections::retry(&mut check, file.retry);
        let shaping = sections::shaping(&mut check, file.shaping);
        let streams = sections::streams(&mut check, file.streams);
        let caps = check::app::caps(&mut check, file.caps);
        let (apps, app_places) = check::app::apps(&mut check, file.apps, Tokens::Read);
        let reconcile = reconcile::reconcile(&mut check, file.reconcile);
        let aliases = sections::aliases(&mut check, file.models.aliases);
        let log = sections::log(&mut check, file.log);
        let add_error_object = file.errors.add_error_object.is_none_or(|given| given.value);

        match (names, base_url, api_key, ledger) {
            (Some(names), Some(base_url), Some(api_key), Some(ledger)) if check.is_sound() => {
                Ok(Self {
                    path,
                    names,
                    upstream: Upstream {
                        base_url,
                        api_key,
                        ca_file,
                        connect_timeout,
                        read_timeout,
                        extra_routes,
                    },
                    listen,
                    retry,
                    shaping,
                    ledger,
                    streams,
                    caps,
                    apps,
                    app_places,
                    reconcile,
                    models: Models { aliases },
                    errors: Errors { add_error_object },
                    log,
                    warnings: check.into_warnings(),
                })
            }
            _ => Err(check.into_errors()),
        }
    }
}

// === impl KeyPlace ===

impl KeyPlace {
    /// Reads nothing but the configuration file; the key need not be there yet.
    pub fn find(overrides: &Overrides, env: &Env) -> Result<Self, ConfigErrors> {
        let (mut check, file, _) = Check::read(overrides, env)?;
        let source = upstream::key_source(&mut check, file.upstream.api_key_file);
        if !check.is_sound() {
            return Err(check.into_errors());
        }
        Ok(match source {
            Some((_, KeySource::File(path))) => Self::File(path),
            Some((_, KeySource::Variable(_))) => Self::Variable,
            None => Self::Nowhere,
        })
    }
}

// === impl Whereabouts ===

impl Whereabouts {
    /// As [`Config::load`]; mistakes in other parts of the file are reported as well.
    pub fn find(overrides: &Overrides, env: &Env) -> Result<Self, ConfigErrors> {
        let (mut check, file, _) = Check::read(overrides, env)?;
        let state_dir_in_file = file.ledger.state_dir.is_some();
        let ledger = ledger::ledger(&mut check, file.ledger);
        let state_dir = ledger.as_ref().map(|ledger| ledger.state_dir.as_path());
        let listen = listen::listen(&mut check, file.listen, state_dir);
        let caps = check::app::caps(&mut check, file.caps);
        let (apps, app_places) = check::app::apps(&mut check, file.apps, Tokens::LeftAlone);
        match ledger {
            Some(ledger) if check.is_sound() => Ok(Self {
                caps,
                state_dir: ledger.state_dir,
                state_dir_in_file,
                retention: ledger.retention,
                anonymous: listen.anonymous,
                proxy: listen.proxy,
                apps,
                app_places,
                admin: listen.admin,
            }),
            _ => Err(check.into_errors()),
        }
    }

    /// As [`Listen::is_remote`].
    pub fn is_remote(&self) -> bool {
        is_remote(&self.proxy)
    }
}

#[cfg(test)]
mod tests;
