//! The bad day: which faults each app meets, and what the apps' users do then.
//!
//! Promise: no question is asked for two purposes, so that two debits for one question are a double bill.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::app::{Call, CallEnd, Lived};
use crate::cli::client::Client;
use crate::protocol::names::ServiceNames;

/// How long the service works on the impatient app's question.
const SLOW_WORK_MS: u64 = 2600;

/// How long that app waits, each time.
const SHORT_PATIENCE: Duration = Duration::from_secs(1);

const PATIENCE: Duration = Duration::from_secs(10);

/// Pause between the chunks of a stream whose reader leaves, so that there is something to leave.
const CHUNK_PAUSE_MS: u64 = 15;

/// What happens, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    Impatient,
    Quiet,
    Dropped,
    Busy,
    LostReply,
    Leaves,
    StreamCut,
}

/// A day that was lived.
pub struct Day {
    pub cases: Vec<(Case, Lived)>,
    /// When the service has surely ended the work that an app gave up on.
    pub work_ends: Instant,
}

/// Lives through all cases, one after the other. With the same `seed` the same question has the same
/// answer wherever it is asked.
pub async fn live(client: &Client, names: &ServiceNames, seed: u64) -> Day {
    let mut day = Day {
        cases: Vec::new(),
        work_ends: Instant::now(),
    };
    for case in Case::ALL {
        let mut lived = Lived::default();
        case.happen(client, names, seed, &mut lived).await;
        day.cases.push((case, lived));
        if case == Case::Impatient {
            day.work_ends = Instant::now() + Duration::from_millis(SLOW_WORK_MS);
        }
    }
    day
}

/// The service's faults, the same for both.
pub fn faults() -> Value {
    let rule = |case: Case, times: u32, fault: Value| json!({"match": {"body_contains": case.prompt()}, "times": times, "fault": fault});
    json!([
        rule(Case::Impatient, 2, json!({"delay_ms": SLOW_WORK_MS})),
        rule(Case::Dropped, 1, json!({"cut_before_work": true})),
        rule(Case::Busy, 1, json!({"status": 503})),
        rule(Case::LostReply, 1, json!({"cut_before_head": true})),
        rule(Case::Leaves, 1, json!({"chunk_delay_ms": CHUNK_PAUSE_MS})),
        rule(Case::StreamCut, 1, json!({"cut_after_chunks": 4})),
    ])
}

// === impl Case ===

impl Case {
    pub const ALL: [Self; 7] = [
        Self::Impatient,
        Self::Quiet,
        Self::Dropped,
        Self::Busy,
        Self::LostReply,
        Self::Leaves,
        Self::StreamCut,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Impatient => "impatient",
            Self::Quiet => "quiet",
            Self::Dropped => "dropped",
            Self::Busy => "busy",
            Self::LostReply => "lost-reply",
            Self::Leaves => "leaves",
            Self::StreamCut => "stream-cut",
        }
    }

    pub const fn title(self) -> &'static str {
        match self {
            Self::Impatient => "the app gives up after 1 s, twice; the service needs 2.6 s",
            Self::Quiet => "nothing goes wrong",
            Self::Dropped => "the connection is dropped before the work",
            Self::Busy => "503, then the answer",
            Self::LostReply => "the work is done and billed, and the answer is lost on its way",
            Self::Leaves => "the user closes a stream after three chunks",
            Self::StreamCut => "a stream breaks in the middle, and the user asks again",
        }
    }

    pub const fn prompt(self) -> &'static str {
        match self {
            Self::Impatient => "Tell me about patience and bridges",
            Self::Quiet => "What is 12 * 34?",
            Self::Dropped => "What is 56 * 78?",
            Self::Busy => "What is 90 - 12?",
            Self::LostReply => "Summarize: Letters are written. Some letters are lost.",
            Self::Leaves => "Tell me about rivers and ledgers",
            Self::StreamCut => "Tell me about cables and storms",
        }
    }

    async fn happen(self, client: &Client, names: &ServiceNames, seed: u64, lived: &mut Lived) {
        let call = Call {
            prompt: self.prompt(),
            seed,
            session: self.name(),
            stream: matches!(self, Self::Leaves | Self::StreamCut),
            patience: if self == Self::Impatient {
                SHORT_PATIENCE
            } else {
                PATIENCE
            },
            leaves_after: (self == Self::Leaves).then_some(3),
        };
        let ended = call.make(client, names, lived).await;
        if self == Self::StreamCut && ended == CallEnd::BrokeOff {
            call.make(client, names, lived).await;
        }
    }
}
