//! Tokens of runs that are missing for a moment: a daemon that was just started has not yet heard again
//! of the runs of `bursar exec` that were open before, and an app may be removed and added in one go.
//! SDKs do not repeat a request that is answered 401, so the child of such a run is asked to wait.
//!
//! The hashes of the open runs' tokens stand in the state directory. The file is written when a run
//! opens and not when one ends, for a stop ends them all: a token too many in it is refused a few seconds
//! later than it could be.
//!
//! Promise: bounded; only a request with the token of such a run is asked to wait, and only for some seconds;
//! a file that cannot be read or written costs the wait and nothing else.

use std::time::Duration;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::error::RUNS_MAX;
use crate::config::TokenHash;
use crate::ledger::LedgerError;
use crate::ledger::state_dir::Directory;

const FILE: &str = "runs.json";
const FORMAT: u32 = 1;

/// How long after a start the runs of before are waited for. `bursar exec` tries three times a second.
const START_WAIT: Duration = Duration::from_secs(10);

/// How long a run that is taken up again may take: what it spent is read from the journal.
const OPENING_MAX: Duration = Duration::from_secs(60);

/// How long a run outlives its app, counted from the first request that finds it gone.
const ORPHAN_WAIT: Duration = Duration::from_millis(1_500);

/// Most tokens that are waited for.
const TOKENS_MAX: usize = 2 * RUNS_MAX;

/// The tokens that are waited for. Times are monotonic.
#[derive(Debug, Default)]
pub struct Awaited {
    missing: Mutex<Vec<(TokenHash, Duration)>>,
    /// Runs without their app.
    orphans: Mutex<Vec<(TokenHash, Duration)>>,
}

#[derive(Serialize, Deserialize)]
struct AwaitedFile {
    format: u32,
    tokens_blake3: Vec<String>,
}

// === impl Awaited ===

impl Awaited {
    /// The runs that were open when the last daemon ended. They are waited for from [`Self::start`] on.
    pub(super) fn read(directory: &Directory) -> Self {
        let tokens = match directory.read(FILE) {
            Ok(None) => Vec::new(),
            Ok(Some(text)) => parse(&text).unwrap_or_else(|| {
                tracing::warn!(
                    file = FILE,
                    "damaged: runs that were open are not waited for"
                );
                Vec::new()
            }),
            Err(error) => {
                tracing::warn!(%error, "runs that were open are not waited for");
                Vec::new()
            }
        };
        let missing = tokens.into_iter().map(|token| (token, Duration::ZERO));
        Self {
            missing: Mutex::new(missing.collect()),
            orphans: Mutex::default(),
        }
    }

    pub(super) fn start(&self, now: Duration) {
        for (_, until) in self.missing.lock().iter_mut() {
            *until = now.saturating_add(START_WAIT);
        }
    }

    /// A run is about to open. Tokens that were waited for in vain are forgotten.
    pub(super) fn expect(&self, token: TokenHash, now: Duration) {
        let mut missing = self.missing.lock();
        missing.retain(|(other, until)| *other != token && now < *until);
        if missing.len() < TOKENS_MAX {
            missing.push((token, now.saturating_add(OPENING_MAX)));
        }
    }

    /// A run is there, or will not come.
    pub(super) fn settle(&self, token: TokenHash) {
        self.missing.lock().retain(|(other, _)| *other != token);
    }

    /// Puts what is open, and what is still waited for, on the disk.
    pub(super) fn write(
        &self,
        directory: &Directory,
        open: &[TokenHash],
    ) -> Result<(), LedgerError> {
        let missing = self.missing.lock();
        let tokens = open.iter().chain(missing.iter().map(|(token, _)| token));
        let file = AwaitedFile {
            format: FORMAT,
            tokens_blake3: tokens
                .take(TOKENS_MAX)
                .map(|token| token.to_hex())
                .collect(),
        };
        let text = serde_json::json!(file).to_string();
        directory.replace(FILE, text.as_bytes())
    }

    /// Every hash is looked at, also behind one that fits.
    pub(super) fn holds(&self, token: TokenHash, now: Duration) -> bool {
        let mut found = false;
        for (other, until) in self.missing.lock().iter() {
            found |= *other == token && now < *until;
        }
        found
    }

    /// An open run's app is not there; whether it may come back. `token` is the run's.
    pub(super) fn holds_orphan(&self, token: TokenHash, now: Duration) -> bool {
        let mut orphans = self.orphans.lock();
        if let Some((_, until)) = orphans.iter().find(|(other, _)| *other == token) {
            return now < *until;
        }
        if orphans.len() >= TOKENS_MAX {
            orphans.remove(0);
        }
        orphans.push((token, now.saturating_add(ORPHAN_WAIT)));
        true
    }

    /// An open run has its app.
    pub(super) fn has_app(&self, token: TokenHash) {
        self.orphans.lock().retain(|(other, _)| *other != token);
    }
}

fn parse(text: &str) -> Option<Vec<TokenHash>> {
    let file: AwaitedFile = serde_json::from_str(text).ok()?;
    let tokens = file.tokens_blake3.iter().take(TOKENS_MAX);
    let tokens = tokens.map(|token| TokenHash::from_hex(token)).collect();
    (file.format == FORMAT).then_some(tokens)?
}

#[cfg(test)]
mod tests;
