//! Caps hold: what they allow, what they refuse before it is sent, what they hold for prices that are
//! not known, and what an operator can order.

mod freeze;
mod held;
mod kill;
mod order;
mod own_keys;
mod repeats;
mod rules;
mod waits;

use crate::support::wire::request;
use crate::support::{Answer, Bursar, Origin, Step, eventually};

const CHAT: &str = "/v1/chat/completions";

async fn ask(bursar: &Bursar, body: &str, headers: &[(&str, &str)]) -> Answer {
    let mut wire = bursar.connect().await;
    wire.send(request("POST", CHAT, headers, body)).await;
    wire.answer().await
}

async fn received(origin: &Origin, count: usize) {
    eventually("the service to receive", || async {
        (origin.received().len() >= count).then_some(())
    })
    .await;
}

/// The refusal of a reached cap: before anything was sent, and no SDK repeats it.
fn is_reached(answer: &Answer) {
    assert_eq!(answer.status, 402, "{}", answer.text());
    assert_eq!(answer.code(), Some("cap_reached"));
    assert_eq!(answer.header("x-bursar-error"), Some("cap_reached"));
    assert_eq!(answer.header("x-should-retry"), Some("false"));
    assert_eq!(answer.header("retry-after"), None);
}

/// An answer that comes on cue.
fn on_cue(bytes: Vec<u8>) -> Step {
    Step::Pieces(vec![bytes])
}
