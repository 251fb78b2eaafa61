//! The story: seven steps through the door, each checked against the ledger and the service's books
//! before the next begins.
//!
//! Promise: a step that does not do what it says is reported; it never passes for one that did.

mod agent;
mod calls;
mod lost;

use tokio::time::timeout;

use super::scene::{STEP_MAX, Scene};
use crate::cli::error::CliError;
use crate::cli::output::say;

/// The steps, in order.
#[derive(Clone, Copy, Debug)]
enum Step {
    JsonCall,
    Stream,
    AgentTurn,
    Retries,
    LostAnswer,
    Escalation,
    Clarification,
}

// === impl Step ===

impl Step {
    const ALL: [Self; 7] = [
        Self::JsonCall,
        Self::Stream,
        Self::AgentTurn,
        Self::Retries,
        Self::LostAnswer,
        Self::Escalation,
        Self::Clarification,
    ];

    const fn title(self) -> &'static str {
        match self {
            Self::JsonCall => "a JSON call",
            Self::Stream => "a stream, shown as it arrives",
            Self::AgentTurn => "an agent turn with a tool",
            Self::Retries => "a call that needed two retries",
            Self::LostAnswer => "a client that gave up and tried again is billed once",
            Self::Escalation => "an escalation to the frontier model",
            Self::Clarification => "a clarification, which costs nothing",
        }
    }

    async fn play(self, scene: &mut Scene<'_>) -> Result<(), CliError> {
        match self {
            Self::JsonCall => calls::json_call(scene).await,
            Self::Stream => calls::stream(scene).await,
            Self::AgentTurn => agent::agent_turn(scene).await,
            Self::Retries => calls::retries(scene).await,
            Self::LostAnswer => lost::lost_answer(scene).await,
            Self::Escalation => calls::escalation(scene).await,
            Self::Clarification => calls::clarification(scene).await,
        }
    }
}

/// Plays all steps; returns what went wrong.
pub async fn play(mut scene: Scene<'_>) -> Result<Vec<String>, CliError> {
    for (at, step) in Step::ALL.into_iter().enumerate() {
        let number = format!("step {}/{}", at + 1, Step::ALL.len());
        say("")?;
        scene
            .screen()
            .heading(format_args!("{number}: {}", step.title()))?;
        let ended = timeout(STEP_MAX, step.play(&mut scene)).await;
        scene.close(&number, ended)?;
    }
    Ok(scene.into_wrong())
}
