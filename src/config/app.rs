//! Who may spend, and how much: `[[app]]` and `[caps]`.
//!
//! Promise: an app's name is fit for a metric label, a header and a file; an amount that is not
//! given is `None` and never zero, for a cap of zero is a cap.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::tz::TimeZone;

use super::settings::{AgentReceipts, OnDisconnect};
use super::token::TokenHash;
use crate::money::MicroUsd;
use crate::protocol::closed_set;

/// The app of callers that name none: any process of this machine, as long as no app is declared.
pub const DEFAULT_APP: &str = "default";

/// All apps together, in commands, caps and metrics. No app can have it.
pub const ALL_APPS: &str = "all";

/// The label of everything that has no name of its own. No app can have it.
pub const OTHER_APP: &str = "other";

/// The names that no app can have, and what each means. [`DEFAULT_APP`] is none of them: it is an app.
const RESERVED: [(&str, &str); 2] = [
    (
        ALL_APPS,
        "means all apps together in commands, caps and metrics",
    ),
    (OTHER_APP, "is what metrics call apps that they do not name"),
];

/// Longest name of an app, in characters.
const NAME_CHARS_MAX: usize = 32;

/// One app: `[[app]]`, or one that was added at run time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct App {
    pub name: Arc<str>,
    /// The file with the app's token. `None`: it is known by its user, or by nothing.
    pub token_file: Option<PathBuf>,
    /// Of what stands in `token_file`.
    pub token: Option<TokenHash>,
    /// The users that are this app on a Unix socket.
    pub uids: Vec<u32>,
    pub limits: Limits,
    /// `None`: as `[caps]`.
    pub request_floor: Option<MicroUsd>,
    /// `None`: as `[streams]`.
    pub on_disconnect: Option<OnDisconnect>,
    /// `None`: as `[streams]`.
    pub agent_receipts: Option<AgentReceipts>,
    pub on_clarification: OnClarification,
}

/// The most that may be spent in each calendar window. `None`: no cap; zero: nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    pub hour: Option<MicroUsd>,
    pub day: Option<MicroUsd>,
    pub month: Option<MicroUsd>,
}

/// `[caps]`
#[derive(Clone, PartialEq, Eq)]
pub struct Caps {
    /// Whose hours, days and months count.
    pub time_zone: TimeZone,
    /// All apps together.
    pub all: Limits,
    /// The least that a request is expected to cost.
    pub request_floor: MicroUsd,
}

closed_set! {
    /// What becomes of an answer 200 that is a question back.
    OnClarification {
        /// The app gets it as it is.
        Pass => "pass",
        /// The app gets an error instead.
        Error => "error",
    }
}

/// A name that no app can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error(
        "the name of an app is 1 to {NAME_CHARS_MAX} characters a-z, 0-9, dot, underscore or hyphen, the first a letter or digit"
    )]
    Form,
    #[error("{word:?} {meaning}; take another name")]
    Reserved {
        word: &'static str,
        meaning: &'static str,
    },
}

// === impl App ===

impl App {
    /// An app of that name with nothing else said of it.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            token_file: None,
            token: None,
            uids: Vec::new(),
            limits: Limits::default(),
            request_floor: None,
            on_disconnect: None,
            agent_receipts: None,
            on_clarification: OnClarification::Pass,
        }
    }

    /// Whether an app may have this name.
    pub fn check_name(name: &str) -> Result<(), NameError> {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let mut bytes = name.bytes();
        let fits = name.len() <= NAME_CHARS_MAX
            && bytes.next().is_some_and(is_plain)
            && bytes.all(|byte| is_plain(byte) || b"._-".contains(&byte));
        if !fits {
            return Err(NameError::Form);
        }
        match RESERVED.into_iter().find(|(word, _)| *word == name) {
            Some((word, meaning)) => Err(NameError::Reserved { word, meaning }),
            None => Ok(()),
        }
    }
}

// === impl Limits ===

impl Limits {
    /// No window has a cap.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Each window with its name, the shortest first.
    pub fn windows(&self) -> [(&'static str, Option<MicroUsd>); 3] {
        [
            ("hour", self.hour),
            ("day", self.day),
            ("month", self.month),
        ]
    }

    /// Windows whose cap is above that of the next longer one that has any: it would never be
    /// reached.
    pub fn unreachable(&self) -> Vec<(&'static str, &'static str)> {
        let given: Vec<_> = self
            .windows()
            .into_iter()
            .filter_map(|(window, cap)| Some((window, cap?)))
            .collect();
        let pairs = given.iter().zip(given.iter().skip(1));
        pairs
            .filter(|((_, less), (_, more))| less > more)
            .map(|((short, _), (long, _))| (*short, *long))
            .collect()
    }
}

// === impl Caps ===

impl fmt::Debug for Caps {
    /// The zone by its name: its table of transitions is long.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caps")
            .field("time_zone", &self.time_zone.iana_name())
            .field("all", &self.all)
            .field("request_floor", &self.request_floor)
            .finish()
    }
}

#[cfg(test)]
mod tests;
