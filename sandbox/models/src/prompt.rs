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
    pub pictures: Vec<vision::Picture>,
    pub files: usize,
    /// The text of pictures and files, where it can be read.
    pub pages: Vec<String>,
    /// Results of tools since the last assistant message, when the transcript ends with them.
    pub tool_results: Vec<String>,
    /// Names of the tools that were called since the last user message.
    pub called: Vec<String>,
    pub tokens: u64,
}

// === impl Prompt ===

impl Prompt {
    pub fn of(messages: &[Value]) -> Self {
        let mut prompt = Self::default();
        for message in messages {
            prompt.read(message);
        }
        prompt
    }

    fn read(&mut self, message: &Value) {
        let role = message.get("role").and_then(Value::as_str).unwrap_or("");
        let text = self.read_content(message.get("content"));
        self.tokens += tokens::PER_MESSAGE + tokens::count(&text);
        for call in message
            .get("tool_calls")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            self.tokens += tokens::count(&call.to_string());
            let name = call.pointer("/function/name").and_then(Value::as_str);
            self.called.extend(name.map(str::to_owned));
        }
        match role {
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
    }

    fn read_content(&mut self, content: Option<&Value>) -> String {
        let mut text = String::new();
        match content {
            Some(Value::String(plain)) => text.push_str(plain),
            Some(Value::Array(parts)) => {
                for part in parts {
                    match part.get("type").and_then(Value::as_str) {
                        Some("image_url" | "input_image") => {
                            self.pictures.push(vision::Picture::of(part));
                            self.pages.extend(page::text_of(part));
                            self.tokens += PER_ATTACHMENT;
                        }
                        Some("file" | "input_file") => {
                            self.files += 1;
                            self.pages.extend(page::text_of(part));
                            self.tokens += PER_ATTACHMENT;
                        }
                        Some("input_audio") => self.pages.extend(page::text_of(part)),
                        _ => {
                            if let Some(one) = part.get("text").and_then(Value::as_str) {
                                push_line(&mut text, one);
                            }
                        }
                    }
                }
            }
            _ => {}
        }
        text
    }
}

/// Who says what in a message: its texts, a word for each picture and file, its tool calls as JSON.
pub fn said(message: &Value) -> (String, String) {
    let role = message.get("role").and_then(Value::as_str).unwrap_or("");
    let mut view = Prompt::default();
    let mut text = view.read_content(message.get("content"));
    for _ in &view.pictures {
        push_line(&mut text, "[image]");
    }
    for _ in 0..view.files {
        push_line(&mut text, "[file]");
    }
    if let Some(calls) = message.get("tool_calls").filter(|calls| calls.is_array()) {
        push_line(&mut text, &calls.to_string());
    }
    (role.to_owned(), text)
}

fn push_line(to: &mut String, text: &str) {
    if !to.is_empty() && !text.is_empty() {
        to.push('\n');
    }
    to.push_str(text);
}

/// The lower-cased words of a text: runs of letters and digits.
pub fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// Whether a word is in a list, whose entries stand with a space between them.
pub fn listed(word: &str, list: &str) -> bool {
    list.split(' ').any(|one| one == word)
}

/// Whether one of the words is in the list.
pub fn has_any(words: &[String], list: &str) -> bool {
    words.iter().any(|word| listed(word, list))
}

/// Whether the text holds a word of a list, whole and in any case.
pub fn has_word(text: &str, list: &str) -> bool {
    has_any(&words(text), list)
}

const STOP_WORDS: &str = "about after again also and any are because been before being between both but can could did does \
    doing down each few for from further give had has have having her here his how into its just let \
    make more most not now off once one only other our out over own please same say should some such \
    tell than that the their them then there these they this those through too under until use very was \
    were what when where which while who whom why will with would write you your";

/// The words that carry the text's subject, each once, in order: longer than two letters and no filler.
pub fn subject_words(text: &str) -> Vec<String> {
    let mut subject: Vec<String> = Vec::new();
    for word in words(text) {
        if word.chars().count() > 2 && !listed(&word, STOP_WORDS) && !subject.contains(&word) {
            subject.push(word);
            // A prompt of megabytes must not make this quadratic.
            if subject.len() == 64 {
                break;
            }
        }
    }
    subject
}
