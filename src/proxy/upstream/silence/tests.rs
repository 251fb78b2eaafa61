use std::future::{pending, ready};

use tokio::time::{Instant, sleep};

use super::*;

const LIMIT: Duration = Duration::from_secs(10);

#[tokio::test(start_paused = true)]
async fn each_read_has_the_whole_limit_counted_from_its_own_beginning() {
    let mut silence = Silence::of(LIMIT);
    for _ in 0..5 {
        let read = silence.bounds(sleep(Duration::from_secs(7))).await;
        assert_eq!(read, Ok(()));
    }
    let began = Instant::now();
    assert_eq!(silence.bounds(pending::<()>()).await, Err(TooLong));
    let lasted = began.elapsed();
    assert!(lasted >= LIMIT, "{lasted:?}");
    assert!(lasted < LIMIT + Duration::from_secs(1), "{lasted:?}");
}

#[tokio::test(start_paused = true)]
async fn a_silence_of_the_app_is_not_the_services() {
    let mut silence = Silence::of(LIMIT);
    assert_eq!(silence.bounds(ready(1)).await, Ok(1));
    sleep(5 * LIMIT).await;
    let read = silence.bounds(sleep(Duration::from_secs(1))).await;
    assert_eq!(read, Ok(()));
}
