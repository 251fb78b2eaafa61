//! What the checks judge: everything that can be learned without spending, writing or starting anything.
//!
//! Beside a running daemon its own words come first: its addresses, its service and its key are those that count.
//! Without one they are those of the configuration, of which the next daemon would start.
//!
//! Promise: what cannot be learned is kept with the reason; no question waits without a bound.

use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Access, access, statvfs};
use rustix::process::geteuid;

use super::ports::{self, Port};
use super::service::{self, ServiceProbe};
use super::unit::{self, UnitKeys, Units};
use crate::admin::RECEIPTS_MAX;
use crate::admin::documents::StatusDocument;
use crate::cli::client::Client;
use crate::cli::daemon::{Question, ask};
use crate::cli::error::CliError;
use crate::cli::locate::{SYSTEM_STATE_DIR, SourceArgs, UNITS_KEY, with_units_key};
use crate::cli::source::Source;
use crate::clock::SystemClock;
use crate::config::{
    ApiKey, BaseUrl, Config, ConfigErrors, Env, ListenAddr, Overrides, Whereabouts, users_folder,
};
use crate::ledger::query::{EntryView, Filter};
use crate::ledger::state_dir::Directory;
use crate::server::itself;

/// Largest `/metrics` that is read.
const METRICS_BYTES_MAX: usize = 16 << 20;

/// How far two clocks may be apart, and how far ahead an entry may be.
pub const CLOCK_SLACK_MS: u64 = 60_000;

/// How far the clock may be from that of the fleet's database.
const FLEET_CLOCK_SLACK_MS: u64 = 5_000;

/// Stands in for a key where the rest of the configuration is looked at. It is sent nowhere.
const NO_KEY: &[u8] = b"none";

/// What the command line said.
pub struct DoctorSources<'a> {
    pub overrides: Overrides,
    pub source: &'a SourceArgs,
}

/// The daemon.
#[derive(Clone, Debug)]
pub enum Daemon {
    /// It answers, at this address.
    Runs(Box<StatusDocument>, ListenAddr),
    /// One was named, and does not answer.
    Silent(String),
    /// This process has the ledger, and does not answer.
    Hangs(u32),
    /// None has the ledger.
    None,
}

/// What the next daemon would start with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Configuration {
    /// Without a mistake. The file, where it is known.
    Sound(Option<PathBuf>),
    /// What is wrong, line by line.
    Mistaken(Vec<String>),
    /// A daemon was named by its address alone.
    Unknown,
}

/// The state directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateDirectory {
    Sound,
    /// It is not there, and can be made.
    ToBeMade,
    Unsound(String),
    /// This user may not look at it.
    Hidden,
}

/// The commits of a daemon's journal since its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commits {
    pub count: u32,
    pub took: Duration,
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Facts {
    pub now_ms: u64,
    pub daemon: Daemon,
    pub configuration: Configuration,
    pub base_url: Option<BaseUrl>,
    pub ports: Vec<(ListenAddr, Port)>,
    /// The service is bursar itself: in words.
    pub itself: Option<String>,
    pub service: ServiceProbe,
    pub state_dir: PathBuf,
    pub place: StateDirectory,
    /// Bytes that are free where the ledger is, or why that is not known.
    pub free_bytes: Result<u64, String>,
    pub commits: Option<Commits>,
    pub units: Units,
    /// The newest entries, oldest first, or why they cannot be read.
    pub entries: Result<Vec<EntryView>, String>,
}

/// What the configuration comes to, where no daemon runs.
struct Configured {
    /// What is known of it without a service and a key.
    whereabouts: Result<Whereabouts, ConfigErrors>,
    /// With a key that stands in for the real one.
    config: Result<Config, ConfigErrors>,
    /// With the real one.
    with_key: Result<Config, ConfigErrors>,
}

// === impl Daemon ===

impl Daemon {
    /// How far its clock is from that of the fleet's database, where that is too far.
    pub fn clock_off(&self) -> Option<String> {
        let Self::Runs(status, _) = self else {
            return None;
        };
        let ahead_ms = status.fleet.as_ref()?.clock_ahead_ms?;
        let side = if ahead_ms > 0 { "ahead of" } else { "behind" };
        (ahead_ms.unsigned_abs() > FLEET_CLOCK_SLACK_MS).then(|| {
            format!(
                "{} s {side} that of the fleet's database: entries are counted at the time of this machine's own",
                ahead_ms.unsigned_abs() / 1000
            )
        })
    }
}

// === impl Facts ===

impl Facts {
    pub async fn gather(asked: &DoctorSources<'_>) -> Result<Self, CliError> {
        let configured = Configured::read(asked);
        let (source, unread) = match asked.source.find().await {
            Ok(source) => (Some(source), String::new()),
            Err(error @ CliError::Usage(_)) => return Err(error),
            Err(_) if !configured.has_ledger() => (None, "there is no ledger yet".to_owned()),
            Err(error) => (None, error.to_string()),
        };
        let now_ms = SystemClock::shared().wall_ms();
        let users = users_folder(&Env::from_process());
        let keys = UnitKeys {
            system: Path::new(UNITS_KEY),
            own: users.map(|folder| folder.join("api-key")),
        };
        let units = unit::ask(&keys).await;
        let entries = match &source {
            Some(source) => newest(source).await,
            None => Err(unread),
        };
        let is_named = asked.source.names_daemon();
        if let Some(Source::Daemon(client)) = &source {
            let answered: Result<StatusDocument, CliError> =
                ask(client, &Question::new("/api/status")).await;
            match answered {
                Ok(status) => {
                    return Ok(
                        Self::beside(client, status, configured, is_named, units, entries).await,
                    );
                }
                Err(error) => {
                    let facts = Self::alone(source.as_ref(), configured, units, entries).await;
                    return Ok(Self {
                        now_ms,
                        daemon: Daemon::Silent(error.to_string()),
                        ..facts
                    });
                }
            }
        }
        Ok(Self::alone(source.as_ref(), configured, units, entries).await)
    }

    async fn beside(
        client: &Client,
        status: StatusDocument,
        configured: Configured,
        is_named: bool,
        units: Units,
        entries: Result<Vec<EntryView>, String>,
    ) -> Self {
        let addresses = status.proxy.iter();
        let proxy: Vec<ListenAddr> = addresses
            .filter_map(|address| ListenAddr::parse(address).ok())
            .collect();
        let mut ports = Vec::new();
        for address in &proxy {
            ports.push((address.clone(), ports::of_daemon(address).await));
        }
        let base_url = BaseUrl::parse(&status.upstream).ok();
        let own = [proxy, vec![client.address().clone()]].concat();
        let service = match (service::by_daemon(client).await, &configured.with_key) {
            // What this command has is asked with where the daemon's question showed nothing of the key.
            (ServiceProbe::Unasked(_) | ServiceProbe::Answered(_), Ok(config))
                if Some(&config.upstream.base_url) == base_url.as_ref() =>
            {
                service::by_itself(config.clone()).await
            }
            (known, _) => known,
        };
        let state_dir = PathBuf::from(&status.ledger.state_dir);
        Self {
            now_ms: SystemClock::shared().wall_ms(),
            configuration: match is_named {
                true => Configuration::Unknown,
                false => configured.beside(&state_dir),
            },
            itself: itself_in(base_url.as_ref(), &own),
            base_url,
            ports,
            service,
            place: place(&state_dir, true),
            free_bytes: free_bytes(&state_dir),
            state_dir,
            commits: commits(client).await,
            units,
            entries,
            daemon: Daemon::Runs(Box::new(status), client.address().clone()),
        }
    }

    async fn alone(
        source: Option<&Source>,
        configured: Configured,
        units: Units,
        entries: Result<Vec<EntryView>, String>,
    ) -> Self {
        let config = configured.config.as_ref().ok();
        let base_url = config.map(|config| config.upstream.base_url.clone());
        let place_of = configured.whereabouts.as_ref().ok();
        let addresses = place_of.map(|place| [place.proxy.clone(), place.admin.clone()].concat());
        let addresses = addresses.unwrap_or_default();
        let is_default = config.is_none_or(|config| config.listen.proxy_is_default);
        let state_dir = match (source, place_of) {
            (Some(Source::Journal(state_dir)), _) => state_dir.clone(),
            (_, Some(place)) => place.state_dir.clone(),
            (_, None) => PathBuf::new(),
        };
        let ports = addresses.iter();
        // The socket in the state directory is made at the start.
        let ports = ports.filter(|address| !address.is_below(&state_dir));
        let ports = ports.map(|address| (address.clone(), ports::to_listen_on(address)));
        let mut ports: Vec<(ListenAddr, Port)> = ports.collect();
        // As at the start: of the default addresses one whose family the machine lacks is left out.
        if is_default && ports.iter().any(|(_, port)| *port == Port::Free) {
            ports.retain(|(_, port)| *port != Port::Missing);
        }
        let itself = itself_in(base_url.as_ref(), &addresses);
        let service = match (&itself, &configured.config, configured.with_key) {
            (Some(_), _, _) => ServiceProbe::Unasked("it would be bursar itself".to_owned()),
            (None, Err(_), _) => ServiceProbe::Unasked("the configuration has mistakes".to_owned()),
            (None, Ok(_), Err(errors)) => ServiceProbe::NoKey(errors.lines().join("; ")),
            (None, Ok(_), Ok(config)) => service::by_itself(config).await,
        };
        let daemon = match holder(&state_dir) {
            Some(pid) => Daemon::Hangs(pid),
            None => Daemon::None,
        };
        Self {
            now_ms: SystemClock::shared().wall_ms(),
            daemon,
            configuration: match configured.config {
                Ok(config) => Configuration::Sound(config.path),
                Err(errors) => Configuration::Mistaken(errors.lines()),
            },
            base_url,
            ports,
            itself,
            service,
            place: place(&state_dir, false),
            free_bytes: free_bytes(&state_dir),
            state_dir,
            commits: None,
            units,
            entries,
        }
    }
}

// === impl Configured ===

impl Configured {
    fn read(asked: &DoctorSources<'_>) -> Self {
        let env = Env::from_process();
        let overrides = with_units_key(asked.overrides.clone(), &env, Path::new(UNITS_KEY));
        let whereabouts = Whereabouts::find(&overrides, &env);
        let with_key = Config::load(&overrides, &env);
        let config = match (&with_key, ApiKey::from_text(NO_KEY)) {
            (Ok(config), _) => Ok(config.clone()),
            (Err(_), Ok(none)) => Config::load_with(&overrides, &env, none),
            (Err(errors), Err(_)) => Err(errors.clone()),
        };
        Self {
            whereabouts,
            config,
            with_key,
        }
    }

    /// What the next start would find in the file. The running daemon may have got a service and a key by its flags;
    /// files that the configuration names, those of tokens, may be for the daemon's user alone.
    fn beside(&self, state_dir: &Path) -> Configuration {
        let (file, mistakes) = match (&self.whereabouts, &self.config) {
            (Err(errors), _) => return Configuration::Mistaken(errors.lines()),
            (Ok(place), Err(errors)) if is_own(state_dir) => (&place.path, errors.lines_of_file()),
            (Ok(place), _) => (&place.path, Vec::new()),
        };
        match mistakes.is_empty() {
            true => Configuration::Sound(file.clone()),
            false => Configuration::Mistaken(mistakes),
        }
    }

    fn has_ledger(&self) -> bool {
        let place = self.whereabouts.as_ref().ok();
        place.is_some_and(|place| place.state_dir.join("journal").exists())
    }
}

async fn newest(source: &Source) -> Result<Vec<EntryView>, String> {
    let listed = source.receipts(&Filter::default(), RECEIPTS_MAX).await;
    listed
        .map(|listing| listing.entries)
        .map_err(|error| error.to_string())
}

fn itself_in(base_url: Option<&BaseUrl>, own: &[ListenAddr]) -> Option<String> {
    let base_url = base_url?;
    let found = itself::check(base_url, own);
    found
        .err()
        .map(|_| format!("{base_url} leads to an address of bursar's own"))
}

fn is_own(state_dir: &Path) -> bool {
    let found = std::fs::metadata(state_dir);
    found.is_ok_and(|found| found.uid() == geteuid().as_raw())
}

/// The process that has the ledger.
fn holder(state_dir: &Path) -> Option<u32> {
    Directory::open_to_read(state_dir).ok()?.holder()
}

/// `in_use`: a daemon has it, which looked at it when it started.
fn place(state_dir: &Path, in_use: bool) -> StateDirectory {
    let found = match std::fs::metadata(state_dir) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return StateDirectory::Hidden,
        Err(error) if error.kind() == ErrorKind::NotFound => return to_be_made(state_dir),
        Err(error) => return StateDirectory::Unsound(format!("{}: {error}", state_dir.display())),
    };
    let own = geteuid();
    let is_services = own.is_root() && state_dir == Path::new(SYSTEM_STATE_DIR);
    if found.uid() == own.as_raw() && !is_services {
        // As a start opens it.
        if let Err(error) = Directory::open(state_dir) {
            return StateDirectory::Unsound(error.to_string());
        }
        return match access(state_dir, Access::WRITE_OK) {
            Ok(()) => StateDirectory::Sound,
            Err(error) => StateDirectory::Unsound(format!("{}: {error}", state_dir.display())),
        };
    }
    if found.permissions().mode() & 0o077 != 0 {
        let path = state_dir.display();
        return StateDirectory::Unsound(format!("others may enter {path}; run: chmod 700 {path}"));
    }
    match in_use || is_services {
        true => StateDirectory::Sound,
        false => StateDirectory::Unsound(format!(
            "{} belongs to user {}, and this process runs as {}",
            state_dir.display(),
            found.uid(),
            own.as_raw()
        )),
    }
}

/// Whether this user could make it, where it is not there.
fn to_be_made(state_dir: &Path) -> StateDirectory {
    let Some(above) = existing(state_dir) else {
        return StateDirectory::Hidden;
    };
    match access(above, Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) => StateDirectory::ToBeMade,
        Err(error) => StateDirectory::Unsound(format!(
            "{} cannot be made: {}: {error}",
            state_dir.display(),
            above.display()
        )),
    }
}

/// The folder that is there, it or the nearest above it.
fn existing(path: &Path) -> Option<&Path> {
    path.ancestors().find(|above| above.is_dir())
}

fn free_bytes(state_dir: &Path) -> Result<u64, String> {
    let unknown = || "the place of the ledger may not be looked at".to_owned();
    let place = existing(state_dir).ok_or_else(unknown)?;
    let found = statvfs(place).map_err(|error| format!("{}: {error}", place.display()))?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

/// From the two sums of the daemon's histogram.
async fn commits(client: &Client) -> Option<Commits> {
    let answer = client.get("/metrics").await.ok()?;
    let text = answer.text(METRICS_BYTES_MAX).await.ok()?;
    commits_in(&text)
}

fn commits_in(metrics: &str) -> Option<Commits> {
    let sample = |name: &str| {
        let mut lines = metrics.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
    };
    let seconds: f64 = sample("bursar_journal_commit_seconds_sum")?.parse().ok()?;
    Some(Commits {
        count: sample("bursar_journal_commit_seconds_count")?
            .parse()
            .ok()?,
        took: Duration::try_from_secs_f64(seconds).ok()?,
    })
}

#[cfg(test)]
mod tests;
