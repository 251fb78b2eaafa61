//! A hostile service behind an app that speaks another dialect: what is translated is read by bursar and written anew,
//! so the key, broken bytes and false amounts come through other code than on chat completions.

use serde_json::{Value, json};

use super::{App, Ask, BROKEN, Books, Case, DROPPED, ONCE, Stage, case, events_in, play};
use crate::support::{Answer, KEY};
use bursar::ledger::entry::Anomaly;

const PAID: Books = Books::Settled(7);
const BILLED: &str = "X-Service-Billed: 7\r\n";
const UNFIT: App = App::Refused("answer_untranslatable");
const LIVE: &str = "[retry]\nattempts = 1\n[streams]\ntranslated = \"live\"\n";

const RESPONSES: &str = "/v1/responses";
const PATHS: [&str; 3] = [RESPONSES, "/agent/v1/responses", "/agent/v1/messages"];

/// The key as JSON may spell it: letter by letter, and with one escape in it.
fn spellings() -> [String; 3] {
    let escaped = |letter: char| format!("\\u{:04x}", u32::from(letter));
    let in_json = KEY.chars().map(escaped).collect();
    let (first, rest) = KEY.split_at(4);
    let cut = format!(
        "{first}{}{}",
        escaped(rest.chars().next().expect("more")),
        &rest[1..]
    );
    [KEY.to_owned(), in_json, cut]
}

fn answer(status: u16, lines: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n{lines}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A chat completion with this message, spelled as it is here.
fn completion(message: &str) -> String {
    format!(
        r#"{{"id":"c","model":"auto","choices":[{{"index":0,"finish_reason":"stop","message":{message}}}],"usage":{{"prompt_tokens":3,"completion_tokens":4}}}}"#
    )
}

fn calling(id: &str, name: &str, arguments: &str) -> String {
    format!(
        r#"{{"content":"x","tool_calls":[{{"id":"{id}","type":"function","function":{{"name":"{name}","arguments":"{arguments}"}}}}]}}"#
    )
}

/// The places of an answer that reach the app, with the key in them.
fn with_key(key: &str) -> Vec<(&'static str, Vec<u8>)> {
    let given = |message: &str| answer(200, BILLED, &completion(message));
    let arguments = format!(r#"{{\"k\":\"{}\"}}"#, key.replace('\\', "\\\\"));
    vec![
        (
            "a text",
            given(&format!(r#"{{"content":"a {key}{key} b"}}"#)),
        ),
        ("a refusal", given(&format!(r#"{{"refusal":"{key}"}}"#))),
        ("arguments", given(&calling("i", "t", &arguments))),
        ("a call's id", given(&calling(key, "t", "{}"))),
        ("a call's name", given(&calling("i", key, "{}"))),
        (
            "a header",
            answer(
                200,
                &format!("{BILLED}X-Debug: {KEY}\r\nX-Request-Id: {KEY}\r\n"),
                &completion(r#"{"content":"x"}"#),
            ),
        ),
    ]
}

fn asked_as(path: &str, stream: bool) -> String {
    let form = if stream { "events" } else { "whole" };
    format!("{path}, {form}")
}

fn key_cases(path: &'static str, stream: bool) -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, key) in spellings().into_iter().enumerate() {
        let mut add = |what: &str, sends: Vec<u8>, app: App, books: Books| {
            let name = format!("{}: {what}, spelling {number}", asked_as(path, stream));
            cases.push(case(20, Ask::Spoken(path, stream), name, sends, app, books));
        };
        for (what, sends) in with_key(&key) {
            add(what, sends, App::Status(200), PAID);
        }
        for (what, body) in [
            ("an error", format!(r#"{{"detail":"Bearer {key}"}}"#)),
            (
                "an error object",
                format!(r#"{{"error":{{"message":"{key}","code":"{key}"}}}}"#),
            ),
            ("an error of no form", format!(r#"[["{key}"]]"#)),
        ] {
            add(
                what,
                answer(400, "", &body),
                App::Status(400),
                Books::Failed,
            );
        }
        let half = format!(r#"{{"k":"{key}"#)
            .replace('\\', "\\\\")
            .replace('"', "\\\"");
        let unfit = answer(200, BILLED, &completion(&calling("i", "t", &half)));
        add("arguments that break off", unfit, UNFIT, PAID);
    }
    cases
}

fn broken_cases(path: &'static str, stream: bool) -> Vec<Case> {
    let deep = format!(r#"{{"content":"x","deep":{}"#, "[".repeat(100_000));
    let fine = completion(r#"{"content":"x"}"#);
    let cut = |lines: &str| {
        format!("HTTP/1.1 200 OK\r\n{lines}Content-Length: 100\r\n\r\n{{").into_bytes()
    };
    let billed = |value: &str| answer(200, &format!("X-Service-Billed: {value}\r\n"), &fine);
    let row = |row: u8, what: &str, sends: Vec<u8>, app: App, books: Books| {
        let name = format!("{}: {what}", asked_as(path, stream));
        case(row, Ask::Spoken(path, stream), name, sends, app, books)
    };
    let coded = format!("{BILLED}Content-Encoding: gzip\r\n");
    vec![
        row(
            21,
            "100,000 lists that do not end",
            answer(200, BILLED, &completion(&deep)),
            UNFIT,
            PAID,
        ),
        row(21, "no JSON", answer(200, BILLED, "<html>"), UNFIT, PAID),
        row(
            21,
            "a NUL",
            answer(200, BILLED, "{\"choices\":\"\0\"}"),
            UNFIT,
            PAID,
        ),
        row(
            21,
            "a coding",
            answer(200, &coded, "\x1f\u{8b}"),
            UNFIT,
            PAID,
        ),
        row(
            22,
            "an amount that is none",
            billed("1e3"),
            App::Status(200),
            Books::Unreported,
        )
        .odd(&[Anomaly::Malformed]),
        row(
            22,
            "a negative amount",
            billed("-7"),
            App::Status(200),
            Books::Unreported,
        )
        .odd(&[Anomaly::Malformed]),
        row(24, "cut short", cut(BILLED), BROKEN, PAID).closing(),
        row(24, "cut short without a price", cut(""), BROKEN, DROPPED).closing(),
    ]
}

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for path in PATHS {
        for stream in [false, true] {
            cases.extend(key_cases(path, stream));
            cases.extend(broken_cases(path, stream));
        }
    }
    cases
}

/// All that an app reads in an answer once it has parsed it, with the pieces of each text joined.
fn read(answer: &Answer) -> String {
    let text = answer.text();
    let lines = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let documents: Vec<Value> = match text.starts_with("event:") {
        true => lines
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect(),
        false => serde_json::from_str(&text).into_iter().collect(),
    };
    let mut said = String::new();
    for document in &documents {
        let delta = &document["delta"];
        for piece in [delta, &delta["text"], &delta["partial_json"]] {
            said.push_str(piece.as_str().unwrap_or_default());
        }
    }
    documents
        .iter()
        .for_each(|document| gather(document, &mut said));
    said
}

fn gather(value: &Value, said: &mut String) {
    match value {
        Value::String(text) => {
            said.push('\n');
            said.push_str(text);
        }
        Value::Array(values) => values.iter().for_each(|value| gather(value, said)),
        Value::Object(members) => members.iter().for_each(|(name, value)| {
            said.push('\n');
            said.push_str(name);
            gather(value, said);
        }),
        _ => {}
    }
}

#[tokio::test]
async fn what_cannot_be_read_is_an_error_in_the_dialect_and_its_amount_stands() {
    let all = PATHS.map(|path| [false, true].map(|stream| broken_cases(path, stream)));
    play(all.concat().concat()).await;
}

#[tokio::test]
async fn the_key_is_in_nothing_that_an_app_reads_in_its_dialect() {
    let stage = Stage::with(ONCE).await;
    for path in PATHS {
        for stream in [false, true] {
            for case in key_cases(path, stream) {
                let answer = stage.plays(&case).await;
                assert!(!read(&answer).contains(KEY), "{}", case.name);
            }
        }
    }
    stage.check_what_is_kept();
}

fn said(delta: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n")
}

/// A live stream of these parts, to its end.
fn live(what: &str, parts: &[String], app: App, books: Books) -> Case {
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let name = format!("live: {what}");
    case(
        20,
        Ask::Spoken(RESPONSES, true),
        name,
        events_in(&parts),
        app,
        books,
    )
}

fn live_cases() -> Vec<Case> {
    let end = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n\
        : service-billed-micro-usd 7\n\ndata: [DONE]\n\n";
    let mut cases = Vec::new();
    for (number, key) in spellings().into_iter().enumerate() {
        let (first, rest) = KEY.split_at(9);
        // The same place of each spelling: in one all letters are escapes, in one the fifth is.
        let (said_first, said_rest) = key.split_at([9, 9 * 6, 9 + 5][number]);
        let piece = |text: &str| said(&format!(r#"{{"content":"{text}"}}"#));
        let call = |arguments: &str| {
            let arguments = json!(arguments);
            said(&format!(
                r#"{{"tool_calls":[{{"index":0,"id":"i","function":{{"name":"t","arguments":{arguments}}}}}]}}"#
            ))
        };
        let text = said(&format!(r#"{{"content":"a {key} b"}}"#));
        let refusal = |text: &str| said(&format!(r#"{{"refusal":"{text}"}}"#));
        let error = format!("data: {{\"error\":{{\"message\":\"bad key {key}\"}}}}\n\n");
        let whole = App::Status(200);
        for (what, parts, app, books) in [
            (
                "a text",
                vec![text.clone(), end.to_owned()],
                whole.clone(),
                PAID,
            ),
            (
                "a text, letter by letter",
                text.chars()
                    .map(String::from)
                    .chain([end.to_owned()])
                    .collect(),
                whole.clone(),
                PAID,
            ),
            (
                "a text in two pieces",
                vec![
                    piece(&format!("a {said_first}")),
                    piece(&format!("{said_rest} b")),
                    end.to_owned(),
                ],
                whole.clone(),
                PAID,
            ),
            (
                "a call in pieces",
                vec![
                    call(&format!("{{\"k\":\"{first}")),
                    call(&format!("{rest}\"}}")),
                    end.to_owned(),
                ],
                whole.clone(),
                PAID,
            ),
            (
                "a refusal in pieces",
                vec![refusal(first), refusal(rest), end.to_owned()],
                whole.clone(),
                PAID,
            ),
            (
                "an error",
                vec![said("{\"content\":\"x\"}"), error.clone(), end.to_owned()],
                whole,
                PAID,
            ),
            (
                "a break behind an error",
                vec![said("{\"content\":\"x\"}"), error],
                App::BrokenOff,
                DROPPED,
            ),
        ] {
            let case = live(&format!("{what}, spelling {number}"), &parts, app, books);
            cases.push(case);
        }
    }
    cases
}

#[tokio::test]
async fn the_key_is_in_nothing_that_an_app_reads_of_a_live_stream() {
    let stage = Stage::with(LIVE).await;
    for case in live_cases() {
        let answer = stage.plays(&case).await;
        assert!(
            !read(&answer).contains(KEY),
            "{}: {}",
            case.name,
            answer.text()
        );
    }
    stage.check_what_is_kept();
}
