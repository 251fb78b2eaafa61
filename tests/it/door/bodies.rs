//! Request bodies: chunked framing, lengths, sizes.

use super::{Door, assert_refusal};
use crate::support::origin::billed;
use crate::support::{Step, chat};

/// A chat request with a chunked body as it is written here.
fn chunked(body: &str) -> String {
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n{body}"
    )
}

#[tokio::test]
async fn a_chunked_body_is_relayed_as_its_bytes_or_not_at_all() {
    let door = Door::open().await;
    let json = chat("x");
    let (one, rest) = json.split_at(5);
    let n = rest.len();
    let clean: &[String] = &[
        format!("5\r\n{one}\r\n{n:x}\r\n{rest}\r\n0\r\n\r\n"),
        format!("05\r\n{one}\r\n{n:X}\r\n{rest}\r\n000\r\n\r\n"),
    ];
    for body in clean {
        door.passes(chunked(body)).await;
        let received = door.origin.received();
        let last = received.last().expect("a request");
        assert_eq!(last.body, json.as_bytes(), "{body:?}");
        assert_eq!(
            last.header("content-length"),
            Some(json.len().to_string().as_str())
        );
        assert_eq!(last.header("transfer-encoding"), None);
    }
    let endless_extension = format!("5;x={}\r\n{one}\r\n", "y".repeat(70_000));
    // Either refused, or read as the one body that every parser reads.
    let odd: &[(String, Option<&str>)] = &[
        (
            format!("5;a=b\r\n{one}\r\n{n:x};c=\"d;e\"\r\n{rest}\r\n0\r\n\r\n"),
            Some(&json),
        ),
        (
            format!("5 \r\n{one}\r\n{n:x}\r\n{rest}\r\n0\r\n\r\n"),
            Some(&json),
        ),
        (
            format!("5\r\n{one}\r\n{n:x}\r\n{rest}\r\n0\r\nX-Trailer: y\r\n\r\n"),
            Some(&json),
        ),
        (format!("zz\r\n{json}\r\n0\r\n\r\n"), None),
        // httparse treats a missing size as 0, and what follows as trailers.
        (format!("\r\n{json}\r\n0\r\n\r\n"), Some("")),
        (format!("-5\r\n{one}\r\n0\r\n\r\n"), None),
        (format!("+5\r\n{one}\r\n0\r\n\r\n"), None),
        (format!("0x5\r\n{one}\r\n0\r\n\r\n"), None),
        (format!("5_0\r\n{one}\r\n0\r\n\r\n"), None),
        (format!("FFFFFFFFFFFFFFFF\r\n{json}\r\n0\r\n\r\n"), None),
        (format!("FFFFFFFFFFFFFFFFF\r\n{json}\r\n0\r\n\r\n"), None),
        (format!("10000000000000005\r\n{one}\r\n0\r\n\r\n"), None),
        (format!("5\r\n{one}{n:x}\r\n{rest}\r\n0\r\n\r\n"), None),
        (format!("5\r\n{one}XX{n:x}\r\n{rest}\r\n0\r\n\r\n"), None),
        (format!("4\r\n{one}\r\n0\r\n\r\n"), None),
        (format!("5\n{one}\n0\n\n"), None),
        // And it ends an extension at CRLF only.
        (format!("5;a\nb\r\n{one}\r\n0\r\n\r\n"), Some(one)),
        (format!("5\r\r\n{one}\r\n0\r\n\r\n"), None),
        (endless_extension, None),
    ];
    for (body, read_as) in odd {
        let before = door.origin.received().len();
        door.origin.push(Step::Answer(billed(1)));
        let mut wire = door.bursar.connect().await;
        wire.try_send(chunked(body)).await;
        wire.half_close().await;
        let answer = wire.answer().await;
        let received = door.origin.received();
        let what = &body[..body.len().min(60)];
        if answer.status == 200 {
            let wanted = read_as.unwrap_or_else(|| panic!("came through: {what:?}"));
            assert_eq!(
                received.last().expect("a request").body,
                wanted.as_bytes(),
                "{what:?}"
            );
        } else {
            assert_refusal(
                &answer,
                &["body_broken", "length_refused", "body_too_large"],
                what,
            );
            assert_eq!(received.len(), before, "{what:?}: reached the origin");
        }
    }
}

/// Parsers differ on odd chunks (an extension with a line feed, a size that is missing), so nothing
/// that follows a chunked body is read as a request.
#[tokio::test]
async fn a_chunked_body_is_the_last_of_its_connection() {
    let door = Door::open().await;
    let json = chat("x");
    let n = json.len();
    let hidden =
        crate::support::wire::request("POST", "/v1/chat/completions", &[], &chat("hidden"));
    for body in [
        format!("{n:x}\r\n{json}\r\n0\r\n\r\n"),
        format!("{n:x};a\nb\r\n{json}\r\n0\r\n\r\n"),
        format!("{n:x};\n\r\n{json}\r\n0\r\n\r\n"),
        "\r\n\r\n".to_owned(),
        format!("{n:x}\r\n{json}\r\n0\r\nContent-Length: 5\r\n\r\n"),
        format!("{n:x}\r\n{json}\r\n0\r\nX: y\n\n"),
    ] {
        let before = door.origin.received().len();
        door.origin.push(Step::Answer(billed(1)));
        let mut wire = door.bursar.connect().await;
        wire.send(format!("{}{hidden}", chunked(&body))).await;
        let answer = wire.answer().await;
        assert!(matches!(answer.status, 200 | 400), "{body:?}: {answer:?}");
        if answer.status == 200 {
            assert_eq!(answer.header("connection"), Some("close"), "{body:?}");
        }
        assert!(wire.ends().await, "{body:?}: a second answer came");
        let received = door.origin.received();
        let hidden_came = received[before..]
            .iter()
            .any(|request| request.body == chat("hidden").as_bytes());
        assert!(!hidden_came, "{body:?}");
    }
}

#[tokio::test]
async fn a_client_that_closed_its_sending_half_gets_its_answer() {
    let door = Door::open().await;
    for at in 0..200 {
        let own = format!("key-{at}");
        door.origin.push(Step::Answer(billed(1)));
        let mut wire = door.bursar.connect().await;
        wire.send(super::post(&[("Idempotency-Key", &own)])).await;
        wire.half_close().await;
        let answer = wire.answer().await;
        assert_eq!(
            (answer.status, answer.complete),
            (200, true),
            "{at}: {answer:?}"
        );
        // Without a key of its own: the same request, bought again each time.
        door.origin.push(Step::Answer(billed(1)));
        let mut wire = door.bursar.connect().await;
        wire.send(super::post(&[])).await;
        wire.half_close().await;
        let answer = wire.answer().await;
        assert_eq!(
            (answer.status, answer.complete),
            (200, true),
            "{at}: {answer:?}"
        );
        let received = door.origin.received().len();
        assert_eq!(
            received,
            2 * (at + 1),
            "an answer that was delivered was given again"
        );
    }
}

#[tokio::test]
async fn a_body_that_ends_early_is_not_sent() {
    let door = Door::open().await;
    let json = chat("x");
    for bytes in [
        format!(
            "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{json}",
            json.len() + 1
        ),
        chunked(&format!("{:x}\r\n{json}", json.len())),
        chunked(&format!("{:x}\r\n{json}\r\n", json.len())),
        chunked(&format!("{:x}\r\n{json}\r\n0\r\n", json.len())),
        chunked(&format!("{:x}\r\n{json}\r\n0", json.len())),
    ] {
        let mut wire = door.bursar.connect().await;
        wire.send(&bytes).await;
        wire.half_close().await;
        assert_refusal(&wire.answer().await, &["body_broken"], &bytes);
        door.assert_untouched(&bytes);
    }
}

#[tokio::test]
async fn more_than_30_mb_is_refused_at_once_and_the_rest_is_taken_in() {
    let door = Door::open().await;
    let most = 30 * 1024 * 1024_usize;
    let head = |length: usize| {
        format!(
            "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        )
    };
    // Nothing of the body was sent, and the answer is there.
    for length in [most + 1, 999_999_999_999_999] {
        let mut wire = door.bursar.connect().await;
        wire.send(head(length)).await;
        assert_refusal(&wire.answer().await, &["body_too_large"], "a large body");
    }
    // A client that reads only after it has written everything still reads the answer.
    let mut wire = door.bursar.connect().await;
    wire.send(head(most + 1)).await;
    for _ in 0..30 {
        assert!(
            wire.try_send(vec![b' '; 1024 * 1024]).await,
            "the body was not drained"
        );
    }
    assert!(wire.try_send(" ").await, "the body was not drained");
    assert_refusal(&wire.answer().await, &["body_too_large"], "a large body");
    // A chunked one shows its size only on the way.
    let mut wire = door.bursar.connect().await;
    wire.send(chunked("")).await;
    let chunk = format!("100000\r\n{}\r\n", " ".repeat(1024 * 1024));
    for _ in 0..31 {
        wire.try_send(&chunk).await;
    }
    wire.try_send("0\r\n\r\n").await;
    assert_refusal(
        &wire.answer().await,
        &["body_too_large"],
        "a large chunked body",
    );
    door.assert_untouched("large bodies");
}

/// Small ones, those that are hashed while they arrive, and those that have memory of their own.
#[tokio::test]
async fn a_body_of_any_size_is_relayed_as_it_came_and_the_next_request_stands_behind_it() {
    let door = Door::open().await;
    // A body of 8 KiB draws on no memory but its connection's.
    let free = 8_192 - u32::try_from(chat("").len()).expect("small");
    for prompt_bytes in [
        0,
        free,
        free + 1,
        65_000,
        66_000,
        131_000,
        262_144,
        1_000_000,
        1_048_600,
        5_000_000,
    ] {
        let varied = (0..prompt_bytes).map(|n: u32| char::from(b'a' + (n / 7 % 26) as u8));
        let body = chat(&varied.collect::<String>());
        let next = chat(&format!("behind {prompt_bytes}"));
        let before = door.origin.received().len();
        for _ in 0..3 {
            door.origin.push(Step::Answer(billed(1)));
        }
        let post =
            |body: &str| crate::support::wire::request("POST", "/v1/chat/completions", &[], body);
        let mut wire = door.bursar.connect().await;
        wire.send(format!("{}{}", post(&body), post(&next))).await;
        for _ in 0..2 {
            let answer = wire.answer().await;
            assert_eq!((answer.status, answer.complete), (200, true), "{answer:?}");
        }
        // The same in chunks is the same request.
        let chunks = body.as_bytes().chunks(100_000);
        let chunks = chunks.map(|chunk| {
            let chunk = std::str::from_utf8(chunk).expect("ASCII");
            format!("{:x}\r\n{chunk}\r\n", chunk.len())
        });
        let whole = chunked(&format!("{}0\r\n\r\n", chunks.collect::<String>()));
        assert_eq!(door.ask(whole).await.status, 200);
        let received = door.origin.received();
        let bodies = received[before..].iter().map(|request| &request.body);
        let sent = [&body, &next, &body].map(|body| body.as_bytes());
        assert!(bodies.eq(sent), "{prompt_bytes}");
    }
    let journal = door.bursar.state_dir().join("journal/00000001.jsonl");
    let journal = std::fs::read_to_string(journal).expect("a journal");
    // Behind the last line the daemon had made room: newlines.
    let lines = journal.trim_end().lines().map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).expect("a line");
        line["fingerprint"].as_str().map(str::to_owned)
    });
    let prints: Vec<String> = lines.flatten().collect();
    assert_eq!(prints.len(), 3 * 10);
    for of_one_size in prints.chunks(3) {
        assert_eq!(of_one_size[0], of_one_size[2], "in one piece and in chunks");
        assert_ne!(of_one_size[0], of_one_size[1]);
    }
}

#[tokio::test]
async fn a_continue_is_given_to_admitted_requests_only() {
    let door = Door::open().await;
    let json = chat("x");
    let head = |path: &str, length: usize| {
        format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: {length}\r\n\r\n"
        )
    };
    for (path, length, code) in [
        ("/v1/nothing", json.len(), "route_unknown"),
        ("/v1/chat/completions", 31 * 1024 * 1024, "body_too_large"),
    ] {
        let mut wire = door.bursar.connect().await;
        wire.send(head(path, length)).await;
        // `head`, not `answer`: a 100 would show.
        let answer = wire.head().await;
        assert_eq!((answer.code(), answer.status / 100), (Some(code), 4));
    }
    door.assert_untouched("an expectation");
    door.origin.push(Step::Answer(billed(1)));
    let mut wire = door.bursar.connect().await;
    wire.send(head("/v1/chat/completions", json.len())).await;
    assert_eq!(wire.head().await.status, 100);
    wire.send(&json).await;
    assert_eq!(wire.answer().await.status, 200);
    assert_eq!(door.origin.received()[0].header("expect"), None);
}
