//! Refused attempts whose bodies do not arrive as they should: the head decides.

use bursar::ledger::entry::{AttemptEnd, InDoubt, State};
use bursar::money::MicroUsd;
use futures_util::future::join_all;

use crate::support::origin::billed;
use crate::support::wire::request;
use crate::support::{Bursar, Origin, Step, chat, eventually};

const CHAT: &str = "/v1/chat/completions";
const SPEECH: &str = "/v1/audio/speech";
const SETTLED: State = State::Settled {
    billed: MicroUsd::new(7),
};

fn head(status: u16, length: usize) -> String {
    format!(
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{{"
    )
}

/// A body that never ends, one that breaks, and one too large to drain.
fn odd_bodies(status: u16) -> [(&'static str, Step); 3] {
    let large = format!("{}{}", head(status, 200_000), "x".repeat(199_999));
    [
        ("slow", Step::Answer(head(status, 30).into_bytes())),
        (
            "broken",
            Step::AnswerAndClose(head(status, 30).into_bytes()),
        ),
        ("large", Step::Answer(large.into_bytes())),
    ]
}

async fn check_refused_then_paid(path: &str, status: u16, body: &str, step: Step) {
    let name = format!("{path} {status} {body}");
    let origin = Origin::start([step, Step::Answer(billed(7))]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let answer = bursar.post(path, &chat("hi")).await;
    assert_eq!(answer.status, 200, "{name}: {}", answer.text());
    let entry = bursar.entry_of(&answer);
    let ends: Vec<_> = entry.attempts.iter().map(|attempt| attempt.end).collect();
    assert_eq!(ends, [AttemptEnd::Refused, AttemptEnd::Answered], "{name}");
    if path == CHAT {
        assert_eq!(entry.state, SETTLED, "{name}");
    }
}

#[tokio::test]
async fn a_refusal_is_one_by_its_head_whatever_its_body_does() {
    let mut checks = Vec::new();
    for (path, statuses) in [
        (CHAT, &[408, 409, 429, 500, 502, 503, 504][..]),
        (SPEECH, &[429, 503]),
    ] {
        for status in statuses {
            for (body, step) in odd_bodies(*status) {
                checks.push(check_refused_then_paid(path, *status, body, step));
            }
        }
    }
    join_all(checks).await;
}

/// "in_doubt(gateway): it may come from a hop after the work was done" (rule I4).
#[tokio::test]
async fn a_hops_answer_without_a_body_on_a_spending_route_is_in_doubt_and_not_repeated() {
    for status in [502, 504] {
        let step = Step::AnswerAndClose(head(status, 30).into_bytes());
        let origin = Origin::start([step, Step::Answer(billed(7))]).await;
        let bursar = Bursar::before(&origin.url()).await;
        let answer = bursar.post(SPEECH, &chat("hi")).await;
        assert_eq!(answer.code(), Some("upstream_broken"), "{status}");
        let doubt = State::InDoubt {
            reason: InDoubt::Gateway,
        };
        assert_eq!(bursar.entry_of(&answer).state, doubt, "{status}");
        assert_eq!(origin.received().len(), 1, "{status}");
    }
}

/// All pooled connections may be as stale as the first.
#[tokio::test]
async fn the_attempt_after_a_stale_connection_has_a_fresh_one() {
    let on_cue = || Step::Pieces(vec![billed(1)]);
    let origin = Origin::start([on_cue(), on_cue(), on_cue()]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let mut wires = Vec::new();
    for n in 0..3 {
        let mut wire = bursar.connect().await;
        wire.send(request("POST", CHAT, &[], &chat(&format!("pool {n}"))))
            .await;
        wires.push(wire);
    }
    eventually("the service to receive", || async {
        (origin.received().len() == 3).then_some(())
    })
    .await;
    (0..3).for_each(|_| origin.go());
    for wire in &mut wires {
        assert_eq!(wire.answer().await.status, 200);
    }
    assert_eq!(origin.connections(), 3);

    origin.push(Step::Close);
    origin.push(Step::Answer(billed(7)));
    let answer = bursar.post(CHAT, &chat("hi")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let received = origin.received();
    assert!(received[3].connection < 3, "a pooled one");
    assert_eq!(received[4].connection, 3, "a fresh one");
}
