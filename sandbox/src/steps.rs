//! Steps of a scenario: what happens at the n-th request or at a time, written down beforehand.
//!
//! A story such as "the third request finds an empty balance, and an hour later it is filled" is a list of
//! steps in the scenario file, so that it needs no second program at the control route.
//! Promise: steps are done in their order, each once, also over a restart with a state directory; a step
//! whose time has come is done before the next request is handled.

use crate::{
    clock::ADVANCE_MAX,
    fault::FaultRule,
    money::MicroUsd,
    settings::{LimitsPart, SettingsPart},
};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::time::Duration;

const STEPS_MAX: usize = 1_000;

/// One step; exactly one of `at_request` and `at_s`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Before this request is handled; the first is 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_request: Option<u64>,
    /// When the sandbox's clock has run for that many seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_s: Option<u64>,
    #[serde(rename = "do")]
    pub act: Act,
}

/// What a step does; several members may be combined.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Act {
    pub fault: Option<FaultRule>,
    pub clear_faults: bool,
    /// Of every organization, or of `org`.
    pub balance_micro_usd: Option<u64>,
    pub org: Option<String>,
    pub advance_s: Option<u64>,
    pub limits: Option<LimitsPart>,
    pub settings: Option<SettingsPart>,
    /// Releases what is held by this name.
    pub release: Option<String>,
}

#[derive(Debug)]
pub struct Steps {
    inner: Mutex<Story>,
}

#[derive(Debug)]
struct Story {
    steps: Vec<Step>,
    /// How many there were at the start; the others came by the control route.
    at_start: usize,
    progress: Progress,
}

/// The progress of the story; a restart continues from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    pub requests: u64,
    pub done: usize,
}

/// What `GET /sandbox/steps` shows.
#[derive(Clone, Debug, Serialize)]
pub struct StepsView {
    #[serde(flatten)]
    pub progress: Progress,
    pub steps: Vec<Step>,
}

// === impl Step ===

impl Step {
    /// What is wrong with it.
    pub fn check(&self) -> Result<(), &'static str> {
        match (self.at_request, self.at_s) {
            (Some(0), None) => Err("step: at_request: the first request is 1"),
            (Some(_), None) | (None, Some(_)) => Ok(()),
            _ => Err("step: at_request or at_s, one of the two"),
        }?;
        let advance = Duration::from_secs(self.act.advance_s.unwrap_or(0));
        if advance > ADVANCE_MAX {
            return Err("step: advance_s: over 10 years");
        }
        match self.act.balance_micro_usd {
            Some(balance) if MicroUsd::new(balance).is_none() => {
                Err("step: balance_micro_usd: more than the books can hold")
            }
            None if self.act.org.is_some() => Err("step: org: only with balance_micro_usd"),
            _ => Ok(()),
        }
    }

    fn is_due(&self, requests: u64, elapsed: Duration) -> bool {
        self.at_request.is_some_and(|at| requests >= at)
            || self
                .at_s
                .is_some_and(|at| elapsed >= Duration::from_secs(at))
    }
}

// === impl Steps ===

impl Steps {
    pub fn new(steps: Vec<Step>, progress: Progress) -> Self {
        let at_start = steps.len();
        Self {
            inner: Mutex::new(Story {
                steps,
                at_start,
                progress,
            }),
        }
    }

    /// Adds steps after the others; false if there are too many.
    pub fn push(&self, more: Vec<Step>) -> bool {
        let mut inner = self.inner.lock();
        if inner.steps.len().saturating_add(more.len()) > STEPS_MAX {
            return false;
        }
        inner.steps.extend(more);
        true
    }

    pub fn view(&self) -> StepsView {
        let inner = self.inner.lock();
        StepsView {
            progress: inner.progress,
            steps: inner.steps.clone(),
        }
    }

    pub fn progress(&self) -> Progress {
        self.inner.lock().progress
    }

    /// The story begins again, as it was at the start.
    pub fn restart(&self) {
        let mut inner = self.inner.lock();
        let at_start = inner.at_start;
        inner.steps.truncate(at_start);
        inner.progress = Progress::default();
    }

    /// Counts a request, if this is one, and takes the next step that is due.
    pub fn next(&self, counted: bool, elapsed: Duration) -> Option<Act> {
        let mut inner = self.inner.lock();
        inner.progress.requests += u64::from(counted);
        let step = inner.steps.get(inner.progress.done)?;
        if !step.is_due(inner.progress.requests, elapsed) {
            return None;
        }
        let act = step.act.clone();
        inner.progress.done += 1;
        Some(act)
    }
}
