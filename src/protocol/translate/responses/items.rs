//! Input items to chat messages.
//!
//! Items are a flat list; chat completions wants each call inside an assistant message and the outputs right
//! behind it. So calls that follow each other, and the assistant's text around them, become one message, and
//! each output is placed behind the message of its call, wherever it stood. A call without an output and an
//! output without a call are refused, as OpenAI refuses them.
//!
//! Promise: texts and arguments are carried as they came. Reasoning is left out and counted. Two sentences are
//! added, and only where an image is the output of a tool, for a tool's message cannot hold one.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::value::RawValue;

use super::json::{Object, Path, Text, objects, quote};
use super::tools::{TOOL_SEARCH, Tools};
use crate::protocol::translate::{Dropped, Untranslatable};

/// The messages so far.
pub struct Transcript<'a, 't> {
    tools: &'t Tools<'a>,
    messages: Vec<Message<'a>>,
    /// The last message may still take calls: nothing but the assistant has spoken since it began.
    is_open: bool,
    /// The latest call of an id: place of the message, place of the call. A service may number calls anew in
    /// each turn.
    calls: HashMap<Cow<'a, str>, (usize, usize)>,
}

struct Message<'a> {
    role: &'static str,
    parts: Vec<Part<'a>>,
    calls: Vec<Call<'a>>,
}

struct Call<'a> {
    id: Text<'a>,
    name: String,
    arguments: Arguments<'a>,
    outputs: Vec<Vec<Part<'a>>>,
    /// For a refusal.
    place: String,
}

#[derive(Clone, Copy)]
enum Arguments<'a> {
    Json(Text<'a>),
    /// A custom tool's text, which the service knows as the one argument of a function.
    Input(Text<'a>),
    /// An object, not a string that holds one.
    Object(&'a str),
}

enum Part<'a> {
    Text(Text<'a>),
    /// JSON that is shown as a text.
    Json(&'a str),
    Refusal(Text<'a>),
    Image {
        url: Text<'a>,
        detail: Option<&'static str>,
    },
}

/// The two sentences that are added.
const IMAGE_FOLLOWS: &str = "The output is an image; it is in the next message.";
const IMAGE_OF: &str = "The image that the tool call put out, id ";

/// Records of what the vendor's servers did: there is nothing in them that the model could not do without.
const LEFT_OUT: [&str; 8] = [
    "reasoning",
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "mcp_list_tools",
    "tool_search_call",
    "tool_search_output",
];

// === impl Transcript ===

impl<'a, 't> Transcript<'a, 't> {
    pub fn new(tools: &'t Tools<'a>) -> Self {
        Self {
            tools,
            messages: Vec::new(),
            is_open: false,
            calls: HashMap::new(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Adds a text in a role of the service.
    pub fn say(&mut self, role: &'static str, text: Text<'a>) {
        self.push(role, vec![Part::Text(text)]);
    }

    /// Adds an item.
    pub fn add(
        &mut self,
        item: &Object<'a>,
        at: &Path<'_>,
        dropped: &mut Dropped,
    ) -> Result<(), Untranslatable> {
        let kind = item.word(at, "type")?;
        match kind.as_deref() {
            Some("message") => self.message(item, at, dropped),
            None if item.get("role").is_some() => self.message(item, at, dropped),
            None => Err(at.missing("type")),
            Some("function_call") => {
                let arguments = item.text(at, "arguments")?;
                let arguments = arguments.ok_or_else(|| at.missing("arguments"))?;
                self.call(item, self.name(item, at)?, Arguments::Json(arguments), at)
            }
            Some("custom_tool_call") => {
                let input = item.text(at, "input")?;
                let input = input.ok_or_else(|| at.missing("input"))?;
                self.call(item, self.name(item, at)?, Arguments::Input(input), at)
            }
            // Without a call's id the vendor's server has searched.
            Some("tool_search_call") if item.get("call_id").is_some() => {
                let arguments = item.nested(at, "arguments")?;
                let arguments = arguments.map_or("{}", RawValue::get);
                self.call(
                    item,
                    TOOL_SEARCH.to_owned(),
                    Arguments::Object(arguments),
                    at,
                )
            }
            Some("tool_search_output") if item.get("call_id").is_some() => {
                item.array(at, "tools")?;
                let found = item.get("tools").map_or("[]", RawValue::get);
                self.output(item, vec![Part::Json(found)], at)
            }
            Some("function_call_output" | "custom_tool_call_output") => {
                let parts = content(item, "output", "tool", at, dropped)?;
                self.output(item, parts, at)
            }
            // Its tools are in the request already.
            Some("additional_tools") => Ok(()),
            Some(other) => match LEFT_OUT.iter().find(|known| **known == other) {
                Some(known) => {
                    dropped.add(&format!("item {known}"));
                    Ok(())
                }
                None => Err(at.member("type").refuse(
                    "Items of this type cannot be expressed to the service. Leave the item out.",
                )),
            },
        }
    }

    fn message(
        &mut self,
        item: &Object<'a>,
        at: &Path<'_>,
        dropped: &mut Dropped,
    ) -> Result<(), Untranslatable> {
        let role = match item.word(at, "role")?.as_deref() {
            Some("user") => "user",
            Some("assistant") => "assistant",
            // Assumed: the service takes `system` and does not know `developer`.
            Some("system" | "developer") => "system",
            Some(_) => {
                let known = "This is `user`, `assistant`, `system` or `developer`.";
                return Err(at.member("role").refuse(known));
            }
            None => return Err(at.missing("role")),
        };
        let parts = content(item, "content", role, at, dropped)?;
        if item.get("phase").is_some() {
            dropped.add("phase");
        }
        match self.messages.last_mut() {
            // A text between a call and its output belongs to the message that calls.
            Some(open) if role == "assistant" && self.is_open && !open.calls.is_empty() => {
                open.parts.extend(parts);
            }
            _ => {
                self.push(role, parts);
                self.is_open = role == "assistant";
            }
        }
        Ok(())
    }

    fn push(&mut self, role: &'static str, parts: Vec<Part<'a>>) {
        self.messages.push(Message {
            role,
            parts,
            calls: Vec::new(),
        });
        self.is_open = false;
    }

    /// What the service calls the tool of a call.
    fn name(&self, item: &Object<'a>, at: &Path<'_>) -> Result<String, Untranslatable> {
        let name = item.word(at, "name")?;
        let name = name.ok_or_else(|| at.missing("name"))?;
        let namespace = item.word(at, "namespace")?;
        Ok(self.tools.sent_name(namespace.as_deref(), &name))
    }

    fn call(
        &mut self,
        item: &Object<'a>,
        name: String,
        arguments: Arguments<'a>,
        at: &Path<'_>,
    ) -> Result<(), Untranslatable> {
        let (id, key) = call_id(item, at)?;
        if !self.is_open {
            self.push("assistant", Vec::new());
            self.is_open = true;
        }
        let message = self.messages.len().saturating_sub(1);
        if let Some(open) = self.messages.last_mut() {
            self.calls.insert(key, (message, open.calls.len()));
            open.calls.push(Call {
                id,
                name,
                arguments,
                outputs: Vec::new(),
                place: at.to_string(),
            });
        }
        Ok(())
    }

    fn output(
        &mut self,
        item: &Object<'a>,
        parts: Vec<Part<'a>>,
        at: &Path<'_>,
    ) -> Result<(), Untranslatable> {
        let (_, key) = call_id(item, at)?;
        let known = self.calls.get(&key).copied();
        let call =
            known.and_then(|(message, call)| self.messages.get_mut(message)?.calls.get_mut(call));
        let unknown = || {
            at.member("call_id")
                .refuse("No call before this output has this id.")
        };
        call.ok_or_else(unknown)?.outputs.push(parts);
        self.is_open = false;
        Ok(())
    }

    /// The messages as the service is asked.
    pub fn write(&self, out: &mut String) -> Result<(), Untranslatable> {
        out.push('[');
        for message in &self.messages {
            message.write(out);
            for call in &message.calls {
                if call.outputs.is_empty() {
                    let missing = "This call has no output. Send the output of each call.";
                    return Err(Untranslatable::new(call.place.clone(), missing));
                }
                for output in &call.outputs {
                    call.write_output(output, out);
                }
            }
            message.write_images(out);
        }
        close(out, ']');
        Ok(())
    }
}

// === impl Message ===

impl Message<'_> {
    fn write(&self, out: &mut String) {
        out.push_str("{\"role\":\"");
        out.push_str(self.role);
        out.push_str("\",\"content\":");
        match self.parts.is_empty() && !self.calls.is_empty() {
            true => out.push_str("null"),
            false => write_parts(&self.parts, out),
        }
        if !self.calls.is_empty() {
            out.push_str(",\"tool_calls\":[");
            for call in &self.calls {
                call.write(out);
            }
            close(out, ']');
        }
        out.push_str("},");
    }

    /// What the tools put out in images, as the user's message behind theirs.
    fn write_images(&self, out: &mut String) {
        let is_image = |part: &&Part<'_>| matches!(part, Part::Image { .. });
        let mut is_begun = false;
        for call in &self.calls {
            let mut images = call.outputs.iter().flatten().filter(is_image).peekable();
            if images.peek().is_none() {
                continue;
            }
            if !is_begun {
                out.push_str("{\"role\":\"user\",\"content\":[");
                is_begun = true;
            }
            out.push_str("{\"type\":\"text\",\"text\":\"");
            out.push_str(IMAGE_OF);
            out.push_str(call.id.escaped());
            out.push_str(":\"},");
            for image in images {
                image.write(out);
                out.push(',');
            }
        }
        if is_begun {
            close(out, ']');
            out.push_str("},");
        }
    }
}

// === impl Call ===

impl Call<'_> {
    fn write(&self, out: &mut String) {
        out.push_str("{\"id\":");
        out.push_str(self.id.json());
        out.push_str(",\"type\":\"function\",\"function\":{\"name\":");
        quote(out, &self.name);
        out.push_str(",\"arguments\":");
        match self.arguments {
            Arguments::Json(arguments) => out.push_str(arguments.json()),
            Arguments::Object(arguments) => quote(out, arguments),
            Arguments::Input(input) => quote(out, &format!("{{\"input\":{}}}", input.json())),
        }
        out.push_str("}},");
    }

    fn write_output(&self, output: &[Part<'_>], out: &mut String) {
        out.push_str("{\"role\":\"tool\",\"tool_call_id\":");
        out.push_str(self.id.json());
        out.push_str(",\"content\":");
        let is_text = |part: &&Part<'_>| !matches!(part, Part::Image { .. });
        match output.iter().any(|part| is_text(&part)) || output.is_empty() {
            true => {
                let texts: Vec<&Part<'_>> = output.iter().filter(is_text).collect();
                write_parts(&texts, out);
            }
            false => quote(out, IMAGE_FOLLOWS),
        }
        out.push_str("},");
    }
}

// === impl Part ===

impl Part<'_> {
    fn write(&self, out: &mut String) {
        match self {
            Part::Text(text) => {
                out.push_str("{\"type\":\"text\",\"text\":");
                out.push_str(text.json());
            }
            Part::Json(json) => {
                out.push_str("{\"type\":\"text\",\"text\":");
                quote(out, json);
            }
            Part::Refusal(text) => {
                out.push_str("{\"type\":\"refusal\",\"refusal\":");
                out.push_str(text.json());
            }
            Part::Image { url, detail } => {
                out.push_str("{\"type\":\"image_url\",\"image_url\":{\"url\":");
                out.push_str(url.json());
                if let Some(detail) = detail {
                    out.push_str(",\"detail\":\"");
                    out.push_str(detail);
                    out.push('"');
                }
                out.push('}');
            }
        }
        out.push('}');
    }
}

impl<'a> AsRef<Part<'a>> for Part<'a> {
    fn as_ref(&self) -> &Part<'a> {
        self
    }
}

/// One text as a string, which every model's template knows; anything else as parts.
fn write_parts<'a>(parts: &[impl AsRef<Part<'a>>], out: &mut String) {
    let mut parts = parts.iter().map(AsRef::as_ref);
    match (parts.next(), parts.len()) {
        (None, _) => out.push_str("\"\""),
        (Some(Part::Text(text)), 0) => out.push_str(text.json()),
        (Some(Part::Json(json)), 0) => quote(out, json),
        (Some(first), _) => {
            out.push('[');
            first.write(out);
            for part in parts {
                out.push(',');
                part.write(out);
            }
            out.push(']');
        }
    }
}

/// Ends a list whose elements each end in a comma.
fn close(out: &mut String, end: char) {
    if out.ends_with(',') {
        out.pop();
    }
    out.push(end);
}

/// The id of a call, as it is passed on and as it is looked up.
fn call_id<'a>(
    item: &Object<'a>,
    at: &Path<'_>,
) -> Result<(Text<'a>, Cow<'a, str>), Untranslatable> {
    let id = item.text(at, "call_id")?.filter(|id| !id.is_empty());
    let key = item.word(at, "call_id")?;
    id.zip(key).ok_or_else(|| at.missing("call_id"))
}

/// The content of a message, or the output of a call: a string or parts.
fn content<'a>(
    item: &Object<'a>,
    name: &str,
    role: &str,
    at: &Path<'_>,
    dropped: &mut Dropped,
) -> Result<Vec<Part<'a>>, Untranslatable> {
    let here = at.member(name);
    let value = item.get(name).ok_or_else(|| at.missing(name))?;
    if let Some(text) = Text::of(value) {
        return Ok(vec![Part::Text(text)]);
    }
    let elements = objects(value, &here, "A part")?;
    let elements = elements.iter().enumerate();
    let parts = elements.map(|(place, part)| self::part(part, role, &here.element(place), dropped));
    parts.collect()
}

fn part<'a>(
    part: &Object<'a>,
    role: &str,
    at: &Path<'_>,
    dropped: &mut Dropped,
) -> Result<Part<'a>, Untranslatable> {
    let kind = part.word(at, "type")?;
    let cannot = |message: &str| Err(at.member("type").refuse(message));
    match kind.as_deref() {
        Some("input_text" | "output_text" | "text") => {
            let text = part.text(at, "text")?;
            Ok(Part::Text(text.ok_or_else(|| at.missing("text"))?))
        }
        Some("refusal") if role == "assistant" => {
            let text = part.text(at, "refusal")?;
            Ok(Part::Refusal(text.ok_or_else(|| at.missing("refusal"))?))
        }
        Some("input_image") if matches!(role, "user" | "tool") => image(part, at, dropped),
        Some("input_image") => cannot("The service takes images of the user and of tools only."),
        Some("input_file") => cannot(
            "The service takes no files. Send the text of the file as `input_text`, or its pages as images.",
        ),
        Some("input_audio" | "input_video") => cannot(
            "The service takes no sound or film here. Transcribe sound by /v1/audio/transcriptions.",
        ),
        Some(_) => cannot("Parts of this type cannot stand here."),
        None => Err(at.missing("type")),
    }
}

fn image<'a>(
    part: &Object<'a>,
    at: &Path<'_>,
    dropped: &mut Dropped,
) -> Result<Part<'a>, Untranslatable> {
    let Some(url) = part.text(at, "image_url")? else {
        return Err(match part.get("file_id") {
            Some(_) => at.member("file_id").refuse(
                "The service keeps no files. Send the image in `image_url`, as an address or a data URL.",
            ),
            None => at.missing("image_url"),
        });
    };
    let detail = match part.word(at, "detail")?.as_deref() {
        None => None,
        Some("auto") => Some("auto"),
        Some("low") => Some("low"),
        Some("high") => Some("high"),
        Some(_) => {
            dropped.add("image detail");
            None
        }
    };
    Ok(Part::Image { url, detail })
}

#[cfg(test)]
mod tests;
