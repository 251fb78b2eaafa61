use std::collections::BTreeMap;

use super::*;
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
        "app    requests     billed  in doubt  unreported  input tokens  output tokens  saved against frontier\n\
         agent         2  $0.001234         0           0            10             20               $0.000402\n\
         ci            2  $0.000001         1           0            10             20               not known\n\
         dear          2  $0.000000         0           0            10             20                 nothing\n\
         -----  --------  ---------  --------  ----------  ------------  -------------  ----------------------\n\
         all           2  $0.001235         1           0            10             20               $0.000402\n"
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
    assert!(lines[0].ends_with("     audio"), "{table}");
    assert!(lines[1].ends_with("   0.000 s"), "{table}");
    assert!(lines[2].ends_with("  61.005 s"), "{table}");
    assert!(lines[4].ends_with("  61.005 s"), "{table}");
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
