//! What an endpoint served, by the hour.
//!
//! Promise: a request that reached the endpoint is counted once; each hour has a bounded size, whatever the
//! traffic.

use crate::{
    money::MicroUsd,
    rollup::{hours::Hours, times::Times},
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, ops::AddAssign};

/// A score of 1, in millionths.
pub const WHOLE_SCORE_PPM: u64 = 1_000_000;

/// One request that reached the endpoint.
#[derive(Clone, Debug)]
pub struct Observation {
    pub at: Timestamp,
    pub took_ms: u64,
    pub outcome: RequestOutcome,
}

#[derive(Clone, Debug)]
pub enum RequestOutcome {
    Served {
        prompt_tokens: u64,
        completion_tokens: u64,
        billed: MicroUsd,
        /// The same at the frontier baseline's price.
        baseline: MicroUsd,
    },
    /// Nothing served, nothing billed; the status that was answered.
    Failed(u16),
}

/// One hour; sums that do not fit stay at their highest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EndpointHour {
    pub served: u64,
    pub errors: BTreeMap<u16, u64>,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    pub billed: MicroUsd,
    pub baseline: MicroUsd,
    pub judged: u64,
    pub score_ppm: u64,
    pub times: Times,
}

#[derive(Clone, Debug, Default)]
pub struct Traffic {
    hours: Hours<EndpointHour>,
}

// === impl EndpointHour ===

impl EndpointHour {
    pub fn requests(&self) -> u64 {
        self.served.saturating_add(self.failed())
    }

    pub fn failed(&self) -> u64 {
        let counts = self.errors.values();
        counts.fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The mean score from 0 to 1; `None` when nothing was judged.
    pub fn score(&self) -> Option<f64> {
        (self.judged > 0).then(|| self.score_ppm as f64 / (self.judged * WHOLE_SCORE_PPM) as f64)
    }
}

/// Adds another hour's sums; its times stay apart.
impl AddAssign<&Self> for EndpointHour {
    fn add_assign(&mut self, other: &Self) {
        self.served = self.served.saturating_add(other.served);
        for (status, count) in &other.errors {
            let errors = self.errors.entry(*status).or_default();
            *errors = errors.saturating_add(*count);
        }
        self.prompt_tokens = self.prompt_tokens.saturating_add(other.prompt_tokens);
        self.completion_tokens = self
            .completion_tokens
            .saturating_add(other.completion_tokens);
        self.billed = most(self.billed, other.billed);
        self.baseline = most(self.baseline, other.baseline);
        self.judged = self.judged.saturating_add(other.judged);
        self.score_ppm = self.score_ppm.saturating_add(other.score_ppm);
    }
}

/// A sum of amounts, at most the highest possible: these are statistics of the books' debits, and a
/// metric that stops counting is better than an answer that fails. No balance is computed from it.
fn most(sum: MicroUsd, more: MicroUsd) -> MicroUsd {
    sum.checked_add(more).unwrap_or(MicroUsd::MAX)
}

// === impl Traffic ===

impl Traffic {
    pub fn hours(&self) -> &Hours<EndpointHour> {
        &self.hours
    }

    /// Puts back an hour that was saved.
    pub fn restore(&mut self, hour: i64, sums: EndpointHour) {
        self.hours.restore(hour, sums);
    }

    /// The hours that changed since the last call; `None` for one that was forgotten.
    pub fn take_unsaved(&mut self) -> Vec<(i64, Option<EndpointHour>)> {
        self.hours.take_unsaved()
    }

    pub fn observe(&mut self, seen: &Observation) {
        let hour = self.hours.at(seen.at);
        match seen.outcome {
            RequestOutcome::Failed(status) => *hour.errors.entry(status).or_default() += 1,
            RequestOutcome::Served {
                prompt_tokens,
                completion_tokens,
                billed,
                baseline,
            } => {
                // Only answers have a time: a refusal is quick and says nothing about the model.
                hour.times.add(seen.took_ms);
                *hour += &EndpointHour {
                    served: 1,
                    prompt_tokens,
                    completion_tokens,
                    billed,
                    baseline,
                    ..EndpointHour::default()
                };
            }
        }
    }

    /// Counts one judged answer, by a score from 0 to 1.
    pub fn judge(&mut self, at: Timestamp, score: f64) {
        let hour = self.hours.at(at);
        hour.judged += 1;
        // Clamped, so it fits.
        hour.score_ppm += (score.clamp(0.0, 1.0) * WHOLE_SCORE_PPM as f64).round() as u64;
    }
}

#[cfg(test)]
mod tests;
