use super::EntryIds;
use crate::ledger::fixtures::START_MS;

#[test]
fn ids_are_uuid_v7_of_the_clock() {
    let id = EntryIds::new([1; 32]).next(START_MS);

    assert_eq!(id.0.get_version_num(), 7);
    let (seconds, nanos) = id.0.get_timestamp().unwrap().to_unix();
    assert_eq!(seconds * 1000 + u64::from(nanos) / 1_000_000, START_MS);
}

#[test]
fn ids_ascend_within_a_millisecond_and_when_the_clock_is_set_back() {
    let ids = EntryIds::new([1; 32]);

    let mut all: Vec<_> = (0..10_000).map(|_| ids.next(START_MS)).collect();
    all.push(ids.next(START_MS - 3_600_000));
    all.push(ids.next(START_MS + 3_600_000));

    assert!(all.is_sorted_by(|earlier, later| earlier < later));
}

#[test]
fn two_processes_do_not_make_the_same_id() {
    let [first, second] = [[1; 32], [2; 32]].map(|secret| EntryIds::new(secret).next(START_MS));

    assert_ne!(first, second);
}
