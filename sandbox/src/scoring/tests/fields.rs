//! Field F1, exact match, and when two values are the same.

use super::*;
use crate::scoring::scalar::Scalar;

// Interface, Task: default_scorer, for example field-F1 for extraction.
#[test]
fn field_f1_is_twice_the_right_leaves_over_all_leaves_of_both_sides() {
    holds(
        Scorer::FieldF1,
        &[
            // All right: 2*2/(2+2).
            (json!({"a": 1, "b": "x"}), json!({"b": "x", "a": 1}), 1.0),
            // One of two right, one wrong: 2*1/(2+2).
            (json!({"a": 1, "b": "x"}), json!({"a": 1, "b": "y"}), 0.5),
            // One missing costs recall alone: 2*1/(2+1).
            (json!({"a": 1, "b": "x"}), json!({"a": 1}), 2.0 / 3.0),
            // One too many costs precision alone: 2*1/(1+2).
            (json!({"a": 1}), json!({"a": 1, "b": 2}), 2.0 / 3.0),
            // Nothing right: 2*0/(1+1).
            (json!({"a": 1}), json!({"b": 1}), 0.0),
            // Null, empty text, empty list, empty object and absent are one: 2*1/(1+1).
            (
                json!({"a": 1, "b": null, "c": ""}),
                json!({"a": 1, "d": [], "e": {}}),
                1.0,
            ),
            // Nothing expected, nothing answered: nothing is wrong.
            (json!({"a": null}), json!({}), 1.0),
            // A value where none was expected: 2*0/(0+1).
            (json!({"a": null}), json!({"a": 5}), 0.0),
            // Nested names: v.x right, v.y wrong: 2*1/(2+2).
            (
                json!({"v": {"x": 1, "y": 2}}),
                json!({"v": {"x": 1, "y": 3}}),
                0.5,
            ),
            // The right value below another name is no match: 2*0/(1+1).
            (json!({"v": {"x": 1}}), json!({"x": 1}), 0.0),
            // Lists in any order: 2*3/(3+3).
            (json!({"l": [1, 2, 3]}), json!({"l": [3, 1, 2]}), 1.0),
            // Each entry is used once: of 1, 1, 2 against 1, 2, 2 two are right: 2*2/(3+3).
            (json!({"l": [1, 1, 2]}), json!({"l": [1, 2, 2]}), 2.0 / 3.0),
            // Objects in lists: b with b has 2 right, a with a 1 (q differs): 2*3/(4+4).
            (
                json!({"l": [{"n": "a", "q": 1}, {"n": "b", "q": 2}]}),
                json!({"l": [{"n": "b", "q": 2}, {"n": "a", "q": 9}]}),
                0.75,
            ),
            // ab with ab and a with b: 2 right of 3 and 3: 2*2/(3+3).
            (
                json!({"l": [{"a": 1, "b": 1}, {"a": 1}]}),
                json!({"l": [{"a": 1, "b": 1}, {"b": 1}]}),
                2.0 / 3.0,
            ),
            // One list entry missing: 2*4/(6+4).
            (
                json!({"l": [{"n": "a", "q": 1}, {"n": "b", "q": 2}, {"n": "c", "q": 3}]}),
                json!({"l": [{"n": "c", "q": 3}, {"n": "a", "q": 1}]}),
                0.8,
            ),
            // An object where a list was expected: 2*0/(2+1).
            (json!({"l": [1, 2]}), json!({"l": {"x": 1}}), 0.0),
            // A list in a list, each in its own order: 2*4/(4+4).
            (
                json!({"l": [[1, 2], [3, 4]]}),
                json!({"l": [[4, 3], [2, 1]]}),
                1.0,
            ),
        ],
    );
}

#[test]
fn entries_are_aligned_for_the_greatest_sum_where_a_greedy_choice_fails() {
    // Greedy takes 3 + 0 + 1; the best is 2 + 2 + 1.
    let weights = [[3, 2, 0], [2, 0, 0], [0, 0, 1]];
    let sum = assignment::greatest_sum(&[0, 1, 2], &[0, 1, 2], &|row: &usize, column| {
        weights[*row][*column]
    });
    assert_eq!(sum, 5);
}

// Interface, Eval result: exact_match.
#[test]
fn exact_match_is_all_or_nothing() {
    holds(
        Scorer::ExactMatch,
        &[
            (json!({"label": "refund"}), json!({"label": "refund"}), 1.0),
            (json!({"label": "refund"}), json!({"label": "Refund "}), 1.0),
            (json!({"label": "refund"}), json!({"label": "return"}), 0.0),
            (json!({"label": "refund"}), json!({}), 0.0),
            (json!({"label": "refund"}), json!({"label": null}), 0.0),
            (
                json!({"label": "a"}),
                json!({"label": "a", "why": "x"}),
                0.0,
            ),
            (
                json!({"label": "a"}),
                json!({"label": "a", "why": null}),
                1.0,
            ),
            (json!({"label": "a"}), json!({"label": ["a"]}), 0.0),
            (json!({"l": ["a", "b"]}), json!({"l": ["b", "a"]}), 1.0),
            (json!({"l": ["a", "b"]}), json!({"l": ["a"]}), 0.0),
            (json!({"l": ["a", "a"]}), json!({"l": ["a", "b"]}), 0.0),
            (json!({"spam": true}), json!({"spam": "true"}), 1.0),
            (json!({"spam": true}), json!({"spam": false}), 0.0),
            (json!({"stars": 4}), json!({"stars": "4"}), 1.0),
            (json!({"stars": 4}), json!({"stars": 4.0}), 1.0),
        ],
    );
}

#[test]
fn values_are_the_same_by_number_day_or_text_without_case_and_white_space() {
    let same = [
        // Numbers by value, with 1e-9 for what binary numbers lose.
        (json!(12.5), json!("12.50")),
        (json!(1234.5), json!("$1,234.50")),
        (json!(-3), json!("-3")),
        (json!(0.1 + 0.2), json!(0.3)),
        (json!(1e3), json!(1000)),
        (json!(1_000_000_000.0), json!(1_000_000_000.5)),
        // Texts.
        (json!("  New\n York "), json!("new york")),
        (json!("ÉCOLE"), json!("école")),
        (json!(true), json!("True")),
        // Days.
        (json!("2026-11-21"), json!("21 November 2026")),
        (json!("2026-11-21"), json!("Nov 21, 2026")),
        (json!("2026-11-21"), json!("November 21st, 2026")),
        (json!("2026-11-21"), json!("21.11.2026")),
        (json!("2026-11-21"), json!("21-Nov-2026")),
        (json!("2026-11-21"), json!("2026/11/21")),
        (json!("2026-11-21"), json!("11/21/2026")),
        (json!("2026-11-21"), json!("21/11/2026")),
        (json!("2026-05-05"), json!("5/5/2026")),
        // Times of day: one instant, or one local time.
        (
            json!("2026-11-21T10:00:00Z"),
            json!("2026-11-21T11:00:00+01:00"),
        ),
        (json!("2026-11-21T10:00:00"), json!("2026-11-21 10:00:00")),
    ];
    let other = [
        (json!("007"), json!("7")),
        (json!(12.5), json!(12.51)),
        (
            json!(9_007_199_254_740_993_i64),
            json!(9_007_199_254_740_992_i64),
        ),
        (json!(1), json!(true)),
        (json!(1), json!("one")),
        (json!(1234), json!("12,34")),
        (json!(45), json!("45%")),
        // Which of the two is the month is not known.
        (json!("2026-05-06"), json!("5/6/2026")),
        (json!("2026-11-21"), json!("2026-11-22")),
        (json!("2026-11-21"), json!("2026-11-21T00:00:00Z")),
        (json!("2026-02-30"), json!("30.02.2026")),
        (json!("new york"), json!("newyork")),
    ];
    let compare = |one: &Value, two: &Value| {
        let (one, two) = (Scalar::of(one).unwrap(), Scalar::of(two).unwrap());
        assert_eq!(one.same(&two), two.same(&one), "{one:?} {two:?}");
        one.same(&two)
    };
    for (one, two) in &same {
        assert!(compare(one, two), "{one} {two}");
    }
    for (one, two) in &other {
        assert!(!compare(one, two), "{one} {two}");
    }
}

#[test]
fn what_is_no_object_or_too_large_has_a_reason_and_no_score() {
    let expected = json!({"a": 1, "b": 2});
    refuses(
        Scorer::FieldF1,
        &expected,
        &json!("a is 1"),
        "no JSON object",
    );
    refuses(
        Scorer::ExactMatch,
        &expected,
        &json!([1, 2]),
        "no JSON object",
    );

    let long: Vec<usize> = (0..=LIST_MAX).collect();
    refuses(
        Scorer::FieldF1,
        &expected,
        &json!({"a": long}),
        "257 entries; 256",
    );
    let wide: serde_json::Map<String, Value> = (0..=LEAVES_MAX)
        .map(|at| (at.to_string(), json!(at)))
        .collect();
    refuses(
        Scorer::FieldF1,
        &expected,
        &json!(wide),
        "2049 values; 2048",
    );
}

#[test]
fn the_largest_lists_are_compared_in_seconds() {
    // Eight lists of 256 against as many: 64 alignments of the largest size.
    let lists = |from: usize| -> Value {
        (0..LEAVES_MAX / LIST_MAX)
            .map(|list| {
                (0..LIST_MAX)
                    .map(|at| json!((at * 7 + list * 13 + from) % 500))
                    .collect::<Value>()
            })
            .collect()
    };

    let score = Scorer::FieldF1.score(&json!({"l": lists(0)}), &json!({"l": lists(90)}));

    assert!(score.is_ok_and(|score| score > 0.5));
}
