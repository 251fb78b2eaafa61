use super::*;
use crate::openapi::DOCUMENT;

#[test]
fn the_document_allows_the_inputs_that_are_taken() {
    let document: Value = serde_json::from_str(DOCUMENT).unwrap();
    let schema = &document["components"]["schemas"]["EmbeddingRequest"];
    let validator = jsonschema::draft202012::new(schema).unwrap();
    let most = usize::try_from(TOKENS_PER_INPUT_MAX).unwrap();
    let tokens = |count: usize| vec![json!(97); count];
    for (what, input, is_taken) in [
        ("a text", json!("a"), true),
        ("an empty text", json!(""), false),
        (
            "as many texts as may be",
            json!(vec!["a"; INPUTS_MAX]),
            true,
        ),
        ("one more", json!(vec!["a"; INPUTS_MAX + 1]), false),
        ("nothing", json!([]), false),
        // One input.
        (
            "more tokens than inputs",
            json!(tokens(INPUTS_MAX + 1)),
            true,
        ),
        ("as many tokens as may be", json!(tokens(most)), true),
        ("one more", json!(tokens(most + 1)), false),
        ("inputs in tokens", json!([tokens(1), tokens(most)]), true),
        (
            "one token more",
            json!([tokens(1), tokens(most + 1)]),
            false,
        ),
        ("no tokens", json!([[]]), false),
        (
            "as many as may be",
            json!(vec![tokens(1); INPUTS_MAX]),
            true,
        ),
        ("one more", json!(vec![tokens(1); INPUTS_MAX + 1]), false),
        ("both", json!(["a", 97]), false),
        ("below zero", json!([-1]), false),
    ] {
        let body = json!({"model": "m", "input": input});
        assert_eq!(validator.is_valid(&body), is_taken, "{what}, the document");
        let parsed = EmbeddingsRequest::parse(body.to_string().as_bytes());
        assert_eq!(parsed.is_ok(), is_taken, "{what}, the route");
    }
}
