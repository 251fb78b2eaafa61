//! The idealised service: the interface's rules of keys and billing, with its own true books. It
//! shares no code with bursar and none with the sandbox.
//!
//! Promise: a debit is made once for a key in its 24 h, by the first run that succeeds; what fails
//! is free; an unkeyed run is a debit each time.

use std::collections::HashMap;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Chat,
    ChatStream,
    Agent,
    AgentStream,
    Embeddings,
    Frontier,
    Speech,
    EvalRun,
}

/// What comes back.
#[derive(Clone, Copy, Debug)]
pub enum Reply {
    Done {
        shown: u64,
        replayed: bool,
        clarification: bool,
        job: Option<u64>,
    },
    Refused(u16),
}

pub enum Arrival {
    Replied(Reply),
    Runs(u64),
}

/// A debit in the true books.
pub struct Debit {
    /// Who asked: the number of the request that ran.
    pub owner: u128,
    pub amount: u64,
}

struct Binding {
    key: Arc<str>,
    body: u64,
    first_ms: u64,
    billed: Option<u64>,
    stored: bool,
    running: usize,
    /// Running and waiting.
    users: usize,
}

struct Run {
    id: u64,
    owner: u128,
    kind: Kind,
    body: u64,
    amount: u64,
    binding: Option<usize>,
    waits: bool,
}

/// An eval run that goes on behind its answer.
pub struct Job {
    pub id: u64,
    pub owner: u128,
    pub amount: u64,
    pub ended: bool,
}

#[derive(Default)]
pub struct Service {
    pub now_ms: u64,
    bindings: Vec<Binding>,
    current: HashMap<Arc<str>, usize>,
    runs: Vec<Run>,
    pub jobs: Vec<Job>,
    pub debits: Vec<Debit>,
    next: u64,
}

const DAY_MS: u64 = 86_400_000;

impl Kind {
    pub const ALL: [Self; 8] = [
        Self::Chat,
        Self::ChatStream,
        Self::Agent,
        Self::AgentStream,
        Self::Embeddings,
        Self::Frontier,
        Self::Speech,
        Self::EvalRun,
    ];

    pub fn path(self) -> &'static str {
        match self {
            Self::Chat | Self::ChatStream => "/v1/chat/completions",
            Self::Agent | Self::AgentStream => "/agent/v1/chat/completions",
            Self::Embeddings => "/v1/embeddings",
            Self::Frontier => "/v1/playground/frontier",
            Self::Speech => "/v1/audio/speech",
            Self::EvalRun => "/v1/eval-runs",
        }
    }

    pub fn streams(self) -> bool {
        matches!(self, Self::ChatStream | Self::AgentStream)
    }

    /// The interface tells no amount with the answer.
    pub fn is_silent(self) -> bool {
        matches!(self, Self::AgentStream | Self::Speech | Self::EvalRun)
    }
}

impl Service {
    pub fn at(now_ms: u64) -> Self {
        Self {
            now_ms,
            ..Self::default()
        }
    }

    /// A request arrived whole. `body` tells bodies and kinds apart.
    pub fn arrive(
        &mut self,
        key: Option<&Arc<str>>,
        kind: Kind,
        body: u64,
        owner: u128,
        amount: u64,
    ) -> Arrival {
        let mut waits = false;
        let mut binding = None;
        if let Some(key) = key {
            let old = self.current.get(key).copied().filter(|at| {
                let bound = &self.bindings[*at];
                bound.users > 0 || self.now_ms.saturating_sub(bound.first_ms) < DAY_MS
            });
            let at = old.unwrap_or_else(|| {
                self.bindings.push(Binding {
                    key: Arc::clone(key),
                    body,
                    first_ms: self.now_ms,
                    billed: None,
                    stored: false,
                    running: 0,
                    users: 0,
                });
                self.current
                    .insert(Arc::clone(key), self.bindings.len() - 1);
                self.bindings.len() - 1
            });
            let bound = &mut self.bindings[at];
            if bound.body != body {
                return Arrival::Replied(Reply::Refused(422));
            }
            if bound.stored {
                return Arrival::Replied(Self::replay(bound, body));
            }
            waits = kind == Kind::Chat && bound.running > 0;
            bound.users += 1;
            bound.running += usize::from(!waits);
            binding = Some(at);
        }
        self.next += 1;
        self.runs.push(Run {
            id: self.next,
            owner,
            kind,
            body,
            amount,
            binding,
            waits,
        });
        Arrival::Runs(self.next)
    }

    fn replay(bound: &Binding, body: u64) -> Reply {
        Reply::Done {
            shown: 0,
            replayed: true,
            clarification: bound.billed == Some(0) && is_clarification(body),
            job: None,
        }
    }

    pub fn running(&self) -> usize {
        self.runs.len()
    }

    /// Brings the run at `index` on: it ends with `failure` or well. Answers its id and its reply, if it
    /// ended.
    pub fn advance(&mut self, index: usize, failure: Option<u16>) -> Option<(u64, Reply)> {
        let run = &self.runs[index];
        let id = run.id;
        if run.waits
            && let Some(at) = run.binding
        {
            let bound = &mut self.bindings[at];
            if bound.stored {
                let reply = Self::replay(bound, run.body);
                self.leave(index, false);
                return Some((id, reply));
            }
            if bound.running == 0 {
                bound.running = 1;
                self.runs[index].waits = false;
                return None;
            }
            // Nine minutes are over.
            failure?;
            self.leave(index, false);
            return Some((id, Reply::Refused(409)));
        }
        if let Some(status) = failure {
            self.leave(index, true);
            return Some((id, Reply::Refused(status)));
        }
        let clarification = run.kind == Kind::Chat && is_clarification(run.body);
        let amount = if clarification { 0 } else { run.amount };
        let (owner, kind) = (run.owner, run.kind);
        let known = run.binding.and_then(|at| self.bindings[at].billed);
        let mut job = None;
        let shown = if known.is_some() { 0 } else { amount };
        if kind == Kind::EvalRun {
            self.next += 1;
            job = Some(self.next);
            self.jobs.push(Job {
                id: self.next,
                owner,
                amount,
                ended: false,
            });
        } else if known.is_none() {
            self.debits.push(Debit { owner, amount });
        }
        if let Some(at) = run.binding {
            let bound = &mut self.bindings[at];
            bound.billed.get_or_insert(amount);
            bound.stored |= kind == Kind::Chat;
        }
        self.leave(index, true);
        Some((
            id,
            Reply::Done {
                shown,
                replayed: false,
                clarification,
                job,
            },
        ))
    }

    /// An eval run ends: now it is billed.
    pub fn end_job(&mut self, index: usize) {
        let job = &mut self.jobs[index];
        if !job.ended {
            job.ended = true;
            let (owner, amount) = (job.owner, job.amount);
            self.debits.push(Debit { owner, amount });
        }
    }

    fn leave(&mut self, index: usize, ran: bool) {
        let run = self.runs.remove(index);
        let Some(at) = run.binding else {
            return;
        };
        let bound = &mut self.bindings[at];
        bound.users -= 1;
        bound.running -= usize::from(ran);
        let is_free = bound.users == 0 && bound.billed.is_none();
        // "First request failed (non-2xx): nothing stored".
        if is_free && self.current.get(&bound.key) == Some(&at) {
            let key = Arc::clone(&bound.key);
            self.current.remove(&key);
        }
    }
}

/// A request that lacks an input is answered with a question, each time it is asked.
fn is_clarification(body: u64) -> bool {
    (body / 8).is_multiple_of(5)
}
