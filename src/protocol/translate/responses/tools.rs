//! Tools. The service knows functions only; the dialect has functions, custom tools that take a free text,
//! namespaces of both, and tools that the vendor's own servers run.
//!
//! A custom tool becomes a function with one string, `input`; a namespace's tools become functions of
//! their own. The answer's translation restores both by a table of names, never by taking a name apart. What the
//! vendor's servers run is left out and counted, because programs offer it beside their own, and refused where the
//! request insists on it. A tool that the app runs but that has no schema cannot be described to another model and is
//! refused.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde_json::value::RawValue;

use super::json::{Object, Path, Text, array, quote};
use crate::protocol::translate::{Dropped, Untranslatable};

/// The tools of one request.
#[derive(Default)]
pub struct Tools<'a> {
    offered: Vec<Offered<'a>>,
    /// Where a tool is in `offered`, by namespace (empty: none) and name.
    places: HashMap<(Cow<'a, str>, Cow<'a, str>), usize>,
    /// Names of tools outside a namespace: they are never changed.
    plain: HashSet<Cow<'a, str>>,
    names: Names,
    /// The elements of the echo, each followed by a comma.
    echo: String,
}

struct Offered<'a> {
    /// As the dialect has it.
    name: Cow<'a, str>,
    namespace: Option<Cow<'a, str>>,
    /// As the service has it.
    sent: String,
    json: String,
}

/// What the app calls those tools that the service knows by another form, by the name that it knows.
#[derive(Clone, Default)]
pub struct Names(HashMap<String, Spoken>);

/// A tool as the app knows it.
#[derive(Clone)]
pub struct Spoken {
    pub name: String,
    pub namespace: Option<String>,
    pub form: Form,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Function,
    /// Takes a free text instead of JSON.
    Custom,
    /// Asks the app for further tools.
    Search,
}

/// Where a list of tools stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// In `tools`. Each name once, and the answer repeats the list.
    Request,
    /// In an item. Lists of several items may name a tool again.
    Item,
}

/// The function by which the model asks for further tools.
pub const TOOL_SEARCH: &str = "tool_search";

/// Which tools the model may or has to call.
pub enum Choice {
    /// `auto`, `none`, `required`.
    Mode(&'static str),
    /// The service's name of one tool.
    Tool(String),
}

/// Most letters of a function's name in the OpenAI dialects.
const NAME_MAX: usize = 64;

/// Types that name a tool which the vendor's servers run. A type may go on with a date.
const RUN_BY_SERVERS: [&str; 6] = [
    "web_search",
    "file_search",
    "code_interpreter",
    "mcp",
    "image_generation",
    "tool_search",
];

/// Types of tools that the app runs: their schemas are known to the vendor's models alone.
const RUN_BY_THE_APP: [&str; 4] = ["local_shell", "shell", "computer", "apply_patch"];

/// What a custom tool's description ends with.
const TAKES_TEXT: &str =
    "Call this function with one argument, `input`: the whole text, as one string.";

/// The type of a tool as it is counted; a fixed word even for types that are not known here.
pub fn built_in_tool(kind: &str) -> &'static str {
    let mut known = RUN_BY_SERVERS.iter().chain(&RUN_BY_THE_APP);
    let known = known.find(|known| kind.starts_with(**known));
    known.copied().unwrap_or("other")
}

fn leave_out(kind: &str, at: &Path<'_>, dropped: &mut Dropped) -> Result<(), Untranslatable> {
    if RUN_BY_THE_APP.iter().any(|known| kind.starts_with(known)) {
        return Err(at.member("type").refuse(
            "Only OpenAI's models know this tool; declare it as a function, with name, description and parameters.",
        ));
    }
    dropped.add(&format!("tool {}", built_in_tool(kind)));
    Ok(())
}

/// A tool's name as the service is told.
pub fn flat_name(namespace: &str, name: &str) -> String {
    let between = if namespace.ends_with("__") { "" } else { "__" };
    let flat = format!("{namespace}{between}{name}");
    let is_legal = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    match flat.len() <= NAME_MAX && flat.chars().all(is_legal) {
        true => flat,
        false => marked_name(namespace, name, &flat),
    }
}

/// The same for a name that would be too long, illegal or taken: cut, and told apart by a hash of the whole.
fn marked_name(namespace: &str, name: &str, flat: &str) -> String {
    let whole = [namespace.as_bytes(), b"\0", name.as_bytes()].concat();
    // FNV-1a.
    let hash = whole.iter().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    });
    let is_legal = |letter: &char| letter.is_ascii_alphanumeric() || "_-".contains(*letter);
    let legal: String = flat.chars().filter(is_legal).take(NAME_MAX - 9).collect();
    format!("{legal}_{hash:08x}")
}

// === impl Tools ===

impl<'a> Tools<'a> {
    /// Adds a list of tools.
    pub fn add(
        &mut self,
        tools: &[&'a RawValue],
        origin: Origin,
        at: &Path<'_>,
        dropped: &mut Dropped,
    ) -> Result<(), Untranslatable> {
        let mut read = Vec::with_capacity(tools.len());
        for (place, tool) in tools.iter().enumerate() {
            let here = at.element(place);
            let object = Object::read(tool.get());
            let object = object.ok_or_else(|| here.refuse("A tool has to be an object."))?;
            let kind = object.word(&here, "type")?;
            let kind = kind.ok_or_else(|| here.missing("type"))?;
            let name = match kind.as_ref() {
                "function" | "custom" => name_of(&object, &here)?,
                "tool_search" if is_searched_by_app(&object) => Cow::Borrowed(TOOL_SEARCH),
                _ => {
                    read.push((place, kind, object));
                    continue;
                }
            };
            match (self.plain.insert(name), origin) {
                (true, _) => read.push((place, kind, object)),
                (false, Origin::Item) => {}
                (false, Origin::Request) => {
                    let twice = "Two tools have this name.";
                    return Err(here.member("name").refuse(twice));
                }
            }
        }
        for (place, kind, tool) in &read {
            let here = at.element(*place);
            let mut is_offered = true;
            match kind.as_ref() {
                "function" => self.function(tool, None, &here)?,
                "custom" => self.custom(tool, None, &here)?,
                "namespace" => self.namespace(tool, origin, &here, dropped)?,
                "tool_search" if is_searched_by_app(tool) => self.search(tool, &here)?,
                other => {
                    is_offered = false;
                    leave_out(other, &here, dropped)?;
                }
            }
            if is_offered && origin == Origin::Request {
                match (kind.as_ref(), tools.get(*place)) {
                    ("function", _) => self.echo_function(tool, &here)?,
                    (_, Some(raw)) => self.echo_as_sent(raw),
                    (_, None) => {}
                }
            }
        }
        Ok(())
    }

    fn namespace(
        &mut self,
        namespace: &Object<'a>,
        origin: Origin,
        at: &Path<'_>,
        dropped: &mut Dropped,
    ) -> Result<(), Untranslatable> {
        let name = name_of(namespace, at)?;
        let tools = namespace.array(at, "tools")?.unwrap_or_default();
        let list = at.member("tools");
        for (place, tool) in tools.into_iter().enumerate() {
            let here = list.element(place);
            let tool = Object::read(tool.get());
            let tool = tool.ok_or_else(|| here.refuse("A tool has to be an object."))?;
            let kind = tool.word(&here, "type")?;
            match kind.as_deref().ok_or_else(|| here.missing("type"))? {
                "function" | "custom" if self.find(&tool, Some(&name), &here)?.is_some() => {
                    if origin == Origin::Request {
                        let twice = "Two tools of this namespace have this name.";
                        return Err(here.member("name").refuse(twice));
                    }
                }
                "function" => self.function(&tool, Some(name.clone()), &here)?,
                "custom" => self.custom(&tool, Some(name.clone()), &here)?,
                other => leave_out(other, &here, dropped)?,
            }
        }
        if namespace
            .text(at, "description")?
            .is_some_and(|text| !text.is_empty())
        {
            dropped.add("namespace description");
        }
        Ok(())
    }

    fn function(
        &mut self,
        tool: &Object<'a>,
        namespace: Option<Cow<'a, str>>,
        at: &Path<'_>,
    ) -> Result<(), Untranslatable> {
        let rest = described(tool, at)?;
        let name = name_of(tool, at)?;
        self.offer(name, namespace, Form::Function, &rest, at)
    }

    fn search(&mut self, tool: &Object<'a>, at: &Path<'_>) -> Result<(), Untranslatable> {
        let rest = described(tool, at)?;
        let name = Cow::Borrowed(TOOL_SEARCH);
        self.offer(name, None, Form::Search, &rest, at)
    }

    fn custom(
        &mut self,
        tool: &Object<'a>,
        namespace: Option<Cow<'a, str>>,
        at: &Path<'_>,
    ) -> Result<(), Untranslatable> {
        let mut rest = ",\"description\":\"".to_owned();
        if let Some(text) = tool
            .text(at, "description")?
            .filter(|text| !text.is_empty())
        {
            rest.push_str(text.escaped());
            rest.push_str("\\n\\n");
        }
        rest.push_str(TAKES_TEXT);
        if let Some(format) = tool.object(at, "format")? {
            let here = at.member("format");
            match format.word(&here, "type")?.as_deref() {
                None | Some("text") => {}
                Some("grammar") => {
                    let syntax = format.text(&here, "syntax")?;
                    let grammar = format.text(&here, "definition")?;
                    let grammar = grammar.ok_or_else(|| here.missing("definition"))?;
                    rest.push_str("\\n\\nThe text has to match this grammar");
                    if let Some(syntax) = syntax {
                        rest.push_str(" (");
                        rest.push_str(syntax.escaped());
                        rest.push(')');
                    }
                    rest.push_str(":\\n");
                    rest.push_str(grammar.escaped());
                }
                Some(_) => {
                    let unknown = "A custom tool's format is `text` or `grammar`.";
                    return Err(here.member("type").refuse(unknown));
                }
            }
        }
        rest.push_str(
            "\",\"parameters\":{\"type\":\"object\",\"properties\":{\"input\":{\"type\":\"string\"}},\
             \"required\":[\"input\"],\"additionalProperties\":false}",
        );
        let name = name_of(tool, at)?;
        self.offer(name, namespace, Form::Custom, &rest, at)
    }

    fn offer(
        &mut self,
        name: Cow<'a, str>,
        namespace: Option<Cow<'a, str>>,
        form: Form,
        rest: &str,
        at: &Path<'_>,
    ) -> Result<(), Untranslatable> {
        let sent = match &namespace {
            None => name.clone().into_owned(),
            Some(namespace) => {
                let flat = flat_name(namespace, &name);
                match self.is_taken(&flat) {
                    false => flat,
                    true => marked_name(namespace, &name, &flat),
                }
            }
        };
        let is_twice = match namespace {
            Some(_) => self.is_taken(&sent),
            // Of a plain name only an item's list can come behind a namespace's.
            None => self.names.0.contains_key(&sent),
        };
        if is_twice {
            return Err(at.member("name").refuse("Two tools have this name."));
        }
        if namespace.is_some() || form != Form::Function {
            let spoken = Spoken {
                name: name.clone().into_owned(),
                namespace: namespace.clone().map(Cow::into_owned),
                form,
            };
            self.names.0.insert(sent.clone(), spoken);
        }
        let mut json = "{\"type\":\"function\",\"function\":{\"name\":".to_owned();
        quote(&mut json, &sent);
        json.push_str(rest);
        json.push_str("}}");
        let known = (namespace.clone().unwrap_or_default(), name.clone());
        self.places.insert(known, self.offered.len());
        self.offered.push(Offered {
            name,
            namespace,
            sent,
            json,
        });
        Ok(())
    }

    fn is_taken(&self, sent: &str) -> bool {
        self.plain.contains(sent) || self.names.0.contains_key(sent)
    }

    /// The members that the dialect's own echo always has.
    fn echo_function(&mut self, tool: &Object<'a>, at: &Path<'_>) -> Result<(), Untranslatable> {
        self.echo.push_str("{\"type\":\"function\"");
        for name in ["name", "description", "parameters", "strict"] {
            self.echo.push_str(",\"");
            self.echo.push_str(name);
            self.echo.push_str("\":");
            let value = tool.get(name).map_or("null", RawValue::get);
            self.echo.push_str(value);
        }
        if tool.flag(at, "defer_loading")? == Some(true) {
            self.echo.push_str(",\"defer_loading\":true");
        }
        self.echo.push_str("},");
        Ok(())
    }

    fn echo_as_sent(&mut self, tool: &RawValue) {
        self.echo.push_str(tool.get());
        self.echo.push(',');
    }

    pub fn is_empty(&self) -> bool {
        self.offered.is_empty()
    }

    /// The tools as the dialect's answer repeats them: those that the model was told of.
    pub fn echo(&self) -> String {
        format!("[{}]", self.echo.trim_end_matches(','))
    }

    /// The tools as the service is asked.
    pub fn json(&self) -> String {
        let tools: Vec<&str> = self.offered.iter().map(|tool| tool.json.as_str()).collect();
        format!("[{}]", tools.join(","))
    }

    pub fn into_names(self) -> Names {
        self.names
    }

    /// What the service calls the tool that an earlier call was made to.
    pub fn sent_name(&self, namespace: Option<&str>, name: &str) -> String {
        let Some(namespace) = namespace.filter(|namespace| !namespace.is_empty()) else {
            return name.to_owned();
        };
        let known = self
            .place(namespace, name)
            .and_then(|place| self.offered.get(place));
        known.map_or_else(|| flat_name(namespace, name), |tool| tool.sent.clone())
    }

    /// Reads `tool_choice`; of `allowed_tools` only those that are allowed stay.
    pub fn choose(
        &mut self,
        choice: &RawValue,
        at: &Path<'_>,
        dropped: &mut Dropped,
    ) -> Result<Choice, Untranslatable> {
        if let Some(mode) = Text::of(choice) {
            return self.mode(mode, at);
        }
        let object = Object::read(choice.get());
        let object = object.ok_or_else(|| at.refuse("This has to be a string or an object."))?;
        let kind = object.word(at, "type")?;
        match kind.as_deref().ok_or_else(|| at.missing("type"))? {
            "function" | "custom" => {
                let namespace = object.word(at, "namespace")?;
                let place = self.find(&object, namespace.as_deref(), at)?;
                let tool = place.and_then(|place| self.offered.get(place));
                let unknown = || {
                    at.member("name")
                        .refuse("No tool of the request has this name.")
                };
                tool.map(|tool| Choice::Tool(tool.sent.clone()))
                    .ok_or_else(unknown)
            }
            "allowed_tools" => self.allow(&object, at, dropped),
            other => Err(at.refuse(format!(
                "The service has no server tools, so the tool `{}` cannot be called.",
                built_in_tool(other)
            ))),
        }
    }

    fn mode(&self, mode: Text<'_>, at: &Path<'_>) -> Result<Choice, Untranslatable> {
        match mode.unescaped().as_deref() {
            Some("auto") => Ok(Choice::Mode("auto")),
            Some("none") => Ok(Choice::Mode("none")),
            Some("required") if self.is_empty() => Err(at.refuse(
                "A tool has to be called, and the request has no function or custom tool.",
            )),
            Some("required") => Ok(Choice::Mode("required")),
            _ => Err(at.refuse("This is `auto`, `none`, `required` or an object.")),
        }
    }

    /// The place of the tool that an object names.
    fn find(
        &self,
        named: &Object<'_>,
        namespace: Option<&str>,
        at: &Path<'_>,
    ) -> Result<Option<usize>, Untranslatable> {
        let name = name_of(named, at)?;
        Ok(self.place(namespace.unwrap_or_default(), &name))
    }

    /// The place of a tool; the namespace is empty where it has none.
    fn place(&self, namespace: &str, name: &str) -> Option<usize> {
        let known = (Cow::Borrowed(namespace), Cow::Borrowed(name));
        self.places.get(&known).copied()
    }

    fn allow(
        &mut self,
        allowed: &Object<'_>,
        at: &Path<'_>,
        dropped: &mut Dropped,
    ) -> Result<Choice, Untranslatable> {
        let list = at.member("tools");
        let tools = allowed.array(at, "tools")?;
        let mut places = HashSet::new();
        for (place, tool) in tools.unwrap_or_default().into_iter().enumerate() {
            let here = list.element(place);
            let tool = Object::read(tool.get());
            let tool = tool.ok_or_else(|| here.refuse("A tool has to be an object."))?;
            let kind = tool.word(&here, "type")?;
            match kind.as_deref().ok_or_else(|| here.missing("type"))? {
                "function" | "custom" => {
                    let namespace = tool.word(&here, "namespace")?;
                    let place = self.find(&tool, namespace.as_deref(), &here)?;
                    let unknown = || here.refuse("No tool of the request has this name.");
                    places.insert(place.ok_or_else(unknown)?);
                }
                other => leave_out(other, &here, dropped)?,
            }
        }
        let mut place = 0;
        self.offered.retain(|_| {
            place += 1;
            places.contains(&(place - 1))
        });
        let offered = self.offered.iter().enumerate();
        let known = |tool: &Offered<'a>| {
            (
                tool.namespace.clone().unwrap_or_default(),
                tool.name.clone(),
            )
        };
        self.places = offered.map(|(place, tool)| (known(tool), place)).collect();
        match allowed.text(at, "mode")? {
            Some(mode) => self.mode(mode, &at.member("mode")),
            None => Ok(Choice::Mode("auto")),
        }
    }
}

// === impl Names ===

impl Names {
    /// As one text, in the order of the service's names.
    pub fn sorted(&self) -> String {
        let mut names: Vec<String> = self
            .0
            .iter()
            .map(|(sent, known)| {
                let form = match known.form {
                    Form::Function => "function",
                    Form::Custom => "custom",
                    Form::Search => "search",
                };
                format!("{sent:?} {:?} {:?} {form}", known.name, known.namespace)
            })
            .collect();
        names.sort_unstable();
        names.join(",")
    }

    /// `None`: a function that both sides know by the same name.
    pub fn get(&self, sent: &str) -> Option<&Spoken> {
        self.0.get(sent)
    }
}

/// The members of a function behind its name.
fn described(tool: &Object<'_>, at: &Path<'_>) -> Result<String, Untranslatable> {
    let mut rest = String::new();
    if let Some(text) = tool.text(at, "description")? {
        rest.push_str(",\"description\":");
        rest.push_str(text.json());
    }
    if let Some(parameters) = tool.nested(at, "parameters")? {
        rest.push_str(",\"parameters\":");
        rest.push_str(parameters.get());
    }
    match tool.flag(at, "strict")? {
        Some(true) => rest.push_str(",\"strict\":true"),
        Some(false) => rest.push_str(",\"strict\":false"),
        None => {}
    }
    Ok(rest)
}

/// The app itself looks for tools, not the vendor's server.
fn is_searched_by_app(tool: &Object<'_>) -> bool {
    tool.get("execution")
        .is_some_and(|execution| execution.get() == "\"client\"")
}

fn name_of<'a>(tool: &Object<'a>, at: &Path<'_>) -> Result<Cow<'a, str>, Untranslatable> {
    let name = tool.word(at, "name")?.filter(|name| !name.is_empty());
    name.ok_or_else(|| at.missing("name"))
}

/// The tools that an item holds: `additional_tools`, and what the app found for the model.
pub fn of_item<'a>(item: &Object<'a>) -> Vec<&'a RawValue> {
    let kind = item.get("type").map(RawValue::get);
    match kind {
        Some("\"additional_tools\"" | "\"tool_search_output\"") => {
            item.get("tools").and_then(array).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}
