//! Ten prompts and their answers for seed 1.
//!
//! `tests/golden_seed1.json` is rewritten only with `SANDBOX_GOLDEN=write`; a change of it is a change of
//! what every user of the sandbox sees, and belongs in the changelog.

use crate::support::*;
use bursar_sandbox::Options;
use serde_json::{Value, json};

const PROMPTS: [&str; 10] = [
    "What is 12 + 30?",
    "Tell me about rivers in one paragraph.",
    "Write a Rust function that reverses a string.",
    "Write a Python function for the factorial of n.",
    "Summarize in two sentences: Rivers carve valleys over time. A valley holds water. Cats sleep all day. Rivers and valleys shape where people live. People build towns near rivers.",
    "Extract the fields: Please bill Ada Lovelace, ada@example.org, 1250 USD, due 2026-03-01.",
    "hard: why is the sky blue?",
    "Prove that the square root of two is irrational.",
    "What does the attached document say?",
    "Compute (17 * 3) - 9",
];

#[tokio::test]
async fn ten_given_prompts_give_the_golden_output_for_seed_1() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden_seed1.json");
    let got = answers(1).await;

    #[expect(
        clippy::disallowed_methods,
        reason = "a switch of the person who regenerates the file"
    )]
    if std::env::var("SANDBOX_GOLDEN").as_deref() == Ok("write") {
        std::fs::write(path, serde_json::to_string_pretty(&got).unwrap() + "\n").unwrap();
    }
    let golden: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();

    for (got, golden) in got
        .as_array()
        .unwrap()
        .iter()
        .zip(golden.as_array().unwrap())
    {
        assert_eq!(got, golden);
    }
    assert_eq!(got, golden);
}

#[tokio::test]
async fn different_prompts_and_seeds_differ_and_equal_ones_do_not() {
    let (one, again, two) = (answers(1).await, answers(1).await, answers(2).await);
    let contents: std::collections::BTreeSet<&str> = one
        .as_array()
        .unwrap()
        .iter()
        .map(|answer| answer["content"].as_str().unwrap())
        .collect();

    assert_eq!(one, again);
    assert_ne!(one, two);
    assert_eq!(contents.len(), PROMPTS.len());
}

async fn answers(seed: u64) -> Value {
    let sandbox = Sandbox::start_with(Options {
        seed,
        ..Options::default()
    })
    .await;
    let mut answers = Vec::new();
    for prompt in PROMPTS {
        let reply = sandbox.post(CHAT, &[], &ask(prompt)).await;
        answers.push(json!({
            "prompt": prompt,
            "content": reply.content(),
            "served_by": reply.header("x-service-served-by"),
            "specialist": reply.header("x-service-specialist"),
            "billed_micro_usd": reply.billed(),
            "usage": reply.json()["usage"],
        }));
    }
    Value::Array(answers)
}
