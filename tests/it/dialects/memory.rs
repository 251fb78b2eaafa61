//! Answers that are read whole and made into something else draw on one budget, however slowly their apps read.

use std::time::Duration;

use serde_json::{Value, json};

use super::{RESPONSES, answers, ask, asks, settled, text_of};
use crate::support::daemon::Daemon;
use crate::support::wire::request;
use crate::support::{Bursar, Origin, Step, Wire, eventually, within};

/// Of 8 MiB, given as events: seven times in memory, so four of them have room in 256 MiB.
const LARGE_BYTES: usize = 8 * 1024 * 1024;
const HAVE_ROOM: usize = 4;

async fn begin(bursar: &Bursar, prompt: &str) -> Wire {
    let mut wire = bursar.connect().await;
    wire.send(request(
        "POST",
        RESPONSES,
        &[],
        &asks(RESPONSES, prompt, true),
    ))
    .await;
    wire
}

fn count_settled(bursar: &Bursar) -> usize {
    let entries = bursar.entries();
    entries
        .iter()
        .filter(|entry| entry.state == settled(50))
        .count()
}

async fn are_settled(bursar: &Bursar, count: usize) {
    // Each of them takes seconds of a machine that does other things, too.
    within(Duration::from_secs(60), "so many to be settled", || async {
        (count_settled(bursar) >= count).then_some(())
    })
    .await;
}

/// The service has received one more than have room, which is not settled. Small ones need no room.
async fn one_too_many_waits(bursar: &Bursar, origin: &Origin, have_room: usize) {
    eventually("the service to receive", || async {
        (origin.received().len() > have_room).then_some(())
    })
    .await;
    origin.push(Step::Answer(answers(7, "small")));
    let small = ask(bursar, RESPONSES, &asks(RESPONSES, "small", true), &[]).await;
    assert_eq!(text_of(RESPONSES, &small), "small");
    assert_eq!(count_settled(bursar), have_room);
}

#[tokio::test]
async fn large_answers_whose_apps_do_not_read_leave_the_rest_at_the_service() {
    let large = answers(50, &"x".repeat(LARGE_BYTES));
    let steps = [(); HAVE_ROOM + 1].map(|()| Step::Answer(large.clone()));
    let origin = Origin::start(steps).await;
    let bursar = Bursar::before(&origin.url()).await;
    let mut apps = Vec::new();
    for number in 0..HAVE_ROOM {
        apps.push(begin(&bursar, &format!("large {number}")).await);
    }
    are_settled(&bursar, HAVE_ROOM).await;
    apps.push(begin(&bursar, "one too many").await);
    one_too_many_waits(&bursar, &origin, HAVE_ROOM).await;

    for mut app in apps {
        let answer = app.answer().await;
        assert_eq!(text_of(RESPONSES, &answer).len(), LARGE_BYTES);
    }
    assert_eq!(count_settled(&bursar), HAVE_ROOM + 1);
}

/// A Response and three of its events say again what the request said: `instructions`, `tools`, `metadata`.
#[tokio::test]
async fn what_small_answers_say_of_large_requests_draws_on_the_budget_too() {
    // Four times of 12 MiB: five of them have room.
    const HAVE_ROOM: usize = 5;
    let origin = Origin::start([(); HAVE_ROOM + 1].map(|()| Step::Answer(answers(50, "ok")))).await;
    let bursar = Bursar::before(&origin.url()).await;
    let instructions = "x".repeat(12 * 1024 * 1024);
    let mut apps = Vec::new();
    for number in 0..=HAVE_ROOM {
        let body = json!({"model": "auto", "stream": true, "input": number.to_string(), "instructions": instructions});
        let mut wire = bursar.connect().await;
        wire.send(request("POST", RESPONSES, &[], &body.to_string()))
            .await;
        apps.push(wire);
        are_settled(&bursar, (number + 1).min(HAVE_ROOM)).await;
    }
    one_too_many_waits(&bursar, &origin, HAVE_ROOM).await;

    for mut app in apps {
        assert_eq!(text_of(RESPONSES, &app.answer().await), "ok");
    }
    assert_eq!(count_settled(&bursar), HAVE_ROOM + 1);
}

/// A reference of some 80 bytes to an answer of 1 MiB, a thousand times.
#[tokio::test]
async fn references_to_more_than_a_body_may_have_are_refused_before_they_are_followed() {
    let text = "x".repeat(1024 * 1024);
    let origin = Origin::start([Step::Answer(answers(50, &text))]).await;
    let directory = tempfile::tempdir().expect("a directory");
    let daemon = Daemon::start(&origin.url(), &directory.path().join("state"), &[]).await;
    let post = async |body: &Value| {
        let mut wire = daemon.connect().await;
        wire.send(request("POST", RESPONSES, &[], &body.to_string()))
            .await;
        wire.answer().await
    };
    let given = post(&json!({"model": "auto", "input": "a long answer"})).await;
    let given = given.json();
    let item = json!({"type": "item_reference", "id": given["output"][0]["id"]});
    let before_kib = daemon.peak_kib();

    let refused = post(&json!({"model": "auto", "input": vec![item; 1_000]})).await;
    assert_eq!(refused.status, 413, "{}", refused.text());
    assert_eq!(refused.json()["error"]["code"], "body_too_large");
    assert_eq!(origin.received().len(), 1, "nothing was sent");
    let grown_kib = daemon.peak_kib() - before_kib;
    assert!(grown_kib < 100 * 1024, "{grown_kib} KiB");
    daemon.terminate().await;
}
