//! Answers that are read whole and made into something else draw on one budget, however slowly their apps read.

use std::time::Duration;

use super::{RESPONSES, answers, ask, asks, settled, text_of};
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
    eventually("the service to receive", || async {
        (origin.received().len() > HAVE_ROOM).then_some(())
    })
    .await;
    // Small ones need no room.
    origin.push(Step::Answer(answers(7, "small")));
    let small = ask(&bursar, RESPONSES, &asks(RESPONSES, "small", true), &[]).await;
    assert_eq!(text_of(RESPONSES, &small), "small");
    assert_eq!(count_settled(&bursar), HAVE_ROOM);

    for mut app in apps {
        let answer = app.answer().await;
        assert_eq!(text_of(RESPONSES, &answer).len(), LARGE_BYTES);
    }
    assert_eq!(count_settled(&bursar), HAVE_ROOM + 1);
}
