//! What an answer's JSON body contains: token counts, and amounts where the interface puts them
//! into the body (frontier comparison, eval runs).

use serde_json::value::RawValue;

use super::field;
use crate::money::MicroUsd;
use crate::protocol::{Reported, Usage};

/// Longest run id, in characters. bursar polls a run by its id, and a cut id would name another
/// run.
const RUN_ID_CHARS_MAX: usize = 128;
/// Longest kept run status, in bytes; the longest known one has 10.
const RUN_STATUS_BYTES_MAX: usize = 32;

/// The fields of an answer that rules need. Only top-level members count, so a price inside a
/// model's text is not a price.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerPeek {
    pub usage: Usage,
    /// `cost_micro_usd` of the frontier comparison.
    pub cost_micro_usd: Reported<MicroUsd>,
    /// `duration_s` of the speech routes, in milliseconds.
    pub audio_ms: Option<u64>,
    /// `run` of `GET /v1/eval-runs/{run_id}`.
    pub run: Option<RunPeek>,
    /// `run_id` of `POST /v1/eval-runs`, when it can stand in a path: `[A-Za-z0-9_.:-]{1,128}`.
    pub run_id: Option<String>,
}

/// An eval run's record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunPeek {
    pub id: String,
    /// `queued`, `running`, `evaluating`, `completed`, `failed`, or a word of a later service.
    pub status: String,
    pub cost_micro_usd: Reported<MicroUsd>,
}

#[derive(Default)]
struct RunMembers {
    id: Option<String>,
    status: Option<String>,
    cost_micro_usd: Reported<MicroUsd>,
}

// === impl AnswerPeek ===

impl AnswerPeek {
    /// The members that are read.
    pub(super) const WANTED: [&str; 5] = ["usage", "cost_micro_usd", "duration_s", "run", "run_id"];

    /// Reads a JSON answer. Anything that is not one complete JSON object has no fields.
    pub fn read(body: &[u8]) -> Self {
        let peek = field::read_object::<Self>(body, &Self::WANTED, |peek, key, value| match key {
            "usage" => peek.usage = field::usage(value).unwrap_or(peek.usage),
            "cost_micro_usd" => field::add_amount(&mut peek.cost_micro_usd, field::amount(value)),
            "duration_s" => peek.audio_ms = field::seconds_as_ms(value),
            "run" => peek.run = RunPeek::read(value),
            _ => peek.run_id = run_id(value),
        });
        peek.unwrap_or_default()
    }
}

// === impl RunPeek ===

impl RunPeek {
    /// Terminal runs are billed no further.
    pub fn is_terminal(&self) -> bool {
        matches!(self.status.as_str(), "completed" | "failed")
    }

    fn read(value: &RawValue) -> Option<Self> {
        let wanted = ["id", "status", "cost_micro_usd"];
        let run = value.get().as_bytes();
        let run = field::read_object::<RunMembers>(run, &wanted, |run, key, value| match key {
            "id" => run.id = run_id(value),
            "status" => {
                run.status =
                    field::text(value).filter(|status| status.len() <= RUN_STATUS_BYTES_MAX);
            }
            _ => field::add_amount(&mut run.cost_micro_usd, field::amount(value)),
        })?;
        Some(Self {
            id: run.id?,
            status: run.status?,
            cost_micro_usd: run.cost_micro_usd,
        })
    }
}

/// An id that can stand in a path.
fn run_id(value: &RawValue) -> Option<String> {
    field::text(value).filter(|id| is_run_id(id))
}

fn is_run_id(id: &str) -> bool {
    (1..=RUN_ID_CHARS_MAX).contains(&id.len())
        && id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b':' | b'-'))
        && id.bytes().any(|byte| byte != b'.')
}
