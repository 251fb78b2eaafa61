//! The columns of the retry table: kinds of failure, and what each kind of route makes of them.

use crate::support::Step;
use crate::support::origin::json;

/// Rows of the design's table that behave alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The six keyed routes.
    Keyed,
    /// Unkeyed and metered: audio, frontier comparison, deploy, inference at an endpoint's `url`.
    Spends,
    /// `POST /v1/eval-runs`: its 409 is contention.
    StartsRun,
    /// Free, but a repeat would leave something behind.
    Creates,
    /// Free, and a repeat does no harm.
    Harmless,
}

impl Kind {
    pub fn is_metered(self) -> bool {
        matches!(self, Self::Keyed | Self::Spends | Self::StartsRun)
    }
}

/// A lasting failure, and its result. Arrays are in the order of [`Kind`].
pub struct Failure {
    pub name: &'static str,
    step: fn() -> Step,
    pub attempts: [usize; 5],
    /// Of the three metered kinds.
    states: [&'static str; 3],
    pub status: u16,
    pub code: Option<&'static str>,
    /// `x-should-retry: false` goes out.
    pub stop: [bool; 5],
}

impl Failure {
    pub fn step(&self) -> Step {
        (self.step)()
    }

    pub fn state(&self, kind: Kind) -> Option<&'static str> {
        self.states.get(kind as usize).copied()
    }
}

const REPEATED: [usize; 5] = [3; 5];
const NEVER: [usize; 5] = [1; 5];
/// b, c, and the transient statuses: unkeyed routes that do something are asked once.
const IF_HARMLESS: [usize; 5] = [3, 1, 1, 1, 3];
const FAILED: [&str; 3] = ["failed"; 3];
const NO_RESPONSE: [&str; 3] = ["no_response"; 3];
const STREAM_DROP: [&str; 3] = ["stream_drop"; 3];
const ALL: [bool; 5] = [true; 5];
const NONE: [bool; 5] = [false; 5];
/// A keyed request may still run: the app's retry is welcome, it is joined or adopted.
const ALL_BUT_KEYED: [bool; 5] = [false, true, true, true, true];

const DETAIL: &str = r#"{"detail":"not now"}"#;

fn answer(status: u16) -> Step {
    Step::Answer(json(status, &[], DETAIL))
}

fn from_a_hop(status: u16) -> Step {
    let html = "<html>bad gateway</html>";
    let head = format!(
        "HTTP/1.1 {status} X\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n{html}",
        html.len(),
    );
    Step::Answer(head.into_bytes())
}

const CUT: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"id\":";
const CUT_BEFORE_BODY: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n";
const CUT_CHUNKED: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"a\":\r\n";

const fn lost(name: &'static str, step: fn() -> Step) -> Failure {
    Failure {
        name,
        step,
        attempts: IF_HARMLESS,
        states: NO_RESPONSE,
        status: 502,
        code: Some("outcome_unknown"),
        stop: ALL_BUT_KEYED,
    }
}

const fn broken(name: &'static str, step: fn() -> Step) -> Failure {
    Failure {
        name,
        step,
        attempts: IF_HARMLESS,
        states: STREAM_DROP,
        status: 502,
        code: Some("upstream_broken"),
        stop: ALL_BUT_KEYED,
    }
}

const fn busy(name: &'static str, status: u16, step: fn() -> Step) -> Failure {
    Failure {
        name,
        step,
        attempts: REPEATED,
        states: FAILED,
        status,
        code: None,
        stop: ALL,
    }
}

const fn transient(name: &'static str, status: u16, step: fn() -> Step) -> Failure {
    Failure {
        name,
        step,
        attempts: IF_HARMLESS,
        states: FAILED,
        status,
        code: None,
        stop: ALL,
    }
}

const fn hop(name: &'static str, status: u16, step: fn() -> Step) -> Failure {
    Failure {
        states: ["failed", "gateway", "gateway"],
        ..transient(name, status, step)
    }
}

const fn never(name: &'static str, status: u16, step: fn() -> Step) -> Failure {
    Failure {
        name,
        step,
        attempts: NEVER,
        states: FAILED,
        status,
        code: None,
        stop: NONE,
    }
}

pub const STALL: Failure = Failure {
    status: 504,
    code: Some("upstream_timeout"),
    ..lost("stall", || Step::Stall)
};

pub const FAILURES: &[Failure] = &[
    lost("close", || Step::Close),
    lost("reset", || Step::Reset),
    lost("close inside the head", || {
        Step::AnswerAndClose(b"HTTP/1.1 200 OK\r\nContent-".to_vec())
    }),
    broken("cut", || Step::AnswerAndClose(CUT.to_vec())),
    broken("cut before its body", || {
        Step::AnswerAndClose(CUT_BEFORE_BODY.to_vec())
    }),
    broken("cut chunked", || Step::AnswerAndClose(CUT_CHUNKED.to_vec())),
    broken("cut by a reset", || Step::AnswerAndReset(CUT.to_vec())),
    busy("429", 429, || answer(429)),
    busy("503", 503, || answer(503)),
    Failure {
        attempts: [3, 1, 3, 1, 3],
        // "the first is still running": on a keyed route something may run.
        states: ["no_response", "failed", "failed"],
        stop: ALL_BUT_KEYED,
        ..transient("409", 409, || answer(409))
    },
    transient("408", 408, || answer(408)),
    transient("500", 500, || answer(500)),
    transient("502", 502, || answer(502)),
    transient("504", 504, || answer(504)),
    hop("502 of a hop", 502, || from_a_hop(502)),
    hop("504 of a hop", 504, || from_a_hop(504)),
    never("400", 400, || answer(400)),
    never("401", 401, || answer(401)),
    never("402", 402, || answer(402)),
    never("403", 403, || answer(403)),
    never("404", 404, || answer(404)),
    never("413", 413, || answer(413)),
    never("422", 422, || answer(422)),
];
