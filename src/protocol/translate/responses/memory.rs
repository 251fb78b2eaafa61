//! What was given out, so that a later request may refer to it: `previous_response_id` means a whole conversation,
//! `item_reference` one item of an answer. The Vercel SDK sends references from its second turn on.
//!
//! Promise: in memory alone, so a restart forgets; bounded by bytes and age for each app, the eldest answer
//! goes first and whole; no app finds what another was given. No I/O and no clock: the time is handed in.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// One item of a conversation, as JSON. Clones share it.
#[derive(Clone, PartialEq, Eq)]
pub struct Item(Arc<str>);

/// What one answer leaves to be referred to.
#[derive(Debug)]
pub struct Given {
    response_id: String,
    /// All input and output up to here.
    conversation: Arc<[Item]>,
    /// The answer's own items.
    outputs: Vec<(String, Item)>,
}

/// The bounds of one app's memory.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// As [`Given::bytes`] counts them.
    pub bytes: usize,
    /// Of all apps together.
    pub of_all: usize,
    pub age: Duration,
}

/// The answers of all apps that may be referred to.
#[derive(Debug)]
pub struct Memory {
    bounds: Bounds,
    apps: HashMap<String, Answers>,
}

/// Those of one app, the eldest first.
#[derive(Debug, Default)]
struct Answers {
    kept: VecDeque<Kept>,
    by_id: HashMap<String, Known>,
    bytes: usize,
}

#[derive(Debug)]
struct Kept {
    ids: Vec<String>,
    bytes: usize,
    since: Duration,
}

#[derive(Debug)]
struct Known {
    items: Arc<[Item]>,
    since: Duration,
}

/// What an item costs beside its text: the pointers to it and its place in the tables.
const ITEM_OVERHEAD: usize = 128;

// === impl Item ===

impl Item {
    pub fn new(json: impl Into<Arc<str>>) -> Self {
        Self(json.into())
    }

    pub fn json(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Item {
    /// A conversation is in no log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Item({} B)", self.0.len())
    }
}

// === impl Given ===

impl Given {
    pub fn new(response_id: String, input: Vec<Item>, outputs: Vec<(String, Item)>) -> Self {
        let all = input
            .into_iter()
            .chain(outputs.iter().map(|(_, item)| item.clone()));
        Self {
            response_id,
            conversation: all.collect(),
            outputs,
        }
    }

    pub fn response_id(&self) -> &str {
        &self.response_id
    }

    /// What it counts for. Items that several answers share count for each of them, so the sum is never too low.
    pub fn bytes(&self) -> usize {
        let item = |item: &Item| item.0.len() + ITEM_OVERHEAD;
        let conversation: usize = self.conversation.iter().map(item).sum();
        let outputs: usize = self
            .outputs
            .iter()
            .map(|(id, _)| id.len() + ITEM_OVERHEAD)
            .sum();
        self.response_id.len() + conversation + outputs
    }
}

// === impl Bounds ===

impl Default for Bounds {
    /// 64 MiB, 256 MiB of all apps, and an hour.
    fn default() -> Self {
        Self {
            bytes: 64 * 1024 * 1024,
            of_all: 256 * 1024 * 1024,
            age: Duration::from_secs(60 * 60),
        }
    }
}

// === impl Memory ===

impl Memory {
    pub fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            apps: HashMap::new(),
        }
    }

    /// Keeps what an app was given at `now`, a monotonic time. An answer larger than the bound is not kept; one
    /// that is kept already stays as it is.
    pub fn keep(&mut self, app: &str, given: Given, now: Duration) {
        let bytes = given.bytes();
        if bytes > self.bounds.bytes {
            return;
        }
        let bounds = self.bounds;
        let answers = match self.apps.get_mut(app) {
            Some(answers) => answers,
            None => self.apps.entry(app.to_owned()).or_default(),
        };
        answers.expire(bounds.age, now);
        if answers.by_id.contains_key(&given.response_id) {
            return;
        }
        while answers.bytes.saturating_add(bytes) > bounds.bytes && answers.forget_eldest() {}
        answers.keep(given, bytes, now);
        while self.bytes() > self.bounds.of_all && self.forget_eldest_of_all() {}
    }

    /// The eldest answer of all apps.
    fn forget_eldest_of_all(&mut self) -> bool {
        let eldest = self.apps.values_mut().min_by_key(|answers| {
            let first = answers.kept.front();
            first.map_or(Duration::MAX, |kept| kept.since)
        });
        eldest.is_some_and(Answers::forget_eldest)
    }

    pub fn is_empty(&self) -> bool {
        self.apps.values().all(|answers| answers.kept.is_empty())
    }

    /// What an id of an answer or of an item stands for, if that app was given it within the last hour.
    pub fn find(&self, app: &str, id: &str, now: Duration) -> Option<Arc<[Item]>> {
        let known = self.apps.get(app)?.by_id.get(id)?;
        let is_young = now.saturating_sub(known.since) < self.bounds.age;
        is_young.then(|| Arc::clone(&known.items))
    }

    /// Frees what is too old, of apps that ask no more as well.
    pub fn expire(&mut self, now: Duration) {
        let age = self.bounds.age;
        self.apps.retain(|_, answers| {
            answers.expire(age, now);
            !answers.kept.is_empty()
        });
    }

    /// What all apps hold together, in bytes.
    pub fn bytes(&self) -> usize {
        self.apps.values().map(|answers| answers.bytes).sum()
    }
}

// === impl Answers ===

impl Answers {
    fn keep(&mut self, given: Given, bytes: usize, since: Duration) {
        let mut ids = Vec::with_capacity(given.outputs.len() + 1);
        let whole = (given.response_id, given.conversation);
        let single = given.outputs.into_iter();
        let single = single.map(|(id, item)| (id, Arc::from([item])));
        for (id, items) in std::iter::once(whole).chain(single) {
            self.by_id.insert(id.clone(), Known { items, since });
            ids.push(id);
        }
        self.kept.push_back(Kept { ids, bytes, since });
        self.bytes += bytes;
    }

    fn expire(&mut self, age: Duration, now: Duration) {
        let is_old = |kept: &Kept| now.saturating_sub(kept.since) >= age;
        while self.kept.front().is_some_and(is_old) {
            self.forget_eldest();
        }
    }

    fn forget_eldest(&mut self) -> bool {
        let Some(eldest) = self.kept.pop_front() else {
            return false;
        };
        for id in &eldest.ids {
            self.by_id.remove(id);
        }
        self.bytes = self.bytes.saturating_sub(eldest.bytes);
        true
    }
}

#[cfg(test)]
mod tests;
