//! Which daemon, or which state directory, a command is about.
//!
//! Readers ask the running daemon or read the journal's files. A change goes to the daemon, over the
//! socket in its state directory, or into the files of a state directory that no daemon has.
//!
//! Promise: with `--admin` that daemon is asked and no other place is looked at; a change is never sent
//! over a port; a daemon that answers something odd is reported, and never passed by.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::client::{ANSWER_DEADLINE, Client};
use super::daemon::{ANSWER_BYTES_MAX, not_asked};
use super::error::CliError;
use super::output::remark;
use super::source::Source;
use crate::config::{BURSAR_STATE_DIR, Env, ListenAddr, Overrides, Whereabouts};

/// How long a reading command waits for a daemon before it reads the files instead.
const LOOK_DEADLINE: Duration = Duration::from_secs(3);

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
    /// Address of the daemon to ask, IP:PORT or unix:/PATH
    #[arg(long, value_name = "ADDR")]
    admin: Option<String>,
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

// === impl LedgerArgs ===

impl LedgerArgs {
    pub fn whereabouts(&self) -> Result<Whereabouts, CliError> {
        let overrides = Overrides {
            config: self.config.clone(),
            state_dir: self.state_dir.clone(),
            ..Overrides::default()
        };
        Ok(Whereabouts::find(&overrides, &Env::from_process())?)
    }

    /// The place of a ledger that is there.
    pub async fn found(&self) -> Result<Whereabouts, CliError> {
        let place = self.files(self.whereabouts()?).await?;
        must_have_ledger(&place.state_dir)?;
        Ok(place)
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
    /// The daemon named by `--admin`, else the one whose socket answers, else the files.
    pub async fn find(&self) -> Result<Source, CliError> {
        if self.admin.is_some() {
            return Ok(Source::Daemon(self.named_client()?));
        }
        let place = self.ledger.whereabouts()?;
        for client in socket_clients(&place, LOOK_DEADLINE) {
            // Whatever keeps it from answering, the files are there.
            match client.get("/api/status").await {
                Ok(answer) if answer.status.is_success() => return Ok(Source::Daemon(client)),
                Err(error) if error.means_silence() => {
                    remark(format_args!("bursar: {error}; this is read from its files"));
                }
                Ok(_) | Err(_) => {}
            }
        }
        Ok(Source::Journal(self.ledger.found().await?.state_dir))
    }

    /// For long listings and for following: the files, unless a daemon was named.
    pub async fn find_files(&self) -> Result<Source, CliError> {
        match self.admin {
            Some(_) => Ok(Source::Daemon(self.named_client()?)),
            None => Ok(Source::Journal(self.ledger.found().await?.state_dir)),
        }
    }

    /// For orders: the daemon that takes them, else the state directory.
    pub async fn find_to_order(&self) -> Result<Source, CliError> {
        match self.keeper(Right::Change).await? {
            Keeper::Daemon(client) => Ok(Source::Daemon(client)),
            // No process would carry out an order for a directory that is not in use.
            Keeper::Files(place) => {
                must_have_ledger(&place.state_dir)?;
                Ok(Source::Journal(place.state_dir))
            }
        }
    }

    /// The daemon named by `--admin`, else the one whose socket answers, else the files. A daemon that is there
    /// and does not answer is an error: it must not be taken for none.
    pub async fn keeper(&self, right: Right) -> Result<Keeper, CliError> {
        if let Some(address) = &self.admin {
            let daemon = self.named_client()?;
            if right == Right::Change && matches!(daemon.address(), ListenAddr::Tcp(_)) {
                return Err(CliError::usage(format_args!(
                    "--admin {address}: changes take the daemon's socket: --admin unix:/…/admin.sock, or \
                     --state-dir DIR"
                )));
            }
            return Ok(Keeper::Daemon(daemon));
        }
        let place = self.ledger.whereabouts()?;
        for daemon in socket_clients(&place, ANSWER_DEADLINE) {
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
                Err(error) => return Err(not_asked(error, &place.state_dir)),
            }
        }
        Ok(Keeper::Files(self.ledger.files(place).await?))
    }

    /// The daemon of `--admin`.
    fn named_client(&self) -> Result<Client, CliError> {
        let address = self.admin.as_deref().unwrap_or_default();
        let bare = address.strip_prefix("http://").unwrap_or(address);
        let address = ListenAddr::parse(bare.trim_end_matches('/'))
            .map_err(|why| CliError::usage(format_args!("--admin: {why}")))?;
        if !address.is_local() {
            return Err(CliError::usage(format_args!(
                "--admin: {address} is not a loopback address; the admin listener is for its own machine"
            )));
        }
        Ok(Client::new(address).answering_within(ANSWER_DEADLINE))
    }
}

fn must_have_ledger(state_dir: &Path) -> Result<(), CliError> {
    match std::fs::metadata(state_dir.join("journal")) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(CliError::Failed(format!(
                "there is no ledger in {}: start `bursar run` first; for the system \
                 service's, use sudo and --state-dir /var/lib/bursar; a running daemon is \
                 asked with --admin 127.0.0.1:8328 by every command that has the option",
                state_dir.display()
            )))
        }
        Err(error) => Err(CliError::Failed(format!(
            "the ledger in {} cannot be read: {error}",
            state_dir.display()
        ))),
    }
}

/// The daemons whose sockets are configured.
fn socket_clients(place: &Whereabouts, deadline: Duration) -> impl Iterator<Item = Client> {
    let is_socket = |address: &&ListenAddr| matches!(address, ListenAddr::Unix(_));
    let sockets = place.admin.iter().filter(is_socket);
    sockets.map(move |address| Client::new(address.clone()).answering_within(deadline))
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
    let client = Client::new(address.clone()).answering_within(LOOK_DEADLINE);
    let answer = client.get("/api/status").await.ok()?;
    let status: LedgerNamed = answer.json(ANSWER_BYTES_MAX).await.ok()?;
    Some(status.ledger.state_dir)
}

#[cfg(test)]
mod tests;
