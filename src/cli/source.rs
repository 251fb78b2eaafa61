//! Where a reading command gets its figures: from the running daemon, or from the journal's files.
//! Both give the same documents ([`crate::admin::documents`]) with the same sums.
//!
//! A long listing reads the files even beside a daemon: the daemon's memory is for requests.
//!
//! Promise: nothing is written, nothing is locked; with `--admin` that daemon is asked and no other
//! place is looked at.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::client::{ANSWER_DEADLINE, Answer, Client, ClientError};
use super::keeper::not_told;
use super::{CliError, remark};
use crate::admin::documents::{self, SpendQuestion};
use crate::admin::reconcile::{self, Figure};
use crate::admin::{RECEIPTS_MAX, encoded, explain};
use crate::caps::{self, Rules};
use crate::config::{BURSAR_STATE_DIR, Env, ListenAddr, Overrides, Whereabouts};
use crate::ledger::query::{Filter, find, for_each_entry, list, spend, window};

/// How long a reading command waits for a daemon before it reads the files instead.
const LOOK_DEADLINE: Duration = Duration::from_secs(3);

/// How long a question may take that has a daemon read its journal, or ask the service.
const QUESTION_DEADLINE: Duration = Duration::from_secs(60);

/// Largest answer of a daemon that is read.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Flags of every reading command.
#[derive(Clone, Debug, clap::Args)]
pub struct SourceArgs {
    /// Configuration file [env: BURSAR_CONFIG]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where the ledger is [env: BURSAR_STATE_DIR]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// Ask the daemon there, IP:PORT or unix:/PATH
    #[arg(long, value_name = "ADDR")]
    pub admin: Option<String>,
}

/// A place that answers.
#[derive(Clone, Debug)]
pub enum Source {
    Daemon(Client),
    Journal(PathBuf),
}

/// Some entries, and the number to go on from.
#[derive(Clone, Debug, Default)]
pub struct Receipts {
    /// As [`documents::receipt`] describes them, oldest change first.
    pub listed: Vec<Value>,
    pub last_seq: Option<u64>,
}

/// Changes when something may have been added to the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pulse(String);

// === impl SourceArgs ===

impl SourceArgs {
    pub fn whereabouts(&self) -> Result<Whereabouts, CliError> {
        let overrides = Overrides {
            config: self.config.clone(),
            state_dir: self.state_dir.clone(),
            ..Overrides::default()
        };
        Ok(Whereabouts::find(&overrides, &Env::from_process())?)
    }

    /// The daemon named by `--admin`, else the one whose socket answers, else the files.
    pub async fn find(&self) -> Result<Source, CliError> {
        if let Some(daemon) = self.named_daemon()? {
            return Ok(daemon);
        }
        let whereabouts = self.whereabouts()?;
        for address in &whereabouts.admin {
            if matches!(address, ListenAddr::Unix(_)) {
                let client = Client::new(address.clone()).answering_within(LOOK_DEADLINE);
                // Whatever keeps it from answering, the files are there.
                match client.get("/api/status").await {
                    Ok(answer) if answer.status.is_success() => return Ok(Source::Daemon(client)),
                    Err(error) if error.means_silence() => {
                        remark(format_args!("bursar: {error}; this is read from its files"));
                    }
                    Ok(_) | Err(_) => {}
                }
            }
        }
        let state_dir = self.files(whereabouts).await?.state_dir;
        self.must_have_ledger(&state_dir)?;
        Ok(Source::Journal(state_dir))
    }

    /// For long listings and for following: the files, unless a daemon was named.
    pub async fn find_files(&self) -> Result<Source, CliError> {
        if let Some(daemon) = self.named_daemon()? {
            return Ok(daemon);
        }
        let state_dir = self.files(self.whereabouts()?).await?.state_dir;
        self.must_have_ledger(&state_dir)?;
        Ok(Source::Journal(state_dir))
    }

    /// The place whose files are read or changed, unless nobody named its ledger and a daemon of another
    /// one answers on the port: the system service's, while its user's own was found. What was read or
    /// changed here would be nothing to that daemon.
    pub async fn files(&self, place: Whereabouts) -> Result<Whereabouts, CliError> {
        let is_named =
            self.state_dir.is_some() || Env::from_process().path(BURSAR_STATE_DIR).is_some();
        if !is_named {
            must_be_its_daemons(&place, &ListenAddr::DEFAULT_ADMIN).await?;
        }
        Ok(place)
    }

    fn named_daemon(&self) -> Result<Option<Source>, CliError> {
        match &self.admin {
            None => Ok(None),
            Some(_) => Ok(Some(Source::Daemon(self.named_client()?))),
        }
    }

    /// The daemon of `--admin`.
    pub fn named_client(&self) -> Result<Client, CliError> {
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

    pub fn must_have_ledger(&self, state_dir: &Path) -> Result<(), CliError> {
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
    let status = answer.json::<Value>(ANSWER_BYTES_MAX).await.ok()?;
    let state_dir = status.pointer("/ledger/state_dir")?.as_str()?;
    Some(state_dir.to_owned())
}

// === impl Source ===

impl Source {
    /// The document that [`documents::spend`] describes.
    pub async fn spend(&self, asked: &SpendQuestion) -> Result<Value, CliError> {
        match self {
            Self::Journal(state_dir) => {
                let sums = spend(
                    state_dir,
                    asked.since_ms,
                    asked.until_ms,
                    &asked.by,
                    &asked.zone,
                )?;
                Ok(documents::spend(asked, &sums)?)
            }
            Self::Daemon(client) => {
                let zone = asked.zone.iana_name().ok_or_else(|| {
                    CliError::usage("this machine's time zone has no name; give one with --tz")
                })?;
                let by: Vec<&str> = asked.by.iter().map(|by| by.as_str()).collect();
                let mut question = Question::new("/api/spend");
                question.add_number("since_ms", asked.since_ms);
                question.add_number("until_ms", asked.until_ms);
                question.add("by", &by.join(","));
                question.add("tz", zone);
                ask(client, &question.0).await
            }
        }
    }

    /// The document that [`reconcile::document`] describes. The service's own figure is asked for by a
    /// daemon alone: it holds the key.
    pub async fn reconcile(&self, asked: &Figure, now_ms: u64) -> Result<Value, CliError> {
        match (self, asked) {
            (Self::Daemon(client), _) => {
                let mut question = Question::new("/api/reconcile");
                if let Figure::Typed {
                    billed,
                    since_ms,
                    until_ms,
                } = asked
                {
                    question.add_number("billed_micro_usd", Some(billed.get()));
                    question.add_number("since_ms", Some(*since_ms));
                    question.add_number("until_ms", *until_ms);
                }
                ask(client, &question.0).await
            }
            (
                Self::Journal(state_dir),
                Figure::Typed {
                    billed,
                    since_ms,
                    until_ms,
                },
            ) => {
                let window = window(state_dir, *since_ms, until_ms.unwrap_or(now_ms))?;
                Ok(reconcile::document("typed", *billed, &window)?.0)
            }
            (Self::Journal(_), Figure::Document) => Err(CliError::Failed(
                "no daemon runs here, and it alone asks the service with the key: start `bursar run`, \
                 name a running one with --admin, or give the figure of an invoice: --billed-usd 12.34 \
                 --since 2026-01-01 --until 2026-02-01"
                    .to_owned(),
            )),
        }
    }

    /// The newest `limit` entries; with `after_seq` the oldest `limit` that changed since. Holds
    /// them, and no others.
    pub async fn receipts(&self, filter: &Filter, limit: usize) -> Result<Receipts, CliError> {
        let asked = Filter {
            limit: Some(limit),
            ..filter.clone()
        };
        match self {
            Self::Journal(state_dir) => {
                let listing = list(state_dir, &asked)?;
                let listed = listing.entries.iter().map(documents::receipt);
                Ok(Receipts {
                    listed: listed.collect::<Result<_, _>>()?,
                    last_seq: listing.last_seq,
                })
            }
            Self::Daemon(client) if limit <= RECEIPTS_MAX => page(client, &asked).await,
            Self::Daemon(client) => {
                let mut newest = VecDeque::new();
                let last_seq = all_pages(client, filter, &mut |receipt| {
                    newest.push_back(receipt);
                    if newest.len() > limit {
                        newest.pop_front();
                    }
                    Ok(())
                })
                .await?;
                Ok(Receipts {
                    listed: newest.into(),
                    last_seq,
                })
            }
        }
    }

    /// Every entry, oldest change first, a thousand held at once. One that changes while a daemon is
    /// asked page by page is told again.
    pub async fn for_each_receipt(
        &self,
        filter: &Filter,
        visit: &mut dyn FnMut(Value) -> Result<(), CliError>,
    ) -> Result<(), CliError> {
        match self {
            Self::Journal(state_dir) => {
                for_each_entry(state_dir, filter, |view| visit(documents::receipt(&view)?))
            }
            Self::Daemon(client) => all_pages(client, filter, visit).await.map(|_| ()),
        }
    }

    /// What [`caps::CapsView`] holds.
    pub async fn caps(&self, rules: &Rules, now_ms: u64) -> Result<Value, CliError> {
        match self {
            Self::Journal(state_dir) => {
                let view = caps::read(state_dir, rules.clone(), now_ms)?;
                Ok(serde_json::to_value(view)?)
            }
            Self::Daemon(client) => ask(client, "/api/caps").await,
        }
    }

    /// The document that [`explain::explanation`] describes.
    pub async fn explain(&self, text: &str) -> Result<Value, CliError> {
        match self {
            Self::Journal(state_dir) => Ok(explain::explanation(&find(state_dir, text)?)?),
            Self::Daemon(client) => {
                let mut question = Question::new("/api/explain");
                question.add("id", text);
                ask(client, &question.0).await
            }
        }
    }

    /// Cheap; for following.
    pub async fn pulse(&self) -> Result<Pulse, CliError> {
        match self {
            Self::Journal(state_dir) => {
                let journal = state_dir.join("journal");
                let unreadable = |error: std::io::Error| {
                    CliError::Failed(format!("{} cannot be read: {error}", journal.display()))
                };
                let mut sizes = Vec::new();
                for entry in std::fs::read_dir(&journal).map_err(unreadable)? {
                    let entry = entry.map_err(unreadable)?;
                    let bytes = entry.metadata().map_err(unreadable)?.len();
                    sizes.push((entry.file_name(), bytes));
                }
                sizes.sort();
                Ok(Pulse(format!("{sizes:?}")))
            }
            Self::Daemon(client) => {
                let status = ask(client, "/api/status").await?;
                let commits = status.pointer("/ledger/commits");
                Ok(Pulse(format!("{:?} {commits:?}", status.get("pid"))))
            }
        }
    }
}

/// Forward from `after_seq`, page by page. Answers the number to go on from.
async fn all_pages(
    client: &Client,
    filter: &Filter,
    visit: &mut dyn FnMut(Value) -> Result<(), CliError>,
) -> Result<Option<u64>, CliError> {
    let mut after_seq = filter.after_seq.unwrap_or(0);
    loop {
        let asked = Filter {
            after_seq: Some(after_seq),
            limit: Some(RECEIPTS_MAX),
            ..filter.clone()
        };
        let receipts = page(client, &asked).await?;
        let is_last = receipts.listed.len() < RECEIPTS_MAX;
        receipts.listed.into_iter().try_for_each(&mut *visit)?;
        match receipts.last_seq {
            Some(last) if last > after_seq && !is_last => after_seq = last,
            last => return Ok(last),
        }
    }
}

async fn page(client: &Client, filter: &Filter) -> Result<Receipts, CliError> {
    let mut question = Question::new("/api/receipts");
    question.add_number("since_ms", filter.since_ms);
    question.add_number("until_ms", filter.until_ms);
    question.add_number("after_seq", filter.after_seq);
    question.add_number(
        "limit",
        filter.limit.and_then(|limit| u64::try_from(limit).ok()),
    );
    if let Some(app) = &filter.app {
        question.add("app", app);
    }
    if let Some(state) = filter.state {
        question.add("state", state.as_str());
    }
    if let Some(reason) = filter.reason {
        question.add("reason", reason.as_str());
    }
    if let Some(id) = filter.id {
        question.add("id", &id.to_string());
    }
    let mut document = ask(client, &question.0).await?;
    let last_seq = document.get("last_seq").and_then(Value::as_u64);
    match document.get_mut("receipts").map(Value::take) {
        Some(Value::Array(listed)) => Ok(Receipts { listed, last_seq }),
        _ => Err(CliError::Failed(
            "the daemon's answer holds no receipts".to_owned(),
        )),
    }
}

async fn ask(client: &Client, question: &str) -> Result<Value, CliError> {
    let client = client.clone().answering_within(QUESTION_DEADLINE);
    understood(&client, client.get(question).await?).await
}

/// Gives a daemon an order. It takes orders through its socket only.
pub async fn order(client: &Client, path: &str, with: &Value) -> Result<Value, CliError> {
    let ordered =
        async { understood(client, client.post_json(path, with.to_string()).await?).await };
    ordered.await.map_err(not_told)
}

async fn understood(client: &Client, answer: Answer) -> Result<Value, CliError> {
    let status = answer.status;
    let body = answer.bytes(ANSWER_BYTES_MAX).await?;
    if status.is_success() {
        return Ok(serde_json::from_slice(&body).map_err(ClientError::from)?);
    }
    let document = serde_json::from_slice::<Value>(&body).ok();
    let detail = document.and_then(|body| body.get("detail")?.as_str().map(str::to_owned));
    // As where no daemon runs: the words say it all.
    if let Some(detail) = detail {
        return Err(CliError::Failed(detail));
    }
    let said = String::from_utf8_lossy(&body).trim().to_owned();
    Err(CliError::Failed(format!(
        "the daemon at {} answered {status}: {said}",
        client.address()
    )))
}

/// A path with its parameters.
struct Question(String);

// === impl Question ===

impl Question {
    fn new(path: &str) -> Self {
        Self(path.to_owned())
    }

    fn add(&mut self, name: &str, value: &str) {
        let mark = if self.0.contains('?') { '&' } else { '?' };
        self.0.push(mark);
        self.0.push_str(name);
        self.0.push('=');
        self.0.push_str(&encoded(value));
    }

    fn add_number(&mut self, name: &str, value: Option<u64>) {
        if let Some(value) = value {
            self.add(name, &value.to_string());
        }
    }
}

#[cfg(test)]
mod tests;
