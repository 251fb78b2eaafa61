//! Which daemon, or which state directory, a command is about.
//!
//! Readers ask a running daemon or read the journal's files. A change goes to a daemon, over a Unix socket, or
//! into the files of a state directory that no daemon has. What is named goes first: flags, then `BURSAR_ADMIN` and
//! `BURSAR_STATE_DIR`. Else it is the first behind which a daemon answers: the own socket, the system service's
//! socket, and for reading the default address.
//!
//! Promise: a daemon that was named is asked and no other place is looked at; a change is never sent over a port, nor
//! to a socket of another user; what was found at a port is named, and so is a second daemon that answers; a
//! daemon that answers something odd is reported, and never passed by.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::tz::TimeZone;
use rustix::fs::{Access, access};
use rustix::process::geteuid;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::arguments::zone;
use super::client::{ANSWER_DEADLINE, Client, ClientError};
use super::daemon::{ANSWER_BYTES_MAX, Question, ask, document, not_asked};
use super::error::CliError;
use super::output::remark;
use super::source::Source;
use crate::caps::CapsView;
use crate::config::{
    BURSAR_ADMIN, BURSAR_CONFIG, BURSAR_STATE_DIR, Config, Env, KeyPlace, ListenAddr, Overrides,
    Whereabouts,
};

/// How long a reading command waits for a daemon before it reads the files instead.
const LOOK_DEADLINE: Duration = Duration::from_secs(3);

/// How long a second daemon may take to be noticed beside the one that answered.
const SECOND_DEADLINE: Duration = Duration::from_millis(300);

/// Flags that name a ledger's files.
#[derive(Clone, Debug, clap::Args)]
pub struct LedgerArgs {
    /// Configuration file [env: BURSAR_CONFIG]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Directory of the ledger [env: BURSAR_STATE_DIR]
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
}

/// Flags of every reading command.
#[derive(Clone, Debug, clap::Args)]
pub struct SourceArgs {
    #[command(flatten)]
    pub ledger: LedgerArgs,
    /// Address of the daemon to ask, IP:PORT or unix:/PATH [env: BURSAR_ADMIN]
    #[arg(long, value_name = "ADDR")]
    admin: Option<String>,
}

/// The flags as the system service would have them: where nothing names a key, it is that of its unit, if this user
/// may read it. For commands that look, and not for one that spends: that has to be given its key.
pub fn with_units_key(overrides: Overrides, env: &Env, units_key: &Path) -> Overrides {
    let has_none = matches!(Config::key_place(&overrides, env), Ok(KeyPlace::Nowhere));
    if has_none && access(units_key, Access::READ_OK).is_ok() {
        return Overrides {
            api_key_file: Some(units_key.to_owned()),
            ..overrides
        };
    }
    overrides
}

/// The daemon or the files that keep it.
pub enum Keeper {
    Daemon(Client),
    Files(Whereabouts),
}

/// What a command does with what it finds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Right {
    Look,
    Change,
}

/// What the person named.
enum Asked {
    /// This one, by the flag or the variable that is named beside it.
    Daemon(Client, &'static str),
    /// This ledger, by its directory or its configuration.
    Ledger(Whereabouts),
    /// Nothing: whichever is there.
    Any(Whereabouts),
}

/// The ledger of the system service.
pub const SYSTEM_STATE_DIR: &str = "/var/lib/bursar";

/// Where the shipped unit has its credential from.
pub const UNITS_KEY: &str = "/etc/bursar/api-key";

/// Where the system service is, as its units and the package have it.
struct System {
    sockets: Vec<ListenAddr>,
    address: ListenAddr,
    state_dir: PathBuf,
}

// === impl System ===

impl System {
    fn installed() -> Self {
        // `systemd/bursar-admin.socket`, for readers. Where that is not enabled root may enter the directory.
        let mut sockets = vec!["/run/bursar-admin.sock"];
        sockets.extend(geteuid().is_root().then_some("/var/lib/bursar/admin.sock"));
        let sockets = sockets
            .into_iter()
            .map(|path| ListenAddr::Unix(path.into()));
        Self {
            sockets: sockets.collect(),
            address: ListenAddr::DEFAULT_ADMIN,
            state_dir: SYSTEM_STATE_DIR.into(),
        }
    }
}

// === impl Asked ===

impl Asked {
    fn place(&self) -> Option<&Whereabouts> {
        match self {
            Self::Daemon(..) => None,
            Self::Ledger(place) | Self::Any(place) => Some(place),
        }
    }

    /// Whether it is one of the daemon's whose ledger is meant first.
    fn is_own(&self, address: &ListenAddr) -> bool {
        self.place()
            .is_some_and(|place| place.admin.contains(address))
    }

    /// The sockets at which the daemon may answer, the own one first.
    fn sockets(&self, system: &System) -> Vec<ListenAddr> {
        let own = self.place().into_iter().flat_map(|place| &place.admin);
        let own = own.filter(|address| matches!(address, ListenAddr::Unix(_)));
        let system: &[ListenAddr] = match self {
            Self::Any(_) => &system.sockets,
            Self::Daemon(..) | Self::Ledger(_) => &[],
        };
        own.chain(system).cloned().collect()
    }

    /// The ports at which it may answer a reader. Where one ledger is meant there are none: another's daemon may be
    /// at its port.
    fn ports(&self, system: &System) -> Vec<ListenAddr> {
        let Self::Any(place) = self else {
            return Vec::new();
        };
        let own = place.admin.iter();
        let own = own.filter(|address| matches!(address, ListenAddr::Tcp(_)));
        let mut ports: Vec<ListenAddr> = own.cloned().collect();
        if !ports.contains(&system.address) {
            ports.push(system.address.clone());
        }
        ports
    }
}

// === impl LedgerArgs ===

impl LedgerArgs {
    pub fn overrides(&self) -> Overrides {
        Overrides {
            config: self.config.clone(),
            state_dir: self.state_dir.clone(),
            ..Overrides::default()
        }
    }

    pub fn whereabouts(&self) -> Result<Whereabouts, CliError> {
        Ok(Whereabouts::find(&self.overrides(), &Env::from_process())?)
    }

    /// The place of a ledger that is there.
    pub async fn found(&self) -> Result<Whereabouts, CliError> {
        let place = self.files(self.whereabouts()?).await?;
        must_have_ledger(&place.state_dir)?;
        Ok(place)
    }

    fn is_named_by_flag(&self) -> bool {
        self.config.is_some() || self.state_dir.is_some()
    }

    /// The place whose files are read or changed. An error where its ledger was not named and a daemon of another
    /// one answers on the port: the system service's, while its user's own was found. What was read or
    /// changed here would be nothing to that daemon.
    async fn files(&self, place: Whereabouts) -> Result<Whereabouts, CliError> {
        let is_named =
            self.state_dir.is_some() || Env::from_process().path(BURSAR_STATE_DIR).is_some();
        if !is_named {
            must_be_its_daemons(&place, &ListenAddr::DEFAULT_ADMIN).await?;
        }
        Ok(place)
    }
}

// === impl SourceArgs ===

impl SourceArgs {
    /// The daemon that was named, else the first that answers, else the files.
    pub async fn find(&self) -> Result<Source, CliError> {
        let (asked, system) = (self.asked()?, System::installed());
        match answering(&asked, &system).await {
            Some(client) => Ok(Source::Daemon(client)),
            None => self.journal(&asked, &system).await,
        }
    }

    /// The daemon that was named, else the first whose socket answers: one that other programs may be sent to. Behind
    /// a port any user of this machine may listen.
    pub async fn find_trusted(&self) -> Result<Option<Client>, CliError> {
        match self.asked()? {
            Asked::Daemon(client, _) => Ok(Some(client)),
            asked => {
                let sockets = asked.sockets(&System::installed());
                Ok(first_that_answers(&asked, &sockets).await?)
            }
        }
    }

    /// The answer to one question that has to be quick, of the daemon that was named, else of the first that gives
    /// one. No journal is read, and no second daemon looked for. `None`: no daemon is there.
    pub async fn ask_quickly<T: DeserializeOwned>(
        &self,
        question: &Question,
        within: Duration,
    ) -> Result<Option<T>, CliError> {
        let (asked, system) = (self.asked()?, System::installed());
        if let Asked::Daemon(client, _) = &asked {
            let client = client.clone().answering_within(within);
            return match client.get(question.path()).await {
                Err(error) if error.means_no_daemon() => Ok(None),
                answer => document(&client, answer?).await.map(Some),
            };
        }
        for address in [asked.sockets(&system), asked.ports(&system)].concat() {
            let is_own = asked.is_own(&address);
            let client = match address {
                ListenAddr::Unix(_) => socket_client(address, within),
                ListenAddr::Tcp(_) => Client::new(address).answering_within(within),
            };
            match client.get(question.path()).await {
                Ok(answer) => return document(&client, answer).await.map(Some),
                // The figures of another one would be taken for this one's.
                Err(error) if is_own && !error.means_no_daemon() => return Err(error.into()),
                Err(_) => {}
            }
        }
        Ok(None)
    }

    /// For long listings and for following: the files, unless a daemon was named or it has files that cannot be
    /// read here.
    pub async fn find_files(&self) -> Result<Source, CliError> {
        let (asked, system) = (self.asked()?, System::installed());
        if !matches!(asked, Asked::Ledger(_))
            && let Some(client) = answering(&asked, &system).await
            && !asked.is_own(client.address())
        {
            return Ok(Source::Daemon(client));
        }
        self.journal(&asked, &system).await
    }

    /// The zone that was named, else that of the caps, so that a day of each command is one of theirs; else this
    /// machine's.
    pub async fn zone(&self, source: &Source, named: Option<&str>) -> Result<TimeZone, CliError> {
        let of_caps = match source {
            _ if named.is_some() => None,
            Source::Daemon(client) => {
                let view: CapsView = ask(client, &Question::new("/api/caps")).await?;
                view.time_zone.and_then(|name| TimeZone::get(&name).ok())
            }
            Source::Journal(_) => Some(self.ledger.whereabouts()?.caps.time_zone),
        };
        match of_caps {
            Some(zone) if !zone.is_unknown() => Ok(zone),
            _ => zone(named),
        }
    }

    /// The files of a ledger that is there: the own one's, else the system service's where this user may read them.
    async fn journal(&self, asked: &Asked, system: &System) -> Result<Source, CliError> {
        if let Asked::Any(place) = asked
            && !has_journal(&place.state_dir)
            && has_journal(&system.state_dir)
        {
            let state_dir = system.state_dir.clone();
            remark(format_args!(
                "bursar: read from the files of {}",
                state_dir.display()
            ));
            return Ok(Source::Journal(state_dir));
        }
        Ok(Source::Journal(self.ledger.found().await?.state_dir))
    }

    /// For orders: the daemon that takes them, else the state directory.
    pub async fn find_to_order(&self) -> Result<Source, CliError> {
        match self.keeper(Right::Change).await? {
            Keeper::Daemon(daemon) => Ok(Source::Daemon(daemon)),
            // No process would carry out an order for a directory that is not in use.
            Keeper::Files(place) => {
                must_have_ledger(&place.state_dir)?;
                Ok(Source::Journal(place.state_dir))
            }
        }
    }

    /// The daemon that was named, else the one whose socket answers, for a reader one at a port, else the files. A
    /// daemon that is there and does not answer is an error: it must not be taken for none.
    pub async fn keeper(&self, right: Right) -> Result<Keeper, CliError> {
        let (asked, system) = (self.asked()?, System::installed());
        let place = match &asked {
            Asked::Daemon(daemon, by) => {
                let address = daemon.address();
                if right == Right::Change && matches!(address, ListenAddr::Tcp(_)) {
                    return Err(CliError::usage(format_args!(
                        "{by}: {address} is a port, and changes need the daemon's socket: unix:/…/admin.sock, or \
                         --state-dir DIR"
                    )));
                }
                return Ok(Keeper::Daemon(daemon.clone()));
            }
            Asked::Ledger(place) | Asked::Any(place) => place,
        };
        for address in asked.sockets(&system) {
            // A user who may not enter the system service's socket can still read elsewhere. A change would go into
            // a ledger that this daemon does not have, unless the configuration names that ledger.
            let is_passed_by =
                !asked.is_own(&address) && (right == Right::Look || place.state_dir_in_file);
            let daemon = socket_client(address, ANSWER_DEADLINE);
            match daemon.get("/api/apps").await {
                Ok(answer) if answer.status.is_success() => return Ok(Keeper::Daemon(daemon)),
                Ok(answer) => {
                    return Err(CliError::Failed(format!(
                        "the daemon at {} answered {}",
                        daemon.address(),
                        answer.status
                    )));
                }
                // No daemon: the files are ours if the lock is.
                Err(error) if error.means_no_daemon() => {}
                Err(error) if is_passed_by && error.means_forbidden() => {}
                Err(error) => return Err(not_asked(error, &place.state_dir)),
            }
        }
        if right == Right::Look {
            for address in asked.ports(&system) {
                let daemon = Client::new(address).answering_within(LOOK_DEADLINE);
                if ledger_of(&daemon).await.is_some() {
                    remark(format_args!(
                        "bursar: asked the daemon at {}",
                        daemon.address()
                    ));
                    return Ok(Keeper::Daemon(daemon));
                }
            }
        }
        Ok(Keeper::Files(self.ledger.files(place.clone()).await?))
    }

    /// Whether a daemon was named by its address: its configuration is not known then.
    pub fn names_daemon(&self) -> bool {
        matches!(self.asked(), Ok(Asked::Daemon(..)))
    }

    fn asked(&self) -> Result<Asked, CliError> {
        let env = Env::from_process();
        let by_flag = self.ledger.is_named_by_flag();
        let by_variable = || env.get(BURSAR_ADMIN).filter(|_| !by_flag);
        let address = match &self.admin {
            Some(address) => Some(("--admin", address.clone())),
            None => {
                by_variable().map(|address| (BURSAR_ADMIN, address.to_string_lossy().into_owned()))
            }
        };
        if let Some((by, address)) = address {
            return Ok(Asked::Daemon(named_client(by, &address)?, by));
        }
        let place = self.ledger.whereabouts()?;
        let is_named = [BURSAR_STATE_DIR, BURSAR_CONFIG]
            .iter()
            .any(|name| env.get(name).is_some());
        Ok(match by_flag || is_named {
            true => Asked::Ledger(place),
            false => Asked::Any(place),
        })
    }
}

/// The daemon of `--admin` or of the variable.
fn named_client(by: &str, address: &str) -> Result<Client, CliError> {
    let bare = address.strip_prefix("http://").unwrap_or(address);
    let bare = bare.trim_end_matches('/');
    let numeric = bare
        .strip_prefix("localhost:")
        .map(|port| format!("127.0.0.1:{port}"));
    let address = ListenAddr::parse(numeric.as_deref().unwrap_or(bare))
        .map_err(|why| CliError::usage(format_args!("{by}: {why}")))?;
    if !address.is_local() {
        return Err(CliError::usage(format_args!(
            "{by}: {address} is not a loopback address; the admin listener is for its own machine"
        )));
    }
    Ok(match address {
        ListenAddr::Unix(_) => socket_client(address, ANSWER_DEADLINE),
        ListenAddr::Tcp(_) => Client::new(address).answering_within(ANSWER_DEADLINE),
    })
}

/// Speaks to a socket of root's (systemd opened it, or root's daemon), of this user's own, or, for root, of the user
/// whose directory it lies in: that of the system service, which exists only while it runs.
fn socket_client(address: ListenAddr, deadline: Duration) -> Client {
    let own = geteuid();
    let mut users = vec![0, own.as_raw()];
    if let (true, ListenAddr::Unix(path)) = (own.is_root(), &address) {
        let directory = path.parent().map(std::fs::metadata);
        users.extend(directory.and_then(Result::ok).map(|found| found.uid()));
    }
    Client::new(address)
        .answering_within(deadline)
        .of_users(users)
}

/// The daemon that was named, else the first that answers a reader. One of the own ledger that hangs is reported: its
/// files are there.
async fn answering(asked: &Asked, system: &System) -> Option<Client> {
    if let Asked::Daemon(client, _) = asked {
        return Some(client.clone());
    }
    let places = [asked.sockets(system), asked.ports(system)].concat();
    first_that_answers(asked, &places)
        .await
        .unwrap_or_else(|silence| {
            remark(format_args!(
                "bursar: {silence}; this is read from its files"
            ));
            None
        })
}

/// The first daemon that answers at these addresses. One that was found at a port is named, and so is a second
/// one. An error: the own daemon is there and does not answer.
async fn first_that_answers(
    asked: &Asked,
    addresses: &[ListenAddr],
) -> Result<Option<Client>, ClientError> {
    let mut found: Option<(Client, String)> = None;
    for address in addresses {
        let deadline = match found {
            Some(_) => SECOND_DEADLINE,
            None => LOOK_DEADLINE,
        };
        let client = match address {
            ListenAddr::Unix(_) => socket_client(address.clone(), deadline),
            ListenAddr::Tcp(_) => Client::new(address.clone()).answering_within(deadline),
        };
        match (client.get("/api/status").await, &found) {
            (Ok(answer), _) if !answer.status.is_success() => {}
            (Ok(answer), None) => {
                // One of another release may not say which ledger it has: it is a daemon all the same.
                let ledger = answer.json(ANSWER_BYTES_MAX).await;
                let ledger = ledger.map(|status: LedgerNamed| status.ledger.state_dir);
                if matches!(address, ListenAddr::Tcp(_)) {
                    remark(format_args!("bursar: asked the daemon at {address}"));
                }
                found = Some((client, ledger.unwrap_or_default()));
            }
            (Ok(answer), Some((first, ledger))) => {
                let other = answer.json(ANSWER_BYTES_MAX).await;
                if other.is_ok_and(|other: LedgerNamed| other.ledger.state_dir != *ledger) {
                    remark(format_args!(
                        "bursar: this is the daemon at {}; another one answers at {address} (--admin {address})",
                        first.address()
                    ));
                }
            }
            (Err(error), None) if error.means_silence() && asked.is_own(address) => {
                return Err(error);
            }
            (Err(error), None)
                if error.means_silence() || matches!(error, ClientError::Peer { .. }) =>
            {
                remark(format_args!("bursar: {error}"));
            }
            (Err(_), _) => {}
        }
    }
    Ok(found.map(|(client, _)| client))
}

fn has_journal(state_dir: &Path) -> bool {
    std::fs::metadata(state_dir.join("journal")).is_ok()
}

fn must_have_ledger(state_dir: &Path) -> Result<(), CliError> {
    match std::fs::metadata(state_dir.join("journal")) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(CliError::Failed(format!(
                "no daemon answers, and there is no ledger in {}: start `bursar run` first, or the system service \
                 (`systemctl start bursar`); name another daemon with --admin ADDR, another ledger with \
                 --state-dir DIR",
                state_dir.display()
            )))
        }
        Err(error) => Err(CliError::Failed(format!(
            "the ledger in {} cannot be read: {error}",
            state_dir.display()
        ))),
    }
}

/// All that is read here of a daemon's status: one of another release must not be taken for none.
#[derive(Deserialize)]
struct LedgerNamed {
    ledger: NamedPlace,
}

#[derive(Deserialize)]
struct NamedPlace {
    state_dir: String,
}

/// Asks the configured ports, and where no daemon is there, and the file names no ledger either, the default
/// one: a configuration with a port of its own does not hide the system service.
async fn must_be_its_daemons(place: &Whereabouts, default: &ListenAddr) -> Result<(), CliError> {
    let ports = place.admin.iter();
    let mut asked: Vec<&ListenAddr> = ports
        .filter(|address| matches!(address, ListenAddr::Tcp(_)))
        .collect();
    let is_default_asked = !place.state_dir_in_file && !asked.contains(&default);
    asked.extend(is_default_asked.then_some(default));
    let mut is_there = false;
    for address in asked {
        if is_there && is_default_asked && address == default {
            break;
        }
        let Some(theirs) = ledger_at(address).await else {
            continue;
        };
        is_there = true;
        let theirs = Path::new(&theirs);
        let ours = std::fs::canonicalize(&place.state_dir).unwrap_or_default();
        if place.state_dir != theirs && ours != theirs {
            let (ours, theirs) = (place.state_dir.display(), theirs.display());
            return Err(CliError::Failed(format!(
                "the daemon at {address} has the ledger in {theirs}, and without --state-dir this \
                 command is about the one in {ours}, which is not that daemon's. Nothing was done. \
                 Name the one that is meant: --state-dir {theirs} (with sudo where it is another \
                 user's), or --state-dir {ours}"
            )));
        }
    }
    Ok(())
}

/// Which ledger the daemon there has. `None`: what answers is no daemon, or one of a release that does not
/// say it.
async fn ledger_at(address: &ListenAddr) -> Option<String> {
    ledger_of(&Client::new(address.clone()).answering_within(LOOK_DEADLINE)).await
}

async fn ledger_of(client: &Client) -> Option<String> {
    let answer = client.get("/api/status").await.ok()?;
    let status: LedgerNamed = answer.json(ANSWER_BYTES_MAX).await.ok()?;
    Some(status.ledger.state_dir)
}

#[cfg(test)]
mod tests;
