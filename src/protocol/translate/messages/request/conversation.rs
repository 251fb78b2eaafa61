//! The system prompt and the messages.
//!
//! Promise: results of tools stand directly behind the turn that called them, before anything else that is said; none is
//! missing, and none is too many ([`Calls`]). Of an assistant's turn its texts and its calls are kept; thinking and what
//! Anthropic's own tools did is left out and counted.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::super::json;
use super::super::members::{self, Members, Place};
use super::super::tool_id;
use super::calls::Calls;
use super::content::{self, Content, Part, Texts};
use super::tools::Tools;
use crate::protocol::translate::escaped::unit_len;
use crate::protocol::translate::{Dropped, Untranslatable};

/// How the line begins that Claude Code puts before its system prompt. It names the program's version and a sum of the
/// request, so it is another one with every request, and with each repeat of one.
const ATTRIBUTION: &str = "x-anthropic-billing-header:";

/// What a result says first that reports a failure: the chat form has no mark for it. Spelled as in JSON.
const FAILED: &str = "The tool reported an error:";

/// What a result says that has images: a tool's message takes none, so they stand in the user's message behind it.
const IMAGES_FOLLOW: &str = "Images of this result follow in the next user message.";

/// What stands before these images, with the call's id.
const IMAGES_OF: &str = "Images of the result of tool call ";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    System,
    User,
    Assistant,
}

struct Message<'a> {
    role: Role,
    members: Members<'a>,
}

/// The conversation while it is written.
struct Conversation<'a, 'o> {
    out: &'o mut Vec<u8>,
    /// What the assistant said last: several of its messages in a row are one.
    turn: Option<AssistantTurn<'a>>,
    /// The calls of its last turn.
    calls: Calls,
    /// What was said before all of them have their results.
    behind_results: Vec<u8>,
}

#[derive(Default)]
struct AssistantTurn<'a> {
    texts: Texts<'a>,
    /// As the chat form has them.
    calls: Vec<u8>,
}

/// The texts of the system prompt, without Claude Code's attribution line.
pub fn system<'a>(
    system: &'a RawValue,
    place: &Place<'_>,
    dropped: &mut Dropped,
) -> Result<Texts<'a>, Untranslatable> {
    let mut texts = content::read_texts(system, place, dropped)?;
    if let Some(first) = texts.first_mut()
        && let Some(rest) = without_attribution(first)
    {
        *first = Cow::Owned(rest.to_owned());
        dropped.add("system.attribution");
    }
    texts.retain(|text| !text.is_empty());
    Ok(texts)
}

/// What follows the attribution line. `None`: the text does not begin with one.
fn without_attribution(text: &str) -> Option<&str> {
    let mut rest = text.strip_prefix(ATTRIBUTION)?;
    while !rest.is_empty() {
        let (unit, after) = rest.split_at_checked(unit_len(rest))?;
        rest = after;
        if unit == "\\n" {
            break;
        }
    }
    Some(rest)
}

/// Writes a system message, unless it says nothing.
pub fn push_system(out: &mut Vec<u8>, texts: &Texts<'_>) {
    if texts.iter().all(|text| text.is_empty()) {
        return;
    }
    begin(out, "system");
    json::push_joined(out, texts);
    out.push(b'}');
}

/// Writes the messages behind what `out` has of the list. What they change of the tools changes `tools`.
pub fn push_messages(
    out: &mut Vec<u8>,
    list: &RawValue,
    place: &Place<'_>,
    tools: &mut Tools,
    dropped: &mut Dropped,
) -> Result<(), Untranslatable> {
    let mut messages = Vec::new();
    for (index, message) in members::objects(list, place)?.into_iter().enumerate() {
        messages.push(read_message(message, &place.element(index))?);
    }
    let last_said = messages
        .iter()
        .rposition(|message| message.role != Role::System);
    let last_user = messages
        .iter()
        .rposition(|message| message.role == Role::User);
    match last_said {
        None => return Err(place.refuse("It must have a user's message.")),
        Some(last) if last_user != Some(last) => {
            let message =
                "The service cannot continue an answer that is begun; end with a user's message.";
            return Err(place.element(last).member("role").refuse(message));
        }
        Some(_) => {}
    }
    let mut conversation = Conversation::new(out);
    for (index, Message { role, mut members }) in messages.into_iter().enumerate() {
        let place = place.element(index);
        let inside = place.member("content");
        match role {
            Role::User => {
                let said = members.required("content", &place)?;
                conversation.user(said, &inside, dropped)?;
            }
            Role::Assistant => {
                let said = members.required("content", &place)?;
                conversation.assistant(said, &inside, dropped)?;
            }
            Role::System => {
                let until_next = members.take("clear_at").and_then(json::text);
                let is_over = until_next.as_deref() == Some("next_user_message")
                    && last_user.is_some_and(|last| last > index);
                // Assumed: "full transcript (system, user, …); nothing dropped or rewritten" means at any place.
                if let Some(said) = members.take("content") {
                    let texts = read_system(said, &inside, tools, dropped)?;
                    if !is_over {
                        push_system(conversation.others(), &texts);
                    }
                }
            }
        }
        members.leave_out(dropped);
    }
    conversation.end()
}

/// The texts of a system message in mid-conversation; what it says of the tools, it does to `tools`.
fn read_system<'a>(
    said: &'a RawValue,
    place: &Place<'_>,
    tools: &mut Tools,
    dropped: &mut Dropped,
) -> Result<Texts<'a>, Untranslatable> {
    let blocks = match content::content(said, place)? {
        Content::Text(text) => return Ok(vec![text.into()]),
        Content::Blocks(blocks) => blocks,
    };
    let mut texts = Vec::with_capacity(blocks.len());
    for (index, mut block) in blocks.into_iter().enumerate() {
        let place = place.element(index);
        match block.kind().as_str() {
            "tool_addition" => tools.change(false, block, &place, dropped)?,
            "tool_removal" => tools.change(true, block, &place, dropped)?,
            kind => texts.push(content::read_text(kind, block, &place, dropped)?),
        }
    }
    Ok(texts)
}

fn read_message<'a>(
    mut members: Members<'a>,
    place: &Place<'_>,
) -> Result<Message<'a>, Untranslatable> {
    let role = members.take("role").and_then(json::text);
    let role = match role.as_deref() {
        Some("system") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        _ => {
            let place = place.member("role");
            return Err(place.refuse("It must be user, assistant or system."));
        }
    };
    Ok(Message { role, members })
}

/// Between two messages.
fn separate(out: &mut Vec<u8>) {
    if out.last() == Some(&b'}') {
        out.push(b',');
    }
}

/// Begins a message: all but its content.
fn begin(out: &mut Vec<u8>, role: &str) {
    separate(out);
    json::push(out, &["{\"role\":\"", role, "\",\"content\":"]);
}

/// Blocks of a turn, each with its index. One without any says nothing that could be sent.
fn blocks<'a>(
    blocks: Vec<Members<'a>>,
    place: &Place<'_>,
) -> Result<impl Iterator<Item = (usize, Members<'a>)> + use<'a>, Untranslatable> {
    if blocks.is_empty() {
        return Err(place.refuse("It must not be empty."));
    }
    Ok(blocks.into_iter().enumerate())
}

// === impl Conversation ===

impl<'a, 'o> Conversation<'a, 'o> {
    fn new(out: &'o mut Vec<u8>) -> Self {
        Self {
            out,
            turn: None,
            calls: Calls::default(),
            behind_results: Vec::new(),
        }
    }

    /// Where what is no result of a tool goes: behind the results, as long as one is missing.
    fn others(&mut self) -> &mut Vec<u8> {
        self.end_turn();
        if !self.calls.are_answered() {
            return &mut self.behind_results;
        }
        self.push_behind_results();
        self.out
    }

    fn push_behind_results(&mut self) {
        if !self.behind_results.is_empty() {
            separate(self.out);
            self.out.append(&mut self.behind_results);
        }
    }

    /// What the user says: first the results of tools, each a message of its own, then the rest.
    fn user(
        &mut self,
        said: &RawValue,
        place: &Place<'_>,
        dropped: &mut Dropped,
    ) -> Result<(), Untranslatable> {
        self.end_turn();
        // Images of results, then the user's own parts.
        let mut images = Vec::new();
        let mut parts = Vec::new();
        match content::content(said, place)? {
            Content::Text(text) => parts.push(Part::Text(vec![text.into()])),
            Content::Blocks(list) => {
                for (index, mut block) in blocks(list, place)? {
                    let place = place.element(index);
                    match block.kind().as_str() {
                        "tool_result" => self.result(block, &place, dropped, &mut images)?,
                        kind => content::read_block(kind, block, &place, dropped, &mut parts)?,
                    }
                }
            }
        }
        images.append(&mut parts);
        push_user(self.others(), &images);
        Ok(())
    }

    fn result<'b>(
        &mut self,
        mut result: Members<'b>,
        place: &Place<'_>,
        dropped: &mut Dropped,
        images: &mut Vec<Part<'b>>,
    ) -> Result<(), Untranslatable> {
        let id = result.required("tool_use_id", place)?;
        let spelled = members::spelled(id, &place.member("tool_use_id"))?;
        self.calls.answer(id, place)?;
        push_result(
            self.out,
            result,
            &service_id(spelled),
            place,
            dropped,
            images,
        )
    }

    /// The assistant's turn: its texts are one, its calls stand in their order.
    fn assistant(
        &mut self,
        said: &'a RawValue,
        place: &Place<'_>,
        dropped: &mut Dropped,
    ) -> Result<(), Untranslatable> {
        if self.turn.is_none() {
            self.calls.end()?;
            self.push_behind_results();
        }
        let turn = self.turn.get_or_insert_default();
        let list = match content::content(said, place)? {
            Content::Text(text) => {
                turn.texts.push(text.into());
                return Ok(());
            }
            Content::Blocks(list) => list,
        };
        for (index, mut block) in blocks(list, place)? {
            let place = place.element(index);
            match block.kind().as_str() {
                "text" => turn
                    .texts
                    .push(content::read_text("text", block, &place, dropped)?),
                "tool_use" => {
                    let id = block.required("id", &place)?;
                    push_call(&mut turn.calls, id, block, &place, dropped)?;
                    self.calls.add(id, &place)?;
                }
                // Signed by another model, for its own eyes.
                "thinking" | "redacted_thinking" => dropped.add("content.thinking"),
                "server_tool_use" | "mcp_tool_use" => dropped.add("content.server_tool_use"),
                "fallback" => dropped.add("content.fallback"),
                kind if kind.ends_with("_tool_result") => {
                    dropped.add("content.server_tool_result");
                }
                _ => return Err(content::unknown_kind(&place)),
            }
        }
        Ok(())
    }

    /// Writes the assistant's turn, if something of it is left.
    fn end_turn(&mut self) {
        let Some(mut turn) = self.turn.take() else {
            return;
        };
        turn.texts.retain(|text| !text.is_empty());
        if turn.texts.is_empty() && turn.calls.is_empty() {
            return;
        }
        begin(self.out, "assistant");
        match turn.texts.is_empty() {
            true => json::push(self.out, &["null"]),
            false => json::push_joined(self.out, &turn.texts),
        }
        if !turn.calls.is_empty() {
            json::push(self.out, &[",\"tool_calls\":["]);
            self.out.append(&mut turn.calls);
            self.out.push(b']');
        }
        self.out.push(b'}');
    }

    fn end(mut self) -> Result<(), Untranslatable> {
        self.end_turn();
        self.calls.end()?;
        self.push_behind_results();
        Ok(())
    }
}

/// Writes the user's message, unless it says nothing.
fn push_user(out: &mut Vec<u8>, parts: &[Part<'_>]) {
    match parts {
        [] => return,
        [Part::Text(texts)] => {
            begin(out, "user");
            json::push_joined(out, texts);
        }
        parts => {
            begin(out, "user");
            let mut before = "[";
            for part in parts {
                json::push(out, &[before]);
                content::push_part(out, part);
                before = ",";
            }
            out.push(b']');
        }
    }
    out.push(b'}');
}

/// Writes the result of a tool; its images are for the user's message.
fn push_result<'a>(
    out: &mut Vec<u8>,
    mut result: Members<'a>,
    call: &str,
    place: &Place<'_>,
    dropped: &mut Dropped,
    images: &mut Vec<Part<'a>>,
) -> Result<(), Untranslatable> {
    let mut texts: Texts<'_> = Vec::new();
    if let Some(failed) = result.take("is_error")
        && members::flag(failed, &place.member("is_error"))?
    {
        texts.push(FAILED.into());
    }
    let mut pictures = Vec::new();
    if let Some(inside) = result.take("content") {
        let place = place.member("content");
        match content::content(inside, &place)? {
            Content::Text(text) => texts.push(text.into()),
            Content::Blocks(blocks) => {
                for (index, mut block) in blocks.into_iter().enumerate() {
                    let place = place.element(index);
                    let kind = block.kind();
                    content::read_block(&kind, block, &place, dropped, &mut pictures)?;
                }
            }
        }
    }
    result.leave_out(dropped);
    pictures.retain_mut(|part| match part {
        Part::Text(more) => {
            texts.append(more);
            false
        }
        Part::Image(_) => true,
    });
    if !pictures.is_empty() {
        texts.push(IMAGES_FOLLOW.into());
        images.push(Part::Text(vec![format!("{IMAGES_OF}{call}:").into()]));
        images.append(&mut pictures);
    }
    begin(out, "tool");
    json::push_joined(out, &texts);
    json::push(out, &[",\"tool_call_id\":\"", call, "\"}"]);
    Ok(())
}

/// A call's id as the service spells it.
fn service_id(id: &str) -> Cow<'_, str> {
    match tool_id::restored(id) {
        Some(restored) => json::spelling(&restored).into(),
        None => id.into(),
    }
}

/// Writes a call of a tool behind those before it.
fn push_call(
    calls: &mut Vec<u8>,
    id: &RawValue,
    mut call: Members<'_>,
    place: &Place<'_>,
    dropped: &mut Dropped,
) -> Result<(), Untranslatable> {
    let id = service_id(members::spelled(id, &place.member("id"))?);
    let name = call.required_string("name", place)?;
    let input = call.required("input", place)?;
    if !json::is_object(input) {
        return Err(place.member("input").refuse("It must be an object."));
    }
    if !calls.is_empty() {
        calls.push(b',');
    }
    json::push(calls, &["{\"id\":\"", &id, "\",\"type\":\"function\","]);
    json::push(
        calls,
        &["\"function\":{\"name\":\"", name, "\",\"arguments\":"],
    );
    json::push_text(calls, input.get());
    json::push(calls, &["}}"]);
    call.leave_out(dropped);
    Ok(())
}
