//! What the models see of a request: its texts, pictures, files and tool results.
//!
//! Messages pass through unchanged (interface, agent lane: "nothing dropped or rewritten"); this is a view
//! over them. Promise: any JSON that passed validation gives a view, whatever odd parts it holds.

use super::{page, tokens, vision};
use serde_json::Value;

/// Tokens one picture or file costs. Assumed (tokenizer).
const PER_ATTACHMENT: u64 = 256;

#[derive(Clone, Debug, Default)]
pub struct Prompt {
    /// Text of all system and developer messages.
    pub system: String,
    /// Text of the last user message.
    pub user: String,
    /// Texts of all messages, one after another.
    pub all: String,
    /// Each in words.
    pub pictures: Vec<String>,
    pub files: usize,
    /// The text of pictures and files, where it can be read.
    pub pages: Vec<String>,
    /// Results of tools since the last assistant message, when the transcript ends with them.
    pub tool_results: Vec<String>,
    /// Names of the tools that were called since the last user message.
    pub called: Vec<String>,
    pub tokens: u64,
}

/// What one message holds: its text, and what is attached to it.
#[derive(Default)]
struct Content {
    text: String,
    pictures: Vec<String>,
    files: usize,
    pages: Vec<String>,
    /// Of the attachments.
    tokens: u64,
}

// === impl Prompt ===

impl Prompt {
    pub fn of(messages: &[Value]) -> Self {
        messages.iter().fold(Self::default(), Self::with)
    }

    /// With the next message.
    fn with(mut self, message: &Value) -> Self {
        let content = Content::of(message);
        let text = content.text;
        self.pictures.extend(content.pictures);
        self.files += content.files;
        self.pages.extend(content.pages);
        self.tokens += content.tokens + tokens::PER_MESSAGE + tokens::count(&text);
        let calls = message.get("tool_calls").and_then(Value::as_array);
        for call in calls.into_iter().flatten() {
            self.tokens += tokens::count(&call.to_string());
            let name = call.pointer("/function/name").and_then(Value::as_str);
            self.called.extend(name.map(str::to_owned));
        }
        match role(message) {
            "system" | "developer" => push_line(&mut self.system, &text),
            "user" => {
                self.user.clone_from(&text);
                self.tool_results.clear();
                self.called.clear();
            }
            "tool" | "function" => self.tool_results.push(text.clone()),
            _ => self.tool_results.clear(),
        }
        push_line(&mut self.all, &text);
        self
    }
}

// === impl Content ===

impl Content {
    fn of(message: &Value) -> Self {
        let mut content = Self::default();
        let parts = match message.get("content") {
            Some(Value::String(plain)) => {
                content.text.clone_from(plain);
                return content;
            }
            Some(Value::Array(parts)) => parts.as_slice(),
            _ => &[],
        };
        for part in parts {
            match part.get("type").and_then(Value::as_str) {
                Some("image_url" | "input_image") => {
                    content.pictures.push(vision::described(part));
                    content.tokens += PER_ATTACHMENT;
                }
                Some("file" | "input_file") => {
                    content.files += 1;
                    content.tokens += PER_ATTACHMENT;
                }
                Some("input_audio") => {}
                _ => {
                    push_line(
                        &mut content.text,
                        part.get("text").and_then(Value::as_str).unwrap_or(""),
                    );
                    continue;
                }
            }
            content.pages.extend(page::text_of(part));
        }
        content
    }
}

/// The role of a message, and its content in words: its texts, `[image]` or `[file]` for each attachment, its tool
/// calls as JSON.
pub fn said(message: &Value) -> (String, String) {
    let Content {
        mut text,
        pictures,
        files,
        ..
    } = Content::of(message);
    for _ in &pictures {
        push_line(&mut text, "[image]");
    }
    for _ in 0..files {
        push_line(&mut text, "[file]");
    }
    if let Some(calls) = message.get("tool_calls").filter(|calls| calls.is_array()) {
        push_line(&mut text, &calls.to_string());
    }
    (role(message).to_owned(), text)
}

fn role(message: &Value) -> &str {
    message.get("role").and_then(Value::as_str).unwrap_or("")
}

fn push_line(to: &mut String, text: &str) {
    if !to.is_empty() && !text.is_empty() {
        to.push('\n');
    }
    to.push_str(text);
}
