//! Random ledgers over months: apps, lanes, states, specialists, evidence that comes late; and all
//! that `spend` can be asked of them.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::tz::TimeZone;
use proptest::prelude::*;

use crate::ledger::entry::Labels;
use crate::ledger::entry::{Anomaly, AttemptEnd, InDoubt, State};
use crate::ledger::fixtures::paper::{Paper, crashes, evidence, id};
use crate::ledger::fixtures::{START_MS, attempt, billed, intent, outcome};
use crate::ledger::id::EntryId;
use crate::ledger::query::spend;
use crate::ledger::read::spend::{GroupBy, Spend};
use crate::ledger::record::{Ended, Record, Verdict};
use crate::ledger::upkeep::compact::Wanted;
use crate::money::MicroUsd;
use crate::protocol::receipt::Receipt;
use crate::protocol::{Escalated, Lane, Operation, ServedBy, Told, Usage};

const MINUTE_MS: u64 = 60 * 1000;
const QUARTER_MS: u64 = 15 * MINUTE_MS;

/// What happens next: the kind, which entry, and minutes since the step before.
pub type Step = (u8, u8, u16);

pub fn steps() -> impl Strategy<Value = Vec<Step>> {
    let pause = prop_oneof![6 => 0..20u16, 3 => 20..600u16, 1 => 600..6000u16];
    prop::collection::vec((0..12u8, any::<u8>(), pause), 40..140)
}

/// A journal, and which of its entries wait for their amount at its end.
pub struct History {
    pub paper: Paper,
    open: Vec<(EntryId, u64)>,
    unresolved: Vec<(EntryId, Labels, State)>,
}

// === impl History ===

impl History {
    /// A history without chance.
    pub fn of(length: u32) -> Self {
        let steps: Vec<Step> = (0..length)
            .map(|at| {
                let mixed = at.wrapping_mul(2_654_435_761) >> 7;
                let part = |by: u32| u8::try_from(mixed / by % 251).unwrap();
                (part(1) % 12, part(300), u16::from(part(90_000)) * 2)
            })
            .collect();
        Self::write(&steps)
    }

    pub fn write(steps: &[Step]) -> Self {
        let mut history = Self {
            paper: Paper::new(6_000),
            open: Vec::new(),
            unresolved: Vec::new(),
        };
        let mut labels: Vec<Labels> = Vec::new();
        for (at, (kind, which, minutes)) in steps.iter().enumerate() {
            history.paper.now_ms += u64::from(*minutes) * MINUTE_MS + 1_234;
            let which = usize::from(*which);
            if *kind >= 10 && !history.unresolved.is_empty() {
                let (id, labels, was) = history.unresolved.remove(which % history.unresolved.len());
                history.paper.write(&evidence(id, labels, was), true);
            } else if *kind >= 4 && !history.open.is_empty() {
                let (id, number) = history.open.remove(which % history.open.len());
                let labels = labels[usize::try_from(number).unwrap()].clone();
                let (record, state) = history.end(*kind, which, at, id, &labels);
                if state.is_unresolved() {
                    history.unresolved.push((id, labels, state));
                }
                history.paper.write(&record, true);
            } else {
                let number = u64::try_from(labels.len()).unwrap();
                let mut begun = intent(id(number), history.paper.now_ms, None);
                begun.app = Arc::from(["notes", "agent", "batch"][which % 3]);
                begun.lane = Lane::ALL[which % Lane::ALL.len()];
                begun.operation = Operation::ALL[which / 3 % Operation::ALL.len()];
                labels.push(Labels::of_intent(&begun));
                history.open.push((id(number), number));
                history.paper.write(&Record::Intent(Box::new(begun)), true);
            }
        }
        history.paper.finish();
        history.paper.bench.clock.set_wall_ms(history.paper.now_ms);
        history
    }

    fn end(
        &self,
        kind: u8,
        which: usize,
        at: usize,
        id: EntryId,
        labels: &Labels,
    ) -> (Record, State) {
        let amount = MicroUsd::new(u64::try_from(which * 31 + at).unwrap());
        let reason = InDoubt::ALL[which % InDoubt::ALL.len()];
        let state = match kind {
            4 | 5 => State::Settled { billed: amount },
            6 => State::Failed,
            7 => State::Unreported,
            8 => State::InDoubt { reason },
            _ if which.is_multiple_of(3) => return (crashes(id, labels.clone()), crash()),
            _ if which.is_multiple_of(5) => {
                let ended = Ended {
                    id,
                    at_ms: self.paper.now_ms,
                    state: State::Failed,
                };
                return (Record::Withdrawn(ended, labels.clone()), State::Failed);
            }
            _ => State::Replayed,
        };
        let receipt = Receipt {
            served_by: (!which.is_multiple_of(4))
                .then(|| ServedBy::ALL[which % ServedBy::ALL.len()]),
            would_have_cost: Told::Value(MicroUsd::new(5_000)),
            // More than are counted by name.
            specialist: Some(format!("kind-{}", which % 61)),
            escalated: Escalated::ALL[which % Escalated::ALL.len()],
            replayed: which.is_multiple_of(7),
            input_required: which.is_multiple_of(6).then(|| "phone".to_owned()),
            ..billed(amount.get())
        };
        let ends = [AttemptEnd::Answered, AttemptEnd::Broken, AttemptEnd::NoHead];
        let mut told = outcome(id, vec![attempt(ends[which % 3])], receipt);
        told.at_ms = self.paper.now_ms;
        told.usage = Usage {
            prompt_tokens: Some(11),
            completion_tokens: (!which.is_multiple_of(5)).then_some(7),
            total_tokens: Some(18),
        };
        told.audio_ms = (!which.is_multiple_of(4)).then_some(1_234);
        let verdict = Verdict {
            state,
            adds_micro_usd: state.adds(),
            anomalies: if which.is_multiple_of(8) {
                vec![Anomaly::ALL[which % Anomaly::ALL.len()]]
            } else {
                Vec::new()
            },
        };
        let record = Record::Outcome(Box::new(told), labels.clone(), verdict);
        (record, state)
    }

    pub fn state(&self) -> PathBuf {
        self.paper.state()
    }

    pub fn began_ms(&self) -> u64 {
        START_MS
    }

    /// Everything before a place in the history may go: 0 is its beginning, 255 its end. Every
    /// second entry that is unresolved at the end waits for its amount.
    pub fn wanted(&self, place: u8) -> Wanted {
        let length_ms = self.paper.now_ms - START_MS;
        let waiting = self.unresolved.iter().step_by(2);
        let awaited: HashSet<EntryId> = waiting.map(|(id, ..)| *id).collect();
        Wanted {
            before_ms: START_MS + length_ms / 255 * u64::from(place),
            // Entries in flight at the end keep their segments whole in a daemon; here their intents
            // are carried over, which must be as right.
            before_seq: u64::MAX,
            awaited,
        }
    }
}

fn crash() -> State {
    State::InDoubt {
        reason: InDoubt::Crash,
    }
}

/// A question to `spend`.
#[derive(Clone, Debug)]
pub struct Asked {
    pub zone: TimeZone,
    by: Vec<GroupBy>,
    since_ms: Option<u64>,
    until_ms: Option<u64>,
}

// === impl Asked ===

impl Asked {
    pub fn first() -> Self {
        Self {
            zone: TimeZone::UTC,
            by: Vec::new(),
            since_ms: None,
            until_ms: None,
        }
    }
}

/// Every grouping by up to two words and by all of them, in zones of all kinds, over the whole and
/// over parts that begin at quarter hours.
fn questions(history: &History) -> Vec<Asked> {
    let mut groupings: Vec<Vec<GroupBy>> = vec![vec![], GroupBy::ALL.to_vec()];
    for (at, one) in GroupBy::ALL.iter().enumerate() {
        groupings.push(vec![*one]);
        let more = GroupBy::ALL.iter().skip(at + 1);
        groupings.extend(more.map(|two| vec![*one, *two]));
    }
    let length = (history.paper.now_ms - START_MS) / QUARTER_MS;
    let at = |part: u64| Some(START_MS + length * part / 5 * QUARTER_MS);
    // Hours, halves and quarters from UTC; summer time of an hour and of half an hour.
    let zones = [
        "UTC",
        "Europe/Berlin",
        "America/St_Johns",
        "Asia/Kathmandu",
        "Australia/Lord_Howe",
        "Pacific/Chatham",
    ];
    let mut asked = Vec::new();
    for (number, by) in groupings.into_iter().enumerate() {
        let days = by == [GroupBy::Day];
        let bounds = [(None, None), (at(1), at(3)), (None, None), (at(2), None)];
        for zone in zones.iter().take(if days { zones.len() } else { 1 }) {
            let (since_ms, until_ms) = bounds[number % bounds.len()];
            let zone = TimeZone::get(zone).unwrap();
            asked.push(Asked {
                zone,
                by: by.clone(),
                since_ms,
                until_ms,
            });
        }
    }
    asked
}

/// All the answers.
pub fn ask_all(state: &Path, history: &History) -> Vec<Spend> {
    let ask = |asked: Asked| {
        spend(
            state,
            asked.since_ms,
            asked.until_ms,
            &asked.by,
            &asked.zone,
        )
        .unwrap()
    };
    questions(history).into_iter().map(ask).collect()
}
