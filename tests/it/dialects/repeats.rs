//! What an app repeats is one purchase, in whichever form it asks for the answer again.

use bursar::ledger::entry::State;

use super::{AGENT_RESPONSES, RESPONSES, ROUTES, answers, ask, asks, settled, text_of, usage};
use crate::support::origin::Received;
use crate::support::wire::request;
use crate::support::{Bursar, Origin, Step, eventually};

/// A whole answer that waits for [`Origin::go`].
fn on_cue(text: &str) -> Step {
    Step::Pieces(vec![answers(50, text)])
}

async fn received(origin: &Origin, count: usize) {
    eventually("the service to receive", || async {
        (origin.received().len() >= count).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_repeat_joins_the_running_request_whether_it_asks_for_events_or_not() {
    for (path, ..) in ROUTES {
        for (first, second) in [(true, true), (true, false), (false, true), (false, false)] {
            let origin = Origin::start([on_cue("one purchase")]).await;
            let bursar = Bursar::before(&origin.url()).await;
            let mut app = bursar.connect().await;
            app.send(request("POST", path, &[], &asks(path, "twice?", first)))
                .await;
            received(&origin, 1).await;
            app.hang_up();
            eventually("bursar to notice", || async {
                (bursar.metric("bursar_client_disconnects_total", "") >= 1.0).then_some(())
            })
            .await;

            let mut again = bursar.connect().await;
            again
                .send(request("POST", path, &[], &asks(path, "twice?", second)))
                .await;
            eventually("it to join", || async {
                (bursar.metric("bursar_joined_retries_total", "") >= 1.0).then_some(())
            })
            .await;
            origin.go();
            let answer = again.answer().await;

            assert_eq!(text_of(path, &answer), "one purchase", "{path}");
            assert_eq!(usage(path, &answer, second)["cost"], 0.000_05, "{path}");
            let is_stream = answer
                .header("content-type")
                .is_some_and(|kind| kind.starts_with("text/event-stream"));
            assert_eq!(
                is_stream, second,
                "{path}: the form that the repeat asks for"
            );
            assert_eq!(origin.received().len(), 1, "{path}");
            assert_eq!(bursar.billed(), 50, "{path}");
        }
    }
}

#[tokio::test]
async fn an_answer_that_no_app_took_is_kept_for_a_repeat_in_either_form() {
    for (path, ..) in ROUTES {
        for (first, second) in [(true, false), (false, true)] {
            let origin = Origin::start([on_cue("kept")]).await;
            let bursar = Bursar::before(&origin.url()).await;
            let mut app = bursar.connect().await;
            app.send(request("POST", path, &[], &asks(path, "kept?", first)))
                .await;
            received(&origin, 1).await;
            app.hang_up();
            eventually("bursar to notice", || async {
                (bursar.metric("bursar_client_disconnects_total", "") >= 1.0).then_some(())
            })
            .await;
            origin.go();
            bursar.settled(1).await;

            let answer = ask(&bursar, path, &asks(path, "kept?", second), &[]).await;

            assert_eq!(text_of(path, &answer), "kept", "{path}");
            assert_eq!(usage(path, &answer, second)["cost"], 0.000_05, "{path}");
            assert!(answer.header("x-bursar-adopted").is_some(), "{path}");
            assert_eq!(origin.received().len(), 1, "{path}");
            assert_eq!(bursar.billed(), 50, "{path}");
        }
    }
}

/// The service bills 0 for an answer that it gives again.
#[tokio::test]
async fn a_repeat_that_the_service_gives_again_shows_what_its_key_was_billed() {
    for (path, ..) in ROUTES {
        for stream in [false, true] {
            let origin = Origin::start([on_cue("bought")]).await;
            let bursar = Bursar::before(&origin.url()).await;
            let body = asks(path, "again?", stream);
            let mut app = bursar.connect().await;
            app.send(request("POST", path, &[], &body)).await;
            received(&origin, 1).await;
            app.hang_up();
            eventually("bursar to notice", || async {
                (bursar.metric("bursar_client_disconnects_total", "") >= 1.0).then_some(())
            })
            .await;
            origin.go();
            bursar.settled(1).await;
            // What was kept of the answer goes with the process.
            let bursar = bursar.restart("").await;
            let given = String::from_utf8(answers(0, "bought")).expect("text");
            let mark = "Idempotent-Replayed: true\r\nContent-Type";
            let again = given.replacen("Content-Type", mark, 1);
            origin.push(Step::Answer(again.into_bytes()));

            let answer = ask(&bursar, path, &body, &[]).await;

            assert_eq!(text_of(path, &answer), "bought", "{path}");
            assert_eq!(usage(path, &answer, stream)["cost"], 0.000_05, "{path}");
            assert!(answer.header("x-bursar-adopted").is_some(), "{path}");
            let [first, second] = &origin.received()[..] else {
                panic!("{path}: {} requests", origin.received().len());
            };
            let key = |sent: &Received| sent.header("idempotency-key").map(str::to_owned);
            assert_eq!(key(first), key(second), "{path}: one purchase");
            assert_eq!(bursar.entry_of(&answer).state, State::Replayed, "{path}");
            assert_eq!(bursar.billed(), 50, "{path}");
        }
    }
}

#[tokio::test]
async fn an_equal_turn_of_another_session_is_no_repeat() {
    for (path, ..) in ROUTES {
        if !path.starts_with("/agent") {
            continue;
        }
        let steps = [on_cue("the first's"), Step::Answer(answers(60, "other's"))];
        let origin = Origin::start(steps).await;
        let bursar = Bursar::before(&origin.url()).await;
        let body = asks(path, "whose?", false);
        let of = |id| [("x-claude-code-session-id", id)];
        let mut app = bursar.connect().await;
        app.send(request("POST", path, &of("first"), &body)).await;
        received(&origin, 1).await;
        app.hang_up();
        eventually("bursar to notice", || async {
            (bursar.metric("bursar_client_disconnects_total", "") >= 1.0).then_some(())
        })
        .await;
        origin.go();
        bursar.settled(1).await;

        let other = ask(&bursar, path, &body, &of("other")).await;
        assert_eq!(text_of(path, &other), "other's", "{path}");
        assert_eq!(other.header("x-bursar-adopted"), None, "{path}");
        let again = ask(&bursar, path, &body, &of("first")).await;
        assert_eq!(text_of(path, &again), "the first's", "{path}");
        assert!(again.header("x-bursar-adopted").is_some(), "{path}");
        assert_eq!(bursar.billed(), 110, "{path}");
    }
}

#[tokio::test]
async fn a_delivered_answer_is_never_given_to_a_later_equal_request() {
    for (path, ..) in ROUTES {
        let origin = Origin::always(Step::Answer(answers(7, "again"))).await;
        let bursar = Bursar::before(&origin.url()).await;
        for stream in [true, true, false] {
            let answer = ask(&bursar, path, &asks(path, "sample", stream), &[]).await;
            assert_eq!(text_of(path, &answer), "again");
            assert_eq!(bursar.entry_of(&answer).state, settled(7));
        }
        assert_eq!(
            origin.received().len(),
            3,
            "{path}: three samples, three bills"
        );
    }
}

#[tokio::test]
async fn two_dialects_never_share_an_answer() {
    let origin = Origin::start([on_cue("mine"), Step::Answer(answers(60, "yours"))]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let mut app = bursar.connect().await;
    app.send(request(
        "POST",
        RESPONSES,
        &[],
        &asks(RESPONSES, "equal", false),
    ))
    .await;
    received(&origin, 1).await;
    app.hang_up();
    eventually("bursar to notice", || async {
        (bursar.metric("bursar_client_disconnects_total", "") >= 1.0).then_some(())
    })
    .await;

    // The same bytes as those that the first was translated to.
    let translated = String::from_utf8(origin.received()[0].body.clone()).expect("text");
    let answer = ask(&bursar, "/v1/chat/completions", &translated, &[]).await;

    assert_eq!(answer.json()["choices"][0]["message"]["content"], "yours");
    assert_eq!(origin.received().len(), 2);
}

#[tokio::test]
async fn every_attempt_of_a_request_sends_the_same_bytes_under_one_key() {
    for (path, ..) in ROUTES {
        let origin =
            Origin::start([Step::Close, Step::Reset, Step::Answer(answers(9, "third"))]).await;
        let bursar = Bursar::with(&origin.url(), "[retry]\nbase_ms = 1\ncap_ms = 2\n").await;

        let answer = ask(&bursar, path, &asks(path, "retry me", true), &[]).await;

        assert_eq!(text_of(path, &answer), "third", "{path}");
        let received = origin.received();
        assert_eq!(received.len(), 3, "{path}");
        for attempt in &received {
            assert_eq!(attempt.body, received[0].body, "{path}");
            let key = attempt.header("idempotency-key");
            assert_eq!(key, received[0].header("idempotency-key"), "{path}");
            assert_eq!(attempt.request_line(), received[0].request_line());
        }
        assert_eq!(bursar.entry_of(&answer).attempts.len(), 3);
    }
}

#[tokio::test]
async fn a_repeat_that_asks_for_another_echo_is_another_purchase() {
    let origin = Origin::start([on_cue("mine"), Step::Answer(answers(60, "yours"))]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let asks = |job: &str| {
        serde_json::json!({"model": "auto", "input": "equal", "metadata": {"job": job}}).to_string()
    };
    let mut app = bursar.connect().await;
    app.send(request("POST", RESPONSES, &[], &asks("1"))).await;
    received(&origin, 1).await;
    app.hang_up();
    eventually("bursar to notice", || async {
        (bursar.metric("bursar_client_disconnects_total", "") >= 1.0).then_some(())
    })
    .await;

    let answer = ask(&bursar, RESPONSES, &asks("2"), &[]).await;

    assert_eq!(answer.json()["metadata"]["job"], "2", "{}", answer.text());
    let received = origin.received();
    assert_eq!(received[0].body, received[1].body, "sent alike");
}

#[tokio::test]
async fn what_was_given_is_referred_to_by_an_id_that_no_reader_of_the_ledger_knows() {
    let origin = Origin::always(Step::Answer(answers(7, "the secret is 5"))).await;
    let bursar = Bursar::before(&origin.url()).await;
    let first = ask(&bursar, RESPONSES, &asks(RESPONSES, "remember", false), &[]).await;
    let entry = first
        .header("x-bursar-entry")
        .expect("an entry")
        .replace('-', "");
    let id = first.json()["id"].as_str().expect("an id").to_owned();
    assert!(!first.text().contains(&entry), "{}", first.text());
    let refer = |id: &str| {
        serde_json::json!({"model": "auto", "input": "and now?", "previous_response_id": id})
            .to_string()
    };

    let guessed = ask(&bursar, RESPONSES, &refer(&format!("resp_{entry}")), &[]).await;
    assert_eq!(guessed.code(), Some("untranslatable"), "{}", guessed.text());
    let second = ask(&bursar, RESPONSES, &refer(&id), &[]).await;

    assert_eq!(second.status, 200, "{}", second.text());
    let received = origin.received();
    let sent: serde_json::Value = serde_json::from_slice(&received[1].body).expect("JSON");
    let texts: Vec<_> = sent["messages"]
        .as_array()
        .expect("messages")
        .iter()
        .collect();
    assert_eq!(texts.len(), 3, "{sent}");
    assert_eq!(texts[1]["content"], "the secret is 5", "{sent}");
}

#[tokio::test]
async fn what_was_given_before_a_restart_is_refused_with_what_helps_and_nothing_is_sent() {
    for path in [RESPONSES, AGENT_RESPONSES] {
        let origin = Origin::always(Step::Answer(answers(7, "the secret is 5"))).await;
        let bursar = Bursar::before(&origin.url()).await;
        let first = ask(&bursar, path, &asks(path, "remember", false), &[]).await;
        let given = first.json();
        let (response, item) = (&given["id"], &given["output"][0]["id"]);
        let item = serde_json::json!({"type": "item_reference", "id": item});
        let words = serde_json::json!({"role": "user", "content": "and now?"});
        let references = [
            serde_json::json!({"model": "auto", "input": [words], "previous_response_id": response}),
            serde_json::json!({"model": "auto", "input": [item, words]}),
        ];
        for reference in &references {
            let known = ask(&bursar, path, &reference.to_string(), &[]).await;
            assert_eq!(known.status, 200, "{path} {reference}: {}", known.text());
        }
        let sent = origin.received().len();
        assert_eq!(sent, 3, "{path}");

        let bursar = bursar.restart("").await;
        for reference in &references {
            let unknown = ask(&bursar, path, &reference.to_string(), &[]).await;
            assert_eq!(unknown.status, 400, "{path} {reference}");
            assert_eq!(unknown.code(), Some("untranslatable"), "{path} {reference}");
            let text = unknown.text();
            assert!(text.contains("store: false"), "{path} {reference}: {text}");
        }
        assert_eq!(origin.received().len(), sent, "{path}: nothing was sent");
        assert_eq!(bursar.billed(), 21, "{path}");
    }
}

/// The same bytes of the app become other bytes for the service: as by another version of the translation, here by an
/// alias that came meanwhile.
#[tokio::test]
async fn an_own_key_whose_request_is_translated_otherwise_is_refused_and_nothing_is_sent() {
    let own = [("idempotency-key", "mine-1")];
    let alias = "[models]\naliases = { \"mine\" = \"auto\" }\n";
    for (path, ..) in ROUTES {
        let origin = Origin::start([
            Step::Answer(answers(50, "bought")),
            Step::Answer(answers(60, "new")),
        ])
        .await;
        let bursar = Bursar::before(&origin.url()).await;
        let named = |prompt| asks(path, prompt, false).replace("\"auto\"", "\"mine\"");
        let first = ask(&bursar, path, &named("once"), &own).await;
        assert_eq!(text_of(path, &first), "bought", "{path}");

        let bursar = bursar.restart(alias).await;
        let again = ask(&bursar, path, &named("once"), &own).await;
        assert_eq!(again.status, 409, "{path}: {}", again.text());
        assert_eq!(again.code(), Some("translation_changed"), "{path}");
        assert_eq!(again.header("x-should-retry"), Some("false"), "{path}");
        assert_eq!(origin.received().len(), 1, "{path}: nothing was sent");
        assert_eq!(bursar.billed(), 50, "{path}");

        // Another request under the key is the service's to refuse, and another key is free.
        let other = ask(&bursar, path, &named("twice"), &own).await;
        assert_eq!(text_of(path, &other), "new", "{path}");
        assert_eq!(origin.received().len(), 2, "{path}");
    }
}
