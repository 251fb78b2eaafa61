use super::*;

const HOUR_MS: u64 = 60 * 60 * 1000;

fn mark(since_ms: u64, limit: u64, ten_thousandths: u16) -> Mark {
    Mark {
        app: None,
        period: Period::Hour,
        since_ms,
        until_ms: since_ms + HOUR_MS,
        limit_micro_usd: MicroUsd::new(limit),
        ten_thousandths,
    }
}

#[test]
fn a_share_is_new_once_for_each_limit_of_each_window() {
    let mut marks = Marks::default();
    let other_app = Mark {
        app: Some("a".to_owned()),
        ..mark(0, 5, 8_000)
    };
    for (mark, is_new) in [
        (mark(0, 5, 8_000), true),
        (mark(0, 5, 8_000), false),
        // It was passed when the higher one was told.
        (mark(0, 5, 5_000), false),
        (mark(0, 5, 9_500), true),
        // A raise, and its end.
        (mark(0, 9, 5_000), true),
        (mark(0, 5, 9_500), false),
        (mark(HOUR_MS, 5, 5_000), true),
        (other_app, true),
    ] {
        assert_eq!(marks.add(mark.clone()), is_new, "{mark:?}");
    }
}

#[test]
fn what_is_written_is_read_and_damage_is_no_absence() {
    let folder = tempfile::tempdir().unwrap();
    let state_dir = folder.path().join("state");
    assert_eq!(
        Marks::read(&state_dir),
        Ok(Marks::default()),
        "no directory"
    );
    let mut marks = Marks::default();
    marks.add(mark(0, 5, 8_000));
    marks.write(&state_dir).unwrap();
    assert_eq!(Marks::read(&state_dir).as_ref(), Ok(&marks));
    let path = state_dir.join(NAME);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[40] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    Marks::read(&state_dir).expect_err("a flipped bit");
}

#[test]
fn marks_are_bounded_and_outlive_a_clock_that_was_ahead() {
    let mut marks = Marks::default();
    marks.add(mark(0, 5, 8_000));
    marks.prune(HOUR_MS + KEPT_MS - 1);
    assert!(!marks.add(mark(0, 5, 8_000)), "it is kept");
    marks.prune(HOUR_MS + KEPT_MS);
    assert!(marks.add(mark(0, 5, 8_000)), "it is forgotten");
    for limit in 0..5_000 {
        marks.add(mark(limit, limit, 1));
    }
    marks.prune(0);
    assert_eq!(marks.len(), MARKS_MAX);
    assert!(!marks.add(mark(4_999, 4_999, 1)), "the newest are kept");
}
