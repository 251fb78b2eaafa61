use super::*;

fn zone(name: &str) -> TimeZone {
    TimeZone::get(name).unwrap()
}

fn ms(text: &str) -> u64 {
    let at: Timestamp = text.parse().unwrap();
    u64::try_from(at.as_millisecond()).unwrap()
}

/// Zone, period, a moment, and where its window begins and ends, in UTC.
const WINDOWS: [(&str, Period, &str, &str, &str); 17] = [
    (
        "UTC",
        Period::Hour,
        "2026-03-29T12:34:56Z",
        "2026-03-29T12:00:00Z",
        "2026-03-29T13:00:00Z",
    ),
    (
        "UTC",
        Period::Month,
        "2026-02-28T23:59:59.999Z",
        "2026-02-01T00:00:00Z",
        "2026-03-01T00:00:00Z",
    ),
    (
        "UTC",
        Period::Month,
        "2026-12-31T00:00:00Z",
        "2026-12-01T00:00:00Z",
        "2027-01-01T00:00:00Z",
    ),
    // 23 and 25 hours.
    (
        "Europe/Berlin",
        Period::Day,
        "2026-03-29T12:00:00Z",
        "2026-03-28T23:00:00Z",
        "2026-03-29T22:00:00Z",
    ),
    (
        "Europe/Berlin",
        Period::Day,
        "2026-10-25T12:00:00Z",
        "2026-10-24T22:00:00Z",
        "2026-10-25T23:00:00Z",
    ),
    // The hour that the clock shows twice is two.
    (
        "Europe/Berlin",
        Period::Hour,
        "2026-10-25T00:30:00Z",
        "2026-10-25T00:00:00Z",
        "2026-10-25T01:00:00Z",
    ),
    (
        "Europe/Berlin",
        Period::Hour,
        "2026-10-25T01:30:00Z",
        "2026-10-25T01:00:00Z",
        "2026-10-25T02:00:00Z",
    ),
    (
        "Asia/Kolkata",
        Period::Hour,
        "2026-03-29T12:29:00Z",
        "2026-03-29T11:30:00Z",
        "2026-03-29T12:30:00Z",
    ),
    (
        "Asia/Kathmandu",
        Period::Hour,
        "2026-03-29T12:14:00Z",
        "2026-03-29T11:15:00Z",
        "2026-03-29T12:15:00Z",
    ),
    (
        "Asia/Kathmandu",
        Period::Day,
        "2026-03-29T12:14:00Z",
        "2026-03-28T18:15:00Z",
        "2026-03-29T18:15:00Z",
    ),
    // Summer time of half an hour: at 02:00 the clock goes back to 01:30, or on to 02:30.
    (
        "Australia/Lord_Howe",
        Period::Hour,
        "2026-04-04T14:45:00Z",
        "2026-04-04T14:00:00Z",
        "2026-04-04T15:00:00Z",
    ),
    (
        "Australia/Lord_Howe",
        Period::Hour,
        "2026-04-04T15:10:00Z",
        "2026-04-04T15:00:00Z",
        "2026-04-04T15:30:00Z",
    ),
    (
        "Australia/Lord_Howe",
        Period::Hour,
        "2026-10-03T15:45:00Z",
        "2026-10-03T15:30:00Z",
        "2026-10-03T16:00:00Z",
    ),
    (
        "Australia/Lord_Howe",
        Period::Day,
        "2026-10-03T15:45:00Z",
        "2026-10-03T13:30:00Z",
        "2026-10-04T13:00:00Z",
    ),
    // Summer time that skips midnight.
    (
        "America/Santiago",
        Period::Day,
        "2026-09-06T12:00:00Z",
        "2026-09-06T04:00:00Z",
        "2026-09-07T03:00:00Z",
    ),
    (
        "Pacific/Kiritimati",
        Period::Month,
        "2026-01-31T11:00:00Z",
        "2026-01-31T10:00:00Z",
        "2026-02-28T10:00:00Z",
    ),
    (
        "Pacific/Pago_Pago",
        Period::Day,
        "2026-01-01T05:00:00Z",
        "2025-12-31T11:00:00Z",
        "2026-01-01T11:00:00Z",
    ),
];

#[test]
fn a_window_is_the_hour_day_or_month_of_its_zone() {
    for (name, period, at, since, until) in WINDOWS {
        let window = Window::of(period, ms(at), &zone(name));
        let wanted = Window {
            since_ms: ms(since),
            until_ms: ms(until),
        };
        assert_eq!(window, wanted, "{name} {period} {at}");
    }
}

/// From each window to the next: nothing between, nothing twice, and quarter hours whole.
#[test]
fn windows_cover_a_year_without_a_gap_in_every_kind_of_zone() {
    for name in [
        "UTC",
        "Europe/Berlin",
        "America/New_York",
        "America/St_Johns",
        "Australia/Lord_Howe",
        "Asia/Kathmandu",
        "Asia/Kolkata",
        "America/Santiago",
        "Africa/Casablanca",
        "Asia/Gaza",
        "Pacific/Chatham",
        "Antarctica/Troll",
    ] {
        let zone = zone(name);
        for period in Period::ALL {
            let (mut at_ms, end_ms) = (ms("2026-01-01T00:00:00Z"), ms("2027-01-01T00:00:00Z"));
            let mut before: Option<Window> = None;
            while at_ms < end_ms {
                let window = Window::of(*period, at_ms, &zone);
                assert!(window.holds(at_ms), "{name} {period} {at_ms}");
                assert_eq!(
                    window.since_ms % (15 * 60 * 1000),
                    0,
                    "{name} {period} {at_ms}"
                );
                assert_eq!(Window::of(*period, window.until_ms - 1, &zone), window);
                if let Some(before) = before {
                    assert_eq!(before.until_ms, window.since_ms, "{name} {period} {at_ms}");
                }
                before = Some(window);
                at_ms = window.until_ms;
            }
        }
    }
}

#[test]
fn outside_the_calendar_there_is_one_window() {
    assert_eq!(
        Window::of(Period::Day, u64::MAX - 1, &TimeZone::UTC),
        Window::EVER
    );
}
