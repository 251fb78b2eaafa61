//! Answers that the app never received belong to its next equal request; delivered answers belong
//! to no other request (rule I3).
// Tables are spelled where they are read.
#![allow(clippy::type_complexity)]

mod adopt;
mod bounds;
mod drain;
mod join;
mod kill;
mod meeting;
mod places;
mod restart;
mod stopped;

use crate::support::wire::request;
use crate::support::{Answer, Bursar, Origin, Step, Wire, eventually};

const CHAT: &str = "/v1/chat/completions";

/// Sends a chat request on a connection of its own and waits until the service has it.
async fn send(bursar: &Bursar, origin: &Origin, body: &str, headers: &[(&str, &str)]) -> Wire {
    let before = origin.received().len();
    let mut wire = bursar.connect().await;
    wire.send(request("POST", CHAT, headers, body)).await;
    received(origin, before + 1).await;
    wire
}

async fn received(origin: &Origin, count: usize) {
    eventually("the service to receive", || async {
        (origin.received().len() >= count).then_some(())
    })
    .await;
}

/// Waits until bursar has counted `count` apps that left.
async fn left(bursar: &Bursar, count: u32) {
    counted(bursar, "bursar_client_disconnects_total", count).await;
}

async fn joined(bursar: &Bursar, count: u32) {
    counted(bursar, "bursar_joined_retries_total", count).await;
}

async fn counted(bursar: &Bursar, family: &str, count: u32) {
    eventually(family, || async {
        (bursar.metric(family, "") >= f64::from(count)).then_some(())
    })
    .await;
}

/// `bursar_repeats_avoided_usd_estimate_total` in micro-USD.
fn avoided(bursar: &Bursar) -> u64 {
    let usd = bursar.metric("bursar_repeats_avoided_usd_estimate_total", "");
    (usd * 1e6).round() as u64
}

async fn ask(bursar: &Bursar, body: &str, headers: &[(&str, &str)]) -> Answer {
    let mut wire = bursar.connect().await;
    wire.send(request("POST", CHAT, headers, body)).await;
    wire.answer().await
}

fn key(origin: &Origin, index: usize) -> String {
    let received = origin.received();
    received[index]
        .header("idempotency-key")
        .expect("a key")
        .to_owned()
}

/// A whole answer that waits for [`Origin::go`].
fn on_cue(bytes: Vec<u8>) -> Step {
    Step::Pieces(vec![bytes])
}
