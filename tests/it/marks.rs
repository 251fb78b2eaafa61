//! What an app says of a request for its own accounts: its session, its user, its tags. Where each goes, and
//! where it does not.

mod caps;
mod sums;

use bursar::ledger::query::EntryView;

use crate::support::origin::{billed, json};
use crate::support::wire::request;
use crate::support::{Answer, Bursar, Origin, Step, chat};

const CHAT: &str = "/v1/chat/completions";
const TURN: &str = "/agent/v1/chat/completions";
const SESSION: &str = "0190a6c1-7b3e-7c2f-9d41-5f0be2d73f0a";

async fn ask(bursar: &Bursar, path: &str, body: &str, headers: &[(&str, &str)]) -> Answer {
    let mut wire = bursar.connect().await;
    wire.send(request("POST", path, headers, body)).await;
    wire.answer().await
}

/// Asks, and returns the entry.
async fn buy(bursar: &Bursar, path: &str, body: &str, headers: &[(&str, &str)]) -> EntryView {
    let answer = ask(bursar, path, body, headers).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    bursar.entry_of(&answer)
}

#[tokio::test]
async fn an_agents_session_goes_upstream_as_a_hash_and_is_the_same_wherever_it_is_named() {
    let origin = Origin::always(Step::Answer(billed(3))).await;
    let app = "[[app]]\nname = \"default\"\nsession_header = \"X-Conversation\"\n";
    let bursar = Bursar::with(&origin.url(), app).await;
    let mut sent = Vec::new();
    for (number, name) in [
        "X-Claude-Code-Session-Id",
        "session-id",
        "session_id",
        "conversation_id",
        "X-Conversation",
    ]
    .into_iter()
    .enumerate()
    {
        let body = chat(&format!("hi {number}"));
        let entry = buy(&bursar, TURN, &body, &[(name, SESSION)]).await;
        let session = entry.session.expect("a session");
        let received = origin.received().pop().expect("a request");
        assert!(
            !received.head.contains(SESSION),
            "{name}: {}",
            received.head
        );
        let value = received.header("x-service-session").map(str::to_owned);
        assert_eq!(value, Some(session.hash.to_string()), "{name}");
        sent.push(value);
    }
    sent.dedup();
    assert_eq!(sent.len(), 1, "{sent:?}");
    let kept = std::fs::read_to_string(bursar.state_dir().join("journal/00000001.jsonl"));
    assert!(!kept.expect("the journal").contains(SESSION));
}

#[tokio::test]
async fn the_apps_own_service_session_goes_as_it_is_and_a_chat_is_pinned_by_nothing_else() {
    let origin = Origin::always(Step::Answer(billed(3))).await;
    let bursar = Bursar::before(&origin.url()).await;
    let both = [("X-Service-Session", "mine"), ("session-id", SESSION)];
    let own = buy(&bursar, TURN, &chat("one"), &both).await;
    let received = origin.received();
    assert_eq!(received[0].header("x-service-session"), Some("mine"));
    assert_eq!(own.session.expect("a session").shown.as_str(), "mine");

    let of_chat = buy(&bursar, CHAT, &chat("two"), &[("session-id", SESSION)]).await;
    let received = origin.received();
    assert_eq!(received[1].header("x-service-session"), None);
    assert_eq!(received[1].header("session-id"), None);
    assert!(of_chat.session.is_some(), "it is on the entry all the same");

    let without = buy(&bursar, TURN, &chat("three"), &[]).await;
    assert_eq!(origin.received()[2].header("x-service-session"), None);
    assert_eq!(without.session, None);

    let mut wire = bursar.connect().await;
    let list = request("GET", "/agent/v1/models", &[("session-id", SESSION)], "");
    wire.send(list).await;
    wire.answer().await;
    let list = origin.received().pop().expect("a request");
    assert!(list.request_line().contains("models"));
    assert_eq!(list.header("x-service-session"), None, "no turn");
}

/// The headers that name a session, in the order in which they count.
const ORDER: [&str; 6] = [
    "X-Service-Session",
    "X-Claude-Code-Session-Id",
    "session-id",
    "session_id",
    "conversation_id",
    "X-Conversation",
];

#[tokio::test]
async fn of_two_headers_that_name_a_session_the_one_that_comes_first_in_the_order_counts() {
    let origin = Origin::always(Step::Answer(billed(3))).await;
    let app = "[[app]]\nname = \"default\"\nsession_header = \"X-Conversation\"\n";
    let bursar = Bursar::with(&origin.url(), app).await;
    for (place, first) in ORDER.into_iter().enumerate() {
        for second in &ORDER[place + 1..] {
            let (counts, does_not) = ((first, "this one"), (*second, "not this"));
            for headers in [[counts, does_not], [does_not, counts]] {
                let body = chat(&format!("{headers:?}"));
                let entry = buy(&bursar, TURN, &body, &headers).await;
                let session = entry.session.expect("a session");
                assert_eq!(session.shown.as_str(), "this one", "{headers:?}");
                let wanted = match first {
                    "X-Service-Session" => "this one".to_owned(),
                    _ => session.hash.to_string(),
                };
                let received = origin.received().pop().expect("a request");
                let sent = received.header("x-service-session");
                assert_eq!(sent, Some(wanted.as_str()), "{headers:?}");
            }
        }
    }
}

/// Rule I6, and what a fingerprint is made of.
#[tokio::test]
async fn all_attempts_of_a_request_repeat_its_session_and_another_session_is_another_purchase() {
    let busy = || Step::Answer(json(503, &[], r#"{"detail":"busy"}"#));
    let answers = [
        busy(),
        busy(),
        Step::Answer(billed(3)),
        Step::Answer(billed(4)),
    ];
    let origin = Origin::start(answers).await;
    let bursar = Bursar::before(&origin.url()).await;
    let first = buy(&bursar, TURN, &chat("hi"), &[("session-id", SESSION)]).await;
    let other = buy(&bursar, TURN, &chat("hi"), &[("session-id", "another one")]).await;
    let received = origin.received();
    let session = |at: usize| received[at].header("x-service-session").map(str::to_owned);
    assert_eq!(
        session(0),
        first.session.map(|session| session.hash.to_string())
    );
    assert_eq!((session(1), session(2)), (session(0), session(0)));
    assert_ne!(session(3), session(0));
    assert_ne!(first.id, other.id);
}

#[tokio::test]
async fn user_and_tags_are_on_the_entry_and_do_not_leave() {
    let origin = Origin::always(Step::Answer(billed(3))).await;
    let app = "[[app]]\nname = \"default\"\nuser_header = \"X-End-User\"\ntags = [\"customer\", \"id\"]\n";
    let bursar = Bursar::with(&origin.url(), app).await;
    let marks = [
        ("X-End-User", "ann@example.org"),
        ("X-Bursar-Tags", "id=7, customer=Acme \"EU\""),
    ];
    let entry = buy(&bursar, CHAT, &chat("hi"), &marks).await;
    assert_eq!(entry.user.as_deref(), Some("ann@example.org"));
    assert_eq!(entry.tags.to_string(), "customer=Acme \"EU\",id=7");
    let head = &origin.received()[0].head.to_lowercase();
    for absent in ["x-end-user", "x-bursar-tags", "ann@", "acme"] {
        assert!(!head.contains(absent), "{absent}: {head}");
    }
    let none = buy(&bursar, CHAT, &chat("other"), &[]).await;
    assert_eq!((none.user, none.tags.is_empty()), (None, true));
}

#[tokio::test]
async fn tags_make_no_other_purchase_of_an_equal_request() {
    let origin = Origin::start([Step::Pieces(vec![billed(3)])]).await;
    let app = "[[app]]\nname = \"default\"\ntags = [\"customer\"]\n";
    let bursar = Bursar::with(&origin.url(), app).await;
    let mut first = bursar.connect().await;
    let tagged = |value| request("POST", CHAT, &[("X-Bursar-Tags", value)], &chat("hi"));
    first.send(tagged("customer=a")).await;
    crate::support::eventually("the request", || async {
        (origin.received().len() == 1).then_some(())
    })
    .await;
    drop(first);
    let mut retry = bursar.connect().await;
    let marked = [
        ("X-Bursar-Tags", "customer=b"),
        ("x-stainless-retry-count", "1"),
    ];
    retry
        .send(request("POST", CHAT, &marked, &chat("hi")))
        .await;
    crate::support::eventually("the retry to join", || async {
        (bursar.metric("bursar_joined_retries_total", "") == 1.0).then_some(())
    })
    .await;
    origin.go();
    assert_eq!(retry.answer().await.status, 200);
    assert_eq!(bursar.settled(1).await[0].tags.to_string(), "customer=a");
}

#[tokio::test]
async fn what_cannot_be_read_is_refused_by_name_before_anything_is_sent() {
    let origin = Origin::always(Step::Answer(billed(3))).await;
    let app = "[[app]]\nname = \"default\"\nuser_header = \"X-End-User\"\nsession_header = \"X-Conversation\"\n\
               tags = [\"customer\", \"feature\"]\n";
    let bursar = Bursar::with(&origin.url(), app).await;
    let long = "x".repeat(65);
    let long_tag = format!("customer={long}");
    for (headers, words) in [
        (
            vec![("X-Bursar-Tags", "customer")],
            "tag 1 is not KEY=VALUE",
        ),
        (
            vec![("X-Bursar-Tags", "color=red")],
            "does not declare the key color",
        ),
        (
            vec![("X-Bursar-Tags", "customer=a,customer=b")],
            "customer stands twice",
        ),
        (
            vec![("X-Bursar-Tags", long_tag.as_str())],
            "value of customer",
        ),
        (
            vec![
                ("X-Bursar-Tags", "customer=a"),
                ("x-bursar-tags", "feature=b"),
            ],
            "more than once",
        ),
        (vec![("X-End-User", long.as_str())], "longer than 64"),
        (vec![("X-End-User", "a\u{e9}b")], "not printable"),
        (
            vec![("X-Conversation", "a"), ("x-conversation", "b")],
            "more than once",
        ),
    ] {
        let answer = ask(&bursar, CHAT, &chat("hi"), &headers).await;
        assert_eq!(answer.status, 400, "{words}");
        assert_eq!(answer.code(), Some("header_refused"), "{words}");
        let text = answer.text();
        assert!(text.contains(words), "{words:?} is not in {text}");
        assert!(!text.contains("red") && !text.contains(&long), "{text}");
    }
    assert_eq!(origin.received().len(), 0);
    // A header of other programs that means nothing here is no reason.
    let twice = [("session-id", "a"), ("Session-Id", "b")];
    let entry = buy(&bursar, CHAT, &chat("hi"), &twice).await;
    assert_eq!(entry.session, None);
}
