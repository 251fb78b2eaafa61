use super::*;

fn order(query: &str, documents: &[&str]) -> Vec<usize> {
    let documents: Vec<String> = documents.iter().map(ToString::to_string).collect();
    rank(query, &documents).iter().map(|r| r.index).collect()
}

#[test]
fn shared_words_and_shared_meaning_both_count() {
    assert_eq!(
        order("opening hours", &["tall trees", "hours of opening"])[0],
        1
    );
    assert_eq!(
        order("see a physician", &["eat an apple", "the doctor is in"])[0],
        1
    );
}

#[test]
fn a_rare_word_of_the_query_says_more_than_a_frequent_one() {
    let documents = ["an invoice", "an invoice", "an invoice", "a zebra"];

    assert_eq!(order("invoice zebra", &documents)[0], 3);
}

#[test]
fn equals_stand_by_index_and_scores_stay_between_zero_and_one() {
    let documents = vec!["same".to_owned(), String::new(), "same".to_owned()];
    let ranked = rank("same", &documents);

    assert_eq!(
        ranked.iter().map(|r| r.index).collect::<Vec<_>>(),
        [0, 2, 1]
    );
    assert!(
        ranked.iter().all(|r| (0.0..=1.0).contains(&r.score)),
        "{ranked:?}"
    );
    assert_eq!(ranked[0].score, ranked[1].score);
    assert_eq!(rank("", &documents).len(), 3);
}
