//! The Responses dialect, for any request and any answer, with an empty line between them.
//!
//! Promise: nothing panics, the same bytes give the same bytes, and what is given out is JSON. Every text and
//! every call's arguments of a request that is translated are in the chat completion once, equal after
//! unescaping; joining a stream's deltas gives the document's texts, escape by escape, and its last event the
//! document. A stream of any lines that is given while it comes has events in their order and one end, and no piece of
//! its text, nor two together, has the organization's key.
//! The answer is looked at also where the request is refused, as one to a request with a tool of each kind.

use std::collections::BTreeMap;
use std::sync::Arc;

use bursar::config::ApiKey;
use bursar::money::MicroUsd;
use bursar::protocol::translate::AnswerFacts;
use bursar::protocol::translate::responses::live::Live;
use bursar::protocol::translate::responses::memory::{Bounds, Item, Memory};
use bursar::protocol::translate::responses::{Turn, answer, error, events, request};
use serde_json::Value;
use serde_json::value::RawValue;

type Members<'a> = BTreeMap<String, &'a RawValue>;

/// What `resp_…` and any other id stand for.
const EARLIER: [&str; 2] = [
    r#"{"type":"message","role":"user","content":"an earlier question"}"#,
    r#"{"id":"msg_0","type":"message","role":"assistant","content":[{"type":"output_text","text":"an earlier answer"}]}"#,
];

/// What was asked where a request is refused.
const ASKED: &str = r#"{"input":"x","tools":[{"type":"function","name":"f"},{"type":"custom","name":"apply_patch"},
    {"type":"namespace","name":"mail","tools":[{"type":"function","name":"send"}]},
    {"type":"tool_search","execution":"client"}]}"#;

/// The organization's key: short, so that it is found by chance.
const KEY: &[u8] = b"key";

/// Beginnings of the sentences that a translation adds.
const ADDED: [&str; 2] = [
    "The output is an image; it is in the next message.",
    "The image that the tool call put out, id ",
];

const FACTS: AnswerFacts<'static> = AnswerFacts {
    entry: "0123456789abcdef0123456789abcdef",
    created_s: 1_700_000_000,
    cost: Some(MicroUsd::new(1_857)),
};

pub fn check(bytes: &[u8]) {
    let parted = bytes.windows(2).position(|bytes| bytes == b"\n\n");
    let (asked, answered) = bytes.split_at(parted.unwrap_or(bytes.len()));
    let failed = error::body(500, asked);
    let members: Members<'_> = read(&failed);
    let error: Members<'_> = serde_json::from_str(members["error"].get()).expect("an object");
    assert!(
        error["message"].get().starts_with('"'),
        "an error has a text"
    );

    let turn = check_request(asked).unwrap_or_else(|| {
        let translated = request::translate(ASKED.as_bytes(), &earlier);
        translated.expect("a request that is translated").turn
    });
    answer(&turn, answered);
    live(Arc::new(turn), answered);
}

/// `None`: it is refused.
fn check_request(asked: &[u8]) -> Option<Turn> {
    let Ok(translated) = request::translate(asked, &earlier) else {
        request::translate(asked, &earlier).expect_err("refused again");
        return None;
    };
    let again = request::translate(asked, &earlier).expect("translated again");
    assert_eq!(translated.body, again.body);
    assert_eq!(translated.dropped, again.dropped);
    let body: Members<'_> = read(&translated.body);
    assert!(body["messages"].get().len() > 2, "nothing is asked");
    assert!(!body.contains_key("stream"), "the service is asked whole");
    if let (Ok(asked), Ok(sent)) = (
        serde_json::from_slice::<Value>(asked),
        serde_json::from_slice::<Value>(&translated.body),
    ) {
        assert_eq!(said(&sent), spoken(&asked), "a text or an argument changed");
    }
    Some(translated.turn)
}

/// Each line as what a data line of the service's stream says.
fn live(turn: Arc<Turn>, answered: &[u8]) {
    let key = ApiKey::from_text(KEY).expect("a key");
    let secret = key.clone();
    let redact = Box::new(move |text: &[u8], more| secret.redacted_chunk(text, more));
    let live = Live::new(turn, FACTS.entry.to_owned(), FACTS.created_s);
    let mut live = live.without(redact);
    let mut given = Vec::new();
    for line in answered
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
    {
        live.hear(line);
        given.extend(live.events().unwrap_or_default());
    }
    let ending = live.ends(FACTS.cost);
    given.extend(ending.events);
    assert_eq!(live.events(), None, "something comes behind the end");
    let events = stream(&given);
    for (number, (_, members)) in events.iter().enumerate() {
        assert_eq!(members["sequence_number"].get(), number.to_string());
    }
    let mut text = String::new();
    for (kind, members) in &events {
        match kind.as_str() {
            "response.output_text.delta" => text.push_str(&inside(members["delta"])),
            "response.output_text.done" => assert_eq!(text, inside(members["text"])),
            _ => {}
        }
    }
    assert!(!key.occurs_in(text.as_bytes()), "the key is in {text}");
    let ends = [
        "response.completed",
        "response.incomplete",
        "response.failed",
    ];
    let is_end = |kind: &str| ends.contains(&kind);
    let (kind, last) = events.last().expect("a last event");
    assert_eq!(events.iter().filter(|(kind, _)| is_end(kind)).count(), 1);
    assert_eq!(kind == "response.failed", ending.document.is_none());
    if let Some(document) = ending.document {
        assert_eq!(last["response"].get().as_bytes(), document);
    }
}

fn earlier(id: &str) -> Option<Arc<[Item]>> {
    let items = EARLIER.map(Item::new);
    match id.starts_with("resp_") {
        true => Some(Arc::from(items)),
        false => Some(Arc::from([items[1].clone()])),
    }
}

fn read(json: &[u8]) -> Members<'_> {
    serde_json::from_slice(json).expect("an object of JSON")
}

/// The texts of a Responses request, sorted: what was said, and what calls were made with.
fn spoken(request: &Value) -> Vec<String> {
    let mut texts = Vec::new();
    text(&request["instructions"], &mut texts);
    if request["previous_response_id"].is_string() {
        EARLIER
            .iter()
            .for_each(|item| spoken_item(&value(item), &mut texts));
    }
    match &request["input"] {
        Value::Array(items) => items.iter().for_each(|item| spoken_item(item, &mut texts)),
        input => text(input, &mut texts),
    }
    sorted(texts)
}

fn spoken_item(item: &Value, texts: &mut Vec<String>) {
    match item["type"].as_str() {
        Some("message") => content(&item["content"], texts),
        Some("function_call_output" | "custom_tool_call_output") => content(&item["output"], texts),
        Some("function_call") => text(&item["arguments"], texts),
        Some("custom_tool_call") => {
            texts.push(serde_json::json!({"input": item["input"]}).to_string())
        }
        None if !item["role"].is_null() => content(&item["content"], texts),
        Some("tool_search_call") if !item["call_id"].is_null() => {
            let arguments = &item["arguments"];
            let nothing = serde_json::json!({});
            let arguments = if arguments.is_null() {
                &nothing
            } else {
                arguments
            };
            texts.push(arguments.to_string());
        }
        Some("tool_search_output") if !item["call_id"].is_null() => {
            let tools = item["tools"].as_array().cloned();
            texts.push(Value::from(tools.unwrap_or_default()).to_string());
        }
        Some("item_reference") | None => spoken_item(&value(EARLIER[1]), texts),
        Some(_) => {}
    }
}

/// The same of a chat completion.
fn said(completion: &Value) -> Vec<String> {
    let mut texts = Vec::new();
    for message in completion["messages"].as_array().expect("messages") {
        content(&message["content"], &mut texts);
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            text(&call["function"]["arguments"], &mut texts);
        }
    }
    sorted(texts)
}

fn content(content: &Value, texts: &mut Vec<String>) {
    let Value::Array(parts) = content else {
        return text(content, texts);
    };
    for part in parts {
        match part["type"].as_str() {
            Some("text" | "input_text" | "output_text") => text(&part["text"], texts),
            Some("refusal") => text(&part["refusal"], texts),
            _ => {}
        }
    }
}

fn text(text: &Value, texts: &mut Vec<String>) {
    texts.extend(text.as_str().map(str::to_owned));
}

/// Spaced alike where they are JSON: a custom tool's arguments are made here.
fn sorted(mut texts: Vec<String>) -> Vec<String> {
    for text in &mut texts {
        if let Ok(value @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str(text) {
            *text = value.to_string();
        }
    }
    texts.retain(|text| !text.is_empty() && !ADDED.iter().any(|added| text.starts_with(added)));
    texts.sort();
    texts
}

fn value(json: &str) -> Value {
    serde_json::from_str(json).expect("JSON")
}

fn answer(turn: &Turn, answered: &[u8]) {
    let Ok(document) = answer::translate(turn, answered, FACTS) else {
        answer::translate(turn, answered, FACTS).expect_err("not rendered again");
        return;
    };
    let again = answer::translate(turn, answered, FACTS).expect("rendered again");
    assert_eq!(document, again);
    let events = events::of(&document).expect("the events of a document");
    let events = stream(&events);
    let (kind, last) = events.last().expect("a last event");
    assert!(kind == "response.completed" || kind == "response.incomplete");
    assert_eq!(last["response"].get().as_bytes(), document);

    let response: Members<'_> = read(&document);
    let output: Vec<Members<'_>> = serde_json::from_str(response["output"].get()).expect("items");
    let mut texts = Vec::new();
    for item in &output {
        for member in ["arguments", "input"] {
            let text = item.get(member).filter(|text| text.get().starts_with('"'));
            texts.extend(text.map(|text| inside(text)));
        }
        let parts = item
            .get("content")
            .map(|parts| serde_json::from_str::<Vec<Members<'_>>>(parts.get()).expect("parts"));
        for part in parts.iter().flatten() {
            let text = part.get("text").or_else(|| part.get("refusal"));
            texts.push(inside(text.expect("a text")));
        }
    }
    let mut joined = Vec::new();
    let mut text = String::new();
    for (kind, members) in &events {
        if kind.ends_with(".delta") {
            let delta = inside(members["delta"]);
            assert!(!delta.is_empty(), "an empty delta");
            text.push_str(&delta);
        } else if ["text", "refusal", "arguments", "input"]
            .iter()
            .any(|name| members.contains_key(*name))
        {
            joined.push(std::mem::take(&mut text));
        }
    }
    assert_eq!(joined, texts, "the deltas are not the texts");

    let mut memory = Memory::new(Bounds::default());
    if let Some(given) = answer::given(turn, &document) {
        let id = given.response_id().to_owned();
        memory.keep("app", given, std::time::Duration::ZERO);
        assert!(memory.find("app", &id, std::time::Duration::ZERO).is_some());
    }
}

/// The inside of a JSON string, escapes included.
fn inside(text: &RawValue) -> String {
    let text = text.get();
    text.get(1..text.len() - 1).expect("a string").to_owned()
}

/// The events of a stream, each under the name that it says twice, numbered without a gap.
fn stream(events: &[u8]) -> Vec<(String, Members<'_>)> {
    let events = std::str::from_utf8(events).expect("UTF-8");
    let events = events.strip_suffix("\n\n").expect("a last empty line");
    let read = |(number, event): (usize, &'_ str)| {
        let (kind, data) = event.split_once('\n').expect("two lines");
        let kind = kind.strip_prefix("event: ").expect("a name");
        let head = format!("data: {{\"type\":\"{kind}\",\"sequence_number\":{number},");
        assert!(data.starts_with(&head) && !data.contains('\n'), "{data}");
        kind.to_owned()
    };
    let kinds = events.split("\n\n").enumerate().map(read);
    let data = events.split("\n\n").map(|event| {
        let (_, data) = event.split_once("\ndata: ").expect("data");
        serde_json::from_str::<Members<'_>>(data).expect("an object")
    });
    kinds.zip(data).collect()
}
