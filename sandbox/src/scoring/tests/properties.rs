//! What holds for every input, over seeded random ones.

use super::*;
use crate::models::SeededRng;
use serde_json::Map;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const WORDS: [&str; 8] = ["the", "cat", "sat", "on", "a", "mat,", "It's", "7"];

fn text(rng: &mut SeededRng) -> String {
    let count = rng.below(7);
    let words: Vec<&str> = (0..count).map(|_| rng.word(&WORDS)).collect();
    words.join(" ")
}

/// A value of at most `depth` levels.
fn value(rng: &mut SeededRng, depth: u64) -> Value {
    match rng.below(if depth == 0 { 4 } else { 6 }) {
        0 => Value::Null,
        1 => json!(rng.below(3)),
        2 => json!(rng.below(2) == 0),
        3 => json!(rng.word(&WORDS)),
        4 => (0..rng.below(4)).map(|_| value(rng, depth - 1)).collect(),
        _ => object(rng, depth - 1),
    }
}

fn object(rng: &mut SeededRng, depth: u64) -> Value {
    let mut fields = Map::new();
    for name in NAMES {
        if rng.below(3) > 0 {
            fields.insert(name.to_owned(), value(rng, depth));
        }
    }
    Value::Object(fields)
}

fn cases(seed: &str) -> impl Iterator<Item = (Value, Value, SeededRng)> {
    let mut rng = SeededRng::from_parts(&[seed.as_bytes()]);
    (0..2_000).map(move |_| (object(&mut rng, 3), object(&mut rng, 3), rng.clone()))
}

#[test]
fn every_score_is_from_0_to_1() {
    for (expected, answer, _) in cases("bounds") {
        for scorer in Scorer::ALL {
            if let Ok(score) = scorer.score(&expected, &answer) {
                assert!(
                    (0.0..=1.0).contains(&score),
                    "{scorer:?} {expected} {answer}"
                );
            }
        }
    }
}

#[test]
fn field_f1_is_symmetric_and_1_of_itself_and_exact_match_is_its_1() {
    for (one, two, _) in cases("symmetry") {
        let there = Scorer::FieldF1.score(&one, &two);
        assert_eq!(there, Scorer::FieldF1.score(&two, &one), "{one} {two}");
        assert_eq!(Scorer::FieldF1.score(&one, &one), Ok(1.0), "{one}");
        let exact = Scorer::ExactMatch.score(&one, &two);
        assert_eq!(exact == Ok(1.0), there == Ok(1.0), "{one} {two}");
    }
}

/// The greatest sum by trying every pairing: row by row, each with any column that is left or with none.
fn by_every_pairing(weights: &[Vec<usize>], used: &mut Vec<bool>) -> usize {
    let Some((row, rest)) = weights.split_first() else {
        return 0;
    };
    let mut best = by_every_pairing(rest, used);
    for (column, weight) in row.iter().enumerate() {
        if !used[column] {
            used[column] = true;
            best = best.max(weight + by_every_pairing(rest, used));
            used[column] = false;
        }
    }
    best
}

#[test]
fn no_pairing_of_two_lists_has_a_greater_sum_than_the_one_found() {
    let mut rng = SeededRng::from_parts(&[b"pairings"]);
    let mut below = |n: u64| usize::try_from(rng.below(n)).unwrap();
    for _ in 0..500 {
        let (rows, columns) = (1 + below(5), 1 + below(5));
        let weights: Vec<Vec<usize>> = (0..rows)
            .map(|_| (0..columns).map(|_| below(6)).collect())
            .collect();
        let (one, two): (Vec<_>, Vec<_>) = ((0..rows).collect(), (0..columns).collect());
        let sum = assignment::greatest_sum(&one, &two, &|row, column| weights[*row][*column]);
        assert_eq!(
            sum,
            by_every_pairing(&weights, &mut vec![false; columns]),
            "{weights:?}"
        );
    }
}

#[test]
fn the_order_of_lists_does_not_count_in_field_f1() {
    fn reversed(value: &Value) -> Value {
        match value {
            Value::Array(entries) => entries.iter().rev().map(reversed).collect(),
            Value::Object(fields) => fields
                .iter()
                .rev()
                .map(|(name, value)| (name.clone(), reversed(value)))
                .collect(),
            other => other.clone(),
        }
    }
    for (one, two, _) in cases("order") {
        assert_eq!(
            Scorer::FieldF1.score(&one, &two),
            Scorer::FieldF1.score(&one, &reversed(&two)),
            "{one} {two}"
        );
    }
}

#[test]
fn a_right_field_more_is_never_worse_and_a_wrong_one_never_better() {
    for (mut expected, mut answer, mut rng) in cases("monotony") {
        expected["new"] = json!(rng.below(9));
        let without = Scorer::FieldF1.score(&expected, &answer).unwrap();
        answer["other"] = json!("wrong");
        let wrong = Scorer::FieldF1.score(&expected, &answer).unwrap();
        answer["new"] = expected["new"].clone();
        let right = Scorer::FieldF1.score(&expected, &answer).unwrap();
        assert!(wrong <= without && right > wrong, "{expected} {answer}");
    }
}

#[test]
fn word_scores_of_texts_are_symmetric_where_they_should_be_and_1_of_themselves() {
    let mut rng = SeededRng::from_parts(&[b"texts"]);
    for _ in 0..2_000 {
        let (one, two) = (json!({"t": text(&mut rng)}), json!({"t": text(&mut rng)}));
        for scorer in [Scorer::TokenF1, Scorer::Judge] {
            let there = scorer.score(&one, &two);
            assert_eq!(there, scorer.score(&two, &one), "{scorer:?} {one} {two}");
        }
        for scorer in [Scorer::Wer, Scorer::TokenF1, Scorer::Judge] {
            assert_eq!(scorer.score(&one, &one), Ok(1.0), "{scorer:?} {one}");
        }
    }
}

#[test]
fn putting_a_better_document_before_a_worse_one_never_lowers_ndcg() {
    let mut rng = SeededRng::from_parts(&[b"swaps"]);
    for _ in 0..2_000 {
        let count = 2 + usize::try_from(rng.below(14)).unwrap();
        let grades: Vec<u64> = (0..count).map(|_| rng.below(4)).collect();
        let expected: Map<String, Value> = (0..count)
            .map(|at| (at.to_string(), json!(grades[at])))
            .collect();
        let expected = json!({ "relevance": expected });
        let mut order: Vec<usize> = (0..count).collect();
        for at in (1..count).rev() {
            order.swap(at, usize::try_from(rng.below(at as u64 + 1)).unwrap());
        }
        let score = |order: &[usize]| Scorer::NdcgAt10.score(&expected, &json!(order)).unwrap();
        let before = score(&order);
        let at = usize::try_from(rng.below(count as u64 - 1)).unwrap();
        if grades[order[at]] < grades[order[at + 1]] {
            order.swap(at, at + 1);
        }
        assert!(score(&order) >= before - 1e-12, "{expected} {order:?}");
    }
}

#[test]
fn every_interval_is_ordered_and_within_0_and_1() {
    let mut rng = SeededRng::from_parts(&[b"intervals"]);
    for seed in 0..40 {
        let count = rng.below(12);
        let few = 1 + rng.below(5);
        let scores: Vec<f64> = (0..count)
            .map(|_| {
                number(usize::try_from(rng.below(few + 1)).unwrap())
                    / number(usize::try_from(few).unwrap())
            })
            .collect();
        let found = interval(&scores, seed);
        let ordered = 0.0 <= found.low && found.low <= found.mean && found.mean <= found.high;
        assert!(ordered && found.high <= 1.0, "{scores:?}: {found:?}");
    }
}
