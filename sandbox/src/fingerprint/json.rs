//! A JSON body with its numbers as they were written.
//!
//! `serde_json::Value` reads a number as 64 bits, so two integers beyond those would be equal, and their
//! requests too.
//! Promise: any two bodies that differ in more than key order and white space differ here; a body that is
//! not JSON yields nothing; the work is linear in the body.

use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Debug, PartialEq, Eq)]
pub enum Node<'a> {
    /// By name; if a name occurs twice, the last, as every reader here takes it.
    Object(BTreeMap<String, Self>),
    Array(Vec<Self>),
    Text(String),
    /// A number, `true`, `false` or `null`, as written.
    Plain(&'a str),
}

/// `None` if the whole is not a JSON document, or nests deeper than any route reads.
pub fn read(body: &[u8]) -> Option<Node<'_>> {
    // From here on every byte belongs to a well-formed document.
    serde_json::from_slice::<Value>(body).ok()?;
    let mut rest = std::str::from_utf8(body).ok()?;
    node(&mut rest)
}

fn node<'a>(rest: &mut &'a str) -> Option<Node<'a>> {
    skip_blank(rest);
    match rest.bytes().next()? {
        b'{' => {
            let mut members = BTreeMap::new();
            step(rest, '{')?;
            while !ends(rest, '}')? {
                let name = text(rest)?;
                skip_blank(rest);
                step(rest, ':')?;
                members.insert(name, node(rest)?);
            }
            Some(Node::Object(members))
        }
        b'[' => {
            let mut entries = Vec::new();
            step(rest, '[')?;
            while !ends(rest, ']')? {
                entries.push(node(rest)?);
            }
            Some(Node::Array(entries))
        }
        b'"' => text(rest).map(Node::Text),
        _ => {
            let end = rest
                .find([',', ']', '}', ' ', '\t', '\r', '\n'])
                .unwrap_or(rest.len());
            let (word, after) = rest.split_at_checked(end)?;
            *rest = after;
            Some(Node::Plain(word))
        }
    }
}

/// Takes the closing mark, or the comma before another element.
fn ends(rest: &mut &str, mark: char) -> Option<bool> {
    skip_blank(rest);
    if step(rest, mark).is_some() {
        return Some(true);
    }
    if step(rest, ',').is_some() {
        skip_blank(rest);
    }
    (!rest.is_empty()).then_some(false)
}

/// A string with its escapes resolved: `\u0061` is `a`.
fn text(rest: &mut &str) -> Option<String> {
    let mut escaped = false;
    let close = rest.bytes().skip(1).position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    })?;
    let (quoted, after) = rest.split_at_checked(close.checked_add(2)?)?;
    *rest = after;
    serde_json::from_str(quoted).ok()
}

fn skip_blank(rest: &mut &str) {
    *rest = rest.trim_start_matches([' ', '\t', '\r', '\n']);
}

fn step(rest: &mut &str, mark: char) -> Option<()> {
    *rest = rest.strip_prefix(mark)?;
    Some(())
}

#[cfg(test)]
mod tests;
