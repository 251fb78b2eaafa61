//! A Responses request as one chat completion.
//!
//! Promise: the same body and the same earlier items give the same bytes. What cannot be honored and changes
//! the meaning is refused with its path; what only tunes is left out and counted. No member is sent that the
//! interface does not list for both lanes.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::items::Transcript;
use super::json::{Object, Path, Text, objects};
use super::memory::Item;
use super::tools::{self, Choice, Origin, Tools};
use super::turn::{Asked, Turn};
use crate::protocol::translate::{Dropped, Translated, Untranslatable, WINDOW_TOKENS};

/// Finds what an id of an answer or of an item of one stands for (`memory::Memory::find`).
pub type Earlier<'e> = &'e dyn Fn(&str) -> Option<Arc<[Item]>>;

/// An input item: of this body, or one that was given out before.
enum Source<'a> {
    Own {
        place: usize,
        item: Object<'a>,
    },
    Earlier {
        place: Option<usize>,
        item: Item,
    },
    /// The input as one string.
    Words(Text<'a>),
}

/// Members that only tune how the vendor's servers work. What they hold is not read.
const TUNING: [&str; 11] = [
    "reasoning",
    "service_tier",
    "truncation",
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    "user",
    "client_metadata",
    "context_management",
    "stream_options",
    "moderation",
];

/// Members that are honored, sent on or repeated in the answer.
const READ: [&str; 24] = [
    "model",
    "input",
    "instructions",
    "previous_response_id",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "text",
    "temperature",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "top_logprobs",
    "max_output_tokens",
    // A limit for the vendor's own tools, and the service has none.
    "max_tool_calls",
    "include",
    "store",
    "stream",
    "metadata",
    "background",
    "conversation",
    "prompt",
    "messages",
    "type",
];

/// What may be asked to be included and is: the tokens' probabilities.
const LOGPROBS: &str = "message.output_text.logprobs";

/// The remedy where something earlier is not known.
const SEND_ALL: &str = "It is not kept here: answers stay for an hour without use, within 64 MiB and until a restart. \
     Set store: false and send all items of the conversation.";

/// Translates a request.
pub fn translate(body: &[u8], earlier: Earlier<'_>) -> Result<Translated<Turn>, Untranslatable> {
    let at = &Path::Body;
    let text = std::str::from_utf8(body);
    let request = text.ok().and_then(Object::read);
    let request = request.ok_or_else(|| at.refuse("The body has to be a JSON object."))?;
    let mut dropped = Dropped::default();
    refuse_state(&request, at)?;
    drop_tuning(&request, at, &mut dropped)?;

    let sources = sources(&request, at, earlier)?;
    let mut tools = Tools::default();
    if let Some(list) = request.array(at, "tools")? {
        tools.add(&list, Origin::Request, &at.member("tools"), &mut dropped)?;
    }
    for source in &sources {
        let (place, found) = match source {
            Source::Own { place, item } => (*place, tools::of_item(item)),
            Source::Earlier { place, item } => {
                let item = Object::read(item.json());
                (
                    place.unwrap_or(0),
                    item.map_or_else(Vec::new, |item| tools::of_item(&item)),
                )
            }
            Source::Words(_) => continue,
        };
        let list = at.member("input");
        let here = list.element(place);
        tools.add(&found, Origin::Item, &here.member("tools"), &mut dropped)?;
    }
    let mut echo = Echo::default();
    echo.json("tools", &tools.echo());

    let mut out = String::with_capacity(body.len() + body.len() / 4);
    out.push('{');
    let model = request.text(at, "model")?;
    if let Some(model) = model {
        member(&mut out, "model", model.json());
    }
    let messages = messages(&request, at, &sources, &tools, &mut dropped)?;
    member(&mut out, "messages", &messages);
    choice(&request, at, &mut tools, &mut dropped, &mut echo, &mut out)?;
    sampling(&request, at, &mut dropped, &mut echo, &mut out)?;
    format(&request, at, &mut dropped, &mut echo, &mut out)?;
    out.push('}');

    let store = request.flag(at, "store")?.unwrap_or(true);
    repeat(&request, at, store, &mut echo)?;
    let turn = Turn::new(Asked {
        model: model.map(|model| model.json().to_owned()),
        echo: echo.0,
        names: tools.into_names(),
        conversation: store.then(|| sources.iter().map(Source::to_item).collect()),
    });
    Ok(Translated {
        body: out.into_bytes(),
        turn,
        wants_stream: request.flag(at, "stream")?.unwrap_or(false),
        dropped,
    })
}

/// Refuses what needs a server that keeps things.
fn refuse_state(request: &Object<'_>, at: &Path<'_>) -> Result<(), Untranslatable> {
    if request.flag(at, "background")? == Some(true) {
        let message = "The service answers while the request runs. Leave `background` out.";
        return Err(at.member("background").refuse(message));
    }
    if request.get("conversation").is_some() {
        let message = "The service keeps no conversations. Send the items themselves in `input`.";
        return Err(at.member("conversation").refuse(message));
    }
    if request.get("prompt").is_some() {
        let message = "The service keeps no prompts. Send the text in `instructions` and `input`.";
        return Err(at.member("prompt").refuse(message));
    }
    if request.get("messages").is_some() {
        let message =
            "This is the body of a chat completion. Send it to chat/completions, or send `input`.";
        return Err(at.member("messages").refuse(message));
    }
    Ok(())
}

/// Counts the members that are left out. A name that is not of the dialect is an app's text and is not kept.
fn drop_tuning(
    request: &Object<'_>,
    at: &Path<'_>,
    dropped: &mut Dropped,
) -> Result<(), Untranslatable> {
    for (name, value) in request.iter() {
        if value.get() == "null" || READ.contains(&name) {
            continue;
        }
        let known = TUNING.iter().find(|known| **known == name);
        dropped.add(known.unwrap_or(&"unknown member"));
    }
    for name in [
        "prompt_cache_key",
        "safety_identifier",
        "user",
        "service_tier",
        "truncation",
    ] {
        request.text(at, name)?;
    }
    request.nested(at, "reasoning")?;
    Ok(())
}

/// The items in their order: those of the answer that this one follows, then those of the body, with references
/// resolved.
fn sources<'a>(
    request: &Object<'a>,
    at: &Path<'_>,
    earlier: Earlier<'_>,
) -> Result<Vec<Source<'a>>, Untranslatable> {
    let mut sources = Vec::new();
    if let Some(id) = request.word(at, "previous_response_id")? {
        let found = id.starts_with("resp_").then(|| earlier(&id)).flatten();
        let unknown = || at.member("previous_response_id").refuse(SEND_ALL);
        let items = found.ok_or_else(unknown)?;
        let items = items.iter().cloned();
        sources.extend(items.map(|item| Source::Earlier { place: None, item }));
    }
    let here = at.member("input");
    let Some(input) = request.get("input") else {
        return match sources.is_empty() {
            true => Err(at.missing("input")),
            false => Ok(sources),
        };
    };
    if let Some(text) = Text::of(input) {
        sources.push(Source::Words(text));
        return Ok(sources);
    }
    let items = objects(input, &here, "An item")?;
    sources.reserve(items.len());
    for (place, item) in items.into_iter().enumerate() {
        let here = here.element(place);
        let source = match is_reference(&item) {
            false => Source::Own { place, item },
            true => {
                let id = item.word(&here, "id")?.ok_or_else(|| here.missing("id"))?;
                let found = (!id.starts_with("resp_")).then(|| earlier(&id)).flatten();
                let item = found.and_then(|items| items.first().cloned());
                let item = item.ok_or_else(|| here.member("id").refuse(SEND_ALL))?;
                Source::Earlier {
                    place: Some(place),
                    item,
                }
            }
        };
        sources.push(source);
    }
    Ok(sources)
}

/// A reference may do without its type.
fn is_reference(item: &Object<'_>) -> bool {
    match item.get("type") {
        Some(kind) => kind.get() == "\"item_reference\"",
        None => item.get("role").is_none() && item.get("id").is_some(),
    }
}

fn messages<'a>(
    request: &Object<'a>,
    at: &Path<'_>,
    sources: &'a [Source<'a>],
    tools: &Tools<'a>,
    dropped: &mut Dropped,
) -> Result<String, Untranslatable> {
    let mut transcript = Transcript::new(tools);
    if let Some(instructions) = request
        .text(at, "instructions")?
        .filter(|text| !text.is_empty())
    {
        transcript.say("system", instructions);
    }
    let input = at.member("input");
    for source in sources {
        match source {
            Source::Words(text) => transcript.say("user", *text),
            Source::Own { place, item } => {
                transcript.add(item, &input.element(*place), dropped)?;
            }
            Source::Earlier { place, item } => {
                let here = match place {
                    Some(place) => input.element(*place),
                    None => at.member("previous_response_id"),
                };
                let unreadable = || here.refuse(SEND_ALL);
                let item = Object::read(item.json()).ok_or_else(unreadable)?;
                transcript.add(&item, &here, dropped)?;
            }
        }
    }
    if transcript.is_empty() {
        return Err(input.refuse("There is nothing to answer."));
    }
    let mut out = String::new();
    transcript.write(&mut out)?;
    Ok(out)
}

/// Tools, and which of them may be called.
fn choice<'a>(
    request: &Object<'a>,
    at: &Path<'_>,
    tools: &mut Tools<'a>,
    dropped: &mut Dropped,
    echo: &mut Echo,
    out: &mut String,
) -> Result<(), Untranslatable> {
    let parallel = request.flag(at, "parallel_tool_calls")?;
    let asked = request.get("tool_choice");
    let choice = asked.map(|asked| tools.choose(asked, &at.member("tool_choice"), dropped));
    let choice = choice.transpose()?;
    if !tools.is_empty() {
        member(out, "tools", &tools.json());
        match choice {
            Some(Choice::Mode(mode)) => member(out, "tool_choice", &format!("\"{mode}\"")),
            Some(Choice::Tool(name)) => {
                let mut tool = "{\"type\":\"function\",\"function\":{\"name\":".to_owned();
                super::json::quote(&mut tool, &name);
                tool.push_str("}}");
                member(out, "tool_choice", &tool);
            }
            None => {}
        }
        if let Some(parallel) = parallel {
            member(out, "parallel_tool_calls", word(parallel));
        }
    }
    echo.json("tool_choice", asked.map_or("\"auto\"", RawValue::get));
    echo.json("parallel_tool_calls", word(parallel.unwrap_or(true)));
    Ok(())
}

fn sampling(
    request: &Object<'_>,
    at: &Path<'_>,
    dropped: &mut Dropped,
    echo: &mut Echo,
    out: &mut String,
) -> Result<(), Untranslatable> {
    for (name, default) in [
        ("temperature", "1.0"),
        ("top_p", "1.0"),
        ("presence_penalty", "0.0"),
        ("frequency_penalty", "0.0"),
    ] {
        let value = request.number(at, name)?;
        if let Some(value) = value {
            member(out, name, value);
        }
        echo.json(name, value.unwrap_or(default));
    }
    let most: Option<u64> = request
        .count(at, "max_output_tokens")?
        .and_then(|most| most.parse().ok());
    if most.is_some_and(|most| most > WINDOW_TOKENS) {
        dropped.add("max_output_tokens above the window");
    }
    let most = most.map(|most| most.min(WINDOW_TOKENS).to_string());
    if let Some(most) = &most {
        member(out, "max_tokens", most);
    }
    echo.json("max_output_tokens", most.as_deref().unwrap_or("null"));

    let mut wants_logprobs = false;
    let include = request.array(at, "include")?.unwrap_or_default();
    for (place, wanted) in include.into_iter().enumerate() {
        let list = at.member("include");
        let Some(wanted) = Text::of(wanted) else {
            return Err(list.element(place).refuse("This has to be a string."));
        };
        match wanted.escaped() == LOGPROBS {
            true => wants_logprobs = true,
            false => dropped.add("include"),
        }
    }
    let top = request.count(at, "top_logprobs")?;
    let is_more = top.is_some_and(|top| top != "0");
    if wants_logprobs || is_more {
        member(out, "logprobs", "true");
        if let Some(top) = top.filter(|_| is_more) {
            member(out, "top_logprobs", top);
        }
    }
    echo.json("top_logprobs", top.unwrap_or("0"));
    Ok(())
}

/// The form of the text that is asked for.
fn format(
    request: &Object<'_>,
    at: &Path<'_>,
    dropped: &mut Dropped,
    echo: &mut Echo,
    out: &mut String,
) -> Result<(), Untranslatable> {
    let at = at.member("text");
    let mut repeated = "{\"type\":\"text\"}".to_owned();
    if let Some(text) = request.object(&Path::Body, "text")? {
        if text.text(&at, "verbosity")?.is_some() {
            dropped.add("text.verbosity");
        }
        let here = at.member("format");
        if let Some(format) = text.object(&at, "format")? {
            match format.word(&here, "type")?.as_deref() {
                Some("text") => {}
                Some("json_object") => {
                    repeated = "{\"type\":\"json_object\"}".to_owned();
                    member(out, "response_format", &repeated);
                }
                Some("json_schema") => {
                    repeated = schema(&format, &here, out)?;
                }
                Some(_) => {
                    let known = "This is `text`, `json_object` or `json_schema`.";
                    return Err(here.member("type").refuse(known));
                }
                None => return Err(here.missing("type")),
            }
        }
    }
    echo.json("text", &format!("{{\"format\":{repeated}}}"));
    Ok(())
}

fn schema(format: &Object<'_>, at: &Path<'_>, out: &mut String) -> Result<String, Untranslatable> {
    let name = format.text(at, "name")?.ok_or_else(|| at.missing("name"))?;
    let description = format.text(at, "description")?.map(Text::json);
    let schema = format.nested(at, "schema")?;
    let schema = schema.ok_or_else(|| at.missing("schema"))?;
    let strict = format.flag(at, "strict")?;

    let mut sent = format!("{{\"name\":{}", name.json());
    if let Some(description) = description {
        sent.push_str(",\"description\":");
        sent.push_str(description);
    }
    sent.push_str(",\"schema\":");
    sent.push_str(schema.get());
    if let Some(strict) = strict {
        sent.push_str(",\"strict\":");
        sent.push_str(word(strict));
    }
    sent.push('}');
    let json = format!("{{\"type\":\"json_schema\",\"json_schema\":{sent}}}");
    member(out, "response_format", &json);
    Ok(format!(
        "{{\"type\":\"json_schema\",\"name\":{},\"description\":{},\"schema\":{},\"strict\":{}}}",
        name.json(),
        description.unwrap_or("null"),
        schema.get(),
        word(strict.unwrap_or(false)),
    ))
}

/// The members that the answer repeats and the service is not asked for. What was left out is shown as not used.
fn repeat(
    request: &Object<'_>,
    at: &Path<'_>,
    store: bool,
    echo: &mut Echo,
) -> Result<(), Untranslatable> {
    for name in [
        "instructions",
        "previous_response_id",
        "prompt_cache_key",
        "safety_identifier",
    ] {
        echo.json(name, request.text(at, name)?.map_or("null", Text::json));
    }
    if let Some(user) = request.text(at, "user")? {
        echo.json("user", user.json());
    }
    let metadata = request.nested(at, "metadata")?;
    echo.json("metadata", metadata.map_or("{}", RawValue::get));
    echo.json(
        "max_tool_calls",
        request.count(at, "max_tool_calls")?.unwrap_or("null"),
    );
    echo.json("store", word(store));
    echo.json("background", "false");
    echo.json("reasoning", "{\"effort\":null,\"summary\":null}");
    echo.json("service_tier", "\"default\"");
    echo.json("truncation", "\"disabled\"");
    Ok(())
}

/// Members of the answer that repeat the request.
#[derive(Default)]
struct Echo(String);

// === impl Echo ===

impl Echo {
    fn json(&mut self, name: &str, value: &str) {
        self.0.push(',');
        member(&mut self.0, name, value);
    }
}

// === impl Source ===

impl Source<'_> {
    /// As it is remembered.
    fn to_item(&self) -> Item {
        match self {
            Self::Own { item, .. } => Item::new(item.to_json()),
            Self::Earlier { item, .. } => item.clone(),
            Self::Words(text) => Item::new(format!(
                "{{\"type\":\"message\",\"role\":\"user\",\"content\":{}}}",
                text.json()
            )),
        }
    }
}

/// Appends a member to an object, or to members that begin with a comma.
fn member(out: &mut String, name: &str, value: &str) {
    if !out.ends_with(['{', ',']) {
        out.push(',');
    }
    out.push('"');
    out.push_str(name);
    out.push_str("\":");
    out.push_str(value);
}

fn word(flag: bool) -> &'static str {
    if flag { "true" } else { "false" }
}

#[cfg(test)]
mod tests;
