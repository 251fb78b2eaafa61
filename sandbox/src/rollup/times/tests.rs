use super::*;

fn times(all_ms: impl IntoIterator<Item = u64>) -> Times {
    let mut times = Times::default();
    all_ms.into_iter().for_each(|took_ms| times.add(took_ms));
    times
}

#[test]
fn percentiles_are_by_nearest_rank() {
    let one = times((1..=20).map(|n| n * 10));

    assert_eq!(
        percentiles_ms([&one].into_iter(), [1, 50, 95, 99, 100]),
        [Some(10), Some(100), Some(190), Some(200), Some(200)]
    );
    assert_eq!(
        percentiles_ms([&times([])].into_iter(), [50]),
        [None],
        "nothing is not 0"
    );
}

#[test]
fn a_busy_hour_weighs_as_many_requests_as_it_had() {
    let busy = times(std::iter::repeat_n(10, KEPT_MAX * 4));
    let quiet = times(std::iter::repeat_n(90, KEPT_MAX));

    // 2,000 of 10 ms and 500 of 90 ms: the 80th percentile is the last of the quick ones.
    assert_eq!(
        percentiles_ms([&busy, &quiet].into_iter(), [80, 81]),
        [Some(10), Some(90)]
    );
    assert_eq!(busy.kept_ms.len(), KEPT_MAX);
}
