//! Both directions together, with what a seeded generator makes.

use serde_json::{Map, Value, json};

use super::*;
use crate::money::MicroUsd;
use crate::protocol::translate::AnswerFacts;

const RUNS: u64 = 100;

/// SplitMix64: the same seed gives the same cases on every machine.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, sides: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(sides).unwrap()).unwrap()
    }

    fn text(&mut self) -> String {
        let words = [
            "a",
            "Ü",
            "👩‍👩‍👧",
            "\"",
            "\\",
            "\n",
            "\u{0}",
            "\u{2028}",
            "</b>",
            "data: [DONE]\n\n",
            "\\u00",
            " ",
        ];
        let most = [2000, 12, 12, 12, 12, 12][self.below(6)];
        let length = self.below(most);
        (0..=length)
            .map(|_| words[self.below(words.len())])
            .collect()
    }

    fn input(&mut self) -> Value {
        let member = |dice: &mut Self| {
            let value = match dice.below(5) {
                0 => json!(dice.next()),
                1 => json!([dice.text(), null, 1.5e300, true]),
                2 => json!({"deep": {"er": dice.text()}}),
                3 => json!(""),
                _ => json!(dice.text()),
            };
            (dice.text(), value)
        };
        let count = self.below(4);
        Value::Object((0..count).map(|_| member(self)).collect::<Map<_, _>>())
    }
}

/// A request, with the texts and the inputs that must come out of it, in their order.
fn request(dice: &mut Dice) -> (Value, Vec<String>, Vec<Value>) {
    let mut texts = Vec::new();
    let mut inputs = Vec::new();
    let mut say = |dice: &mut Dice| {
        let text = dice.text();
        texts.push(text.clone());
        text
    };
    let system = json!([{"type": "text", "text": say(dice)}]);
    let mut messages = Vec::new();
    for turn in 0..dice.below(6) {
        let mut asked = Vec::new();
        if turn > 0 {
            let input = dice.input();
            let id = format!("call.{turn}");
            let call = json!({"type": "tool_use", "id": id, "name": "t", "input": input});
            messages.push(json!({"role": "assistant", "content": [
                {"type": "thinking", "thinking": "x", "signature": "y"},
                {"type": "text", "text": say(dice)}, call]}));
            inputs.push(input);
            asked.push(json!({"type": "tool_result", "tool_use_id": id, "content": say(dice)}));
        }
        for _ in 0..=dice.below(3) {
            asked.push(json!({"type": "text", "text": say(dice)}));
        }
        messages.push(json!({"role": "user", "content": asked}));
    }
    messages.push(json!({"role": "user", "content": say(dice)}));
    let request = json!({"model": "m", "max_tokens": 5, "system": system, "messages": messages,
        "stream": dice.below(2) == 0});
    (request, texts, inputs)
}

/// What a chat completion request says, read plainly.
fn said(chat: &Value) -> (Vec<String>, Vec<Value>) {
    let mut texts = Vec::new();
    let mut inputs = Vec::new();
    for message in chat["messages"].as_array().unwrap() {
        match &message["content"] {
            Value::String(text) => texts.push(text.clone()),
            Value::Array(parts) => {
                texts.extend(
                    parts
                        .iter()
                        .map(|part| part["text"].as_str().unwrap().to_owned()),
                );
            }
            other => panic!("{other}"),
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let arguments = call["function"]["arguments"].as_str().unwrap();
            inputs.push(serde_json::from_str(arguments).unwrap());
        }
    }
    (texts, inputs)
}

fn completion(dice: &mut Dice) -> Value {
    let call = |dice: &mut Dice| {
        let id = ["call_1", "functions.t:0", "tx_a", "é", ""][dice.below(5)];
        let arguments = dice.input().to_string();
        json!({"id": id, "type": "function", "function": {"name": "t", "arguments": arguments}})
    };
    let calls: Vec<Value> = (0..dice.below(3)).map(|_| call(dice)).collect();
    let finish = ["stop", "length", "tool_calls", "content_filter"][dice.below(4)];
    let message = json!({"role": "assistant", "content": dice.text(), "tool_calls": calls});
    json!({"choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": dice.below(1000), "completion_tokens": dice.below(1000)}})
}

/// Puts events together as Anthropic's SDKs do.
fn assembled(events: &[u8]) -> Value {
    let events = std::str::from_utf8(events).unwrap();
    let mut message = Value::Null;
    let mut inputs: Vec<String> = Vec::new();
    let mut ended = false;
    for event in events.strip_suffix("\n\n").unwrap().split("\n\n") {
        let (name, data) = event.split_once('\n').unwrap();
        let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(name.strip_prefix("event: ").unwrap(), data["type"]);
        assert!(!ended, "{name} behind the end");
        let index = usize::try_from(data["index"].as_u64().unwrap_or_default()).unwrap();
        match data["type"].as_str().unwrap() {
            "message_start" => {
                assert!(message.is_null(), "a second message_start");
                message = data["message"].clone();
            }
            "content_block_start" => {
                let content = message["content"].as_array_mut().unwrap();
                assert_eq!(content.len(), index);
                content.push(data["content_block"].clone());
                inputs.push(String::new());
            }
            "content_block_delta" => match data["delta"]["type"].as_str().unwrap() {
                "text_delta" => {
                    let block = &mut message["content"][index]["text"];
                    let text = format!(
                        "{}{}",
                        block.as_str().unwrap(),
                        data["delta"]["text"].as_str().unwrap()
                    );
                    *block = text.into();
                }
                "input_json_delta" => {
                    inputs[index].push_str(data["delta"]["partial_json"].as_str().unwrap());
                }
                other => panic!("{other}"),
            },
            "content_block_stop" => {
                if message["content"][index]["type"] == "tool_use" {
                    message["content"][index]["input"] =
                        serde_json::from_str(&inputs[index]).unwrap();
                }
            }
            "message_delta" => {
                for (name, value) in data["delta"].as_object().unwrap() {
                    message[name] = value.clone();
                }
                message["usage"] = data["usage"].clone();
            }
            "message_stop" => ended = true,
            other => panic!("{other}"),
        }
    }
    assert!(ended, "no end");
    message
}

#[test]
fn texts_and_inputs_come_out_as_they_went_in() {
    for seed in 0..RUNS {
        let (request, texts, inputs) = request(&mut Dice(seed));
        let translated = request::translate(request.to_string().as_bytes()).unwrap();
        let chat: Value = serde_json::from_slice(&translated.body).unwrap();
        let (found, found_inputs) = said(&chat);
        assert_eq!(found, texts, "seed {seed}");
        assert_eq!(found_inputs, inputs, "seed {seed}");
        assert_eq!(
            translated.wants_stream,
            request["stream"] == true,
            "seed {seed}"
        );
    }
}

#[test]
fn a_stream_says_what_the_whole_answer_says() {
    for seed in 0..RUNS {
        let mut dice = Dice(seed);
        let completion = completion(&mut dice);
        let turn = Turn::new("m", Vec::new(), Vec::new());
        let cost = (dice.below(2) == 0).then(|| MicroUsd::new(dice.next() >> 20));
        let facts = AnswerFacts {
            entry: "0192f0c1a2b3747d8e9f001122334455",
            created_s: 0,
            cost,
        };
        let document = answer::translate(&turn, completion.to_string().as_bytes(), facts).unwrap();
        let whole: Value = serde_json::from_slice(&document).unwrap();
        assert_eq!(assembled(&events::of(&document)), whole, "seed {seed}");
        assert_eq!(events::of(&document), events::of(&document));

        let message = &completion["choices"][0]["message"];
        assert_eq!(
            whole["content"][0]["text"], message["content"],
            "seed {seed}"
        );
        for (index, call) in message["tool_calls"].as_array().unwrap().iter().enumerate() {
            let used = &whole["content"][index + 1];
            let arguments = call["function"]["arguments"].as_str().unwrap();
            let spelled = format!("\"input\":{arguments}}}");
            assert!(
                String::from_utf8_lossy(&document).contains(&spelled),
                "seed {seed}"
            );
            let id = used["id"].as_str().unwrap();
            assert!(
                !id.is_empty()
                    && id
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
            );
        }
    }
}

#[test]
fn a_later_turn_names_a_call_as_the_service_did() {
    for id in ["call_1", "functions.t:0", "tx_a", "é\"", "a b"] {
        let call =
            json!({"id": id, "type": "function", "function": {"name": "t", "arguments": "{}"}});
        let completion = json!({"choices": [{"message": {"content": "a", "tool_calls": [call]}}]});
        let turn = Turn::new("m", Vec::new(), Vec::new());
        let facts = AnswerFacts {
            entry: "e",
            created_s: 0,
            cost: None,
        };
        let document = answer::translate(&turn, completion.to_string().as_bytes(), facts).unwrap();
        let message: Value = serde_json::from_slice(&document).unwrap();
        let used = &message["content"][1]["id"];
        let request = json!({"model": "m", "max_tokens": 1, "messages": [
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": message["content"]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": used, "content": "r"}]}]});
        let translated = request::translate(request.to_string().as_bytes()).unwrap();
        let chat: Value = serde_json::from_slice(&translated.body).unwrap();
        assert_eq!(chat["messages"][1]["tool_calls"][0]["id"], id);
        assert_eq!(chat["messages"][2]["tool_call_id"], id);
    }
}

#[test]
fn no_bytes_make_a_translation_panic() {
    let turn = Turn::new("m", vec!["END".to_owned()], vec!["t".to_owned()]);
    let facts = AnswerFacts {
        entry: "e",
        created_s: 0,
        cost: None,
    };
    for seed in 0..RUNS {
        let mut dice = Dice(seed);
        let mut bytes = match seed % 2 {
            0 => request(&mut dice).0.to_string().into_bytes(),
            _ => completion(&mut dice).to_string().into_bytes(),
        };
        bytes.truncate(4000);
        for _ in 0..20 {
            let at = dice.below(bytes.len());
            match dice.below(4) {
                0 => bytes[at] = b"{}[]\",:\\0n"[dice.below(10)],
                1 => {
                    bytes.remove(at);
                }
                2 => bytes.insert(at, bytes[dice.below(bytes.len())]),
                _ => bytes[at] = u8::try_from(dice.below(256)).unwrap(),
            }
            let _ = request::translate(&bytes);
            let _ = answer::translate(&turn, &bytes, facts);
            let _ = (
                events::of(&bytes),
                error::body(400, &bytes),
                models::list(&bytes),
            );
        }
    }
}
