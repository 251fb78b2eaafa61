use serde_json::json;

use super::*;

#[test]
fn the_table_shows_the_known_sum_and_what_is_not_known() {
    let sums = |app: &str, billed: u64, in_doubt: u64, (compared, saved): (u64, Option<u64>)| {
        json!({
            "app": app, "requests": 2, "billed_micro_usd": billed, "in_doubt": in_doubt,
            "unreported": 0, "prompt_tokens": 10, "completion_tokens": 20,
            "would_have_cost_micro_usd": 5_000_000u64, "compared": compared,
            "saved_micro_usd": saved,
        })
    };
    let mut document = sums("", 1_235, 1, (3, Some(402)));
    document["rows"] = json!([
        sums("agent", 1_234, 0, (2, Some(402))),
        sums("ci", 1, 1, (0, None)),
        sums("dear", 0, 0, (1, None)),
    ]);

    let table = table(&[GroupBy::App], &document).to_string();

    assert_eq!(
        table,
        "app    requests     billed  in doubt  unreported  input tokens  output tokens  saved against frontier\n\
         agent         2  $0.001234         0           0            10             20               $0.000402\n\
         ci            2  $0.000001         1           0            10             20               not known\n\
         dear          2  $0.000000         0           0            10             20                 nothing\n\
         -----  --------  ---------  --------  ----------  ------------  -------------  ----------------------\n\
         all           2  $0.001235         1           0            10             20               $0.000402\n"
    );
    // A daemon of an earlier release does not compare.
    assert_eq!(saved(&json!({ "would_have_cost_micro_usd": 5 })), "?");
    assert_eq!(compared(&json!({ "compared": 0 })), None);
    let told = compared(
        &json!({ "compared": 2, "requests": 3, "compared_billed_micro_usd": 500,
        "compared_would_have_cost_micro_usd": 902 }),
    );
    let told = told.unwrap();
    assert!(
        told.contains(
            "of 3 requests 2, billed $0.000500, where a frontier model would have cost $0.000902"
        ),
        "{told}"
    );
}

#[test]
fn seconds_of_sound_are_a_column_where_there_are_any() {
    let row = |operation: &str, audio_ms: u64| {
        json!({
            "operation": operation, "requests": 1, "billed_micro_usd": 0, "in_doubt": 0,
            "unreported": 1, "prompt_tokens": 0, "completion_tokens": 0,
            "would_have_cost_micro_usd": 0, "audio_ms": audio_ms, "audio_untold": 1,
        })
    };
    let mut document = row("", 61_005);
    document["rows"] = json!([row("chat", 0), row("speech", 61_005)]);

    let table = table(&[GroupBy::Operation], &document).to_string();

    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].ends_with("     audio"), "{table}");
    assert!(lines[1].ends_with("   0.000 s"), "{table}");
    assert!(lines[2].ends_with("  61.005 s"), "{table}");
    assert!(lines[4].ends_with("  61.005 s"), "{table}");
    let told = untold(&document).unwrap();
    assert!(told.contains("1 answer of the speech routes"), "{told}");
    assert_eq!(untold(&json!({ "audio_untold": 0 })), None);
    assert_eq!(untold(&json!({})), None);
}

#[test]
fn what_is_not_in_the_sum_is_named_with_the_command_that_lists_it() {
    let told = |document: Value| unknown(&document);

    let doubts = told(json!({ "in_doubt": 1, "unreported": 0, "open": 0 })).unwrap();
    assert!(doubts.ends_with(": 1 in doubt (`bursar receipts --state in-doubt`)."));
    let others = told(json!({ "in_doubt": 0, "unreported": 2, "open": 3 })).unwrap();
    assert!(others.ends_with(
        ": 2 unreported (`bursar receipts --state unreported`), 3 open (`bursar receipts --state \
         open`)."
    ));
    assert_eq!(
        told(json!({ "in_doubt": 0, "unreported": 0, "open": 0 })),
        None
    );
}

#[test]
fn what_was_read_for_nobody_is_named_where_there_is_any() {
    assert_eq!(drained(&json!({ "drained_micro_usd": 0 })), None);
    assert_eq!(drained(&json!({})), None);
    let told = drained(&json!({ "drained_micro_usd": 1_234 })).unwrap();
    assert!(told.starts_with("\nOf this, $0.001234 went to"), "{told}");
}

#[test]
fn a_figure_that_is_missing_is_not_zero() {
    let row = json!({ "requests": null });

    assert_eq!(count(&row, "requests"), "?");
    assert_eq!(money(&row, "billed_micro_usd"), "?");
}

#[test]
fn words_are_taken_as_they_are_typed() {
    assert_eq!(group_by("served-by"), Ok(GroupBy::ServedBy));
    assert_eq!(group_by("served_by"), Ok(GroupBy::ServedBy));
    assert!(group_by("weather").is_err());
}
