//! The story: seven steps through the door, each checked against the ledger and the service's books
//! before the next begins.
//!
//! Promise: a step that does not do what it says is reported; it never passes for one that did.

pub mod agent;
pub mod calls;
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

/// The story on its scene.
#[derive(Debug)]
pub struct Story<'a> {
    scene: Scene<'a>,
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
}

// === impl Story ===

impl<'a> Story<'a> {
    pub fn new(scene: Scene<'a>) -> Self {
        Self { scene }
    }

    /// Plays all steps; returns what went wrong.
    pub async fn tell(&mut self) -> Result<Vec<String>, CliError> {
        for (at, step) in Step::ALL.into_iter().enumerate() {
            let number = format!("step {}/{}", at + 1, Step::ALL.len());
            say("")?;
            self.scene
                .screen
                .heading(format_args!("{number}: {}", step.title()))?;
            let wrong_before = self.scene.wrong_so_far();
            let ended = timeout(STEP_MAX, self.play(step)).await;
            self.scene.close(&number, wrong_before, ended)?;
        }
        Ok(self.scene.take_wrong())
    }

    async fn play(&mut self, step: Step) -> Result<(), CliError> {
        let scene = &mut self.scene;
        match step {
            Step::JsonCall => calls::json_call(scene).await,
            Step::Stream => calls::stream(scene).await,
            Step::AgentTurn => agent::agent_turn(scene).await,
            Step::Retries => calls::retries(scene).await,
            Step::LostAnswer => lost::lost_answer(scene).await,
            Step::Escalation => calls::escalation(scene).await,
            Step::Clarification => calls::clarification(scene).await,
        }
    }
}
