//! What a reading command gets its figures from: the running daemon, or the journal's files.
//! Both give the same documents ([`crate::admin::documents`]) with the same sums.
//!
//! A long listing reads the files even beside a daemon: the daemon's memory is for requests.
//!
//! Promise: nothing is written, nothing is locked; with `--admin` that daemon is asked and no other
//! place is looked at.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::SystemTime;

use super::client::Client;
use super::daemon::{Question, ask};
use super::error::CliError;
use crate::admin::RECEIPTS_MAX;
use crate::admin::documents::{ReceiptsDocument, SpendDocument, SpendQuestion, StatusDocument};
use crate::admin::explain::Explanation;
use crate::admin::reconcile::{Figure, Reconciliation};
use crate::caps::{self, CapsView, Rules};
use crate::ledger::query::{
    EntryView, Filter, Listing, compacted_until_ms, find, for_each_entry, list, spend,
};

/// A place that answers.
#[derive(Clone, Debug)]
pub enum Source {
    Daemon(Client),
    Journal(PathBuf),
}

/// Changes when something may have been added to the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pulse {
    Daemon {
        pid: u32,
        commits: u64,
    },
    Journal {
        /// Names, sizes and times of change of its files: lines may be written where room was made ahead.
        files: Vec<(OsString, u64, SystemTime)>,
        /// What changes with each commit, however short after the one before.
        mark: Vec<u8>,
    },
}

// === impl Source ===

impl Source {
    pub async fn spend(&self, asked: &SpendQuestion) -> Result<SpendDocument, CliError> {
        match self {
            Self::Journal(state_dir) => {
                let sums = spend(
                    state_dir,
                    asked.since_ms,
                    asked.until_ms,
                    &asked.by,
                    &asked.zone,
                )?;
                Ok(SpendDocument::new(asked, sums))
            }
            Self::Daemon(client) => {
                let zone = asked.zone.iana_name().ok_or_else(|| {
                    CliError::usage("this machine's time zone has no name; give one with --tz")
                })?;
                let by: Vec<String> = asked.by.iter().map(ToString::to_string).collect();
                let mut question = Question::new("/api/spend");
                question.add_number("since_ms", asked.since_ms);
                question.add_number("until_ms", asked.until_ms);
                question.add("by", &by.join(","));
                question.add("tz", zone);
                ask(client, &question).await
            }
        }
    }

    /// The service's own figure is asked for by a daemon alone: it holds the key.
    pub async fn reconcile(&self, asked: &Figure, now_ms: u64) -> Result<Reconciliation, CliError> {
        match (self, asked) {
            (Self::Daemon(client), _) => {
                let mut question = Question::new("/api/reconcile");
                if let Figure::Typed(invoice) = asked {
                    question.add_number("billed_micro_usd", Some(invoice.billed.get()));
                    question.add_number("since_ms", Some(invoice.since_ms));
                    question.add_number("until_ms", invoice.until_ms);
                }
                ask(client, &question).await
            }
            (Self::Journal(state_dir), Figure::Typed(invoice)) => {
                Ok(invoice.compare(state_dir, now_ms)?)
            }
            (Self::Journal(_), Figure::Document) => Err(CliError::Failed(
                "no daemon runs here, and only a daemon asks the service: start `bursar run`, \
                 name a running one with --admin, or give the figure of an invoice: --billed-usd 12.34 \
                 --since 2026-01-01 --until 2026-02-01"
                    .to_owned(),
            )),
        }
    }

    /// The newest `limit` entries; with `after_seq` the oldest `limit` that changed since. Holds
    /// them, and no others.
    pub async fn receipts(&self, filter: &Filter, limit: usize) -> Result<Listing, CliError> {
        let asked = Filter {
            limit: Some(limit),
            ..filter.clone()
        };
        match self {
            Self::Journal(state_dir) => Ok(list(state_dir, &asked)?),
            Self::Daemon(client) if limit <= RECEIPTS_MAX => page(client, &asked).await,
            Self::Daemon(client) => {
                let mut newest = VecDeque::new();
                let last_seq = all_pages(client, filter, &mut |entry| {
                    newest.push_back(entry);
                    if newest.len() > limit {
                        newest.pop_front();
                    }
                    Ok(())
                })
                .await?;
                let entries = newest.into();
                Ok(Listing { entries, last_seq })
            }
        }
    }

    /// Every entry, oldest change first, a thousand held at once. One that changes while a daemon is
    /// asked page by page is returned again.
    pub async fn for_each_receipt(
        &self,
        filter: &Filter,
        visit: &mut dyn FnMut(EntryView) -> Result<(), CliError>,
    ) -> Result<(), CliError> {
        match self {
            Self::Journal(state_dir) => for_each_entry(state_dir, filter, visit),
            Self::Daemon(client) => all_pages(client, filter, visit).await.map(|_| ()),
        }
    }

    /// Of what began before this moment only sums are left, and no entry is listed. `None`: nothing was compacted.
    pub async fn compacted_until_ms(&self) -> Result<Option<u64>, CliError> {
        match self {
            Self::Journal(state_dir) => Ok(compacted_until_ms(state_dir)?),
            Self::Daemon(client) => {
                let mut question = Question::new("/api/receipts");
                question.add_number("limit", Some(1));
                let newest: ReceiptsDocument = ask(client, &question).await?;
                Ok(newest.compacted_until_ms)
            }
        }
    }

    pub async fn caps(&self, rules: &Rules, now_ms: u64) -> Result<CapsView, CliError> {
        match self {
            Self::Journal(state_dir) => Ok(caps::read(state_dir, rules.clone(), now_ms)?),
            Self::Daemon(client) => ask(client, &Question::new("/api/caps")).await,
        }
    }

    pub async fn explain(&self, text: &str) -> Result<Explanation, CliError> {
        match self {
            Self::Journal(state_dir) => Ok(Explanation::new(&find(state_dir, text)?)),
            Self::Daemon(client) => {
                let mut question = Question::new("/api/explain");
                question.add("id", text);
                ask(client, &question).await
            }
        }
    }

    /// An error where no daemon answers: the figures were read from files.
    pub fn must_be_daemon(&self) -> Result<(), CliError> {
        match self {
            Self::Daemon(_) => Ok(()),
            Self::Journal(state_dir) => Err(CliError::Failed(format!(
                "no daemon answers; the figures are from the files of {}. Where none runs: `bursar run`, or the \
                 system service: systemctl start bursar",
                state_dir.display()
            ))),
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
                let mut files = Vec::new();
                for entry in std::fs::read_dir(&journal).map_err(unreadable)? {
                    let entry = entry.map_err(unreadable)?;
                    let found = entry.metadata().map_err(unreadable)?;
                    let changed = found.modified().map_err(unreadable)?;
                    files.push((entry.file_name(), found.len(), changed));
                }
                files.sort();
                // A journal may have none.
                let mark = std::fs::read(journal.join("mark")).unwrap_or_default();
                Ok(Pulse::Journal { files, mark })
            }
            Self::Daemon(client) => {
                let status: StatusDocument = ask(client, &Question::new("/api/status")).await?;
                Ok(Pulse::Daemon {
                    pid: status.pid,
                    commits: status.ledger.commits,
                })
            }
        }
    }
}

/// Forward from `after_seq`, page by page. Answers the number to go on from.
async fn all_pages(
    client: &Client,
    filter: &Filter,
    visit: &mut dyn FnMut(EntryView) -> Result<(), CliError>,
) -> Result<Option<u64>, CliError> {
    let mut after_seq = filter.after_seq.unwrap_or(0);
    loop {
        let asked = Filter {
            after_seq: Some(after_seq),
            limit: Some(RECEIPTS_MAX),
            ..filter.clone()
        };
        let listing = page(client, &asked).await?;
        let is_last = listing.entries.len() < RECEIPTS_MAX;
        listing.entries.into_iter().try_for_each(&mut *visit)?;
        match listing.last_seq {
            Some(last) if last > after_seq && !is_last => after_seq = last,
            last => return Ok(last),
        }
    }
}

async fn page(client: &Client, filter: &Filter) -> Result<Listing, CliError> {
    let mut question = Question::new("/api/receipts");
    question.add_number("since_ms", filter.since_ms);
    question.add_number("until_ms", filter.until_ms);
    question.add_number("after_seq", filter.after_seq);
    question.add_number(
        "limit",
        filter.limit.and_then(|limit| u64::try_from(limit).ok()),
    );
    let words = [
        ("app", filter.app.clone()),
        ("operation", filter.operation.map(|word| word.to_string())),
        ("model", filter.model.clone()),
        (
            "session",
            filter
                .session
                .as_ref()
                .map(|sought| sought.text().to_owned()),
        ),
        ("state", filter.state.map(|word| word.to_string())),
        ("reason", filter.reason.map(|word| word.to_string())),
        ("id", filter.id.map(|id| id.to_string())),
    ];
    for (name, word) in words {
        if let Some(word) = word {
            question.add(name, &word);
        }
    }
    let document: ReceiptsDocument = ask(client, &question).await?;
    Ok(document.into())
}
