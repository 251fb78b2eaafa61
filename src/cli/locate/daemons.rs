//! The daemons that answer: the first, and each further one, by name.
//!
//! Promise: no socket of another user's is spoken to; what was found at a port is named, and so is a second daemon with
//! another ledger.

use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use rustix::process::geteuid;
use serde::Deserialize;

use super::asked::{Asked, Right};
use super::system::System;
use crate::cli::client::{Client, ClientError};
use crate::cli::daemon::ANSWER_BYTES_MAX;
use crate::config::ListenAddr;
use crate::screen::shown;

/// How long a reading command waits for a daemon before it reads the files instead.
pub const LOOK_DEADLINE: Duration = Duration::from_secs(3);

/// How long a second daemon may take to be noticed beside the one that answered.
const SECOND_DEADLINE: Duration = Duration::from_millis(300);

/// All that is read here of a daemon's status: one of another release must not be taken for none.
#[derive(Deserialize)]
struct LedgerNamed {
    ledger: NamedPlace,
}

#[derive(Deserialize)]
struct NamedPlace {
    state_dir: String,
}

/// Speaks to a socket of root's (systemd opened it, or root's daemon), of this user's own, or, for root, of the user
/// whose directory it lies in: that of the system service, which exists only while it runs.
pub fn socket_client(address: ListenAddr, deadline: Duration) -> Client {
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
/// files are there. `say` gets what a person has to know of how it was found.
pub async fn answering(
    asked: &Asked,
    system: &System,
    say: &mut dyn FnMut(String),
) -> Option<Client> {
    if let Asked::Daemon(client, _) = asked {
        return Some(client.clone());
    }
    let places = [asked.sockets(system), asked.ports(system)].concat();
    match first_that_answers(asked, &places, say).await {
        Ok(found) => found,
        Err(silence) => {
            say(format!("bursar: {silence}; this is read from its files"));
            None
        }
    }
}

/// The first daemon that answers at these addresses. One that was found at a port is named, and so is a second
/// one. An error: the own daemon is there and does not answer.
pub async fn first_that_answers(
    asked: &Asked,
    addresses: &[ListenAddr],
    say: &mut dyn FnMut(String),
) -> Result<Option<Client>, ClientError> {
    for (at, address) in addresses.iter().enumerate() {
        let client = reader_of(address.clone(), LOOK_DEADLINE);
        match client.get("/api/status").await {
            Ok(answer) if !answer.status().is_success() => {}
            Ok(answer) => {
                // One of another release may not say which ledger it has: it is a daemon all the same.
                let ledger = answer.json(ANSWER_BYTES_MAX).await;
                let ledger = ledger
                    .map(|status: LedgerNamed| status.ledger.state_dir)
                    .ok();
                if matches!(address, ListenAddr::Tcp(_)) {
                    say(format!("bursar: asked the daemon at {address}"));
                }
                let others = addresses.get(at + 1..).unwrap_or_default();
                name_others(&client, ledger, others, Right::Look, say).await;
                return Ok(Some(client));
            }
            Err(error) if error.means_silence() && asked.is_own(address) => return Err(error),
            Err(error) if error.means_silence() || matches!(error, ClientError::Peer { .. }) => {
                say(format!("bursar: {error}"));
            }
            Err(_) => {}
        }
    }
    Ok(None)
}

/// Names each further daemon that answers and has another ledger: perhaps that one was meant. `ledger`: that of the
/// first, where it is known already.
pub async fn name_others(
    first: &Client,
    ledger: Option<String>,
    others: &[ListenAddr],
    right: Right,
    say: &mut dyn FnMut(String),
) {
    let mut ledger = ledger;
    for address in others {
        let other = ledger_of(&reader_of(address.clone(), SECOND_DEADLINE)).await;
        let Some(other) = other else { continue };
        if ledger.is_none() {
            ledger = ledger_of(first).await;
        }
        let ledger = ledger.as_deref().unwrap_or_default();
        if other != ledger {
            say(another(first.address(), ledger, address, &other, right));
        }
    }
}

/// In words, what a second daemon means for a question or an order.
fn another(
    first: &ListenAddr,
    ledger: &str,
    second: &ListenAddr,
    other: &str,
    right: Right,
) -> String {
    let named_by = match (right, second) {
        // No order goes to a port.
        (Right::Change, ListenAddr::Tcp(_)) => format!("--state-dir {}", shown(other)),
        _ => format!("--admin {second}"),
    };
    match right {
        Right::Look => format!(
            "bursar: this is the daemon at {first}; another one answers at {second} ({named_by})"
        ),
        Right::Change => format!(
            "bursar: this goes to the daemon at {first}, with the ledger in {}. Another one, with that in {}, answers \
             at {second} and is NOT changed ({named_by})",
            shown(ledger),
            shown(other)
        ),
    }
}

/// Asks as a reader.
pub fn reader_of(address: ListenAddr, deadline: Duration) -> Client {
    match address {
        ListenAddr::Unix(_) => socket_client(address, deadline),
        ListenAddr::Tcp(_) => Client::new(address).answering_within(deadline),
    }
}

pub async fn ledger_of(client: &Client) -> Option<String> {
    let answer = client.get("/api/status").await.ok()?;
    let status: LedgerNamed = answer.json(ANSWER_BYTES_MAX).await.ok()?;
    Some(status.ledger.state_dir)
}
