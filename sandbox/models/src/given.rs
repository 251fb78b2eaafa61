//! A prompt taken apart: what is asked, and what it is asked of.
//!
//! Promise: nothing of the prompt is lost: what is no instruction is material.

use super::prompt::Prompt;
use serde_json::Value;

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
        let arrays = self
            .named
            .iter()
            .map(|(_, value)| value.as_str())
            .chain([self.rest.as_str()]);
        for text in arrays {
            let start = text.find('[').and_then(|at| text.get(at..));
            let parsed = start.and_then(|text| {
                serde_json::Deserializer::from_str(text)
                    .into_iter::<Vec<Value>>()
                    .next()?
                    .ok()
            });
            let items: Vec<Item> = parsed
                .into_iter()
                .flatten()
                .take(ITEMS_MAX)
                .enumerate()
                .filter_map(|(at, value)| item(at, &value))
                .collect();
            if items.len() > 1 {
                return items;
            }
        }
        let lines: Vec<Item> = self
            .rest
            .lines()
            .take(ITEMS_MAX)
            .filter_map(marked)
            .collect();
        if lines.len() > 1 { lines } else { Vec::new() }
    }
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
        let name = line.split_once(':').map(|(name, _)| name).filter(|name| {
            (1..=40).contains(&name.len())
                && name.starts_with(|c: char| c.is_ascii_lowercase())
                && name
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        });
        let value = |name: &str| line.get(name.len() + 1..).unwrap_or("").trim().to_owned();
        match (name, named.last_mut()) {
            (Some(name), _) => named.push((name.to_owned(), value(name))),
            (None, Some((_, last))) => {
                last.push('\n');
                last.push_str(line);
            }
            // The first line has no name: this is no list of named values.
            (None, None) => return Vec::new(),
        }
    }
    // `p1: …`, `p2: …` are items.
    if named.len() > 1
        && named
            .iter()
            .all(|(name, _)| name.ends_with(|c: char| c.is_ascii_digit()))
    {
        return Vec::new();
    }
    named
}

fn item(at: usize, value: &Value) -> Option<Item> {
    if let Value::String(text) = value {
        return Some(Item {
            id: (at + 1).to_string(),
            text: text.clone(),
        });
    }
    let fields = value.as_object()?;
    let id = ["id", "key", "index", "name"]
        .iter()
        .find_map(|name| fields.get_key_value(*name));
    let texts: Vec<String> = fields
        .iter()
        .filter(|(name, _)| id.is_none_or(|(id, _)| id != *name))
        .map(|(_, value)| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        })
        .collect();
    Some(Item {
        id: match id {
            Some((_, Value::String(id))) => id.clone(),
            Some((_, id)) => id.to_string(),
            None => (at + 1).to_string(),
        },
        text: texts.join(". "),
    })
}

fn marked(line: &str) -> Option<Item> {
    let line = line.trim().trim_start_matches(['-', '*']).trim_start();
    let end = line.find([':', '.', ')', ']'])?;
    let (mark, rest) = line.split_at_checked(end)?;
    let id = mark.trim_start_matches(['[', '(']);
    let is_mark = (1..=8).contains(&id.len())
        && id.bytes().all(|b| b.is_ascii_alphanumeric())
        && id.ends_with(|c: char| c.is_ascii_digit());
    let text = rest.get(1..)?.trim_start_matches([':', '.']).trim();
    (is_mark && !text.is_empty()).then(|| Item {
        id: id.to_owned(),
        text: text.to_owned(),
    })
}

#[cfg(test)]
mod tests;
