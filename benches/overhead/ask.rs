//! The requests that the load sends. Each is another prompt, for equal ones would be a case of their own.

use std::sync::LazyLock;
use std::time::Duration;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    pub answer: Wanted,
    /// Of the body. 0: as small as it comes.
    pub body_bytes: usize,
    pub route: Route,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    Json,
    Stream { chunks: u32, every: Duration },
}

/// Two routes that take the same bytes and go the same way through bursar; one makes no entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    Metered,
    Free,
}

/// A request in the parts in which it is written; the middle is shared by all.
pub struct Request {
    pub head: Vec<u8>,
    pub filling: &'static [u8],
    pub tail: &'static [u8],
}

pub const METERED_PATH: &str = "/v1/chat/completions";
const FREE_PATH: &str = "/v1/tasks/match";

const TEXT: &str = "Tell me, in a few plain words, what this quarter's invoices add up to. ";

/// Sentences of a small request.
const SENTENCES: usize = 6;

const FILLING_BYTES_MAX: usize = 20_000_000;

static FILLING: LazyLock<Vec<u8>> =
    LazyLock::new(|| TEXT.bytes().cycle().take(FILLING_BYTES_MAX).collect());

const TAIL: &str = r#""}],"temperature":0.2,"max_tokens":80}"#;

// === impl Ask ===

impl Ask {
    pub const JSON: Self = Self {
        answer: Wanted::Json,
        body_bytes: 0,
        route: Route::Metered,
    };

    pub const fn stream(chunks: u32, every: Duration) -> Self {
        Self {
            answer: Wanted::Stream { chunks, every },
            ..Self::JSON
        }
    }

    pub const fn upload(body_bytes: usize) -> Self {
        Self {
            body_bytes,
            ..Self::JSON
        }
    }

    pub const fn without_entry(self) -> Self {
        Self {
            route: Route::Free,
            ..self
        }
    }

    pub fn request(self, serial: u64) -> Request {
        let stream = match self.answer {
            Wanted::Json => String::new(),
            Wanted::Stream { chunks, every } => format!(
                r#""stream":true,"user":"chunks={chunks} every_us={}","#,
                every.as_micros()
            ),
        };
        let start = format!(
            r#"{{"model":"auto",{stream}"messages":[{{"role":"system","content":"You are terse."}},{{"role":"user","content":"{serial:012} "#
        );
        let small = TEXT.len() * SENTENCES;
        let filling_bytes = match self.body_bytes {
            0 => small,
            bytes => bytes.saturating_sub(start.len() + TAIL.len()),
        };
        let filling = FILLING.get(..filling_bytes).unwrap_or(&FILLING);
        let (path, body_bytes) = (self.route.path(), start.len() + filling.len() + TAIL.len());
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\
             Authorization: Bearer of-the-app\r\nContent-Type: application/json\r\n\
             Accept: application/json\r\nUser-Agent: OpenAI/Python 2.0.0\r\n\
             Content-Length: {body_bytes}\r\n\r\n{start}"
        );
        let mut request = Request {
            head: head.into_bytes(),
            filling,
            tail: TAIL.as_bytes(),
        };
        if self.body_bytes == 0 {
            // A small request is one write.
            request.head.extend_from_slice(filling);
            request.head.extend_from_slice(TAIL.as_bytes());
            (request.filling, request.tail) = (&[], &[]);
        }
        request
    }
}

// === impl Route ===

impl Route {
    fn path(self) -> &'static str {
        match self {
            Self::Metered => METERED_PATH,
            Self::Free => FREE_PATH,
        }
    }
}

// === impl Request ===

impl Request {
    /// A request that is written in one piece.
    pub fn plain(text: String) -> Self {
        Self {
            head: text.into_bytes(),
            filling: &[],
            tail: &[],
        }
    }
}
