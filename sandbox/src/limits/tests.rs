use super::*;

#[tokio::test(start_paused = true)]
async fn the_ninth_in_flight_is_refused_until_one_ends() {
    let limits = Limits::new(Clock::system(), 8, 120);
    let mut slots: Vec<_> = (0..8).map(|_| limits.admit().unwrap()).collect();

    assert!(matches!(limits.admit(), Err(ServiceError::TooManyInFlight)));
    slots.pop();
    assert!(limits.admit().is_ok());
}

#[tokio::test(start_paused = true)]
async fn the_121st_in_a_minute_is_refused_until_the_clock_moves() {
    let clock = Clock::system();
    let limits = Limits::new(clock.clone(), 8, 120);
    for _ in 0..120 {
        drop(limits.admit().unwrap());
    }

    assert!(matches!(
        limits.admit(),
        Err(ServiceError::TooManyPerMinute)
    ));
    clock.advance(WINDOW);
    assert!(limits.admit().is_ok());
}
