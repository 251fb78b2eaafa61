//! Which daemon, or which state directory, a command is about.
//!
//! Readers ask a running daemon or read the journal's files. A change goes to a daemon, over a Unix socket, or
//! into the files of a state directory that no daemon has. What is named goes first: flags, then `BURSAR_ADMIN` and
//! `BURSAR_STATE_DIR`. Else it is the first behind which a daemon answers: the own socket, the system service's
//! socket, and for reading the default address.
//!
//! Promise: a daemon that was named is asked and no other place is looked at; a change is never sent over a port, nor
//! to a socket of another user; what was found at a port is named, and so is a second daemon that answers; a
//! daemon that answers something odd is reported, and never passed by; what only looks starts no service.

//!
//! Lowest first: `system` (where the system service is) < `asked` (what the person named) < `daemons` (which answer).

mod asked;
mod daemons;
mod system;

use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::tz::TimeZone;
use rustix::fs::{Access, access};
use serde::de::DeserializeOwned;

use self::asked::Asked;
pub use self::asked::Right;
use self::daemons::{
    LOOK_DEADLINE, answering, first_that_answers, ledger_of, name_others, reader_of, socket_client,
};
pub use self::system::{SYSTEM_STATE_DIR, UNITS_KEY};
use self::system::{System, UNITS_CONFIG};
use super::arguments::zone;
use super::client::{ANSWER_DEADLINE, Client, Response};
use super::daemon::{Question, ask, document, not_asked};
use super::error::CliError;
use super::output::remark;
use super::source::Source;
use crate::caps::CapsView;
use crate::config::{
    BURSAR_ADMIN, BURSAR_CONFIG, BURSAR_STATE_DIR, Config, Env, KeyPlace, ListenAddr, Overrides,
    Whereabouts,
};
use crate::ledger::state_dir::Directory;

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

    /// The directory of one that is there, for what only reads: where nothing is named and the own place has none, the
    /// system service's.
    pub async fn found_to_read(&self) -> Result<PathBuf, CliError> {
        let (asked, system) = (self.asked()?, System::installed());
        self.to_read(&asked, &system, &mut remarked).await
    }

    async fn to_read(
        &self,
        asked: &Asked,
        system: &System,
        say: &mut dyn FnMut(String),
    ) -> Result<PathBuf, CliError> {
        if !asked.is_systems(system) {
            return Ok(self.found().await?.state_dir);
        }
        let state_dir = system.state_dir.clone();
        say(format!(
            "bursar: read from the files of {}",
            state_dir.display()
        ));
        Ok(state_dir)
    }

    fn asked(&self) -> Result<Asked, CliError> {
        let (place, env) = (self.whereabouts()?, Env::from_process());
        let is_named = [BURSAR_STATE_DIR, BURSAR_CONFIG]
            .iter()
            .any(|name| env.get(name).is_some());
        Ok(match self.is_named_by_flag() || is_named {
            true => Asked::Ledger(place),
            false => Asked::Any(place),
        })
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
        self.find_saying(&mut remarked).await
    }

    /// The same, where what a person has to know of it is shown otherwise than as a line of its own.
    pub async fn find_saying(&self, say: &mut dyn FnMut(String)) -> Result<Source, CliError> {
        let (asked, system) = self.looked_for().await?;
        if let Some(client) = answering(&asked, &system, say).await {
            return Ok(Source::Daemon(client));
        }
        let state_dir = self.ledger.to_read(&asked, &system, say).await?;
        Ok(Source::Journal(state_dir))
    }

    /// The daemon that was named, else the first whose socket answers: one that other programs may be sent to. Behind
    /// a port any user of this machine may listen.
    pub async fn find_trusted(&self) -> Result<Option<Client>, CliError> {
        match self.looked_for().await? {
            (Asked::Daemon(client, _), _) => Ok(Some(client)),
            (asked, system) => {
                let sockets = asked.sockets(&system);
                Ok(first_that_answers(&asked, &sockets, &mut remarked).await?)
            }
        }
    }

    /// The answer to one question that has to be quick, of the daemon that was named, else of the first that gives
    /// one, and its address. No journal is read, and no second daemon looked for. `None`: no daemon is there.
    pub async fn ask_quickly<T: DeserializeOwned>(
        &self,
        question: &Question,
        within: Duration,
    ) -> Result<Option<(T, ListenAddr)>, CliError> {
        let (asked, system) = self.looked_for().await?;
        if let Asked::Daemon(client, _) = &asked {
            let client = client.clone().answering_within(within);
            return match client.get(question.path()).await {
                Err(error) if error.means_no_daemon() => Ok(None),
                answer => answered(&client, answer?).await.map(Some),
            };
        }
        for address in [asked.sockets(&system), asked.ports(&system)].concat() {
            let is_own = asked.is_own(&address);
            let client = reader_of(address, within);
            match client.get(question.path()).await {
                Ok(answer) => return answered(&client, answer).await.map(Some),
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
        let (asked, system) = self.looked_for().await?;
        if !matches!(asked, Asked::Ledger(_))
            && let Some(client) = answering(&asked, &system, &mut remarked).await
            && !asked.is_own(client.address())
        {
            return Ok(Source::Daemon(client));
        }
        let state_dir = self.ledger.to_read(&asked, &system, &mut remarked).await?;
        Ok(Source::Journal(state_dir))
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

    /// The daemon that was named, else the one whose socket answers, for a reader one at a port, else the files, those
    /// that a reader reads. A daemon that is there and does not answer is an error: it must not be taken for none.
    pub async fn keeper(&self, right: Right) -> Result<Keeper, CliError> {
        let (asked, running) = self.looked_for().await?;
        let installed = System::installed();
        let system = match right {
            Right::Look => &running,
            // An order starts a stopped service, where its socket is open.
            Right::Change => &installed,
        };
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
        for address in asked.sockets(system) {
            let is_own = asked.is_own(&address);
            // A user who may not enter the system service's socket can still read elsewhere. A change would go into
            // a ledger that this daemon does not have, unless the configuration names that ledger.
            let is_passed_by = !is_own && (right == Right::Look || place.state_dir_in_file);
            let daemon = socket_client(address, ANSWER_DEADLINE);
            match daemon.get("/api/apps").await {
                Ok(answer) if answer.status().is_success() => {
                    let others = asked.others(&running, &daemon);
                    name_others(&daemon, None, &others, right, &mut remarked).await;
                    return Ok(Keeper::Daemon(daemon));
                }
                Ok(answer) => {
                    return Err(CliError::Failed(format!(
                        "the daemon at {} answered {}",
                        daemon.address(),
                        answer.status()
                    )));
                }
                // No daemon: the files are ours if the lock is.
                Err(error) if error.means_no_daemon() => {}
                Err(error) if is_passed_by && error.means_forbidden() => {}
                Err(error) if is_own => return Err(not_asked(error, &place.state_dir)),
                Err(error) => return Err(not_asked(error, &system.state_dir)),
            }
        }
        if right == Right::Look {
            for address in asked.ports(system) {
                let daemon = reader_of(address, LOOK_DEADLINE);
                if ledger_of(&daemon).await.is_some() {
                    remark(format_args!(
                        "bursar: asked the daemon at {}",
                        daemon.address()
                    ));
                    return Ok(Keeper::Daemon(daemon));
                }
            }
        }
        let place = match asked.is_systems(system) {
            true => systems_place(system, right)?,
            false => place.clone(),
        };
        Ok(Keeper::Files(self.ledger.files(place).await?))
    }

    /// Whether a daemon was named by its address: its configuration is not known then.
    pub fn names_daemon(&self) -> bool {
        matches!(self.asked(), Ok(Asked::Daemon(..)))
    }

    /// What was asked for, for what only looks.
    async fn looked_for(&self) -> Result<(Asked, System), CliError> {
        let asked = self.asked()?;
        let system = match &asked {
            Asked::Any(_) => System::running().await,
            Asked::Daemon(..) | Asked::Ledger(_) => System::installed(),
        };
        Ok((asked, system))
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
        self.ledger.asked()
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
    Ok(reader_of(address, ANSWER_DEADLINE))
}

/// The system service's files, with the apps and caps of its own configuration.
fn systems_place(system: &System, right: Right) -> Result<Whereabouts, CliError> {
    // Its user exists only while it runs.
    if right == Right::Change && Directory::open(&system.state_dir).is_err() {
        return Err(CliError::Failed(format!(
            "no daemon runs, and the system service's ledger, in {}, is changed by the service alone: start it \
             (`systemctl start bursar`) and give the order again, or name another ledger with --state-dir DIR. Nothing \
             was changed",
            system.state_dir.display()
        )));
    }
    let config = Path::new(UNITS_CONFIG);
    let overrides = Overrides {
        config: config.exists().then(|| config.to_owned()),
        state_dir: Some(system.state_dir.clone()),
        ..Overrides::default()
    };
    Ok(Whereabouts::find(&overrides, &Env::from_process())?)
}

/// As a line of its own.
fn remarked(words: String) {
    remark(words);
}

async fn answered<T: DeserializeOwned>(
    client: &Client,
    answer: Response,
) -> Result<(T, ListenAddr), CliError> {
    let document = document(client, answer).await?;
    Ok((document, client.address().clone()))
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
    ledger_of(&reader_of(address.clone(), LOOK_DEADLINE)).await
}

#[cfg(test)]
mod tests;
