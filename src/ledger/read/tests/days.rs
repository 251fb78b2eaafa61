//! Days are those of a calendar: of 23, 24 and 25 hours, of a zone whose summer time is half an hour,
//! and one that never was. The same money is in the rows by day, in the ranges between midnights, and
//! in the whole.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;

use crate::calendar::{instant, range};
use crate::ledger::entry::State;
use crate::ledger::fixtures::labels;
use crate::ledger::fixtures::paper::{Paper, ends, id};
use crate::ledger::query::spend;
use crate::ledger::read::spend::GroupBy;
use crate::money::MicroUsd;

const HALF_HOUR_MS: u64 = 30 * 60 * 1000;

fn berlin() -> TimeZone {
    TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()
}

/// Summer time is half an hour.
fn lord_howe() -> TimeZone {
    TimeZone::posix("<+1030>-10:30<+11>-11,M10.1.0,M4.1.0").unwrap()
}

/// Apia at the end of 2011: ten hours behind UTC, then fourteen ahead, so that the 30th of December
/// never was. As a time zone file, which no rule can say.
fn apia() -> TimeZone {
    let change: i64 = 1_325_239_200; // 2011-12-30T10:00:00Z
    let (west, east): (i32, i32) = (-10 * 3600, 14 * 3600);
    let counts = |version: u8, times: u32, kinds: u32, chars: u32| {
        let mut head = b"TZif".to_vec();
        head.push(version);
        head.extend([0; 15]);
        for count in [0, 0, 0, times, kinds, chars] {
            head.extend(count.to_be_bytes());
        }
        head
    };
    let kind = |offset: i32, name_at: u8| {
        let mut kind = offset.to_be_bytes().to_vec();
        kind.extend([0, name_at]);
        kind
    };
    // The part for old readers, with one kind and no change.
    let mut file = counts(b'2', 0, 1, 4);
    file.extend(kind(west, 0));
    file.extend(b"-10\0");
    file.extend(counts(b'2', 1, 2, 8));
    file.extend(change.to_be_bytes());
    file.push(1);
    file.extend(kind(west, 0));
    file.extend(kind(east, 4));
    file.extend(b"-10\0+14\0");
    file.extend(b"\n<+14>-14\n");
    TimeZone::tzif("Pacific/Apia", &file).unwrap()
}

/// An entry of 1 micro-USD each half hour, for five days from `since` on.
fn ledger(since: &str, zone: &TimeZone) -> (Paper, u64) {
    let mut paper = Paper::new(usize::MAX);
    let first_ms = instant(since, 0, zone).unwrap();
    for number in 0..5 * 48 {
        let labels = labels(first_ms + number * HALF_HOUR_MS, None);
        let state = State::Settled {
            billed: MicroUsd::new(1),
        };
        paper.write(&ends(id(number), labels, state), true);
    }
    paper.finish();
    (paper, 5 * 48)
}

#[test]
fn a_day_is_as_long_as_its_zone_says() {
    type Row = (
        &'static str,
        TimeZone,
        &'static str,
        &'static [(&'static str, u64)],
    );
    let rows: [Row; 5] = [
        (
            "Berlin, March",
            berlin(),
            "2026-03-28",
            &[("2026-03-28", 48), ("2026-03-29", 46), ("2026-03-30", 48)],
        ),
        (
            "Berlin, October",
            berlin(),
            "2026-10-24",
            &[("2026-10-24", 48), ("2026-10-25", 50), ("2026-10-26", 48)],
        ),
        (
            "Lord Howe, April",
            lord_howe(),
            "2026-04-04",
            &[("2026-04-04", 48), ("2026-04-05", 49), ("2026-04-06", 48)],
        ),
        (
            "Lord Howe, October",
            lord_howe(),
            "2026-10-03",
            &[("2026-10-03", 48), ("2026-10-04", 47), ("2026-10-05", 48)],
        ),
        (
            "Apia, the day that never was",
            apia(),
            "2011-12-29",
            &[
                ("2011-12-29", 48),
                ("2011-12-30", 0),
                ("2011-12-31", 48),
                ("2012-01-01", 48),
            ],
        ),
    ];
    for (name, zone, since, days) in rows {
        let (paper, all) = ledger(since, &zone);
        let by_day = spend(&paper.state(), None, None, &[GroupBy::Day], &zone).unwrap();
        let billed: BTreeMap<&str, u128> = by_day
            .rows
            .iter()
            .map(|row| {
                (
                    row.labels[&GroupBy::Day].as_str(),
                    row.billed_micro_usd.get(),
                )
            })
            .collect();
        assert_eq!(billed.values().sum::<u128>(), u128::from(all), "{name}");
        for pair in days.windows(2) {
            let [(day, wanted), (next, _)] = pair else {
                unreachable!()
            };
            let wanted = u128::from(*wanted);
            assert_eq!(
                billed.get(day).copied().unwrap_or(0),
                wanted,
                "{name} {day}"
            );
            // What `bursar spend --since DAY --until NEXT` asks.
            let asked = range(Some(day), Some(next), 0, &zone).unwrap();
            let (since, until) = (Some(asked.since_ms), Some(asked.until_ms));
            let between = spend(&paper.state(), since, until, &[], &zone).unwrap();
            assert_eq!(between.total.billed_micro_usd.get(), wanted, "{name} {day}");
        }
    }
}

/// The rows by one word, with how many entries each has.
fn requests_by(paper: &Paper, by: GroupBy, zone: &TimeZone) -> Vec<(String, u64)> {
    let spent = spend(&paper.state(), None, None, &[by], zone).unwrap();
    let row = |row: &crate::ledger::query::SpendRow| (row.labels[&by].clone(), row.requests);
    spent.rows.iter().map(row).collect()
}

#[test]
fn an_hour_that_the_clocks_go_through_twice_is_two_rows_in_their_order() {
    let (paper, _) = ledger("2026-10-24", &berlin());
    let hours = requests_by(&paper, GroupBy::Hour, &berlin());
    let at = |hour: &str| hours.iter().position(|(word, _)| word == hour).expect(hour);
    let night = at("2026-10-25 01:00");
    let words: Vec<&str> = hours[night..night + 4]
        .iter()
        .map(|(word, _)| &**word)
        .collect();
    assert_eq!(
        words,
        [
            "2026-10-25 01:00",
            "2026-10-25 02:00",
            "2026-10-25 02:00+01",
            "2026-10-25 03:00"
        ]
    );
    assert!(
        hours.iter().all(|(_, requests)| *requests == 2),
        "{hours:?}"
    );

    // Half an hour is gone through twice: the repeated half is a row of its own.
    let (paper, _) = ledger("2026-04-04", &lord_howe());
    let hours = requests_by(&paper, GroupBy::Hour, &lord_howe());
    let half = hours
        .iter()
        .filter(|(word, _)| word.starts_with("2026-04-05 01:00"));
    let half: Vec<_> = half.map(|(word, requests)| (&**word, *requests)).collect();
    assert_eq!(
        half,
        [("2026-04-05 01:00", 2), ("2026-04-05 01:00+10:30", 1)]
    );
}

#[test]
fn weeks_are_those_of_iso_8601_and_months_those_of_the_zone() {
    // The first of January 2027 is a Friday.
    let (paper, _) = ledger("2026-12-31", &berlin());
    let weeks = requests_by(&paper, GroupBy::Week, &berlin());
    assert_eq!(
        weeks,
        [("2026-W53".to_owned(), 4 * 48), ("2027-W01".to_owned(), 48)]
    );
    let months = requests_by(&paper, GroupBy::Month, &berlin());
    assert_eq!(
        months,
        [("2026-12".to_owned(), 48), ("2027-01".to_owned(), 4 * 48)]
    );
    let months = requests_by(&paper, GroupBy::Month, &TimeZone::UTC);
    assert_eq!(
        months,
        [
            ("2026-12".to_owned(), 50),
            ("2027-01".to_owned(), 4 * 48 - 2)
        ]
    );
}
