use std::os::unix::fs::{DirBuilderExt, PermissionsExt};

use super::*;

fn frozen(since_ms: u64) -> Frozen {
    Frozen {
        since_ms,
        by: "user 1000".to_owned(),
    }
}

fn raise(to: u64, since_ms: u64) -> Raise {
    Raise {
        app: None,
        period: Period::Hour,
        since_ms,
        until_ms: since_ms + 100,
        to_micro_usd: MicroUsd::new(to),
        configured_micro_usd: Some(MicroUsd::new(5)),
    }
}

#[test]
fn orders_are_read_back_as_they_were_written_in_a_file_of_ones_own() {
    let folder = tempfile::tempdir().unwrap();
    let state_dir = folder.path().join("state");
    assert_eq!(
        Orders::read(&state_dir, 5),
        Orders::default(),
        "no directory"
    );
    let orders = Orders::default()
        .freeze(Some("a"), frozen(1))
        .freeze(None, frozen(2))
        .raise(raise(7, 100), 100);
    orders.write(&state_dir).unwrap();
    assert_eq!(Orders::read(&state_dir, 5), orders);
    let mode = std::fs::metadata(state_dir.join("orders"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn whatever_byte_of_the_file_is_damaged_everybody_is_frozen() {
    let folder = tempfile::tempdir().unwrap();
    let state_dir = folder.path().join("state");
    std::fs::DirBuilder::new()
        .mode(0o700)
        .create(&state_dir)
        .unwrap();
    Orders::default()
        .freeze(Some("a"), frozen(1))
        .write(&state_dir)
        .unwrap();
    let path = state_dir.join("orders");
    let sound = std::fs::read(&path).unwrap();
    // The newline is no part of the line.
    for at in 0..sound.len() - 1 {
        let mut bytes = sound.clone();
        bytes[at] ^= 4;
        std::fs::write(&path, bytes).unwrap();
        let read = Orders::read(&state_dir, 9);
        assert_eq!(
            read.frozen("whoever").map(|frozen| frozen.since_ms),
            Some(9),
            "byte {at}"
        );
    }
    for cut in 0..sound.len() - 1 {
        std::fs::write(&path, &sound[..cut]).unwrap();
        assert!(
            Orders::read(&state_dir, 9).frozen("whoever").is_some(),
            "cut at {cut}"
        );
    }
}

#[test]
fn what_is_frozen_by_name_stays_so_when_all_are_thawed_and_keeps_its_beginning() {
    let orders = Orders::default()
        .freeze(Some("a"), frozen(1))
        .freeze(Some("a"), frozen(5))
        .freeze(None, frozen(2));
    assert_eq!(orders.frozen("b").unwrap().since_ms, 2);
    let thawed = orders.thaw(None);
    assert_eq!(thawed.frozen("a").unwrap().since_ms, 1);
    assert_eq!(thawed.frozen("b"), None);
    assert_eq!(thawed.thaw(Some("a")).frozen("a"), None);
}

#[test]
fn a_raise_is_for_its_window_and_the_last_one_counts() {
    let orders = Orders::default()
        .raise(raise(7, 100), 100)
        .raise(raise(9, 100), 100);
    let window = |since_ms: u64| Window {
        since_ms,
        until_ms: since_ms + 100,
    };
    let limit = |orders: &Orders, app, period, since_ms, configured| {
        let configured = MicroUsd::new(configured);
        orders
            .limit(app, period, window(since_ms), configured)
            .get()
    };
    assert_eq!(limit(&orders, None, Period::Hour, 100, 5), 9);
    assert_eq!(limit(&orders, None, Period::Hour, 200, 5), 5);
    assert_eq!(limit(&orders, Some("a"), Period::Hour, 100, 5), 5);
    assert_eq!(limit(&orders, None, Period::Day, 100, 5), 5);
    for edited in [4, 6, 20] {
        let edited_limit = limit(&orders, None, Period::Hour, 100, edited);
        assert_eq!(edited_limit, edited, "an edit is the younger word");
    }
    let back = orders.raise(raise(5, 100), 100);
    assert_eq!(
        back.raised,
        [],
        "a raise to the configured amount takes it back"
    );
    let mut old = orders.clone();
    old.raised[0].configured_micro_usd = None;
    assert_eq!(
        limit(&old, None, Period::Hour, 100, 5),
        9,
        "as it was written before"
    );
    assert_eq!(limit(&old, None, Period::Hour, 100, 20), 20);
    let day = Raise {
        period: Period::Day,
        ..raise(1, 200)
    };
    assert_eq!(
        orders.raise(day, 250).raised.len(),
        1,
        "what is over is forgotten"
    );
}
