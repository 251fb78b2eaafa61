//! The rules a client is judged by, as a table.
//!
//! A retry is recognised by its likeness: the same organization, method, path, session and body, after an
//! answer that had failed. Promise: every rule is a function of the log alone.

use crate::{received::Received, spec};
use std::collections::{BTreeMap, HashMap};

/// Sooner than this after a failure is no backoff.
const SOON_MS: u64 = 100;
/// That many retries in a row that came too soon are hammering; one at once is a fair first try.
const SOON_IN_A_ROW: usize = 3;
/// Equal requests that failed within a minute.
const ATTEMPTS_MAX: usize = 10;
const MINUTE_MS: u64 = 60_000;
const DAY_MS: u64 = spec::REPLAY_WINDOW_S * 1_000;
/// Answers that the same request gets again.
const FINAL: [u16; 7] = [400, 401, 402, 403, 404, 413, 422];
/// A rule: its name, the clause it rests on, and how it finds violations.
pub struct Rule {
    pub name: &'static str,
    pub clause: &'static str,
    pub text: &'static str,
    pub remark: bool,
    /// The requests that broke it.
    pub find: fn(&Log<'_>) -> Vec<usize>,
}

#[rustfmt::skip]
pub const ALL: &[Rule] = &[
    Rule { name: "retry-after-ignored", clause: "Errors: honoring Retry-After", remark: false, find: came_back_too_soon,
        text: "the same request came back before the time that Retry-After named" },
    Rule { name: "key-changed", clause: "Errors: keep the same Idempotency-Key across retries", remark: false, find: changed_key,
        text: "a failed request was sent again with another Idempotency-Key, and the first key never came again" },
    Rule { name: "retried-without-key", clause: "Errors: keep the same Idempotency-Key across retries", remark: false, find: retried_without_key,
        text: "a metered request without Idempotency-Key was sent again after a failure: it may be billed twice" },
    Rule { name: "key-reused", clause: "Idempotency-Key: same key, different body or endpoint, 422", remark: false, find: reused_key,
        text: "one Idempotency-Key was sent with different requests" },
    Rule { name: "key-outlived", clause: "Idempotency-Key: more than 24 h later the key is free", remark: false, find: outlived_key,
        text: "a key was used again after its 24 hours: a new billed request" },
    Rule { name: "retried-final", clause: "Errors: only 408, 409, 429, 500, 502, 503 and 504 are transient", remark: false, find: retried_final,
        text: "the same request was sent again within a minute of an answer that retrying cannot change" },
    Rule { name: "hammered", clause: "Errors: retry with exponential backoff and jitter", remark: false, find: hammered,
        text: "three retries in a row came less than 100 ms after the failure, or more than ten failed within a minute" },
    Rule { name: "too-many-in-flight", clause: "Limits: concurrency", remark: false, find: too_many_in_flight,
        text: "more requests in flight than the ceiling" },
    Rule { name: "too-many-per-minute", clause: "Limits: rate", remark: false, find: too_many_per_minute,
        text: "more requests in a minute than the ceiling" },
    Rule { name: "not-asked-again", clause: "Streaming: a mid-stream drop cannot be resumed", remark: true, find: not_asked_again,
        text: "an answer was cut and the same request never came again: if the half was taken for the whole, that is wrong" },
    Rule { name: "no-key", clause: "Idempotency-Key: where it is honored", remark: true, find: no_key,
        text: "a metered request carried no Idempotency-Key: a retry of it could be billed twice" },
];

/// The log, with equal requests together.
pub struct Log<'a> {
    requests: &'a [Received],
    /// Places of equal requests, oldest first.
    alike: Vec<Vec<usize>>,
}

/// A failed answer and the equal request that came next.
struct Retry<'a> {
    at: usize,
    failed: &'a Received,
    next: &'a Received,
}

// === impl Log ===

impl<'a> Log<'a> {
    pub fn new(requests: &'a [Received]) -> Self {
        let mut alike: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for (at, one) in requests.iter().enumerate() {
            // A read may be repeated as often as one likes.
            if one.method == "POST" {
                let body = (&one.body_sha256, one.body_bytes);
                let sender = (&one.org, one.authorization);
                let likeness = (sender, &one.path, &one.session, body);
                alike.entry(likeness).or_default().push(at);
            }
        }
        Self {
            requests,
            alike: alike.into_values().collect(),
        }
    }

    /// Every equal pair whose first request had failed before the second came.
    fn retries(&self) -> impl Iterator<Item = Retry<'a>> {
        let pairs = self.alike.iter().flat_map(|places| places.windows(2));
        pairs.filter_map(|pair| {
            let &[before, at] = pair else { return None };
            let (failed, next) = (self.requests.get(before)?, self.requests.get(at)?);
            let ended = failed.ended_ms?;
            (failed.failed() && ended <= next.at_ms).then_some(Retry { at, failed, next })
        })
    }

    fn places(&self, holds: impl Fn(&Received) -> bool) -> Vec<usize> {
        let all = self.requests.iter().enumerate();
        all.filter(|(_, one)| holds(one))
            .map(|(at, _)| at)
            .collect()
    }

    /// Requests by organization and key.
    fn by_key(&self) -> HashMap<(&'a Option<String>, &'a str), Vec<usize>> {
        let mut by_key: HashMap<_, Vec<usize>> = HashMap::new();
        for (at, one) in self.requests.iter().enumerate() {
            if let Some(key) = &one.idempotency_key
                && one.is_keyed()
            {
                by_key.entry((&one.org, key.as_str())).or_default().push(at);
            }
        }
        by_key
    }

    /// Places where an earlier request of the same key makes `wrong` true.
    fn against_earlier(&self, wrong: impl Fn(&Received, &Received) -> bool) -> Vec<usize> {
        let mut found: Vec<usize> = Vec::new();
        for places in self.by_key().values() {
            let mut first: Option<&Received> = None;
            for at in places {
                let Some(one) = self.requests.get(*at) else {
                    continue;
                };
                match first {
                    Some(earlier) if wrong(earlier, one) => found.push(*at),
                    Some(_) => {}
                    None => first = Some(one),
                }
            }
        }
        found.sort_unstable();
        found
    }
}

// === impl Retry ===

impl Retry<'_> {
    fn gap_ms(&self) -> u64 {
        let ended = self.failed.ended_ms.unwrap_or(self.next.at_ms);
        self.next.at_ms.saturating_sub(ended)
    }
}

// === rules ===

fn came_back_too_soon(log: &Log<'_>) -> Vec<usize> {
    let soon = log.retries().filter(|retry| {
        let asked_ms = retry.failed.retry_after_s.map(|s| s.saturating_mul(1_000));
        asked_ms.is_some_and(|asked_ms| retry.gap_ms() < asked_ms)
    });
    soon.map(|retry| retry.at).collect()
}

fn changed_key(log: &Log<'_>) -> Vec<usize> {
    let came_again = |key: &Option<String>, after: usize| {
        let later = log.requests.iter().skip(after);
        later.into_iter().any(|one| one.idempotency_key == *key)
    };
    let changed = log.retries().filter(|retry| {
        retry.next.is_keyed()
            && retry.failed.failed_transiently()
            && retry.failed.idempotency_key.is_some()
            && retry.failed.idempotency_key != retry.next.idempotency_key
            && !came_again(&retry.failed.idempotency_key, retry.at)
    });
    changed.map(|retry| retry.at).collect()
}

fn retried_without_key(log: &Log<'_>) -> Vec<usize> {
    let bare = log.retries().filter(|retry| {
        retry.next.is_keyed()
            && retry.failed.failed_transiently()
            && retry.failed.idempotency_key.is_none()
            // A ceiling serves nothing: such a retry cannot be billed twice.
            && retry.failed.status != Some(429)
    });
    bare.map(|retry| retry.at).collect()
}

fn reused_key(log: &Log<'_>) -> Vec<usize> {
    // The service compared the bodies as the interface says; the log holds their bytes only.
    log.against_earlier(|earlier, one| {
        let parts = |one: &Received| {
            (
                one.path.clone(),
                one.body_sha256.clone(),
                one.session.clone(),
            )
        };
        one.status == Some(422) && parts(earlier) != parts(one)
    })
}

fn outlived_key(log: &Log<'_>) -> Vec<usize> {
    log.against_earlier(|earlier, one| {
        let age = one.at_ms.saturating_sub(earlier.at_ms);
        age >= DAY_MS && one.status == Some(200) && !one.replayed
    })
}

fn retried_final(log: &Log<'_>) -> Vec<usize> {
    let again = log.retries().filter(|retry| {
        let status = retry.failed.status.unwrap_or(0);
        FINAL.contains(&status) && retry.gap_ms() < MINUTE_MS
    });
    again.map(|retry| retry.at).collect()
}

fn hammered(log: &Log<'_>) -> Vec<usize> {
    let mut found = Vec::new();
    for places in &log.alike {
        let (mut soon, mut failures) = (0, Vec::new());
        for pair in places.windows(2) {
            let &[before, at] = pair else { continue };
            let (Some(failed), Some(next)) = (log.requests.get(before), log.requests.get(at))
            else {
                continue;
            };
            let ended = failed.ended_ms.filter(|ended| *ended <= next.at_ms);
            let Some(ended) = ended.filter(|_| failed.failed_transiently()) else {
                soon = 0;
                continue;
            };
            soon = if next.at_ms - ended < SOON_MS {
                soon + 1
            } else {
                0
            };
            failures.push(ended);
            failures.retain(|earlier| next.at_ms.saturating_sub(*earlier) < MINUTE_MS);
            if soon >= SOON_IN_A_ROW || failures.len() > ATTEMPTS_MAX {
                found.push(at);
            }
        }
    }
    found.sort_unstable();
    found
}

fn too_many_in_flight(log: &Log<'_>) -> Vec<usize> {
    log.places(|one| one.met_ceiling(spec::IN_FLIGHT_RETRY_AFTER_S))
}

fn too_many_per_minute(log: &Log<'_>) -> Vec<usize> {
    log.places(|one| one.met_ceiling(spec::PER_MINUTE_RETRY_AFTER_S))
}

fn not_asked_again(log: &Log<'_>) -> Vec<usize> {
    let last = log.alike.iter().filter_map(|places| places.last().copied());
    let mut cut: Vec<usize> = last
        .filter(|at| log.requests.get(*at).is_some_and(Received::was_cut))
        .collect();
    cut.sort_unstable();
    cut
}

fn no_key(log: &Log<'_>) -> Vec<usize> {
    log.places(|one| one.is_keyed() && one.idempotency_key.is_none())
}
