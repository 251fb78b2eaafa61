//! Of which share of which cap a notice was sent: one small file in the state directory.
//!
//! Promise: what is marked is on the disk before it is sent, so nothing is sent twice; bounded. Marks of windows that
//! are over stay for two days, for a clock that was ahead goes back.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::caps::{CapView, Period};
use crate::config::{ALL_APPS, Share};
use crate::ledger::LedgerError;
use crate::ledger::record::{sealed, unsealed};
use crate::ledger::state_dir::Directory;
use crate::money::MicroUsd;

const NAME: &str = "notified";
const START: &[u8] = br#"{"kind":"notified""#;
const FORMAT: u32 = 1;

const KEPT_MS: u64 = 2 * 24 * 60 * 60 * 1000;

/// Caps of 65 scopes, the hours of two days. Beyond that the windows that end first are forgotten.
const MARKS_MAX: usize = 4096;

/// The highest share of one limit in one window of which a notice was sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// `None`: the cap of all apps together.
    app: Option<String>,
    period: Period,
    since_ms: u64,
    until_ms: u64,
    /// Another limit begins anew.
    limit_micro_usd: MicroUsd,
    ten_thousandths: u16,
}

/// All of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks(Vec<Mark>);

#[derive(Serialize, Deserialize)]
struct MarksFile {
    format: u32,
    marks: Vec<Mark>,
}

// === impl Mark ===

impl Mark {
    pub fn of(cap: &CapView, share: Share) -> Self {
        Self {
            app: (cap.scope != ALL_APPS).then(|| cap.scope.clone()),
            period: cap.period,
            since_ms: cap.since_ms,
            until_ms: cap.resets_at_ms,
            limit_micro_usd: cap.limit,
            ten_thousandths: share.ten_thousandths(),
        }
    }

    fn is_of_the_same(&self, other: &Self) -> bool {
        (&self.app, self.period, self.since_ms, self.limit_micro_usd)
            == (
                &other.app,
                other.period,
                other.since_ms,
                other.limit_micro_usd,
            )
    }
}

// === impl Marks ===

impl Marks {
    /// Without a file: none. An error: in words.
    pub fn read(state_dir: &Path) -> Result<Self, String> {
        let read = match Directory::open(state_dir) {
            Ok(directory) => directory.read(NAME),
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(error),
        };
        let Some(text) = read.map_err(|error| error.to_string())? else {
            return Ok(Self::default());
        };
        let body: Option<MarksFile> = unsealed(START, text.as_bytes());
        let body = body.filter(|body| body.format == FORMAT);
        body.map(|body| Self(body.marks))
            .ok_or_else(|| "it is damaged, or of another release".to_owned())
    }

    pub fn write(&self, state_dir: &Path) -> Result<(), LedgerError> {
        let directory = Directory::open_or_create(state_dir)?;
        let body = MarksFile {
            format: FORMAT,
            marks: self.0.clone(),
        };
        let line = sealed(START, &body).map_err(|error| LedgerError::io(state_dir, error))?;
        directory.replace(NAME, &line)
    }

    /// `true`: of that share none was sent, nor of a higher one.
    pub fn add(&mut self, mark: Mark) -> bool {
        match self.0.iter_mut().find(|known| known.is_of_the_same(&mark)) {
            Some(known) if known.ten_thousandths >= mark.ten_thousandths => false,
            Some(known) => {
                *known = mark;
                true
            }
            None => {
                self.0.push(mark);
                true
            }
        }
    }

    /// Forgets what is long over.
    pub fn prune(&mut self, now_ms: u64) {
        self.0
            .retain(|mark| mark.until_ms.saturating_add(KEPT_MS) > now_ms);
        let surplus = self.0.len().saturating_sub(MARKS_MAX);
        if surplus > 0 {
            self.0.sort_by_key(|mark| mark.until_ms);
            self.0.drain(..surplus);
        }
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests;
