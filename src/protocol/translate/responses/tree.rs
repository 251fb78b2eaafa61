//! An object with those objects and lists inside of it that are looked into, read in one pass.
//!
//! Why: read level by level ([`super::json`]), each level passes over a long text once more. An answer has its text six
//! levels deep, and so has its document.
//!
//! Promise: reading is linear, and no deeper than the [`Shape`] is; what is not in it stays the text that it came as. Of
//! a member that occurs twice the last one counts; `null` counts as absent. What has another form than the shape says
//! is none of it.

use std::borrow::Cow;
use std::fmt;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::value::RawValue;

use super::json::{MEMBERS_MAX, Name, quote};

/// What is read, and what stays text.
#[derive(Clone, Copy)]
pub enum Shape {
    Text,
    /// The members that are read further; all others stay text.
    Object(&'static [(&'static str, Shape)]),
    List(&'static Shape),
}

/// The members of an object in their order.
pub struct Tree<'a>(Vec<(Cow<'a, str>, Node<'a>)>);

pub enum Node<'a> {
    /// As it came.
    Text(&'a RawValue),
    Object(Tree<'a>),
    List(Vec<Node<'a>>),
    /// It has another form than the shape says.
    Other,
    /// `null`, where the shape has more.
    Absent,
}

// === impl Tree ===

impl<'a> Tree<'a> {
    /// `None`: the text is not one complete object.
    pub fn read(json: &'a str, members: &'static [(&'static str, Shape)]) -> Option<Self> {
        let mut from = serde_json::Deserializer::from_str(json);
        let read = Shape::Object(members).deserialize(&mut from).ok()?;
        from.end().ok()?;
        match read {
            Node::Object(tree) => Some(tree),
            _ => None,
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Node<'a>)> {
        self.0.iter().map(|(name, node)| (name.as_ref(), node))
    }

    /// A member that is present and not `null`.
    pub fn get(&self, name: &str) -> Option<&Node<'a>> {
        let found = self.0.iter().rfind(|(known, _)| known == name);
        found.map(|(_, node)| node).filter(|node| match node {
            Node::Text(text) => text.get() != "null",
            Node::Absent => false,
            _ => true,
        })
    }

    /// A member that stayed text.
    pub fn text(&self, name: &str) -> Option<&'a RawValue> {
        match self.get(name)? {
            Node::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn object(&self, name: &str) -> Option<&Tree<'a>> {
        self.get(name)?.object()
    }

    pub fn list(&self, name: &str) -> Option<&[Node<'a>]> {
        match self.get(name)? {
            Node::List(nodes) => Some(nodes),
            _ => None,
        }
    }

    /// Appends it as JSON, without spaces between its members.
    pub fn write(&self, out: &mut String) {
        let mut before = '{';
        for (name, node) in &self.0 {
            out.push(before);
            quote(out, name);
            out.push(':');
            node.write(out);
            before = ',';
        }
        if before == '{' {
            out.push('{');
        }
        out.push('}');
    }
}

// === impl Node ===

impl<'a> Node<'a> {
    pub fn object(&self) -> Option<&Tree<'a>> {
        match self {
            Self::Object(tree) => Some(tree),
            _ => None,
        }
    }

    /// As [`Tree::write`]. What has another form than the shape says is not known any more.
    pub fn write(&self, out: &mut String) {
        match self {
            Self::Text(text) => out.push_str(text.get()),
            Self::Object(tree) => tree.write(out),
            Self::List(nodes) => {
                out.push('[');
                for (place, node) in nodes.iter().enumerate() {
                    if place > 0 {
                        out.push(',');
                    }
                    node.write(out);
                }
                out.push(']');
            }
            Self::Other | Self::Absent => out.push_str("null"),
        }
    }
}

// === impl Shape ===

impl<'de> DeserializeSeed<'de> for Shape {
    type Value = Node<'de>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        match self {
            Self::Text => Deserialize::deserialize(from).map(Node::Text),
            Self::Object(_) | Self::List(_) => from.deserialize_any(self),
        }
    }
}

/// Of an object or a list; all else is [`Node::Other`].
impl<'de> Visitor<'de> for Shape {
    type Value = Node<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let Self::Object(shapes) = self else {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(Node::Other);
        };
        let mut members = Vec::with_capacity(8);
        while let Some(Name(name)) = map.next_key()? {
            if members.len() >= MEMBERS_MAX {
                return Err(A::Error::custom("too many members"));
            }
            let shape = shapes.iter().find(|(known, _)| *known == name);
            let shape = shape.map_or(Self::Text, |(_, shape)| *shape);
            members.push((name, map.next_value_seed(shape)?));
        }
        Ok(Node::Object(Tree(members)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let Self::List(shape) = self else {
            while list.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(Node::Other);
        };
        let mut nodes = Vec::new();
        while let Some(node) = list.next_element_seed(*shape)? {
            nodes.push(node);
        }
        Ok(Node::List(nodes))
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Node::Absent)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Node::Other)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Node::Other)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Node::Other)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Node::Other)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
        Ok(Node::Other)
    }
}

#[cfg(test)]
mod tests;
