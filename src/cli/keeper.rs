//! Where what can be changed is kept: by the daemon, which is asked over the socket in its state
//! directory, or in the files of a state directory that no daemon has.
//!
//! Promise: a change is never sent over a port; a daemon that answers something odd is told, and never
//! passed by.

use serde_json::Value;

use super::CliError;
use super::client::{Answer, Client, ClientError};
use super::source::SourceArgs;
use crate::config::{ListenAddr, Whereabouts};

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
            return Err(CliError::usage(format_args!(
                "--admin {address}: changes take the daemon's socket: --admin unix:/…/admin.sock, or --state-dir DIR"
            )));
        }
        return Ok(Keeper::Daemon(daemon));
    }
    let place = source.whereabouts()?;
    for address in &place.admin {
        if !matches!(address, ListenAddr::Unix(_)) {
            continue;
        }
        let daemon = Client::new(address.clone());
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
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Keeper::Files(place))
}

/// Asks for a change, and answers what it came to.
pub async fn post(daemon: &Client, path: &str, change: &Value) -> Result<Value, CliError> {
    let answer = daemon.post_json(path, change.to_string()).await?;
    document(daemon, answer).await
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
