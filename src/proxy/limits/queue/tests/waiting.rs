//! Waiting requests: woken, expired, displaced, closed, gone.

use futures_util::FutureExt;

use super::*;
use crate::clock::{ManualClock, SharedClock};
use crate::proxy::limits::queue::{Queue, Unserved, UpstreamSlot};
use crate::telemetry::metrics::Metrics;

fn queue(config: &Shaping) -> (Arc<Queue>, ManualClock, Arc<Metrics>) {
    let clock = ManualClock::at(1_700_000_000_000);
    let metrics = Arc::new(Metrics::new().unwrap());
    let shared: SharedClock = Arc::new(clock.clone());
    let queue = Queue::new(config, shared, Arc::clone(&metrics));
    (queue, clock, metrics)
}

async fn take(queue: &Arc<Queue>) -> UpstreamSlot {
    let entered = queue.enter(&app("a"), Priority::First, FAR).now_or_never();
    entered.expect("at once").expect("a place").0
}

#[tokio::test(start_paused = true)]
async fn a_place_that_is_given_back_wakes_a_waiting_request() {
    let (queue, clock, metrics) = queue(&shaping(1, 0));
    let held = take(&queue).await;
    let name = app("b");
    let mut waits = Box::pin(queue.enter(&name, Priority::First, FAR));
    assert!(waits.as_mut().now_or_never().is_none());
    assert_eq!(metrics.traffic.now().waiting, 1);
    clock.advance(s(2));
    drop(held);
    let (_slot, waited) = waits.await.unwrap();
    assert_eq!(waited, s(2));
    assert_eq!(
        (
            metrics.traffic.now().waiting,
            metrics.traffic.now().in_flight
        ),
        (0, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_that_stops_waiting_is_passed_over_also_in_the_moment_of_its_turn() {
    let (queue, _clock, metrics) = queue(&shaping(1, 0));
    let held = take(&queue).await;
    let (gone, late, stays) = (app("gone"), app("late"), app("stays"));
    let mut waits: Vec<_> = [&gone, &late, &stays]
        .into_iter()
        .map(|name| Box::pin(queue.enter(name, Priority::First, FAR)))
        .collect();
    for wait in &mut waits {
        assert!(wait.as_mut().now_or_never().is_none());
    }
    drop(waits.remove(0));
    assert_eq!(metrics.traffic.now().waiting, 2);
    // `late` is given the place and never looks.
    drop(held);
    drop(waits.remove(0));
    let stays = waits.remove(0).await;
    assert!(stays.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_at_its_deadline_or_at_the_configured_time() {
    let (queue, clock, _) = queue(&shaping(1, 0));
    let _held = take(&queue).await;
    let name = app("b");
    for (deadline, wait) in [(FAR, 90), (s(7), 7)] {
        let deadline = if deadline == FAR {
            FAR
        } else {
            clock_now(&clock) + deadline
        };
        let mut waits = Box::pin(queue.enter(&name, Priority::First, deadline));
        assert!(waits.as_mut().now_or_never().is_none());
        clock.advance(s(wait) - Duration::from_millis(1));
        let early = tokio::time::timeout(s(3), waits.as_mut()).await;
        assert!(early.is_err(), "{wait}: not yet");
        clock.advance(Duration::from_millis(1));
        let ended = waits.await.unwrap_err();
        let Unserved::TooLong { waited, .. } = ended else {
            panic!("{ended:?}");
        };
        assert_eq!(waited, s(wait));
    }
}

fn clock_now(clock: &ManualClock) -> Duration {
    crate::clock::Clock::monotonic(clock)
}

#[tokio::test(start_paused = true)]
async fn time_alone_lets_them_go_and_another_keeps_it_when_the_timekeeper_leaves() {
    let (queue, clock, _) = queue(&Shaping {
        queue_wait: s(200),
        ..shaping(0, 1)
    });
    let first = take(&queue).await;
    first.sends();
    first.arrived();
    drop(first);
    let (leaves, stays) = (app("leaves"), app("stays"));
    let mut keeper = Box::pin(queue.enter(&leaves, Priority::First, FAR));
    assert!(keeper.as_mut().now_or_never().is_none());
    let mut waits = Box::pin(queue.enter(&stays, Priority::First, FAR + FAR));
    assert!(waits.as_mut().now_or_never().is_none());
    drop(keeper);
    clock.advance(s(59));
    assert!(tokio::time::timeout(s(3), waits.as_mut()).await.is_err());
    clock.advance(s(3));
    let (_, waited) = waits.await.expect("its turn");
    assert_eq!(waited, s(62));
}

#[tokio::test(start_paused = true)]
async fn an_overflow_and_a_full_line_say_when_to_come_again() {
    let (queue, _, _) = queue(&Shaping {
        queue_max: 1,
        queue_wait: s(600),
        ..shaping(0, 1)
    });
    let first = take(&queue).await;
    first.sends();
    first.arrived();
    let name = app("a");
    let mut waits = Box::pin(queue.enter(&name, Priority::First, FAR));
    assert!(waits.as_mut().now_or_never().is_none());
    let refused = queue.enter(&name, Priority::First, FAR).await.unwrap_err();
    let Unserved::Full { retry_after } = refused else {
        panic!("{refused:?}");
    };
    assert!(
        retry_after >= s(61) && retry_after < s(62),
        "{retry_after:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_stop_refuses_waiting_requests_and_those_that_come_after_it() {
    let (queue, _, _) = queue(&shaping(1, 0));
    let held = take(&queue).await;
    let name = app("b");
    let mut waits = Box::pin(queue.enter(&name, Priority::First, FAR));
    assert!(waits.as_mut().now_or_never().is_none());
    queue.close();
    assert_eq!(waits.await.unwrap_err(), Unserved::Closed);
    let late = queue.enter(&name, Priority::First, FAR).await;
    assert_eq!(late.unwrap_err(), Unserved::Closed);
    drop(held);
    take(&queue).await;
}

#[tokio::test(start_paused = true)]
async fn a_drain_is_displaced_when_its_place_is_wanted() {
    let (queue, _, _) = queue(&shaping(1, 0));
    let held = take(&queue).await;
    let drained = held.drains();
    let mut displaced = Box::pin(drained.displaced());
    assert!(displaced.as_mut().now_or_never().is_none());
    let name = app("b");
    let mut waits = Box::pin(queue.enter(&name, Priority::First, FAR));
    assert!(waits.as_mut().now_or_never().is_none());
    displaced.await;
    assert!(drained.is_displaced());
    drop((held, drained));
    assert!(waits.await.is_ok());
}

/// "500 requests at once from five apps", each with its share and in its order.
#[tokio::test(start_paused = true)]
async fn five_hundred_at_once_from_five_apps_all_go_in_turn() {
    let (queue, _, _) = queue(&shaping(8, 0));
    let order = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let runs = (0..500).map(|n: usize| {
        let (queue, order) = (Arc::clone(&queue), Arc::clone(&order));
        async move {
            // The first app sends most of it.
            let app_no = if n < 300 { 0 } else { 1 + n % 4 };
            let name = app(&format!("app-{app_no}"));
            let (slot, _) = queue
                .enter(&name, Priority::First, FAR)
                .await
                .expect("its turn");
            order.lock().push((app_no, n));
            tokio::time::sleep(Duration::from_millis(3)).await;
            drop(slot);
        }
    });
    futures_util::future::join_all(runs).await;
    let order = order.lock();
    assert_eq!(order.len(), 500);
    for app_no in 0..5 {
        let own: Vec<usize> = order
            .iter()
            .filter(|(app, _)| *app == app_no)
            .map(|(_, n)| *n)
            .collect();
        assert!(own.is_sorted(), "app {app_no} is out of order");
    }
    // Until the small ones are through, each has a fifth.
    let shared = &order[8..8 + 200];
    for app_no in 0..5 {
        let share = shared.iter().filter(|(app, _)| *app == app_no).count();
        assert!(
            (38..=42).contains(&share),
            "app {app_no} had {share} of 200"
        );
    }
}
