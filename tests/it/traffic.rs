//! What `/metrics` says of the way to the service, and of the memory that requests take on it.

use crate::support::origin::billed;
use crate::support::wire::request;
use crate::support::{Bursar, Origin, Step, chat, eventually};

const CHAT: &str = "/v1/chat/completions";

#[tokio::test]
async fn each_answer_is_counted_by_whether_its_connection_was_kept_from_an_earlier_one() {
    let origin = Origin::always(Step::Answer(billed(7))).await;
    let bursar = Bursar::before(&origin.url()).await;
    let over = |connection: &str| {
        let label = format!("connection=\"{connection}\"");
        bursar.metric("bursar_upstream_answers_total", &label)
    };
    assert_eq!(
        (over("new"), over("kept")),
        (0.0, 0.0),
        "there from the start"
    );

    bursar.post(CHAT, &chat("first")).await;

    assert_eq!((over("new"), over("kept")), (1.0, 0.0));
    // It is kept a moment after its answer was given.
    eventually("a kept connection", || async {
        bursar.post(CHAT, &chat("next")).await;
        (over("kept") >= 1.0).then_some(())
    })
    .await;
    let answers = f64::from(u32::try_from(origin.received().len()).expect("a count"));
    assert_eq!(over("new") + over("kept"), answers);
}

#[tokio::test]
async fn the_memory_of_bodies_is_shown_while_they_are_held_and_given_back() {
    const BYTES: u32 = 1_000_000;
    let origin = Origin::start([Step::Pieces(vec![billed(7)])]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let held = || bursar.metric("bursar_request_body_bytes", "");
    assert_eq!(held(), 0.0);
    let prompt = "x".repeat(usize::try_from(BYTES).expect("a length"));
    let mut app = bursar.connect().await;
    app.send(request("POST", CHAT, &[], &chat(&prompt))).await;
    eventually("the service to receive", || async {
        (origin.received().len() == 1).then_some(())
    })
    .await;

    // A retry would need it again.
    assert!(held() >= f64::from(BYTES), "{}", held());

    origin.go();
    assert_eq!(app.answer().await.status, 200);
    eventually("the memory to be given back", || async {
        (held() == 0.0).then_some(())
    })
    .await;
}
