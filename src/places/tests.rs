//! Which connection gives way to which. Time is tokio's, stopped.

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt;

use super::*;

const MOMENT: Duration = Duration::from_millis(1);

fn has_gone(place: &Place) -> bool {
    place.given_away().now_or_never().is_some()
}

fn quiet(places: &Places, door: Door) -> Option<Place> {
    places.take(door, || false)
}

#[tokio::test(start_paused = true)]
async fn resting_connections_give_way_in_order_and_serving_ones_never() {
    let places = Places::new(7, 7);
    let mut held = Vec::new();
    for _ in 0..7 {
        held.push(quiet(&places, Door::Port).expect("a place"));
        tokio::time::advance(MOMENT).await;
    }
    // In the reverse order of how long they have been idle.
    let rests = [Rest::Idle, Rest::Asking, Rest::Begun, Rest::Leaving];
    for (place, rest) in held.iter().zip(rests) {
        place.rests(rest, Duration::ZERO);
        tokio::time::advance(MOMENT).await;
    }
    assert!(held[4].serves());
    let mut came = Vec::new();
    for next in [5, 6, 3, 2, 1, 0] {
        let place = quiet(&places, Door::Port).expect("a place");
        assert!(place.serves());
        came.push(place);
        assert!(has_gone(&held[next]), "{next}");
        assert!(!held[next].serves(), "what is another's is not taken back");
    }
    assert!(quiet(&places, Door::Port).is_none(), "all serve");
    assert!(!has_gone(&held[4]));
    drop(held);
    assert!(quiet(&places, Door::Port).is_some(), "one has left");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_has_just_spoken_does_not_give_way() {
    let places = Places::new(2, 2);
    let speaks = Arc::new(AtomicBool::new(true));
    let look = Arc::clone(&speaks);
    let first = places.take(Door::Port, move || look.load(Ordering::Relaxed));
    let first = first.expect("a place");
    tokio::time::advance(MOMENT).await;
    let second = quiet(&places, Door::Port).expect("a place");
    let third = quiet(&places, Door::Port).expect("the second's");
    assert!(has_gone(&second) && !has_gone(&first));
    assert!(third.serves());
    assert!(quiet(&places, Door::Port).is_none());
    speaks.store(false, Ordering::Relaxed);
    assert!(quiet(&places, Door::Port).is_some());
    assert!(has_gone(&first));
}

#[tokio::test(start_paused = true)]
async fn each_door_has_room_of_its_own() {
    for (door, other) in [(Door::Port, Door::Socket), (Door::Socket, Door::Port)] {
        let places = Places::new(5, 7);
        let busy = |door| {
            let place = quiet(&places, door)?;
            place.serves().then_some(place)
        };
        let full: Vec<_> = (0..5).map(|_| busy(door).expect("a place")).collect();
        assert!(busy(door).is_none());
        // What is left is reserved for the other door, silent or not.
        let own = [quiet(&places, other), quiet(&places, other)].map(|own| own.expect("a place"));
        assert!(busy(door).is_none());
        assert!(own.iter().all(|place| !has_gone(place)));
        // A door may take what the other has above its reserved room, and no more.
        full[4].rests(Rest::Idle, Duration::ZERO);
        own.iter().for_each(|place| assert!(place.serves()));
        assert!(busy(other).is_some());
        assert!(has_gone(&full[4]));
        assert!(busy(other).is_some(), "it left again");
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiting_connection_gets_the_place_of_one_whose_patience_is_over() {
    let places = Places::new(2, 2);
    let patience = Duration::from_millis(250);
    let first = places.wait(Door::Port, patience).await;
    let second = places.wait(Door::Port, patience).await;
    assert!(first.serves());
    let began = Instant::now();
    let third = places.wait(Door::Port, patience).await;
    assert_eq!(began.elapsed().as_millis(), 250);
    assert!(has_gone(&second) && third.serves());
    // All are busy, until one becomes idle or leaves.
    let waiting = tokio::spawn({
        let places = places.clone();
        async move { places.wait(Door::Port, patience).await }
    });
    tokio::time::advance(Duration::from_secs(60)).await;
    assert!(!waiting.is_finished());
    first.rests(Rest::Idle, 4 * patience);
    let fourth = waiting.await.expect("a place");
    assert!(has_gone(&first));
    assert_eq!(began.elapsed().as_millis(), 250 + 60_000 + 1_000);
    drop((third, fourth));
}
