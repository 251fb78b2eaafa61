//! Sums by group, folded line by line.
//!
//! Promise: held are the rows of the answer, at most [`ROWS_MAX`], what entries in flight are filed
//! under, and, when it is asked by state or model, the ids of entries whose amount came later, with their models.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Timestamp, Zoned};
use serde::de::Deserializer;
use serde::{Deserialize, Serialize};

use crate::ledger::entry::{Intent, Labels, State, StateWord};
use crate::ledger::error::LedgerError;
use crate::ledger::fold::effect::Effect;
use crate::ledger::fold::models::Model;
use crate::ledger::fold::quarters::filed_under;
use crate::ledger::id::EntryId;
use crate::ledger::journal::reader::{JournalReader, LinePosition};
use crate::ledger::journal::scan::scan;
use crate::ledger::journal::segments::Segment;
use crate::ledger::marks::Session;
pub use crate::ledger::read::group_by::GroupBy;
use crate::ledger::read::listing::reconciled_after;
use crate::ledger::record::Record;
use crate::ledger::rollup::{GRAIN_MS, Rollup};
use crate::ledger::sums::{LineKey, LineSums, MicroUsdSum};
use crate::ledger::tallies::{DayValues, Dimension};

/// Most rows of an answer: ten years of days for two dozen apps and operations.
pub const ROWS_MAX: usize = 100_000;

/// The model of entries that asked for none, of entries of which only sums are left, and of one whose first line is
/// damaged.
const NO_MODEL: &str = "-";
const COMPACTED: &str = "(compacted)";
const NOT_KNOWN: &str = "(damaged)";
/// The session, the user or the tag of entries whose app named none.
const NO_MARK: &str = "none";

/// What lies outside the calendar.
const NO_DATE: &str = "unknown";

/// The sums of one group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpendRow {
    /// The words of the group, one for each thing grouped by. Empty for the total.
    #[serde(flatten, deserialize_with = "known_labels")]
    pub labels: BTreeMap<GroupBy, String>,
    pub requests: u64,
    /// What is known. What is not known is counted beside it, never in it.
    pub billed_micro_usd: MicroUsdSum,
    pub would_have_cost_micro_usd: MicroUsdSum,
    /// Answers that carry both prices, and the two sums over them: the only ones that can be compared.
    pub compared: u64,
    pub compared_billed_micro_usd: MicroUsdSum,
    pub compared_would_have_cost_micro_usd: MicroUsdSum,
    /// `None` where nothing can be compared, and where the frontier would have been the cheaper.
    pub saved_micro_usd: Option<MicroUsdSum>,
    /// The part of what was billed that went to answers whose app had left.
    pub drained_micro_usd: MicroUsdSum,
    pub settled: u64,
    pub reconciled: u64,
    pub in_doubt: u64,
    pub unreported: u64,
    pub failed: u64,
    pub replayed: u64,
    /// Begun and not ended: in flight, or cut off by a crash that no start has seen yet.
    pub open: u64,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    pub total_tokens: u64,
    /// Milliseconds of sound that the speech routes reported, each answer's rounded by itself.
    pub audio_ms: u64,
    /// Answers of the speech routes that reported no length.
    pub audio_untold: u64,
}

/// The answer of [`spend`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spend {
    /// In the order of their labels.
    pub rows: Vec<SpendRow>,
    pub total: SpendRow,
    /// Damaged ranges and gaps in what was read: the sums lack what was in them.
    pub damaged: u64,
    /// A bound lies within a quarter hour of which only the sums are left: that quarter hour counts
    /// for the moment it begins.
    pub is_rounded: bool,
    /// Asked by session: only sums are left of what began before this moment, Unix milliseconds. `None`: nothing was
    /// compacted.
    pub listed_since_ms: Option<u64>,
}

/// What is summed.
pub struct Sums<'a> {
    pub since_ms: Option<u64>,
    pub until_ms: Option<u64>,
    pub group: &'a [GroupBy],
    pub time_zone: &'a TimeZone,
    pub rows_max: usize,
}

/// Entries that evidence comes for, and their models as far as they are known.
pub(super) type Reconciled = HashMap<EntryId, Option<Arc<str>>>;

/// An answer in the making.
pub(super) struct Folding<'a> {
    asked: &'a Sums<'a>,
    /// By the words of the group; with the count of open entries.
    rows: BTreeMap<Vec<String>, (LineSums, u64)>,
    open: HashMap<EntryId, BegunEntry>,
    /// Entries that evidence comes for, and their models. Filled only when it is asked by state or model.
    reconciled: Reconciled,
    /// The models that were met: each is held once.
    models: HashSet<Arc<str>>,
    /// There were more rows than there may be.
    is_cut: bool,
    is_rounded: bool,
    /// The users and tags that it is asked by.
    dimensions: Vec<Dimension>,
    named: DayValues,
}

/// What only an entry's own lines say.
#[derive(Clone, Copy)]
pub(super) struct OfEntry<'a> {
    pub model: &'a str,
    pub session: Option<Session>,
    /// The user and the values of tags, as far as it is asked by them.
    pub values: &'a [(Dimension, &'a str)],
    /// In the place of what is not there.
    pub no_mark: &'a str,
}

/// An entry in flight.
struct BegunEntry {
    labels: Labels,
    /// `None`: it is not asked for.
    model: Option<Arc<str>>,
}

// === impl Sums ===

impl Sums<'_> {
    /// Folds the journal's lines.
    pub fn of(&self, reader: &JournalReader) -> Result<Spend, LedgerError> {
        let first = reader.first_since(self.since_ms);
        let reconciled = if self.is_by_evidence() {
            let segment = first;
            reconciled_after(reader, LinePosition { segment, offset: 0 })?
        } else {
            HashSet::new()
        };
        let reconciled = reconciled.into_iter().map(|id| (id, None)).collect();
        let mut folding = Folding::new(self, reconciled);
        let part = reader.segments.get(first..).unwrap_or_default();
        let report = scan(&reader.journal, part, &mut |_, _, record| {
            folding.apply(&record);
        })?;
        let report = report.extended_to(reader.mark.known());
        let spend = folding.finish(report.bad_count.saturating_add(report.gap_count))?;
        let stands_for = reader.segments.first().and_then(Segment::stands_for);
        let is_by_session = self.is_by(GroupBy::Session);
        let stands_for = stands_for.filter(|_| is_by_session);
        Ok(Spend {
            listed_since_ms: stands_for.map(|stands_for| stands_for.until_ms),
            ..spend
        })
    }

    fn covers(&self, labels: &Labels) -> bool {
        self.covers_moment(labels.started_ms)
    }

    pub(super) fn covers_moment(&self, at_ms: u64) -> bool {
        self.since_ms.is_none_or(|since| at_ms >= since)
            && self.until_ms.is_none_or(|until| at_ms < until)
    }

    pub(super) fn is_by(&self, by: GroupBy) -> bool {
        self.group.contains(&by)
    }

    /// What an entry is filed under, or its evidence, depends on both.
    pub(super) fn is_by_evidence(&self) -> bool {
        self.is_by(GroupBy::State) || self.is_by(GroupBy::Model)
    }

    /// Only the journal's lines say what it is grouped by.
    pub(super) fn is_of_lines(&self) -> bool {
        self.group.iter().any(|by| by.is_of_lines())
    }

    fn is_by_calendar(&self) -> bool {
        self.group.iter().any(|by| by.is_of_calendar())
    }

    /// `at_ms`: `None` for the words that are of no calendar alone.
    pub(super) fn words(
        &self,
        at_ms: Option<u64>,
        line: &LineKey,
        state: StateWord,
        of: OfEntry<'_>,
    ) -> Vec<String> {
        let at = at_ms.filter(|_| self.is_by_calendar());
        let at = at.map(|at_ms| zoned(at_ms, self.time_zone));
        let word = |by: &GroupBy| match by {
            GroupBy::App => line.app.to_string(),
            GroupBy::Lane => line.lane.to_string(),
            GroupBy::Operation => line.operation.to_string(),
            GroupBy::ServedBy => line.served_by_word().to_owned(),
            GroupBy::State => state.to_string(),
            GroupBy::Model => of.model.to_owned(),
            GroupBy::Session => match of.session {
                Some(session) => session.to_string(),
                None => of.no_mark.to_owned(),
            },
            GroupBy::User => of.value(Dimension::User),
            GroupBy::Tag(key) => of.value(Dimension::Tag(*key)),
            GroupBy::Hour | GroupBy::Day | GroupBy::Week | GroupBy::Month => match &at {
                None => String::new(),
                Some(None) => NO_DATE.to_owned(),
                Some(Some(at)) => part_of_calendar(*by, at),
            },
        };
        self.group.iter().map(word).collect()
    }

    /// The words of the calendar alone.
    pub(super) fn calendar_words(&self, at_ms: u64) -> Vec<String> {
        if !self.is_by_calendar() {
            return Vec::new();
        }
        let at = zoned(at_ms, self.time_zone);
        let parts = self.group.iter().filter(|by| by.is_of_calendar());
        let part = |by: &GroupBy| match &at {
            Some(at) => part_of_calendar(*by, at),
            None => NO_DATE.to_owned(),
        };
        parts.map(part).collect()
    }
}

// === impl OfEntry ===

impl<'a> OfEntry<'a> {
    /// Of entries of which only sums are left.
    const COMPACTED: Self = Self {
        model: COMPACTED,
        session: None,
        values: &[],
        no_mark: COMPACTED,
    };

    /// Of a sum of the index, which is by nothing of this but the model. `None`: it is asked for, and not named.
    pub(super) fn of_sum(asked: &Sums<'_>, model: &'a Model) -> Option<Self> {
        let model = match model {
            _ if !asked.is_by(GroupBy::Model) => "",
            Model::Named(name) => name,
            Model::Unnamed => NO_MODEL,
            Model::Compacted => COMPACTED,
            Model::NotKnown => NOT_KNOWN,
            Model::Any | Model::Other => return None,
        };
        Some(Self {
            model,
            session: None,
            values: &[],
            no_mark: "",
        })
    }

    fn value(&self, dimension: Dimension) -> String {
        let mut values = self.values.iter();
        let found = values.find_map(|(of, value)| (*of == dimension).then_some(*value));
        found.unwrap_or(self.no_mark).to_owned()
    }
}

// === impl Folding ===

impl<'a> Folding<'a> {
    /// `reconciled`: the entries that evidence comes for, when it is asked by state or model; and the models of
    /// those that began before what is folded.
    pub(super) fn new(asked: &'a Sums<'a>, reconciled: Reconciled) -> Self {
        Self {
            asked,
            rows: BTreeMap::new(),
            open: HashMap::new(),
            reconciled,
            models: HashSet::new(),
            is_cut: false,
            is_rounded: false,
            dimensions: asked.group.iter().filter_map(|by| by.dimension()).collect(),
            named: DayValues::default(),
        }
    }

    pub(super) fn apply(&mut self, record: &Record) {
        let (id, labels, state) = match record {
            Record::Intent(intent) => return self.begin(intent),
            Record::Outcome(outcome, labels, verdict) => (outcome.id, labels, verdict.state),
            Record::Crashed(ended, labels) | Record::Withdrawn(ended, labels) => {
                (ended.id, labels, ended.state)
            }
            Record::Reconciled(evidence, labels) => {
                let state = State::Reconciled {
                    billed: evidence.adds_micro_usd,
                };
                (evidence.id, labels, state)
            }
            Record::Rollup(rollup) => return self.rollup(rollup),
            Record::Delivery(..) | Record::Unknown => return,
        };
        let begun = self.open.remove(&id);
        if !self.asked.covers(labels) {
            return;
        }
        let model = match begun {
            Some(begun) => begun.model,
            None => self.reconciled.get(&id).cloned().flatten(),
        };
        // An entry is filed under the state it came to, with all its lines.
        let state = if state.is_unresolved() && self.reconciled.contains_key(&id) {
            StateWord::Reconciled
        } else {
            filed_under(record, state)
        };
        if let Some(effect) = Effect::of(record) {
            let words = self.listed(labels, &effect.line, state, model.as_deref());
            self.add_words(words, &effect.row);
        }
    }

    pub(super) fn add_words(&mut self, words: Vec<String>, row: &LineSums) {
        if let Some((sums, _)) = self.row(words) {
            *sums += row;
        }
    }

    /// A record that is in the sums already: it only shows what is in flight.
    pub(super) fn note(&mut self, record: &Record) {
        match record {
            Record::Intent(intent) => self.begin(intent),
            Record::Delivery(..) => {}
            other => {
                if let Some(id) = other.entry() {
                    self.open.remove(&id);
                }
            }
        }
    }

    fn begin(&mut self, intent: &Intent) {
        let labels = Labels::of_intent(intent);
        if !self.asked.covers(&labels) {
            return;
        }
        let is_by_model = self.asked.is_by(GroupBy::Model);
        let model = is_by_model.then(|| self.model(intent.model.as_deref()));
        // Its evidence comes when it is not in flight any more.
        if let Some(known) = self.reconciled.get_mut(&intent.id) {
            known.clone_from(&model);
        }
        self.open.insert(intent.id, BegunEntry { labels, model });
    }

    fn model(&mut self, asked_for: Option<&str>) -> Arc<str> {
        let name = asked_for.unwrap_or(NO_MODEL);
        if let Some(known) = self.models.get(name) {
            return Arc::clone(known);
        }
        let model: Arc<str> = Arc::from(name);
        // Each is a row of the answer.
        if self.models.len() >= self.asked.rows_max {
            self.is_cut = true;
        } else {
            self.models.insert(Arc::clone(&model));
        }
        model
    }

    /// Sums of a quarter hour count for the moment it begins.
    fn rollup(&mut self, rollup: &Rollup) {
        let within = rollup.at_ms + 1..rollup.at_ms.saturating_add(GRAIN_MS);
        let bounds = [self.asked.since_ms, self.asked.until_ms];
        self.is_rounded |= bounds.iter().flatten().any(|bound| within.contains(bound));
        let labels = rollup.labels();
        if !self.asked.covers(&labels) {
            return;
        }
        let effect = Effect::of_rollup(rollup);
        let words = |of: OfEntry<'_>| {
            let at_ms = Some(rollup.at_ms);
            self.asked.words(at_ms, &effect.line, rollup.state, of)
        };
        // Of two together no sums are kept.
        let [dimension] = *self.dimensions.as_slice() else {
            let words = words(OfEntry::COMPACTED);
            return self.add_words(words, &effect.row);
        };
        let mut rest = effect.row.clone();
        let mut rows = Vec::new();
        for (value, row) in rollup.tallies.get(dimension) {
            rest = rest.less(row);
            let values = &[(dimension, value)];
            let of = OfEntry {
                values,
                ..OfEntry::COMPACTED
            };
            rows.push((words(of), row));
        }
        let values = &[(dimension, NO_MARK)];
        let of_rest = words(OfEntry {
            values,
            ..OfEntry::COMPACTED
        });
        for (words, row) in rows {
            self.add_words(words, row);
        }
        if rest.requests > 0 || rest.reconciled > 0 || !rest.billed.is_zero() {
            self.add_words(of_rest, &rest);
        }
    }

    /// The words of an entry whose lines are there.
    fn listed(
        &mut self,
        labels: &Labels,
        line: &LineKey,
        state: StateWord,
        model: Option<&str>,
    ) -> Vec<String> {
        let (at_ms, marks) = (labels.started_ms, labels.marks.as_deref());
        let mut values = Vec::new();
        for dimension in &self.dimensions {
            if let Some(value) = marks.and_then(|marks| dimension.of(marks)) {
                let name = self.named.name(at_ms, &labels.app, *dimension, value);
                values.push((*dimension, name));
            }
        }
        let of = OfEntry {
            model: model.unwrap_or(NOT_KNOWN),
            session: labels.session(),
            values: &values,
            no_mark: NO_MARK,
        };
        self.asked.words(Some(at_ms), line, state, of)
    }

    fn row(&mut self, words: Vec<String>) -> Option<&mut (LineSums, u64)> {
        if self.rows.len() >= self.asked.rows_max && !self.rows.contains_key(&words) {
            self.is_cut = true;
            return None;
        }
        Some(self.rows.entry(words).or_default())
    }

    /// `damaged`: ranges and gaps in what was read.
    pub(super) fn finish(mut self, damaged: u64) -> Result<Spend, LedgerError> {
        for BegunEntry { labels, model } in std::mem::take(&mut self.open).into_values() {
            let line = LineKey::new(&labels, None);
            let words = self.listed(&labels, &line, StateWord::Open, model.as_deref());
            if let Some((_, open)) = self.row(words) {
                *open += 1;
            }
        }
        if self.is_cut {
            let max = self.asked.rows_max;
            return Err(LedgerError::TooManyRows { max });
        }
        let mut total = (LineSums::default(), 0);
        let mut rows = Vec::with_capacity(self.rows.len());
        for (words, (row, open)) in self.rows {
            total.0 += &row;
            total.1 += open;
            let labels = self.asked.group.iter().copied().zip(words);
            rows.push(SpendRow::new(labels.collect(), &row, open));
        }
        Ok(Spend {
            rows,
            total: SpendRow::new(BTreeMap::new(), &total.0, total.1),
            damaged,
            is_rounded: self.is_rounded,
            listed_since_ms: None,
        })
    }
}

// === impl SpendRow ===

impl SpendRow {
    fn new(labels: BTreeMap<GroupBy, String>, row: &LineSums, open: u64) -> Self {
        Self {
            labels,
            requests: row.requests.saturating_add(open),
            billed_micro_usd: row.billed,
            would_have_cost_micro_usd: row.would_have_cost,
            compared: row.compared.answers,
            compared_billed_micro_usd: row.compared.billed,
            compared_would_have_cost_micro_usd: row.compared.frontier,
            saved_micro_usd: row.compared.saved(),
            drained_micro_usd: row.drained,
            settled: row.settled,
            reconciled: row.reconciled,
            in_doubt: row.in_doubt_now(),
            unreported: row.unreported.now(),
            failed: row.failed,
            replayed: row.replayed,
            open,
            prompt_tokens: row.prompt_tokens,
            completion_tokens: row.completion_tokens,
            total_tokens: row.total_tokens,
            audio_ms: row.audio_ms,
            audio_untold: row.audio_untold,
        }
    }
}

/// The labels among the members of a row's document. Members of a later bursar are passed over.
fn known_labels<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<GroupBy, String>, D::Error> {
    let members = BTreeMap::<String, serde_json::Value>::deserialize(from)?;
    let known = members.into_iter().filter_map(|(name, member)| {
        let word = member.as_str()?.to_owned();
        Some((GroupBy::from_word(&name)?, word))
    });
    Ok(known.collect())
}

fn zoned(at_ms: u64, time_zone: &TimeZone) -> Option<Zoned> {
    let at = Timestamp::from_millisecond(i64::try_from(at_ms).ok()?).ok()?;
    Some(at.to_zoned(time_zone.clone()))
}

/// `2026-05-09 08:00`, `2026-05-09`, `2026-W19`, `2026-05`.
fn part_of_calendar(by: GroupBy, at: &Zoned) -> String {
    match by {
        GroupBy::Hour => hour(at),
        GroupBy::Week => {
            let week = at.date().iso_week_date();
            format!("{:04}-W{:02}", week.year(), week.week())
        }
        GroupBy::Month => at.strftime("%Y-%m").to_string(),
        _ => at.date().to_string(),
    }
}

/// An hour that the clocks go through twice is named twice, the second time with its distance from UTC.
fn hour(at: &Zoned) -> String {
    let hour = at.strftime("%Y-%m-%d %H:00");
    let ambiguous = at.time_zone().to_ambiguous_timestamp(at.datetime());
    match ambiguous.offset() {
        AmbiguousOffset::Fold { after, .. } if at.offset() == after => format!("{hour}{after}"),
        _ => hour.to_string(),
    }
}
