//! The day so far, as a status line shows it.

use super::*;

#[test]
fn the_day_of_an_app_and_of_all_has_its_sum_its_cap_and_its_doubts() {
    let own = [("a", limits(None, Some(900)))];
    let mut bench = Bench::new(rules(Limits::default(), &own, 10));
    let day = |bench: &mut Bench, app| {
        let day = bench.engine.today(app, bench.now_ms);
        (day.spent.get(), day.limit.map(MicroUsd::get), day.in_doubt)
    };
    assert_eq!(day(&mut bench, None), (0, None, 0));
    let (first, _) = bench.admitted("a");
    bench.settle(first, "a", 300);
    let (second, _) = bench.admitted("a");
    bench.end(second, "a", DOUBT);
    let (third, _) = bench.admitted("b");
    bench.settle(third, "b", 5);
    assert_eq!(day(&mut bench, Some("a")), (300, Some(900), 1));
    assert_eq!(day(&mut bench, Some("b")), (5, None, 0));
    assert_eq!(day(&mut bench, None), (305, None, 1));

    // Evidence ends a doubt.
    let mut evidence = charged(
        second,
        "a",
        Operation::Chat,
        NOON,
        State::Reconciled { billed: usd(40) },
        usd(10),
        0,
    );
    evidence.doubts.left = 1;
    bench.engine.update(&UsageUpdate::Records(vec![evidence]));
    assert_eq!(day(&mut bench, Some("a")), (340, Some(900), 0));

    // The next day begins with nothing.
    bench.now_ms += 24 * 60 * 60 * 1000;
    assert_eq!(day(&mut bench, Some("a")), (0, Some(900), 0));
}

#[test]
fn a_freeze_shows_on_the_day_of_its_app_and_of_all() {
    let mut bench = Bench::new(rules(Limits::default(), &[], 10));
    let frozen = Frozen {
        since_ms: 1,
        by: "the test".to_owned(),
    };
    bench.engine.orders = bench.engine.orders.freeze(Some("a"), frozen);
    let mut is_frozen = |app| bench.engine.today(app, NOON).frozen;
    assert!(is_frozen(Some("a")));
    assert!(!is_frozen(Some("b")));
    assert!(is_frozen(None));
}
