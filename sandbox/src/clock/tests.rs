use super::*;

#[tokio::test(start_paused = true)]
async fn advancing_the_clock_ends_a_wait() {
    let clock = Clock::starting_at(Timestamp::UNIX_EPOCH);
    let before = clock.elapsed();
    let waiter = tokio::spawn({
        let clock = clock.clone();
        async move { clock.sleep(Duration::from_secs(540)).await }
    });
    tokio::task::yield_now().await;

    clock.advance(Duration::from_secs(540));
    waiter.await.unwrap();

    assert!(clock.elapsed() - before >= Duration::from_secs(540));
    assert_eq!(clock.unix_s(), 540);
}
