//! The tools that a request offers, and which of them it wants called.
//!
//! Promise: a schema is carried as it is spelled. A tool that Anthropic's servers run is left out and counted, because
//! programs offer those beside their own. A tool that the app runs but that has no schema cannot be described to
//! another model and is refused.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::json;
use super::super::members::{self, Members, Place};
use crate::protocol::translate::{Dropped, Untranslatable};

/// How the types begin whose tools the app runs: their schemas are known to Anthropic's models alone.
const RUN_BY_THE_APP: [&str; 6] = [
    "bash_",
    "browser_",
    "computer_",
    "function",
    "memory_",
    "text_editor_",
];

/// How the types begin whose tools Anthropic's servers run, and what leaving one out counts as.
const RUN_BY_SERVERS: [(&str, &str); 6] = [
    ("advisor", "tools.advisor"),
    ("code_execution", "tools.code_execution"),
    ("mcp_toolset", "tools.mcp_toolset"),
    ("tool_search", "tools.tool_search"),
    ("web_fetch", "tools.web_fetch"),
    ("web_search", "tools.web_search"),
];

/// The tools of a request, as its conversation changes them.
#[derive(Debug, Default)]
pub struct Tools {
    list: Vec<Tool>,
    /// Where in the list the last tool of a name stands. Of those of one name it alone can be offered.
    by_name: HashMap<String, usize>,
}

#[derive(Debug)]
struct Tool {
    name: String,
    /// As the chat form has it.
    function: Vec<u8>,
    /// Its schema requires nothing.
    needs_no_input: bool,
    /// Nothing took it away again.
    is_offered: bool,
}

/// What a schema may require. A schema that says more is not judged.
#[derive(Deserialize)]
struct Requires<'a> {
    #[serde(borrow, default)]
    required: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default, rename = "allOf")]
    all_of: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "anyOf")]
    any_of: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "oneOf")]
    one_of: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "$ref")]
    elsewhere: Option<&'a RawValue>,
}

fn leave_out(kind: &str, place: &Place<'_>, dropped: &mut Dropped) -> Result<(), Untranslatable> {
    if RUN_BY_THE_APP.iter().any(|known| kind.starts_with(known)) {
        let message = "Only Anthropic's models know this tool; declare it with name, description and input_schema.";
        return Err(place.member("type").refuse(message));
    }
    let mut known = RUN_BY_SERVERS.iter();
    let known = known.find(|(begins, _)| kind.starts_with(begins));
    dropped.add(known.map_or("tools.other", |(_, name)| name));
    Ok(())
}

fn requires_nothing(schema: &RawValue) -> bool {
    let Ok(schema) = serde_json::from_str::<Requires<'_>>(schema.get()) else {
        return false;
    };
    let more = [
        schema.all_of,
        schema.any_of,
        schema.one_of,
        schema.elsewhere,
    ];
    schema.required.is_none_or(|names| names.is_empty()) && more.iter().all(Option::is_none)
}

// === impl Tools ===

impl Tools {
    /// Adds the tools of a list.
    pub fn add_all(
        &mut self,
        list: &RawValue,
        place: &Place<'_>,
        dropped: &mut Dropped,
    ) -> Result<(), Untranslatable> {
        for (index, tool) in members::elements(list, place)?.into_iter().enumerate() {
            let place = place.element(index);
            if self.add(tool, &place, dropped)?.is_some() {
                let twice = "Two tools have this name.";
                return Err(place.member("name").refuse(twice));
            }
        }
        Ok(())
    }

    /// Adds a tool, unless servers run it. Answers where the earlier one of its name stands.
    fn add(
        &mut self,
        tool: &RawValue,
        place: &Place<'_>,
        dropped: &mut Dropped,
    ) -> Result<Option<usize>, Untranslatable> {
        let mut tool = Members::read(tool, place)?;
        let kind = tool.kind();
        let schema = match (kind.as_str(), tool.take("input_schema")) {
            (_, Some(schema)) if json::is_object(schema) => schema,
            ("" | "custom", _) | (_, Some(_)) => {
                let place = place.member("input_schema");
                return Err(place.refuse("A tool needs its schema, an object."));
            }
            (kind, None) => return leave_out(kind, place, dropped).map(|()| None),
        };
        // Assumed: "passed through" goes for names of more than OpenAI's 64 characters, and for `strict`.
        let name = tool.required("name", place)?;
        let spelled = members::spelled(name, &place.member("name"))?;
        let mut function = Vec::new();
        let begin = "{\"type\":\"function\",\"function\":{\"name\":\"";
        json::push(&mut function, &[begin, spelled, "\""]);
        if let Some(description) = tool.string("description", place)? {
            json::push(&mut function, &[",\"description\":\"", description, "\""]);
        }
        json::push(&mut function, &[",\"parameters\":", schema.get()]);
        if let Some(strict) = tool.take("strict")
            && members::flag(strict, &place.member("strict"))?
        {
            json::push(&mut function, &[",\"strict\":true"]);
        }
        json::push(&mut function, &["}}"]);
        tool.leave_out(dropped);
        // One with half a surrogate pair is offered and cannot be named.
        let name = json::text(name).unwrap_or_default();
        let earlier = self.by_name.insert(name.clone(), self.list.len());
        let earlier = earlier.filter(|_| !name.is_empty());
        self.list.push(Tool {
            name,
            function,
            needs_no_input: requires_nothing(schema),
            is_offered: true,
        });
        Ok(earlier)
    }

    /// A change in mid-conversation: `tool_addition` or, if it `takes_away`, `tool_removal`. The chat form has one list
    /// for the whole conversation: what counts is what holds at its end.
    pub fn change(
        &mut self,
        takes_away: bool,
        mut change: Members<'_>,
        place: &Place<'_>,
        dropped: &mut Dropped,
    ) -> Result<(), Untranslatable> {
        let tool = change.required("tool", place)?;
        change.leave_out(dropped);
        let place = place.member("tool");
        let mut tool = Members::read(tool, &place)?;
        match tool.kind().as_str() {
            "tool_reference" => {
                let name = tool.required("name", &place)?;
                let place = json::text(name).and_then(|name| self.by_name.get(&name));
                if let Some(tool) = place.and_then(|place| self.list.get_mut(*place)) {
                    tool.is_offered = !takes_away;
                }
                Ok(())
            }
            "tool_definition" if !takes_away => {
                let definition = tool.required("definition", &place)?;
                let earlier = self.add(definition, &place.member("definition"), dropped)?;
                if let Some(replaced) = earlier.and_then(|earlier| self.list.get_mut(earlier)) {
                    replaced.is_offered = false;
                }
                Ok(())
            }
            _ => {
                let message = "Only tools of the app can be added and removed.";
                Err(place.member("type").refuse(message))
            }
        }
    }

    fn offered(&self) -> impl Iterator<Item = &Tool> {
        self.list.iter().filter(|tool| tool.is_offered)
    }

    fn is_offered(&self, name: &str) -> bool {
        let tool = self.by_name.get(name);
        tool.and_then(|place| self.list.get(*place))
            .is_some_and(|tool| tool.is_offered)
    }

    /// Writes the tools that are offered at the end.
    pub fn push(&self, out: &mut Vec<u8>) {
        let mut before = ",\"tools\":[";
        for tool in self.offered() {
            json::push(out, &[before]);
            out.extend_from_slice(&tool.function);
            before = ",";
        }
        if before == "," {
            out.push(b']');
        }
    }

    /// Writes which of them are to be called. Without tools there is nothing to choose from.
    pub fn push_choice(
        &self,
        out: &mut Vec<u8>,
        choice: &RawValue,
        place: &Place<'_>,
        dropped: &mut Dropped,
    ) -> Result<(), Untranslatable> {
        let mut choice = Members::read(choice, place)?;
        let kind = choice.kind();
        let has_tools = self.offered().next().is_some();
        match kind.as_str() {
            "auto" | "none" if !has_tools => {}
            "auto" | "none" => json::push(out, &[",\"tool_choice\":\"", &kind, "\""]),
            "any" if has_tools => json::push(out, &[",\"tool_choice\":\"required\""]),
            "tool" => {
                let name = choice.required("name", place)?;
                let place = place.member("name");
                if !json::text(name).is_some_and(|name| self.is_offered(&name)) {
                    return Err(place.refuse("No tool that the service is offered has this name."));
                }
                let name = members::spelled(name, &place)?;
                json::push(out, &[",\"tool_choice\":{\"type\":\"function\","]);
                json::push(out, &["\"function\":{\"name\":\"", name, "\"}}"]);
            }
            "any" => return Err(place.refuse("No tool is left that the service can be offered.")),
            _ => {
                let place = place.member("type");
                return Err(place.refuse("It must be auto, any, tool or none."));
            }
        }
        if let Some(single) = choice.take("disable_parallel_tool_use")
            && members::flag(single, &place.member("disable_parallel_tool_use"))?
            && has_tools
        {
            json::push(out, &[",\"parallel_tool_calls\":false"]);
        }
        choice.leave_out(dropped);
        Ok(())
    }

    /// The names of those whose schema requires nothing. One that was replaced counts no more.
    pub fn into_without_input(self) -> Vec<String> {
        let tools = self.list.into_iter().enumerate();
        let tools = tools.filter(|(place, tool)| {
            tool.needs_no_input && self.by_name.get(&tool.name) == Some(place)
        });
        tools.map(|(_, tool)| tool.name).collect()
    }
}
