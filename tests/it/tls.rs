//! The connection to the service: TLS, HTTP/1.1 and HTTP/2, and what bursar does when the service
//! cannot be trusted.
//!
//! Promise: a server with an invalid certificate gets no byte of a request, least of all the key; a
//! request that the service did not take is sent again, one that it may have taken is not.

pub mod certs;
pub mod front;
pub mod http2;
mod trust;

use bursar::ledger::entry::State;
use h2::Reason;

use self::certs::{Authority, NOW};
use self::front::Front;
use self::http2::Reply;
use crate::support::origin::{billed, chunk, json, last_chunk, stream_head};
use crate::support::wire::request;
use crate::support::{Answer, Bursar, KEY, Origin, Step, chat, chat_stream, eventually};

/// bursar that trusts this authority, before `url`.
async fn bursar_trusting(authority: &Authority, url: &str) -> (Bursar, tempfile::TempDir) {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("ca.pem");
    std::fs::write(&file, &authority.pem).expect("the certificate is written");
    let lines = format!("[upstream]\nca_file = {:?}\n", file.display().to_string());
    (Bursar::with(url, &lines).await, directory)
}

/// A service with a good certificate, and bursar before it.
struct Set {
    front: Front,
    bursar: Bursar,
    _directory: tempfile::TempDir,
}

impl Set {
    async fn speaking(protocols: &[&str]) -> Self {
        let authority = Authority::new("tests");
        let identity = authority.signs(&["localhost"], &NOW);
        let front = Front::start(identity.server(protocols)).await;
        let (bursar, directory) = bursar_trusting(&authority, &front.url()).await;
        Self {
            front,
            bursar,
            _directory: directory,
        }
    }
}

const USAGE: &str = r#"{"id":"c1","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}"#;

#[tokio::test]
async fn http1_over_tls_carries_a_json_answer_and_its_receipt() {
    for protocols in [&["http/1.1"][..], &[]] {
        let set = Set::speaking(protocols).await;
        set.front.origin.push(Step::Answer(billed(41)));
        let answer = set.bursar.post("/v1/chat/completions", &chat("x")).await;
        assert_eq!(
            (answer.status, answer.header("x-service-billed")),
            (200, Some("41"))
        );
        assert_eq!(
            set.bursar.settled(1).await[0]
                .billed_micro_usd
                .map(|billed| billed.get()),
            Some(41)
        );
        let received = &set.front.origin.received()[0];
        assert_eq!(
            received.header("authorization"),
            Some(format!("Bearer {KEY}").as_str())
        );
        let host = format!("localhost:{}", set.front.address.port());
        assert_eq!(received.header("host"), Some(host.as_str()));
        let protocol = protocols.first().map(|name| (*name).to_owned());
        assert_eq!(
            set.front.greetings(),
            [(Some("localhost".to_owned()), protocol)]
        );
    }
}

#[tokio::test]
async fn a_certificate_for_an_address_holds_for_that_address() {
    let authority = Authority::new("tests");
    let front = Front::start(authority.signs(&["127.0.0.1"], &NOW).server(&["http/1.1"])).await;
    let (bursar, _directory) =
        bursar_trusting(&authority, &format!("https://{}", front.address)).await;
    front.origin.push(Step::Answer(billed(1)));
    assert_eq!(
        bursar.post("/v1/chat/completions", &chat("x")).await.status,
        200
    );
}

#[tokio::test]
async fn http1_over_tls_streams_chunk_by_chunk() {
    let set = Set::speaking(&["http/1.1"]).await;
    let events = [
        "data: {\"n\":1}\n\n",
        "data: {\"n\":2}\n\n",
        ": service-billed-micro-usd 5\n\ndata: [DONE]\n\n",
    ];
    let mut pieces = vec![[stream_head(), chunk(events[0])].concat(), chunk(events[1])];
    pieces.push([chunk(events[2]), last_chunk()].concat());
    set.front.origin.push(Step::Pieces(pieces));
    let origin = &set.front.origin;
    stream_on_cue(&set.bursar, &events, || origin.go()).await;
}

/// Requests a stream and takes each event before the next is released.
async fn stream_on_cue(bursar: &Bursar, events: &[&str], go: impl Fn()) {
    let mut wire = bursar.connect().await;
    wire.send(request(
        "POST",
        "/v1/chat/completions",
        &[],
        &chat_stream("x"),
    ))
    .await;
    go();
    let mut answer = wire.head().await;
    assert_eq!(answer.status, 200);
    let mut text = String::new();
    for (at, event) in events.iter().enumerate() {
        let wanted = text.len() + event.len();
        while text.len() < wanted {
            let piece = wire.chunk(&mut answer).await.expect("a chunk");
            assert!(!piece.is_empty(), "the stream ended early, after {text:?}");
            text.push_str(&String::from_utf8(piece).expect("text"));
        }
        assert!(text.ends_with(event), "{text:?}");
        if at + 1 < events.len() {
            go();
        }
    }
    assert_eq!(wire.chunk(&mut answer).await, Some(Vec::new()));
    assert_eq!(text, events.concat());
    let entries = bursar.settled(1).await;
    assert_eq!(
        entries[0].billed_micro_usd.map(|billed| billed.get()),
        Some(5)
    );
}

#[tokio::test]
async fn http1_over_tls_retries_with_the_same_megabyte_on_the_same_connection() {
    let set = Set::speaking(&["http/1.1"]).await;
    let busy = || Step::Answer(json(503, &[], "{\"detail\":\"later\"}"));
    for step in [busy(), busy(), Step::Answer(billed(9))] {
        set.front.origin.push(step);
    }
    let body = chat(&"m".repeat(1_000_000));
    let answer = set.bursar.post("/v1/chat/completions", &body).await;
    assert_eq!(
        (answer.status, answer.header("x-service-billed")),
        (200, Some("9"))
    );
    let received = set.front.origin.received();
    assert_eq!(received.len(), 3);
    let key = received[0].header("idempotency-key").expect("a key");
    for attempt in &received {
        assert_eq!(attempt.body, body.as_bytes());
        assert_eq!(attempt.header("idempotency-key"), Some(key));
        assert_eq!(attempt.connection, 0);
    }
    assert_eq!(set.front.accepted(), 1);
}

#[tokio::test]
async fn http2_carries_a_json_answer_and_its_receipt() {
    let set = Set::speaking(&["h2", "http/1.1"]).await;
    set.front.http2.push(Reply::Json(
        200,
        &[
            ("x-service-billed", "42"),
            ("x-service-served-by", "specialist"),
        ],
        USAGE,
    ));
    let own = [
        ("Authorization", "Bearer mine"),
        ("Connection", "keep-alive, x-hop"),
        ("X-Hop", "1"),
        ("TE", "trailers"),
        ("X-Kept", "2"),
    ];
    let mut wire = set.bursar.connect().await;
    wire.send(request(
        "POST",
        "/v1/chat/completions?a=b",
        &own,
        &chat("x"),
    ))
    .await;
    let answer = wire.answer().await;
    assert_eq!(
        (answer.status, answer.header("x-service-billed")),
        (200, Some("42"))
    );
    assert_eq!(answer.text(), USAGE);
    assert_eq!(
        set.front.greetings(),
        [(Some("localhost".to_owned()), Some("h2".to_owned()))]
    );

    let came = &set.front.http2.came()[0];
    let port = set.front.address.port();
    assert_eq!(
        (came.method.as_str(), came.uri.as_str()),
        (
            "POST",
            format!("https://localhost:{port}/v1/chat/completions?a=b").as_str()
        )
    );
    assert_eq!(came.body, chat("x").as_bytes());
    let sent = |name: &str| {
        came.headers
            .get(name)
            .map(|value| value.to_str().expect("text").to_owned())
    };
    assert_eq!(sent("authorization"), Some(format!("Bearer {KEY}")));
    assert_eq!(sent("accept-encoding").as_deref(), Some("identity"));
    assert_eq!(sent("x-kept").as_deref(), Some("2"));
    assert!(sent("idempotency-key").is_some());
    for name in ["host", "connection", "x-hop", "te", "transfer-encoding"] {
        assert_eq!(sent(name), None, "{name}");
    }
    let entries = set.bursar.settled(1).await;
    assert_eq!(
        entries[0].billed_micro_usd.map(|billed| billed.get()),
        Some(42)
    );

    // A request without a body, and one connection for both.
    set.front.http2.push(Reply::Json(200, &[], "{\"data\":[]}"));
    let answer = set.bursar.connect().await.get("/v1/models").await;
    assert_eq!(
        (answer.status, answer.text().as_str()),
        (200, "{\"data\":[]}")
    );
    assert_eq!(set.front.accepted(), 1);
}

#[tokio::test]
async fn http2_streams_chunk_by_chunk() {
    let set = Set::speaking(&["h2"]).await;
    let events = [
        "data: {\"n\":1}\n\n",
        "data: {\"n\":2}\n\n",
        ": service-billed-micro-usd 5\n\ndata: [DONE]\n\n",
    ];
    set.front.http2.push(Reply::Events(events.to_vec()));
    let http2 = &set.front.http2;
    stream_on_cue(&set.bursar, &events, || http2.go()).await;
}

#[tokio::test]
async fn http2_retries_with_the_same_megabyte_on_the_same_connection() {
    let set = Set::speaking(&["h2"]).await;
    let busy = || Reply::Json(503, &[], "{\"detail\":\"later\"}");
    for reply in [
        busy(),
        busy(),
        Reply::Json(200, &[("x-service-billed", "9")], USAGE),
    ] {
        set.front.http2.push(reply);
    }
    let body = chat(&"m".repeat(1_000_000));
    let answer = set.bursar.post("/v1/chat/completions", &body).await;
    assert_eq!(
        (answer.status, answer.header("x-service-billed")),
        (200, Some("9"))
    );
    let came = set.front.http2.came();
    assert_eq!(came.len(), 3);
    for attempt in &came {
        assert_eq!(attempt.body, body.as_bytes());
        assert_eq!(
            attempt.headers.get("idempotency-key"),
            came[0].headers.get("idempotency-key")
        );
        assert_eq!(attempt.connection, 0);
    }
    assert_eq!(set.front.accepted(), 1);
}

/// An unkeyed and metered request: sent again only if it surely did not run.
fn speech() -> String {
    request("POST", "/v1/audio/speech", &[], "{\"text\":\"hello\"}")
}

async fn ask(bursar: &Bursar, bytes: &str) -> Answer {
    let mut wire = bursar.connect().await;
    wire.send(bytes).await;
    wire.answer().await
}

#[tokio::test]
async fn a_refused_stream_was_not_sent_and_is_sent_again_on_every_route() {
    for bytes in [
        speech(),
        request("POST", "/v1/chat/completions", &[], &chat("x")),
    ] {
        let set = Set::speaking(&["h2"]).await;
        set.front.http2.push(Reply::Reset(Reason::REFUSED_STREAM));
        set.front.http2.push(Reply::Json(
            200,
            &[("x-service-billed", "3")],
            "{\"duration_s\":1.5}",
        ));
        let answer = ask(&set.bursar, &bytes).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(set.front.http2.came().len(), 2);
        let entry = &set.bursar.settled(1).await[0];
        assert!(
            !matches!(entry.state, State::InDoubt { .. }),
            "{:?}",
            entry.state
        );
    }
}

#[tokio::test]
async fn a_stream_above_a_goaway_was_not_sent_and_is_sent_again_on_every_route() {
    for bytes in [
        speech(),
        request("POST", "/v1/chat/completions", &[], &chat("x")),
    ] {
        let set = Set::speaking(&["h2"]).await;
        set.front.http2.next_goes_away(0, 0);
        set.front.http2.push(Reply::Json(
            200,
            &[("x-service-billed", "3")],
            "{\"duration_s\":1.5}",
        ));
        let answer = ask(&set.bursar, &bytes).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(
            (
                *set.front.http2.left_behind.lock(),
                set.front.http2.came().len()
            ),
            (1, 1)
        );
        assert_eq!(set.front.accepted(), 2);
        let entry = &set.bursar.settled(1).await[0];
        assert!(
            !matches!(entry.state, State::InDoubt { .. }),
            "{:?}",
            entry.state
        );
    }
}

#[tokio::test]
async fn a_stream_that_a_goaway_covers_may_have_run_and_is_not_sent_again_without_a_key() {
    // NO_ERROR, then the end without an answer; the same with an error.
    for error in [0, 2] {
        let set = Set::speaking(&["h2"]).await;
        set.front.http2.next_goes_away(1, error);
        let answer = ask(&set.bursar, &speech()).await;
        assert_eq!(answer.status, 502, "{}", answer.text());
        assert_eq!(answer.code(), Some("outcome_unknown"));
        assert_eq!((set.front.accepted(), set.front.http2.came().len()), (1, 0));
        let entry = &set.bursar.settled(1).await[0];
        assert!(
            matches!(entry.state, State::InDoubt { .. }),
            "{:?}",
            entry.state
        );

        // With a key the repeat is the same purchase.
        let set = Set::speaking(&["h2"]).await;
        set.front.http2.next_goes_away(1, error);
        set.front
            .http2
            .push(Reply::Json(200, &[("x-service-billed", "3")], USAGE));
        let answer = ask(
            &set.bursar,
            &request("POST", "/v1/chat/completions", &[], &chat("x")),
        )
        .await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
}

#[tokio::test]
async fn a_stream_reset_for_another_reason_may_have_run() {
    for reason in [
        Reason::INTERNAL_ERROR,
        Reason::CANCEL,
        Reason::NO_ERROR,
        Reason::ENHANCE_YOUR_CALM,
    ] {
        let set = Set::speaking(&["h2"]).await;
        set.front.http2.push(Reply::Reset(reason));
        let answer = ask(&set.bursar, &speech()).await;
        assert_eq!(answer.status, 502, "{reason:?}: {}", answer.text());
        assert_eq!(set.front.http2.came().len(), 1, "{reason:?}");
        let entry = &set.bursar.settled(1).await[0];
        assert!(
            matches!(entry.state, State::InDoubt { .. }),
            "{reason:?}: {:?}",
            entry.state
        );
    }
}

#[tokio::test]
async fn localhost_is_resolved_and_tried_address_by_address() {
    // The origin listens on IPv4 only; `localhost` is often ::1 first.
    let origin = Origin::start([Step::Answer(billed(2))]).await;
    let url = format!("http://localhost:{}", origin.address.port());
    let bursar = Bursar::before(&url).await;
    let answer = bursar.post("/v1/chat/completions", &chat("x")).await;
    assert_eq!(
        (answer.status, answer.header("x-service-billed")),
        (200, Some("2")),
        "{}",
        answer.text()
    );
    let host = format!("localhost:{}", origin.address.port());
    assert_eq!(origin.received()[0].header("host"), Some(host.as_str()));
}

#[tokio::test]
async fn a_name_that_does_not_resolve_is_reported_and_nothing_is_in_doubt() {
    let bursar = Bursar::before("https://no-such-name.invalid").await;
    let answer = bursar.post("/v1/chat/completions", &chat("x")).await;
    assert_eq!(
        (answer.status, answer.code()),
        (502, Some("upstream_name")),
        "{}",
        answer.text()
    );
    let entry = &bursar.settled(1).await[0];
    assert!(matches!(entry.state, State::Failed), "{:?}", entry.state);
}

/// A connection for each unkeyed request (rule I7) costs no whole handshake.
#[tokio::test]
async fn a_next_connection_goes_on_with_the_session_of_an_earlier_one() {
    let set = Set::speaking(&["http/1.1"]).await;
    for _ in 0..3 {
        set.front
            .origin
            .push(Step::Answer(json(200, &[], "{\"duration_s\":1.0}")));
        let answer = ask(&set.bursar, &speech()).await;
        assert_eq!(answer.status, 200);
    }
    assert_eq!((set.front.accepted(), set.front.resumed()), (3, 2));
}

/// Each has a connection of its own (rule I7), which is not used again.
#[tokio::test]
async fn connections_of_unkeyed_requests_over_http2_are_closed() {
    let set = Set::speaking(&["h2"]).await;
    for n in 0..20 {
        let reply = Reply::Json(200, &[], "{\"duration_s\":1.0}");
        set.front.http2.push(reply);
        let body = format!("{{\"text\":\"{n}\"}}");
        let answer = set.bursar.post("/v1/audio/speech", &body).await;
        assert_eq!(answer.status, 200);
    }
    assert_eq!(set.front.accepted(), 20);
    eventually("connections to close", || async {
        (set.front.http2_open() <= 2).then_some(())
    })
    .await;
}
