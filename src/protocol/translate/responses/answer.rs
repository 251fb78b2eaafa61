//! A chat completion as the Response document.
//!
//! Promise: ids come from the entry's id, so a repeat gives the same bytes. Texts and arguments are the
//! service's own. A call that the service did not finish is not offered: it is left out where the answer was
//! cut short, and otherwise the answer is not rendered; its price stands. Token counts are the service's; where
//! it reported none they are 0.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::value::RawValue;

use super::json::{Object, Text, array, is_object, quote};
use super::memory::{Given, Item};
use super::tools::Form;
use super::tree::{Node, Shape, Tree};
use super::turn::{Phase, Reply, Turn};
use crate::money::MicroUsd;
use crate::protocol::translate::{AnswerFacts, Unrendered};

/// How the service's answer ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Whole,
    /// By the limit, or a filter.
    Cut,
    /// It does not say, or by a word that is not known.
    Unknown,
}

/// What is looked into of a chat completion.
const COMPLETION: &[(&str, Shape)] = &[(
    "choices",
    Shape::List(&Shape::Object(&[(
        "message",
        Shape::Object(&[(
            "tool_calls",
            Shape::List(&Shape::Object(&[("function", Shape::Object(&[]))])),
        )]),
    )])),
)];

/// The output while it is written.
struct Output<'a> {
    turn: &'a Turn,
    entry: &'a str,
    /// Elements, each followed by a comma.
    items: String,
    calls: usize,
    call_ids: HashSet<Cow<'a, str>>,
}

/// Translates a whole answer.
pub fn translate(turn: &Turn, body: &[u8], facts: AnswerFacts<'_>) -> Result<Vec<u8>, Unrendered> {
    let text = std::str::from_utf8(body).ok();
    let completion = text.and_then(|text| Tree::read(text, COMPLETION));
    let completion = completion.ok_or_else(|| unrendered("it is not a JSON object"))?;
    let choices = completion.list("choices").unwrap_or_default();
    let choice = choices.first().and_then(Node::object);
    let choice = choice.ok_or_else(|| unrendered("it has no choice"))?;
    let message = choice.object("message");
    let message = message.ok_or_else(|| unrendered("its choice has no message"))?;

    let cut_by = |reason| (End::Cut, Phase::Incomplete { reason });
    let (end, phase) = match choice.text("finish_reason").map(RawValue::get) {
        Some("\"length\"") => cut_by("max_output_tokens"),
        Some("\"content_filter\"") => cut_by("content_filter"),
        Some("\"stop\"" | "\"tool_calls\"" | "\"function_call\"") => (End::Whole, Phase::Completed),
        _ => (End::Unknown, Phase::Completed),
    };
    let mut output = Output {
        turn,
        entry: facts.entry,
        items: String::new(),
        calls: 0,
        call_ids: HashSet::new(),
    };
    let calls = match message.get("tool_calls") {
        Some(Node::List(calls)) => calls.as_slice(),
        Some(_) => return Err(unrendered("its calls are no array")),
        None => &[],
    };
    let logprobs = choice.text("logprobs");
    let logprobs = logprobs.and_then(|logprobs| Object::read(logprobs.get())?.get("content"));
    output.message(message, logprobs, end != End::Cut, calls.is_empty())?;
    for call in calls {
        output.call(call, end)?;
    }

    let created = completion.text("created");
    let created = created.and_then(|created| created.get().parse().ok());
    let usage = usage(completion.text("usage"), facts.cost);
    let model = completion.text("model").and_then(Text::of).map(Text::json);
    let document = turn.document(&Reply {
        entry: facts.entry,
        created_at: created.unwrap_or(facts.created_s),
        phase,
        model,
        output: &format!("[{}]", output.items.trim_end_matches(',')),
        usage: Some(&usage),
    });
    Ok(document.into_bytes())
}

/// What a document of [`translate`] leaves to be referred to. `None`: the app asked not to store it.
pub fn given(turn: &Turn, document: &[u8]) -> Option<Given> {
    let mut conversation = turn.conversation()?.to_vec();
    let document = Object::read(std::str::from_utf8(document).ok()?)?;
    let id = document.get("id").and_then(Text::of)?.unescaped()?;
    for item in array(document.get("output")?)? {
        let name = Object::read(item.get())?.get("id").and_then(Text::of)?;
        conversation.push(Item::known_as(name.unescaped()?, item.get()));
    }
    Some(Given::new(id.into_owned(), conversation))
}

// === impl Output ===

impl<'a> Output<'a> {
    /// The message, if there is one to give.
    fn message(
        &mut self,
        message: &Tree<'a>,
        logprobs: Option<&RawValue>,
        is_whole: bool,
        is_alone: bool,
    ) -> Result<(), Unrendered> {
        let text = |name: &str| match message.text(name) {
            Some(value) => match Text::of(value) {
                Some(text) => Ok(Some(text)),
                None => Err(unrendered("a text of its message is no string")),
            },
            None => Ok(None),
        };
        let content = text("content")?;
        let refusal = text("refusal")?.filter(|text| !text.is_empty());
        let is_needed = is_whole && is_alone && refusal.is_none();
        let content = match content {
            Some(text) if !text.is_empty() => Some(text.json()),
            // An answer without a word is one all the same.
            _ if is_needed => Some("\"\""),
            _ => None,
        };
        if content.is_none() && refusal.is_none() {
            return Ok(());
        }
        let status = if is_whole { "completed" } else { "incomplete" };
        self.items.push_str("{\"id\":\"msg_");
        self.items.push_str(self.entry);
        self.items.push_str("\",\"type\":\"message\",\"status\":\"");
        self.items.push_str(status);
        self.items
            .push_str("\",\"role\":\"assistant\",\"content\":[");
        if let Some(content) = content {
            self.items.push_str("{\"type\":\"output_text\",\"text\":");
            self.items.push_str(content);
            self.items.push_str(",\"annotations\":[],\"logprobs\":");
            let logprobs = logprobs.map(RawValue::get);
            let logprobs = logprobs.filter(|logprobs| logprobs.starts_with('['));
            self.items.push_str(logprobs.unwrap_or("[]"));
            self.items.push('}');
        }
        if let Some(refusal) = refusal {
            if content.is_some() {
                self.items.push(',');
            }
            self.items.push_str("{\"type\":\"refusal\",\"refusal\":");
            self.items.push_str(refusal.json());
            self.items.push('}');
        }
        self.items.push_str("]},");
        Ok(())
    }

    fn call(&mut self, call: &Node<'a>, end: End) -> Result<(), Unrendered> {
        let is_whole = end == End::Whole;
        let call = call.object();
        let call = call.ok_or_else(|| unrendered("one of its calls is no object"))?;
        let function = call.object("function");
        let name = function.as_ref().and_then(|function| function.text("name"));
        let name = name.and_then(Text::of).filter(|name| !name.is_empty());
        let (function, name) = match (function, name) {
            (Some(function), Some(name)) => (function, name),
            // Cut before its name.
            _ if end == End::Cut => return Ok(()),
            (None, _) => return Err(unrendered("one of its calls is to no function")),
            (Some(_), None) => return Err(unrendered("one of its calls has no name")),
        };
        let arguments = function.text("arguments").and_then(Text::of);
        let spoken = name.unescaped();
        let spoken = spoken.and_then(|sent| self.turn.names().get(&sent));
        let form = spoken.map_or(Form::Function, |spoken| spoken.form);
        let value = arguments.and_then(|arguments| match form {
            Form::Custom => input(arguments, is_whole),
            Form::Function if is_complete(arguments, is_whole) => {
                Some(Cow::Borrowed(arguments.json()))
            }
            Form::Search if !arguments.is_empty() && is_complete(arguments, is_whole) => {
                arguments.unescaped()
            }
            Form::Function | Form::Search => None,
        });
        let Some(value) = value else {
            return match (end, form) {
                // What there is of the call is not offered.
                (End::Cut, _) => Ok(()),
                (_, Form::Custom) => Err(unrendered(
                    "the arguments of one of its calls hold no `input`",
                )),
                _ => Err(unrendered(
                    "the arguments of one of its calls are no JSON object",
                )),
            };
        };

        let number = self.calls;
        self.calls += 1;
        let (prefix, kind, member) = match form {
            Form::Function => ("fc", "function_call", "arguments"),
            Form::Custom => ("ctc", "custom_tool_call", "input"),
            Form::Search => ("tsc", "tool_search_call", "arguments"),
        };
        let out = &mut self.items;
        out.push_str(&format!("{{\"id\":\"{prefix}_{}_{number}\"", self.entry));
        out.push_str(&format!(
            ",\"type\":\"{kind}\",\"status\":\"completed\",\"call_id\":"
        ));
        let id = call
            .text("id")
            .and_then(Text::of)
            .filter(|id| !id.is_empty());
        // Each call of an answer needs an id of its own.
        let is_new = |id: &Text<'a>| id.unescaped().is_some_and(|key| self.call_ids.insert(key));
        match id.filter(is_new) {
            Some(id) => out.push_str(id.json()),
            None => out.push_str(&format!("\"call_{}_{number}\"", self.entry)),
        }
        match (form, spoken) {
            (Form::Search, _) => out.push_str(",\"execution\":\"client\""),
            (_, Some(spoken)) => {
                out.push_str(",\"name\":");
                quote(out, &spoken.name);
            }
            (_, None) => {
                out.push_str(",\"name\":");
                out.push_str(name.json());
            }
        }
        if let Some(namespace) = spoken.and_then(|spoken| spoken.namespace.as_deref()) {
            out.push_str(",\"namespace\":");
            quote(out, namespace);
        }
        out.push_str(&format!(",\"{member}\":"));
        out.push_str(&value);
        out.push_str("},");
        Ok(())
    }
}

/// Arguments that can be acted on: one JSON object, or, of an answer that says that it is whole, no text at all, as
/// services send where a function takes nothing.
fn is_complete(arguments: Text<'_>, is_whole: bool) -> bool {
    if arguments.is_empty() {
        return is_whole;
    }
    let text = arguments.unescaped();
    text.is_some_and(|text| is_object(&text))
}

/// A custom tool's text as a JSON string: the `input` of its arguments. A model that was told to write no JSON
/// may write the text itself; what does not begin like an object is that text.
fn input(arguments: Text<'_>, is_whole: bool) -> Option<Cow<'_, str>> {
    let text = arguments.unescaped()?;
    if let Some(object) = Object::read(&text) {
        let input = object.get("input").and_then(Text::of)?;
        return Some(Cow::Owned(input.json().to_owned()));
    }
    let is_text = is_whole && !text.is_empty() && !text.trim_start().starts_with('{');
    is_text.then(|| Cow::Borrowed(arguments.json()))
}

/// The service's token counts by the dialect's names, and the price.
pub(super) fn usage(usage: Option<&RawValue>, cost: Option<MicroUsd>) -> String {
    let usage = usage.and_then(|usage| Object::read(usage.get()));
    let count = |object: Option<&Object<'_>>, name: &str| -> Option<u64> {
        object?.get(name)?.get().parse().ok()
    };
    let details = |name: &str| Object::read(usage.as_ref()?.get(name)?.get());
    let input = count(usage.as_ref(), "prompt_tokens");
    let output = count(usage.as_ref(), "completion_tokens");
    let both = || input?.checked_add(output?);
    let total = count(usage.as_ref(), "total_tokens").or_else(both);
    let cached = count(details("prompt_tokens_details").as_ref(), "cached_tokens");
    let reasoning = count(
        details("completion_tokens_details").as_ref(),
        "reasoning_tokens",
    );
    let mut json = format!(
        "{{\"input_tokens\":{},\"input_tokens_details\":{{\"cached_tokens\":{}}},\
         \"output_tokens\":{},\"output_tokens_details\":{{\"reasoning_tokens\":{}}},\
         \"total_tokens\":{}",
        input.unwrap_or(0),
        cached.unwrap_or(0),
        output.unwrap_or(0),
        reasoning.unwrap_or(0),
        total.unwrap_or(0),
    );
    if let Some(cost) = cost {
        json.push_str(&format!(",\"cost\":{}", cost.to_usd()));
    }
    json.push('}');
    json
}

pub(super) fn unrendered(what: &str) -> Unrendered {
    Unrendered::new(format!(
        "The service's answer cannot be given as a Response: {what}. It is billed as reported."
    ))
}

#[cfg(test)]
mod tests;
