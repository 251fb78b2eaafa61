//! The service's chat completion as a message of the dialect.
//!
//! Promise: the input of a call is what the service gave, byte for byte, and always an object: where the service's is
//! none, the turn is an error and not a call with `{}`, which programs run. A call that was cut off is not offered, also
//! where it was cut behind its name. Each call of a turn has an id of its own.
//! Reasoning is left out: the dialect wants it signed, and no signature is invented.

use std::borrow::Cow;
use std::collections::HashSet;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::json;
use super::tool_id;
use super::turn::Turn;
use super::usage::Tokens;
use crate::protocol::translate::{AnswerFacts, Unrendered};

#[derive(Deserialize)]
struct Completion<'a> {
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    message: Said<'a>,
    #[serde(borrow, default)]
    finish_reason: Option<&'a RawValue>,
    /// Of some servers: the stop sequence that came.
    #[serde(borrow, default)]
    stop_reason: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Said<'a> {
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    refusal: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<Call<'a>>>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    function: Option<Function<'a>>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

/// Why the service stopped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Finish {
    Whole,
    Length,
    Filter,
    /// It does not say, or by a word that is not known.
    Unknown,
}

/// The message that a chat completion says.
///
/// # Errors
/// The completion has no choice, says something that is no text, or calls a tool with something that is no object.
pub fn translate(turn: &Turn, body: &[u8], facts: AnswerFacts<'_>) -> Result<Vec<u8>, Unrendered> {
    let completion: Completion<'_> = serde_json::from_slice(body).map_err(|_| {
        Unrendered::new("The service's answer is not a chat completion of the form that is known.")
    })?;
    let Some(choice) = completion.choices.first() else {
        return Err(Unrendered::new("The service's answer has no choice."));
    };
    let finish = Finish::of(choice.finish_reason);
    let refusal = inside(choice.message.refusal, "refusal")?;
    let mut content = Vec::new();
    for text in [inside(choice.message.content, "content")?, refusal] {
        if !text.is_empty() {
            begin_block(&mut content);
            json::push(
                &mut content,
                &["{\"type\":\"text\",\"text\":\"", text, "\"}"],
            );
        }
    }
    let mut ids = HashSet::new();
    for (index, call) in choice.message.tool_calls.iter().flatten().enumerate() {
        let Some((name, arguments)) = call.parts() else {
            match finish.is_cut() {
                // Cut before its name.
                true => continue,
                false => return Err(Unrendered::new("The service calls a tool without a name.")),
            }
        };
        match input(turn, name, arguments, finish)? {
            Some(input) => {
                begin_block(&mut content);
                let own = || format!("toolu_{}_{index}", facts.entry);
                let id = call.id.and_then(json::text).filter(|id| !id.is_empty());
                let id = id.map(|id| tool_id::shown(&id));
                // Programs find a call's result by its id.
                let id = id.filter(|id| !ids.contains(id)).unwrap_or_else(own);
                push_call(&mut content, name, &input, &id);
                ids.insert(id);
            }
            None if finish.is_cut() => {}
            None => return Err(no_object()),
        }
    }
    let stop_sequence = choice.stop_reason.filter(|text| {
        let text = json::text(text);
        text.is_some_and(|text| turn.has_stop_sequence(&text))
    });
    let (reason, stop_sequence) = match finish {
        Finish::Length => ("max_tokens", None),
        Finish::Filter => ("refusal", None),
        _ if !refusal.is_empty() => ("refusal", None),
        _ if !ids.is_empty() => ("tool_use", None),
        _ if stop_sequence.is_some() => ("stop_sequence", stop_sequence),
        Finish::Whole | Finish::Unknown => ("end_turn", None),
    };

    let mut out = Vec::with_capacity(body.len().saturating_add(body.len() / 8));
    json::push(
        &mut out,
        &["{\"id\":\"msg_", facts.entry, "\",\"type\":\"message\","],
    );
    json::push(
        &mut out,
        &["\"role\":\"assistant\",\"model\":\"", turn.model()],
    );
    json::push(&mut out, &["\",\"content\":["]);
    out.append(&mut content);
    json::push(
        &mut out,
        &["],\"stop_reason\":\"", reason, "\",\"stop_sequence\":"],
    );
    let stop_sequence = stop_sequence.map_or("null", RawValue::get);
    json::push(
        &mut out,
        &[stop_sequence, ",\"stop_details\":null,\"usage\":"],
    );
    let cost = facts.cost.map(|cost| cost.to_usd());
    Tokens::of_chat(completion.usage).push(&mut out, cost.as_deref());
    out.push(b'}');
    Ok(out)
}

fn no_object() -> Unrendered {
    Unrendered::new("The service calls a tool with arguments that are not a JSON object.")
}

/// The spelling of a text; `null` and an absent one are empty.
fn inside<'a>(text: Option<&'a RawValue>, name: &str) -> Result<&'a str, Unrendered> {
    let Some(text) = text else {
        return Ok("");
    };
    let not_text = || Unrendered::new(format!("The service's answer has {name} that is no text."));
    json::inside(text).ok_or_else(not_text)
}

fn begin_block(content: &mut Vec<u8>) {
    if !content.is_empty() {
        content.push(b',');
    }
}

/// A call's input: its arguments, a JSON object. No arguments at all are an object without members for a tool that
/// requires none, if the answer says that it is whole: services differ in how they call such a tool, and one that was
/// cut behind its name looks the same. `None`: they are no object.
fn input<'a>(
    turn: &Turn,
    name: &RawValue,
    arguments: Option<&'a RawValue>,
    finish: Finish,
) -> Result<Option<Cow<'a, str>>, Unrendered> {
    let Some(arguments) = arguments else {
        return Ok(without_arguments(turn, name, finish));
    };
    if json::is_object(arguments) {
        return Ok(Some(arguments.get().into()));
    }
    let Some(text) = json::text(arguments) else {
        return Err(no_object());
    };
    if text.trim().is_empty() {
        return Ok(without_arguments(turn, name, finish));
    }
    Ok(json::object(&text).map(|object| object.to_owned().into()))
}

fn without_arguments<'a>(turn: &Turn, name: &RawValue, finish: Finish) -> Option<Cow<'a, str>> {
    let is_enough = json::text(name).is_some_and(|name| turn.needs_no_input(&name));
    (is_enough && finish == Finish::Whole).then_some("{}".into())
}

fn push_call(content: &mut Vec<u8>, name: &RawValue, input: &str, id: &str) {
    json::push(
        content,
        &["{\"type\":\"tool_use\",\"id\":\"", id, "\",\"name\":"],
    );
    json::push(content, &[name.get(), ",\"input\":", input, "}"]);
}

// === impl Call ===

impl<'a> Call<'a> {
    /// Its name and its arguments. `None`: it has no name.
    fn parts(&self) -> Option<(&'a RawValue, Option<&'a RawValue>)> {
        let function = self.function.as_ref()?;
        let name = function.name?;
        let is_name = json::inside(name).is_some_and(|name| !name.is_empty());
        is_name.then_some((name, function.arguments))
    }
}

// === impl Finish ===

impl Finish {
    fn of(reason: Option<&RawValue>) -> Self {
        match reason.and_then(json::inside) {
            Some("stop" | "tool_calls" | "function_call") => Self::Whole,
            Some("length") => Self::Length,
            Some("content_filter") => Self::Filter,
            _ => Self::Unknown,
        }
    }

    fn is_cut(self) -> bool {
        matches!(self, Self::Length | Self::Filter)
    }
}

#[cfg(test)]
mod tests;
