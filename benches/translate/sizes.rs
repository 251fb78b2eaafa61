//! Requests and answers of a given size, as coding agents have them: some tools, a long conversation of texts, calls and
//! their outputs, with the escapes and letters of source code.
//!
//! Promise: the same size gives the same bytes on every machine.

use serde_json::{Value, json};

/// How long a conversation is.
#[derive(Clone, Copy)]
pub enum Enough {
    /// At least so many bytes of JSON.
    Bytes(usize),
    /// Exactly so many items or messages.
    Items(usize),
}

const TOOLS: usize = 20;

/// Bytes of one text of the service's stream: a word or two.
const PIECE_CHARS: usize = 8;

/// Lines of a program, with what JSON escapes and with letters of more than a byte.
const LINES: [&str; 8] = [
    "fn main() {\n",
    "    let greeting = \"Grüße\";\n",
    "    // Why: a path such as C:\\temp\\x is cut at its last backslash.\n",
    "\tfor (at, byte) in text.bytes().enumerate() {\n",
    "        println!(\"{greeting} {at}: {byte:02x}\");\n",
    "}\n",
    "All of this is a text of some length without anything that would have to be escaped in it. ",
    "test result: ok. 12 passed; 0 failed; finished in 0.42s\n",
];

/// About so many bytes.
fn text(from: usize, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 100);
    let mut lines = LINES.iter().copied().cycle().skip(from % LINES.len());
    while text.len() < bytes {
        text.extend(lines.next());
    }
    text
}

/// Items, group by group, until there are enough.
fn conversation(enough: Enough, group: impl Fn(usize) -> Vec<Value>) -> String {
    let mut json = String::new();
    let mut count = 0;
    for number in 0.. {
        for item in group(number) {
            let is_enough = match enough {
                Enough::Bytes(_) => false,
                Enough::Items(items) => count == items,
            };
            if is_enough {
                break;
            }
            if count > 0 {
                json.push(',');
            }
            json.push_str(&item.to_string());
            count += 1;
        }
        let is_enough = match enough {
            Enough::Bytes(bytes) => json.len() >= bytes,
            Enough::Items(items) => count == items,
        };
        if is_enough {
            break;
        }
    }
    format!("[{json}]")
}

fn schema() -> Value {
    json!({"type": "object", "required": ["cmd"], "additionalProperties": false, "properties": {
        "cmd": {"type": "string", "description": text(6, 120)},
        "workdir": {"type": "string", "description": text(6, 120)},
        "timeout_ms": {"type": "number", "minimum": 0}}})
}

/// A request as Codex makes it: its last item is the user's or a call's output.
pub fn responses_request(enough: Enough) -> String {
    let tools: Vec<Value> = (0..TOOLS)
        .map(|number| {
            json!({"type": "function", "name": format!("tool_{number}"), "strict": false,
                "description": text(number, 200), "parameters": schema()})
        })
        .chain([json!({"type": "custom", "name": "apply_patch", "description": text(0, 300)})])
        .collect();
    let input = conversation(enough, |number| {
        let id = format!("call_{number}");
        let arguments = json!({"cmd": text(number, 80)}).to_string();
        vec![
            json!({"type": "message", "role": "user",
                "content": [{"type": "input_text", "text": text(number, 300)}]}),
            json!({"type": "message", "role": "assistant",
                "content": [{"type": "output_text", "text": text(number + 1, 200)}]}),
            json!({"type": "function_call", "call_id": id, "name": "tool_1", "arguments": arguments}),
            json!({"type": "function_call_output", "call_id": id, "output": text(number, 900)}),
        ]
    });
    format!(
        r#"{{"model":"gpt-5","instructions":{},"tools":{},"store":false,"stream":true,"input":{input}}}"#,
        json!(text(0, 4_000)),
        json!(tools)
    )
}

/// A request as Claude Code makes it; its last message is the user's.
pub fn messages_request(enough: Enough) -> String {
    let tools: Vec<Value> = (0..TOOLS)
        .map(|number| {
            json!({"name": format!("tool_{number}"), "description": text(number, 200),
                "input_schema": schema()})
        })
        .collect();
    let enough = match enough {
        // In pairs, behind the first question: the user has the last word.
        Enough::Items(items) => Enough::Items(items / 2 * 2),
        enough => enough,
    };
    let rest = conversation(enough, |number| {
        let id = format!("call_{number}");
        vec![
            json!({"role": "assistant", "content": [
                {"type": "text", "text": text(number + 1, 200)},
                {"type": "tool_use", "id": id, "name": "tool_1", "input": {"cmd": text(number, 80)}}]}),
            json!({"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": id, "content": text(number, 900)},
                {"type": "text", "text": text(number, 300)}]}),
        ]
    });
    let first = json!({"role": "user", "content": text(0, 300)});
    let messages = match rest.strip_prefix('[') {
        Some("]") | None => format!("[{first}]"),
        Some(rest) => format!("[{first},{rest}"),
    };
    format!(
        r#"{{"model":"claude","max_tokens":8192,"stream":true,"system":[{{"type":"text","text":{}}}],"tools":{},"messages":{messages}}}"#,
        json!(text(0, 4_000)),
        json!(tools)
    )
}

/// The service's answer of about so many bytes: four parts text, one part a call's arguments.
pub fn answer(bytes: usize) -> String {
    let arguments = json!({"cmd": text(1, bytes / 6)}).to_string();
    json!({"id": "c", "created": 1_764_000_000, "model": "auto", "choices": [{
        "index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant",
            "content": text(0, bytes * 3 / 4), "tool_calls": [{"id": "call_1", "type": "function",
                "function": {"name": "tool_1", "arguments": arguments}}]}}],
        "usage": {"prompt_tokens": 30_000, "completion_tokens": 20_000, "total_tokens": 50_000}})
    .to_string()
}

/// The same as what the data lines of the service's stream say.
pub fn chunks(bytes: usize) -> Vec<String> {
    let chunk = |delta: Value, finish: Value| {
        json!({"id": "c", "object": "chat.completion.chunk", "created": 1_764_000_000, "model": "auto",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
        .to_string()
    };
    let content: Vec<char> = text(0, bytes * 3 / 4).chars().collect();
    let arguments = json!({"cmd": text(1, bytes / 6)}).to_string();
    let arguments: Vec<char> = arguments.chars().collect();
    let piece = |chars: &[char]| chars.iter().collect::<String>();
    let begun = json!({"tool_calls": [{"index": 0, "id": "call_1", "type": "function",
        "function": {"name": "tool_1", "arguments": ""}}]});
    let of_text = content
        .chunks(PIECE_CHARS)
        .map(|chars| chunk(json!({"content": piece(chars)}), Value::Null));
    let of_call = arguments.chunks(PIECE_CHARS).map(|chars| {
        let function = json!({"arguments": piece(chars)});
        chunk(
            json!({"tool_calls": [{"index": 0, "function": function}]}),
            Value::Null,
        )
    });
    of_text
        .chain([chunk(begun, Value::Null)])
        .chain(of_call)
        .chain([chunk(json!({}), json!("tool_calls"))])
        .collect()
}

/// As [`chunks`], of about so many bytes on the wire.
pub fn chunks_sent(bytes: usize) -> Vec<String> {
    const SAMPLE: usize = 10_000;
    let lines = chunks(SAMPLE);
    let lines = lines
        .iter()
        .map(|chunk| "data: ".len() + chunk.len() + "\n\n".len());
    chunks(bytes * SAMPLE / lines.sum::<usize>())
}
