//! The door asks for a token: in its order, with one answer for all strangers, before it reads any
//! further.

use bursar::config::Token;

use super::{CHAT, add, ask, bearer};
use crate::support::origin::billed;
use crate::support::wire::request;
use crate::support::{Bursar, KEY, Origin, Step, Wire, chat};

#[tokio::test]
async fn a_token_is_the_apps_name_in_ledger_and_metrics_and_never_goes_upstream() {
    let origin = Origin::always(Step::Answer(billed(7))).await;
    let bursar = Bursar::before(&origin.url()).await;
    let token = add(&bursar, "nightly");

    let answer = ask(&bursar, &token, &chat("hi")).await;

    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(&*bursar.settled(1).await[0].app, "nightly");
    let labels = "app=\"nightly\"";
    assert_eq!(bursar.metric("bursar_requests_total", labels), 1.0);
    assert_eq!(bursar.metric("bursar_billed_usd_total", labels), 0.000_007);
    let received = &origin.received()[0];
    assert_eq!(received.header("authorization"), Some(bearer(KEY).as_str()));
    assert!(!received.head.contains(&token), "{}", received.head);
}

#[tokio::test]
async fn every_stranger_gets_the_same_answer_and_nothing_is_sent() {
    let origin = Origin::always(Step::Answer(billed(7))).await;
    let bursar = Bursar::before(&origin.url()).await;
    add(&bursar, "nightly");
    let removed = add(&bursar, "removed");
    bursar.apps.remove("removed").expect("it is there");
    let unknown = Token::draw().expect("a token").reveal().to_owned();
    let mistyped = format!("{removed}0");
    let mut texts = Vec::new();
    for (name, value, code) in [
        ("none", None, "token_missing"),
        ("no scheme", Some(removed.clone()), "token_missing"),
        ("basic", Some("Basic YTpi".to_owned()), "token_missing"),
        ("empty", Some("Bearer ".to_owned()), "token_missing"),
        ("placeholder", Some(bearer("unused")), "token_refused"),
        ("the organization's key", Some(bearer(KEY)), "token_refused"),
        ("removed", Some(bearer(&removed)), "token_refused"),
        ("unknown", Some(bearer(&unknown)), "token_refused"),
        ("mistyped", Some(bearer(&mistyped)), "token_refused"),
        ("the name", Some(bearer("nightly")), "token_refused"),
    ] {
        let headers: Vec<(&str, &str)> = value
            .iter()
            .map(|value| ("Authorization", value.as_str()))
            .collect();
        let mut wire = bursar.connect().await;
        wire.send(request("POST", CHAT, &headers, &chat("hi")))
            .await;
        let answer = wire.answer().await;
        assert_eq!(answer.status, 401, "{name}: {}", answer.text());
        assert_eq!(answer.code(), Some(code), "{name}");
        assert_eq!(answer.header("x-should-retry"), Some("false"), "{name}");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{name}");
        assert!(answer.text().contains("bursar app add NAME"), "{name}");
        if code == "token_refused" {
            texts.push(answer.text());
        }
    }
    texts.dedup();
    assert_eq!(
        texts.len(),
        1,
        "the text differs between strangers: {texts:?}"
    );
    for name in ["nightly", "removed"] {
        assert!(!texts[0].contains(name), "{}", texts[0]);
    }
    assert!(origin.received().is_empty());
    assert!(bursar.entries().is_empty());
    let refused = bursar.metric("bursar_refusals_total", "error=\"token_refused\"");
    assert_eq!(refused, 6.0);
}

#[tokio::test]
async fn two_authorization_headers_are_refused() {
    let origin = Origin::always(Step::Answer(billed(7))).await;
    let bursar = Bursar::before(&origin.url()).await;
    let token = bearer(&add(&bursar, "nightly"));
    let twice = [("Authorization", token.as_str()), ("Authorization", "x")];

    let mut wire = bursar.connect().await;
    wire.send(request("POST", CHAT, &twice, &chat("hi"))).await;
    let answer = wire.answer().await;

    assert_eq!((answer.status, answer.code()), (401, Some("token_refused")));
    assert!(origin.received().is_empty());
}

/// "Host/Origin first, then token, before the body is read": the head announces a body that never
/// comes.
#[tokio::test]
async fn the_token_is_asked_for_behind_host_and_origin_and_before_all_else() {
    let origin = Origin::always(Step::Answer(billed(7))).await;
    let bursar = Bursar::before(&origin.url()).await;
    let token = bearer(&add(&bursar, "nightly"));
    for (name, head, status, code) in [
        (
            "host",
            "POST /v1/chat/completions HTTP/1.1\r\nHost: evil.example\r\n",
            403,
            "host_refused",
        ),
        (
            "origin",
            "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil\r\n",
            403,
            "origin_refused",
        ),
        (
            "body",
            "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n",
            401,
            "token_missing",
        ),
        (
            "type",
            "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n",
            401,
            "token_missing",
        ),
        (
            "route",
            "POST /nothing/here HTTP/1.1\r\nHost: localhost\r\n",
            401,
            "token_missing",
        ),
        (
            "free route",
            "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n",
            401,
            "token_missing",
        ),
    ] {
        let length = if head.starts_with("GET") {
            ""
        } else {
            "Content-Length: 1000\r\n"
        };
        let mut wire = bursar.connect().await;
        wire.send(format!("{head}{length}\r\n")).await;
        let answer = wire.answer().await;
        assert_eq!(
            (answer.status, answer.code()),
            (status, Some(code)),
            "{name}"
        );
    }
    // With its token, the route is judged.
    let mut wire = bursar.connect().await;
    let shown = [("Authorization", token.as_str())];
    wire.send(request("POST", "/nothing/here", &shown, "{}"))
        .await;
    assert_eq!(wire.answer().await.code(), Some("route_unknown"));
    assert!(origin.received().is_empty());
}

#[tokio::test]
async fn a_connection_kept_alive_is_asked_for_each_request() {
    let origin = Origin::always(Step::Answer(billed(7))).await;
    let bursar = Bursar::before(&origin.url()).await;
    let token = bearer(&add(&bursar, "nightly"));
    let mut wire = bursar.connect().await;
    let shown = [("Authorization", token.as_str())];
    wire.send(request("POST", CHAT, &shown, &chat("hi"))).await;
    assert_eq!(wire.answer().await.status, 200);

    bursar.apps.remove("nightly").expect("it is there");
    wire.send(request("POST", CHAT, &shown, &chat("hi"))).await;

    assert_eq!(wire.answer().await.code(), Some("token_refused"));
    assert_eq!(origin.received().len(), 1);
}

#[tokio::test]
async fn a_user_of_the_unix_socket_is_its_app_and_a_token_goes_before() {
    let origin = Origin::always(Step::Answer(billed(7))).await;
    let own = rustix::process::geteuid().as_raw();
    let lines = format!(
        "[[app]]\nname = \"mine\"\nuids = [{own}]\n[[app]]\nname = \"theirs\"\nuids = [{}]\n",
        own + 1
    );
    let bursar = Bursar::with(&origin.url(), &lines).await;
    let token = bearer(&add(&bursar, "nightly"));
    let over_unix = |headers: Vec<(&'static str, String)>| {
        let socket = bursar.socket.clone();
        async move {
            let headers: Vec<(&str, &str)> = headers
                .iter()
                .map(|(name, value)| (*name, value.as_str()))
                .collect();
            let mut wire = Wire::unix(&socket).await;
            wire.send(request("POST", CHAT, &headers, &chat("hi")))
                .await;
            wire.answer().await
        }
    };

    assert_eq!(over_unix(vec![]).await.status, 200);
    let placeholder = vec![("Authorization", bearer("unused"))];
    assert_eq!(over_unix(placeholder).await.status, 200);
    assert_eq!(over_unix(vec![("Authorization", token)]).await.status, 200);
    let apps: Vec<String> = bursar
        .settled(3)
        .await
        .iter()
        .map(|entry| entry.app.to_string())
        .collect();
    assert_eq!(apps, ["mine", "mine", "nightly"]);

    let port = bursar.post(CHAT, &chat("hi")).await;
    assert_eq!(
        port.code(),
        Some("token_missing"),
        "on a port the user is not known"
    );
}

#[tokio::test]
async fn with_anonymous_false_no_request_spends_before_an_app_is_there() {
    let origin = Origin::always(Step::Answer(billed(7))).await;
    let bursar = Bursar::with(&origin.url(), "[listen]\nanonymous = false\n").await;
    let refused = bursar.post(CHAT, &chat("hi")).await;
    assert_eq!(refused.code(), Some("token_missing"));

    let token = add(&bursar, "nightly");

    assert_eq!(ask(&bursar, &token, &chat("hi")).await.status, 200);
}

#[tokio::test]
async fn without_apps_any_key_is_the_default_app_and_the_first_app_closes_the_door() {
    let origin = Origin::always(Step::Answer(billed(7))).await;
    let bursar = Bursar::before(&origin.url()).await;
    assert_eq!(bursar.post(CHAT, &chat("a")).await.status, 200);
    assert_eq!(ask(&bursar, "sk-placeholder", &chat("b")).await.status, 200);
    let apps: Vec<String> = bursar
        .settled(2)
        .await
        .iter()
        .map(|entry| entry.app.to_string())
        .collect();
    assert_eq!(apps, ["default", "default"]);

    let token = add(&bursar, "nightly");

    assert_eq!(bursar.post(CHAT, &chat("a")).await.status, 401);
    assert_eq!(ask(&bursar, "sk-placeholder", &chat("b")).await.status, 401);
    assert_eq!(ask(&bursar, &token, &chat("c")).await.status, 200);
}

/// What the headers of a request show.
#[derive(Clone, Copy, Debug)]
enum Shown {
    /// The token of the app nightly.
    Token,
    Nothing,
    /// One credential that is no token of bursar's.
    Foreign,
    /// Two that differ, or one header twice.
    Two,
}

/// Also where callers without a token may spend: who shows two credentials would spend as somebody that it is not.
#[tokio::test]
async fn a_token_may_be_where_anthropics_clients_put_it_and_two_are_nobodys_whoever_may_spend() {
    let own = rustix::process::geteuid().as_raw();
    let mapped = format!("[[app]]\nname = \"mine\"\nuids = [{own}]\n");
    // Lines of the configuration, and the app of whoever shows no token of bursar's.
    let settings = [
        ("", None),
        ("[listen]\nanonymous = true\n", Some("default")),
        (mapped.as_str(), Some("mine")),
    ];
    for (lines, stranger) in settings {
        let origin = Origin::always(Step::Answer(billed(7))).await;
        let bursar = Bursar::with(&origin.url(), lines).await;
        let (token, other) = (add(&bursar, "nightly"), add(&bursar, "daily"));
        let removed = bearer(&add(&bursar, "removed"));
        bursar.apps.remove("removed").expect("it is there");
        let shown = bearer(&token);
        type Headers<'a> = &'a [(&'a str, &'a str)];
        let rows: [(Headers<'_>, Shown); 19] = [
            (&[("x-api-key", &token)], Shown::Token),
            (
                &[("authorization", &shown), ("x-api-key", &token)],
                Shown::Token,
            ),
            (
                &[("authorization", "Basic YTpi"), ("x-api-key", &token)],
                Shown::Token,
            ),
            (&[], Shown::Nothing),
            (&[("x-api-key", "")], Shown::Nothing),
            (&[("x-api-key", KEY)], Shown::Foreign),
            (&[("authorization", "Bearer sk-unused")], Shown::Foreign),
            (
                &[
                    ("authorization", "Bearer sk-unused"),
                    ("x-api-key", "sk-unused"),
                ],
                Shown::Foreign,
            ),
            (
                &[("x-api-key", &other), ("authorization", &shown)],
                Shown::Two,
            ),
            (
                &[("x-api-key", "placeholder"), ("authorization", &shown)],
                Shown::Two,
            ),
            (
                &[
                    ("x-api-key", "placeholder"),
                    ("authorization", "Bearer sk-unused"),
                ],
                Shown::Two,
            ),
            (
                &[("x-api-key", "placeholder"), ("authorization", &removed)],
                Shown::Two,
            ),
            (
                &[("x-api-key", &token), ("authorization", &removed)],
                Shown::Two,
            ),
            (&[("x-api-key", &token), ("x-api-key", &token)], Shown::Two),
            (&[("x-api-key", ""), ("x-api-key", &token)], Shown::Two),
            (
                &[("authorization", ""), ("authorization", &shown)],
                Shown::Two,
            ),
            (
                &[("authorization", &shown), ("authorization", &removed)],
                Shown::Two,
            ),
            (
                &[("authorization", "Bearer a"), ("authorization", "Bearer b")],
                Shown::Two,
            ),
            (
                &[
                    ("authorization", "Basic YTpi"),
                    ("authorization", "Basic YTpi"),
                ],
                Shown::Two,
            ),
        ];
        let mut served = 0;
        for (headers, what) in rows {
            let wanted = match what {
                Shown::Token => Ok("nightly"),
                Shown::Nothing => stranger.ok_or("token_missing"),
                Shown::Foreign => stranger.ok_or("token_refused"),
                Shown::Two => Err("token_refused"),
            };
            let mut wire = match stranger {
                Some("mine") => Wire::unix(&bursar.socket).await,
                _ => bursar.connect().await,
            };
            wire.send(request("POST", CHAT, headers, &chat("hi"))).await;
            let answer = wire.answer().await;
            let text = answer.text();
            match wanted {
                Ok(app) => {
                    served += 1;
                    assert_eq!(answer.status, 200, "{lines:?} {headers:?}: {text}");
                    let found = bursar.entry_of(&answer).app;
                    assert_eq!(&*found, app, "{lines:?} {headers:?}");
                }
                Err(code) => {
                    let found = (answer.status, answer.code());
                    assert_eq!(found, (401, Some(code)), "{lines:?} {headers:?}: {text}");
                }
            }
        }
        assert_eq!(origin.received().len(), served, "{lines:?}");
        for received in origin.received() {
            assert!(received.header("x-api-key").is_none(), "{}", received.head);
            assert!(!received.head.contains(&token), "{}", received.head);
        }
    }
}
