//! The agent's step: a turn that calls a tool, the tool, and the turn with its result.
//!
//! Promise: the tool does what the agent asked, and what it says is what the ledger holds then.

use serde_json::{Value, json};

use crate::cli::cells::counted;
use crate::cli::demo::answer::Heard;
use crate::cli::demo::scene::Scene;
use crate::cli::error::CliError;
use crate::ledger::query::GroupBy;

const AGENT: &str = "/agent/v1/chat/completions";

/// The tool that the agent may call: it reads this very ledger.
const TOOL: &str = "read_spend";

/// A tool call of the agent's.
struct ToolCall {
    id: String,
    name: String,
    /// JSON text.
    arguments: String,
}

/// The tools that the agent may call.
fn tools() -> Value {
    json!([{"type": "function", "function": {
        "name": TOOL,
        "description": "The sums of the ledger so far",
        "parameters": {
            "type": "object",
            "properties": {"by": {"type": "string", "enum": ["operation", "served_by"]}},
            "required": ["by"],
        },
    }}])
}

pub async fn agent_turn(scene: &mut Scene<'_>) -> Result<(), CliError> {
    // An agent stream would carry no amount in the interface; a whole answer does.
    scene.screen().fact(
        "note",
        "sent without \"stream\": only then does the service report what an agent turn costs",
    )?;
    let prompt = "How much have we spent so far, by operation?";
    let tools = tools();
    let mut messages = vec![json!({"role": "user", "content": prompt})];
    scene.screen().fact("asked", prompt)?;
    let body = json!({"model": "auto", "messages": messages, "tools": tools});
    let heard = Heard::whole(scene.post(AGENT, &body).await?, scene.names()).await?;
    let call = ToolCall::of(&heard.message)
        .ok_or_else(|| CliError::Failed("the agent called no tool".to_owned()))?;
    scene.screen().fact(
        "tool call",
        format_args!("{}({})", call.name, call.arguments),
    )?;
    scene.receipt(&heard).await?;

    let result = run_tool(scene, &call).await?;
    scene.screen().fact("tool says", &result)?;
    messages.push(heard.message.clone());
    messages.push(json!({"role": "tool", "tool_call_id": call.id, "content": result}));
    let body = json!({"model": "auto", "messages": messages, "tools": tools});
    let heard = Heard::whole(scene.post(AGENT, &body).await?, scene.names()).await?;
    scene.screen().fact("answer", heard.text())?;
    scene.receipt(&heard).await?;
    scene.expect(
        heard.text().contains(&result),
        "the agent's answer does not hold what the tool said",
    );
    Ok(())
}

/// Reads the ledger, as the agent asked.
async fn run_tool(scene: &Scene<'_>, call: &ToolCall) -> Result<String, CliError> {
    let unknown = || CliError::Failed(format!("no such tool: {}({})", call.name, call.arguments));
    if call.name != TOOL {
        return Err(unknown());
    }
    let arguments: Value = serde_json::from_str(&call.arguments)?;
    let by = arguments
        .get("by")
        .and_then(Value::as_str)
        .and_then(GroupBy::from_word)
        .ok_or_else(unknown)?;
    let spend = scene.journal().spend(by).await?;
    let rows: Vec<String> = spend
        .rows
        .iter()
        .map(|row| {
            let label = row.labels.get(&by).map_or("all", String::as_str);
            let calls = counted(row.requests, "call", "calls");
            format!("{label} {} in {calls}", row.billed_micro_usd)
        })
        .collect();
    Ok(rows.join(", "))
}

// === impl ToolCall ===

impl ToolCall {
    fn of(message: &Value) -> Option<Self> {
        let call = message.pointer("/tool_calls/0")?;
        let text = |at: &str| call.pointer(at).and_then(Value::as_str).map(str::to_owned);
        Some(Self {
            id: text("/id")?,
            name: text("/function/name")?,
            arguments: text("/function/arguments")?,
        })
    }
}
