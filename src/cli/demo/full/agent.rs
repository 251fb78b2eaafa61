//! Part 2: an agent that is asked twice in one conversation. It calls a tool each time, the tool runs,
//! and the transcript grows; all turns carry one `X-Service-Session`.

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method};
use serde_json::{Value, json};

use crate::cli::demo::answer::Heard;
use crate::cli::demo::scene::Scene;
use crate::cli::demo::story::agent::{AGENT, ToolCall, run_tool, tools};
use crate::cli::error::CliError;

/// The conversation's name.
const SESSION: &str = "demo-full";

/// Turns that an answer may take. A tool that is called for ever ends the step.
const TURNS_MAX: usize = 4;

const QUESTIONS: [&str; 2] = [
    "How much have we spent so far, by operation?",
    "And how much so far, by served_by?",
];

pub async fn agent_loop(scene: &mut Scene<'_>) -> Result<(), CliError> {
    let mut messages = Vec::new();
    let mut requests = Vec::new();
    for question in QUESTIONS {
        scene.stage.fact("asked", question)?;
        messages.push(json!({"role": "user", "content": question}));
        answer(scene, &mut messages, &mut requests).await?;
    }
    let sessions = scene.service.sessions().await?;
    let in_session = requests
        .iter()
        .filter(|id| sessions.get(*id).is_some_and(|session| session == SESSION))
        .count();
    scene.stage.fact(
        "service",
        format_args!(
            "got {in_session} of the {} turns in the session {SESSION}",
            requests.len()
        ),
    )?;
    scene.expect(
        in_session == requests.len() && requests.len() > QUESTIONS.len(),
        "not all turns of the loop came in one session",
    );
    Ok(())
}

/// Turns until the agent answers in words.
async fn answer(
    scene: &mut Scene<'_>,
    messages: &mut Vec<Value>,
    requests: &mut Vec<String>,
) -> Result<(), CliError> {
    let mut told = None;
    for _ in 0..TURNS_MAX {
        let heard = turn(scene, messages).await?;
        messages.push(heard.message.clone());
        let call = ToolCall::of(&heard.message);
        match &call {
            Some(call) => scene.stage.fact(
                "tool call",
                format_args!("{}({})", call.name, call.arguments),
            )?,
            None => scene.stage.prose("answer", heard.text())?,
        }
        let entry = scene.receipt(&heard).await?;
        requests.extend(entry.request_id);
        let Some(call) = call else {
            let holds = told.is_some_and(|told: String| heard.text().contains(&told));
            scene.expect(holds, "the answer does not hold what the tool said");
            return Ok(());
        };
        let result = run_tool(scene, &call).await?;
        scene.stage.fact("tool says", &result)?;
        messages.push(json!({"role": "tool", "tool_call_id": call.id, "content": &result}));
        told = Some(result);
    }
    Err(CliError::Failed(format!(
        "no answer in words within {TURNS_MAX} turns"
    )))
}

async fn turn(scene: &Scene<'_>, messages: &[Value]) -> Result<Heard, CliError> {
    let names = &scene.names;
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(&names.session, HeaderValue::from_static(SESSION));
    let body = json!({"model": "auto", "messages": messages, "tools": tools()});
    let door = &scene.door;
    let body = body.to_string().into();
    let answer = door.send(Method::POST, AGENT, headers, body).await?;
    Heard::whole(answer, names).await
}
