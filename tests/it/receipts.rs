//! Receipts end to end: absent, malformed and zero are three different things in the answer, the
//! ledger and the metrics, and nothing is ever guessed (rules I3, I4, I5).
// Tables are spelled where they are read.
#![allow(clippy::type_complexity)]

mod agent_exact;
mod counters;
mod evidence;
mod heads;
mod replays;
mod runs;

use bursar::ledger::entry::{InDoubt, State};
use bursar::money::MicroUsd;

use crate::support::{Answer, Bursar, Origin, Step, chat};

const CHAT: &str = "/v1/chat/completions";
const ONCE: &str = "[retry]\nattempts = 1\n";
const LOST_AMOUNT: State = State::InDoubt {
    reason: InDoubt::ReplayLostAmount,
};

const fn settled(micro_usd: u64) -> State {
    State::Settled {
        billed: MicroUsd::new(micro_usd),
    }
}

const fn reconciled(micro_usd: u64) -> State {
    State::Reconciled {
        billed: MicroUsd::new(micro_usd),
    }
}

/// One request under the app's own key.
async fn ask_with_key(bursar: &Bursar, key: &str) -> Answer {
    let headers = [("Idempotency-Key", key)];
    let mut wire = bursar.connect().await;
    wire.send(crate::support::wire::request(
        "POST",
        CHAT,
        &headers,
        &chat("hi"),
    ))
    .await;
    wire.answer().await
}

async fn before(answer: Vec<u8>) -> (Origin, Bursar) {
    let origin = Origin::always(Step::Answer(answer)).await;
    let bursar = Bursar::with(&origin.url(), ONCE).await;
    (origin, bursar)
}

/// A counter or gauge that must be this whole number.
fn check_metric(name: &str, bursar: &Bursar, family: &str, labels: &str, wanted: f64) {
    let found = bursar.metric(family, labels);
    assert!(
        (found - wanted).abs() < 1e-9,
        "{name}: {family}{{{labels}}} is {found}, not {wanted}"
    );
}
