//! Part 2: an agent that is asked twice in one conversation. It calls a tool each time, the tool runs,
//! and the transcript grows; all turns carry one `X-Service-Session`.

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method};
use serde_json::{Value, json};

use super::tour::Tour;
use crate::cli::CliError;
use crate::cli::demo::answer::Heard;
use crate::cli::demo::story::agent::{AGENT, ToolCall, tools};

/// The conversation's name.
const SESSION: &str = "demo-full";

/// Turns that an answer may take. A tool that is called for ever ends the step.
const TURNS_MAX: usize = 4;

const QUESTIONS: [&str; 2] = [
    "How much have we spent so far, by operation?",
    "And how much so far, by served_by?",
];

// === impl Tour ===

impl Tour<'_> {
    pub(super) async fn agent_loop(&mut self) -> Result<(), CliError> {
        let mut messages = Vec::new();
        let mut requests = Vec::new();
        for question in QUESTIONS {
            self.story.stage.fact("asked", question)?;
            messages.push(json!({"role": "user", "content": question}));
            self.answer(&mut messages, &mut requests).await?;
        }
        let sessions = self.story.service.sessions().await?;
        let in_session = requests
            .iter()
            .filter(|id| sessions.get(*id).is_some_and(|session| session == SESSION))
            .count();
        self.story.stage.fact(
            "service",
            format_args!(
                "got {in_session} of the {} turns in the session {SESSION}",
                requests.len()
            ),
        )?;
        self.story.expect(
            in_session == requests.len() && requests.len() > QUESTIONS.len(),
            "not all turns of the loop came in one session",
        );
        Ok(())
    }

    /// Turns until the agent answers in words.
    async fn answer(
        &mut self,
        messages: &mut Vec<Value>,
        requests: &mut Vec<String>,
    ) -> Result<(), CliError> {
        let mut told = None;
        for _ in 0..TURNS_MAX {
            let heard = self.turn(messages).await?;
            messages.push(heard.message.clone());
            let call = ToolCall::of(&heard.message);
            match &call {
                Some(call) => self.story.stage.fact(
                    "tool call",
                    format_args!("{}({})", call.name, call.arguments),
                )?,
                None => self.story.stage.prose("answer", heard.text())?,
            }
            let entry = self.story.receipt(&heard).await?;
            requests.extend(entry.request_id);
            let Some(call) = call else {
                let holds = told.is_some_and(|told: String| heard.text().contains(&told));
                self.story
                    .expect(holds, "the answer does not hold what the tool said");
                return Ok(());
            };
            let result = self.story.run_tool(&call).await?;
            self.story.stage.fact("tool says", &result)?;
            messages.push(json!({"role": "tool", "tool_call_id": call.id, "content": &result}));
            told = Some(result);
        }
        Err(CliError::Failed(format!(
            "no answer in words within {TURNS_MAX} turns"
        )))
    }

    async fn turn(&self, messages: &[Value]) -> Result<Heard, CliError> {
        let names = &self.story.names;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(&names.session, HeaderValue::from_static(SESSION));
        let body = json!({"model": "auto", "messages": messages, "tools": tools()});
        let door = &self.story.door;
        let body = body.to_string().into();
        let answer = door.send(Method::POST, AGENT, headers, body).await?;
        Heard::whole(answer, names).await
    }
}
