//! What a translation takes of memory grows with what is translated, and not with its square.
//!
//! Why: an agent sends its whole conversation with every turn, and a square is seen first in the longest ones. Bytes are
//! counted by an allocator, so the figures are the same on every machine.

use std::sync::Arc;

use allocation_counter::{AllocationInfo, measure};
use bursar::protocol::translate::responses::live::Live;
use bursar::protocol::translate::{AnswerFacts, messages, responses};
use serde_json::{Value, json};

/// How often something stands in a request or an answer.
const FEW: usize = 500;
const MANY: usize = 2_000;

/// Four times as much, and what buffers that double take more. The square would be sixteen times.
const GROWTH_MAX: u64 = 6;

/// Bytes held at once, for each byte that is translated. Arguments of a call stand in the document and in four of its events,
/// and a buffer that grows to twice its size is there with both.
const HELD_MAX: u64 = 24;

const TEXT: &str = "An \"escape\", a path C:\\temp, and some letters: Grüße.\n";

const FACTS: AnswerFacts<'static> = AnswerFacts {
    entry: "0123456789abcdef0123456789abcdef",
    created_s: 1_764_000_000,
    cost: None,
};

fn many<T>(count: usize, one: impl Fn(usize) -> T) -> Vec<T> {
    (0..count).map(one).collect()
}

/// What is measured: of a count, what is translated, and in how many bytes.
type Work = fn(usize) -> (usize, Box<dyn FnOnce()>);

fn responses_request(members: Value) -> (usize, Box<dyn FnOnce()>) {
    let body = responses_body(members);
    let bytes = body.len();
    let work = move || {
        let translated = responses::request::translate(body.as_bytes(), &|_| None);
        translated.expect("a request that is translated");
    };
    (bytes, Box::new(work))
}

fn responses_body(mut members: Value) -> String {
    members["model"] = "auto".into();
    members["store"] = false.into();
    if members.get("input").is_none() {
        members["input"] = TEXT.into();
    }
    members.to_string()
}

fn messages_request(members: Value) -> (usize, Box<dyn FnOnce()>) {
    let body = messages_body(members);
    let bytes = body.len();
    let work = move || {
        let translated = messages::request::translate(body.as_bytes());
        translated.expect("a request that is translated");
    };
    (bytes, Box::new(work))
}

fn messages_body(mut members: Value) -> String {
    members["model"] = "auto".into();
    members["max_tokens"] = 100.into();
    if members.get("messages").is_none() {
        members["messages"] = json!([{"role": "user", "content": TEXT}]);
    }
    members.to_string()
}

fn function(number: usize) -> Value {
    json!({"type": "function", "name": format!("tool_{number}"), "description": TEXT,
        "parameters": {"type": "object", "properties": {"cmd": {"type": "string"}}}})
}

fn tool(number: usize) -> Value {
    json!({"name": format!("tool_{number}"), "description": TEXT,
        "input_schema": {"type": "object", "properties": {"cmd": {"type": "string"}}}})
}

fn responses_turn() -> responses::Turn {
    let body = responses_body(json!({"tools": [function(1)]}));
    let translated = responses::request::translate(body.as_bytes(), &|_| None);
    translated.expect("a request that is translated").turn
}

fn messages_turn() -> messages::Turn {
    let body = messages_body(json!({"tools": [tool(1)]}));
    let translated = messages::request::translate(body.as_bytes());
    translated.expect("a request that is translated").turn
}

/// The service's answer: a text, calls, or both.
fn answer(text: &str, calls: usize) -> String {
    let calls = many(calls, |number| {
        json!({"id": format!("call_{number}"), "type": "function", "function": {
            "name": "tool_1", "arguments": json!({"cmd": TEXT}).to_string()}})
    });
    let finish = if calls.is_empty() {
        "stop"
    } else {
        "tool_calls"
    };
    let mut message = json!({"role": "assistant", "content": text});
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    json!({"id": "c", "created": 1_764_000_000, "model": "auto",
        "choices": [{"index": 0, "finish_reason": finish, "message": message}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}})
    .to_string()
}

fn responses_answer(answer: String) -> (usize, Box<dyn FnOnce()>) {
    let turn = responses_turn();
    let bytes = answer.len();
    let work = move || {
        let document = responses::answer::translate(&turn, answer.as_bytes(), FACTS);
        let events = responses::events::of(&document.expect("a document"));
        assert!(!events.expect("events").is_empty());
    };
    (bytes, Box::new(work))
}

fn messages_answer(answer: String) -> (usize, Box<dyn FnOnce()>) {
    let turn = messages_turn();
    let bytes = answer.len();
    let work = move || {
        let document = messages::answer::translate(&turn, answer.as_bytes(), FACTS);
        assert!(!messages::events::of(&document.expect("a document")).is_empty());
    };
    (bytes, Box::new(work))
}

/// A stream of the service's, of these deltas.
fn live(deltas: Vec<Value>, finish: &str) -> (usize, Box<dyn FnOnce()>) {
    let chunk = |delta: Value, finish: Value| {
        json!({"id": "c", "object": "chat.completion.chunk", "created": 1_764_000_000, "model": "auto",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
        .to_string()
    };
    let chunks = deltas.into_iter().map(|delta| chunk(delta, Value::Null));
    let chunks: Vec<String> = chunks.chain([chunk(json!({}), finish.into())]).collect();
    let bytes = chunks.iter().map(String::len).sum();
    let turn = Arc::new(responses_turn());
    let work = move || {
        let mut live = Live::new(turn, FACTS.entry.to_owned(), FACTS.created_s);
        for chunk in &chunks {
            live.hear(chunk.as_bytes());
            live.events();
        }
        assert!(
            live.ends(FACTS.cost).document.is_some(),
            "an answer that can be given"
        );
    };
    (bytes, Box::new(work))
}

/// What can stand often in a request or an answer.
const WORKS: [(&str, Work); 18] = [
    ("responses: items", |count| {
        responses_request(
            json!({"input": many(count, |number| json!({"type": "message",
            "role": if number % 2 == 0 { "user" } else { "assistant" }, "content": TEXT}))}),
        )
    }),
    ("responses: calls and their outputs", |count| {
        let input = many(count, |number| {
            let id = format!("call_{number}");
            [
                json!({"type": "function_call", "call_id": id, "name": "tool_1", "arguments": "{}"}),
                json!({"type": "function_call_output", "call_id": id, "output": TEXT}),
            ]
        });
        responses_request(json!({"tools": [function(1)], "input": input.concat()}))
    }),
    ("responses: calls, and then all outputs", |count| {
        let call = |number| {
            json!({"type": "function_call", "call_id": format!("call_{number}"), "name": "tool_1",
            "arguments": "{}"})
        };
        let output = |number| json!({"type": "function_call_output", "call_id": format!("call_{number}"), "output": TEXT});
        let input = [many(count, call), many(count, output)].concat();
        responses_request(json!({"tools": [function(1)], "input": input}))
    }),
    ("responses: parts of one message", |count| {
        let parts = many(count, |_| json!({"type": "input_text", "text": TEXT}));
        responses_request(json!({"input": [{"type": "message", "role": "user", "content": parts}]}))
    }),
    ("responses: tools", |count| {
        responses_request(json!({"tools": many(count, function)}))
    }),
    ("responses: properties of a schema", |count| {
        let properties = many(count, |number| {
            (format!("p{number}"), json!({"type": "string"}))
        });
        let properties: serde_json::Map<String, Value> = properties.into_iter().collect();
        responses_request(json!({"tools": [{"type": "function", "name": "wide",
            "parameters": {"type": "object", "properties": properties}}]}))
    }),
    ("responses: one text", |count| {
        responses_request(json!({"input": TEXT.repeat(count)}))
    }),
    ("responses: members that are not known", |count| {
        // A request may have 1,024.
        let members = many(count / 4, |number| {
            (format!("unknown_{number}"), json!(number))
        });
        let members: serde_json::Map<String, Value> = members.into_iter().collect();
        responses_request(Value::Object(members))
    }),
    ("messages: messages", |count| {
        messages_request(json!({"messages": many(count, |number| json!({
            "role": if number % 2 == 0 { "user" } else { "assistant" }, "content": TEXT}))
            .into_iter().chain([json!({"role": "user", "content": TEXT})]).collect::<Vec<_>>()}))
    }),
    ("messages: calls and their results", |count| {
        let calls = many(count, |number| {
            let id = format!("call_{number}");
            [
                json!({"role": "assistant", "content": [
                    {"type": "tool_use", "id": id, "name": "tool_1", "input": {"cmd": TEXT}}]}),
                json!({"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": id, "content": TEXT}]}),
            ]
        });
        let first = vec![json!({"role": "user", "content": TEXT})];
        let messages = [first, calls.concat()].concat();
        messages_request(json!({"tools": [tool(1)], "messages": messages}))
    }),
    (
        "messages: calls of one message, and their results",
        |count| {
            let call = |number| json!({"type": "tool_use", "id": format!("call_{number}"), "name": "tool_1", "input": {}});
            let result = |number| json!({"type": "tool_result", "tool_use_id": format!("call_{number}"), "content": TEXT});
            messages_request(json!({"tools": [tool(1)], "messages": [
            {"role": "user", "content": TEXT},
            {"role": "assistant", "content": many(count, call)},
            {"role": "user", "content": many(count, result)}]}))
        },
    ),
    ("messages: tools", |count| {
        messages_request(json!({"tools": many(count, tool)}))
    }),
    ("responses: answer of one text", |count| {
        responses_answer(answer(&TEXT.repeat(count), 0))
    }),
    ("responses: answer of calls", |count| {
        responses_answer(answer("", count / 4))
    }),
    ("messages: answer of one text", |count| {
        messages_answer(answer(&TEXT.repeat(count), 0))
    }),
    ("messages: answer of calls", |count| {
        messages_answer(answer("", count / 4))
    }),
    ("live: pieces of a text", |count| {
        live(many(count, |_| json!({"content": TEXT})), "stop")
    }),
    ("live: pieces of calls", |count| {
        let call = |number: usize| {
            let (index, piece) = (number / 20, number % 20);
            let mut call = json!({"index": index, "function": {"arguments": " "}});
            if piece == 0 {
                call = json!({"index": index, "id": format!("call_{index}"), "type": "function",
                    "function": {"name": "tool_1", "arguments": "{}"}});
            }
            json!({"tool_calls": [call]})
        };
        live(many(count, call), "tool_calls")
    }),
];

fn measured(work: Work, count: usize) -> (u64, AllocationInfo) {
    let (bytes, work) = work(count);
    (u64::try_from(bytes).expect("a length"), measure(work))
}

#[test]
fn what_is_allocated_grows_with_what_is_translated_and_not_with_its_square() {
    for (name, work) in WORKS {
        let (_, few) = measured(work, FEW);
        let (bytes, many) = measured(work, MANY);
        println!(
            "{name}: {bytes} bytes, {} allocated, {} at once, {} times",
            many.bytes_total, many.bytes_max, many.count_total
        );
        assert!(few.bytes_total > 0, "{name}: the test would show nothing");
        assert!(
            many.bytes_total <= few.bytes_total * GROWTH_MAX,
            "{name}: {few:?}, {many:?}"
        );
        assert!(
            many.count_total <= few.count_total * GROWTH_MAX,
            "{name}: {few:?}, {many:?}"
        );
        assert!(
            many.bytes_max <= bytes * HELD_MAX,
            "{name}: {bytes} bytes, {many:?}"
        );
    }
}

/// The test above can fail: this is what a square looks like to it.
#[test]
fn a_text_that_is_copied_for_each_of_its_pieces_would_be_seen() {
    let copied = |count: usize| {
        measure(|| {
            (0..count).fold(String::new(), |text, _| format!("{text}{TEXT}"));
        })
    };
    let (few, many) = (copied(FEW), copied(MANY));
    assert!(many.bytes_total > few.bytes_total * GROWTH_MAX);
}
