//! How the flow of one answer stands.

use std::sync::Arc;

use bytes::Bytes;
use pingora::http::ResponseHeader;
use tokio::sync::OwnedSemaphorePermit;

use super::redactor::Redactor;
use crate::ledger::entry::InDoubt;
use crate::protocol::body::JsonFieldScanner;
use crate::protocol::sse::{HoldBack, SseScanner};
use crate::proxy::limits::queue::Drained;
use crate::proxy::purchase::drain::Drain;
use crate::proxy::purchase::forward::Forward;
use crate::proxy::purchase::lost::Cause;
use crate::proxy::refuse::Code;
use crate::proxy::settle::Gathered;
use crate::proxy::upstream::exchange::BodyBroke;

/// How the flow of one answer stands.
pub(super) struct Flow {
    pub(super) head: Arc<ResponseHeader>,
    pub(super) scanner: Option<SseScanner>,
    /// A chat stream that can be read: ends with `data: [DONE]`.
    pub(super) chat: bool,
    /// In a coding that was not asked for. It passes as it is and tells nothing.
    pub(super) is_encoded: bool,
    /// Strikes out the key where the service says it.
    pub(super) strike: Redactor,
    pub(super) hold: HoldBack,
    /// Of a large body: the chunk that waits for its successor.
    pub(super) last: Option<Bytes>,
    /// What a large body tells.
    pub(super) sieve: JsonFieldScanner,
    pub(super) gathered: Gathered,
    pub(super) head_written: bool,
    pub(super) forward: Forward,
    pub(super) ends_in_newline: bool,
    pub(super) settled: bool,
    pub(super) reading: Reading,
}

/// Reading on after the app left, and what it holds of the service and of bursar.
#[derive(Default)]
pub(super) struct Reading {
    pub(super) drain: Drain,
    pub(super) permit: Option<OwnedSemaphorePermit>,
    /// Its place at the service may be asked for by somebody who waits.
    pub(super) place: Option<Drained>,
}

/// Why a chunk was not passed on.
pub(super) enum Halt {
    /// The app is to be told.
    Refused(Code),
    Cut,
}

/// What the service's next move was.
pub(super) enum Move {
    Chunk(Bytes),
    End,
    Broke(Cause),
    /// bursar ends the reading.
    Stop(InDoubt),
    /// bursar's shutdown ended the giving: what was given is not whole.
    Cut,
}

pub(super) fn moved(read: Result<Option<Bytes>, BodyBroke>) -> Move {
    match read {
        Ok(Some(chunk)) => Move::Chunk(chunk),
        Ok(None) => Move::End,
        Err(BodyBroke(cause)) => Move::Broke(cause),
    }
}
