//! A running daemon, asked over its admin listener: questions, orders, and its answers as documents.
//!
//! Promise: a daemon that refuses is quoted; one that took an order and said nothing may have carried it
//! out, and the error says so; one of another release whose answer cannot be read is named as such.

use std::path::Path;
use std::time::Duration;

use http::StatusCode;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::client::{Client, ClientError, Response};
use super::error::CliError;
use crate::admin::change::AppsDocument;
use crate::admin::documents::ErrorDocument;
use crate::config::ListenAddr;
use crate::ledger::state_dir::Directory;
use crate::screen::shown;

/// How long a question may take that has a daemon read its journal, or ask the service.
const QUESTION_DEADLINE: Duration = Duration::from_secs(60);

/// Largest answer of a daemon that is read.
pub const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Asks a question, and returns the document of its answer.
pub async fn ask<T: DeserializeOwned>(client: &Client, question: &Question) -> Result<T, CliError> {
    let client = client.clone().answering_within(QUESTION_DEADLINE);
    document(&client, client.get(&question.0).await?).await
}

/// Gives a daemon an order. It takes orders through its socket only.
pub async fn order<T: DeserializeOwned>(
    client: &Client,
    path: &str,
    with: &impl Serialize,
) -> Result<T, CliError> {
    let with = serde_json::to_string(with)?;
    let ordered = async { document(client, client.post_json(path, with).await?).await };
    ordered.await.map_err(with_fate_of_order)
}

/// The document of an answer, or why there is none.
pub async fn document<T: DeserializeOwned>(
    client: &Client,
    answer: Response,
) -> Result<T, CliError> {
    let status = answer.status();
    if answer.header("x-bursar-error").is_some() {
        return Err(CliError::Failed(format!(
            "{} is the address that apps send their requests to; the daemon's own is another one, by default {}",
            client.address(),
            ListenAddr::DEFAULT_ADMIN
        )));
    }
    if status == StatusCode::METHOD_NOT_ALLOWED {
        // A socket that this user may read through, or a port.
        return Err(CliError::Failed(format!(
            "the daemon at {} lets this user read, and change nothing. Nothing was changed.\n{FOR_ITS_USER}",
            client.address()
        )));
    }
    let body = answer.bytes(ANSWER_BYTES_MAX).await?;
    if status.is_success() {
        return serde_json::from_slice(&body).map_err(|cause| CliError::OtherRelease {
            address: client.address().clone(),
            cause,
        });
    }
    // As where no daemon runs: the words say it all.
    if let Ok(ErrorDocument { detail }) = serde_json::from_slice(&body) {
        return Err(CliError::Failed(shown_lines(&detail)));
    }
    let said = String::from_utf8_lossy(&body).trim().to_owned();
    Err(CliError::Failed(format!(
        "the daemon at {} answered {status}: {}",
        client.address(),
        shown_lines(&said)
    )))
}

/// The words of whatever answered, line by line, for a person's terminal.
fn shown_lines(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(shown).collect();
    lines.join("\n")
}

/// The apps that a daemon knows.
pub async fn known_apps(client: &Client) -> Result<AppsDocument, CliError> {
    document(client, client.get("/api/apps").await?).await
}

/// A path with its parameters.
pub struct Question(String);

// === impl Question ===

impl Question {
    pub fn new(path: &str) -> Self {
        Self(path.to_owned())
    }

    pub fn path(&self) -> &str {
        &self.0
    }

    pub fn add(&mut self, name: &str, value: &str) {
        let mark = if self.0.contains('?') { '&' } else { '?' };
        self.0.push(mark);
        self.0.push_str(name);
        self.0.push('=');
        self.0.extend(utf8_percent_encode(value, NON_ALPHANUMERIC));
    }

    pub fn add_number(&mut self, name: &str, value: Option<u64>) {
        if let Some(value) = value {
            self.add(name, &value.to_string());
        }
    }
}

/// A daemon is there and was asked nothing: why, and what to do.
pub fn not_asked(error: ClientError, state_dir: &Path) -> CliError {
    if error.means_silence() {
        return CliError::Silent {
            error,
            what_helps: end_it(state_dir),
            state_dir: state_dir.to_owned(),
        };
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

const FOR_ITS_USER: &str = "Only the user of the daemon and root may change anything, give orders and start runs: \
    use sudo. For a command that should not run as root: sudo bursar exec --state-dir DIR --app NAME -- \
    runuser -u \"$USER\" -- CMD";

/// A daemon that took a change, or an order, and said nothing: it may have made it.
pub fn with_fate_of_order(error: CliError) -> CliError {
    match error {
        CliError::Client(error) if error.means_silence() => CliError::Failed(format!(
            "{error}. Whether it carried the order out is not known: look with `bursar app list` and \
             `bursar caps` when it answers again"
        )),
        error @ CliError::OtherRelease { .. } => CliError::Failed(format!(
            "{error}. It has carried the order out: look with `bursar app list` and `bursar caps`"
        )),
        error => error,
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(super) use tests::{answering, answering_at};
