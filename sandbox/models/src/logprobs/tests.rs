use super::*;
use std::collections::BTreeSet;

#[test]
fn the_tokens_are_the_text_and_the_numbers_are_probabilities() {
    let text = "The river, the sea.\nÄ 7 and 日本";
    for top in [0, 1, 5, TOP_MAX] {
        let logprobs = of(text, top, 1);
        let tokens = logprobs["content"].as_array().unwrap();
        let joined: String = tokens
            .iter()
            .map(|one| one["token"].as_str().unwrap())
            .collect();
        assert_eq!(joined, text);
        for one in tokens {
            let token = one["token"].as_str().unwrap();
            assert_eq!(one["bytes"], json!(token.as_bytes()));
            let alternatives = one["top_logprobs"].as_array().unwrap();
            assert_eq!(alternatives.len() as u64, top, "{token:?}");
            let logprob = |one: &Value| one["logprob"].as_f64().unwrap();
            assert!((0.59..0.99).contains(&logprob(one).exp()));
            if let Some(first) = alternatives.first() {
                assert_eq!(
                    (&first["token"], logprob(first)),
                    (&one["token"], logprob(one))
                );
            }
            assert!(alternatives.is_sorted_by(|a, b| logprob(a) > logprob(b)));
            let sum: f64 = alternatives.iter().map(|one| logprob(one).exp()).sum();
            assert!(sum <= 1.0 + 1e-6, "{sum}");
            let names: BTreeSet<&str> = alternatives
                .iter()
                .map(|one| one["token"].as_str().unwrap())
                .collect();
            assert_eq!(names.len(), alternatives.len());
        }
    }
    assert_eq!(of(text, 3, 1), of(text, 3, 1));
    assert_ne!(of(text, 3, 1), of(text, 3, 2));
    assert_eq!(of("", 3, 1), json!({"content": [], "refusal": null}));
}
