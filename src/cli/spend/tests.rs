use std::collections::BTreeMap;

use jiff::tz::TimeZone;

use super::*;
use crate::cli::look::Look;
use crate::ledger::MicroUsdSum;
use crate::ledger::query::Spend;

fn usd(micro_usd: u128) -> MicroUsdSum {
    MicroUsdSum::from_micro_usd(micro_usd)
}

fn row(by: GroupBy, word: &str) -> SpendRow {
    SpendRow {
        labels: BTreeMap::from([(by, word.to_owned())]),
        requests: 2,
        prompt_tokens: 10,
        completion_tokens: 20,
        ..SpendRow::default()
    }
}

fn printed(by: GroupBy, rows: Vec<SpendRow>, total: SpendRow) -> String {
    let asked = SpendQuestion {
        since_ms: None,
        until_ms: None,
        by: vec![by],
        zone: jiff::tz::TimeZone::UTC,
    };
    let spend = Spend {
        rows,
        total,
        ..Spend::default()
    };
    table(&SpendDocument::new(&asked, spend)).to_string()
}

#[test]
fn the_table_shows_the_known_sum_and_what_is_not_known() {
    let sums =
        |app: &str, billed: u128, in_doubt: u64, (compared, saved): (u64, Option<u128>)| SpendRow {
            billed_micro_usd: usd(billed),
            in_doubt,
            compared,
            saved_micro_usd: saved.map(usd),
            ..row(GroupBy::App, app)
        };
    let rows = vec![
        sums("agent", 1_234, 0, (2, Some(402))),
        sums("ci", 1, 1, (0, None)),
        sums("dear", 0, 0, (1, None)),
    ];

    let table = printed(GroupBy::App, rows, sums("", 1_235, 1, (3, Some(402))));

    assert_eq!(
        table,
        "app    requests     billed  in doubt  unreported  saved against frontier  input tokens  output tokens\n\
         agent         2  $0.001234         0           0               $0.000402            10             20\n\
         ci            2  $0.000001         1           0               not known            10             20\n\
         dear          2  $0.000000         0           0                 nothing            10             20\n\
         -----  --------  ---------  --------  ----------  ----------------------  ------------  -------------\n\
         all           2  $0.001235         1           0               $0.000402            10             20\n"
    );
}

#[test]
fn seconds_of_sound_are_a_column_where_there_are_any() {
    let row = |operation: &str, audio_ms: u64| SpendRow {
        audio_ms,
        audio_untold: 1,
        ..row(GroupBy::Operation, operation)
    };
    let rows = vec![row("chat", 0), row("speech", 61_005)];

    let table = printed(GroupBy::Operation, rows, row("", 61_005));

    let lines: Vec<&str> = table.lines().collect();
    for (at, cell) in [
        (0, "audio"),
        (1, "0.000 s"),
        (2, "61.005 s"),
        (4, "61.005 s"),
    ] {
        assert!(lines[at].contains(&format!("  {cell}  ")), "{at}: {table}");
    }
    let silent = printed(GroupBy::App, Vec::new(), SpendRow::default());
    assert!(!silent.contains("audio"), "{silent}");
}

#[test]
fn each_sentence_stands_where_there_is_something_to_say() {
    let none = SpendRow::default();
    for sentence in [compared, drained, unknown, without_length] {
        assert_eq!(sentence(&none), None);
    }
    let total = SpendRow {
        requests: 3,
        compared: 2,
        compared_billed_micro_usd: usd(500),
        compared_would_have_cost_micro_usd: usd(902),
        drained_micro_usd: usd(1_234),
        in_doubt: 1,
        unreported: 2,
        open: 3,
        audio_untold: 1,
        ..SpendRow::default()
    };
    let rows = [
        (
            compared(&total),
            "of 3 requests 2, billed $0.000500, where a frontier model would have cost $0.000902",
        ),
        (drained(&total), "\nOf this, $0.001234 went to"),
        (
            unknown(&total),
            ": 1 in doubt (`bursar receipts --state in-doubt`), 2 unreported (`bursar receipts \
             --state unreported`), 3 open (`bursar receipts --state open`).",
        ),
        (without_length(&total), "1 answer of the speech routes"),
    ];
    for (sentence, wanted) in rows {
        let text = sentence.expect(wanted);
        assert!(text.contains(wanted), "{text}");
    }
}

#[test]
fn words_are_taken_as_they_are_typed() {
    assert_eq!(group_by("served-by"), Ok(GroupBy::ServedBy));
    assert_eq!(group_by("served_by"), Ok(GroupBy::ServedBy));
    assert!(group_by("weather").is_err());
}

/// In 80 columns what is known and what is not stay; tokens go.
#[test]
fn a_narrow_table_keeps_the_sum_and_what_is_not_in_it() {
    let sums = |app: &str| SpendRow {
        billed_micro_usd: usd(123_456_789),
        in_doubt: 1,
        compared: 2,
        saved_micro_usd: Some(usd(402)),
        ..row(GroupBy::App, app)
    };
    let asked = SpendQuestion {
        since_ms: None,
        until_ms: None,
        by: vec![GroupBy::App],
        zone: jiff::tz::TimeZone::UTC,
    };
    let spend = Spend {
        rows: vec![sums("an-app-with-a-long-name")],
        total: sums(""),
        ..Spend::default()
    };
    let table = table(&SpendDocument::new(&asked, spend)).laid_out(&Look::of_width(80));

    assert_eq!(
        table.lines().next(),
        Some("app                      requests       billed  in doubt  unreported      saved")
    );
    assert!(table.contains(
        "an-app-with-a-long-name         2  $123.456789         1           0  $0.000402"
    ));
}

/// The first days of a year can lie in the last week of the one before, and the last ones in the first week of the
/// one behind: a week of which only a part is summed would look cheaper than it was.
#[test]
fn without_a_period_there_are_several_whole_rows_of_what_it_is_grouped_by() {
    // 2026-11-26, 2026-01-01 (a Thursday), 2027-01-01 (a Friday), 2024-12-30 (a Monday).
    let [late, first, friday, monday] = [
        1_795_651_200_000,
        1_767_225_600_000,
        1_798_761_600_000,
        1_735_516_800_000,
    ];
    let rows = [
        (&[GroupBy::App][..], late, "today"),
        (&[GroupBy::App, GroupBy::Hour], late, "today"),
        (&[GroupBy::Day, GroupBy::App], late, "this month"),
        (&[GroupBy::Month], late, "this year"),
        (&[GroupBy::Month, GroupBy::Week], late, "this year"),
        (&[GroupBy::Day, GroupBy::Week], late, "2026-W01"),
        (&[GroupBy::Week], first, "2026-W01"),
        (&[GroupBy::Week], friday, "2026-W01"),
        (&[GroupBy::Week], monday, "2025-W01"),
    ];
    for (by, now_ms, since) in rows {
        assert_eq!(since_of(by, now_ms, &TimeZone::UTC), since, "{by:?}");
    }
    let week = calendar::range(Some("2026-W01"), None, late, &TimeZone::UTC).unwrap();
    assert_eq!(
        calendar::shown(week.since_ms, &TimeZone::UTC),
        "2025-12-29 00:00:00"
    );
}

#[test]
fn on_a_narrow_screen_the_words_of_periods_stay_whole() {
    let by = vec![GroupBy::Model, GroupBy::App, GroupBy::Hour];
    let asked = SpendQuestion {
        since_ms: None,
        until_ms: None,
        by: by.clone(),
        zone: jiff::tz::TimeZone::UTC,
    };
    let words = [
        "a-model-of-a-long-name",
        "an-app-of-a-long-name",
        "2026-11-26 09:00",
    ];
    let row = SpendRow {
        labels: by.into_iter().zip(words.map(str::to_owned)).collect(),
        ..row(GroupBy::App, "")
    };
    let spend = Spend {
        rows: vec![row],
        ..Spend::default()
    };

    let table = table(&SpendDocument::new(&asked, spend))
        .laid_out(&Look::of_width(80))
        .to_string();

    assert!(table.contains("2026-11-26 09:00"), "{table}");
    assert!(
        table.lines().all(|line| line.chars().count() <= 80),
        "{table}"
    );
}
