//! The translation of Anthropic's Messages, for any bytes: a request, and behind the first zero byte a chat completion.
//!
//! Promise: what a plain reading finds in the one form it finds in the other: model, texts and inputs of tools on the way
//! there, text and inputs on the way back, and in the events what is in the whole answer. What is no answer never ends
//! well.

use bursar::money::MicroUsd;
use bursar::protocol::translate::{AnswerFacts, messages};
use serde_json::Value;

pub fn check(bytes: &[u8]) {
    let end = bytes.iter().position(|byte| *byte == 0);
    let (request, completion) = bytes.split_at(end.unwrap_or(bytes.len()));
    let completion = completion.strip_prefix(&[0]).unwrap_or_default();

    let turn = check_request(request);
    check_completion(&turn, completion);
    // Any bytes where a document is expected.
    for part in [request, completion] {
        check_end(&messages::events::of(part));
        let error = messages::error::body(400, part);
        let error: Value = serde_json::from_slice(&error).expect("an error is JSON");
        assert_eq!(error["type"], "error");
        if let Some(list) = messages::models::list(part) {
            assert!(list.starts_with(b"{\"data\":["));
        }
    }
}

fn check_request(request: &[u8]) -> messages::Turn {
    let translated = messages::request::translate(request);
    let Ok(translated) = translated else {
        return messages::Turn::new("m", vec!["END".to_owned()], vec!["t".to_owned()]);
    };
    let again = messages::request::translate(request).expect("it was taken before");
    assert_eq!(translated.body, again.body);
    if let (Some(request), Some(chat)) = (plain(request), plain(&translated.body)) {
        compare(&request, &chat);
        assert_eq!(translated.wants_stream, request["stream"] == true);
    }
    translated.turn
}

/// A plain reading. `None`: one of its numbers is too large, it has half of a surrogate pair, or it is too deep.
fn plain(json: &[u8]) -> Option<Value> {
    serde_json::from_slice(json).ok()
}

fn compare(request: &Value, chat: &Value) {
    assert_eq!(request["model"], chat["model"]);
    assert_eq!(chat.get("stream"), None);
    let (texts, inputs) = said_by_the_app(request);
    let mut sent = Vec::new();
    let mut calls = Vec::new();
    for message in chat["messages"].as_array().expect("messages") {
        match &message["content"] {
            Value::String(text) => sent.push(text.as_str()),
            Value::Array(parts) => {
                sent.extend(parts.iter().filter_map(|part| part["text"].as_str()))
            }
            _ => {}
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            calls.push(call["function"]["arguments"].as_str().expect("a text"));
        }
    }
    for text in texts {
        assert!(
            sent.iter().any(|sent| sent.contains(text)),
            "{text:?} is lost"
        );
    }
    assert_eq!(inputs.len(), calls.len());
    for (input, call) in inputs.into_iter().zip(calls) {
        assert_eq!(*input, serde_json::from_str::<Value>(call).expect("JSON"));
    }
}

/// Texts of the user and the assistant, and inputs of tools.
fn said_by_the_app(request: &Value) -> (Vec<&str>, Vec<&Value>) {
    let mut texts = Vec::new();
    let mut inputs = Vec::new();
    for message in request["messages"].as_array().expect("messages") {
        if message["role"] == "system" {
            continue;
        }
        texts.extend(message["content"].as_str());
        for block in message["content"].as_array().into_iter().flatten() {
            match block["type"].as_str() {
                Some("text") => texts.extend(block["text"].as_str()),
                Some("tool_result") => texts.extend(block["content"].as_str()),
                Some("tool_use") => inputs.push(&block["input"]),
                _ => {}
            }
        }
    }
    (texts, inputs)
}

fn check_completion(turn: &messages::Turn, completion: &[u8]) {
    let facts = AnswerFacts {
        entry: "0192f0c1a2b3747d8e9f001122334455",
        created_s: 0,
        cost: Some(MicroUsd::new(1857)),
    };
    let Ok(document) = messages::answer::translate(turn, completion, facts) else {
        return;
    };
    let events = messages::events::of(&document);
    assert!(events.starts_with(b"event: message_start\n"));
    check_end(&events);
    let (Some(completion), Some(document)) = (plain(completion), plain(&document)) else {
        return;
    };
    assert_eq!(document["usage"]["cost"], 0.001_857);
    let content = document["content"].as_array().expect("blocks");
    let streamed = streamed(&events);
    assert_eq!(content.len(), streamed.len());
    for (block, streamed) in content.iter().zip(streamed) {
        if block["type"] == "text" {
            assert_eq!(block["text"], streamed);
            continue;
        }
        assert!(block["input"].is_object());
        assert_eq!(
            block["input"],
            serde_json::from_str::<Value>(&streamed).expect("JSON")
        );
        let id = block["id"].as_str().expect("an id");
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        assert!(!id.is_empty() && id.bytes().all(is_allowed), "{id}");
    }
    let text = completion["choices"][0]["message"]["content"].as_str();
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        assert_eq!(content[0]["text"], text);
    }
}

/// What the deltas of each block are together.
fn streamed(events: &[u8]) -> Vec<String> {
    let mut blocks = Vec::new();
    for line in std::str::from_utf8(events).expect("UTF-8").lines() {
        let Some(data) = line.strip_prefix("data: ") else {
            continue;
        };
        let Some(data) = plain(data.as_bytes()) else {
            continue;
        };
        let delta = &data["delta"];
        let piece = delta["text"].as_str().or(delta["partial_json"].as_str());
        match (data["type"].as_str(), piece) {
            (Some("content_block_start"), _) => blocks.push(String::new()),
            (Some("content_block_delta"), Some(piece)) => {
                blocks.last_mut().expect("a start").push_str(piece);
            }
            _ => {}
        }
    }
    blocks
}

/// One terminal event, at the end: `message_stop`, or `error` alone.
fn check_end(events: &[u8]) {
    let events = std::str::from_utf8(events).expect("UTF-8");
    let names: Vec<&str> = events
        .lines()
        .filter_map(|line| line.strip_prefix("event: "))
        .collect();
    let ends = |name: &&&str| matches!(**name, "message_stop" | "error");
    assert_eq!(names.iter().filter(ends).count(), 1, "{names:?}");
    match names.last() {
        Some(&"message_stop") => {
            let starts = names.iter().filter(|name| **name == "message_start");
            assert_eq!(starts.count(), 1);
        }
        last => assert_eq!((last, names.len()), (Some(&"error"), 1)),
    }
}
