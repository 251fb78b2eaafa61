//! Streams: chunk by chunk as they arrive, the receipt durable before `data: [DONE]`, and a break
//! that is a break (rule I2).

mod breaks;
mod flow;
mod keep_alive;
mod leaving;
mod receipts;
mod slow;

use bursar::ledger::entry::State;
use bursar::money::MicroUsd;

use crate::support::origin::{chunk, last_chunk, stream_head};
use crate::support::wire::request;
use crate::support::{Answer, Bursar, Step, Wire, chat_stream};

const CHAT: &str = "/v1/chat/completions";
const EVENT: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n";
const RECEIPT: &str = ": service-billed-micro-usd 7\n\n";
const DONE: &str = "data: [DONE]\n\n";

const fn settled(micro_usd: u64) -> State {
    State::Settled {
        billed: MicroUsd::new(micro_usd),
    }
}

/// A stream's head and these chunks, with its end.
fn whole(chunks: &[&str]) -> Vec<u8> {
    [open(chunks), last_chunk()].concat()
}

/// A stream's head and these chunks, without an end.
fn open(chunks: &[&str]) -> Vec<u8> {
    let mut bytes = stream_head();
    for piece in chunks {
        bytes.extend_from_slice(&chunk(piece));
    }
    bytes
}

fn pieces(parts: &[Vec<u8>]) -> Step {
    Step::Pieces(parts.to_vec())
}

async fn ask(bursar: &Bursar) -> Answer {
    let mut wire = begin(bursar).await;
    wire.answer().await
}

async fn begin(bursar: &Bursar) -> Wire {
    let mut wire = bursar.connect().await;
    wire.send(request("POST", CHAT, &[], &chat_stream("hi")))
        .await;
    wire
}

/// Reads chunks until the body is at least as long as `wanted`; it must then equal it.
async fn read_exactly(name: &str, wire: &mut Wire, answer: &mut Answer, wanted: &str) {
    while answer.body.len() < wanted.len() {
        let piece = wire.chunk(answer).await;
        let piece = piece.unwrap_or_else(|| panic!("{name}: ended after {:?}", answer.text()));
        assert!(!piece.is_empty(), "{name}: ended after {:?}", answer.text());
        answer.body.extend_from_slice(&piece);
    }
    assert_eq!(answer.text(), wanted, "{name}");
}
