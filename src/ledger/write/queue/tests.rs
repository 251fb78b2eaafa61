use std::time::Duration;

use super::{Acknowledged, JOBS_MAX, Job, JobQueue};
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
    let asked = queue.ask(Job::Remember);
    let serve = async {
        assert_eq!(queue.take(Duration::ZERO).unwrap().len(), JOBS_MAX);
        let mut waited = Vec::new();
        while waited.is_empty() {
            tokio::task::yield_now().await;
            waited = queue.take(Duration::ZERO).unwrap();
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

    let (answer, ()) = tokio::join!(queue.ask(Job::Remember), gone);

    assert!(matches!(answer, Err(LedgerError::Closed)));
    assert!(!queue.post(Job::Remember));
}
