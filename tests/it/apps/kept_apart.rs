//! Two apps share nothing: no answer, no key, and no sum, also over a restart.

use std::sync::Arc;

use super::{add, ask, bearer};
use crate::support::origin::billed;
use crate::support::wire::request;
use crate::support::{Bursar, Origin, Step, chat, eventually};

fn key(origin: &Origin, index: usize) -> String {
    let received = origin.received();
    let key = received[index].header("idempotency-key");
    key.expect("a key").to_owned()
}

#[tokio::test]
async fn no_app_joins_the_running_request_of_another() {
    let origin = Origin::start([Step::Pieces(vec![billed(7)]), Step::Answer(billed(8))]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let (one, other) = (add(&bursar, "one"), add(&bursar, "other-one"));
    let mut first = bursar.connect().await;
    let shown = [("Authorization", bearer(&one))];
    let shown: Vec<(&str, &str)> = shown
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    first
        .send(request("POST", super::CHAT, &shown, &chat("hi")))
        .await;
    eventually("the service to receive", || async {
        (!origin.received().is_empty()).then_some(())
    })
    .await;
    drop(first);
    eventually("the app to be missed", || async {
        (bursar.metric("bursar_client_disconnects_total", "") >= 1.0).then_some(())
    })
    .await;

    let answer = ask(&bursar, &other, &chat("hi")).await;

    assert_eq!(answer.header("x-service-billed"), Some("8"));
    assert_eq!(answer.header("x-bursar-adopted"), None);
    assert_ne!(key(&origin, 0), key(&origin, 1));
    origin.go();
    // The same app gets what it missed.
    let answer = ask(&bursar, &one, &chat("hi")).await;
    assert_eq!(answer.header("x-service-billed"), Some("7"));
    assert!(answer.header("x-bursar-adopted").is_some());
    assert_eq!(origin.received().len(), 2);
}

#[tokio::test]
async fn no_app_adopts_the_key_of_another_also_after_a_restart() {
    let origin = Origin::start([
        Step::Close,
        Step::Answer(billed(8)),
        Step::Answer(billed(7)),
    ])
    .await;
    let once = "[retry]\nattempts = 1\n";
    let bursar = Bursar::with(&origin.url(), once).await;
    let (one, other) = (add(&bursar, "one"), add(&bursar, "other-one"));
    let failed = ask(&bursar, &one, &chat("hi")).await;
    assert_eq!(failed.code(), Some("outcome_unknown"), "{}", failed.text());

    let bursar = bursar.restart(once).await;
    let answer = ask(&bursar, &other, &chat("hi")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("x-bursar-adopted"), None);
    assert_ne!(key(&origin, 0), key(&origin, 1));

    let answer = ask(&bursar, &one, &chat("hi")).await;
    assert!(
        answer.header("x-bursar-adopted").is_some(),
        "its own retry adopts"
    );
    assert_eq!(key(&origin, 0), key(&origin, 2));
}

#[tokio::test]
async fn sums_of_an_app_stay_when_it_is_removed_and_after_a_restart() {
    let origin = Origin::always(Step::Answer(billed(7))).await;
    let bursar = Bursar::before(&origin.url()).await;
    let (one, other) = (add(&bursar, "one"), add(&bursar, "other-one"));
    ask(&bursar, &one, &chat("hi")).await;
    ask(&bursar, &other, &chat("hi")).await;
    ask(&bursar, &other, &chat("hi")).await;
    bursar.settled(3).await;
    let billed = |bursar: &Bursar| {
        let of = |app: &str| bursar.metric("bursar_billed_usd_total", &format!("app=\"{app}\""));
        (of("one"), of("other-one"))
    };
    assert_eq!(billed(&bursar), (0.000_007, 0.000_014));

    bursar.apps.remove("one").expect("it is there");
    assert_eq!(billed(&bursar), (0.000_007, 0.000_014), "rule I10");

    let bursar = bursar.restart("").await;
    assert_eq!(billed(&bursar), (0.000_007, 0.000_014), "rule I10");
    let names: Vec<Arc<str>> = bursar
        .entries()
        .into_iter()
        .map(|entry| entry.app)
        .collect();
    assert_eq!(names.iter().filter(|name| ***name == *"one").count(), 1);
    assert_eq!(
        ask(&bursar, &other, &chat("hi")).await.status,
        200,
        "a token outlives the process"
    );
    assert_eq!(ask(&bursar, &one, &chat("hi")).await.status, 401);
}

#[tokio::test]
async fn an_app_that_is_added_anew_finds_nothing_of_what_its_name_was_given() {
    let answer = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"a secret"},"finish_reason":"stop"}]}"#;
    let answer = Step::Answer(crate::support::origin::json(200, &[], answer));
    let origin = Origin::always(answer).await;
    let bursar = Bursar::before(&origin.url()).await;
    let first = add(&bursar, "nightly");
    let path = "/v1/responses";
    let turn = |token: &str, body: &serde_json::Value| {
        request(
            "POST",
            path,
            &[("Authorization", &bearer(token))],
            &body.to_string(),
        )
    };
    let mut app = bursar.connect().await;
    let begin = serde_json::json!({"model": "auto", "input": "hi"});
    app.send(turn(&first, &begin)).await;
    let id = app.answer().await.json()["id"].clone();
    let refers = serde_json::json!({"model": "auto", "input": "and?", "previous_response_id": id});

    bursar.apps.remove("nightly").expect("it is there");
    let second = add(&bursar, "nightly");
    let mut app = bursar.connect().await;
    app.send(turn(&second, &refers)).await;
    let refused = app.answer().await;

    assert_eq!(refused.code(), Some("untranslatable"), "{}", refused.text());
    assert_eq!(origin.received().len(), 1, "nothing was sent");
}
