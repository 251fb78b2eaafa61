//! From a description to the task match result: by the reasoner if there is one, otherwise by words.
//!
//! Interface, `POST /v1/tasks/match`: "The matcher is an LLM reasoning router that falls back to a
//! deterministic keyword scorer when the router is unavailable."
//! Promise: `chosen` is a task of the catalog, and present only with the type task; there are never
//! more candidates than requested.

pub use super::found::{Confidence, Matcher};

use super::{
    found::{MatchCandidate, MatchKind, TaskMatch},
    keyword::{self, Subject},
    reason,
};
use crate::fleet::Fleet;

/// Assumed (match-keyword): the second score is close from this part of the first one on.
const CLOSE: f64 = 0.85;

/// Maps a description to a task, a lane, or nothing.
pub async fn matched(fleet: &Fleet, query: &str, top_k: usize) -> TaskMatch {
    match reason::matched(fleet, query).await {
        Some(found) => found,
        None => by_words(query, top_k),
    }
}

/// The keyword result.
pub fn by_words(query: &str, top_k: usize) -> TaskMatch {
    let (subject, ranked) = keyword::scored(query);
    let candidates: Vec<MatchCandidate> = ranked.iter().map(MatchCandidate::of).collect();
    let chosen = candidates
        .first()
        .filter(|_| matches!(subject, Some(Subject::Task(_))))
        .cloned();
    let close = match ranked.as_slice() {
        [first, second, ..] => second.score >= CLOSE * first.score,
        _ => false,
    };
    let (kind, capability) = match subject {
        Some(Subject::Task(_)) => (MatchKind::Task, None),
        Some(Subject::Capability(lane)) => (MatchKind::Capability, Some(*lane)),
        Some(Subject::Unsupported) => (MatchKind::Unsupported, None),
        None => (MatchKind::None, None),
    };
    TaskMatch {
        query: query.to_owned(),
        kind,
        matched: chosen.as_ref().is_some_and(MatchCandidate::is_sure),
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
