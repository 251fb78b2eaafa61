//! What sums are grouped by, in the words in which it is asked and answered.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::ledger::tallies::Dimension;
use crate::protocol::tags::TagKey;

/// What sums are grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupBy {
    App,
    Lane,
    Operation,
    ServedBy,
    Day,
    State,
    /// The model that the app asked for.
    Model,
    Hour,
    /// As ISO 8601 counts them: from Monday, the first one with most of its days in the year.
    Week,
    Month,
    /// Only the journal's lines have it, and what follows: the index keeps no sums by it.
    Session,
    User,
    Tag(TagKey),
}

const TAG_START: &str = "tag:";

// === impl GroupBy ===

impl GroupBy {
    /// All but the tags.
    pub const ALL: &[Self] = &[
        Self::App,
        Self::Lane,
        Self::Operation,
        Self::ServedBy,
        Self::Day,
        Self::State,
        Self::Model,
        Self::Hour,
        Self::Week,
        Self::Month,
        Self::Session,
        Self::User,
    ];

    /// A part of the calendar.
    pub fn is_of_calendar(self) -> bool {
        matches!(self, Self::Hour | Self::Day | Self::Week | Self::Month)
    }

    /// Only the journal's lines say it.
    pub fn is_of_lines(self) -> bool {
        matches!(self, Self::Session | Self::User | Self::Tag(_))
    }

    /// The user, or a tag.
    pub fn dimension(self) -> Option<Dimension> {
        match self {
            Self::User => Some(Dimension::User),
            Self::Tag(key) => Some(Dimension::Tag(key)),
            _ => None,
        }
    }

    /// `app`, `served_by`, `tag:customer`; `None` for another word.
    pub fn from_word(word: &str) -> Option<Self> {
        match word.strip_prefix(TAG_START) {
            Some(key) => key.parse().ok().map(Self::Tag),
            None => Self::ALL.iter().copied().find(|by| by.word() == word),
        }
    }

    /// Without the key of a tag.
    fn word(self) -> &'static str {
        match self {
            Self::App => "app",
            Self::Lane => "lane",
            Self::Operation => "operation",
            Self::ServedBy => "served_by",
            Self::Day => "day",
            Self::State => "state",
            Self::Model => "model",
            Self::Hour => "hour",
            Self::Week => "week",
            Self::Month => "month",
            Self::Session => "session",
            Self::User => "user",
            Self::Tag(_) => TAG_START,
        }
    }
}

impl fmt::Display for GroupBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tag(key) => f.pad(&format!("{TAG_START}{key}")),
            by => f.pad(by.word()),
        }
    }
}

impl Serialize for GroupBy {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for GroupBy {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let word = String::deserialize(from)?;
        Self::from_word(&word).ok_or_else(|| de::Error::custom("nothing that sums are grouped by"))
    }
}
