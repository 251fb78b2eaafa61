//! Who gets what when bodies together want more than there is. Time is tokio's, stopped.

use super::{BodyBudget, NoShare, SHARE_WAIT, Share};
use tokio::time::Instant;

/// Grows to its most in steps of 1, all interleaved with the others.
async fn read_whole(mut share: Share, most: usize) -> Result<Share, NoShare> {
    while share.bytes() < most {
        tokio::task::yield_now().await;
        share.grow(1).await?;
    }
    share.is_complete();
    Ok(share)
}

#[tokio::test(start_paused = true)]
async fn bodies_that_grow_together_never_wait_for_each_other() {
    let budget = BodyBudget::new(256);
    let began = Instant::now();
    let reading: Vec<_> = (0..40)
        .map(|_| tokio::spawn(read_whole(budget.share(30), 30)))
        .collect();
    for body in reading {
        // Answered at once when it is whole.
        let share = body.await.expect("a body").expect("its share");
        assert_eq!(share.bytes(), 30);
        drop(share);
    }
    assert_eq!(began.elapsed().as_millis(), 0, "nobody waited in vain");
    assert_eq!(budget.0.state.lock().free, 256);
}

#[tokio::test(start_paused = true)]
async fn who_waits_in_vain_is_told_after_its_time_and_holds_nothing_then() {
    let budget = BodyBudget::new(100);
    let mut whole = Vec::new();
    for _ in 0..3 {
        let share = read_whole(budget.share(30), 30).await;
        whole.push(share.expect("there is room"));
    }
    let began = Instant::now();
    let late = read_whole(budget.share(30), 30).await;
    assert_eq!(late.err(), Some(NoShare));
    assert_eq!(began.elapsed(), SHARE_WAIT);
    assert_eq!(budget.0.state.lock().free, 10);
    whole.pop();
    let later = read_whole(budget.share(30), 30).await;
    assert!(later.is_ok(), "{later:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_announced_and_not_sent_takes_no_more_than_one_body() {
    let budget = BodyBudget::new(256);
    // Fifty that announce 30 and send 1.
    let mut idle = Vec::new();
    for _ in 0..50 {
        let mut share = budget.share(30);
        share.grow(1).await.expect("one");
        idle.push(share);
    }
    let began = Instant::now();
    // 256 less 50 held and the eldest's 29: five bodies of 30 are read all the same.
    let mut whole = Vec::new();
    for _ in 0..5 {
        let share = read_whole(budget.share(30), 30).await;
        whole.push(share.expect("there is room"));
    }
    assert_eq!(began.elapsed().as_millis(), 0);
}

#[tokio::test(start_paused = true)]
async fn nobody_takes_what_an_elder_waits_for() {
    let budget = BodyBudget::new(60);
    let first = read_whole(budget.share(30), 30).await.expect("room");
    let second = read_whole(budget.share(25), 25).await.expect("room");
    let elder = tokio::spawn(read_whole(budget.share(30), 30));
    tokio::task::yield_now().await;
    let younger = tokio::spawn(read_whole(budget.share(10), 10));
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
    assert!(!elder.is_finished() && !younger.is_finished());
    drop(second);
    let share = elder.await.expect("a body").expect("its share");
    assert!(!younger.is_finished(), "the elder first");
    drop((share, first));
    assert!(younger.await.expect("a body").is_ok());
}
