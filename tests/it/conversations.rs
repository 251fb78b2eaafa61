//! Invented conversations in the Responses dialect, held to what the fuzz target demands
//! (`fuzz/src/checks/responses.rs`): every text and every call's arguments arrive once, equal after unescaping;
//! the same bytes give the same bytes; a stream's deltas are the document's texts. The seed is fixed; each
//! failure names its round.

use std::sync::Arc;

use bursar::protocol::translate::responses::memory::Item;
use bursar::protocol::translate::responses::request;

use crate::corpus::responses::check;

const ROUNDS: u64 = 800;

/// Pieces of text with everything that escapes, divides or ends something somewhere.
const WORDS: [&str; 16] = [
    "plain ",
    "é",
    "😀",
    "\\\"",
    "\\\\",
    "\\n",
    "\\u0000",
    "\\u2028",
    "\\ud83d\\ude00",
    "\\/",
    "{",
    "}]",
    "data: [DONE]",
    "\\r\\n\\r\\n",
    "\\u00e9",
    "*** Begin Patch",
];

/// Halves of characters, which JSON may hold and Rust may not.
const HALVES: [&str; 2] = ["\\ud800", "\\udfff"];

const ARGUMENTS: [&str; 6] = [
    r#"{}"#,
    r#"{\"n\":\n1e2, \"s\":\"\\u00e9\\\"\"}"#,
    r#"{\"input\":\"x\\ny\"}"#,
    r#"{\"n\":"#,
    r#""#,
    r#"*** Begin Patch\n"#,
];

const TOOLS: [&str; 7] = [
    r#"{"type":"function","name":"f","parameters":{"type":"object"}}"#,
    r#"{"type":"custom","name":"apply_patch","description":"Edit.","format":{"type":"grammar","syntax":"lark","definition":"start: x"}}"#,
    r#"{"type":"namespace","name":"mail","tools":[{"type":"function","name":"send"},{"type":"custom","name":"draft"}]}"#,
    r#"{"type":"web_search"}"#,
    r#"{"type":"function","name":"mail__send"}"#,
    "{\n  \"type\": \"tool_search\",\r\n  \"execution\": \"client\", \"parameters\": {\n}}",
    r#"{"type":"namespace","name":"a.b","tools":[{"type":"function","name":"f"}]}"#,
];

const DAMAGE: &[u8] = b"\"\\{}[],:0u \xff";

/// A small generator: xorshift, so that a round needs nothing but its number.
struct Dice(u64);

impl Dice {
    fn of(round: u64) -> Self {
        Self((round + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).expect("31 bits") % sides
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.roll(from.len())]
    }

    /// A JSON string.
    fn text(&mut self, with_halves: bool) -> String {
        let mut text = String::new();
        for _ in 0..self.roll(6) {
            text.push_str(self.pick(&WORDS));
        }
        if with_halves && self.roll(4) == 0 {
            text.push_str(self.pick(&HALVES));
        }
        if self.roll(40) == 0 {
            text = text.repeat(700);
        }
        format!("\"{text}\"")
    }

    fn content(&mut self, kind: &str, halves: bool) -> String {
        if self.roll(2) == 0 {
            return self.text(halves);
        }
        let parts: Vec<String> = (0..self.roll(4))
            .map(|_| match self.roll(5) {
                0 if kind != "output_text" => {
                    r#"{"type":"input_image","image_url":"data:image/png;base64,AA==","detail":"high"}"#.to_owned()
                }
                1 if kind == "output_text" => {
                    format!(r#"{{"type":"refusal","refusal":{}}}"#, self.text(halves))
                }
                _ => format!(r#"{{"type":"{kind}","text":{}}}"#, self.text(halves)),
            })
            .collect();
        format!("[{}]", parts.join(","))
    }

    /// Items in an order that clients send: calls, words between them, and the outputs of all calls.
    fn items(&mut self, halves: bool) -> Vec<String> {
        let mut items = Vec::new();
        for turn in 0..1 + self.roll(4) {
            let content = self.content("input_text", halves);
            items.push(format!(
                r#"{{"type":"message","role":"user","content":{content}}}"#
            ));
            let mut outputs = Vec::new();
            for call in 0..self.roll(4) {
                // Some services number calls anew in each turn.
                let id = if self.roll(2) == 0 {
                    format!("call_{call}")
                } else {
                    format!("call_{turn}_{call}")
                };
                let (called, output) = self.call(&id, halves);
                items.push(called);
                outputs.push(output);
                match self.roll(5) {
                    0 => items.push(format!(
                        r#"{{"role":"assistant","phase":"commentary","content":{}}}"#,
                        self.content("output_text", halves)
                    )),
                    1 => items.push(
                        r#"{"type":"reasoning","summary":[],"encrypted_content":"gAAA"}"#
                            .to_owned(),
                    ),
                    2 => items.push(format!(
                        r#"{{"role":"user","content":{}}}"#,
                        self.text(halves)
                    )),
                    _ => {}
                }
            }
            items.extend(outputs);
            items.push(match self.roll(3) {
                0 => r#"{"type":"item_reference","id":"msg_0"}"#.to_owned(),
                _ => format!(
                    r#"{{"role":"assistant","content":{}}}"#,
                    self.content("output_text", halves)
                ),
            });
        }
        items
    }

    /// A call and its output.
    fn call(&mut self, id: &str, halves: bool) -> (String, String) {
        let (kind, members) = match self.roll(5) {
            0 => {
                let call = r#""execution":"client","arguments":{"query": "x", "limit":8}"#;
                let found = r#""execution":"client","tools":[{"type":"namespace","name":"found","tools":[{"type":"function","name":"f"}]}]"#;
                return (
                    format!(r#"{{"type":"tool_search_call","call_id":"{id}",{call}}}"#),
                    format!(r#"{{"type":"tool_search_output","call_id":"{id}",{found}}}"#),
                );
            }
            1 => {
                let input = format!(r#""name":"apply_patch","input":{}"#, self.text(halves));
                ("custom_tool_call", input)
            }
            _ => {
                let namespace = self.pick(&["", r#","namespace":"mail""#]);
                let arguments = self.pick(&ARGUMENTS);
                let call = format!(r#""name":"send"{namespace},"arguments":"{arguments}""#);
                ("function_call", call)
            }
        };
        let output = self.content("input_text", halves);
        (
            format!(r#"{{"type":"{kind}","call_id":"{id}",{members}}}"#),
            format!(r#"{{"type":"{kind}_output","call_id":"{id}","output":{output}}}"#),
        )
    }

    fn request(&mut self) -> String {
        let halves = self.roll(4) == 0;
        let mut members = vec![format!(r#""input":[{}]"#, self.items(halves).join(","))];
        let tools: Vec<&str> = TOOLS.into_iter().filter(|_| self.roll(2) == 0).collect();
        members.push(format!(r#""tools":[{}]"#, tools.join(",")));
        for member in [
            r#""previous_response_id":"resp_1""#,
            r#""store":false"#,
            r#""stream":true,"temperature":0.50"#,
            r#""reasoning":{"effort":"high"},"include":["reasoning.encrypted_content"]"#,
        ] {
            if self.roll(3) == 0 {
                members.push(member.to_owned());
            }
        }
        if self.roll(2) == 0 {
            members.push(format!(r#""instructions":{}"#, self.text(halves)));
        }
        format!("{{{}}}", members.join(","))
    }

    fn answer(&mut self) -> String {
        let finish = self.pick(&["stop", "length", "tool_calls", "content_filter"]);
        let content = if self.roll(3) == 0 {
            "null".to_owned()
        } else {
            self.text(true)
        };
        let names = [
            "f",
            "apply_patch",
            "mail__send",
            "mail__draft",
            "tool_search",
            "unheard",
        ];
        let calls: Vec<String> = (0..self.roll(4))
            .map(|_| {
                let (name, arguments) = (self.pick(&names), self.pick(&ARGUMENTS[..3]));
                let arguments = if self.roll(6) == 0 { self.pick(&ARGUMENTS) } else { arguments };
                let id = self.pick(&["a", "b", ""]);
                format!(r#"{{"id":"{id}","type":"function","function":{{"name":"{name}","arguments":"{arguments}"}}}}"#)
            })
            .collect();
        let calls = calls.join(",");
        format!(
            r#"{{"choices":[{{"finish_reason":"{finish}","message":{{"content":{content},"tool_calls":[{calls}]}}}}],"usage":{{"prompt_tokens":1}}}}"#
        )
    }
}

fn play(round: u64, case: &[u8]) {
    if let Err(panic) = std::panic::catch_unwind(|| check(case)) {
        eprintln!("round {round}: {}", String::from_utf8_lossy(case));
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn invented_conversations_keep_every_text_both_ways() {
    for round in 0..ROUNDS {
        let mut dice = Dice::of(round);
        let request = dice.request();
        // Else the rest would hold of nothing.
        let known = |_: &str| Some(Arc::from([Item::new(r#"{"role":"user","content":"x"}"#)]));
        let refused = request::translate(request.as_bytes(), &known).err();
        assert_eq!(refused, None, "round {round}: {request}");
        play(round, format!("{request}\n\n{}", dice.answer()).as_bytes());
    }
}

#[test]
fn damaged_conversations_are_translated_or_refused_and_never_panic() {
    for round in 0..ROUNDS {
        let mut dice = Dice::of(round);
        let mut case = format!("{}\n\n{}", dice.request(), dice.answer()).into_bytes();
        for _ in 0..1 + dice.roll(3) {
            let at = dice.roll(case.len());
            match dice.roll(4) {
                0 => case.truncate(at.max(1)),
                1 => case[at] = DAMAGE[dice.roll(DAMAGE.len())],
                2 => {
                    case.remove(at);
                }
                _ => case.insert(at, DAMAGE[dice.roll(DAMAGE.len())]),
            }
            if case.is_empty() {
                case.push(b'{');
            }
        }
        play(round, &case);
    }
}
