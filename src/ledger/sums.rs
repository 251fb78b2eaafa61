//! What is summed of entries, by line and by what a rollup is kept by. Every figure only ever adds; a
//! gauge is two of them, what came and what left.
//!
//! Promise: no sum of money can overflow. What reads these from a line that lacks a figure reads none.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ledger::entry::{Anomaly, InDoubt, Labels, State};
use crate::ledger::shared_text;
use crate::money::MicroUsd;
use crate::protocol::tags::TagKey;
use crate::protocol::{Escalated, Lane, Operation, ServedBy, closed_set};

/// How many specialist categories are counted by name (I11); the others share [`OTHER`].
pub const SPECIALISTS_MAX: usize = 32;
pub const OTHER: &str = "other";

/// How many values of a tag of an app are summed by name for `/metrics`, and how many keys of an app.
const TAG_VALUES_MAX: usize = 1_000;
const TAG_KEYS_MAX: usize = 16;

/// A sum of amounts, in micro-USD. 128 bits hold 2^64 entries of the largest amount: it cannot
/// overflow.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct MicroUsdSum(u128);

/// What a row of sums is kept by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LineKey {
    #[serde(with = "shared_text")]
    pub app: Arc<str>,
    pub lane: Lane,
    pub operation: Operation,
    /// `None`: not reported.
    pub served_by: Option<ServedBy>,
}

/// How many came and how many left: the difference is a gauge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    pub came: u64,
    pub left: u64,
}

/// The sums of a line. A sum that an older line lacks reads as none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LineSums {
    /// Entries that ended, in whatever state.
    pub requests: u64,
    pub settled: u64,
    pub failed: u64,
    pub replayed: u64,
    pub reconciled: u64,
    pub unreported: Standing,
    pub in_doubt: BTreeMap<InDoubt, Standing>,
    pub billed: MicroUsdSum,
    pub would_have_cost: MicroUsdSum,
    /// Over the answers that carry both, and so comparable. A line of an earlier release lacks it:
    /// its answers are not compared.
    #[serde(skip_serializing_if = "Compared::is_none")]
    pub compared: Compared,
    /// The part of `billed` that was spent on answers that no app was there to read.
    #[serde(default)]
    pub drained: MicroUsdSum,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    pub total_tokens: u64,
    /// Milliseconds of sound of the speech routes' complete answers, each rounded by itself.
    #[serde(skip_serializing_if = "is_none_of")]
    pub audio_ms: u64,
    /// Complete answers of the speech routes that reported no length that can be read.
    #[serde(skip_serializing_if = "is_none_of")]
    pub audio_untold: u64,
    /// Complete 2xx answers, by what they reported of escalation.
    pub answers: BTreeMap<Escalated, u64>,
    pub clarifications: u64,
    /// Answers marked `Idempotent-Replayed`.
    pub replays: u64,
    /// Entries that took over the key of an undelivered one.
    pub adopted: u64,
    /// What caps hold for entries whose price is not known: reservations, no billed money.
    #[serde(skip_serializing_if = "HeldSums::is_none")]
    pub held: HeldSums,
}

/// Answers that carry both prices: what was billed for them, and what a frontier model would have cost by
/// the service's estimate. An answer that carries one of them alone (an image: no estimate) is not compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compared {
    pub answers: u64,
    pub billed: MicroUsdSum,
    pub frontier: MicroUsdSum,
}

/// Reservations of entries whose price was not reported, and the part of them for which evidence came: what
/// is between the two is held now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldSums {
    pub came: MicroUsdSum,
    pub left: MicroUsdSum,
}

closed_set! {
    /// `receipts_total{source}`: where an answer's amount was, or what was there instead.
    ReceiptKind {
        Header => "header",
        Sse => "sse",
        Body => "body",
        Missing => "missing",
        Malformed => "malformed",
        Replay => "replay",
    }
}

/// Counters that are not kept by line or day.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Globals {
    pub anomalies: BTreeMap<Anomaly, u64>,
    pub receipts: BTreeMap<ReceiptKind, u64>,
    /// The first 32 categories by name, further ones as `other`.
    pub specialists: BTreeMap<String, u64>,
    /// What was billed for tags, for `/metrics`: by app, key and value, the first [`TAG_VALUES_MAX`] values of each
    /// by name, further ones as `other`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tagged: BTreeMap<String, BTreeMap<TagKey, BTreeMap<String, MicroUsdSum>>>,
}

// === impl MicroUsdSum ===

impl MicroUsdSum {
    pub const fn from_micro_usd(sum: u128) -> Self {
        Self(sum)
    }

    pub const fn get(self) -> u128 {
        self.0
    }

    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    pub fn add(&mut self, amount: MicroUsd) {
        self.0 = self.0.saturating_add(u128::from(amount.get()));
    }

    pub fn merge(&mut self, other: Self) {
        self.0 = self.0.saturating_add(other.0);
    }

    /// As an amount, when it is small enough to be one.
    pub fn as_amount(self) -> Option<MicroUsd> {
        u64::try_from(self.0).ok().map(MicroUsd::new)
    }

    /// The exact decimal in USD, six digits after the point.
    pub fn to_usd(self) -> String {
        format!("{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

impl From<MicroUsd> for MicroUsdSum {
    fn from(amount: MicroUsd) -> Self {
        Self(u128::from(amount.get()))
    }
}

impl fmt::Display for MicroUsdSum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("${}", self.to_usd()))
    }
}

// === impl LineKey ===

impl LineKey {
    pub fn new(labels: &Labels, served_by: Option<ServedBy>) -> Self {
        Self {
            app: Arc::clone(&labels.app),
            lane: labels.lane,
            operation: labels.operation,
            served_by,
        }
    }

    /// `served_by` as a word; `unknown` when it was not reported.
    pub fn served_by_word(&self) -> &'static str {
        self.served_by.map_or("unknown", ServedBy::as_str)
    }
}

// === impl Standing ===

impl Standing {
    /// How many are there now.
    pub const fn now(self) -> u64 {
        self.came.saturating_sub(self.left)
    }

    pub const fn is_none(&self) -> bool {
        self.came == 0 && self.left == 0
    }
}

impl AddAssign for Standing {
    fn add_assign(&mut self, other: Self) {
        self.came = self.came.saturating_add(other.came);
        self.left = self.left.saturating_add(other.left);
    }
}

// === impl Compared ===

impl Compared {
    fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// One answer that carries both.
    pub fn one(billed: MicroUsd, frontier: MicroUsd) -> Self {
        Self {
            answers: 1,
            billed: billed.into(),
            frontier: frontier.into(),
        }
    }

    /// `None` where nothing can be compared, and where the frontier would have been the cheaper.
    pub fn saved(self) -> Option<MicroUsdSum> {
        let saved = self.frontier.get().checked_sub(self.billed.get())?;
        (self.answers > 0).then_some(MicroUsdSum(saved))
    }
}

impl AddAssign for Compared {
    fn add_assign(&mut self, other: Self) {
        self.answers = self.answers.saturating_add(other.answers);
        self.billed.merge(other.billed);
        self.frontier.merge(other.frontier);
    }
}

impl fmt::Display for Compared {
    /// What was saved, over how many answers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (answers, carry) = match self.answers {
            0 => return f.write_str("not known: no answer carries both prices"),
            1 => ("1 answer".to_owned(), "carries"),
            more => (format!("{more} answers"), "carry"),
        };
        match self.saved() {
            Some(saved) => write!(f, "{saved} ({answers} {carry} both prices)"),
            None => write!(
                f,
                "nothing: {answers} cost {}, a frontier model would have cost {}",
                self.billed, self.frontier
            ),
        }
    }
}

// === impl HeldSums ===

impl HeldSums {
    fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// What is held now, in micro-USD.
    pub const fn now(self) -> u128 {
        self.came.get().saturating_sub(self.left.get())
    }
}

impl AddAssign for HeldSums {
    fn add_assign(&mut self, other: Self) {
        self.came.merge(other.came);
        self.left.merge(other.left);
    }
}

// === impl LineSums ===

impl LineSums {
    pub fn in_doubt_now(&self) -> u64 {
        self.in_doubt.values().map(|standing| standing.now()).sum()
    }

    /// What is left of it without another one that is a part of it.
    #[must_use]
    pub fn less(&self, part: &Self) -> Self {
        let count = u64::saturating_sub;
        let money = |sum: MicroUsdSum, part: MicroUsdSum| MicroUsdSum(sum.0.saturating_sub(part.0));
        let standing = |sum: Standing, part: Standing| Standing {
            came: count(sum.came, part.came),
            left: count(sum.left, part.left),
        };
        let of = |reason: &InDoubt| part.in_doubt.get(reason).copied().unwrap_or_default();
        let answers = |word: &Escalated| part.answers.get(word).copied().unwrap_or(0);
        Self {
            requests: count(self.requests, part.requests),
            settled: count(self.settled, part.settled),
            failed: count(self.failed, part.failed),
            replayed: count(self.replayed, part.replayed),
            reconciled: count(self.reconciled, part.reconciled),
            unreported: standing(self.unreported, part.unreported),
            in_doubt: self
                .in_doubt
                .iter()
                .map(|(reason, sum)| (*reason, standing(*sum, of(reason))))
                .collect(),
            billed: money(self.billed, part.billed),
            would_have_cost: money(self.would_have_cost, part.would_have_cost),
            compared: Compared {
                answers: count(self.compared.answers, part.compared.answers),
                billed: money(self.compared.billed, part.compared.billed),
                frontier: money(self.compared.frontier, part.compared.frontier),
            },
            drained: money(self.drained, part.drained),
            prompt_tokens: count(self.prompt_tokens, part.prompt_tokens),
            completion_tokens: count(self.completion_tokens, part.completion_tokens),
            total_tokens: count(self.total_tokens, part.total_tokens),
            audio_ms: count(self.audio_ms, part.audio_ms),
            audio_untold: count(self.audio_untold, part.audio_untold),
            answers: self
                .answers
                .iter()
                .map(|(word, sum)| (*word, count(*sum, answers(word))))
                .collect(),
            clarifications: count(self.clarifications, part.clarifications),
            replays: count(self.replays, part.replays),
            adopted: count(self.adopted, part.adopted),
            held: HeldSums {
                came: money(self.held.came, part.held.came),
                left: money(self.held.left, part.held.left),
            },
        }
    }

    /// One entry that ended in `state`: it is counted, and adds no money.
    pub fn ended(state: State) -> Self {
        let mut row = Self {
            requests: 1,
            ..Self::default()
        };
        match state {
            State::Open => {}
            State::Settled { .. } => row.settled = 1,
            State::Failed => row.failed = 1,
            State::Replayed => row.replayed = 1,
            State::Unreported => row.unreported.came = 1,
            State::InDoubt { reason } => row.in_doubt.entry(reason).or_default().came = 1,
            State::Reconciled { .. } => row.reconciled = 1,
        }
        row
    }
}

impl AddAssign<&Self> for LineSums {
    fn add_assign(&mut self, other: &Self) {
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        add(&mut self.requests, other.requests);
        add(&mut self.settled, other.settled);
        add(&mut self.failed, other.failed);
        add(&mut self.replayed, other.replayed);
        add(&mut self.reconciled, other.reconciled);
        self.unreported += other.unreported;
        for (reason, standing) in &other.in_doubt {
            *self.in_doubt.entry(*reason).or_default() += *standing;
        }
        self.billed.merge(other.billed);
        self.would_have_cost.merge(other.would_have_cost);
        self.compared += other.compared;
        self.drained.merge(other.drained);
        add(&mut self.prompt_tokens, other.prompt_tokens);
        add(&mut self.completion_tokens, other.completion_tokens);
        add(&mut self.total_tokens, other.total_tokens);
        add(&mut self.audio_ms, other.audio_ms);
        add(&mut self.audio_untold, other.audio_untold);
        for (escalated, count) in &other.answers {
            add(self.answers.entry(*escalated).or_default(), *count);
        }
        add(&mut self.clarifications, other.clarifications);
        add(&mut self.replays, other.replays);
        add(&mut self.adopted, other.adopted);
        self.held += other.held;
    }
}

// === impl Globals ===

impl Globals {
    /// An amount, counted for each tag of an entry.
    pub fn of_tags(labels: &Labels, billed: MicroUsd) -> Self {
        let mut globals = Self::default();
        let marks = labels.marks.as_ref().filter(|_| !billed.is_zero());
        for (key, value) in marks.iter().flat_map(|marks| marks.tags.iter()) {
            let keys = globals.tagged.entry(labels.app.to_string()).or_default();
            let values = keys.entry(key).or_default();
            values.entry(value.to_owned()).or_default().add(billed);
        }
        globals
    }
}

impl AddAssign<&Self> for Globals {
    fn add_assign(&mut self, other: &Self) {
        for (anomaly, count) in &other.anomalies {
            let sum = self.anomalies.entry(*anomaly).or_default();
            *sum = sum.saturating_add(*count);
        }
        for (kind, count) in &other.receipts {
            let sum = self.receipts.entry(*kind).or_default();
            *sum = sum.saturating_add(*count);
        }
        for (category, count) in &other.specialists {
            let is_named = category == OTHER || self.specialists.contains_key(category);
            // `other` itself takes no name's place, so that sums of sums name the same ones.
            let named = self.specialists.len() - usize::from(self.specialists.contains_key(OTHER));
            let name = if is_named || named < SPECIALISTS_MAX {
                category.clone()
            } else {
                OTHER.to_owned()
            };
            let sum = self.specialists.entry(name).or_default();
            *sum = sum.saturating_add(*count);
        }
        for (app, keys) in &other.tagged {
            let own = self.tagged.entry(app.clone()).or_default();
            for (key, values) in keys {
                if own.len() >= TAG_KEYS_MAX && !own.contains_key(key) {
                    continue;
                }
                let own = own.entry(*key).or_default();
                for (value, billed) in values {
                    let named = own.len() - usize::from(own.contains_key(OTHER));
                    let is_named = value == OTHER || own.contains_key(value);
                    let name = match is_named || named < TAG_VALUES_MAX {
                        true => value.as_str(),
                        false => OTHER,
                    };
                    own.entry(name.to_owned()).or_default().merge(*billed);
                }
            }
        }
    }
}

/// Most rows are of no speech: their lines stay short.
fn is_none_of(count: &u64) -> bool {
    *count == 0
}
