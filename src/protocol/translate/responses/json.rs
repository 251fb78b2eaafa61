//! JSON one level at a time: each member and element stays the text that it came as, so what a
//! translation carries over is carried to the byte, escapes and numbers included.
//!
//! Promise: reading is linear and never recurses, however deep a document is. Of a member that
//! occurs twice the last one counts, as in every client. A value of another type than the dialect's is
//! refused with its path; `null` counts as absent.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::protocol::translate::Untranslatable;

/// Most members of one object: each is looked up by a scan. The dialect's objects have some forty.
pub(super) const MEMBERS_MAX: usize = 1024;

/// The members of an object in their order.
pub struct Object<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

/// A JSON string as it came, quotes and escapes included. It may hold the escape of half a character
/// (`\ud800`), which no Rust string can.
#[derive(Clone, Copy)]
pub struct Text<'a>(&'a str);

/// Where a value stands in the body. Written out only where a value is refused.
#[derive(Clone, Copy)]
pub enum Path<'p> {
    Body,
    Member(&'p Path<'p>, &'p str),
    Element(&'p Path<'p>, usize),
}

/// A member's name.
pub(super) struct Name<'a>(pub Cow<'a, str>);

/// The elements of an array. `None`: it is none.
pub fn array(value: &RawValue) -> Option<Vec<&RawValue>> {
    serde_json::from_str(value.get()).ok()
}

/// The objects of an array, read in one pass with it. `element`: what one is called where it is none.
pub fn objects<'a>(
    value: &'a RawValue,
    at: &Path<'_>,
    element: &str,
) -> Result<Vec<Object<'a>>, Untranslatable> {
    serde_json::from_str(value.get()).map_err(|_| {
        let Some(elements) = array(value) else {
            return at.refuse("This has to be a string or an array.");
        };
        let is_none = |element: &&RawValue| Object::read(element.get()).is_none();
        let place = elements.iter().position(is_none).unwrap_or_default();
        at.element(place)
            .refuse(format!("{element} has to be an object."))
    })
}

/// Appends a text as a JSON string.
pub fn quote(out: &mut String, text: &str) {
    out.push('"');
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..0x20 => "",
            _ => continue,
        };
        out.push_str(text.get(plain..at).unwrap_or_default());
        match escape {
            "" => out.push_str(&format!("\\u{byte:04x}")),
            escape => out.push_str(escape),
        }
        plain = at + 1;
    }
    out.push_str(text.get(plain..).unwrap_or_default());
    out.push('"');
}

// === impl Object ===

impl<'a> Object<'a> {
    /// `None`: the text is not one complete object.
    pub fn read(json: &'a str) -> Option<Self> {
        serde_json::from_str(json).ok()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), *value))
    }

    /// A member that is present and not `null`.
    pub fn get(&self, name: &str) -> Option<&'a RawValue> {
        let found = self.0.iter().rfind(|(known, _)| known == name);
        let value = found.map(|(_, value)| *value);
        value.filter(|value| value.get() != "null")
    }

    pub fn text(&self, at: &Path<'_>, name: &str) -> Result<Option<Text<'a>>, Untranslatable> {
        let read = |value: &'a RawValue| Text::of(value);
        self.typed(at, name, "a string", read)
    }

    /// A string that is compared or looked up, hence unescaped.
    pub fn word(&self, at: &Path<'_>, name: &str) -> Result<Option<Cow<'a, str>>, Untranslatable> {
        let read = |value: &'a RawValue| Text::of(value)?.unescaped();
        self.typed(at, name, "a string", read)
    }

    pub fn flag(&self, at: &Path<'_>, name: &str) -> Result<Option<bool>, Untranslatable> {
        let read = |value: &'a RawValue| value.get().parse().ok();
        self.typed(at, name, "true or false", read)
    }

    /// A number's own text.
    pub fn number(&self, at: &Path<'_>, name: &str) -> Result<Option<&'a str>, Untranslatable> {
        let read = |value: &'a RawValue| is_number(value.get()).then(|| value.get());
        self.typed(at, name, "a number", read)
    }

    /// The same of a count.
    pub fn count(&self, at: &Path<'_>, name: &str) -> Result<Option<&'a str>, Untranslatable> {
        let is_count = |value: &&str| value.parse::<u64>().is_ok() && is_number(value);
        let read = |value: &'a RawValue| Some(value.get()).filter(is_count);
        self.typed(at, name, "a whole number that is not negative", read)
    }

    pub fn array(
        &self,
        at: &Path<'_>,
        name: &str,
    ) -> Result<Option<Vec<&'a RawValue>>, Untranslatable> {
        self.typed(at, name, "an array", |value: &'a RawValue| array(value))
    }

    pub fn object(&self, at: &Path<'_>, name: &str) -> Result<Option<Object<'a>>, Untranslatable> {
        let read = |value: &'a RawValue| Object::read(value.get());
        self.typed(at, name, "an object", read)
    }

    /// An object that stays text.
    pub fn nested(
        &self,
        at: &Path<'_>,
        name: &str,
    ) -> Result<Option<&'a RawValue>, Untranslatable> {
        let read = |value: &'a RawValue| value.get().starts_with('{').then_some(value);
        self.typed(at, name, "an object", read)
    }

    /// As JSON, without spaces between its members.
    pub fn to_json(&self) -> String {
        let mut out = "{".to_owned();
        for (name, value) in self.iter() {
            if out.len() > 1 {
                out.push(',');
            }
            quote(&mut out, name);
            out.push(':');
            out.push_str(value.get());
        }
        out.push('}');
        out
    }

    fn typed<T>(
        &self,
        at: &Path<'_>,
        name: &str,
        kind: &str,
        read: impl FnOnce(&'a RawValue) -> Option<T>,
    ) -> Result<Option<T>, Untranslatable> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        let refused = || at.member(name).refuse(format!("This has to be {kind}."));
        read(value).map(Some).ok_or_else(refused)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::with_capacity(4);
                while let Some(Name(name)) = map.next_key()? {
                    if members.len() >= MEMBERS_MAX {
                        return Err(A::Error::custom("too many members"));
                    }
                    members.push((name, map.next_value()?));
                }
                Ok(Object(members))
            }
        }

        deserializer.deserialize_map(Members)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Name<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Letters;

        impl<'de> Visitor<'de> for Letters {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E: Error>(self, name: &'de str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Borrowed(name)))
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Owned(name.to_owned())))
            }
        }

        deserializer.deserialize_str(Letters)
    }
}

/// Whether a text is one JSON object, of any number of members.
pub fn is_object(text: &str) -> bool {
    let value: Option<&RawValue> = serde_json::from_str(text).ok();
    value.is_some_and(|value| value.get().starts_with('{'))
}

// === impl Text ===

impl<'a> Text<'a> {
    /// `None`: the value is no string.
    pub fn of(value: &'a RawValue) -> Option<Self> {
        value.get().starts_with('"').then(|| Self(value.get()))
    }

    /// With its quotes.
    pub fn json(self) -> &'a str {
        self.0
    }

    /// Without its quotes; escapes stay.
    pub fn escaped(self) -> &'a str {
        let inner = self.0.strip_prefix('"');
        let inner = inner.and_then(|inner| inner.strip_suffix('"'));
        inner.unwrap_or_default()
    }

    pub fn is_empty(self) -> bool {
        self.escaped().is_empty()
    }

    /// `None`: it holds half a character.
    pub fn unescaped(self) -> Option<Cow<'a, str>> {
        match self.escaped().contains('\\') {
            false => Some(Cow::Borrowed(self.escaped())),
            true => serde_json::from_str(self.0).ok().map(Cow::Owned),
        }
    }
}

// === impl Path ===

impl<'p> Path<'p> {
    pub fn member(&'p self, name: &'p str) -> Path<'p> {
        Path::Member(self, name)
    }

    pub fn element(&'p self, place: usize) -> Path<'p> {
        Path::Element(self, place)
    }

    pub fn refuse(&self, message: impl Into<String>) -> Untranslatable {
        Untranslatable::new(self.to_string(), message)
    }

    pub fn missing(&self, name: &str) -> Untranslatable {
        self.member(name).refuse("This is required.")
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Body => Ok(()),
            Path::Member(Path::Body, name) => f.write_str(name),
            Path::Member(above, name) => write!(f, "{above}.{name}"),
            Path::Element(above, place) => write!(f, "{above}[{place}]"),
        }
    }
}

fn is_number(json: &str) -> bool {
    json.starts_with(|first: char| first == '-' || first.is_ascii_digit())
}
