//! The request's head on its way to the service.

use super::{CHAT, before};
use crate::support::origin::{Received, billed, json};
use crate::support::wire::request;
use crate::support::{KEY, chat};

fn all(received: &Received, name: &str) -> Vec<String> {
    received
        .head
        .split("\r\n")
        .skip(1)
        .filter_map(|line| line.split_once(':'))
        .filter(|(known, _)| known.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim().to_owned())
        .collect()
}

#[tokio::test]
async fn the_organizations_key_replaces_whatever_the_app_sent() {
    let rows: [(&str, Vec<(&str, &str)>); 5] = [
        ("none", vec![]),
        ("an SDK's", vec![("Authorization", "Bearer sk-anything")]),
        ("basic", vec![("Authorization", "Basic dXNlcjpwYXNz")]),
        ("empty", vec![("Authorization", "")]),
        (
            "with an underscore",
            vec![("author_ization", "x"), ("Proxy-Authorization", "Bearer c")],
        ),
    ];
    let (origin, bursar) = before(billed(7)).await;
    for (index, (name, headers)) in rows.iter().enumerate() {
        let mut wire = bursar.connect().await;
        wire.send(request("POST", CHAT, headers, &chat("hi"))).await;
        let answer = wire.answer().await;
        assert_eq!(answer.status, 200, "{name}");
        let received = &origin.received()[index];
        assert_eq!(
            all(received, "authorization"),
            [format!("Bearer {KEY}")],
            "{name}"
        );
        for other in ["sk-anything", "dXNlcjpwYXNz", "Bearer c", "author_ization"] {
            assert!(!received.head.contains(other), "{name}: {other} is gone");
        }
        let text = format!("{answer:?}");
        assert!(!text.contains(KEY), "{name}: the key goes to one place");
    }
}

#[tokio::test]
async fn the_key_goes_to_every_route_of_the_service_once() {
    let (origin, bursar) = before(json(200, &[], "{}")).await;
    for path in ["/v1/models", "/v1/tasks", "/v1/endpoints/x/cost"] {
        bursar.connect().await.get(path).await;
    }
    for received in origin.received() {
        assert_eq!(all(&received, "authorization"), [format!("Bearer {KEY}")]);
        assert_eq!(all(&received, "host"), [origin.address.to_string()]);
    }
}

/// `Connection` may nominate away what is the app's, never what is ours or what a key is bound to.
#[tokio::test]
async fn connection_cannot_nominate_our_headers_away() {
    let rows: [(&str, Vec<(&str, &str)>); 3] = [
        (
            "in one",
            vec![(
                "Connection",
                "close, idempotency-key, authorization, x-service-session, X-Service-RTE-Query, content-length, host, x-private",
            )],
        ),
        (
            "in several",
            vec![
                ("Connection", "Idempotency-Key"),
                ("Connection", "Authorization , X-Service-Session"),
                ("connection", "x-private,X-SERVICE-RTE-QUERY"),
            ],
        ),
        (
            "with an own key",
            vec![
                ("Connection", "idempotency-key, x-private"),
                ("Idempotency-Key", "mine"),
            ],
        ),
    ];
    let (origin, bursar) = before(billed(7)).await;
    for (index, (name, headers)) in rows.iter().enumerate() {
        let mut headers = headers.clone();
        headers.extend([
            ("X-Service-Session", "s1"),
            ("X-Service-RTE-Query", "q1"),
            ("X-Private", "p"),
            ("X-Other", "o"),
        ]);
        let mut wire = bursar.connect().await;
        wire.send(request("POST", CHAT, &headers, &chat("hi")))
            .await;
        assert_eq!(wire.answer().await.status, 200, "{name}");
        let received = &origin.received()[index];
        assert_eq!(
            all(received, "authorization"),
            [format!("Bearer {KEY}")],
            "{name}"
        );
        assert_eq!(all(received, "x-service-session"), ["s1"], "{name}");
        assert_eq!(all(received, "x-service-rte-query"), ["q1"], "{name}");
        assert_eq!(all(received, "x-other"), ["o"], "{name}");
        assert_eq!(all(received, "x-private"), Vec::<String>::new(), "{name}");
        let keys = all(received, "idempotency-key");
        assert_eq!(keys.len(), 1, "{name}");
        assert!(
            name != &"with an own key" || keys == ["mine"],
            "{name}: {keys:?}"
        );
        assert_eq!(received.body, chat("hi").as_bytes(), "{name}");
    }
}

#[tokio::test]
async fn headers_of_one_connection_stay_on_it_and_the_rest_passes() {
    let (origin, bursar) = before(billed(7)).await;
    let headers = [
        ("Keep-Alive", "timeout=5"),
        ("TE", "trailers"),
        ("Trailer", "x-t"),
        ("Upgrade", "h2c"),
        ("HTTP2-Settings", "AAMAAABkAAQAAP__"),
        ("Proxy-Connection", "keep-alive"),
        ("Cookie", "session=1"),
        ("Referer", "http://localhost/page"),
        ("X_Service_Session", "forged"),
        ("Accept-Encoding", "gzip, deflate, br"),
        ("User-Agent", "OpenAI/Python 2.54.0"),
        ("x-stainless-lang", "python"),
        ("X-Custom", "one"),
        ("X-Custom", "two"),
        ("Accept", "application/json"),
    ];
    let mut wire = bursar.connect().await;
    wire.send(request("POST", CHAT, &headers, &chat("hi")))
        .await;
    assert_eq!(wire.answer().await.status, 200);
    let received = &origin.received()[0];
    for gone in [
        "keep-alive",
        "te",
        "trailer",
        "upgrade",
        "http2-settings",
        "proxy-connection",
        "cookie",
        "referer",
        "x_service_session",
        "transfer-encoding",
        "expect",
    ] {
        assert!(all(received, gone).is_empty(), "{gone}: {}", received.head);
    }
    assert_eq!(all(received, "accept-encoding"), ["identity"]);
    assert_eq!(all(received, "user-agent"), ["OpenAI/Python 2.54.0"]);
    assert_eq!(all(received, "x-stainless-lang"), ["python"]);
    assert_eq!(all(received, "x-custom"), ["one", "two"]);
    assert_eq!(all(received, "accept"), ["application/json"]);
    assert_eq!(all(received, "content-type"), ["application/json"]);
    assert_eq!(all(received, "content-length").len(), 1);
}

#[tokio::test]
async fn path_and_query_pass_byte_for_byte() {
    let (origin, bursar) = before(json(200, &[], "{}")).await;
    for target in [
        "/v1/tasks/t1?examples_n=2&a=%41%20b",
        "/v1/eval/frontier-models?task=x+y",
        "/v1/models?",
    ] {
        bursar.connect().await.get(target).await;
        let received = origin.received();
        let line = received.last().unwrap().request_line().to_owned();
        assert_eq!(line, format!("GET {target} HTTP/1.1"));
    }
}
