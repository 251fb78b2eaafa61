use super::*;
use crate::catalog;

fn of_family(family: &str) -> Task {
    let mut task = catalog::task("contact-extraction").unwrap().clone();
    task.family = family.to_owned();
    task
}

#[test]
fn recommended_is_the_curated_pick_or_the_top_of_the_board() {
    let alias = |family: &str| resolve(&of_family(family), RECOMMENDED).unwrap().alias;

    assert_eq!(alias("extract"), "extract-1");
    assert_eq!(alias("classify"), "classify-2");
}

#[test]
fn an_alias_of_another_task_or_beyond_the_board_is_none() {
    let task = of_family("extraction");

    assert_eq!(resolve(&task, "extraction-3").unwrap().rank, 3);
    for unknown in [
        "extraction-0",
        "extraction-4",
        "coding-1",
        "",
        "Extraction-1",
    ] {
        assert_eq!(resolve(&task, unknown), None, "{unknown}");
    }
}

#[test]
fn a_lower_rank_is_cheaper_and_takes_less_text() {
    let board = board(&of_family("extraction"));

    for pair in board.windows(2) {
        assert!(pair[1].cost(1_000, 1_000) < pair[0].cost(1_000, 1_000));
        assert!(pair[1].context_tokens < pair[0].context_tokens);
    }
}
