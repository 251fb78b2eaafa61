//! Rows 12 and 13: headers that are nominated away, and values that break out of theirs.

use super::case::{Case, May, Sent, framed, post};
use super::stage::Stage;
use crate::support::{chat, eventually};

const REFUSED: &[&str] = &["header_refused", "head_malformed"];

pub fn cases() -> Vec<Case> {
    [nominations(), keys(), expectations()].concat()
}

/// `Connection` removes the app's own headers, never ours, a judged one, or one that a key is bound
/// to.
fn nominations() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, lines) in [
        (
            "the key",
            "Connection: idempotency-key\r\nIdempotency-Key: mine\r\n",
        ),
        (
            "the key in capitals",
            "Connection: IDEMPOTENCY-KEY\r\nIdempotency-Key: mine\r\n",
        ),
        (
            "the key among others",
            "Connection: close-not, Idempotency-Key ,x\r\nIdempotency-Key: mine\r\n",
        ),
        (
            "the key in a second line",
            "Connection: x\r\nConnection: idempotency-key\r\nIdempotency-Key: mine\r\n",
        ),
        (
            "the key behind bytes",
            "Connection: \u{e9}\r\nConnection: idempotency-key\r\nIdempotency-Key: mine\r\n",
        ),
    ] {
        let name = format!("nominates {name}");
        let sent = Sent::chat(chat(&name)).with("idempotency-key", "mine");
        cases.push(Case::relayed(12, &name, post(&name, lines), sent));
    }
    for (header, value) in [("x-service-session", "s-1"), ("x-service-rte-query", "q-1")] {
        let name = format!("nominates {header}");
        let lines = format!("Connection: {header}\r\n{header}: {value}\r\n");
        let sent = Sent::chat(chat(&name)).with(header, value);
        cases.push(Case::relayed(12, &name, post(&name, &lines), sent));
    }
    for nominated in [
        "authorization",
        "host",
        "content-length",
        "accept-encoding",
        "transfer-encoding",
        "connection",
        "content-type",
        "authorization, host, content-length, idempotency-key, content-type, accept-encoding",
    ] {
        let name = format!("nominates {nominated}");
        let body = chat(&name);
        let sent = Sent::chat(body.clone())
            .with("content-length", &body.len().to_string())
            .with("content-type", "application/json");
        let bytes = post(&name, &format!("Connection: {nominated}\r\n"));
        cases.push(Case::relayed(12, &name, bytes, sent));
    }
    let name = "nominates its own header";
    let sent = Sent::chat(chat(name)).without("x-hop").with("x-kept", "2");
    let lines = "Connection: x-hop\r\nX-Hop: 1\r\nX-Kept: 2\r\n";
    cases.push(Case::relayed(12, name, post(name, lines), sent));
    let name = "nominates ten thousand";
    let many = format!("Connection: {}x\r\n", "a,".repeat(10_000));
    cases.push(Case::relayed(
        12,
        name,
        post(name, &many),
        Sent::chat(chat(name)),
    ));
    cases
}

fn keys() -> Vec<Case> {
    let mut cases = Vec::new();
    for header in [
        "Idempotency-Key",
        "X-Service-Session",
        "X-Service-RTE-Query",
    ] {
        for (what, value) in [
            ("a CR", b"a\rX-Injected: y".as_slice()),
            ("a LF", b"a\nX-Injected: y"),
            ("a folded line", b"a\r\n X-Injected: y"),
            ("a NUL", b"a\0b"),
            ("a control byte", b"a\x01b"),
            ("an escape", b"a\x1b[31mb"),
            ("a DEL", b"a\x7fb"),
            ("a tab", b"a\tb"),
            ("UTF-8", "a\u{e9}b".as_bytes()),
            ("bytes that are no text", b"a\xff\xfeb"),
            ("a next line of C1", b"a\x85b"),
        ] {
            let name = format!("{header} with {what}");
            let lines = [header.as_bytes(), b": ", value, b"\r\n"].concat();
            let body = chat(&name);
            let head = format!(
                "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
                body.len()
            );
            let bytes = [head.as_bytes(), &lines, b"\r\n", body.as_bytes()].concat();
            cases.push(Case::refused(13, &name, bytes, REFUSED));
        }
        for (what, one, other) in [
            ("two values", "a", "b"),
            ("one value twice", "a", "a"),
            ("an empty value first", "", "a"),
            ("an empty value last", "a", ""),
        ] {
            let name = format!("{header} with {what}");
            let lower = header.to_ascii_lowercase();
            let lines = format!("{header}: {one}\r\n{lower}: {other}\r\n");
            cases.push(Case::refused(13, &name, post(&name, &lines), REFUSED));
        }
        let (gone, kept): (&'static str, &'static str) = match header {
            "Idempotency-Key" => ("idempotency_key", "idempotency-key"),
            "X-Service-Session" => ("x_service_session", "x-service-session"),
            _ => ("x_service_rte_query", "x-service-rte-query"),
        };
        let name = format!("{header} and its twin with an underscore");
        let twin = header.replace('-', "_");
        let sent = Sent::chat(chat(&name)).with(kept, "mine").without(gone);
        let lines = format!("{header}: mine\r\n{twin}: other\r\n");
        cases.push(Case::relayed(13, &name, post(&name, &lines), sent));
        let name = format!("{header} with all that can be printed");
        let all: String = ('!'..='~').collect();
        let sent = Sent::chat(chat(&name)).with(kept, &all);
        cases.push(Case::relayed(
            13,
            &name,
            post(&name, &format!("{header}: {all}\r\n")),
            sent,
        ));
        let name = format!("{header} of 257 characters");
        let long = "k".repeat(257);
        let sent = Sent::chat(chat(&name)).with(kept, &long);
        cases.push(Case::relayed(
            13,
            &name,
            post(&name, &format!("{header}: {long}\r\n")),
            sent,
        ));
    }
    for header in ["X-Service-Session", "X-Service-RTE-Query"] {
        let name = format!("an empty {header}");
        let kept = if header.ends_with("Session") {
            "x-service-session"
        } else {
            "x-service-rte-query"
        };
        let sent = Sent::chat(chat(&name)).without(kept);
        cases.push(Case::relayed(
            13,
            &name,
            post(&name, &format!("{header}:\r\n")),
            sent,
        ));
    }
    cases
}

fn expectations() -> Vec<Case> {
    let mut cases = Vec::new();
    for value in [
        "200-ok",
        "100-continue, x",
        "",
        "1 00-continue",
        "\"100-continue\"",
    ] {
        let name = format!("the expectation {value:?}");
        let sent = Sent::chat(chat(&name)).without("expect");
        let bytes = post(&name, &format!("Expect: {value}\r\n"));
        cases.push(Case::new(
            13,
            &name,
            bytes,
            May::Either(&["header_refused"], sent),
        ));
    }
    let name = "an expectation with its body at once";
    // A 100 was written before the body was checked: the connection ends with the answer.
    let sent = Sent::chat(chat(name)).without("expect").ending();
    cases.push(Case::relayed(
        13,
        name,
        post(name, "Expect: 100-continue\r\n"),
        sent,
    ));
    let bytes = framed("Expect: 100-continue\r\nContent-Length: 99999999\r\n", b"");
    cases.push(Case::refused(
        13,
        "an expectation of too much",
        bytes,
        &["body_too_large"],
    ));
    cases
}

/// An old app treats the first head it reads as its answer.
#[tokio::test]
async fn an_expectation_in_http_1_0_is_not_answered_with_a_100() {
    let stage = Stage::open().await;
    for (version, first) in [("HTTP/1.0", 200), ("HTTP/1.1", 100)] {
        let text = post(version, "Expect: 100-continue\r\n");
        let text = String::from_utf8(text)
            .expect("a text")
            .replacen("HTTP/1.1", version, 1);
        let mut wire = stage.daemon.connect().await;
        wire.send(text).await;
        assert_eq!(wire.head().await.status, first, "{version}");
    }
    // The second is answered when its 100 was read; then both are in the ledger.
    eventually("both entries", || async {
        (stage.entries() == 2).then_some(())
    })
    .await;
    stage.close(2).await;
}
