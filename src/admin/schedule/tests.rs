use super::*;

#[test]
fn a_comparison_is_made_at_the_start_then_on_schedule_and_sooner_after_a_failure() {
    let hours = |hours: u64| Duration::from_secs(hours * 3600);
    let day = hours(24);

    for (last, now, is_due) in [
        (LastComparison::Never, hours(0), true),
        (LastComparison::Made(hours(1)), hours(24), false),
        (LastComparison::Made(hours(1)), hours(25), true),
        (
            LastComparison::Failed(hours(1)),
            hours(1) + AGAIN / 2,
            false,
        ),
        (LastComparison::Failed(hours(1)), hours(1) + AGAIN, true),
    ] {
        assert_eq!(last.is_due(now, day), is_due, "{last:?} at {now:?}");
    }
}
