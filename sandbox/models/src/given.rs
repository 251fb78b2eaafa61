//! A prompt taken apart: what is asked, and what it is asked of.
//!
//! Promise: nothing of the prompt is lost: what is no instruction is material.

use super::{
    prompt::Prompt,
    text::{self, group, patterns},
};
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
pub struct PromptParts {
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

// === impl PromptParts ===

impl PromptParts {
    pub fn of(prompt: &Prompt) -> Self {
        let user = prompt.user.trim();
        let (line, rest) = match (user.split_once('\n'), user.split_once(": ")) {
            (Some((line, rest)), _) => (line.trim(), rest.trim()),
            (None, Some((line, rest))) if !line.contains(['.', '?', '!']) => (line, rest.trim()),
            _ if !prompt.system.is_empty() => ("", user),
            _ => (user, ""),
        };
        // With a system prompt the message may be material from its first line on.
        let (line, rest) = if prompt.system.is_empty() || is_instruction(line) {
            (line, rest)
        } else {
            ("", user)
        };
        let named = named(rest);
        let values: Vec<&str> = named.iter().map(|(_, value)| value.as_str()).collect();
        let text = if named.is_empty() {
            rest.to_owned()
        } else {
            values.join("\n")
        };
        let page = prompt.pages.join("\n");
        let whole = format!("{page}\n{text}").trim().to_owned();
        Self {
            instruction: format!("{}\n{line}", prompt.system).trim().to_owned(),
            named,
            text: if whole.is_empty() {
                user.to_owned()
            } else {
                whole
            },
            page,
            rest: rest.to_owned(),
        }
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
        let named = |name: &&str| self.named.iter().find(|(own, _)| own == name);
        let found = names.iter().find_map(named);
        found.map(|(_, value)| value.as_str())
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
            let sentences = text::sentences_of(text);
            let question = sentences.into_iter().rfind(|one| one.ends_with('?'));
            question.map(str::to_owned)
        };
        let question = asked(&self.instruction).or_else(|| asked(&self.rest));
        question.unwrap_or_else(|| self.instruction.clone())
    }

    /// The material without the question.
    pub fn source(&self) -> String {
        if !self.page.is_empty() {
            return self.page.clone();
        }
        self.text.replace(&self.question(), "").trim().to_owned()
    }

    /// The list to choose from: a JSON array, else lines with a mark in front (`p1: …`, `[2] …`, `3. …`).
    pub fn items(&self) -> Vec<Item> {
        let values = self.named.iter().map(|(_, value)| value.as_str());
        let arrays = values.chain([self.rest.as_str()]).filter_map(array);
        let marked = self.rest.lines().take(ITEMS_MAX).filter_map(|line| {
            let caps = MARKED.captures(line)?;
            Some(Item {
                id: group(&caps, 1).to_owned(),
                text: group(&caps, 2).trim().to_owned(),
            })
        });
        let mut lists = arrays.chain([marked.collect()]);
        lists.find(|items| items.len() > 1).unwrap_or_default()
    }
}

/// Whether a line says what to do; a greeting or a heading does not.
pub fn is_instruction(line: &str) -> bool {
    let verbs = "extract summarize summarise classify label translate rank write give find read say answer list tell \
        parse return grade rate sort";
    let first = text::words(line).into_iter().next();
    first.is_some_and(|first| text::listed(&first, verbs))
}

fn named(text: &str) -> Vec<(String, String)> {
    let mut named: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        match (NAMED.captures(line), named.last_mut()) {
            (Some(caps), _) => named.push((
                group(&caps, 1).to_owned(),
                group(&caps, 2).trim().to_owned(),
            )),
            (None, Some((_, last))) => last.push_str(&format!("\n{line}")),
            // The first line has no name: this is no list of named values.
            (None, None) => return named,
        }
    }
    // `p1: …`, `p2: …` are items.
    let is_mark = |(name, _): &(String, String)| name.ends_with(|c: char| c.is_ascii_digit());
    if named.len() > 1 && named.iter().all(is_mark) {
        named.clear();
    }
    named
}

/// The first JSON array of a text.
fn array(text: &str) -> Option<Vec<Item>> {
    let text = text.get(text.find('[')?..)?;
    let mut parsed = serde_json::Deserializer::from_str(text).into_iter::<Vec<Value>>();
    let values = parsed.next()?.ok()?;
    let items = values.iter().take(ITEMS_MAX).enumerate();
    Some(items.map(|(at, value)| item(at, value)).collect())
}

/// An entry of a JSON array: a text, or an object that may have a name of its own.
fn item(at: usize, value: &Value) -> Item {
    let plain = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    let id = ["id", "key", "index", "name"]
        .into_iter()
        .find(|name| value.get(name).is_some());
    let text = match value.as_object() {
        Some(fields) => {
            let others = fields.iter().filter(|(name, _)| id != Some(name.as_str()));
            others
                .map(|(_, value)| plain(value))
                .collect::<Vec<_>>()
                .join(". ")
        }
        None => plain(value),
    };
    let own = id.and_then(|id| value.get(id)).map(plain);
    Item {
        id: own.unwrap_or_else(|| (at + 1).to_string()),
        text,
    }
}

#[cfg(test)]
mod tests;
