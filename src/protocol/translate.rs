//! Dialects: an app may speak Responses or Messages where the service speaks chat completions. A
//! request is translated before it is sent, and the whole answer before it is given.
//!
//! Why: half of the programs that people run speak one of the two and nothing else.
//!
//! Promise: a translation is a function of bytes, without clock, randomness or I/O, so a repeat sends
//! the bytes of the first attempt (rule I6). What cannot be honored and changes the meaning is refused
//! by name; what only tunes is left out and listed. Nothing is invented: no token count, no signature, no
//! price.

pub mod audio;
mod escaped;
pub mod messages;
pub mod models;
mod rendering;
pub mod responses;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use self::rendering::{Rendering, error, translate};
use crate::money::MicroUsd;

/// "One turn has room for `131072` (131,072) tokens": an answer is never longer.
/// Assumed: nor is one of the inference lane, of which the interface names no window.
const WINDOW_TOKENS: u64 = 131_072;

/// A request as the service is asked: one chat completion, and no stream but for [`Rendering::goes_live`].
#[derive(Debug)]
pub struct Translated<T> {
    /// A chat completion's JSON body. It names `model` as the app did: aliases apply to it afterwards.
    pub body: Vec<u8>,
    /// What the answer's translation needs to know of the request.
    pub turn: T,
    /// The app asked for events.
    pub wants_stream: bool,
    /// What was left out.
    pub dropped: Dropped,
}

/// Why a request is not translated. Nothing was sent. The answer is a 400 in the app's dialect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untranslatable {
    /// The member in question, as a path: `input[3].content[0].file_id`. Empty: the body as a whole.
    pub param: String,
    /// What is wrong, and what to do instead; it repeats no text of the request.
    pub message: String,
}

/// The service's answer cannot be rendered in the dialect; its price stands all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unrendered {
    /// What is wrong with it; it repeats no text of the answer.
    pub message: String,
}

/// What an answer says beside the service's own words.
#[derive(Clone, Copy, Debug)]
pub struct AnswerFacts<'a> {
    /// 32 hex digits that stand for the entry, and are not its id: the source of every id that the dialect asks for.
    pub entry: &'a str,
    /// When the request was made, in Unix seconds; used where the service names no time.
    pub created_s: u64,
    /// What the entry's key was billed. `None`: not known, and then the answer has no `cost`.
    pub cost: Option<MicroUsd>,
}

/// Members that were left out of a request, each with how often. In order of their first appearance; at most
/// [`Dropped::NAMES_MAX`] different ones, all further ones count as `other`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Dropped {
    names: Vec<(String, u32)>,
}

// === impl Untranslatable ===

impl Untranslatable {
    pub fn new(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            param: param.into(),
            message: message.into(),
        }
    }
}

// === impl Unrendered ===

impl Unrendered {
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
        }
    }
}

// === impl Dropped ===

impl Dropped {
    /// Most names that are kept apart.
    pub const NAMES_MAX: usize = 16;
    const OTHER: &'static str = "other";

    /// Counts one that was left out. `name` is a word of the dialect, never a text of the app's.
    pub fn add(&mut self, name: &str) {
        let known = self.names.iter().position(|(kept, _)| kept == name);
        let place = match known {
            Some(place) => Some(place),
            None if self.names.len() < Self::NAMES_MAX => None,
            None => self.names.iter().position(|(kept, _)| kept == Self::OTHER),
        };
        match place.and_then(|place| self.names.get_mut(place)) {
            Some((_, count)) => *count = count.saturating_add(1),
            None => {
                let name = match self.names.len() < Self::NAMES_MAX {
                    true => name,
                    false => Self::OTHER,
                };
                self.names.push((name.to_owned(), 1));
            }
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, u32)> {
        self.names
            .iter()
            .map(|(name, count)| (name.as_str(), *count))
    }

    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

/// `cache_control ×4, tools.web_search`.
impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (name, count)) in self.iter().enumerate() {
            let before = if at == 0 { "" } else { ", " };
            write!(f, "{before}{name}")?;
            if count > 1 {
                write!(f, " ×{count}")?;
            }
        }
        Ok(())
    }
}
