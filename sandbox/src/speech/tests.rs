use super::*;

#[test]
fn a_price_is_rounded_up_once_from_whole_samples() {
    for (parts, per_second, per_minute, micro_usd) in [
        (0, 16_000, 15_000, 0),
        (1, 16_000, 15_000, 1),            // 0.0156
        (64, 16_000, 15_000, 1),           // exactly 1
        (65, 16_000, 15_000, 2),           // 1.0156
        (960_000, 16_000, 15_000, 15_000), // a minute
        (960_001, 16_000, 15_000, 15_001),
        (44_100, 44_100, 6_000, 100), // a second
        (44_101, 44_100, 6_000, 101),
        (600_000_000, 1_000_000_000, 6_000, 60),
        (600_000_001, 1_000_000_000, 6_000, 61),
    ] {
        let length = Length { parts, per_second };
        assert_eq!(
            price(length, per_minute),
            MicroUsd::new(micro_usd),
            "{length:?}"
        );
    }
    let longest = Length {
        parts: u64::MAX,
        per_second: 1,
    };
    assert_eq!(price(longest, u64::MAX), None);
    assert_eq!(
        price(
            Length {
                parts: 1,
                per_second: 0
            },
            1
        ),
        None
    );
}

#[tokio::test(start_paused = true)]
async fn work_that_hangs_is_stopped_at_the_deadline() {
    let clock = Clock::system();
    let advance = clock.clone();

    let working = in_time(&clock, |stop| {
        while !stop.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
    });
    let moving = async { advance.advance(DEADLINE) };
    let (ended, ()) = tokio::join!(working, moving);

    assert!(matches!(
        ended,
        Err(ServiceError::BackendUnavailable { .. })
    ));
}

#[tokio::test]
async fn beyond_the_line_that_waits_there_is_a_503() {
    let speech = Speech::new();
    let _held = speech.places.acquire_many(2).await.unwrap();
    let mut waiting: Vec<_> = (0..WAITING_MAX).map(|_| Box::pin(speech.place())).collect();
    for one in &mut waiting {
        assert!(futures_util::poll!(one).is_pending());
    }

    assert!(matches!(
        speech.place().await,
        Err(ServiceError::BackendUnavailable { .. })
    ));
    waiting.pop();
    assert!(futures_util::poll!(Box::pin(speech.place())).is_pending());
}
