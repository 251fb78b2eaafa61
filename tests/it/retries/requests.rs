//! What an attempt carries, and what it does not.

use bursar::config::{Config, Env, Overrides};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::support::origin::{billed, json};
use crate::support::wire::request;
use crate::support::{Bursar, KEY, Origin, Step, chat, eventually};

const CHAT: &str = "/v1/chat/completions";

#[tokio::test]
async fn aliases_leave_a_comparisons_vendor_alone() {
    let origin = Origin::always(Step::Answer(json(404, &[], r#"{"detail":"unknown"}"#))).await;
    let lines = "[models]\naliases = { \"gpt-x\" = \"auto\" }\n";
    let bursar = Bursar::with(&origin.url(), lines).await;
    let body = r#"{"model":"gpt-x","messages":[]}"#;
    let answer = bursar.post("/v1/playground/frontier", body).await;
    assert!(!answer.text().contains("aliases"), "{}", answer.text());
    bursar.post(CHAT, body).await;
    let received = origin.received();
    assert_eq!(received[0].body, body.as_bytes());
    assert_eq!(received[1].body, br#"{"model":"auto","messages":[]}"#);
}

#[tokio::test]
async fn headers_that_rewrite_a_request_or_carry_credentials_stay_here() {
    let dropped = [
        "Forwarded",
        "Via",
        "Proxy",
        "X-Real-IP",
        "X-Api-Key",
        "Api-Key",
        "X-Rewrite-URL",
        "X-Forwarded-For",
        "X-Forwarded-Host",
        "X-Original-URL",
        "X-HTTP-Method",
        "X-HTTP-Method-Override",
        "X-Method-Override",
    ];
    let mut headers: Vec<(&str, &str)> = dropped.iter().map(|name| (*name, "other")).collect();
    headers.push(("X-Kept", "1"));
    let origin = Origin::start([Step::Answer(billed(7))]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let mut wire = bursar.connect().await;
    wire.send(request("POST", CHAT, &headers, &chat("hi")))
        .await;
    assert_eq!(wire.answer().await.status, 200);
    let received = &origin.received()[0];
    for name in dropped {
        assert_eq!(received.header(name), None, "{name}");
    }
    assert_eq!(received.header("x-kept"), Some("1"));
}

/// A key is sent with the same bytes: when the alias has another target, it is another request.
#[tokio::test]
async fn a_key_is_not_adopted_for_other_bytes() {
    let once = "[retry]\nattempts = 1\n";
    let origin = Origin::start([Step::Close, Step::Close, Step::Answer(billed(7))]).await;
    let aliases = |target: &str| format!("{once}[models]\naliases = {{ gpt = \"{target}\" }}\n");
    let bursar = Bursar::with(&origin.url(), &aliases("auto")).await;
    let body = r#"{"model":"gpt","messages":[]}"#;
    bursar.post(CHAT, body).await;

    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("config.toml");
    std::fs::write(&file, aliases("ep-1")).expect("the config is written");
    let overrides = Overrides {
        config: Some(file),
        upstream: Some(origin.url()),
        state_dir: Some(bursar.state_dir()),
        ..Overrides::default()
    };
    let env = Env::from_pairs([("BURSAR_API_KEY", KEY)]);
    let config = Config::load(&overrides, &env).unwrap_or_else(|errors| panic!("{errors}"));
    bursar.reload(config);
    bursar.post(CHAT, body).await;
    bursar.post(CHAT, body).await;

    let received = origin.received();
    let keys: Vec<_> = received
        .iter()
        .map(|received| received.header("idempotency-key"))
        .collect();
    assert_ne!(received[0].body, received[1].body);
    assert_ne!(keys[0], keys[1], "other bytes, another key");
    assert_eq!(received[1].body, received[2].body);
    assert_eq!(keys[1], keys[2], "the same bytes, the same key");
}

#[tokio::test]
async fn nothing_is_sent_for_an_app_that_broke_its_connection_before() {
    let origin = Origin::always(Step::Answer(billed(7))).await;
    let bursar = Bursar::before(&origin.url()).await;
    let mut stream = TcpStream::connect(bursar.address)
        .await
        .expect("a connection");
    stream.set_zero_linger().expect("a reset at the end");
    let bytes = request("POST", CHAT, &[], &chat("hi"));
    stream.write_all(bytes.as_bytes()).await.expect("sent");
    drop(stream);
    eventually("the request to end", || async {
        let left = bursar.metric("bursar_client_disconnects_total", "");
        (left > 0.5).then_some(())
    })
    .await;
    bursar.gateway.idle().await;
    assert!(bursar.entries().is_empty(), "what is not sent has no entry");
    assert!(origin.received().is_empty());
}
