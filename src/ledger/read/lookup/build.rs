//! Makes the block of a segment from its lines.
//!
//! Promise: each line is taken as every reader of the journal takes it; a damaged line that they pass over is in
//! no block. A segment with lines of a newer bursar gets none: that bursar would miss them in it.
//! Memory: some hundred bytes for each entry of one segment.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use super::block::{
    self, ELSEWHERE, Extent, HEAD_ROWS, NONE, OTHER, Part, ROWS_MAX, Sections, Summary, WORDS_MAX,
    head, key_needle, request_needle, tail_needle,
};
use crate::ledger::entry::{InDoubt, State};
use crate::ledger::error::LedgerError;
use crate::ledger::id::EntryId;
use crate::ledger::journal::reader::{JournalReader, LinePosition};
use crate::ledger::kept_key::KeyForm;
use crate::ledger::read::filter::Said;
use crate::ledger::record::{Line, Record};
use crate::money::MicroUsd;

/// Lines between two looks at whether it is still wanted.
const LINES_PER_LOOK: u64 = 1_000;

/// An entry with a line in this segment.
#[derive(Debug)]
struct EntryRow {
    id: EntryId,
    first: u32,
    /// The last line that says its state; while there is none, the last line.
    last: u32,
    began_s: u32,
    app: u16,
    operation: u16,
    /// [`NONE`]: no line says one.
    state: u16,
    model: u16,
    has_intent: bool,
    may_change: bool,
    /// The key's needle that was noted last: most lines of an entry repeat it.
    key: Option<u64>,
}

/// Words in the order in which they were met.
#[derive(Debug, Default)]
struct Dictionary {
    codes: HashMap<String, u16>,
    words: Vec<String>,
}

#[derive(Debug, Default)]
struct Building {
    rows: Vec<EntryRow>,
    by_id: HashMap<EntryId, usize>,
    /// Index of a row and a line of it, in the order of the file.
    lines: Vec<(usize, u32)>,
    /// Hash and index of a row.
    needles: Vec<(u64, usize)>,
    apps: Dictionary,
    operations: Dictionary,
    states: Dictionary,
    models: Dictionary,
    summary: Summary,
}

/// What was taken so far of the segment that is being written. The next block of it goes on from here, as does the one
/// that stays when it is sealed.
#[derive(Debug)]
pub struct Growing {
    segment: u32,
    building: Building,
    reach: Extent,
}

/// The bytes of the block of a segment, an index into the reader's. `None`: it was cancelled, or the segment can have
/// none (no header, more than 4 GiB, lines of a newer bursar). Of the segment that is being written the block stands
/// for its beginning, and what was taken of it stays in `growing`, so that no line is read twice.
pub fn build(
    reader: &JournalReader,
    segment: usize,
    is_sealed: bool,
    growing: &mut Option<Growing>,
    cancel: &AtomicBool,
) -> Result<Option<Vec<u8>>, LedgerError> {
    let Some(known) = reader.segments.get(segment) else {
        return Ok(None);
    };
    let mut taken = match growing.take_if(|taken| taken.segment == known.number) {
        Some(taken) if taken.is_of(reader, segment)? => taken,
        _ => Growing::new(known.number),
    };
    if !taken.read_on(reader, segment, cancel)? {
        return Ok(None);
    }
    let (summary, sections) = taken.building.sections();
    let reach = (!is_sealed).then_some(taken.reach);
    if !is_sealed {
        *growing = Some(taken);
    }
    Ok(block::encode(known, reach, summary, sections))
}

/// The word of a state in a block, with a doubt's reason.
pub fn state_word(state: State, is_malformed: bool) -> String {
    match state {
        State::InDoubt { reason } => format!("{}:{}", state.word(), reason.as_str()),
        _ if is_malformed => "malformed".to_owned(),
        _ => state.word().to_string(),
    }
}

/// Every word of [`state_word`], with a state that has it.
pub fn all_states() -> impl Iterator<Item = (String, State, bool)> {
    let billed = MicroUsd::ZERO;
    let plain = [
        State::Open,
        State::Settled { billed },
        State::Failed,
        State::Replayed,
        State::Unreported,
        State::Reconciled { billed },
    ];
    let doubts = InDoubt::ALL
        .iter()
        .map(|reason| State::InDoubt { reason: *reason });
    let sound = plain.into_iter().chain(doubts).map(|state| (state, false));
    let all = sound.chain([(State::Unreported, true)]);
    all.map(|(state, is_malformed)| (state_word(state, is_malformed), state, is_malformed))
}

fn le(number: usize) -> [u8; 4] {
    u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes()
}

// === impl Growing ===

impl Growing {
    fn new(segment: u32) -> Self {
        let mut building = Building::default();
        building.summary.is_in_order = true;
        Self {
            segment,
            building,
            reach: Extent::default(),
        }
    }

    /// The number of the segment.
    pub const fn segment(&self) -> u32 {
        self.segment
    }

    /// The last line that was taken is still there.
    fn is_of(&self, reader: &JournalReader, segment: usize) -> Result<bool, LedgerError> {
        let (from, to) = (self.reach.last_line, self.reach.bytes);
        Ok(reader.sum_of(segment, from, to)? == self.reach.crc)
    }

    /// Takes what lies behind. False: it was cancelled, or the segment can have no block.
    fn read_on(
        &mut self,
        reader: &JournalReader,
        segment: usize,
        cancel: &AtomicBool,
    ) -> Result<bool, LedgerError> {
        let header = reader.segments.get(segment).and_then(|known| {
            let header = known.header.as_ref();
            header.filter(|_| !known.is_misplaced())
        });
        let Some(header) = header else {
            return Ok(false);
        };
        let offset = self.reach.bytes;
        let mut forward = reader.forward(LinePosition { segment, offset });
        let mut count = 0_u64;
        while self.building.summary.is_in_order
            && let Some(line) = forward.next_line()?
        {
            let decoded = Line::decode(line);
            let is_sealed_line = decoded.is_some() || Line::glance(line).is_some();
            let began = forward.began();
            if began.segment != segment {
                break;
            }
            let (seq, record) = match decoded {
                None if !is_sealed_line => continue,
                Some(Line::Header(_)) => continue,
                None
                | Some(Line::Record {
                    record: Record::Unknown,
                    ..
                }) => return Ok(false),
                Some(Line::Record { seq, record }) => (seq, record),
            };
            count += 1;
            let is_cancelled =
                count.is_multiple_of(LINES_PER_LOOK) && cancel.load(Ordering::Relaxed);
            let Some(offset) = u32::try_from(began.offset).ok().filter(|_| !is_cancelled) else {
                return Ok(false);
            };
            self.reach.last_line = began.offset;
            self.reach.bytes = forward.place().offset;
            let last_seq = self.building.summary.last_seq;
            let floor = last_seq.map_or(header.first_seq, |last| last + 1);
            if seq < floor || self.building.rows.len() >= ROWS_MAX {
                self.building = Building::default();
            } else {
                self.building.take(seq, offset, &record);
            }
        }
        self.reach.crc = reader.sum_of(segment, self.reach.last_line, self.reach.bytes)?;
        Ok(true)
    }
}

// === impl Dictionary ===

impl Dictionary {
    fn code(&mut self, word: &str) -> u16 {
        if let Some(code) = self.codes.get(word) {
            return *code;
        }
        if self.words.len() >= WORDS_MAX {
            return OTHER;
        }
        let code = u16::try_from(self.words.len()).unwrap_or(OTHER);
        self.codes.insert(word.to_owned(), code);
        self.words.push(word.to_owned());
        code
    }
}

// === impl Building ===

impl Building {
    fn take(&mut self, seq: u64, offset: u32, record: &Record) {
        self.summary.first_seq.get_or_insert(seq);
        self.summary.last_seq = Some(seq);
        let Some(id) = record.entry() else {
            return;
        };
        let index = self.row(id, offset);
        self.lines.push((index, offset));
        match record {
            Record::Delivery(delivered, _) => {
                let form = KeyForm::Text(delivered.key.value.clone());
                self.note_key(index, key_needle(&form));
                if let Some(row) = self.rows.get_mut(index)
                    && row.state == NONE
                {
                    row.last = offset;
                }
            }
            _ => {
                if let Some(said) = Said::of(record) {
                    self.says(index, offset, &said);
                }
            }
        }
    }

    fn row(&mut self, id: EntryId, offset: u32) -> usize {
        let next = self.rows.len();
        let index = *self.by_id.entry(id).or_insert(next);
        if index == next {
            self.rows.push(EntryRow {
                id,
                first: offset,
                last: offset,
                began_s: 0,
                app: NONE,
                operation: NONE,
                state: NONE,
                model: ELSEWHERE,
                has_intent: false,
                may_change: false,
                key: None,
            });
            self.needles.push((tail_needle(id.tail()), index));
        }
        index
    }

    fn says(&mut self, index: usize, offset: u32, said: &Said<'_>) {
        if let Some(key) = said.key {
            self.note_key(index, key_needle(&key.form));
        }
        if let Some(request_id) = said.request_id {
            self.needles.push((request_needle(request_id), index));
        }
        let app = self.apps.code(said.app);
        let operation = self.operations.code(said.operation.as_str());
        let state = self.states.code(&state_word(said.state, said.is_malformed));
        let model = said
            .model
            .map(|model| model.map_or(NONE, |model| self.models.code(model)));
        let Some(row) = self.rows.get_mut(index) else {
            return;
        };
        row.last = offset;
        row.began_s = u32::try_from(said.started_ms / 1_000).unwrap_or(u32::MAX);
        row.app = app;
        row.operation = operation;
        row.state = state;
        row.may_change = said.state == State::Open || said.state.is_unresolved();
        if let Some(model) = model {
            row.model = model;
            row.has_intent = true;
        }
    }

    fn note_key(&mut self, index: usize, needle: u64) {
        if let Some(row) = self.rows.get_mut(index)
            && row.key.replace(needle) != Some(needle)
        {
            self.needles.push((needle, index));
        }
    }

    fn sections(&self) -> (Summary, Sections) {
        let mut sections = Sections::default();
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        order.sort_unstable_by_key(|index| self.rows.get(*index).map(|row| row.last));
        // Index of a row as it was met, to its place.
        let mut places = vec![0; order.len()];
        for (place, index) in order.iter().enumerate() {
            if let Some(slot) = places.get_mut(*index) {
                *slot = place;
            }
        }
        let place = |index: usize| places.get(index).copied().unwrap_or(usize::MAX);
        let mut began: Option<(u32, u32)> = None;
        for heads in order.chunks(HEAD_ROWS) {
            let ids = heads.iter().filter_map(|index| self.rows.get(*index));
            let ids = ids.map(|row| head(row.id));
            let (low, high) =
                ids.fold((u32::MAX, 0), |(low, high), id| (low.min(id), high.max(id)));
            sections.push(Part::Heads, &low.to_le_bytes());
            sections.push(Part::Heads, &high.to_le_bytes());
        }
        for (place, row) in order
            .iter()
            .filter_map(|index| self.rows.get(*index))
            .enumerate()
        {
            sections.push(Part::Last, &row.last.to_le_bytes());
            sections.push(Part::First, &row.first.to_le_bytes());
            sections.push(Part::Began, &row.began_s.to_le_bytes());
            sections.push(Part::App, &row.app.to_le_bytes());
            sections.push(Part::Operation, &row.operation.to_le_bytes());
            sections.push(Part::State, &row.state.to_le_bytes());
            sections.push(Part::Model, &row.model.to_le_bytes());
            if row.may_change {
                sections.push(Part::Unresolved, &le(place));
                sections.push(Part::Unresolved, row.id.0.as_bytes());
            }
            if row.state == NONE {
                continue;
            }
            if !row.has_intent {
                sections.push(Part::Carried, row.id.0.as_bytes());
            }
            let (low, high) = began.unwrap_or((row.began_s, row.began_s));
            began = Some((low.min(row.began_s), high.max(row.began_s)));
        }
        for (index, offset) in &self.lines {
            let is_known = |row: &EntryRow| row.first == *offset || row.last == *offset;
            if !self.rows.get(*index).is_some_and(is_known) {
                sections.push(Part::Further, &le(place(*index)));
                sections.push(Part::Further, &offset.to_le_bytes());
            }
        }
        let needles = self.needles.iter();
        let mut cells: Vec<u64> = needles
            .map(|(hash, index)| block::cell(*hash, u32::try_from(place(*index)).unwrap_or(0)))
            .collect();
        cells.sort_unstable();
        for cell in cells {
            sections.push(Part::Needles, &cell.to_le_bytes());
        }
        let summary = Summary {
            rows: u32::try_from(self.rows.len()).unwrap_or(u32::MAX),
            began_s: began,
            apps: self.apps.words.clone(),
            operations: self.operations.words.clone(),
            states: self.states.words.clone(),
            models: self.models.words.clone(),
            ..self.summary.clone()
        };
        (summary, sections)
    }
}
