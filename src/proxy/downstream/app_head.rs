//! The head of an app's request, parsed.
//!
//! Why not by pingora's session: it escapes bytes that no target may hold and goes on with what it wrote itself, and
//! takes several buffers and copies for each head.
//!
//! Promise: what is parsed is what came, byte for byte, or the head is refused; framing, target and Host are judged at
//! the door, on the same bytes.

use std::mem::MaybeUninit;

use bytes::Bytes;
use http::header::CONNECTION;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Version};

use crate::protocol::names::members;
use crate::proxy::refuse::{Code, Refusal};

/// The head of a request that came in.
#[derive(Debug, Default)]
pub struct AppHead {
    pub method: Method,
    pub version: Version,
    pub headers: HeaderMap,
    /// As it came.
    pub raw: Bytes,
}

/// Fields that are parsed. The door allows fewer, and says how many.
const PARSED_FIELDS_MAX: usize = 128;

// === impl AppHead ===

impl AppHead {
    /// Parses a whole head.
    pub fn parse(raw: Bytes) -> Result<Self, Refusal> {
        let mut fields = [const { MaybeUninit::uninit() }; PARSED_FIELDS_MAX];
        let mut request = httparse::Request::new(&mut []);
        let parsed = request.parse_with_uninit_headers(&raw, &mut fields);
        let is_whole = match parsed {
            Ok(httparse::Status::Complete(length)) => length == raw.len(),
            Ok(httparse::Status::Partial) => false,
            Err(httparse::Error::TooManyHeaders) => return Err(Code::HeadTooLarge.into()),
            Err(httparse::Error::Token | httparse::Error::Version) => return Err(unfit_line()),
            Err(_) => false,
        };
        let method = request
            .method
            .map(|word| Method::from_bytes(word.as_bytes()));
        let version = match request.version {
            Some(1) => Version::HTTP_11,
            _ => Version::HTTP_10,
        };
        let (true, Some(Ok(method))) = (is_whole, method) else {
            return Err(Code::HeadMalformed.into());
        };
        let mut headers = HeaderMap::with_capacity(request.headers.len());
        for field in request.headers {
            let name = HeaderName::from_bytes(field.name.as_bytes());
            // A slice of what came: nothing is copied.
            let value = HeaderValue::from_maybe_shared(raw.slice_ref(field.value));
            let (Ok(name), Ok(value)) = (name, value) else {
                return Err(Code::HeadMalformed.into());
            };
            headers.append(name, value);
        }
        Ok(Self {
            method,
            version,
            headers,
            raw,
        })
    }

    /// Its target's path; empty where it has none that can be read.
    pub fn path(&self) -> &str {
        let line = self.raw.split(|byte| *byte == b'\r').next();
        let target = line.and_then(|line| line.split(|byte| *byte == b' ').nth(1));
        let path = target.and_then(|target| target.split(|byte| *byte == b'?').next());
        path.and_then(|path| std::str::from_utf8(path).ok())
            .unwrap_or_default()
    }

    /// The app asks for the end of its connection behind this request.
    pub fn closes(&self) -> bool {
        members(&self.headers, &CONNECTION).any(|option| option.eq_ignore_ascii_case(b"close"))
    }
}

fn unfit_line() -> Refusal {
    Refusal::because(
        Code::HeadMalformed,
        "The request target holds a blank, or another byte that no target may: escape it (a space is %20).",
    )
}

#[cfg(test)]
mod tests;
