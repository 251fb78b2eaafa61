//! From a description to the task match result: the reasoner when there is one, else the words.
//!
//! Interface, `POST /v1/tasks/match`: "The matcher is an LLM reasoning router that falls back to a
//! deterministic keyword scorer when the router is unavailable."
//! Promise: `chosen` is a task of the catalog, and there only with the type task; there are never more
//! candidates than asked for.

use super::{
    keyword::{self, Scored, Verdict},
    lanes::Capability,
    reason,
};
use crate::fleet::Fleet;
use serde::{Deserialize, Serialize};

/// The task match result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Match {
    pub query: String,
    #[serde(rename = "type")]
    pub kind: Kind,
    pub matched: bool,
    pub chosen: Option<Candidate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capability: Option<Capability>,
    pub candidates: Vec<Candidate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    pub ambiguous: bool,
    pub matcher: Matcher,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Task,
    Capability,
    Unsupported,
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Matcher {
    Reason,
    Keyword,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    High,
    Medium,
    Low,
}

/// Interface: "Candidate: task_id (string), score (number in [0,1]), confidence (high, medium, low)".
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Candidate {
    pub task_id: String,
    pub score: f64,
    pub confidence: Confidence,
}

/// Assumed (match-keyword): from here on a keyword score is high; from the bar on, medium.
const HIGH: f64 = 0.4;
/// Assumed (match-keyword): the second score is close from this part of the first one on.
const CLOSE: f64 = 0.85;

/// Maps a description to a task, a lane, or nothing.
pub async fn matched(fleet: &Fleet, query: &str, top_k: usize) -> Match {
    match reason::matched(fleet, query).await {
        Some(found) => found,
        None => by_words(query, top_k),
    }
}

/// The keyword result.
pub fn by_words(query: &str, top_k: usize) -> Match {
    let (verdict, ranked) = keyword::scored(query);
    let candidates: Vec<Candidate> = ranked.iter().map(Candidate::of).collect();
    let chosen = candidates
        .first()
        .filter(|_| verdict == Verdict::Task)
        .cloned();
    let close = match ranked.as_slice() {
        [first, second, ..] => second.score >= CLOSE * first.score,
        _ => false,
    };
    let (kind, capability) = match verdict {
        Verdict::Task => (Kind::Task, None),
        Verdict::Capability(lane) => (Kind::Capability, Some(*lane)),
        Verdict::Unsupported => (Kind::Unsupported, None),
        Verdict::Nothing => (Kind::None, None),
    };
    Match {
        query: query.to_owned(),
        kind,
        matched: chosen.as_ref().is_some_and(Candidate::is_sure),
        // Assumed (match-keyword): two scores are only worth comparing when something was chosen.
        ambiguous: chosen.is_some() && close,
        chosen,
        capability,
        candidates: candidates.into_iter().take(top_k).collect(),
        reasoning: None,
        confidence: None,
        matcher: Matcher::Keyword,
    }
}

// === impl Candidate ===

impl Candidate {
    fn of(scored: &Scored) -> Self {
        let confidence = if scored.score >= HIGH {
            Confidence::High
        } else if scored.score >= keyword::BAR {
            Confidence::Medium
        } else {
            Confidence::Low
        };
        Self {
            task_id: scored.task.id.clone(),
            // Four digits tell all there is to tell, and read the same in every client.
            score: (scored.score * 10_000.0).round() / 10_000.0,
            confidence,
        }
    }

    pub fn is_sure(&self) -> bool {
        self.confidence == Confidence::High
    }
}
