//! The signals of a stop.

use futures_util::FutureExt;

use super::*;

#[tokio::test]
async fn a_signal_wakes_the_tasks_that_wait_and_is_seen_by_those_that_come_later() {
    let life = Life::new();
    let waiting: Vec<_> = (0..3)
        .map(|_| {
            let mut cut = life.cut_signal();
            tokio::spawn(async move { cut.wait().await })
        })
        .collect();
    tokio::task::yield_now().await;
    assert!(!life.cut_signal().is_given());
    life.cut();
    for task in waiting {
        assert!(task.await.is_ok());
    }
    assert!(life.cut_signal().wait().now_or_never().is_some());
    assert!(life.stop_signal().wait().now_or_never().is_none());
}

#[tokio::test]
async fn a_task_that_waits_again_and_again_is_entered_once_and_leaves_nothing_behind() {
    let life = Life::new();
    let mut cut = life.cut_signal();
    for _ in 0..3 {
        assert!(cut.wait().now_or_never().is_none());
        assert_eq!(life.cut.waiting.lock().len(), 1);
    }
    // Another task goes on with it.
    let polled = poll_fn(|cx| Poll::Ready(cut.poll(cx))).await;
    assert_eq!(polled, Poll::Pending);
    assert_eq!(life.cut.waiting.lock().len(), 1);
    drop(cut);
    assert!(life.cut.waiting.lock().is_empty());
}
