//! When an app that stalls has to make room, on stopped time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::FutureExt;

use super::*;
use crate::clock::ManualClock;
use crate::config::Shaping;
use crate::proxy::limits::queue::{Priority, Queue};
use crate::telemetry::metrics::Metrics;

const FAR: Duration = Duration::from_secs(1_000_000);

/// Large steps, seconds apart, are progress; only time without any counts, and only where a request waits.
#[tokio::test(start_paused = true)]
async fn only_time_in_which_an_app_takes_nothing_counts_as_a_stall() {
    let config = Shaping {
        in_flight: Some(1),
        per_minute: None,
        queue_max: 10,
        queue_wait: FAR,
    };
    let clock = ManualClock::at(1_700_000_000_000);
    let metrics = Arc::new(Metrics::new().unwrap());
    let queue = Queue::new(&config, Arc::new(clock), metrics);
    let app: Arc<str> = Arc::from("a");
    let entered = queue.enter(&app, Priority::First, FAR).now_or_never();
    let (place, _) = entered.expect("at once").unwrap();
    let went = AtomicU64::new(0);
    let takes = || went.load(Ordering::Relaxed);
    let mut wanted = Box::pin(wanted_by_others(Some(&place), takes));
    let (step, rest) = (Duration::from_secs(7), Duration::from_secs(60));

    // No request waits: it keeps its place, however long it takes nothing.
    assert!(tokio::time::timeout(rest, wanted.as_mut()).await.is_err());
    // 20 kB a second show as 130 kB every 6.5 s.
    went.fetch_add(130_000, Ordering::Relaxed);
    let look = tokio::time::timeout(STALL_LOOK * 2, wanted.as_mut()).await;
    assert!(look.is_err());
    let mut waits = Box::pin(queue.enter(&app, Priority::First, FAR));
    assert!(waits.as_mut().now_or_never().is_none());
    for _ in 0..10 {
        went.fetch_add(130_000, Ordering::Relaxed);
        assert!(tokio::time::timeout(step, wanted.as_mut()).await.is_err());
    }
    let stalled = Instant::now();
    let drained = wanted.await;
    assert!(drained.is_displaced());
    let took = stalled.elapsed() + step;
    assert!(took >= STALL_MAX && took <= STALL_MAX + step, "{took:?}");
    drop(place);
    assert!(waits.await.is_ok());
}
