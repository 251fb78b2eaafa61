use super::*;

const PRICE: Option<MicroUsd> = Some(MicroUsd::new(7));

#[test]
fn each_retry_is_counted_once_whether_it_comes_before_the_price_or_after() {
    let repeats = AvoidedRepeats::new(1);

    assert_eq!(repeats.joined(), None);
    assert_eq!(repeats.settled(PRICE), 2, "the adopted one, and the joined");
    assert_eq!(repeats.joined(), PRICE);
    assert_eq!(repeats.settled(PRICE), 0, "settled once");
}

#[test]
fn a_price_that_nobody_knows_is_no_price() {
    let repeats = AvoidedRepeats::new(0);

    assert_eq!(repeats.settled(None), 0);
    assert_eq!(repeats.joined(), None);
}
