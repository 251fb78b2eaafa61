use std::time::Duration;

use super::{Acknowledged, Answer, JOBS_MAX, Job, JobQueue};
use crate::ledger::delivery::Remembered;
use crate::ledger::error::LedgerError;

/// A queue without room.
fn full() -> JobQueue {
    let queue = JobQueue::default();
    while queue.post(Job::Remember) {}
    queue
}

#[tokio::test]
async fn a_sender_that_finds_no_room_waits_and_is_served() {
    let queue = full();
    let asked = async {
        let (_, answer) = queue.hand_over(Job::Remember).await?;
        answer.given().await
    };
    let serve = async {
        assert_eq!(queue.take().len(), JOBS_MAX);
        let mut waited = Vec::new();
        while waited.is_empty() {
            tokio::task::yield_now().await;
            waited = queue.take();
        }
        assert_eq!(waited.len(), 1);
        let answer = Acknowledged::Remembered(Remembered::default());
        waited.remove(0).answer(Ok(answer));
    };

    let (answer, ()) = tokio::join!(asked, serve);

    assert!(matches!(answer, Ok(Acknowledged::Remembered(_))));
}

#[tokio::test]
async fn a_sender_that_finds_no_room_does_not_wait_for_a_writer_that_is_gone() {
    let queue = full();
    let gone = async { queue.abandon() };

    let (refused, ()) = tokio::join!(queue.hand_over(Job::Remember), gone);

    assert!(matches!(refused, Err(LedgerError::Closed)));
    assert!(!queue.post(Job::Remember));
}

#[tokio::test]
async fn of_those_that_wait_the_first_is_told_so_and_a_closed_queue_ends_when_it_is_empty() {
    let queue = JobQueue::default();
    let is_first = |handed_over: Result<(bool, Answer), _>| handed_over.unwrap().0;

    let first = is_first(queue.hand_over(Job::Remember).await);
    let second = is_first(queue.hand_over(Job::Remember).await);
    queue.close();
    let goes_on = queue.wait(Duration::ZERO);
    let taken = queue.take().len();

    assert!(first && !second && goes_on);
    assert_eq!(taken, 2);
    assert!(!queue.wait(Duration::ZERO));
}
