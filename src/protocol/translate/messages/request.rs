//! A request of the dialect as the chat completion that the service is asked for.
//!
//! Promise: as [`super`] has it. The members stand in one order whatever order the app has, so equal requests are equal
//! bytes. Whatever the app asks, the service is asked for a whole answer.

mod calls;
mod content;
mod conversation;
mod tools;

use serde_json::value::RawValue;

use self::tools::Tools;
use super::json;
use super::members::{self, Members, Place};
use super::turn::Turn;
use crate::protocol::translate::{Dropped, Translated, Untranslatable, WINDOW_TOKENS};

/// Assumed: at most four, as OpenAI's chat form has it.
const STOP_SEQUENCES_MAX: usize = 4;

/// What the answer's schema is called: the chat form wants a name, the dialect has none.
const SCHEMA_NAME: &str = "answer";

/// What Claude Code looks for in a 400: it then sends whole conversations for the rest of its session.
const NO_THREADS: &str = "The service holds no conversations; send the whole conversation \
     (capability_rejected: beta_header:message-threads-2026-08-12).";

/// The chat completion that asks for the same.
///
/// # Errors
/// Names the first member that cannot be honored and changes what is asked for.
pub fn translate(body: &[u8]) -> Result<Translated<Turn>, Untranslatable> {
    let place = Place::BODY;
    let mut asked = read(body)?;
    let mut dropped = Dropped::default();
    refuse_what_needs_their_servers(&mut asked, &place, &mut dropped)?;

    let model = asked.required_string("model", &place)?;
    let mut out = Vec::with_capacity(body.len().saturating_add(body.len() / 8));
    json::push(&mut out, &["{\"model\":\"", model, "\",\"messages\":["]);
    if let Some(system) = asked.take("system") {
        let texts = conversation::system(system, &place.member("system"), &mut dropped)?;
        conversation::push_system(&mut out, &texts);
    }
    let mut tools = Tools::default();
    if let Some(list) = asked.take("tools") {
        tools.add_all(list, &place.member("tools"), &mut dropped)?;
    }
    let messages = asked.required("messages", &place)?;
    let inside = place.member("messages");
    conversation::push_messages(&mut out, messages, &inside, &mut tools, &mut dropped)?;
    out.push(b']');
    tools.push(&mut out);
    if let Some(choice) = asked.take("tool_choice") {
        tools.push_choice(&mut out, choice, &place.member("tool_choice"), &mut dropped)?;
    }
    push_max_tokens(&mut out, &mut asked, &place, &mut dropped)?;
    for name in ["temperature", "top_p"] {
        push_number(&mut out, asked.take(name), name, &place)?;
    }
    let stops = match asked.take("stop_sequences") {
        Some(stops) => push_stops(&mut out, stops, &place.member("stop_sequences"))?,
        None => Vec::new(),
    };
    push_format(&mut out, &mut asked, &place, &mut dropped)?;
    out.push(b'}');

    let wants_stream = match asked.take("stream") {
        Some(stream) => members::flag(stream, &place.member("stream"))?,
        None => false,
    };
    asked.leave_out(&mut dropped);
    Ok(Translated {
        body: out,
        turn: Turn::new(model, stops, tools.into_without_input()),
        wants_stream,
        dropped,
    })
}

fn read(body: &[u8]) -> Result<Members<'_>, Untranslatable> {
    let no_json = || Place::BODY.refuse("The body must be one JSON object in UTF-8.");
    let body = std::str::from_utf8(body).map_err(|_| no_json())?;
    serde_json::from_str(body).map_err(|_| match serde_json::from_str::<&RawValue>(body) {
        Ok(_) => Members::refuse(&Place::BODY),
        Err(_) => no_json(),
    })
}

/// Members that ask for what only Anthropic's own servers have or hold.
fn refuse_what_needs_their_servers(
    asked: &mut Members<'_>,
    place: &Place<'_>,
    dropped: &mut Dropped,
) -> Result<(), Untranslatable> {
    let needs = [
        (
            "container",
            "null",
            "The service runs no containers; leave it out.",
        ),
        (
            "mcp_servers",
            "[]",
            "The service calls no MCP servers; connect them in the app and declare their tools.",
        ),
        (
            "inference_geo",
            "\"global\"",
            "The service does not say where it works; leave it out.",
        ),
    ];
    for (name, harmless, message) in needs {
        if asked
            .take(name)
            .is_some_and(|value| value.get() != harmless)
        {
            return Err(place.member(name).refuse(message));
        }
    }
    if let Some(thread) = asked.take("thread") {
        let place = place.member("thread");
        // The request that begins a thread has the whole conversation, one that continues it only what is new.
        if Members::read(thread, &place)?.kind() != "create" {
            return Err(place.refuse(NO_THREADS));
        }
        dropped.add("thread");
    }
    Ok(())
}

/// The dialect requires a limit. One above the window is lowered to it: no answer is longer, and services refuse it.
fn push_max_tokens(
    out: &mut Vec<u8>,
    asked: &mut Members<'_>,
    place: &Place<'_>,
    dropped: &mut Dropped,
) -> Result<(), Untranslatable> {
    let limit = asked.required("max_tokens", place)?;
    let limit: Option<u64> = limit.get().parse().ok().filter(|limit| *limit > 0);
    let place = place.member("max_tokens");
    let limit = limit.ok_or_else(|| place.refuse("It must be a whole number above 0."))?;
    if limit > WINDOW_TOKENS {
        dropped.add("max_tokens above the window");
    }
    let limit = limit.min(WINDOW_TOKENS).to_string();
    json::push(out, &[",\"max_tokens\":", &limit]);
    Ok(())
}

fn push_number(
    out: &mut Vec<u8>,
    value: Option<&RawValue>,
    name: &'static str,
    place: &Place<'_>,
) -> Result<(), Untranslatable> {
    let Some(value) = value else {
        return Ok(());
    };
    let number = value.get();
    if !number.starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
        return Err(place.member(name).refuse("It must be a number."));
    }
    json::push(out, &[",\"", name, "\":", number]);
    Ok(())
}

/// Writes the sequences, and gives them as texts, to be recognized in the answer.
fn push_stops(
    out: &mut Vec<u8>,
    stops: &RawValue,
    place: &Place<'_>,
) -> Result<Vec<String>, Untranslatable> {
    let stops = members::elements(stops, place)?;
    if stops.len() > STOP_SEQUENCES_MAX {
        return Err(place.refuse("The service takes at most 4."));
    }
    if stops.is_empty() {
        return Ok(Vec::new());
    }
    let mut before = ",\"stop\":[";
    for (index, stop) in stops.iter().enumerate() {
        let text = members::spelled(stop, &place.element(index))?;
        json::push(out, &[before, "\"", text, "\""]);
        before = ",";
    }
    out.push(b']');
    Ok(stops.into_iter().filter_map(json::text).collect())
}

/// The form of the answer: `output_config.format`, or `output_format` as it was called first.
fn push_format(
    out: &mut Vec<u8>,
    asked: &mut Members<'_>,
    place: &Place<'_>,
    dropped: &mut Dropped,
) -> Result<(), Untranslatable> {
    let earlier = asked.take("output_format");
    let config = asked.take("output_config");
    let config_place = place.member("output_config");
    let mut format = None;
    if let Some(config) = config {
        let mut config = Members::read(config, &config_place)?;
        format = config.take("format");
        for (member, name) in [
            ("effort", "output_config.effort"),
            ("task_budget", "output_config.task_budget"),
        ] {
            if config.take(member).is_some() {
                dropped.add(name);
            }
        }
        config.leave_out(dropped);
    }
    let (format, place) = match (format, earlier) {
        (None, None) => return Ok(()),
        (Some(format), None) => (format, config_place.member("format")),
        (None, Some(format)) => (format, place.member("output_format")),
        (Some(_), Some(_)) => {
            let place = place.member("output_format");
            return Err(place.refuse("It stands beside output_config.format; send one of the two."));
        }
    };
    let mut format = Members::read(format, &place)?;
    if format.kind() != "json_schema" {
        return Err(place.member("type").refuse("It must be json_schema."));
    }
    let schema = format.required("schema", &place)?;
    if !json::is_object(schema) {
        return Err(place.member("schema").refuse("It must be an object."));
    }
    format.leave_out(dropped);
    let before = ",\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"";
    let parts = [before, SCHEMA_NAME, "\",\"strict\":true,\"schema\":"];
    json::push(out, &parts);
    json::push(out, &[schema.get(), "}}"]);
    Ok(())
}

#[cfg(test)]
mod tests;
