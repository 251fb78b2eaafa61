//! A chat request, read from its body and checked.
//!
//! Promise: nothing from the body is trusted before it has passed here; what is wrong is named by its field
//! and never by its value.

use super::{
    forward,
    lane::{Dice, Lane},
};
use crate::{error::ServiceError, spec};
use bursar_models::{
    draft::AnswerShape,
    logprobs::TOP_MAX,
    rng::Rng,
    schema,
    skill::Tier,
    tokens,
    tools::{Tool, ToolChoice, Toolbox},
};
use serde_json::{Map, Value, json};

mod message;

#[derive(Clone, Debug)]
pub struct ChatRequest {
    pub messages: Vec<Value>,
    pub tools: Vec<Tool>,
    pub tool_choice: ToolChoice,
    pub parallel_tool_calls: bool,
    /// `response_format` of type `json_schema`: this makes a request structured.
    pub schema: Option<Value>,
    pub json_object: bool,
    /// `None` samples: the run counter enters the randomness.
    pub fixed_seed: Option<i64>,
    pub max_tokens: Option<u64>,
    pub stop: Vec<String>,
    pub stream: bool,
    pub include_usage: bool,
    /// How many of the likeliest tokens are listed with each; `None` where no `logprobs` were asked for.
    pub logprobs: Option<u64>,
    /// The fields a model server gets as they came: all but the model, the messages and the streaming.
    pub forwarded: Map<String, Value>,
}

/// OpenAI body fields taken on `/v1`. Interface: "an unsupported field returns 400 or 422".
/// Assumed (unsupported-field): 422, for any field that is not one of these.
const SUPPORTED: &[&str] = &[
    "model",
    "messages",
    "stream",
    "stream_options",
    "temperature",
    "top_p",
    "max_tokens",
    "max_completion_tokens",
    "stop",
    "seed",
    "n",
    "user",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "response_format",
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "top_logprobs",
    "metadata",
    "store",
    "service_tier",
    "reasoning_effort",
    "modalities",
    "prediction",
    "verbosity",
    "safety_identifier",
    "prompt_cache_key",
    "web_search_options",
    "functions",
    "function_call",
];

// === impl ChatRequest ===

impl ChatRequest {
    pub fn parse(body: &[u8], lane: Lane) -> Result<Self, ServiceError> {
        let body: Value = serde_json::from_slice(body).map_err(|error| {
            ServiceError::MalformedJson(format!("line {} column {}", error.line(), error.column()))
        })?;
        let Value::Object(fields) = body else {
            return Err(ServiceError::invalid("the body must be a JSON object"));
        };
        check_model(&fields, lane)?;
        if lane == Lane::Inference
            && let Some(name) = fields
                .keys()
                .find(|name| !SUPPORTED.contains(&name.as_str()))
        {
            let name: String = name.chars().take(64).collect();
            return Err(ServiceError::invalid(format!("unsupported field: {name}"))
                .assumed("unsupported-field"));
        }
        if let Some(n) = present(&fields, "n") {
            match n.as_u64() {
                Some(1) => {}
                // Interface: `n` greater than 1 on the agent lane is 400. Assumed (n-on-v1): on /v1 too.
                Some(_) if lane == Lane::Inference => {
                    return Err(
                        ServiceError::BadRequest("n must be 1".to_owned()).assumed("n-on-v1")
                    );
                }
                Some(_) => return Err(ServiceError::BadRequest("n must be 1".to_owned())),
                None => return Err(ServiceError::invalid("n must be a positive integer")),
            }
        }
        let (schema, json_object) = response_format(&fields)?;
        let tools = tools(&fields)?;
        Ok(Self {
            messages: messages(&fields)?,
            tool_choice: tool_choice(&fields, &tools)?,
            tools,
            parallel_tool_calls: boolean(&fields, "parallel_tool_calls")?.unwrap_or(true),
            schema,
            json_object,
            fixed_seed: fixed_seed(&fields)?,
            max_tokens: max_tokens(&fields)?
                .or((lane == Lane::Agent).then_some(spec::MAX_TOKENS_DEFAULT)),
            stop: stop(&fields)?,
            stream: boolean(&fields, "stream")?.unwrap_or(false),
            // Interface, agent lane: usage inclusion is forced on.
            include_usage: include_usage(&fields)? || lane == Lane::Agent,
            logprobs: logprobs(&fields)?,
            forwarded: forward::fields(fields, lane),
        })
    }

    /// The body for a model server: the transcript and the fields unchanged.
    pub fn for_server(&self) -> Map<String, Value> {
        let mut body = Map::new();
        body.insert("messages".to_owned(), Value::Array(self.messages.clone()));
        body.extend(self.forwarded.clone());
        body
    }

    /// The form that an answer must have.
    pub fn shape(&self) -> AnswerShape<'_> {
        match &self.schema {
            Some(schema) => AnswerShape::Schema(schema),
            None if self.json_object => AnswerShape::Object,
            None => AnswerShape::Words,
        }
    }

    pub fn toolbox(&self) -> Toolbox<'_> {
        Toolbox {
            tools: &self.tools,
            choice: &self.tool_choice,
            parallel: self.parallel_tool_calls,
        }
    }

    /// What the tools' definitions cost as prompt.
    pub fn tool_tokens(&self) -> u64 {
        self.tools
            .iter()
            .map(|tool| {
                tokens::count(&tool.name)
                    + tokens::count(&tool.description)
                    + tokens::count(&tool.parameters.to_string())
            })
            .sum()
    }

    /// The randomness of one model's answer to this request.
    pub fn rng(&self, tier: Tier, lane: Lane, dice: &Dice) -> Rng {
        let tier = if tier == Tier::Specialist {
            "specialist"
        } else {
            "frontier"
        };
        let lane = if lane == Lane::Inference {
            "inference"
        } else {
            "agent"
        };
        let sampled = match self.fixed_seed {
            Some(seed) => format!("seed {seed}"),
            None => format!("run {}", dice.run),
        };
        let messages = Value::Array(self.messages.clone()).to_string();
        Rng::from_parts(&[
            &dice.seed.to_le_bytes(),
            tier.as_bytes(),
            lane.as_bytes(),
            sampled.as_bytes(),
            messages.as_bytes(),
        ])
    }

    /// What a conversation's route is pinned by when it names no session: system prompt and tool names.
    pub fn pin_basis(&self) -> Vec<String> {
        let system = self
            .messages
            .iter()
            .filter(|message| {
                let role = message.get("role").and_then(Value::as_str);
                matches!(role, Some("system" | "developer"))
            })
            .map(|message| {
                message
                    .get("content")
                    .map(Value::to_string)
                    .unwrap_or_default()
            });
        system
            .chain(self.tools.iter().map(|tool| tool.name.clone()))
            .collect()
    }
}

/// A field that is there and not null.
fn present<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    fields.get(name).filter(|value| !value.is_null())
}

fn boolean(fields: &Map<String, Value>, name: &str) -> Result<Option<bool>, ServiceError> {
    present(fields, name)
        .map(|value| {
            value
                .as_bool()
                .ok_or_else(|| ServiceError::invalid(format!("{name} must be a boolean")))
        })
        .transpose()
}

fn logprobs(fields: &Map<String, Value>) -> Result<Option<u64>, ServiceError> {
    let top = match present(fields, "top_logprobs") {
        None => None,
        Some(value) => {
            let top = value.as_u64().filter(|top| *top <= TOP_MAX);
            Some(top.ok_or_else(|| {
                ServiceError::invalid(format!(
                    "top_logprobs must be an integer from 0 to {TOP_MAX}"
                ))
            })?)
        }
    };
    match (boolean(fields, "logprobs")?, top) {
        (Some(true), top) => Ok(Some(top.unwrap_or(0))),
        (_, None) => Ok(None),
        (_, Some(_)) => Err(ServiceError::invalid(
            "top_logprobs needs logprobs to be true",
        )),
    }
}

fn check_model(fields: &Map<String, Value>, lane: Lane) -> Result<(), ServiceError> {
    match (present(fields, "model"), lane) {
        (Some(Value::String(model)), _) if model == spec::MODEL => Ok(()),
        (None, Lane::Agent) => Ok(()),
        (None, Lane::Inference) => Err(ServiceError::invalid("model is required")),
        // Interface: "any other value returns 404" on /v1 and 400 on the agent lane, whatever its type.
        (Some(_), Lane::Inference) => Err(ServiceError::NotFound(
            "model not found; the only model is auto".to_owned(),
        )),
        (Some(_), Lane::Agent) => Err(ServiceError::BadRequest(
            "model must be auto or omitted".to_owned(),
        )),
    }
}

pub fn messages(fields: &Map<String, Value>) -> Result<Vec<Value>, ServiceError> {
    let messages = match fields.get("messages") {
        Some(Value::Array(messages)) if !messages.is_empty() => messages,
        Some(Value::Array(_)) => return Err(ServiceError::invalid("messages must not be empty")),
        Some(_) => return Err(ServiceError::invalid("messages must be an array")),
        None => return Err(ServiceError::invalid("messages is required")),
    };
    for (at, message) in messages.iter().enumerate() {
        message::check(message)
            .map_err(|wrong| ServiceError::invalid(format!("messages[{at}]{wrong}")))?;
    }
    Ok(messages.clone())
}

fn response_format(fields: &Map<String, Value>) -> Result<(Option<Value>, bool), ServiceError> {
    let Some(format) = present(fields, "response_format") else {
        return Ok((None, false));
    };
    match format.get("type").and_then(Value::as_str) {
        Some("text") => Ok((None, false)),
        Some("json_object") => Ok((None, true)),
        Some("json_schema") => {
            let wanted = format.pointer("/json_schema/schema").ok_or_else(|| {
                ServiceError::invalid("response_format.json_schema.schema is required")
            })?;
            if !schema::usable(wanted) {
                return Err(ServiceError::BadRequest(
                    "response_format: not a usable JSON Schema".to_owned(),
                ));
            }
            Ok((Some(wanted.clone()), false))
        }
        _ => Err(ServiceError::invalid(
            "response_format.type must be text, json_object or json_schema",
        )),
    }
}

fn tools(fields: &Map<String, Value>) -> Result<Vec<Tool>, ServiceError> {
    let tools = match present(fields, "tools") {
        None => return Ok(Vec::new()),
        Some(Value::Array(tools)) => tools,
        Some(_) => return Err(ServiceError::invalid("tools must be an array")),
    };
    let mut checked = Vec::new();
    for (at, tool) in tools.iter().enumerate() {
        let function = tool.get("function");
        let name = function
            .and_then(|f| f.get("name"))
            .and_then(Value::as_str)
            .filter(|name| !name.is_empty());
        let (Some("function"), Some(name)) = (tool.get("type").and_then(Value::as_str), name)
        else {
            return Err(ServiceError::invalid(format!(
                "tools[{at}] must be a function with a name"
            )));
        };
        let text = |field| {
            function
                .and_then(|f| f.get(field))
                .filter(|value| !value.is_null())
        };
        let parameters = text("parameters")
            .cloned()
            .unwrap_or_else(|| json!({"type": "object", "properties": {}}));
        if !schema::usable(&parameters) {
            return Err(ServiceError::BadRequest(format!(
                "tools[{at}].function.parameters: not a usable JSON Schema"
            )));
        }
        checked.push(Tool {
            name: name.to_owned(),
            description: text("description")
                .and_then(Value::as_str)
                .unwrap_or("")
                .to_owned(),
            parameters,
        });
    }
    Ok(checked)
}

fn tool_choice(fields: &Map<String, Value>, tools: &[Tool]) -> Result<ToolChoice, ServiceError> {
    match present(fields, "tool_choice") {
        None => Ok(ToolChoice::Auto),
        Some(Value::String(choice)) => match choice.as_str() {
            "none" => Ok(ToolChoice::None),
            "auto" => Ok(ToolChoice::Auto),
            "required" if !tools.is_empty() => Ok(ToolChoice::Required),
            _ => Err(ServiceError::invalid(
                "tool_choice must be none, auto, required or a function",
            )),
        },
        Some(choice) => match choice.pointer("/function/name").and_then(Value::as_str) {
            Some(name) if tools.iter().any(|tool| tool.name == name) => {
                Ok(ToolChoice::Named(name.to_owned()))
            }
            _ => Err(ServiceError::invalid(
                "tool_choice names no function of tools",
            )),
        },
    }
}

/// `temperature: 0` or a `seed` fix the answer; anything else samples.
fn fixed_seed(fields: &Map<String, Value>) -> Result<Option<i64>, ServiceError> {
    let temperature = match present(fields, "temperature") {
        None => None,
        Some(value) => match value.as_f64() {
            Some(t) if (0.0..=2.0).contains(&t) => Some(t),
            _ => {
                return Err(ServiceError::invalid(
                    "temperature must be a number from 0 to 2",
                ));
            }
        },
    };
    if let Some(top_p) = present(fields, "top_p")
        && !top_p.as_f64().is_some_and(|p| (0.0..=1.0).contains(&p))
    {
        return Err(ServiceError::invalid("top_p must be a number from 0 to 1"));
    }
    match present(fields, "seed") {
        None => Ok(temperature.filter(|t| *t == 0.0).map(|_| 0)),
        Some(seed) => match seed.as_i64() {
            Some(seed) => Ok(Some(seed)),
            None => Err(ServiceError::invalid("seed must be an integer")),
        },
    }
}

fn max_tokens(fields: &Map<String, Value>) -> Result<Option<u64>, ServiceError> {
    for name in ["max_completion_tokens", "max_tokens"] {
        if let Some(value) = present(fields, name) {
            return match value.as_u64() {
                Some(n) if n > 0 => Ok(Some(n)),
                _ => Err(ServiceError::invalid(format!(
                    "{name} must be a positive integer"
                ))),
            };
        }
    }
    Ok(None)
}

fn stop(fields: &Map<String, Value>) -> Result<Vec<String>, ServiceError> {
    let stops: Option<Vec<String>> = match present(fields, "stop") {
        None => Some(Vec::new()),
        Some(Value::String(one)) => Some(vec![one.clone()]),
        Some(Value::Array(several)) if several.len() <= 4 => several
            .iter()
            .map(|one| one.as_str().map(str::to_owned))
            .collect(),
        Some(_) => None,
    };
    let mut stops = stops.ok_or_else(|| {
        ServiceError::invalid("stop must be a string or an array of at most 4 strings")
    })?;
    stops.retain(|one| !one.is_empty());
    Ok(stops)
}

fn include_usage(fields: &Map<String, Value>) -> Result<bool, ServiceError> {
    match present(fields, "stream_options") {
        None => Ok(false),
        Some(Value::Object(options)) => Ok(boolean(options, "include_usage")?.unwrap_or(false)),
        Some(_) => Err(ServiceError::invalid("stream_options must be an object")),
    }
}

#[cfg(test)]
mod tests;
