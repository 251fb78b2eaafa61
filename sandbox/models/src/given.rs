//! A prompt taken apart: what is asked, and what it is asked of.
//!
//! Promise: nothing of the prompt is lost: what is no instruction is material.

use super::{facts::patterns, prompt::Prompt};
use serde_json::Value;

patterns! {
    /// `name: value`.
    NAMED = r"^([a-z][a-z0-9_]{0,39}):(.*)$";
    /// `p1: …`, `- [2] …`, `3. …`.
    MARKED = r"^\s*[-*]*\s*[\[(]?([A-Za-z0-9]{0,7}[0-9])[:.)\]][:.]*\s*(\S.*)$";
}
/// Entries of one list that are looked at.
const ITEMS_MAX: usize = 1_000;

/// One of several things to choose from or to grade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    pub id: String,
    pub text: String,
}

#[derive(Clone, Debug, Default)]
pub struct Given {
    /// The system prompt and the first line of the message.
    pub instruction: String,
    /// `name: value` where the material is written so, else empty.
    pub named: Vec<(String, String)>,
    /// The material without the names, then the attached pages.
    pub text: String,
    /// The text of the attachments alone.
    pub page: String,
    /// What stands in the message behind the instruction.
    pub rest: String,
}

// === impl Given ===

impl Given {
    pub fn of(prompt: &Prompt) -> Self {
        let user = prompt.user.trim();
        let (line, rest) = match user.split_once('\n') {
            Some((line, rest)) => (line.trim(), rest.trim()),
            None => match user.split_once(": ") {
                Some((before, after)) if !before.contains(['.', '?', '!']) => {
                    (before, after.trim())
                }
                _ if !prompt.system.is_empty() => ("", user),
                _ => (user, ""),
            },
        };
        // With a system prompt the message may be material from its first line on.
        let (line, rest) = if prompt.system.is_empty() || is_instruction(line) {
            (line, rest)
        } else {
            ("", user)
        };
        let named = named(rest);
        let text = if named.is_empty() {
            rest.to_owned()
        } else {
            let values: Vec<&str> = named.iter().map(|(_, value)| value.as_str()).collect();
            values.join("\n")
        };
        let page = prompt.pages.join("\n");
        let mut given = Self {
            instruction: format!("{}\n{line}", prompt.system).trim().to_owned(),
            named,
            text,
            page,
            rest: rest.to_owned(),
        };
        if given.text.is_empty() && given.page.is_empty() {
            given.text = user.to_owned();
        } else if !given.page.is_empty() {
            given.text = format!("{}\n{}", given.page, given.text).trim().to_owned();
        }
        given
    }

    /// A text that is material from end to end.
    pub fn plain(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            rest: text.to_owned(),
            ..Self::default()
        }
    }

    /// The value of a named part.
    pub fn value(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| {
            let found = self.named.iter().find(|(own, _)| own == name);
            found.map(|(_, value)| value.as_str())
        })
    }

    /// What is asked about the material, in the asker's words.
    pub fn question(&self) -> String {
        if let Some(question) = self.value(&["question", "query", "q", "search"]) {
            return question.to_owned();
        }
        if !self.page.is_empty() && !self.rest.is_empty() {
            return self.rest.clone();
        }
        let asked = |text: &str| {
            let sentences = super::text::sentences_of(text);
            let question = sentences.iter().rev().find(|one| one.ends_with('?'));
            question.map(|one| (*one).to_owned())
        };
        asked(&self.instruction)
            .or_else(|| asked(&self.rest))
            .unwrap_or_else(|| self.instruction.clone())
    }

    /// The material without the question.
    pub fn source(&self) -> String {
        if !self.page.is_empty() {
            return self.page.clone();
        }
        let question = self.question();
        let parts: Vec<&str> = self
            .named
            .iter()
            .map(|(_, value)| value.as_str())
            .filter(|value| *value != question)
            .collect();
        if parts.is_empty() {
            return self.text.replace(&question, "");
        }
        parts.join("\n")
    }

    /// The list to choose from: a JSON array, else lines with a mark in front (`p1: …`, `[2] …`, `3. …`).
    pub fn items(&self) -> Vec<Item> {
        let values = self.named.iter().map(|(_, value)| value.as_str());
        let arrays = values.chain([self.rest.as_str()]).filter_map(array);
        let lines = self.rest.lines().take(ITEMS_MAX).filter_map(|line| {
            let caps = MARKED.captures(line)?;
            Some(Item {
                id: caps.get(1)?.as_str().to_owned(),
                text: caps.get(2)?.as_str().trim().to_owned(),
            })
        });
        let mut lists = arrays.chain([lines.collect()]);
        lists.find(|items| items.len() > 1).unwrap_or_default()
    }
}

/// The first JSON array of a text.
fn array(text: &str) -> Option<Vec<Item>> {
    let text = text.get(text.find('[')?..)?;
    let mut parsed = serde_json::Deserializer::from_str(text).into_iter::<Vec<Value>>();
    let values = parsed.next()?.ok()?;
    let items = values.iter().take(ITEMS_MAX).enumerate();
    Some(items.filter_map(|(at, value)| item(at, value)).collect())
}

/// Whether a line says what to do; a greeting or a heading does not.
pub fn is_instruction(line: &str) -> bool {
    let words = super::prompt::words(line);
    let verbs = "extract summarize summarise classify label translate rank write give find read say answer list tell \
        parse return grade rate sort";
    let first = words.first();
    first.is_some_and(|first| super::prompt::listed(first, verbs))
}

fn named(text: &str) -> Vec<(String, String)> {
    let mut named: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        let caps = NAMED.captures(line);
        let part = |at| Some(caps.as_ref()?.get(at)?.as_str());
        match (part(1).zip(part(2)), named.last_mut()) {
            (Some((name, value)), _) => named.push((name.to_owned(), value.trim().to_owned())),
            (None, Some((_, last))) => last.push_str(&format!("\n{line}")),
            // The first line has no name: this is no list of named values.
            (None, None) => return Vec::new(),
        }
    }
    // `p1: …`, `p2: …` are items.
    let is_mark = |(name, _): &(String, String)| name.ends_with(|c: char| c.is_ascii_digit());
    if named.len() > 1 && named.iter().all(is_mark) {
        named.clear();
    }
    named
}

/// An entry of a JSON array: a text, or an object with a name of its own.
fn item(at: usize, value: &Value) -> Option<Item> {
    let plain = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    if value.is_string() {
        return Some(Item {
            id: (at + 1).to_string(),
            text: plain(value),
        });
    }
    let fields = value.as_object()?;
    let id = ["id", "key", "index", "name"]
        .into_iter()
        .find(|name| fields.contains_key(*name));
    let others = fields.iter().filter(|(name, _)| id != Some(name.as_str()));
    let texts: Vec<String> = others.map(|(_, value)| plain(value)).collect();
    let id = id.and_then(|id| fields.get(id)).map(plain);
    Some(Item {
        id: id.unwrap_or_else(|| (at + 1).to_string()),
        text: texts.join(". "),
    })
}

#[cfg(test)]
mod tests;
