//! What an answer's JSON body contains: token counts, and amounts where the interface puts them
//! into the body (frontier comparison, eval runs).

use serde_json::value::RawValue;

use super::field::{self, Members};
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
    /// Reads a JSON answer. Anything that is not one complete JSON object has no fields.
    pub fn read(body: &[u8]) -> Self {
        field::read_object(body).unwrap_or_default()
    }
}

impl<'de> Members<'de> for AnswerPeek {
    fn wants(key: &str) -> bool {
        matches!(
            key,
            "usage" | "cost_micro_usd" | "duration_s" | "run" | "run_id"
        )
    }

    fn member(&mut self, key: &str, value: &'de RawValue) {
        match key {
            "usage" => {
                if let Some(usage) = field::read_object(value.get().as_bytes()) {
                    self.usage = usage;
                }
            }
            "cost_micro_usd" => field::add_amount(&mut self.cost_micro_usd, field::amount(value)),
            "duration_s" => self.audio_ms = field::seconds_as_ms(value),
            "run" => self.run = RunPeek::read(value),
            "run_id" => self.run_id = field::text(value).filter(|id| is_run_id(id)),
            _ => {}
        }
    }
}

// === impl RunPeek ===

impl RunPeek {
    /// Terminal runs are billed no further.
    pub fn is_terminal(&self) -> bool {
        matches!(self.status.as_str(), "completed" | "failed")
    }

    fn read(value: &RawValue) -> Option<Self> {
        let members: RunMembers = field::read_object(value.get().as_bytes())?;
        Some(Self {
            id: members.id?,
            status: members.status?,
            cost_micro_usd: members.cost_micro_usd,
        })
    }
}

// === impl RunMembers ===

impl<'de> Members<'de> for RunMembers {
    fn wants(key: &str) -> bool {
        matches!(key, "id" | "status" | "cost_micro_usd")
    }

    fn member(&mut self, key: &str, value: &'de RawValue) {
        match key {
            "id" => self.id = field::text(value).filter(|id| is_run_id(id)),
            "status" => {
                self.status =
                    field::text(value).filter(|status| status.len() <= RUN_STATUS_BYTES_MAX);
            }
            "cost_micro_usd" => field::add_amount(&mut self.cost_micro_usd, field::amount(value)),
            _ => {}
        }
    }
}

fn is_run_id(id: &str) -> bool {
    (1..=RUN_ID_CHARS_MAX).contains(&id.len())
        && id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b':' | b'-'))
        && id.bytes().any(|byte| byte != b'.')
}
