use super::*;

/// 2026-03-29T10:00:00Z: the day summer time begins in Berlin.
const NOW_MS: u64 = 1_774_778_400_000;
const HOUR_MS: u64 = 3_600_000;

fn berlin() -> TimeZone {
    // Spelled out as a rule, so that the test needs no time zone files.
    TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()
}

#[test]
fn a_text_is_the_instant_it_means_in_its_zone() {
    let midnight_berlin = NOW_MS - 11 * HOUR_MS;
    let midnight_utc = NOW_MS - 10 * HOUR_MS;
    let cases = [
        ("now", TimeZone::UTC, NOW_MS),
        ("today", TimeZone::UTC, midnight_utc),
        // 23 h long day: midnight was CET, so 23:00 UTC the day before.
        ("today", berlin(), midnight_berlin),
        ("yesterday", berlin(), midnight_berlin - 24 * HOUR_MS),
        ("2026-03-29", berlin(), midnight_berlin),
        ("2026-03-29T10:00:00Z", berlin(), NOW_MS),
        ("2026-03-29T12:00:00", berlin(), NOW_MS),
        ("2026-03-29 12:00", berlin(), NOW_MS),
        ("90m", TimeZone::UTC, NOW_MS - HOUR_MS * 3 / 2),
        ("24h", berlin(), NOW_MS - 24 * HOUR_MS),
        // A day ago at the same time of the clock: 23 hours.
        ("1d", berlin(), NOW_MS - 23 * HOUR_MS),
        ("1w", TimeZone::UTC, NOW_MS - 7 * 24 * HOUR_MS),
        // The day is a Sunday.
        ("this hour", TimeZone::UTC, NOW_MS),
        ("last hour", TimeZone::UTC, NOW_MS - HOUR_MS),
        ("this day", TimeZone::UTC, midnight_utc),
        ("last-day", TimeZone::UTC, midnight_utc - 24 * HOUR_MS),
        ("this week", TimeZone::UTC, midnight_utc - 6 * 24 * HOUR_MS),
        ("last week", TimeZone::UTC, midnight_utc - 13 * 24 * HOUR_MS),
        ("2026-W13", TimeZone::UTC, midnight_utc - 6 * 24 * HOUR_MS),
        (
            "this month",
            TimeZone::UTC,
            midnight_utc - 28 * 24 * HOUR_MS,
        ),
        ("this-month", berlin(), midnight_berlin - 28 * 24 * HOUR_MS),
        ("2026-03", berlin(), midnight_berlin - 28 * 24 * HOUR_MS),
        (
            "last month",
            TimeZone::UTC,
            midnight_utc - 56 * 24 * HOUR_MS,
        ),
        ("2026-02", TimeZone::UTC, midnight_utc - 56 * 24 * HOUR_MS),
        ("this year", TimeZone::UTC, midnight_utc - 87 * 24 * HOUR_MS),
        ("2026", TimeZone::UTC, midnight_utc - 87 * 24 * HOUR_MS),
        (
            "last year",
            TimeZone::UTC,
            midnight_utc - (87 + 365) * 24 * HOUR_MS,
        ),
        (
            "2025",
            TimeZone::UTC,
            midnight_utc - (87 + 365) * 24 * HOUR_MS,
        ),
    ];

    for (text, zone, ms) in cases {
        assert_eq!(instant(text, NOW_MS, &zone), Ok(ms), "{text}");
    }
}

#[test]
fn what_is_no_time_is_refused() {
    for text in [
        "",
        "h",
        "5",
        "5y",
        "-1d",
        "soon",
        "2026-13-01",
        "2026-13",
        "2026-1",
        "2026-W54",
        "26",
        "this",
        "this moment",
        "next month",
        "99999999999999999d",
    ] {
        assert!(instant(text, NOW_MS, &TimeZone::UTC).is_err(), "{text:?}");
    }
}

#[test]
fn a_range_is_today_by_default_and_never_backwards() {
    let utc = TimeZone::UTC;

    let today = range(None, None, NOW_MS, &utc).unwrap();
    let backwards = range(Some("today"), Some("yesterday"), NOW_MS, &utc);

    assert_eq!(
        today,
        Range {
            since_ms: NOW_MS - 10 * HOUR_MS,
            until_ms: u64::MAX
        }
    );
    assert!(matches!(backwards, Err(WhenError::Backwards { .. })));
}

#[test]
fn times_are_printed_in_their_zone() {
    assert_eq!(shown(NOW_MS, &berlin()), "2026-03-29 12:00:00");
    assert_eq!(midnight_ms(NOW_MS, &berlin()), Some(NOW_MS - 11 * HOUR_MS));
    assert_eq!(
        rfc3339(NOW_MS + 7).as_deref(),
        Some("2026-03-29T10:00:00.007Z")
    );
}

#[test]
fn a_day_begins_at_its_first_instant_and_ends_where_the_next_begins() {
    // Asuncion begins summer time at midnight: that day begins at one o'clock.
    let asuncion = TimeZone::posix("<-04>4<-03>,M10.1.0/0,M3.4.0/0").unwrap();
    let lord_howe = TimeZone::posix("<+1030>-10:30<+11>-11,M10.1.0,M4.1.0").unwrap();
    let rows: [(&str, &TimeZone, &str, &str, u64); 6] = [
        ("Berlin, spring", &berlin(), "2026-03-29", "2026-03-30", 46),
        ("Berlin, autumn", &berlin(), "2026-10-25", "2026-10-26", 50),
        (
            "Lord Howe, autumn",
            &lord_howe,
            "2026-04-05",
            "2026-04-06",
            49,
        ),
        (
            "Lord Howe, spring",
            &lord_howe,
            "2026-10-04",
            "2026-10-05",
            47,
        ),
        ("no midnight", &asuncion, "2026-10-04", "2026-10-05", 46),
        ("the day before", &asuncion, "2026-10-03", "2026-10-04", 48),
    ];
    for (name, zone, day, next, half_hours) in rows {
        let begins = instant(day, NOW_MS, zone).unwrap();
        let ends = instant(next, NOW_MS, zone).unwrap();
        assert_eq!(ends - begins, half_hours * HOUR_MS / 2, "{name}");
        for at in [begins, begins + HOUR_MS, ends - 1] {
            assert_eq!(midnight_ms(at, zone), Some(begins), "{name} {at}");
            assert_eq!(instant("today", at, zone), Ok(begins), "{name} {at}");
            assert!(shown(at, zone).starts_with(day), "{name} {at}");
        }
        assert_eq!(instant("yesterday", ends, zone), Ok(begins), "{name}");
    }
}
