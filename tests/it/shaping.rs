//! A burst above the service's ceilings waits in turn; while the service refuses everything, only
//! one request asks it.

mod breaker;
mod burst;
mod crowd;
mod joins;
mod limits;
mod stops;
mod waiting;

use bursar::ledger::entry::{InDoubt, State};
use bursar::money::MicroUsd;

use crate::support::wire::request;
use crate::support::{Bursar, Origin, Step, Wire, chat, eventually};

const CHAT: &str = "/v1/chat/completions";
const ONE_PLACE: &str = "[shaping]\nin_flight = 1\n";

const SETTLED: State = State::Settled {
    billed: MicroUsd::new(7),
};
const GONE: State = State::InDoubt {
    reason: InDoubt::ClientGone,
};

/// Sends a chat request on a connection of its own.
async fn begin(bursar: &Bursar, prompt: &str, headers: &[(&str, &str)]) -> Wire {
    let mut wire = bursar.connect().await;
    wire.send(request("POST", CHAT, headers, &chat(prompt)))
        .await;
    wire
}

async fn received(origin: &Origin, count: usize) {
    eventually("the service to receive", || async {
        (origin.received().len() >= count).then_some(())
    })
    .await;
}

/// Waits until that many requests wait for a place.
async fn waiting(bursar: &Bursar, count: i64) {
    eventually("requests to wait", || async {
        (bursar.metrics.traffic.now().waiting == count).then_some(())
    })
    .await;
}

/// A whole answer that waits for [`Origin::go`].
fn on_cue(bytes: Vec<u8>) -> Step {
    Step::Pieces(vec![bytes])
}

/// The prompts in the order in which the service got them.
fn prompts(origin: &Origin) -> Vec<String> {
    let prompt = |body: &[u8]| {
        let body: serde_json::Value = serde_json::from_slice(body).expect("JSON");
        body["messages"][0]["content"]
            .as_str()
            .expect("a prompt")
            .to_owned()
    };
    origin
        .received()
        .iter()
        .map(|got| prompt(&got.body))
        .collect()
}
