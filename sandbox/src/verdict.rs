//! What the client did wrong, as far as the request log shows.
//!
//! A client can pass every test of its own and still come back too soon, pay twice or hammer; the service
//! notices that. `GET /sandbox/verdict` and `bursar sandbox --verdict` judge the log by the interface's
//! rules.
//! Promise: a finding names its clause and requests that show it; what can be explained as right is a
//! remark, which leaves `ok` as it is; what the log cannot show is listed, not guessed.

mod rules;

use crate::received::Received;
use serde::Serialize;
use std::fmt;

/// Requests named as examples of one rule.
const EXAMPLES_MAX: usize = 5;

/// What no log of a service can show.
const CANNOT_TELL: &[&str] = &[
    "whether a client that never asked again after a cut took the half for the whole, or told its user",
    "whether two equal requests with different keys are one purchase retried or two purchases: a new key is \
     held against a client only when the failed one never came again",
    "whether a client gave up before nine minutes because of its own read timeout",
    "what happened before the newest 50,000 requests, before DELETE /sandbox/requests, or before a restart",
];

#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// No finding.
    pub ok: bool,
    pub requests: usize,
    pub findings: Vec<Finding>,
    pub remarks: Vec<Finding>,
    pub cannot_tell: Vec<&'static str>,
}

/// One rule that was broken, or worth a remark.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub rule: &'static str,
    /// Heading of the interface and the sentence below it.
    pub clause: &'static str,
    pub text: &'static str,
    pub count: usize,
    /// Request ids, the first few.
    pub examples: Vec<String>,
}

/// Judges a log, oldest request first.
pub fn judge(requests: &[Received]) -> Verdict {
    let log = rules::Log::new(requests);
    let (mut findings, mut remarks) = (Vec::new(), Vec::new());
    for rule in rules::ALL {
        let broken = (rule.find)(&log);
        if broken.is_empty() {
            continue;
        }
        let ids = broken.iter().filter_map(|at| requests.get(*at));
        let finding = Finding {
            rule: rule.name,
            clause: rule.clause,
            text: rule.text,
            count: broken.len(),
            examples: ids
                .take(EXAMPLES_MAX)
                .map(|one| one.request_id.clone())
                .collect(),
        };
        if rule.remark {
            remarks.push(finding);
        } else {
            findings.push(finding);
        }
    }
    Verdict {
        ok: findings.is_empty(),
        requests: requests.len(),
        findings,
        remarks,
        cannot_tell: CANNOT_TELL.to_vec(),
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.ok { "ok" } else { "NOT ok" };
        write!(
            f,
            "verdict on the client: {word}, {} requests",
            self.requests
        )?;
        for (kind, list) in [("finding", &self.findings), ("remark", &self.remarks)] {
            for one in list {
                write!(
                    f,
                    "\n  {kind}: {} ({}x): {}\n    interface, {}\n    for example {}",
                    one.rule,
                    one.count,
                    one.text,
                    one.clause,
                    one.examples.join(", ")
                )?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
