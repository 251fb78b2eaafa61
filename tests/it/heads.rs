//! Heads and bodies as they pass: the key goes to one place, hop-by-hop headers go nowhere, and
//! bytes are the app's (rules I8, I9).
// Tables are spelled where they are read.
#![allow(clippy::type_complexity)]

mod bodies;
mod connection;
mod errors;
mod request;
mod response;

use crate::support::{Bursar, Origin, Step};

const CHAT: &str = "/v1/chat/completions";

/// An origin that sends this answer to every request, and bursar before it.
async fn before(answer: Vec<u8>) -> (Origin, Bursar) {
    let origin = Origin::always(Step::Answer(answer)).await;
    let bursar = Bursar::before(&origin.url()).await;
    (origin, bursar)
}
