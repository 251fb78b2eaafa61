//! From what was given (flags, environment, file) to checked values. One function a table; each
//! takes the first layer that gives a value, checks it, and falls back to the default when nobody
//! does.
//!
//! Promise: a mistake never stops the search for further ones, and none yields a configuration.

mod app;
mod listen;
mod reconcile;
mod scalar;
mod shaping;

use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustls::RootCertStore;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::{PemObject, SectionKind};

use self::app::{Tokens, key_file_kind};
use super::env::{self, Env};
use super::errors::{ConfigErrors, Place};
use super::file::{At, ConfigFile, LedgerTable, LogTable, RetryTable, StreamsTable};
use super::key::{ApiKey, KeyError};
use super::opened::open_to_read;
use super::value::{Aliases, BaseUrl, ExtraRoute};
use super::{
    Adopt, AgentReceipts, Config, Durability, Errors, KeyPlace, Ledger, Log, LogFormat, LogLevel,
    Models, OnDisconnect, OnFailure, Overrides, Retry, Streams, Upstream, Whereabouts,
};
use crate::protocol::names::ServiceNames;

/// A hundred years.
const RETENTION_DAYS_MAX: u64 = 36_500;

/// Largest configuration file, in bytes.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// What was given, and the mistakes found so far.
struct Check<'a> {
    overrides: &'a Overrides,
    env: &'a Env,
    /// The directory that relative paths of the file start from.
    file_dir: PathBuf,
    errors: ConfigErrors,
    warnings: Vec<String>,
}

/// Where the key comes from. Nothing of it was read yet.
enum KeySource<'a> {
    File(PathBuf),
    Variable(&'a OsStr),
}

/// `key`: takes the place of the configured one, which is not read then.
pub(super) fn load(
    overrides: &Overrides,
    env: &Env,
    key: Option<ApiKey>,
) -> Result<Config, ConfigErrors> {
    let (mut check, file, path) = Check::read(overrides, env)?;

    let names = check.names(file.service_name);
    let base_url = check.base_url(file.upstream.base_url);
    let api_key = match key {
        Some(key) => Some(key),
        None => check.api_key(file.upstream.api_key_file),
    };
    let ca_file = file.upstream.ca_file.and_then(|given| check.ca_file(given));
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
    let ledger = check.ledger(file.ledger);
    let state_dir = ledger.as_ref().map(|ledger| ledger.state_dir.as_path());
    let listen = check.listen(file.listen, state_dir);
    let retry = check.retry(file.retry);
    let shaping = check.shaping(file.shaping);
    let streams = check.streams(file.streams);
    let caps = check.caps(file.caps);
    let (apps, app_places) = check.apps(file.apps, Tokens::Read);
    let reconcile = check.reconcile(file.reconcile);
    let aliases = check.aliases(file.models.aliases);
    let log = check.log(file.log);
    let add_error_object = file.errors.add_error_object.is_none_or(|given| given.value);

    match (names, base_url, api_key, ledger) {
        (Some(names), Some(base_url), Some(api_key), Some(ledger)) if check.errors.is_empty() => {
            Ok(Config {
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
                warnings: check.warnings,
            })
        }
        _ => Err(check.errors),
    }
}

pub(super) fn whereabouts(overrides: &Overrides, env: &Env) -> Result<Whereabouts, ConfigErrors> {
    let (mut check, file, _) = Check::read(overrides, env)?;
    let state_dir_in_file = file.ledger.state_dir.is_some();
    let ledger = check.ledger(file.ledger);
    let state_dir = ledger.as_ref().map(|ledger| ledger.state_dir.as_path());
    let listen = check.listen(file.listen, state_dir);
    let caps = check.caps(file.caps);
    let (apps, app_places) = check.apps(file.apps, Tokens::LeftAlone);
    match ledger {
        Some(ledger) if check.errors.is_empty() => Ok(Whereabouts {
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
        _ => Err(check.errors),
    }
}

pub(super) fn key_place(overrides: &Overrides, env: &Env) -> Result<KeyPlace, ConfigErrors> {
    let (mut check, file, _) = Check::read(overrides, env)?;
    let source = check.key_source(file.upstream.api_key_file);
    if !check.errors.is_empty() {
        return Err(check.errors);
    }
    Ok(match source {
        Some((_, KeySource::File(path))) => KeyPlace::File(path),
        Some((_, KeySource::Variable(_))) => KeyPlace::Variable,
        None => KeyPlace::Nowhere,
    })
}

// === impl Check ===

impl<'a> Check<'a> {
    /// Reads the file, when one is named. A file that cannot be read or is no TOML ends the search:
    /// what would be missing then is perhaps in it.
    fn read(
        overrides: &'a Overrides,
        env: &'a Env,
    ) -> Result<(Self, ConfigFile, Option<PathBuf>), ConfigErrors> {
        let path = overrides
            .config
            .clone()
            .or_else(|| env.path(env::BURSAR_CONFIG));
        let mut errors = ConfigErrors::new(path.as_deref());
        let file = match path.as_deref().map(read_file) {
            None => Some(ConfigFile::default()),
            Some(Ok(text)) => ConfigFile::read(&text, &mut errors),
            Some(Err(why)) => {
                errors.push_unreadable(&why);
                None
            }
        };
        let Some(file) = file else {
            return Err(errors);
        };
        let file_dir = path
            .as_deref()
            .and_then(Path::parent)
            .map(Path::to_owned)
            .unwrap_or_default();
        let check = Self {
            overrides,
            env,
            file_dir,
            errors,
            warnings: Vec::new(),
        };
        Ok((check, file, path))
    }

    fn names(&mut self, given: Option<At<String>>) -> Option<ServiceNames> {
        let given = given.unwrap_or_else(|| At {
            value: "service".to_owned(),
            place: Place::key("", "service_name"),
        });
        ServiceNames::new(&given.value)
            .map_err(|error| self.refuse(&given.place, format!("{:?}: {error}", given.value)))
            .ok()
    }

    fn base_url(&mut self, in_file: Option<At<String>>) -> Option<BaseUrl> {
        let from_flag = self
            .overrides
            .upstream
            .clone()
            .map(|value| At::named("--upstream", value));
        let from_env = self.variable(env::BURSAR_UPSTREAM);
        let Some(given) = from_flag.or(from_env).or(in_file) else {
            // One that was given and could not be taken was told already.
            if self.errors.has_named(&Place::key("upstream", "base_url")) {
                return None;
            }
            self.refuse(
                &Place::default(),
                "no upstream: set base_url in [upstream] of the configuration file, BURSAR_UPSTREAM, or --upstream URL",
            );
            return None;
        };
        BaseUrl::parse(&given.value)
            .map_err(|why| self.refuse(&given.place, why))
            .ok()
    }

    /// The first of: flag, `BURSAR_API_KEY_FILE`, `BURSAR_API_KEY`, file, systemd credential. The
    /// first that is given counts, readable or not: a key that was meant is never replaced.
    fn key_source(&mut self, in_file: Option<At<String>>) -> Option<(Place, KeySource<'a>)> {
        let credential_dir = self.env.path(env::CREDENTIALS_DIRECTORY);
        if let Some(path) = &self.overrides.api_key_file {
            return Some((
                Place::named("--api-key-file"),
                KeySource::File(path.clone()),
            ));
        }
        if let Some(path) = self.env.path(env::BURSAR_API_KEY_FILE) {
            return Some((
                Place::named(env::BURSAR_API_KEY_FILE),
                KeySource::File(path),
            ));
        }
        if let Some(text) = self.env.get(env::BURSAR_API_KEY) {
            return Some((Place::named(env::BURSAR_API_KEY), KeySource::Variable(text)));
        }
        if let Some(given) = in_file {
            let place = given.place.clone();
            return Some((place, KeySource::File(self.path(given))));
        }
        let path = credential_dir.map(|directory| directory.join("api-key"));
        let path = path.filter(|path| path.exists())?;
        let place = Place::named("$CREDENTIALS_DIRECTORY/api-key");
        Some((place, KeySource::File(path)))
    }

    fn api_key(&mut self, in_file: Option<At<String>>) -> Option<ApiKey> {
        let (place, key): (Place, Result<ApiKey, KeyError>) = match self.key_source(in_file) {
            Some((place, KeySource::File(path))) => {
                let key = ApiKey::from_file(&path, key_file_kind(self.env, &path));
                (place, key)
            }
            Some((place, KeySource::Variable(text))) => {
                self.warnings.push(format!(
                    "the key came in {}, where root and everything that started this process can read it as long as it runs; a file (--api-key-file) or systemd's credential keeps it closer",
                    env::BURSAR_API_KEY
                ));
                (place, ApiKey::from_text(text.as_encoded_bytes()))
            }
            // One that was given and could not be taken was told already.
            None if self
                .errors
                .has_named(&Place::key("upstream", "api_key_file")) =>
            {
                return None;
            }
            None => {
                self.refuse(
                    &Place::default(),
                    "no API key: put it into a file and set api_key_file in [upstream] of the configuration file, BURSAR_API_KEY_FILE, or --api-key-file FILE",
                );
                return None;
            }
        };
        key.map_err(|error| self.refuse(&place, error.to_string()))
            .ok()
    }

    /// A file of certificates, each one that can be trusted: of an empty file the connector makes
    /// that no server is trusted, and with one it cannot read it ends the whole process.
    fn ca_file(&mut self, given: At<String>) -> Option<PathBuf> {
        let place = given.place.clone();
        let path = self.path(given);
        if self.errors.has(&place) {
            return None;
        }
        let why = match authorities(&path) {
            Ok(()) => return Some(path),
            Err(why) => why,
        };
        self.refuse(&place, format!("{} {why}", path.display()));
        None
    }

    fn ledger(&mut self, table: LedgerTable) -> Option<Ledger> {
        let on_failure = self.word(
            table.on_failure,
            OnFailure::Refuse,
            OnFailure::ALL,
            OnFailure::as_str,
        );
        let durability = self.word(
            table.durability,
            Durability::Power,
            Durability::ALL,
            Durability::as_str,
        );
        let retention = self.retention(table.retention_days);
        let state_dir = self.state_dir(table.state_dir)?;
        Some(Ledger {
            state_dir,
            durability,
            on_failure,
            retention,
        })
    }

    /// Whole days; 0 is for ever. A key's amount may come for a day, so one day is too short.
    fn retention(&mut self, days: Option<At<i64>>) -> Option<Duration> {
        let place = days.as_ref().map(|days| days.place.clone());
        let days = self.number("ledger", "retention_days", days, 0, 0..=RETENTION_DAYS_MAX);
        if let (1, Some(place)) = (days, place) {
            self.refuse(
                &place,
                "takes 0 (for ever) or 2 and more, not 1: a price may come a day later",
            );
        }
        (days > 0).then(|| Duration::from_secs(days * 24 * 60 * 60))
    }

    fn state_dir(&mut self, in_file: Option<At<String>>) -> Option<PathBuf> {
        let from_flag = self.overrides.state_dir.clone();
        let from_env = self.env.path(env::BURSAR_STATE_DIR);
        let given = from_flag
            .or(from_env)
            .or_else(|| in_file.map(|given| self.path(given)));
        let from_systemd = || {
            let list = self.env.get(env::STATE_DIRECTORY)?.to_string_lossy();
            let path = list.split(':').next().map(PathBuf::from)?;
            // With DynamicUser= this path is systemd's own link to the directory, and the ledger
            // follows no links.
            Some(std::fs::canonicalize(&path).unwrap_or(path))
        };
        let from_xdg = || {
            let base = self.env.path(env::XDG_STATE_HOME)?;
            base.is_absolute().then(|| base.join("bursar"))
        };
        let from_home = || Some(self.env.path(env::HOME)?.join(".local/state/bursar"));
        let found = given
            .or_else(from_systemd)
            .or_else(from_xdg)
            .or_else(from_home)
            .and_then(|path| std::path::absolute(path).ok());
        if found.is_none() {
            self.refuse(
                &Place::default(),
                "no state directory: set state_dir in [ledger] of the configuration file, BURSAR_STATE_DIR, or --state-dir DIR",
            );
        }
        found
    }

    fn retry(&mut self, file: RetryTable) -> Retry {
        let attempts = self.number("retry", "attempts", file.attempts, 3, 1..=10);
        let cap_place = file.cap_ms.as_ref().map(|given| given.place.clone());
        let base_place = file.base_ms.as_ref().map(|given| given.place.clone());
        let base = self.number("retry", "base_ms", file.base_ms, 500, 1..=60_000);
        let cap = self.number("retry", "cap_ms", file.cap_ms, 8000, 1..=600_000);
        if let Some(place) = cap_place.or(base_place).filter(|_| cap < base) {
            self.refuse(
                &place,
                format!("cap_ms ({cap}) must not be below base_ms ({base})"),
            );
        }
        Retry {
            attempts: u32::try_from(attempts).unwrap_or(1),
            base: Duration::from_millis(base),
            cap: Duration::from_millis(cap),
            adopt: self.word(file.adopt, Adopt::Always, Adopt::ALL, Adopt::as_str),
            adopt_window: self.seconds(
                "retry",
                "adopt_window_s",
                file.adopt_window_s,
                900,
                1..=82_800,
            ),
        }
    }

    fn streams(&mut self, file: StreamsTable) -> Streams {
        Streams {
            on_disconnect: self.word(
                file.on_disconnect,
                OnDisconnect::Drain,
                OnDisconnect::ALL,
                OnDisconnect::as_str,
            ),
            drain_timeout: self.seconds(
                "streams",
                "drain_timeout_s",
                file.drain_timeout_s,
                120,
                1..=3600,
            ),
            agent_receipts: self.word(
                file.agent_receipts,
                AgentReceipts::Unreported,
                AgentReceipts::ALL,
                AgentReceipts::as_str,
            ),
        }
    }

    fn aliases(&mut self, given: Vec<(String, At<String>)>) -> Aliases {
        let mut aliases = Aliases::default();
        for (asked, sent) in given {
            if let Err(why) = aliases.add(asked, sent.value) {
                self.refuse(&sent.place, why);
            }
        }
        aliases
    }

    fn log(&mut self, file: LogTable) -> Log {
        Log {
            format: self.word(
                file.format,
                LogFormat::Text,
                LogFormat::ALL,
                LogFormat::as_str,
            ),
            level: self.word(file.level, LogLevel::Info, LogLevel::ALL, LogLevel::as_str),
        }
    }
}

/// Reads a PEM file as the connector will, which ends the process at the first part it does not take.
fn authorities(path: &Path) -> Result<(), String> {
    let parts = <(SectionKind, Vec<u8>)>::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| format!("cannot be read as PEM: {error}"))?;
    if parts.is_empty() {
        let wanted = "it has to be a PEM file of certificate authorities";
        return Err(format!("holds no certificate; {wanted}"));
    }
    let mut trusted = RootCertStore::empty();
    for (number, (kind, bytes)) in (1..).zip(parts) {
        if kind != SectionKind::Certificate {
            return Err(format!(
                "holds something else than certificates (part {number}); leave the certificates alone in it"
            ));
        }
        trusted
            .add(CertificateDer::from(bytes))
            .map_err(|error| format!("cannot be used: part {number} is no certificate: {error}"))?;
    }
    Ok(())
}

fn read_file(path: &Path) -> Result<String, String> {
    let read = || -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        open_to_read(path)?
            .take(FILE_BYTES_MAX + 1)
            .read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().map_err(|error| format!("cannot be read: {error}"))?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > FILE_BYTES_MAX) {
        return Err(format!("is larger than {FILE_BYTES_MAX} bytes"));
    }
    String::from_utf8(bytes).map_err(|_| "is not valid UTF-8".to_owned())
}
