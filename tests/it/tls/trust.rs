//! What is trusted with the key, and what is not.

use bursar::config::{Config, Env, Overrides};
use bursar::ledger::entry::State;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::certs::{Authority, FUTURE, Identity, NOW, PAST};
use super::front::Front;
use super::{ask, bursar_trusting, speech};
use crate::support::origin::{billed, json};
use crate::support::wire::request;
use crate::support::{KEY, Step, chat};

/// Every way in which a certificate does not hold: the name, the service's certificate, what is
/// trusted.
fn untrusted() -> Vec<(&'static str, Identity, Authority)> {
    let ours = || Authority::new("tests");
    let signed = |names: &[&str], years| {
        let authority = ours();
        (authority.signs(names, years), authority)
    };
    let other = Authority::new("somebody else").signs(&["localhost"], &NOW);
    let same_name = Authority::new("tests").signs(&["localhost"], &NOW);
    let (wrong_name, a) = signed(&["service.example"], &NOW);
    let (wider_name, b) = signed(&["*.localhost"], &NOW);
    let (address, c) = signed(&["127.0.0.1"], &NOW);
    let (expired, d) = signed(&["localhost"], &PAST);
    let (early, e) = signed(&["localhost"], &FUTURE);
    vec![
        ("another authority", other, ours()),
        ("another authority of the same name", same_name, ours()),
        ("another name", wrong_name, a),
        ("a wildcard below the name", wider_name, b),
        ("an address for a name", address, c),
        ("expired", expired, d),
        ("not valid yet", early, e),
    ]
}

#[tokio::test]
async fn a_certificate_that_does_not_hold_sees_no_byte_and_is_not_asked_again() {
    for protocols in [&["http/1.1"][..], &["h2", "http/1.1"]] {
        for (what, identity, trusted) in untrusted() {
            let front = Front::start(identity.server(protocols)).await;
            let (bursar, _directory) = bursar_trusting(&trusted, &front.url()).await;
            front.origin.push(Step::Answer(billed(1)));
            for bytes in [
                request("POST", "/v1/chat/completions", &[], &chat("x")),
                speech(),
                "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(),
            ] {
                let before = front.accepted();
                let answer = ask(&bursar, &bytes).await;
                assert_eq!(
                    (answer.status, answer.code()),
                    (502, Some("upstream_tls")),
                    "{what}: {}",
                    answer.text()
                );
                assert_eq!(answer.header("x-should-retry"), Some("false"), "{what}");
                assert!(
                    answer.text().contains("ca_file"),
                    "{what}: {}",
                    answer.text()
                );
                assert_eq!(front.accepted(), before + 1, "{what}: asked again");
            }
            assert_eq!(front.clear_bytes(), 0, "{what}: bytes were sent");
            assert_eq!(front.origin.connections(), 0, "{what}");
            assert!(front.http2.came().is_empty(), "{what}");
            // Nothing was sent, so nothing is in doubt.
            for entry in bursar.settled(2).await {
                assert!(
                    matches!(entry.state, State::Failed),
                    "{what}: {:?}",
                    entry.state
                );
                assert_eq!(entry.attempts.len(), 1, "{what}");
            }
        }
    }
}

#[tokio::test]
async fn a_plain_server_behind_an_https_address_gets_no_byte_of_the_request() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let (received, mut seen) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut bytes = vec![0; 16 * 1024];
            let read = stream.read(&mut bytes).await.unwrap_or(0);
            bytes.truncate(read);
            received.send(bytes).ok();
            let answer = json(200, &[("X-Service-Billed", "1")], "{}");
            stream.write_all(&answer).await.ok();
        }
    });
    let authority = Authority::new("tests");
    let (bursar, _directory) =
        bursar_trusting(&authority, &format!("https://localhost:{port}")).await;
    let answer = bursar.post("/v1/chat/completions", &chat("x")).await;
    assert_eq!(
        (answer.status, answer.code()),
        (502, Some("upstream_tls")),
        "{}",
        answer.text()
    );
    let at = format!("https://localhost:{port}");
    for part in ["speaks no TLS", &at, "Nothing was sent"] {
        assert!(answer.text().contains(part), "{}", answer.text());
    }
    assert!(!answer.text().contains("certificate"), "{}", answer.text());
    let mut hellos = 0;
    while let Ok(bytes) = seen.try_recv() {
        hellos += 1;
        assert_eq!(bytes.first(), Some(&0x16), "no TLS handshake");
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert!(
            !text.contains("Bearer") && !text.contains(KEY) && !text.contains("/v1/"),
            "{text}"
        );
    }
    assert_eq!(hellos, 1, "a plain server learns no TLS meanwhile");
    // The answer names the same cause once no attempt is made any more.
    for _ in 0..12 {
        let answer = bursar.connect().await.get("/v1/models").await;
        let text = answer.text();
        assert!(text.contains("speaks no TLS"), "{text}");
        assert!(!text.contains("certificate"), "{text}");
    }
    let entry = &bursar.settled(1).await[0];
    assert!(matches!(entry.state, State::Failed), "{:?}", entry.state);
}

#[test]
fn the_key_is_sent_in_the_clear_to_this_machine_only() {
    let load = |url: &str| {
        let overrides = Overrides {
            upstream: Some(url.to_owned()),
            state_dir: Some("/nowhere".into()),
            ..Overrides::default()
        };
        let env = Env::from_pairs([("BURSAR_API_KEY", KEY)]);
        Config::load(&overrides, &env)
            .map(|_| ())
            .map_err(|errors| errors.to_string())
    };
    for url in [
        "http://localhost:8329",
        "http://127.0.0.1:8329",
        "http://[::1]:8329",
        "http://127.0.0.2",
        "https://service.example",
        "https://10.0.0.1",
    ] {
        assert_eq!(load(url), Ok(()), "{url}");
    }
    for url in [
        "http://service.example",
        "http://10.0.0.1:8329",
        "http://0.0.0.0:8329",
        "http://[::]:8329",
        "http://192.168.1.5",
        "http://localhost.service.example",
        "http://127.0.0.1.service.example",
        "http://localhost@service.example",
        "http://service.example#localhost",
        "http://2130706433",
        "HTTP://service.example",
        "ftp://localhost",
        "localhost:8329",
        "https://",
        "https:///v1",
    ] {
        let error = load(url).expect_err(url);
        assert!(!error.contains(KEY), "{url}: {error}");
    }
    let error = load("http://service.example").expect_err("plain http");
    assert!(
        error.contains("unencrypted") && error.contains("https"),
        "{error}"
    );
}

/// A file of authorities is renewed in place, as a rotation does it.
#[tokio::test]
async fn a_reload_reads_the_authorities_again_and_keeps_connections_where_they_are_the_same() {
    let (before, after) = (Authority::new("before"), Authority::new("after"));
    let front = Front::start(after.signs(&["localhost"], &NOW).server(&["http/1.1"])).await;
    let (bursar, directory) = bursar_trusting(&before, &front.url()).await;
    let body = chat("x");
    let post = || bursar.post("/v1/chat/completions", &body);
    assert_eq!(post().await.code(), Some("upstream_tls"));
    std::fs::write(directory.path().join("ca.pem"), &after.pem).expect("it is written");
    assert_eq!(post().await.code(), Some("upstream_tls"), "not yet");
    bursar.reread();
    for _ in 0..2 {
        front.origin.push(Step::Answer(billed(1)));
        assert_eq!(post().await.status, 200);
        bursar.reread();
    }
    assert_eq!(front.greetings().len(), 1, "one connection for both");
}
