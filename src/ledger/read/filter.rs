//! Which entries are asked for, and what one line of an entry says to that.

use std::path::Path;

use crate::ledger::entry::{InDoubt, State, StateWord};
use crate::ledger::id::EntryId;
use crate::ledger::journal::state_dir::Directory;
use crate::ledger::kept_key::KeptKey;
use crate::ledger::marks::{Marks, SessionHasher, SoughtSession};
use crate::ledger::read::views::EntryView;
use crate::ledger::record::Record;
use crate::protocol::Operation;

/// Which entries to list.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Begun at or after, Unix milliseconds.
    pub since_ms: Option<u64>,
    /// Begun before.
    pub until_ms: Option<u64>,
    pub app: Option<String>,
    pub operation: Option<Operation>,
    /// The model that the app asked for, as the ledger keeps it.
    pub model: Option<String>,
    pub session: Option<SoughtSession>,
    pub state: Option<StateWord>,
    /// In doubt for this reason.
    pub reason: Option<InDoubt>,
    /// One entry.
    pub id: Option<EntryId>,
    /// Only entries that something happened to after this sequence number: for following.
    pub after_seq: Option<u64>,
    /// The newest so many; with `after_seq` the oldest so many, so that none is passed over.
    pub limit: Option<usize>,
}

/// The answer of [`list`](crate::ledger::read::listing::list).
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// Oldest change first.
    pub entries: Vec<EntryView>,
    /// Where to go on: up to here every line was looked at, and what matches is listed. `None` for an
    /// empty journal.
    pub last_seq: Option<u64>,
}

/// What a line says of its entry. The last line decides whether the entry is listed.
pub struct Said<'a> {
    pub id: EntryId,
    pub started_ms: u64,
    pub app: &'a str,
    pub operation: Operation,
    pub state: State,
    /// Unreported, because the amount that was reported cannot be read.
    pub is_malformed: bool,
    pub key: Option<&'a KeptKey>,
    /// The service's, of an outcome.
    pub request_id: Option<&'a str>,
    /// Of an entry of an older bursar the intent has none either.
    pub marks: Option<&'a Marks>,
    /// The outer `None`: only the intent says it.
    pub model: Option<Option<&'a str>>,
}

/// What keys and sessions are hashed with. Where it is lost, none is found by its text.
pub fn secret(state_dir: &Path) -> [u8; 32] {
    let directory = Directory::open_to_read(state_dir).ok();
    let identity = directory.and_then(|directory| directory.known_identity().ok()??);
    identity.map_or([0; 32], |identity| identity.fingerprint_secret)
}

// === impl Filter ===

impl Filter {
    /// The same, for the ledger there: a session is found by its whole id.
    #[must_use]
    pub fn keyed(&self, state_dir: &Path) -> Self {
        let keyed = |sought: &SoughtSession| sought.keyed(SessionHasher::new(secret(state_dir)));
        Self {
            session: self.session.as_ref().map(keyed),
            ..self.clone()
        }
    }

    /// Whether an entry whose last line is this is asked for, its model apart.
    pub fn admits(&self, seq: u64, said: &Said<'_>) -> bool {
        self.admits_labels(said)
            && self.after_seq.is_none_or(|mark| seq > mark)
            && self.admits_state(said.state, said.is_malformed)
    }

    /// Whether an entry in this state is asked for.
    pub fn admits_state(&self, state: State, is_malformed: bool) -> bool {
        let is_state = match self.state {
            None => true,
            Some(StateWord::Malformed) => is_malformed,
            Some(word) => state.word() == word,
        };
        is_state
            && self
                .reason
                .is_none_or(|reason| state == State::InDoubt { reason })
    }

    /// Whether an entry of this model is asked for. `None`: the line does not say the model.
    pub fn admits_model(&self, said: &Said<'_>) -> Option<bool> {
        match &self.model {
            None => Some(true),
            Some(model) => said.model.map(|said| said == Some(model.as_str())),
        }
    }

    /// The same for what every line of an entry says alike.
    pub fn admits_labels(&self, said: &Said<'_>) -> bool {
        self.since_ms.is_none_or(|since| said.started_ms >= since)
            && self.until_ms.is_none_or(|until| said.started_ms < until)
            && self.id.is_none_or(|id| said.id == id)
            && self.app.as_ref().is_none_or(|app| app == said.app)
            && self
                .operation
                .is_none_or(|operation| operation == said.operation)
            && self.session.as_ref().is_none_or(|sought| {
                let session = said.marks.and_then(|marks| marks.session.as_ref());
                session.is_some_and(|session| sought.is(said.app, session))
            })
    }
}

// === impl Said ===

impl<'a> Said<'a> {
    /// `None` for a line that is about no single entry, or of a newer bursar.
    pub fn of(record: &'a Record) -> Option<Self> {
        let request_id = match record {
            Record::Outcome(outcome, ..) => outcome.request_id.as_deref(),
            _ => None,
        };
        let (id, labels, state) = match record {
            Record::Intent(intent) => {
                return Some(Self {
                    id: intent.id,
                    started_ms: intent.at_ms,
                    app: &intent.app,
                    operation: intent.operation,
                    state: State::Open,
                    is_malformed: false,
                    key: intent.key.as_ref(),
                    request_id: None,
                    marks: intent.marks.as_deref(),
                    model: Some(intent.model.as_deref()),
                });
            }
            Record::Outcome(outcome, labels, verdict) => (outcome.id, labels, verdict.state),
            Record::Crashed(ended, labels) | Record::Withdrawn(ended, labels) => {
                (ended.id, labels, ended.state)
            }
            Record::Reconciled(evidence, labels) => {
                let billed = evidence.adds_micro_usd;
                (evidence.id, labels, State::Reconciled { billed })
            }
            Record::Delivery(..) | Record::Rollup(_) | Record::Unknown => return None,
        };
        Some(Self {
            id,
            started_ms: labels.started_ms,
            app: &labels.app,
            operation: labels.operation,
            state,
            is_malformed: record.is_malformed(),
            key: labels.key.as_ref(),
            request_id,
            marks: labels.marks.as_deref(),
            model: None,
        })
    }
}
