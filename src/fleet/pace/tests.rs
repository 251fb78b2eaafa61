use std::time::Duration;

use super::Pacer;

/// A visit that ships asks for the pause while it ships, and its caller does behind it.
#[test]
fn the_next_hello_comes_early_until_a_visit_begins_that_does_not_come_so_far() {
    let (hello, early) = (Duration::from_secs(30), Duration::from_secs(5));
    let pacer = Pacer::default();
    assert_eq!(pacer.pause(hello), hello);
    *pacer.again.lock() = Some(early);
    assert_eq!([pacer.pause(hello), pacer.pause(hello)], [early, early]);
    pacer.begin();
    assert_eq!(pacer.pause(hello), hello);
}
