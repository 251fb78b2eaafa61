//! A case of the corpus, and the words to write one down with.

use crate::support::chat;

/// Bytes for the proxy's port, and what may become of them.
#[derive(Clone, Debug)]
pub struct Case {
    pub row: u8,
    pub name: String,
    pub bytes: Vec<u8>,
    /// The client closes its sending half after the bytes.
    pub ends: bool,
    pub may: May,
}

#[derive(Clone, Debug)]
pub enum May {
    /// One of these codes, and the connection ends. The origin gets neither this request nor the
    /// one that is sent right after it.
    Refused(&'static [&'static str]),
    /// The origin gets this and nothing else.
    Relayed(Sent),
    /// The one or the other.
    Either(&'static [&'static str], Sent),
    /// bursar answers by itself with this status; the origin sees nothing.
    Local(u16),
}

/// A request as the origin sees it.
#[derive(Clone, Debug)]
pub struct Sent {
    pub line: String,
    pub body: Vec<u8>,
    /// Values of headers; `None`: not there.
    pub headers: Vec<(&'static str, Option<String>)>,
    /// The connection ends after the answer.
    pub ends: bool,
    /// Makes an entry in the ledger.
    pub metered: bool,
}

pub const CHAT: &str = "/v1/chat/completions";

// === impl Case ===

impl Case {
    pub fn refused(
        row: u8,
        name: &str,
        bytes: impl Into<Vec<u8>>,
        codes: &'static [&'static str],
    ) -> Self {
        Self::new(row, name, bytes, May::Refused(codes))
    }

    pub fn relayed(row: u8, name: &str, bytes: impl Into<Vec<u8>>, sent: Sent) -> Self {
        Self::new(row, name, bytes, May::Relayed(sent))
    }

    pub fn new(row: u8, name: &str, bytes: impl Into<Vec<u8>>, may: May) -> Self {
        Self {
            row,
            name: name.to_owned(),
            bytes: bytes.into(),
            ends: false,
            may,
        }
    }

    /// The client closes its sending half after the bytes.
    pub fn ending(self) -> Self {
        Self { ends: true, ..self }
    }
}

// === impl Sent ===

impl Sent {
    pub fn get(target: &str) -> Self {
        Self {
            line: format!("GET {target} HTTP/1.1"),
            body: Vec::new(),
            headers: Vec::new(),
            ends: false,
            metered: false,
        }
    }

    /// A chat request with this body.
    pub fn chat(body: impl Into<Vec<u8>>) -> Self {
        Self {
            line: format!("POST {CHAT} HTTP/1.1"),
            body: body.into(),
            metered: true,
            ..Self::get("/")
        }
    }

    pub fn post(target: &str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            line: format!("POST {target} HTTP/1.1"),
            metered: false,
            ..Self::chat(body)
        }
    }

    pub fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, Some(value.to_owned())));
        self
    }

    pub fn without(mut self, name: &'static str) -> Self {
        self.headers.push((name, None));
        self
    }

    pub fn ending(self) -> Self {
        Self { ends: true, ..self }
    }
}

/// A GET with these header lines, each with its CRLF.
pub fn get(target: &str, lines: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n").into_bytes()
}

/// A chat request with these header lines and a body of its own.
pub fn post(name: &str, lines: &str) -> Vec<u8> {
    let body = chat(name);
    let length = format!("{lines}Content-Length: {}\r\n", body.len());
    framed(&length, body.as_bytes())
}

/// The head of a chat request with these lines, followed by the given bytes.
pub fn framed(lines: &str, behind: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{lines}\r\n"
    );
    [head.as_bytes(), behind].concat()
}

/// A chat request whose body is these bytes.
pub fn with_body(lines: &str, body: &[u8]) -> Vec<u8> {
    framed(&format!("{lines}Content-Length: {}\r\n", body.len()), body)
}

/// A whole request that spends, as another would hide it.
pub fn hidden() -> Vec<u8> {
    post("hidden", "")
}
