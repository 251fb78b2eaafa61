//! The door: which requests are admitted, over real sockets.
//!
//! Promise: no web page can spend, no path trick reaches another upstream route, and a refused
//! request neither reaches the service nor makes an entry in the ledger.

mod bodies;
mod browsers;
mod heads;
mod keys;
mod models;
mod paths;
mod routes;
mod smuggling;

use crate::support::origin::billed;
use crate::support::wire::request;
use crate::support::{Answer, Bursar, KEY, Origin, Sandbox, Step, Wire, chat};

/// bursar before an origin that must get no request unless a test gives it a step.
struct Door {
    origin: Origin,
    bursar: Bursar,
}

impl Door {
    async fn open() -> Self {
        Self::with("").await
    }

    async fn with(lines: &str) -> Self {
        let origin = Origin::start([]).await;
        let bursar = Bursar::with(&origin.url(), lines).await;
        Self { origin, bursar }
    }

    /// Sends bytes on a connection of their own and reads one answer.
    async fn ask(&self, bytes: impl AsRef<[u8]>) -> Answer {
        let mut wire = self.bursar.connect().await;
        wire.send(bytes).await;
        wire.answer().await
    }

    /// Sends a request that must be refused with one of these codes, on a connection that then
    /// ends.
    async fn refuses(&self, bytes: impl AsRef<[u8]>, codes: &[&str]) -> Answer {
        let bytes = bytes.as_ref();
        let what = bytes[..bytes.len().min(300)].escape_ascii().to_string();
        let mut wire = self.bursar.connect().await;
        wire.send(bytes).await;
        let answer = wire.answer().await;
        assert_refusal(&answer, codes, &what);
        self.assert_untouched(&what);
        answer
    }

    /// Sends a request that must come through; returns the answer. The origin answers 200 with an
    /// amount.
    async fn passes(&self, bytes: impl AsRef<[u8]>) -> Answer {
        let before = self.origin.received().len();
        self.origin.push(Step::Answer(billed(1)));
        let what = bytes.as_ref()[..bytes.as_ref().len().min(300)]
            .escape_ascii()
            .to_string();
        let answer = self.ask(bytes).await;
        assert_eq!(answer.status, 200, "{what}: {}", answer.text());
        assert!(answer.complete, "{what}");
        assert_eq!(self.origin.received().len(), before + 1, "{what}");
        answer
    }

    /// Nothing reached the service, not even as a connection, and the ledger is empty.
    fn assert_untouched(&self, what: &str) {
        let received = self.origin.received();
        assert!(
            received.is_empty(),
            "{what}: reached the origin: {received:?}"
        );
        assert_eq!(
            self.origin.connections(),
            0,
            "{what}: a connection to the origin"
        );
        assert!(
            self.bursar.entries().is_empty(),
            "{what}: an entry in the ledger"
        );
    }
}

/// The form of every refusal: both shapes with one text, the code in header and body, the entry's
/// id, no Access-Control header, and a word on retrying.
fn assert_refusal(answer: &Answer, codes: &[&str], what: &str) {
    assert!(answer.complete, "{what}: {answer:?}");
    let code = answer
        .code()
        .unwrap_or_else(|| panic!("{what}: no refusal: {answer:?}"));
    assert!(
        codes.contains(&code),
        "{what}: {code} instead of {codes:?}: {}",
        answer.text()
    );
    let wanted = status_of(code);
    assert_eq!(answer.status, wanted, "{what}: {code}");
    let body = answer.json();
    // Anthropic's form has the text, and a type of its own.
    if body["type"] != "error" {
        assert_eq!(body["error"]["code"], code, "{what}");
        assert_eq!(body["error"]["type"], "bursar_error", "{what}");
        assert_eq!(body["detail"], body["error"]["message"], "{what}");
    }
    let detail = body["error"]["message"].as_str().expect("a text");
    assert!(detail.len() > 20, "{what}: {detail}");
    assert!(!answer.text().contains(KEY), "{what}: the key");
    assert_eq!(
        answer.header("content-type"),
        Some("application/json"),
        "{what}"
    );
    assert!(
        answer
            .header("x-bursar-entry")
            .is_some_and(|id| id.len() == 36),
        "{what}"
    );
    let retry = if code == "connections_full" {
        None
    } else {
        Some("false")
    };
    assert_eq!(answer.header("x-should-retry"), retry, "{what}");
    assert_eq!(
        answer.header("retry-after").is_some(),
        retry.is_none(),
        "{what}"
    );
    assert_no_cors(answer, what);
}

fn assert_no_cors(answer: &Answer, what: &str) {
    let cors = answer
        .headers
        .iter()
        .find(|(name, _)| name.starts_with("access-control-"));
    assert!(cors.is_none(), "{what}: {cors:?}");
}

fn status_of(code: &str) -> u16 {
    match code {
        "head_malformed" | "path_refused" | "header_refused" | "length_refused" | "body_broken" => {
            400
        }
        "host_refused" | "origin_refused" | "site_refused" | "preflight_refused" => 403,
        "route_unknown"
        | "responses_unsupported"
        | "completions_unsupported"
        | "messages_elsewhere"
        | "count_tokens_unsupported"
        | "realtime_unsupported"
        | "base_path_missing"
        | "base_path_doubled"
        | "other_lane" => 404,
        "method_refused" => 405,
        "head_too_slow" | "body_too_slow" => 408,
        "body_too_large" => 413,
        "content_type_refused" | "content_coding_refused" => 415,
        "head_too_large" => 431,
        "connections_full" => 503,
        _ => panic!("{code} is no code of the door"),
    }
}

/// A GET of a free route with these header lines (each with its CRLF).
fn get(path: &str, headers: &str) -> String {
    format!("GET {path} HTTP/1.1\r\n{headers}\r\n")
}

/// A chat request with these headers added.
fn post(headers: &[(&str, &str)]) -> String {
    request("POST", "/v1/chat/completions", headers, &chat("hello"))
}

#[tokio::test]
async fn a_json_call_is_relayed_and_its_receipt_is_in_the_ledger() {
    let sandbox = Sandbox::start().await;
    let bursar = Bursar::before(&sandbox.url()).await;
    let answer = bursar
        .post("/v1/chat/completions", &chat("What is 2 + 3?"))
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let billed: u64 = answer
        .header("x-service-billed")
        .expect("a receipt")
        .parse()
        .expect("an amount");
    let entries = bursar.settled(1).await;
    assert_eq!(entries.len(), 1);
    assert_eq!(
        entries[0].billed_micro_usd.map(|billed| billed.get()),
        Some(billed)
    );
    assert_eq!(
        answer.header("x-bursar-entry"),
        Some(entries[0].id.0.to_string().as_str())
    );
    assert_eq!(sandbox.debited().await, billed);
}

#[tokio::test]
async fn a_unix_socket_is_the_same_door() {
    let door = Door::open().await;
    let answer = Wire::unix(&door.bursar.socket)
        .await
        .get("/v1/nothing")
        .await;
    assert_refusal(&answer, &["route_unknown"], "a socket");
    let mut wire = Wire::unix(&door.bursar.socket).await;
    wire.send(post(&[("Origin", "https://evil.example")])).await;
    assert_refusal(&wire.answer().await, &["origin_refused"], "a socket");
    door.assert_untouched("a socket");
    door.origin.push(Step::Answer(billed(5)));
    let answer = Wire::unix(&door.bursar.socket)
        .await
        .post("/v1/chat/completions", &chat("x"))
        .await;
    assert_eq!(answer.status, 200);
}

#[test]
fn only_loopback_addresses_are_listened_on() {
    use bursar::config::{Config, Env, Overrides};
    let load = |address: &str| {
        let overrides = Overrides {
            upstream: Some("http://127.0.0.1:9".to_owned()),
            state_dir: Some("/nowhere".into()),
            listen: vec![address.to_owned()],
            ..Overrides::default()
        };
        let env = Env::from_pairs([("BURSAR_API_KEY", KEY)]);
        Config::load(&overrides, &env).map_err(|errors| errors.to_string())
    };
    for address in [
        "127.0.0.1:8327",
        "[::1]:8327",
        "127.0.0.9:1",
        "[::ffff:127.0.0.1]:8327",
    ] {
        assert!(
            load(address).is_ok(),
            "{address}: {:?}",
            load(address).err()
        );
    }
    for address in [
        "0.0.0.0:8327",
        "[::]:8327",
        "192.168.1.5:8327",
        "10.0.0.1:80",
        "[fe80::1]:8327",
        ":8327",
        "localhost",
        "*:8327",
    ] {
        let error = load(address).map(|_| ()).expect_err(address);
        assert!(error.contains("--listen"), "{address}: {error}");
    }
    let error = load("0.0.0.0:8327")
        .map(|_| ())
        .expect_err("an address of all");
    assert!(error.contains("not a loopback address"), "{error}");
}
