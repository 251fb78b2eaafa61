//! What a long conversation takes: all that is written, kept, looked up and remembered of one that is twice as long is
//! twice as much, and never four times.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::protocol::translate::responses::memory::{Bounds, Item, Memory};

/// Items of a conversation, and calls of an answer.
const ITEMS: usize = 2_000;

const FACTS: AnswerFacts<'static> = AnswerFacts {
    entry: "0192f0c1a2b3747d8e9f001122334455",
    created_s: 1_700_000_000,
    cost: None,
};

/// A conversation in which half of the items are calls and their results, and the rest is said, or referred to.
fn conversation(dialect: Dialect, items: usize) -> Value {
    let pairs = (0..items / 4).map(|number| format!("call_{number:06}"));
    let said = (0..items / 4).map(|number| format!("{number:06}"));
    match dialect {
        Dialect::Messages => {
            let turn = |(id, text): (String, String)| {
                [
                    json!({"role": "assistant", "content": [
                        {"type": "text", "text": text},
                        {"type": "tool_use", "id": id, "name": "t", "input": {"n": text}}]}),
                    json!({"role": "user", "content": [
                        {"type": "text", "text": text},
                        {"type": "tool_result", "tool_use_id": id, "content": text}]}),
                ]
            };
            let messages: Vec<Value> = pairs.zip(said).flat_map(turn).collect();
            json!({"model": "auto", "max_tokens": 9, "messages": messages})
        }
        _ => {
            let turn = |(id, text): (String, String)| {
                [
                    json!({"role": "user", "content": text}),
                    json!({"type": "item_reference", "id": format!("msg_{text}")}),
                    json!({"type": "function_call", "call_id": id, "name": "t", "arguments": "{}"}),
                    json!({"type": "function_call_output", "call_id": id, "output": text}),
                ]
            };
            let input: Vec<Value> = pairs.zip(said).flat_map(turn).collect();
            json!({"model": "auto", "input": input})
        }
    }
}

/// A chat completion with so many calls, every other of them with an id that stood before.
fn answer(calls: usize) -> Value {
    let call = |number: usize| {
        json!({"id": format!("call_{:06}", number / 2), "type": "function",
            "function": {"name": "t", "arguments": format!("{{\"n\":{number:06}}}")}})
    };
    let calls: Vec<Value> = (100_000..100_000 + calls).map(call).collect();
    json!({"choices": [{"index": 0, "finish_reason": "tool_calls",
        "message": {"role": "assistant", "content": "x", "tool_calls": calls}}]})
}

/// What one turn takes, by name.
fn taken(dialect: Dialect, items: usize) -> Vec<(&'static str, usize)> {
    let body = conversation(dialect, items).to_string();
    let looked_up = Cell::new(0);
    let earlier = |id: &str| -> Option<Arc<[Item]>> {
        looked_up.set(looked_up.get() + 1);
        let said = json!({"type": "message", "role": "assistant", "content": id}).to_string();
        Some(Arc::from([Item::known_as(id, said)]))
    };
    let translated = translate(dialect, body.as_bytes(), &earlier).unwrap();
    let translated = translated.unwrap_or_else(|refused| panic!("{dialect}: {refused:?}"));
    let rendering = translated.turn;
    let document = rendering.document(answer(items).to_string().as_bytes(), FACTS);
    let document = document.unwrap_or_else(|unrendered| panic!("{dialect}: {unrendered:?}"));
    let mut memory = Memory::new(Bounds::default());
    if let Some(given) = rendering.given(&document) {
        memory.keep("app", given, Duration::ZERO);
    }
    vec![
        ("asked", body.len()),
        ("sent", translated.body.len()),
        ("kept until it is answered", rendering.kept_bytes()),
        ("looked up", looked_up.get()),
        ("the answer", document.len()),
        ("its events", rendering.events(&document).unwrap().len()),
        ("remembered", memory.bytes()),
    ]
}

#[test]
fn a_conversation_that_is_twice_as_long_takes_twice_as_much() {
    for dialect in [Dialect::Responses, Dialect::Messages] {
        let (half, whole) = (taken(dialect, ITEMS), taken(dialect, 2 * ITEMS));
        let asked = half[0].1;
        for ((what, half), (_, whole)) in half.into_iter().zip(whole) {
            assert!(
                whole * 10 <= half * 21,
                "{dialect}: {what}: {half}, {whole}"
            );
            // The events of a call have its arguments five times.
            assert!(half <= asked * 40, "{dialect}: {what}: {half} of {asked}");
        }
    }
}

#[test]
fn a_live_answer_that_is_twice_as_long_takes_twice_as_much() {
    let heard = |pieces: usize| {
        let body = br#"{"model":"auto","input":"x","stream":true}"#;
        let translated = translate(Dialect::Responses, body, &|_| None).unwrap();
        let mut rendering = translated.unwrap().turn;
        rendering.goes_live(&mut b"{}".to_vec());
        let mut live = rendering.live(FACTS.entry.to_owned(), 0).unwrap();
        let mut events = 0;
        for number in 0..pieces {
            let delta = json!({"content": format!("{number:06}")});
            let chunk = json!({"choices": [{"index": 0, "delta": delta}]}).to_string();
            live.hear(chunk.as_bytes());
            events += live.events().map_or(0, |events| events.len());
        }
        live.hear(br#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#);
        let kept = live.heard_bytes();
        let ending = live.ends(None);
        assert!(ending.document.is_some());
        [kept, events + ending.events.len()]
    };
    for (half, whole) in heard(ITEMS).into_iter().zip(heard(2 * ITEMS)) {
        assert!(whole * 10 <= half * 21, "{half}, {whole}");
    }
}
