//! Waits: ceilings, jitter bounds, and what a service may ask for.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};

use super::{Backoff, asked_wait, jitter};

const BACKOFF: Backoff = Backoff {
    retries_max: 2,
    base: Duration::from_millis(500),
    cap: Duration::from_secs(8),
};

#[test]
fn ceilings_double_up_to_the_cap() {
    let ceilings: Vec<u128> = (0..6).map(|n| BACKOFF.ceiling(n).as_millis()).collect();
    assert_eq!(ceilings, [500, 1000, 2000, 4000, 8000, 8000]);
    assert_eq!(BACKOFF.ceiling(usize::MAX), BACKOFF.cap);
}

#[test]
fn jitter_covers_the_whole_range_and_never_exceeds_it() {
    let ceiling = Duration::from_millis(500);
    assert_eq!(jitter(ceiling, 0), Duration::ZERO);
    assert_eq!(jitter(ceiling, 1 << 31), Duration::from_millis(250));
    assert!(jitter(ceiling, u32::MAX) < ceiling);
}

#[test]
fn a_wait_that_the_service_asks_for_is_kept_exactly() {
    let asked = Duration::from_secs(3);
    assert_eq!(BACKOFF.wait(0, Some(asked), 0), asked);
    assert_eq!(
        BACKOFF.wait(0, Some(Duration::ZERO), u32::MAX),
        Duration::ZERO
    );
}

type Headers = &'static [(&'static str, &'static str)];

#[test]
fn retry_after_is_read_as_milliseconds_seconds_or_a_date() {
    // 2026-11-21 10:00:00 UTC.
    let now_ms = 1_795_255_200_000;
    let cases: &[(Headers, Option<Duration>)] = &[
        (&[], None),
        (&[("retry-after", "5")], Some(Duration::from_secs(5))),
        (&[("retry-after", "0.25")], Some(Duration::from_millis(250))),
        (&[("retry-after", "0")], Some(Duration::ZERO)),
        (
            &[("retry-after-ms", "1500")],
            Some(Duration::from_millis(1500)),
        ),
        (
            &[("retry-after-ms", "20"), ("retry-after", "5")],
            Some(Duration::from_millis(20)),
        ),
        (
            &[("retry-after", "Sat, 21 Nov 2026 10:00:30 GMT")],
            Some(Duration::from_secs(30)),
        ),
        (
            &[("retry-after", "Sat, 21 Nov 2026 09:59:00 GMT")],
            Some(Duration::ZERO),
        ),
        (&[("retry-after", "soon")], None),
        (&[("retry-after", "-5")], None),
        (&[("retry-after", "1e9")], None),
        (&[("retry-after", "inf")], None),
    ];
    for (headers, expected) in cases {
        let mut map = HeaderMap::new();
        for (name, value) in *headers {
            map.insert(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            );
        }
        assert_eq!(asked_wait(&map, now_ms), *expected, "{headers:?}");
    }
}
