//! Two requests in one: framings that two parsers may read differently. The second request never
//! reaches the service, and no second answer comes.

use futures_util::future::join_all;

use super::Door;
use crate::support::origin::billed;
use crate::support::{Step, chat};

/// A complete request that spends, as a body would hide it.
fn hidden() -> String {
    let body = chat("hidden");
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Sends a head with a body in which a second request hides.
async fn refuses_with_hidden(door: &Door, head: &str, body: &str, codes: &[&str]) {
    let bytes = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{head}\r\n{body}{}",
        hidden()
    );
    let mut wire = door.bursar.connect().await;
    wire.send(&bytes).await;
    let answer = wire.answer().await;
    super::assert_refusal(&answer, codes, head);
    assert!(wire.ends().await, "{head:?}: a second answer came");
    door.assert_untouched(head);
}

#[tokio::test]
async fn an_unclear_length_is_refused_and_the_hidden_request_with_it() {
    let door = Door::open().await;
    let unclear = ["length_refused", "head_malformed"];
    let chunk_of_it = format!("{:x}\r\n", hidden().len());
    let mut cases = Vec::new();
    for head in [
        // CL.TE, TE.CL, and every spelling of TE that one side may overlook.
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked, gzip\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: chunked, chunked\r\n",
        "Transfer-Encoding: identity\r\nContent-Length: 0\r\n",
        "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: \"chunked\"\r\n",
        "Transfer-Encoding: chunked;q=1\r\n",
        "Transfer-Encoding:\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding: \x0bchunked\r\n",
        "Transfer-Encoding: chunked\x0c\r\n",
        "Transfer-Encoding:\r\n chunked\r\n",
        "X: y\r\n Transfer-Encoding: chunked\r\n",
        "Content-Length: 5\r\nTransfer_Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        // Content-Length: twice, lists, signs, other digits, overflow.
        "Content-Length: 0\r\nContent-Length: 0\r\n",
        "Content-Length: 0\r\nContent-Length: 44\r\n",
        "Content-Length: 44\r\nContent-Length: 0\r\n",
        "Content-Length: 0, 0\r\n",
        "Content-Length: 0, 44\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: -5\r\n",
        "Content-Length: 0x5\r\n",
        "Content-Length: 5.0\r\n",
        "Content-Length: 5 5\r\n",
        "Content-Length: 1e1\r\n",
        "Content-Length: \r\n",
        "Content-Length: five\r\n",
        "Content-Length: \u{665}\r\n",
        "Content-Length: 18446744073709551616\r\n",
        "Content-Length: 18446744073709551621\r\n",
        "Content-Length: 9223372036854775808\r\n",
        "Content-Length : 5\r\n",
        "Content-Length:\r\n 5\r\n",
        // Line ends and bytes.
        "Content-Length: 5\n",
        "X: y\nContent-Length: 5\r\n",
        "X: y\rContent-Length: 5\r\n",
        "X: y\r\r\nContent-Length: 5\r\n",
        "X: y\0\r\nContent-Length: 5\r\n",
        "X\0: y\r\nContent-Length: 5\r\n",
        "X: y\r\n\tz\r\n",
        "X\r\n",
        ": y\r\n",
        "X Y: z\r\n",
        "X(: z\r\n",
        "\u{e9}: z\r\n",
        // Other protocols.
        "Upgrade: websocket\r\nConnection: Upgrade\r\nContent-Length: 0\r\n",
        "Upgrade: h2c, websocket\r\nContent-Length: 0\r\n",
    ] {
        let codes: &[&str] = if head.contains("Upgrade") {
            &["header_refused"]
        } else {
            &unclear
        };
        for body in ["", "0\r\n\r\n", &chunk_of_it] {
            cases.push(refuses_with_hidden(&door, head, body, codes));
        }
    }
    // All at once: bursar waits half a second for whatever else comes on such a connection.
    join_all(cases).await;
    // Bare line feeds end the head for one parser and not for another.
    for bytes in [
        format!(
            "POST /v1/chat/completions HTTP/1.1\nHost: localhost\nContent-Type: application/json\nContent-Length: 0\n\n{}",
            hidden()
        ),
        format!(
            "GET /v1/models HTTP/1.1\r\nHost: localhost\r\nX: y\n\n{}",
            hidden()
        ),
        format!(
            "GET /v1/models HTTP/1.1\r\nHost: localhost\r\nX: y\n\r\n{}",
            hidden()
        ),
        format!(
            "GET /v1/mod\u{e9}ls HTTP/1.1\r\nHost: localhost\r\nX: y\n\n{}",
            hidden()
        ),
        format!("GET /v1/models HTTP/1.1\rHost: localhost\r\r{}", hidden()),
    ] {
        let mut wire = door.bursar.connect().await;
        wire.send(&bytes).await;
        super::assert_refusal(
            &wire.answer().await,
            &["head_malformed", "path_refused", "route_unknown"],
            &bytes,
        );
        assert!(wire.ends().await, "a second answer came: {bytes:?}");
        door.assert_untouched(&bytes);
    }
}

#[tokio::test]
async fn after_a_refusal_the_connection_ends_and_nothing_of_it_is_read_as_a_request() {
    let door = Door::open().await;
    let typed = "Content-Type: application/json\r\n";
    for (first, codes) in [
        (
            "GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(),
            ["route_unknown"],
        ),
        (
            "GET /v1/models HTTP/1.1\r\nHost: evil.example\r\n\r\n".to_owned(),
            ["host_refused"],
        ),
        (
            "POST /v1/models HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nbody"
                .to_owned(),
            ["method_refused"],
        ),
        (
            format!(
                "POST /v1/x HTTP/1.1\r\nHost: localhost\r\n{typed}Transfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n"
            ),
            ["route_unknown"],
        ),
        (
            format!(
                "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n{typed}Transfer-Encoding: chunked\r\n\r\nzz\r\n"
            ),
            ["body_broken"],
        ),
        // A body that the door does not expect: it is neither relayed nor read as the next request.
        (
            format!(
                "GET /v1/models HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n",
                hidden().len()
            ),
            ["content_type_refused"],
        ),
    ] {
        let mut wire = door.bursar.connect().await;
        wire.send(format!("{first}{}", hidden())).await;
        super::assert_refusal(&wire.answer().await, &codes, &first);
        assert!(wire.ends().await, "a second answer came: {first:?}");
        door.assert_untouched(&first);
    }
}

#[tokio::test]
async fn two_whole_requests_on_one_connection_are_two_requests() {
    let door = Door::open().await;
    door.origin.push(Step::Answer(billed(3)));
    door.origin.push(Step::Answer(billed(4)));
    let mut wire = door.bursar.connect().await;
    wire.send(format!(
        "{}{}",
        hidden(),
        hidden().replace("hidden", "second")
    ))
    .await;
    for amount in ["3", "4"] {
        let answer = wire.answer().await;
        assert_eq!(
            (answer.status, answer.header("x-service-billed")),
            (200, Some(amount))
        );
    }
    let received = door.origin.received();
    assert_eq!(received.len(), 2);
    assert_eq!(received[1].body, chat("second").as_bytes());
    assert_eq!(door.bursar.settled(2).await.len(), 2);
}

#[tokio::test]
async fn an_offer_of_http2_is_ignored() {
    let door = Door::open().await;
    let offer = "GET /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n";
    door.passes(offer).await;
    let received = &door.origin.received()[0];
    assert_eq!(received.header("upgrade"), None);
    assert_eq!(received.header("http2-settings"), None);
}
