//! Which body gets what when bodies together want more than there is. Time is tokio's, stopped.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{BodyBudget, BudgetShare, NoShare, SHARE_WAIT, SLOW_AFTER};

/// Of an app that is alone.
fn share(budget: &BodyBudget, most: usize) -> BudgetShare {
    budget.share(&Arc::from("default"), usize::MAX, most)
}

/// Grows to its most in steps of 1, all interleaved with the others.
async fn read_whole(mut share: BudgetShare, most: usize) -> Result<BudgetShare, NoShare> {
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
        .map(|_| tokio::spawn(read_whole(share(&budget, 30), 30)))
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
async fn a_body_that_waits_in_vain_is_refused_after_its_time_and_holds_nothing() {
    let budget = BodyBudget::new(100);
    let mut whole = Vec::new();
    for _ in 0..3 {
        let share = read_whole(share(&budget, 30), 30).await;
        whole.push(share.expect("there is room"));
    }
    let began = Instant::now();
    let late = read_whole(share(&budget, 30), 30).await;
    assert_eq!(late.err(), Some(NoShare::InTime));
    assert_eq!(began.elapsed(), SHARE_WAIT);
    assert_eq!(budget.0.state.lock().free, 10);
    whole.pop();
    let later = read_whole(share(&budget, 30), 30).await;
    assert!(later.is_ok(), "{later:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_announced_and_not_sent_takes_no_more_than_one_body() {
    let budget = BodyBudget::new(256);
    // Fifty that announce 30 and send 1.
    let mut idle = Vec::new();
    for _ in 0..50 {
        let mut share = share(&budget, 30);
        share.grow(1).await.expect("one");
        idle.push(share);
    }
    let began = Instant::now();
    // 256 less 50 held and the eldest's 29: five bodies of 30 are read all the same.
    let mut whole = Vec::new();
    for _ in 0..5 {
        let share = read_whole(share(&budget, 30), 30).await;
        whole.push(share.expect("there is room"));
    }
    assert_eq!(began.elapsed().as_millis(), 0);
}

#[tokio::test(start_paused = true)]
async fn no_body_takes_what_an_elder_waits_for() {
    let budget = BodyBudget::new(60);
    let first = read_whole(share(&budget, 30), 30).await.expect("room");
    let second = read_whole(share(&budget, 25), 25).await.expect("room");
    let elder = tokio::spawn(read_whole(share(&budget, 30), 30));
    tokio::task::yield_now().await;
    let younger = tokio::spawn(read_whole(share(&budget, 10), 10));
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

/// Takes so much at once, and is read on as slowly as one likes.
async fn begun(budget: &BodyBudget, held: usize, most: usize) -> BudgetShare {
    let mut share = share(budget, most);
    share.grow(held).await.expect("there is room");
    share
}

async fn is_asked(share: &BudgetShare) -> bool {
    tokio::time::timeout(Duration::ZERO, share.asked_to_go())
        .await
        .is_ok()
}

#[tokio::test(start_paused = true)]
async fn the_slowest_goes_first_and_only_when_another_waits() {
    let budget = BodyBudget::new(100);
    let mut drips = Vec::new();
    for _ in 0..4 {
        drips.push(begun(&budget, 24, 25).await);
        sleep(Duration::from_secs(1)).await;
    }
    sleep(Duration::from_secs(60)).await;
    for drip in &drips {
        assert!(!is_asked(drip).await, "nobody waits");
    }
    // It goes on: now the second is the slowest.
    drips[0].grow(1).await.expect("its rest");
    let began = Instant::now();
    let other = tokio::spawn(read_whole(share(&budget, 20), 20));
    drips[1].asked_to_go().await;
    assert_eq!(began.elapsed(), Duration::ZERO, "it has been slow for long");
    for at in [0, 2, 3] {
        assert!(!is_asked(&drips[at]).await, "one is enough: {at}");
    }
    drop(drips.remove(1));
    let other = other.await.expect("a body").expect("room");
    assert_eq!(began.elapsed(), Duration::ZERO);
    drop(other);
}

/// What is asked for and what comes may cross.
#[tokio::test(start_paused = true)]
async fn a_body_that_was_asked_to_go_is_given_no_more_and_waits_for_nothing() {
    // It would fit, and it would not.
    for more in [1, 61] {
        let budget = BodyBudget::new(100);
        let mut slow = begun(&budget, 40, 100).await;
        sleep(2 * SLOW_AFTER).await;
        let other = tokio::spawn(read_whole(share(&budget, 70), 70));
        slow.asked_to_go().await;
        let began = Instant::now();
        assert_eq!(slow.grow(more).await, Err(NoShare::AskedToGo), "{more}");
        assert_eq!(began.elapsed(), Duration::ZERO, "{more}");
        drop(slow);
        assert!(other.await.expect("a body").is_ok(), "{more}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_grows_and_one_that_waits_are_not_slow() {
    let budget = BodyBudget::new(100);
    let whole = read_whole(share(&budget, 40), 40).await.expect("room");
    let mut quick = begun(&budget, 10, 30).await;
    let waits = begun(&budget, 25, 50).await;
    let asked = Arc::clone(&waits.asked_to_go);
    let waits = tokio::spawn(read_whole(waits, 50));
    let began = Instant::now();
    let late = tokio::spawn(read_whole(share(&budget, 30), 30));
    for _ in 0..3 {
        sleep(SLOW_AFTER / 4).await;
        quick.grow(1).await.expect("its rest is kept free");
        assert!(!is_asked(&quick).await);
    }
    assert!(!waits.is_finished());
    // Now it stands still.
    quick.asked_to_go().await;
    assert_eq!(began.elapsed(), SLOW_AFTER / 4 * 7);
    drop(whole);
    drop(quick);
    let waits = waits.await.expect("a body").expect("room");
    let never = tokio::time::timeout(Duration::ZERO, asked.notified()).await;
    assert!(never.is_err(), "a body that waits is not asked");
    drop(waits);
    assert!(late.await.expect("a body").is_ok());
}

#[tokio::test(start_paused = true)]
async fn one_app_leaves_memory_to_others_and_keeps_only_its_own_waiting() {
    let budget = BodyBudget::new(100);
    let [greedy, other]: [Arc<str>; 2] = [Arc::from("greedy"), Arc::from("other")];
    let mut held = Vec::new();
    for _ in 0..2 {
        let body = read_whole(budget.share(&greedy, 75, 30), 30).await;
        held.push(body.expect("room"));
    }
    // Bodies of one app grow together within what it may have, and none waits for another that waits.
    let began = Instant::now();
    let third = tokio::spawn(read_whole(budget.share(&greedy, 75, 15), 15));
    let third = third.await.expect("a body").expect("room");
    let fourth = tokio::spawn(read_whole(budget.share(&greedy, 75, 20), 20));
    tokio::task::yield_now().await;
    let body = read_whole(budget.share(&other, 75, 25), 25).await;
    assert!(body.is_ok(), "{body:?}");
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert!(!fourth.is_finished());
    drop(third);
    held.pop();
    assert!(fourth.await.expect("a body").is_ok());
    drop((held, body));
    let state = budget.0.state.lock();
    assert_eq!((state.free, state.by_app.len()), (100, 0));
}

#[tokio::test(start_paused = true)]
async fn bodies_of_one_app_that_grow_together_never_wait_for_each_other() {
    let budget = BodyBudget::new(256);
    let app: Arc<str> = Arc::from("one of several");
    let began = Instant::now();
    let reading: Vec<_> = (0..40)
        .map(|_| tokio::spawn(read_whole(budget.share(&app, 192, 30), 30)))
        .collect();
    for body in reading {
        drop(body.await.expect("a body").expect("its share"));
    }
    assert_eq!(began.elapsed().as_millis(), 0, "nobody waited in vain");
    assert_eq!(budget.0.state.lock().free, 256);
}

#[tokio::test(start_paused = true)]
async fn what_a_body_became_has_a_share_at_once_or_not_at_all_and_gives_it_back() {
    let budget = BodyBudget::new(100);
    let app: Arc<str> = Arc::from("default");
    let became = budget.share_of(&app, 80, 60).expect("there is room");
    assert!(
        budget.share_of(&app, 80, 30).is_none(),
        "its app has enough"
    );
    let other: Arc<str> = Arc::from("other");
    assert!(
        budget.share_of(&other, 80, 50).is_none(),
        "more than is free"
    );
    assert!(budget.share_of(&other, 80, 40).is_some());
    drop(became);
    let state = budget.0.state.lock();
    assert_eq!((state.free, state.whole), (100, 0));
    assert!(state.by_app.is_empty());
}
