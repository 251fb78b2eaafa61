//! The origin behind the corpus: it reads strictly, keeps every request, and reports everything that
//! no service should ever be sent.
//!
//! Promise: it reads requests with its own code; from bursar it uses the route table and nothing
//! else.

use std::net::SocketAddr;
use std::sync::Arc;

use http::Method;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use bursar::protocol::routes::{Lookup, RouteTable};

use crate::support::KEY;
use crate::support::origin::billed;

/// A request as received.
#[derive(Clone, Debug)]
pub struct Seen {
    pub line: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// The origin.
pub struct Witness {
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    authority: String,
    table: RouteTable,
    seen: Mutex<Vec<Seen>>,
    complaints: Mutex<Vec<String>>,
    /// Leave to answer: one permit a request.
    leave: Semaphore,
}

/// Permits for more requests than any test sends.
const ALWAYS: usize = 1 << 40;

/// Request headers that a service must not get from an app behind bursar.
const NEVER: [&str; 18] = [
    "transfer-encoding",
    "te",
    "trailer",
    "upgrade",
    "http2-settings",
    "connection",
    "keep-alive",
    "expect",
    "cookie",
    "origin",
    "referer",
    "forwarded",
    "via",
    "range",
    "if-range",
    "content-encoding",
    "x-api-key",
    "proxy-authorization",
];
const NEVER_PREFIXES: [&str; 4] = ["x-forwarded", "x-original", "sec-fetch-", "x-http-method"];

/// Headers that have one meaning only.
const ONCE: [&str; 7] = [
    "host",
    "authorization",
    "content-length",
    "content-type",
    "idempotency-key",
    "x-service-session",
    "x-service-rte-query",
];

// === impl Witness ===

impl Witness {
    /// Answers at once.
    pub async fn start() -> Self {
        Self::with(ALWAYS).await
    }

    /// Answers when [`Self::answer`] permits.
    pub async fn stalling() -> Self {
        Self::with(0).await
    }

    async fn with(permits: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared {
            authority: address.to_string(),
            table: RouteTable::untranslated(&[]),
            seen: Mutex::default(),
            complaints: Mutex::default(),
            leave: Semaphore::new(permits),
        });
        let serving = Arc::clone(&shared);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&serving)));
            }
        });
        Self { address, shared }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Lets that many requests be answered.
    pub fn answer(&self, count: usize) {
        self.shared.leave.add_permits(count);
    }

    pub fn count(&self) -> usize {
        self.shared.seen.lock().len()
    }

    /// Requests after the first `before` ones.
    pub fn since(&self, before: usize) -> Vec<Seen> {
        self.shared.seen.lock()[before..].to_vec()
    }

    /// Complaints since the last call.
    pub fn complaints(&self) -> Vec<String> {
        std::mem::take(&mut *self.shared.complaints.lock())
    }
}

impl Seen {
    pub fn all(&self, name: &str) -> Vec<&str> {
        self.headers
            .iter()
            .filter(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
            .collect()
    }
}

async fn serve(mut stream: TcpStream, shared: Arc<Shared>) {
    let mut unread = Vec::new();
    loop {
        let head = match read_until(&mut stream, &mut unread, b"\r\n\r\n").await {
            Some(head) => head,
            None if unread.is_empty() => return,
            None => {
                let what = unread[..unread.len().min(200)].escape_ascii().to_string();
                return shared.complain(&format!("bytes that are no request: {what}"));
            }
        };
        let mut seen = shared.read_head(&head);
        let length = seen.all("content-length").first().map(|text| text.parse());
        let Ok(length) = length.unwrap_or(Ok(0_usize)) else {
            return shared.complain(&format!("a length: {seen:?}"));
        };
        while unread.len() < length {
            let mut piece = vec![0; 64 * 1024];
            match stream.read(&mut piece).await {
                Ok(read) if read > 0 => unread.extend_from_slice(&piece[..read]),
                _ => return shared.complain(&format!("a body that ends early: {}", seen.line)),
            }
        }
        // Not by an iterator: unoptimized it takes a second for 30 MB.
        let behind = unread.split_off(length);
        seen.body = std::mem::replace(&mut unread, behind);
        if !unread.is_empty() {
            let what = unread[..unread.len().min(200)].escape_ascii().to_string();
            shared.complain(&format!("bytes behind a request: {what}"));
        }
        let is_head = seen.line.starts_with("HEAD ");
        shared.seen.lock().push(seen);
        if let Ok(leave) = shared.leave.acquire().await {
            leave.forget();
        }
        let answer = if is_head {
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n"
                .to_vec()
        } else {
            billed(1)
        };
        if stream.write_all(&answer).await.is_err() {
            return;
        }
    }
}

async fn read_until(stream: &mut TcpStream, unread: &mut Vec<u8>, mark: &[u8]) -> Option<Vec<u8>> {
    loop {
        let found = unread.windows(mark.len()).position(|window| window == mark);
        if let Some(at) = found {
            return Some(unread.drain(..at + mark.len()).collect());
        }
        let mut piece = vec![0; 64 * 1024];
        match stream.read(&mut piece).await {
            Ok(read) if read > 0 => unread.extend_from_slice(&piece[..read]),
            _ => return None,
        }
    }
}

// === impl Shared ===

impl Shared {
    fn complain(&self, what: &str) {
        self.complaints.lock().push(what.to_owned());
    }

    fn read_head(&self, head: &[u8]) -> Seen {
        let text = String::from_utf8_lossy(head).into_owned();
        let whole = text.strip_suffix("\r\n\r\n").unwrap_or(&text);
        let mut lines = whole.split("\r\n");
        let line = lines.next().unwrap_or_default().to_owned();
        let mut seen = Seen {
            line,
            headers: Vec::new(),
            body: Vec::new(),
        };
        for field in lines {
            match field.split_once(": ").or_else(|| field.split_once(':')) {
                Some((name, value)) => seen
                    .headers
                    .push((name.to_ascii_lowercase(), value.to_owned())),
                None => self.complain(&format!("a line without a colon: {field:?}")),
            }
        }
        for complaint in self.faults(&seen, whole) {
            self.complain(&format!("{complaint}: {whole:?}"));
        }
        seen
    }

    /// All that is wrong with a head.
    fn faults(&self, seen: &Seen, text: &str) -> Vec<String> {
        let mut faults = Vec::new();
        let mut fault = |is: bool, what: &str| {
            if is {
                faults.push(what.to_owned());
            }
        };
        let bare = text.replace("\r\n", "");
        let odd = |letter: char| letter.is_ascii_control() && letter != '\t';
        fault(bare.contains(odd), "a control character or bare line end");
        let words: Vec<&str> = seen.line.split(' ').collect();
        let (method, target) = match words.as_slice() {
            [method, target, "HTTP/1.1"] => (*method, *target),
            _ => ("", ""),
        };
        let path = target.split('?').next().unwrap_or_default();
        let visible = target.bytes().all(|byte| (0x21..=0x7e).contains(&byte));
        fault(!visible, "a target that is not visible ASCII");
        let route = Method::from_bytes(method.as_bytes())
            .ok()
            .map(|method| self.table.look_up(&method, path));
        let Some(Lookup::Found(route)) = route else {
            fault(true, "not of the route table");
            return faults;
        };
        for name in ONCE {
            fault(seen.all(name).len() > 1, &format!("{name} twice"));
        }
        for (name, _) in &seen.headers {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
            fault(!name.bytes().all(plain), &format!("the name {name:?}"));
            let never = NEVER.contains(&name.as_str())
                || NEVER_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
            fault(never, name);
        }
        let key = format!("Bearer {KEY}");
        fault(seen.all("authorization") != [key], "not our key");
        fault(seen.all("host") != [&self.authority], "not its host");
        fault(seen.all("accept-encoding") != ["identity"], "an encoding");
        let has_key = !seen.all("idempotency-key").is_empty();
        fault(has_key != route.keyed, "an Idempotency-Key or none");
        let length = seen.all("content-length");
        let reads = matches!(method, "GET" | "HEAD");
        fault(reads && !length.is_empty(), "a GET with a body");
        fault(method == "POST" && length.is_empty(), "no length");
        faults
    }
}
