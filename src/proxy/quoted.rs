//! Text of others as the log and the ledger quote it: what the service said when it refused a request, and of a
//! request that was refused here the part that it was refused for.
//!
//! Promise: one bounded line, in which no secret stands that bursar knows: the organization's key, in any spelling that
//! the answer's own search knows ([`ApiKey::redacted_chunk`]), and tokens of bursar's form. Of what the service
//! said, every run of 16 bytes or more that also stands in the key or in the request, its head included, is left out
//! ([`Echo`]), in bounded time whatever both hold.

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue};
use memchr::memmem;
use pingora::http::RequestHeader;
use tokio::task::spawn_blocking;

use crate::config::{ApiKey, TOKEN_MARK};
use crate::protocol::body::detail;
use crate::protocol::echo::{Echo, STRUCK};
use crate::screen::shown;

/// Longest quotation of the service, in characters.
const DETAIL_CHARS_MAX: usize = 256;

/// Longest quotation of a request's host, origin, method or path.
const PART_CHARS_MAX: usize = 128;

/// So much of a text is quoted from. What begins in it and is struck out may end behind it: the key, in its longest
/// spelling, is shorter than what is looked at in addition.
const QUOTED_BYTES_MAX: usize = 4096;
const LOOKED_AT_BYTES: usize = 2 * QUOTED_BYTES_MAX;

/// Of requests and answers beyond this size the comparison takes too long for a task that others wait behind.
const AT_ONCE_BYTES: usize = 64 * 1024;

/// What every program writes into these is no secret, and a refusal may be about it.
const NOT_PRIVATE: [HeaderName; 5] = [ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HOST, USER_AGENT];

/// What a request holds that is its app's alone: its body, and beside it what its head may hold.
pub struct Private {
    body: Bytes,
    parts: Vec<HeaderValue>,
    query: Option<String>,
}

/// What the service said in the body of a refusal, as far as it may be repeated.
pub async fn service_detail(key: &ApiKey, said: &Bytes, private: Private) -> Option<String> {
    let (key, said) = (key.clone(), said.clone());
    let is_small = said.len().saturating_add(private.body.len()) <= AT_ONCE_BYTES;
    let quote = move || detail(&said).map(|words| quoted(&key, &words, Some(&private)));
    match is_small {
        true => quote(),
        // A panic has been logged.
        false => spawn_blocking(quote).await.ok().flatten(),
    }
}

/// A part of a request's head, without its secrets.
pub fn part(key: &ApiKey, text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    cut(&quoted(key, &text, None), PART_CHARS_MAX)
}

fn quoted(key: &ApiKey, text: &str, private: Option<&Private>) -> String {
    let looked_at = text.floor_char_boundary(LOOKED_AT_BYTES);
    let more_comes = looked_at < text.len();
    let text = text.get(..looked_at).unwrap_or_default();
    let mut echo = Echo::of(text);
    if let (Some(starred), _) = key.redacted_chunk(text.as_bytes(), more_comes) {
        let pairs = text.bytes().zip(starred).enumerate();
        for (at, _) in pairs.filter(|(_, (was, is))| was != is) {
            echo.strike(at..at + 1);
        }
    }
    for at in memmem::find_iter(text.as_bytes(), TOKEN_MARK) {
        let digits = text.get(at + TOKEN_MARK.len()..).unwrap_or_default();
        let count = digits.bytes().take_while(u8::is_ascii_hexdigit).count();
        if count > 0 {
            echo.strike(at..at + TOKEN_MARK.len() + count);
        }
    }
    // The service may cut it, mask a part of it, or write it in another case.
    let header = key.header_value();
    let secret = header.as_bytes().splitn(2, |byte| *byte == b' ').last();
    echo.hears(secret.unwrap_or_default());
    if let Some(private) = private {
        private.is_heard_by(&mut echo);
    }
    cut(
        &shown(&echo.left(QUOTED_BYTES_MAX, DETAIL_CHARS_MAX)),
        DETAIL_CHARS_MAX,
    )
}

/// At most so many characters.
fn cut(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some(_) => {
            let mut short: String = text.chars().take(chars_max - 1).collect();
            short.push(STRUCK);
            short
        }
    }
}

// === impl Private ===

impl Private {
    /// Of a request as it was sent, and as its app's head has it.
    pub fn of(sent: &RequestHeader, body: &Bytes, asked: &HeaderMap) -> Self {
        let from_app = asked.get(AUTHORIZATION).into_iter();
        let as_sent = sent.headers.iter();
        let as_sent = as_sent.filter(|(name, _)| !NOT_PRIVATE.contains(name));
        Self {
            body: body.clone(),
            parts: from_app
                .chain(as_sent.map(|(_, value)| value))
                .cloned()
                .collect(),
            query: sent.uri.query().map(str::to_owned),
        }
    }

    fn is_heard_by(&self, echo: &mut Echo<'_>) {
        echo.hears(&self.body);
        for part in &self.parts {
            echo.hears(part.as_bytes());
        }
        if let Some(query) = &self.query {
            echo.hears(query.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests;
