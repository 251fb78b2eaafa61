//! Floods, drips and numbers: how large and how slow a head may be, and how many may knock.

use std::time::Duration;

use super::{Door, assert_refusal, get, post};
use crate::support::origin::json;
use crate::support::{Bursar, Origin, Step, eventually};

#[tokio::test]
async fn a_head_of_100_fields_and_64_kib_passes_and_one_more_of_either_does_not() {
    let door = Door::open().await;
    let fields = |count: usize| {
        let more: String = (1..count).map(|at| format!("X-{at}: y\r\n")).collect();
        get("/v1/models", &format!("Host: localhost\r\n{more}"))
    };
    let sized = |bytes: usize| {
        let bare = get("/v1/models", "Host: localhost\r\nX: \r\n").len();
        get(
            "/v1/models",
            &format!("Host: localhost\r\nX: {}\r\n", "y".repeat(bytes - bare)),
        )
    };
    assert_eq!(sized(65_536).len(), 65_536);
    let too_large = ["head_too_large"];
    for head in [
        fields(101),
        fields(257),
        fields(2_000),
        sized(65_537),
        sized(200_000),
    ] {
        door.refuses(head, &too_large).await;
    }
    door.passes(fields(100)).await;
    door.passes(sized(65_536)).await;
}

#[tokio::test]
async fn a_head_without_end_is_cut_off_early() {
    let door = Door::open().await;
    // A field without an end, fields without an end, a request line without an end.
    let value = format!(
        "GET /v1/models HTTP/1.1\r\nHost: localhost\r\nX: {}",
        "y".repeat(1024)
    );
    let piece = "y".repeat(16 * 1024);
    let fields = "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n".to_owned();
    let field = "X-Flood: yyyyyyyyyyyyyyyyyyyyyyyyyy\r\n".repeat(400);
    for (start, more) in [
        (value, piece.clone()),
        (fields, field),
        ("GET /".to_owned(), piece),
    ] {
        let mut wire = door.bursar.connect().await;
        wire.send(&start).await;
        let mut sent = start.len();
        // Far more than a head may have: bursar stops reading, or refuses it, long before.
        while sent < 8 * 1024 * 1024 && wire.try_send(&more).await {
            sent += more.len();
        }
        let answer = wire.answer().await;
        if answer.status != 0 {
            assert_refusal(&answer, &["head_too_large"], "a flood");
        }
        door.assert_untouched("a flood");
    }
    door.passes(get("/v1/models", "Host: localhost\r\n")).await;
}

#[tokio::test]
async fn a_head_that_is_too_large_already_is_not_waited_for() {
    let door = Door::open().await;
    let mut wire = door.bursar.connect().await;
    let began = tokio::time::Instant::now();
    // 66 KiB, and no end in sight: the parser would gather a megabyte, and then wait.
    wire.send(format!(
        "GET /v1/models HTTP/1.1\r\nHost: localhost\r\nX: {}",
        "y".repeat(66 * 1024)
    ))
    .await;
    assert_refusal(
        &wire.answer().await,
        &["head_too_large"],
        "66 KiB of a head",
    );
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
    door.assert_untouched("66 KiB of a head");
    // The next head of a kept connection has its own allowance; a body has none.
    let mut wire = door.bursar.connect().await;
    for _ in 0..3 {
        door.origin.push(Step::Answer(json(200, &[], "{}")));
        let body = crate::support::chat(&"y".repeat(300_000));
        wire.send(crate::support::wire::request(
            "POST",
            "/v1/tasks/match",
            &[],
            &body,
        ))
        .await;
        assert_eq!(wire.answer().await.status, 200);
        door.origin.push(Step::Answer(json(200, &[], "{}")));
        wire.send(get(
            "/v1/models",
            &format!("Host: localhost\r\nX: {}\r\n", "y".repeat(60_000)),
        ))
        .await;
        assert_eq!(wire.answer().await.status, 200);
    }
}

#[tokio::test]
async fn a_head_that_drips_is_answered_408_after_its_deadline_and_a_quick_one_is_not() {
    let door = Door::open().await;
    let mut wire = door.bursar.connect().await;
    let began = tokio::time::Instant::now();
    let bytes = get(
        "/v1/models",
        "Host: localhost\r\nX-Slow: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n",
    );
    // A byte every 200 ms never runs into a timeout between bytes.
    let mut drip = bytes.bytes();
    let answer = loop {
        let byte = drip
            .next()
            .expect("the deadline comes before the head's end");
        wire.try_send([byte]).await;
        match tokio::time::timeout(Duration::from_millis(200), wire.answer()).await {
            Ok(answer) => break answer,
            Err(_) => assert!(began.elapsed() < Duration::from_secs(15), "no answer"),
        }
    };
    let took = began.elapsed();
    assert_refusal(&answer, &["head_too_slow"], "a drip");
    assert!(took >= Duration::from_secs(9), "{took:?}");
    assert!(took < Duration::from_secs(14), "{took:?}");
    assert!(wire.ends().await);
    door.assert_untouched("a drip");
}

#[tokio::test]
async fn an_idle_connection_is_not_a_slow_head() {
    let door = Door::open().await;
    let mut wire = door.bursar.connect().await;
    tokio::time::sleep(Duration::from_millis(10_500)).await;
    door.origin.push(Step::Answer(json(200, &[], "{}")));
    wire.send(get("/v1/models", "Host: localhost\r\n")).await;
    assert_eq!(wire.answer().await.status, 200);
}

#[tokio::test]
async fn a_connection_above_the_limit_is_answered_and_comes_in_when_another_leaves() {
    let door = Door::open().await;
    let mut open = Vec::new();
    for _ in 0..640 {
        // It is being served: it gives way to no connection.
        door.origin.push(Step::Pieces(vec![json(200, &[], "{}")]));
        let mut wire = door.bursar.connect().await;
        wire.send(get("/v1/models", "Host: localhost\r\n")).await;
        open.push(wire);
    }
    eventually("all of them at the service", || async {
        (door.origin.received().len() == 640).then_some(())
    })
    .await;
    let answer = door.bursar.connect().await.answer().await;
    assert_eq!(
        (answer.status, answer.code()),
        (503, Some("connections_full")),
        "{answer:?}"
    );
    assert!(answer.header("retry-after").is_some());
    assert_eq!(answer.header("x-should-retry"), None);
    assert_eq!(answer.json()["error"]["code"], "connections_full");
    // A client that reads only when it has sent everything reads the answer, not a reset.
    for attempt in 0..10 {
        let mut wire = door.bursar.connect().await;
        let body = crate::support::chat(&"y".repeat(1_000_000));
        let bytes = crate::support::wire::request("POST", "/v1/chat/completions", &[], &body);
        assert!(
            wire.try_send(bytes).await,
            "{attempt}: the request was not taken in"
        );
        assert_refusal(&wire.answer().await, &["connections_full"], "no place");
    }

    for _ in 0..640 {
        door.origin.go();
    }
    drop(open.pop());
    door.origin.push(Step::Answer(json(200, &[], "{}")));
    let answer = eventually("a place to become free", || async {
        let answer = door.ask(get("/v1/models", "Host: localhost\r\n")).await;
        (answer.status == 200).then_some(answer)
    })
    .await;
    assert!(answer.complete);
    drop(open);
}

#[tokio::test]
async fn what_belongs_to_a_connection_or_to_a_browser_is_not_relayed() {
    let door = Door::open().await;
    door.origin.push(Step::Answer(json(
        200,
        &[
            ("X-Service-Billed", "7"),
            ("Set-Cookie", "a=b"),
            ("Alt-Svc", "h3=\":443\""),
            ("Clear-Site-Data", "\"*\""),
            ("Access-Control-Allow-Origin", "*"),
            ("Access-Control-Allow-Credentials", "true"),
            ("Location", "https://evil.example/"),
            ("Connection", "X-Hop"),
            ("X-Hop", "1"),
            ("X-Kept", "2"),
        ],
        "{}",
    )));
    // The app nominates away what a key is bound to, and sends a key of its own.
    let answer = door
        .ask(post(&[
            ("Authorization", "Bearer sk-of-the-app"),
            ("Proxy-Authorization", "Basic eDp5"),
            ("Cookie", "a=b"),
            ("Referer", "https://evil.example/"),
            (
                "Connection",
                "keep-alive, Idempotency-Key, authorization, x-service-session, x-hop",
            ),
            ("Idempotency-Key", "the-key"),
            ("X-Service-Session", "s-1"),
            ("X-Hop", "1"),
            ("TE", "trailers"),
            ("Accept-Encoding", "gzip, br"),
            ("X-Kept", "2"),
        ]))
        .await;
    assert_eq!(answer.status, 200);
    let received = &door.origin.received()[0];
    let sent = |name: &str| received.header(name);
    assert_eq!(
        sent("authorization"),
        Some(format!("Bearer {}", crate::support::KEY).as_str())
    );
    assert_eq!(sent("idempotency-key"), Some("the-key"));
    assert_eq!(sent("x-service-session"), Some("s-1"));
    assert_eq!(sent("accept-encoding"), Some("identity"));
    assert_eq!(sent("host"), Some(door.origin.address.to_string().as_str()));
    assert_eq!(sent("x-kept"), Some("2"));
    for name in ["proxy-authorization", "cookie", "referer", "x-hop", "te"] {
        assert_eq!(sent(name), None, "{name}");
    }
    assert!(!received.head.contains("sk-of-the-app"));
    super::assert_no_cors(&answer, "from the service");
    for name in [
        "set-cookie",
        "alt-svc",
        "clear-site-data",
        "location",
        "x-hop",
    ] {
        assert_eq!(answer.header(name), None, "{name}");
    }
    assert_eq!(answer.header("x-kept"), Some("2"));
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let door = Door::open().await;
    let target = crate::support::Origin::start([]).await;
    for status in [301, 302, 307, 308] {
        let location = format!("{}/v1/models", target.url());
        door.origin
            .push(Step::Answer(json(status, &[("Location", &location)], "{}")));
        let answer = door.ask(get("/v1/models", "Host: localhost\r\n")).await;
        assert_eq!((answer.status, answer.header("location")), (status, None));
    }
    assert_eq!(target.connections(), 0);
}

/// Also what RFC 3986 does not allow in a query, and clients send.
#[tokio::test]
async fn each_visible_byte_of_a_query_but_four_reaches_the_service_as_it_came() {
    let origin = Origin::always(Step::Answer(json(200, &[], "{}"))).await;
    let bursar = Bursar::before(&origin.url()).await;
    let mut relayed = 0;
    for byte in '!'..='~' {
        let target = format!("/v1/models?a={byte}b");
        let answer = bursar.connect().await.get(&target).await;
        if "\"#<>".contains(byte) {
            assert_eq!(answer.status, 400, "{target}: {}", answer.text());
            continue;
        }
        assert_eq!(answer.status, 200, "{target}: {}", answer.text());
        relayed += 1;
        let received = origin.received();
        assert_eq!(received.len(), relayed, "{target}");
        let head = &received[relayed - 1].head;
        let line = format!("GET {target} HTTP/1.1\r\n");
        assert!(head.starts_with(&line), "{target}: {head}");
    }
    assert_eq!(relayed, 90);
}

/// As of a client whose base URL begins with https://.
#[tokio::test]
async fn a_handshake_of_tls_is_told_that_this_port_speaks_plain_http() {
    let door = Door::open().await;
    // The beginning of a ClientHello, with a line end among its random bytes.
    let mut hello = vec![22, 3, 1, 0, 61, 1, 0, 0, 57, 3, 3];
    hello.extend_from_slice(b"a GET / HTTP/1.1\r\n\r\n bytes");
    let answer = door.refuses(hello, &["head_malformed"]).await;
    assert_eq!(answer.status, 400);
    let words = answer.text();
    for part in ["TLS", "plain HTTP", "http://"] {
        assert!(words.contains(part), "{part}: {words}");
    }
}
