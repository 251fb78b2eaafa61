//! nDCG@10.

use super::*;

/// 1 / log2(place + 1), places from 1.
fn d(place: f64) -> f64 {
    1.0 / (place + 1.0).log2()
}

// Interface, Task: default_scorer, for example nDCG@10 for ranking.
#[test]
fn ndcg_is_the_discounted_gain_of_the_first_ten_over_the_best_there_is() {
    let three = json!({"relevance": {"a": 3, "b": 2, "c": 0}});
    // 3 d(1) + 2 d(2).
    let best = 3.0 * d(1.0) + 2.0 * d(2.0);
    let twelve = json!({"relevance": {"a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 1, "g": 1, "h": 1, "i": 1,
        "j": 1, "k": 1, "l": 1}});
    let ten: f64 = (1..=10).map(|place| d(f64::from(place))).sum();
    holds(
        Scorer::NdcgAt10,
        &[
            (three.clone(), json!({"ranking": ["a", "b", "c"]}), 1.0),
            // Linear gain: 2 d(1) + 3 d(2), not 2^grade - 1.
            (
                three.clone(),
                json!({"ranking": ["b", "a", "c"]}),
                (2.0 * d(1.0) + 3.0 * d(2.0)) / best,
            ),
            // 0 d(1) + 2 d(2) + 3 d(3).
            (
                three.clone(),
                json!({"ranking": ["c", "b", "a"]}),
                (2.0 * d(2.0) + 3.0 * d(3.0)) / best,
            ),
            // Scores by id, in any order.
            (
                three.clone(),
                json!({"relevance": {"c": 0.1, "a": 0.9, "b": 0.5}}),
                1.0,
            ),
            // All tied: every place has the mean gain 5/3.
            (
                three.clone(),
                json!({"relevance": {"a": 1, "b": 1, "c": 1}}),
                5.0 / 3.0 * (d(1.0) + d(2.0) + d(3.0)) / best,
            ),
            // Two tied behind a: (2 + 0) / 2 at places 2 and 3.
            (
                three.clone(),
                json!({"relevance": {"a": 2, "b": 1, "c": 1}}),
                (3.0 * d(1.0) + d(2.0) + d(3.0)) / best,
            ),
            // An id that is left out gains nothing: 3 d(1).
            (
                three.clone(),
                json!({"ranking": ["a"]}),
                3.0 * d(1.0) / best,
            ),
            (three.clone(), json!({"ranking": []}), 0.0),
            // An unknown id takes a place: 3 d(2) + 2 d(3).
            (
                three.clone(),
                json!({"ranking": ["x", "a", "b"]}),
                (3.0 * d(2.0) + 2.0 * d(3.0)) / best,
            ),
            // An id twice counts where it is best, and takes one place.
            (three.clone(), json!({"ranking": ["a", "a", "b"]}), 1.0),
            // Entries with ids; with scores they need no order.
            (
                three.clone(),
                json!({"ranking": [{"id": "b", "score": 1}, {"id": "a", "score": 2}]}),
                1.0,
            ),
            // An expected list is the wanted order: grades 3, 2, 1 for a, b, c.
            (
                json!({"ranking": ["a", "b", "c"]}),
                json!({"ranking": ["a", "c", "b"]}),
                (3.0 * d(1.0) + d(2.0) + 2.0 * d(3.0)) / (3.0 * d(1.0) + 2.0 * d(2.0) + d(3.0)),
            ),
            // Ten places count on both sides: c and later at the best ten places.
            (
                twelve.clone(),
                json!({"ranking": ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]}),
                1.0,
            ),
            // Two strangers first leave eight places.
            (
                twelve,
                json!({"ranking": ["x", "y", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]}),
                (ten - d(1.0) - d(2.0)) / ten,
            ),
            // Nothing is worth anything: 0, as scikit-learn.
            (
                json!({"relevance": {"a": 0, "b": 0}}),
                json!({"ranking": ["a", "b"]}),
                0.0,
            ),
            // One document.
            (
                json!({"relevance": {"a": 2}}),
                json!({"ranking": ["a"]}),
                1.0,
            ),
            // Ids that are numbers.
            (
                json!({"relevance": {"1": 1, "2": 0}}),
                json!({"ranking": [1, 2]}),
                1.0,
            ),
        ],
    );
}

#[test]
fn a_ranking_is_read_from_the_forms_that_models_write() {
    let expected = json!({"relevance": {"p1": 2, "p2": 1, "p3": 0}});
    let right = [
        json!({"ranking": ["p1", "p2", "p3"]}),
        json!(["p1", "p2", "p3"]),
        json!({"p1": 0.9, "p2": 0.5, "p3": 0.1}),
        json!({"relevance": "p1, p2, p3"}),
        json!({"relevance": "1. p1\n2. p2\n3. p3"}),
        json!({"relevance": "- p1\n- p2\n- p3\n"}),
        json!({"relevance": "p1 > p2 > p3"}),
        json!("p1\np2\np3"),
        json!({"ranking": [{"id": "p1"}, {"id": "p2"}, {"id": "p3"}]}),
        json!({"reason": "p1 is best", "order": ["p1", "p2", "p3"]}),
    ];
    for answer in right {
        let score = Scorer::NdcgAt10.score(&expected, &answer);
        assert_eq!(score, Ok(1.0), "{answer}");
    }
}

#[test]
fn an_answer_without_a_ranking_has_a_reason_and_no_score() {
    let expected = json!({"relevance": {"a": 1, "b": 0}});
    let cases = [
        (
            expected.clone(),
            json!({"text": "a"}),
            "the answer holds no ranking",
        ),
        (
            expected.clone(),
            json!({"x": ["a"], "y": ["b"]}),
            "the answer holds no ranking",
        ),
        (
            expected.clone(),
            json!({"ranking": [["a"]]}),
            "entries without an id",
        ),
        (
            expected,
            json!({"ranking": [{"name": "a"}]}),
            "entries without an id",
        ),
        (
            json!({"label": "a"}),
            json!(["a"]),
            "expected output holds no ranking",
        ),
        (
            json!({"relevance": {"a": -1}}),
            json!(["a"]),
            "grade of a is below zero",
        ),
    ];
    for (expected, answer, reason) in cases {
        refuses(Scorer::NdcgAt10, &expected, &answer, reason);
    }
    let long: Vec<usize> = (0..=LEAVES_MAX).collect();
    refuses(
        Scorer::NdcgAt10,
        &json!({"relevance": {"a": 1}}),
        &json!(long),
        "2049 entries; 2048",
    );
}
