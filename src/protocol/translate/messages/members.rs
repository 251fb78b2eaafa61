//! Members of the JSON objects of a request, and where they stand, for a refusal.
//!
//! Promise: a member is taken once; what nobody takes is counted as left out. An object with a member twice has no
//! one meaning and is refused. Time is linear: an object that is read has at most [`MEMBERS_MAX`] members.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::json;
use crate::protocol::translate::{Dropped, Untranslatable};

/// More than any object of the dialect has. Tool inputs and schemas are not read.
const MEMBERS_MAX: usize = 64;

/// Members that tune or that only Anthropic's own servers use: what is left out has one of these names, or
/// [`UNKNOWN`].
const TUNING: &[&str] = &[
    "allowed_callers",
    "anthropic_beta",
    "anthropic_version",
    "betas",
    "billing_policy",
    "cache_control",
    "caller",
    "citations",
    "compaction",
    "context_management",
    "defer_loading",
    "diagnostics",
    "eager_input_streaming",
    "fallback_credit_token",
    "fallbacks",
    "input_examples",
    "metadata",
    "output_config",
    "service_tier",
    "speed",
    "thinking",
    "toolset_name",
    "top_k",
    "transformations",
    "user_profile_id",
    "workspace_id",
];

/// The name of what the dialect has no word for.
const UNKNOWN: &str = "unknown";

/// Where something stands in a request: `messages[3].content[0].source`.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    around: Option<&'a Place<'a>>,
    step: Step,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Body,
    Member(&'static str),
    Element(usize),
}

/// The members of one object that are not taken yet.
#[derive(Debug)]
pub struct Members<'a> {
    left: Vec<(Cow<'a, str>, &'a RawValue)>,
}

struct MembersVisitor;

/// A member's name, copied only where it has escapes.
struct Name<'a>(Cow<'a, str>);

struct NameVisitor;

/// The elements of a list.
pub fn elements<'a>(
    list: &'a RawValue,
    place: &Place<'_>,
) -> Result<Vec<&'a RawValue>, Untranslatable> {
    serde_json::from_str(list.get()).map_err(|_| place.refuse("It must be a list."))
}

/// The members of each object of a list, read in one pass with it.
pub fn objects<'a>(
    list: &'a RawValue,
    place: &Place<'_>,
) -> Result<Vec<Members<'a>>, Untranslatable> {
    serde_json::from_str(list.get()).map_err(|_| {
        let elements = match elements(list, place) {
            Ok(elements) => elements,
            Err(refused) => return refused,
        };
        let mut read = elements.into_iter().enumerate();
        let refused =
            read.find_map(|(index, element)| Members::read(element, &place.element(index)).err());
        refused.unwrap_or_else(|| place.refuse("It must be a list of objects."))
    })
}

/// The spelling of a string.
pub fn spelled<'a>(value: &'a RawValue, place: &Place<'_>) -> Result<&'a str, Untranslatable> {
    json::inside(value).ok_or_else(|| place.refuse("It must be a string."))
}

pub fn flag(value: &RawValue, place: &Place<'_>) -> Result<bool, Untranslatable> {
    match value.get() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(place.refuse("It must be true or false.")),
    }
}

// === impl Place ===

impl<'a> Place<'a> {
    /// The request as a whole.
    pub const BODY: Self = Self {
        around: None,
        step: Step::Body,
    };

    pub const fn member(&'a self, name: &'static str) -> Self {
        Self {
            around: Some(self),
            step: Step::Member(name),
        }
    }

    pub const fn element(&'a self, index: usize) -> Self {
        Self {
            around: Some(self),
            step: Step::Element(index),
        }
    }

    /// A refusal of what stands here; `message` repeats no text of the request.
    pub fn refuse(&self, message: &str) -> Untranslatable {
        Untranslatable::new(self.to_string(), message)
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(around) = self.around {
            around.fmt(f)?;
        }
        let is_first = matches!(self.around.map(|around| around.step), Some(Step::Body));
        match self.step {
            Step::Body => Ok(()),
            Step::Member(name) if is_first => f.write_str(name),
            Step::Member(name) => write!(f, ".{name}"),
            Step::Element(index) => write!(f, "[{index}]"),
        }
    }
}

// === impl Members ===

impl<'a> Members<'a> {
    pub fn read(object: &'a RawValue, place: &Place<'_>) -> Result<Self, Untranslatable> {
        let read = serde_json::from_str(object.get());
        read.map_err(|_| Self::refuse(place))
    }

    /// The refusal of what cannot be read.
    pub fn refuse(place: &Place<'_>) -> Untranslatable {
        place.refuse("It must be an object that has each member once.")
    }

    /// The member `name`. `null` counts as absent.
    pub fn take(&mut self, name: &str) -> Option<&'a RawValue> {
        let at = self.left.iter().position(|(known, _)| known == name)?;
        let (_, value) = self.left.remove(at);
        (value.get() != "null").then_some(value)
    }

    pub fn required(
        &mut self,
        name: &'static str,
        place: &Place<'_>,
    ) -> Result<&'a RawValue, Untranslatable> {
        let missing = || place.member(name).refuse("It is required.");
        self.take(name).ok_or_else(missing)
    }

    /// The spelling of a string that must be there.
    pub fn required_string(
        &mut self,
        name: &'static str,
        place: &Place<'_>,
    ) -> Result<&'a str, Untranslatable> {
        spelled(self.required(name, place)?, &place.member(name))
    }

    /// The spelling of a string that may be there.
    pub fn string(
        &mut self,
        name: &'static str,
        place: &Place<'_>,
    ) -> Result<Option<&'a str>, Untranslatable> {
        let value = self.take(name);
        let value = value.map(|value| spelled(value, &place.member(name)));
        value.transpose()
    }

    /// The words of `type`: which of its kinds an object is. Empty where they cannot be read.
    pub fn kind(&mut self) -> String {
        self.take("type").and_then(json::text).unwrap_or_default()
    }

    /// Counts all that is left as left out.
    pub fn leave_out(self, dropped: &mut Dropped) {
        for (name, value) in self.left {
            if value.get() == "null" {
                continue;
            }
            let known = TUNING.iter().find(|known| **known == name);
            dropped.add(known.copied().unwrap_or(UNKNOWN));
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(MembersVisitor)
    }
}

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut left: Vec<(Cow<'de, str>, &'de RawValue)> = Vec::with_capacity(4);
        while let Some((Name(name), value)) = map.next_entry()? {
            let is_known = left.iter().any(|(known, _)| *known == name);
            if is_known || left.len() == MEMBERS_MAX {
                return Err(de::Error::custom("a member twice, or too many"));
            }
            left.push((name, value));
        }
        Ok(Members { left })
    }
}

// === impl Name ===

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_str(NameVisitor)
    }
}

impl<'de> Visitor<'de> for NameVisitor {
    type Value = Name<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_borrowed_str<E: de::Error>(self, name: &'de str) -> Result<Self::Value, E> {
        Ok(Name(Cow::Borrowed(name)))
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Name(Cow::Owned(name.to_owned())))
    }
}
