//! A request as every attempt sends it.
//!
//! Why over HTTP/1.1 not by pingora's session: it copies the head, the key in it, into buffers of its own, and
//! sends head and body in two packets.
//!
//! Promise: over HTTP/1.1 head and body leave together, as one write where the socket takes it; the key is
//! written from the one buffer that all requests share, and copied nowhere (with TLS only to where it is
//! encrypted). A request is sent when the connection has taken its last byte.

use std::io::IoSlice;
use std::time::Duration;

use bytes::{BufMut, Bytes};
use http::header::AUTHORIZATION;
use http::{HeaderName, HeaderValue};
use pingora::http::{HeaderNameVariant, RequestHeader};
use pingora::protocols::http::client::HttpSession;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use super::heads;
use super::peers::Peers;
use super::stream::ServiceStream;
use crate::protocol::names::X_BURSAR_VIA;
use crate::proxy::purchase::lost::Cause;

/// The request as every attempt repeats it.
#[derive(Debug)]
pub struct Outgoing {
    /// Without the key.
    pub header: RequestHeader,
    /// The key, as its header has it.
    pub authorization: HeaderValue,
    pub body: Bytes,
    /// No pooled connection: a stale one could make an attempt ambiguous (rule I7).
    pub fresh_connection: bool,
    pub read_timeout: Duration,
    /// An answer that is not a stream is read whole up to this size.
    pub whole_bytes_max: usize,
    /// How often it stands in memory then.
    pub whole_copies: usize,
    /// Beside it, bytes of the request in what is made of it.
    pub echoed_bytes: usize,
}

/// How long a service may take nothing more of a request.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// Request bodies are handed to HTTP/2 in pieces, so that a write timeout measures progress.
const PIECE_BYTES: usize = 256 * 1024;

/// What stands in a head beside its fields' names and values.
const LINE_BYTES: usize = 64;
const FIELD_EXTRA_BYTES: usize = 4;

// === impl Outgoing ===

impl Outgoing {
    /// Sends the whole request on a connection of HTTP/1.1. `may_lead_back`: it says that it was here.
    pub async fn send_http1(
        &self,
        stream: &mut ServiceStream,
        may_lead_back: bool,
    ) -> Result<(), Cause> {
        let head = head_before_key(&self.header, may_lead_back).ok_or(Cause::Protocol)?;
        let mut parts = [
            IoSlice::new(&head),
            IoSlice::new(self.authorization.as_bytes()),
            IoSlice::new(b"\r\n\r\n"),
            IoSlice::new(&self.body),
        ];
        let mut rest = parts.as_mut_slice();
        while !rest.is_empty() {
            let written = timeout(WRITE_TIMEOUT, stream.write_vectored(rest)).await;
            match written {
                Ok(Ok(count)) if count > 0 => IoSlice::advance_slices(&mut rest, count),
                Ok(Ok(_) | Err(_)) | Err(_) => return Err(Cause::Write),
            }
        }
        match timeout(WRITE_TIMEOUT, stream.flush()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Cause::Write),
        }
    }

    /// The same on a stream of HTTP/2.
    pub async fn send_http2(
        &self,
        session: &mut HttpSession,
        peers: &Peers,
        may_lead_back: bool,
    ) -> Result<(), Cause> {
        session.set_write_timeout(Some(WRITE_TIMEOUT));
        let mut header = self.header.clone();
        if !may_lead_back {
            header.remove_header(&X_BURSAR_VIA);
        }
        heads::to_http2(&mut header, peers).map_err(|_| Cause::Protocol)?;
        header
            .insert_header(AUTHORIZATION, self.authorization.clone())
            .map_err(|_| Cause::Protocol)?;
        session
            .write_request_header(Box::new(header))
            .await
            .map_err(|_| Cause::Write)?;
        let mut rest = self.body.clone();
        while !rest.is_empty() {
            let piece = rest.split_to(PIECE_BYTES.min(rest.len()));
            session
                .write_request_body(piece, false)
                .await
                .map_err(|_| Cause::Write)?;
        }
        session
            .finish_request_body()
            .await
            .map_err(|_| Cause::Write)
    }
}

/// The head up to the value of its last field, the key's. `None`: it cannot be written.
fn head_before_key(head: &RequestHeader, may_lead_back: bool) -> Option<Vec<u8>> {
    let fields = head.headers.iter();
    let fields: usize = fields
        .map(|(name, value)| name.as_str().len() + value.len() + FIELD_EXTRA_BYTES)
        .sum();
    let target = head.raw_path();
    // The door lets none of these in.
    if target.iter().any(|byte| *byte <= b' ') {
        return None;
    }
    let mut bytes = Vec::with_capacity(LINE_BYTES + target.len() + fields);
    bytes.put_slice(head.method.as_str().as_bytes());
    bytes.put_slice(b" ");
    bytes.put_slice(target);
    bytes.put_slice(b" HTTP/1.1\r\n");
    let mut field = |name: &[u8], value: &[u8]| {
        bytes.put_slice(name);
        bytes.put_slice(b": ");
        bytes.put_slice(value);
        bytes.put_slice(b"\r\n");
    };
    let written = head.map(|name, value| {
        let name = match &name {
            HeaderNameVariant::Case(name) => name.as_slice(),
            HeaderNameVariant::Titled(name) => name.as_bytes(),
        };
        if may_lead_back || !is(name, &X_BURSAR_VIA) {
            field(name, value.as_bytes());
        }
        Ok(())
    });
    written.ok()?;
    bytes.put_slice(b"Authorization: ");
    Some(bytes)
}

fn is(name: &[u8], known: &HeaderName) -> bool {
    name.eq_ignore_ascii_case(known.as_str().as_bytes())
}

#[cfg(test)]
mod tests;
