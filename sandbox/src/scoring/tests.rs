//! Tables of cases with their values worked out by hand, and properties that hold for every input.

mod answer;
mod fields;
mod interval;
mod properties;
mod ranking;
mod texts;

use super::{
    score::{LEAVES_MAX, LIST_MAX, TEXT_BYTES_MAX, WORDS_MAX, number},
    *,
};
use serde_json::{Value, json};

/// Expected output, answer, the score.
type Case = (Value, Value, f64);

fn holds(scorer: Scorer, cases: &[Case]) {
    assert!(cases.len() >= 12);
    for (expected, answer, wanted) in cases {
        let score = scorer.score(expected, answer);
        let near = score.as_ref().is_ok_and(|it| (it - wanted).abs() < 1e-12);
        assert!(near, "{expected} {answer}: {score:?}, wanted {wanted}");
    }
}

fn refuses(scorer: Scorer, expected: &Value, answer: &Value, reason: &str) {
    let refused = scorer.score(expected, answer);
    let message = refused.as_ref().err().map(ToString::to_string);
    assert!(
        message.is_some_and(|message| message.contains(reason)),
        "{expected} {answer}: {refused:?}"
    );
}

#[test]
fn each_scorer_is_found_by_its_id_and_no_other_name() {
    for scorer in Scorer::ALL {
        assert_eq!(Scorer::by_id(scorer.id()), Some(scorer));
    }
    assert_eq!(Scorer::by_id("f1"), None);
}

#[test]
fn an_answer_equal_to_what_was_expected_has_1_by_every_scorer() {
    for scorer in Scorer::ALL {
        let expected = json!({"ranking": ["b", "a", "c"]});
        assert_eq!(scorer.score(&expected, &expected), Ok(1.0), "{scorer:?}");
    }
}

// Interface, Eval result: `exact_match`, classification runs only; exact-match rate 0-100.
#[test]
fn the_exact_match_rate_is_of_a_hundred_and_of_no_row_there_is_none() {
    assert_eq!(exact_match_rate(&[]), None);
    assert_eq!(exact_match_rate(&[1.0]), Some(100.0));
    assert_eq!(exact_match_rate(&[1.0, 0.0, 0.0, 0.0]), Some(25.0));
    assert_eq!(exact_match_rate(&[0.0, 0.0]), Some(0.0));
}
