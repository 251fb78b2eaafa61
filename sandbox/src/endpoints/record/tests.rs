use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn live_since(second: i64) -> Endpoint {
    let endpoint = Endpoint::deploying("u".to_owned(), "o", "n".to_owned(), "t", at(second));
    endpoint.into_live(at(second))
}

#[test]
fn a_stopped_endpoint_is_live_after_its_warm_up_and_not_before() {
    let endpoint = live_since(0).stopped(at(10)).unwrap();
    let endpoint = endpoint.started(at(20), 5_000).unwrap();

    let seen: Vec<EndpointStatus> = [9, 10, 19, 20, 24, 25]
        .map(|second| endpoint.status(at(second)))
        .to_vec();

    use EndpointStatus::{Live, Starting, Stopped};
    assert_eq!(seen, [Live, Stopped, Stopped, Starting, Starting, Live]);
    assert_eq!(endpoint.warm_in_s(at(21)), Some(4));
    assert_eq!(endpoint.warm_in_s(at(25)), None);
}

#[test]
fn a_warm_up_that_is_given_up_never_ends_live() {
    let endpoint = live_since(0).stopped(at(10)).unwrap();
    let endpoint = endpoint.started(at(20), 5_000).unwrap();
    let endpoint = endpoint.stopped(at(22)).unwrap();

    assert_eq!(endpoint.status(at(30)), EndpointStatus::Stopped);
    let again = endpoint.stopped(at(31));
    assert!(again.is_none(), "stopping twice changes nothing");
    let endpoint = endpoint.started(at(32), 0).unwrap();
    assert_eq!(endpoint.status(at(32)), EndpointStatus::Live);
    let again = endpoint.started(at(33), 5_000);
    assert!(again.is_none(), "it is live already");
}

#[test]
fn spans_are_the_seconds_in_each_state_within_the_window() {
    let endpoint = live_since(100).stopped(at(160)).unwrap();
    let endpoint = endpoint.started(at(200), 10_000).unwrap();

    let whole = endpoint.spans(at(0), at(300));
    let part = endpoint.spans(at(150), at(205));

    assert_eq!(
        (whole.live_s, whole.starting_s, whole.stopped_s),
        (150.0, 10.0, 40.0)
    );
    assert_eq!(
        (part.live_s, part.starting_s, part.stopped_s),
        (10.0, 5.0, 40.0)
    );
}
