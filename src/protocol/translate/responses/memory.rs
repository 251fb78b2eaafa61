//! What was given out, so that a later request may refer to it: `previous_response_id` means a whole conversation,
//! `item_reference` one item of an answer. The Vercel SDK sends references from its second turn on.
//!
//! Promise: in memory alone, so a restart forgets; bounded by bytes for each app and by an hour without use; what was
//! not used for longest goes first, and no conversation drives an item of its app out; no app finds what another was
//! given. No I/O and no clock: the time is handed in.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// One item of a conversation, as JSON. Clones share it.
#[derive(Clone, PartialEq, Eq)]
pub struct Item {
    json: Arc<str>,
    /// Of one that was given out: what it is referred to by.
    id: Option<Arc<str>>,
}

/// What one answer leaves to be referred to.
#[derive(Debug)]
pub struct Given {
    response_id: String,
    /// All input and output up to here.
    conversation: Arc<[Item]>,
}

/// The bounds of the memory.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Of one app's conversations, as [`Given::bytes`] counts them.
    pub conversations: usize,
    /// Of one app's items.
    pub items: usize,
    /// Of all apps together.
    pub of_all: usize,
    /// Since the last use.
    pub age: Duration,
}

/// What all apps may refer to.
#[derive(Debug)]
pub struct Memory {
    bounds: Bounds,
    apps: HashMap<String, GivenOut>,
}

/// What one app was given. Conversations and items have bounds of their own: a conversation with images is a
/// thousand times as large as what a reference to one of its items needs.
#[derive(Debug, Default)]
struct GivenOut {
    /// By the answer's id.
    conversations: Shelf,
    items: Shelf,
}

/// What is kept within one bound, in the order of its last use.
#[derive(Debug, Default)]
struct Shelf {
    by_id: HashMap<Arc<str>, Kept>,
    by_use: BTreeMap<LastUse, Arc<str>>,
    uses: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Kept {
    items: Arc<[Item]>,
    bytes: usize,
    last_use: LastUse,
}

/// When, and which of the uses it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LastUse(Duration, u64);

/// What an item costs beside its text.
const ITEM_OVERHEAD: usize = 128;

/// What a place in the tables costs beside its id.
const PLACE_OVERHEAD: usize = 256;

// === impl Item ===

impl Item {
    pub fn new(json: impl Into<Arc<str>>) -> Self {
        Self {
            json: json.into(),
            id: None,
        }
    }

    /// One that is given out under this id.
    pub fn known_as(id: impl Into<Arc<str>>, json: impl Into<Arc<str>>) -> Self {
        Self {
            id: Some(id.into()),
            ..Self::new(json)
        }
    }

    pub fn json(&self) -> &str {
        &self.json
    }

    fn bytes(&self) -> usize {
        self.json.len() + ITEM_OVERHEAD
    }
}

impl fmt::Debug for Item {
    /// A conversation is in no log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Item({} B)", self.json.len())
    }
}

// === impl Given ===

impl Given {
    /// `conversation`: all input and output up to here.
    pub fn new(response_id: String, conversation: Vec<Item>) -> Self {
        Self {
            response_id,
            conversation: conversation.into(),
        }
    }

    pub fn response_id(&self) -> &str {
        &self.response_id
    }

    /// What the conversation counts for. Items that several of them share count in each, so the sum is never too low.
    pub fn bytes(&self) -> usize {
        let items: usize = self.conversation.iter().map(Item::bytes).sum();
        self.response_id.len() + PLACE_OVERHEAD + items
    }
}

// === impl Bounds ===

impl Default for Bounds {
    /// 64 MiB, a quarter of it for items, 256 MiB of all apps, and an hour.
    fn default() -> Self {
        Self {
            conversations: 48 * 1024 * 1024,
            items: 16 * 1024 * 1024,
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

    /// Keeps what an app was given at `now`, a monotonic time: the conversation up to there, and each item in it that
    /// was given out. What is larger than its bound is not kept.
    pub fn keep(&mut self, app: &str, given: Given, now: Duration) {
        let bounds = self.bounds;
        let of_app = match self.apps.get_mut(app) {
            Some(of_app) => of_app,
            None => self.apps.entry(app.to_owned()).or_default(),
        };
        of_app.expire(bounds.age, now);
        for item in given.conversation.iter() {
            let Some(id) = &item.id else { continue };
            let bytes = id.len() + PLACE_OVERHEAD + item.bytes();
            let items = || -> Arc<[Item]> { Arc::from([item.clone()]) };
            of_app.items.keep(id, items, bytes, bounds.items, now);
        }
        let bytes = given.bytes();
        let id: Arc<str> = Arc::from(given.response_id);
        let whole = || given.conversation;
        of_app
            .conversations
            .keep(&id, whole, bytes, bounds.conversations, now);
        while self.bytes() > bounds.of_all && self.forget_eldest_of_all() {}
    }

    fn forget_eldest_of_all(&mut self) -> bool {
        let shelves = self.apps.values_mut();
        let shelves = shelves.flat_map(|of_app| [&mut of_app.conversations, &mut of_app.items]);
        let eldest = shelves
            .filter_map(|shelf| Some((shelf.eldest()?, shelf)))
            .min_by_key(|(last_use, _)| last_use.0);
        eldest.is_some_and(|(_, shelf)| shelf.forget_eldest())
    }

    pub fn is_empty(&self) -> bool {
        self.apps.values().all(GivenOut::is_empty)
    }

    /// What an id of an answer or of an item stands for, if that app was given it, or has used it, within the last
    /// hour. This is a use.
    pub fn find(&mut self, app: &str, id: &str, now: Duration) -> Option<Arc<[Item]>> {
        let age = self.bounds.age;
        let of_app = self.apps.get_mut(app)?;
        of_app.expire(age, now);
        let found = of_app.conversations.find(id, now);
        found.or_else(|| of_app.items.find(id, now))
    }

    /// Frees what is too old, of apps that ask no more as well.
    pub fn expire(&mut self, now: Duration) {
        let age = self.bounds.age;
        self.apps.retain(|_, of_app| {
            of_app.expire(age, now);
            !of_app.is_empty()
        });
    }

    /// What all apps hold together, in bytes.
    pub fn bytes(&self) -> usize {
        let of_app = |of_app: &GivenOut| of_app.conversations.bytes + of_app.items.bytes;
        self.apps.values().map(of_app).sum()
    }
}

// === impl GivenOut ===

impl GivenOut {
    fn expire(&mut self, age: Duration, now: Duration) {
        self.conversations.expire(age, now);
        self.items.expire(age, now);
    }

    fn is_empty(&self) -> bool {
        self.conversations.by_id.is_empty() && self.items.by_id.is_empty()
    }
}

// === impl Shelf ===

impl Shelf {
    /// What is kept already stays as it is, and is used.
    fn keep(
        &mut self,
        id: &Arc<str>,
        items: impl FnOnce() -> Arc<[Item]>,
        bytes: usize,
        bytes_max: usize,
        now: Duration,
    ) {
        if bytes > bytes_max || self.find(id, now).is_some() {
            return;
        }
        while self.bytes.saturating_add(bytes) > bytes_max && self.forget_eldest() {}
        let last_use = self.next_use(now);
        let kept = Kept {
            items: items(),
            bytes,
            last_use,
        };
        self.by_use.insert(last_use, Arc::clone(id));
        self.by_id.insert(Arc::clone(id), kept);
        self.bytes += bytes;
    }

    fn find(&mut self, id: &str, now: Duration) -> Option<Arc<[Item]>> {
        let last_use = self.next_use(now);
        let kept = self.by_id.get_mut(id)?;
        if let Some(id) = self.by_use.remove(&kept.last_use) {
            self.by_use.insert(last_use, id);
        }
        kept.last_use = last_use;
        Some(Arc::clone(&kept.items))
    }

    fn next_use(&mut self, now: Duration) -> LastUse {
        self.uses += 1;
        LastUse(now, self.uses)
    }

    fn eldest(&self) -> Option<LastUse> {
        self.by_use.first_key_value().map(|(last_use, _)| *last_use)
    }

    fn expire(&mut self, age: Duration, now: Duration) {
        let is_old = |LastUse(at, _)| now.saturating_sub(at) >= age;
        while self.eldest().is_some_and(is_old) {
            self.forget_eldest();
        }
    }

    fn forget_eldest(&mut self) -> bool {
        let Some((_, id)) = self.by_use.pop_first() else {
            return false;
        };
        if let Some(kept) = self.by_id.remove(&id) {
            self.bytes = self.bytes.saturating_sub(kept.bytes);
        }
        true
    }
}

#[cfg(test)]
mod tests;
