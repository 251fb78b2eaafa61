//! Where what can be changed is kept: by the daemon, which is asked over the socket in its state
//! directory, or in the files of a state directory that no daemon has.
//!
//! Promise: a change is never sent over a port; a daemon that answers something odd is told, and never
//! passed by.

use std::path::Path;

use serde_json::Value;

use super::CliError;
use super::client::{ANSWER_DEADLINE, Answer, Client, ClientError};
use super::source::{Source, SourceArgs};
use crate::config::{ListenAddr, Whereabouts};
use crate::ledger::state_dir::Directory;

/// Largest answer that is read: 64 apps with their users are far below.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// Who keeps it.
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

/// The daemon named by `--admin`, else the one whose socket answers, else the files.
pub async fn keeper(source: &SourceArgs, right: Right) -> Result<Keeper, CliError> {
    if let Some(address) = &source.admin {
        let daemon = source.named_client()?;
        if right == Right::Change && matches!(daemon.address(), ListenAddr::Tcp(_)) {
            return Err(not_over_a_port(address));
        }
        return Ok(Keeper::Daemon(daemon));
    }
    let place = source.whereabouts()?;
    for address in &place.admin {
        if !matches!(address, ListenAddr::Unix(_)) {
            continue;
        }
        let daemon = Client::new(address.clone()).answering_within(ANSWER_DEADLINE);
        match daemon.get("/api/apps").await {
            Ok(answer) if answer.status.is_success() => return Ok(Keeper::Daemon(daemon)),
            Ok(answer) => {
                return Err(CliError::Failed(format!(
                    "the daemon at {address} answered {}",
                    answer.status
                )));
            }
            // Nobody there: the files are ours if the lock is.
            Err(error) if error.means_nobody() => {}
            Err(error) => return Err(not_asked(error, &place.state_dir)),
        }
    }
    Ok(Keeper::Files(source.files(place).await?))
}

/// For orders, as [`keeper`] for changes of apps. `Err` of the inner kind: a daemon is there and does not
/// take the order; it must not be taken for none.
pub async fn find_to_order(source: &SourceArgs) -> Result<Result<Source, ClientError>, CliError> {
    if let Some(address) = &source.admin {
        let daemon = source.named_client()?;
        if matches!(daemon.address(), ListenAddr::Tcp(_)) {
            return Err(not_over_a_port(address));
        }
        return Ok(Ok(Source::Daemon(daemon)));
    }
    let place = source.whereabouts()?;
    for address in &place.admin {
        if !matches!(address, ListenAddr::Unix(_)) {
            continue;
        }
        let daemon = Client::new(address.clone()).answering_within(ANSWER_DEADLINE);
        match daemon.get("/api/status").await {
            Ok(_) => return Ok(Ok(Source::Daemon(daemon))),
            Err(error) if error.means_nobody() => {}
            Err(error) => return Ok(Err(error)),
        }
    }
    // An order for a directory that nobody uses would be obeyed by nobody.
    let place = source.files(place).await?;
    source.must_have_ledger(&place.state_dir)?;
    Ok(Ok(Source::Journal(place.state_dir)))
}

fn not_over_a_port(address: &str) -> CliError {
    CliError::usage(format_args!(
        "--admin {address}: changes take the daemon's socket: --admin unix:/…/admin.sock, or --state-dir DIR"
    ))
}

impl SourceArgs {
    /// The daemon whose socket answers, else the state directory.
    pub async fn find_to_order(&self) -> Result<Source, CliError> {
        match find_to_order(self).await? {
            Ok(source) => Ok(source),
            Err(error) => Err(not_asked(error, &self.whereabouts()?.state_dir)),
        }
    }
}

/// A daemon is there and was asked nothing: why, and what to do.
pub fn not_asked(error: ClientError, state_dir: &Path) -> CliError {
    if error.means_silence() {
        return CliError::Failed(format!(
            "{error}. Nothing was changed. {}",
            end_it(state_dir)
        ));
    }
    if error.means_forbidden() {
        return CliError::Failed(format!("{error}.\n{FOR_ITS_USER}"));
    }
    error.into()
}

/// What helps with a daemon that hangs.
pub fn end_it(state_dir: &Path) -> String {
    let holder = Directory::open_to_read(state_dir).map(|directory| directory.holder());
    match holder {
        Ok(Some(pid)) => format!(
            "Process {pid} has the ledger: `ps -o stat= -p {pid}` says T when it is stopped (kill -CONT \
             {pid}) and D when it waits for its disk; `kill -9 {pid}` ends it and all spending, and loses \
             nothing that was billed"
        ),
        _ => "It may be stopped, or wait for its disk: see its log, and restart it".to_owned(),
    }
}

const FOR_ITS_USER: &str = "Only the user of the daemon and root may give orders and start runs: use \
    sudo. For a command that shall not run as root: sudo bursar exec --state-dir DIR --app NAME -- \
    runuser -u \"$USER\" -- CMD";

/// Asks for a change, and answers what it came to.
pub async fn post(daemon: &Client, path: &str, change: &Value) -> Result<Value, CliError> {
    let made = async {
        let answer = daemon.post_json(path, change.to_string()).await?;
        document(daemon, answer).await
    };
    made.await.map_err(not_told)
}

/// A daemon that took a change, or an order, and said nothing: it may have made it.
pub fn not_told(error: CliError) -> CliError {
    match error {
        CliError::Client(error) if error.means_silence() => CliError::Failed(format!(
            "{error}. Whether it did what it was told is not known: look with `bursar app list` and \
             `bursar caps` when it answers again"
        )),
        error => error,
    }
}

/// The document of an answer, or why there is none.
pub async fn document(daemon: &Client, answer: Answer) -> Result<Value, CliError> {
    let status = answer.status;
    let body = answer.bytes(ANSWER_BYTES_MAX).await?;
    let document: Result<Value, _> = serde_json::from_slice(&body);
    if status.is_success() {
        return Ok(document.map_err(ClientError::from)?);
    }
    let said = document
        .ok()
        .and_then(|document| document.get("detail")?.as_str().map(str::to_owned));
    Err(CliError::Failed(said.unwrap_or_else(|| {
        format!("the daemon at {} answered {status}", daemon.address())
    })))
}
