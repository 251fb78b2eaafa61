//! One entry, found by whatever a person has of it: its id, the end or the beginning of it, its
//! Idempotency-Key, or the service's `x-request-id`; and with it all entries of the same key, which
//! are one purchase.
//!
//! Two passes. The first finds what was asked for and its keys, the second all lines of those. In a segment with
//! a lookup file the lines are those that the file names; any other is searched for the text, which is as fast as
//! `grep`. Each line is decoded and compared.
//! Promise: reads only; at most [`FOUND_MAX`] entries are held, and the answer says when there are more. It is the
//! same with lookup files and without.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use memchr::memmem::Finder;

use crate::ledger::error::LedgerError;
use crate::ledger::id::EntryId;
use crate::ledger::journal::reader::{JournalReader, steadily};
use crate::ledger::journal::state_dir::Directory;
use crate::ledger::kept_key::{EPOCH_MS, KeptKey, KeyForm, SoughtKey};
use crate::ledger::read::filter::Said;
use crate::ledger::read::lookup::{
    Detour, Lookups, SegmentLookup, key_needle, request_needle, tail_needle,
};
use crate::ledger::read::views::{EntryView, Views};
use crate::ledger::record::{Line, Record};
use crate::protocol::closed_set;

/// Most entries in an answer.
pub const FOUND_MAX: usize = 100;

/// Fewest characters of an id that are looked for. At its beginning stands the time, and 8 of them are
/// what about a minute's ids have in common; its end is random.
pub const PART_CHARS_MIN: usize = 8;

/// The end of an id that lists show: its last group, 48 random bits.
pub const TAIL_CHARS: usize = 12;

closed_set! {
    /// What the text turned out to be; where it is several things, the first of these.
    FoundBy {
        Id => "id",
        Key => "key",
        RequestId => "request_id",
        Tail => "tail",
        Prefix => "prefix",
    }
}

/// The answer of [`find`].
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// `None`: nothing was found.
    pub by: Option<FoundBy>,
    /// What was asked for, oldest first. Several only of a key or a request id.
    pub entries: Vec<EntryView>,
    /// All entries of the same key within its 24 hours, those asked for among them, oldest first.
    /// Without a key only those asked for.
    pub family: Vec<EntryView>,
    /// Entries whose ids all end or begin with what was asked for.
    pub candidates: Vec<EntryView>,
    /// There were more entries than [`FOUND_MAX`].
    pub more: bool,
}

/// What was asked for, in the forms in which it may stand in a line.
struct Asked {
    id: Option<EntryId>,
    /// May be the end or the beginning of an id.
    part: Option<String>,
    key: SoughtKey,
    request_id: String,
}

/// The entries of the first pass, with their keys.
#[derive(Default)]
struct Hits {
    by: BTreeMap<FoundBy, HashSet<EntryId>>,
    keys: HashMap<EntryId, KeptKey>,
    more: bool,
}

/// What lines are looked for.
#[derive(Default)]
struct Sought {
    /// As they stand in a line.
    texts: Vec<String>,
    /// As they stand in a lookup file.
    needles: Vec<u64>,
    /// The first digits of ids.
    head: Option<u32>,
}

/// Looks for `text`. Time: a few reads for each segment with a lookup file, and two passes over the bytes of
/// the others.
pub fn find(state_dir: &Path, text: &str) -> Result<Found, LedgerError> {
    let asked = Asked::of(text.trim(), &secret(state_dir));
    steadily(|| {
        let reader = JournalReader::open(state_dir)?;
        let mut lookups = Lookups::beside(&reader);
        loop {
            match find_on(&reader, &lookups, &asked) {
                Ok(found) => return Ok(found),
                Err(Detour::Failed(error)) => return Err(error),
                Err(Detour::Unfit(segment, why)) => lookups.distrust(&reader, segment, why),
                Err(Detour::Disorder) => lookups = Lookups::none(),
            }
        }
    })
}

fn find_on(reader: &JournalReader, lookups: &Lookups, asked: &Asked) -> Result<Found, Detour> {
    let mut hits = Hits::default();
    each_with(reader, lookups, &asked.sought(), &mut |_, record| {
        if let Some(said) = Said::of(&record)
            && let Some(by) = asked.matches(&said)
        {
            hits.take(by, &said);
        }
    })?;
    let mut by_kind = hits.by.into_iter();
    let Some((by, mut ids)) = by_kind.next() else {
        return Ok(Found::default());
    };
    let is_part = matches!(by, FoundBy::Tail | FoundBy::Prefix);
    if is_part {
        // The end of one id and the beginning of another: nobody can know which is meant.
        ids.extend(by_kind.flat_map(|(_, ids)| ids));
    }
    let is_ambiguous = is_part && ids.len() > 1;
    let keys: Vec<&KeptKey> = if is_ambiguous {
        Vec::new()
    } else {
        ids.iter().filter_map(|id| hits.keys.get(id)).collect()
    };

    let mut sought = Sought::default();
    keys.iter().for_each(|key| sought.add_key(&key.form));
    ids.iter().for_each(|id| sought.add_id(*id));
    let mut held: HashSet<EntryId> = ids.clone();
    let mut more = hits.more;
    // By number: a line may lie twice, or before an earlier one.
    let mut lines: BTreeMap<u64, Record> = BTreeMap::new();
    each_with(reader, lookups, &sought, &mut |seq, record| {
        if let Record::Delivery(row, _) = &record {
            if held.contains(&row.id) {
                lines.insert(seq, record);
            }
            return;
        }
        let Some(said) = Said::of(&record) else {
            return;
        };
        let is_kin = said
            .key
            .is_some_and(|key| keys.iter().any(|other| key.is_same_key(other)));
        if !is_kin && !ids.contains(&said.id) {
            return;
        }
        if held.len() < FOUND_MAX {
            held.insert(said.id);
        }
        if held.contains(&said.id) {
            lines.insert(seq, record);
        } else {
            more = true;
        }
    })?;
    let mut views = Views::default();
    for (seq, record) in lines {
        views.apply(seq, record);
    }

    let mut family = views.finish(|_| true);
    family.sort_by_key(|view| (view.at_ms, view.id));
    let is_asked = |view: &EntryView| ids.contains(&view.id);
    let entries: Vec<EntryView> = family
        .iter()
        .filter(|view| is_asked(view))
        .cloned()
        .collect();
    if is_ambiguous {
        return Ok(Found {
            by: Some(by),
            candidates: entries,
            more,
            ..Found::default()
        });
    }
    // The service binds a key for 24 hours; what came under it at another time is another purchase.
    let of_epoch = |view: &EntryView| {
        let near = |asked: &EntryView| asked.at_ms.abs_diff(view.at_ms) < EPOCH_MS;
        entries.iter().any(near)
    };
    family.retain(of_epoch);
    Ok(Found {
        by: Some(by),
        entries,
        family,
        candidates: Vec::new(),
        more,
    })
}

/// Hands out, segment by segment, the records whose line holds what is sought, and perhaps others.
fn each_with(
    reader: &JournalReader,
    lookups: &Lookups,
    sought: &Sought,
    visit: &mut dyn FnMut(u64, Record),
) -> Result<(), Detour> {
    if sought.texts.is_empty() {
        return Ok(());
    }
    let texts = sought.texts.iter();
    let finders: Vec<Finder<'_>> = texts.map(Finder::new).collect();
    for segment in 0..reader.segments.len() {
        let lookup = lookups.of(reader, segment);
        let mut from = 0;
        if let Some(lookup) = lookup.filter(|lookup| lookup.summary().is_in_order) {
            each_at(reader, segment, &lookup, sought, visit)?;
            let Some(behind) = lookup.ends_at() else {
                continue;
            };
            from = behind;
        }
        reader.holding(segment, from, &finders, &mut |line| {
            if let Some(Line::Record { seq, record }) = Line::decode(line) {
                visit(seq, record);
            }
        })?;
    }
    Ok(())
}

/// The same by the lookup file of a segment.
fn each_at(
    reader: &JournalReader,
    segment: usize,
    lookup: &SegmentLookup,
    sought: &Sought,
    visit: &mut dyn FnMut(u64, Record),
) -> Result<(), Detour> {
    let mut rows = lookup.rows_with(&sought.needles)?;
    if let Some(head) = sought.head {
        rows.extend(lookup.rows_beginning(head)?);
    }
    if rows.is_empty() {
        return Ok(());
    }
    let offsets = lookup.offsets()?;
    let mut places: Vec<u32> = rows.iter().flat_map(|row| offsets.all(*row)).collect();
    places.sort_unstable();
    places.dedup();
    let lines = reader.lines_at(segment)?;
    for place in places {
        let read = lines.record(u64::from(place));
        let read = read.map_err(|error| reader.file_error(segment, error))?;
        let (seq, record) = read.ok_or_else(|| lookup.contradicted())?;
        visit(seq, record);
    }
    Ok(())
}

/// What long keys are hashed with. Where it is lost, no line is found by one.
fn secret(state_dir: &Path) -> [u8; 32] {
    let directory = Directory::open_to_read(state_dir).ok();
    let identity = directory.and_then(|directory| directory.known_identity().ok()??);
    identity.map_or([0; 32], |identity| identity.fingerprint_secret)
}

fn needle(key: &KeyForm) -> String {
    match key {
        KeyForm::Text(text) => in_json(text),
        KeyForm::Hash(hash) => hash.to_string(),
    }
}

/// A text as it stands in a line, without its quotes.
fn in_json(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    let inner = quoted.strip_prefix('"').unwrap_or(&quoted);
    inner.strip_suffix('"').unwrap_or(inner).to_owned()
}

// === impl Asked ===

impl Asked {
    fn of(text: &str, secret: &[u8; 32]) -> Self {
        let lower = text.to_ascii_lowercase();
        let is_part = lower.len() >= PART_CHARS_MIN
            && lower
                .bytes()
                .all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        let id = lower.parse().ok();
        Self {
            id,
            // Thousands of ids may begin as a whole one does: they share the minute.
            part: Some(lower).filter(|_| is_part && id.is_none()),
            key: SoughtKey::of(secret, text),
            request_id: text.to_owned(),
        }
    }

    fn sought(&self) -> Sought {
        let mut sought = Sought::default();
        if self.request_id.is_empty() {
            return sought;
        }
        self.key.forms().for_each(|form| sought.add_key(&form));
        sought.add_request_id(&self.request_id);
        if let Some(id) = self.id {
            sought.add_id(id);
        }
        if let Some(part) = &self.part {
            sought.add_part(part);
        }
        sought
    }

    fn matches(&self, said: &Said<'_>) -> Option<FoundBy> {
        let part = self.part.as_deref();
        let ends = |part: &str| said.id.to_string().ends_with(part);
        let begins = |part: &str| said.id.to_string().starts_with(part);
        if self.id == Some(said.id) {
            Some(FoundBy::Id)
        } else if said.key.is_some_and(|key| self.key.is(key)) {
            Some(FoundBy::Key)
        } else if said.request_id == Some(self.request_id.as_str()) {
            Some(FoundBy::RequestId)
        } else if part.is_some_and(ends) {
            Some(FoundBy::Tail)
        } else if part.is_some_and(begins) {
            Some(FoundBy::Prefix)
        } else {
            None
        }
    }
}

// === impl Hits ===

impl Hits {
    fn take(&mut self, by: FoundBy, said: &Said<'_>) {
        let ids = self.by.entry(by).or_default();
        if ids.len() >= FOUND_MAX && !ids.contains(&said.id) {
            self.more = true;
            return;
        }
        ids.insert(said.id);
        if let Some(key) = said.key {
            self.keys.insert(said.id, key.clone());
        }
    }
}

// === impl Sought ===

impl Sought {
    fn add(&mut self, text: String) {
        if !self.texts.contains(&text) {
            self.texts.push(text);
        }
    }

    fn add_key(&mut self, key: &KeyForm) {
        self.needles.push(key_needle(key));
        self.add(needle(key));
    }

    fn add_request_id(&mut self, request_id: &str) {
        self.needles.push(request_needle(request_id));
        self.add(in_json(request_id));
    }

    fn add_id(&mut self, id: EntryId) {
        self.needles.push(tail_needle(id.tail()));
        self.add(id.to_string());
    }

    /// The end or the beginning of an id.
    fn add_part(&mut self, part: &str) {
        let digits = |text: Option<&str>| u32::from_str_radix(text?, 16).ok();
        let ends = part.len().checked_sub(PART_CHARS_MIN);
        if let Some(tail) = digits(ends.and_then(|at| part.get(at..))) {
            self.needles.push(tail_needle(tail.to_be_bytes()));
        }
        self.head = digits(part.get(..PART_CHARS_MIN));
        self.add(part.to_owned());
    }
}

#[cfg(test)]
mod tests;
