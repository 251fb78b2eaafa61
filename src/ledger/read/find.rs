//! One entry, found by whatever a person has of it: its id, the end or the beginning of it, its
//! Idempotency-Key, or the service's `x-request-id`; and with it all entries of the same key, which
//! are one purchase.
//!
//! Two passes. The first finds what was asked for and its keys, the second all lines of those. In a segment with
//! a lookup file the lines are those that the file names; any other is searched for the text, which is as fast as
//! `grep`. Each line is decoded and compared. A whole id states when it was made: the segment of that time is
//! read first, and the first pass ends where the id is found.
//!
//! Promise: reads only; at most [`FOUND_MAX`] entries are held, and the answer says when there are more. It is the
//! same with lookup files and without.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;
use std::path::Path;

use memchr::memmem::Finder;

use crate::ledger::error::LedgerError;
use crate::ledger::id::EntryId;
use crate::ledger::journal::reader::{JournalReader, steadily};
use crate::ledger::journal::segments::Segment;
use crate::ledger::kept_key::{EPOCH_MS, KeptKey, KeyForm, SoughtKey};
use crate::ledger::read::filter::{Said, secret};
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
struct Query {
    id: Option<EntryId>,
    /// May be the end or the beginning of an id.
    part: Option<String>,
    key: SoughtKey,
    request_id: String,
}

/// An entry of the first pass.
struct Match {
    started_ms: u64,
    key: Option<KeptKey>,
}

/// The entries of the first pass.
#[derive(Default)]
struct Hits {
    by: BTreeMap<FoundBy, HashMap<EntryId, Match>>,
    more: bool,
}

/// The lines of the second pass.
struct Kin<'a> {
    asked: &'a HashMap<EntryId, Match>,
    /// Entries of the same keys are gathered, too.
    keys: Vec<&'a KeptKey>,
    held: HashSet<EntryId>,
    /// By number: a line may lie twice, or before an earlier one.
    lines: BTreeMap<u64, Record>,
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

/// Takes a line; whether more are wanted.
type Visit<'a> = dyn FnMut(u64, Record) -> ControlFlow<()> + 'a;

/// Looks for `text`. Time: a few reads for each segment with a lookup file, and two passes over the bytes of
/// the others.
pub fn find(state_dir: &Path, text: &str) -> Result<Found, LedgerError> {
    let asked = Query::of(text.trim(), &secret(state_dir));
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

fn find_on(reader: &JournalReader, lookups: &Lookups, asked: &Query) -> Result<Found, Detour> {
    let mut hits = Hits::default();
    let order = asked.segments(reader);
    // A break: whatever stands in other lines, the answer is the same.
    let _ = each_with(reader, lookups, order, &asked.sought(), &mut |_, record| {
        let said = Said::of(&record);
        let by = said.as_ref().and_then(|said| asked.matches(said));
        match by.zip(said) {
            Some((by, said)) => {
                let had_room = hits.take(by, &said);
                asked.is_decided(by, had_room)
            }
            None => ControlFlow::Continue(()),
        }
    })?;
    let mut by_kind = hits.by.into_iter();
    let Some((by, mut ids)) = by_kind.next() else {
        return Ok(Found::default());
    };
    let is_part = matches!(by, FoundBy::Tail | FoundBy::Prefix);
    if is_part {
        // The end of one id and the beginning of another: both may be meant.
        ids.extend(by_kind.flat_map(|(_, ids)| ids));
    }
    let is_ambiguous = is_part && ids.len() > 1;
    let mut keys: Vec<&KeptKey> = Vec::new();
    if !is_ambiguous {
        keys.extend(ids.values().filter_map(|hit| hit.key.as_ref()));
    }

    let mut sought = Sought::default();
    keys.iter().for_each(|key| sought.add_key(&key.form));
    ids.keys().for_each(|id| sought.add_id(*id));
    let mut gathered = Kin {
        asked: &ids,
        keys,
        held: ids.keys().copied().collect(),
        lines: BTreeMap::new(),
        more: hits.more,
    };
    let all = || (0..reader.segments.len()).collect();
    let read = each_with(reader, lookups, all(), &sought, &mut |seq, record| {
        gathered.take(seq, record)
    })?;
    if read.is_break() {
        // The key has more entries than an answer: of those held the lines are read by their ids.
        gathered.keys.clear();
        sought.needles.clear();
        let held = gathered.held.iter();
        sought.needles.extend(held.map(|id| tail_needle(id.tail())));
        let _ = each_with(reader, lookups, all(), &sought, &mut |seq, record| {
            gathered.take(seq, record)
        })?;
    }
    let Kin { lines, more, .. } = gathered;
    let mut views = Views::default();
    for (seq, record) in lines {
        views.apply(seq, record);
    }
    let mut family = views.finish(|_| true);
    family.sort_by_key(|view| (view.at_ms, view.id));
    let is_asked = |view: &&EntryView| ids.contains_key(&view.id);
    let entries: Vec<EntryView> = family.iter().filter(is_asked).cloned().collect();
    if is_ambiguous {
        return Ok(Found {
            by: Some(by),
            candidates: entries,
            more,
            ..Found::default()
        });
    }
    Ok(Found {
        by: Some(by),
        entries,
        family,
        candidates: Vec::new(),
        more,
    })
}

/// Hands out, segment by segment, the records whose line holds what is sought, and perhaps others, until `visit`
/// wants no more.
fn each_with(
    reader: &JournalReader,
    lookups: &Lookups,
    segments: Vec<usize>,
    sought: &Sought,
    visit: &mut Visit<'_>,
) -> Result<ControlFlow<()>, Detour> {
    if sought.texts.is_empty() {
        return Ok(ControlFlow::Continue(()));
    }
    let texts = sought.texts.iter();
    let finders: Vec<Finder<'_>> = texts.map(Finder::new).collect();
    for segment in segments {
        let lookup = lookups.of(reader, segment);
        let mut from = 0;
        let mut flow = ControlFlow::Continue(());
        if let Some(lookup) = lookup.filter(|lookup| lookup.summary().is_in_order) {
            flow = each_at(reader, segment, &lookup, sought, visit)?;
            match lookup.ends_at() {
                Some(behind) => from = behind,
                None if flow.is_continue() => continue,
                None => {}
            }
        }
        if flow.is_continue() {
            reader.holding(segment, from, &finders, &mut |line| {
                if flow.is_continue()
                    && let Some(Line::Record { seq, record }) = Line::decode(line)
                {
                    flow = visit(seq, record);
                }
            })?;
        }
        if flow.is_break() {
            return Ok(flow);
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// The same by the lookup file of a segment.
fn each_at(
    reader: &JournalReader,
    segment: usize,
    lookup: &SegmentLookup,
    sought: &Sought,
    visit: &mut Visit<'_>,
) -> Result<ControlFlow<()>, Detour> {
    let mut rows = lookup.rows_with(&sought.needles)?;
    if let Some(head) = sought.head {
        rows.extend(lookup.rows_beginning(head)?);
    }
    if rows.is_empty() {
        return Ok(ControlFlow::Continue(()));
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
        if visit(seq, record).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// When an id was made, Unix milliseconds: its first 48 bits.
fn made_ms(id: EntryId) -> u64 {
    u64::try_from(id.0.as_u128() >> 80).unwrap_or(u64::MAX)
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

// === impl Query ===

impl Query {
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

    /// All segments, as they are looked through for this: that of an id's time first.
    fn segments(&self, reader: &JournalReader) -> Vec<usize> {
        let mut order: Vec<usize> = (0..reader.segments.len()).collect();
        if let Some(id) = self.id {
            let is_begun = |segment: &Segment| {
                let header = segment.header.as_ref();
                header.is_some_and(|header| header.at_ms <= made_ms(id))
            };
            let likely = reader.segments.iter().rposition(is_begun);
            order.sort_by_key(|segment| Some(*segment) != likely);
        }
        order
    }

    /// A break: after such a hit no other one counts.
    fn is_decided(&self, by: FoundBy, had_room: bool) -> ControlFlow<()> {
        match by {
            FoundBy::Id => ControlFlow::Break(()),
            FoundBy::Key if self.id.is_none() && !had_room => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
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
    /// Takes a hit. False: of its kind there are more than may be held.
    fn take(&mut self, by: FoundBy, said: &Said<'_>) -> bool {
        let ids = self.by.entry(by).or_default();
        let has_room = ids.len() < FOUND_MAX || ids.contains_key(&said.id);
        if has_room {
            let hit = Match {
                started_ms: said.started_ms,
                key: said.key.cloned(),
            };
            ids.insert(said.id, hit);
        }
        self.more |= !has_room;
        has_room
    }
}

// === impl Kin ===

impl Kin<'_> {
    /// Takes a line. A break: there are more entries of the keys than may be held.
    fn take(&mut self, seq: u64, record: Record) -> ControlFlow<()> {
        let id = match &record {
            Record::Delivery(row, _) => Some(row.id),
            other => {
                let said = Said::of(other);
                let kin = said.as_ref().filter(|said| self.is_kin(said));
                if kin.is_some_and(|kin| !self.held.contains(&kin.id)) {
                    if self.held.len() >= FOUND_MAX {
                        self.more = true;
                        return ControlFlow::Break(());
                    }
                    self.held.extend(kin.map(|kin| kin.id));
                }
                said.map(|said| said.id)
            }
        };
        if id.is_some_and(|id| self.held.contains(&id)) {
            self.lines.insert(seq, record);
        }
        ControlFlow::Continue(())
    }

    /// The service binds a key for 24 hours; what came under it at another time is another purchase.
    fn is_kin(&self, said: &Said<'_>) -> bool {
        let is_same = |key| self.keys.iter().any(|other| other.is_same_key(key));
        let mut asked = self.asked.values();
        said.key.is_some_and(is_same)
            && asked.any(|hit| hit.started_ms.abs_diff(said.started_ms) < EPOCH_MS)
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
