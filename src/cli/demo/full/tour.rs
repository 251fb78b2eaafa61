//! The steps of the full story: a table of what is played in which order, and who plays it.
//!
//! Promise: every row of the table is played, whatever became of the rows before it; a step that does
//! not do what its title says is told, and stands in what [`Tour::play`] returns.

use serde_json::{Value, json};
use tokio::time::timeout;

use super::speech::{self, Recorded};
use super::{agent, catalog, comparison, deploys, endpoints, evals, inference, recordings};
use crate::cli::demo::scene::{STEP_MAX, Scene};
use crate::cli::demo::story::calls;
use crate::cli::error::CliError;
use crate::ledger::entry::EntryId;

/// How many parts the service has.
pub const PARTS: usize = 7;

/// A part of the service, by its number in the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Inference = 1,
    AgentLane = 2,
    TaskCatalog = 3,
    Evals = 4,
    Speech = 5,
    Comparison = 6,
    Endpoints = 7,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    JsonCall,
    Stream,
    Structured,
    Escalation,
    Retries,
    Embeddings,
    Rerank,
    Image,
    AgentLoop,
    TaskList,
    TaskMatch,
    TaskCall,
    EvalSet,
    EvalRun,
    ForgottenRun,
    Synthesis,
    Transcription,
    Roster,
    Comparison,
    Deploy,
    EndpointCall,
    EndpointMetrics,
    WarmUp,
    Delete,
    ForgottenRunIsKnown,
    AutoMetrics,
}

/// The scene, and what later steps need of earlier ones.
#[derive(Debug)]
pub struct Tour<'a> {
    scene: Scene<'a>,
    /// The task that the matcher chose, with its golden rows.
    task: Option<Value>,
    /// The eval set with recordings.
    eval_set: Option<String>,
    /// The entry and the id of the run that nobody asks about.
    forgotten: Option<(EntryId, String)>,
    recorded: Option<Recorded>,
    /// Ids of the frontier models.
    roster: Vec<String>,
    endpoint: Option<String>,
}

/// A step that was played.
#[derive(Debug)]
pub struct Played {
    part: Part,
    step: Step,
    wrong: Vec<String>,
}

/// The story. The last two look back: by then bursar has asked for the run that its app forgot, and
/// the service's own figures hold everything.
const STORY: [(Part, Step); 26] = [
    (Part::Inference, Step::JsonCall),
    (Part::Inference, Step::Stream),
    (Part::Inference, Step::Structured),
    (Part::Inference, Step::Escalation),
    (Part::Inference, Step::Retries),
    (Part::Inference, Step::Embeddings),
    (Part::Inference, Step::Rerank),
    (Part::Inference, Step::Image),
    (Part::AgentLane, Step::AgentLoop),
    (Part::TaskCatalog, Step::TaskList),
    (Part::TaskCatalog, Step::TaskMatch),
    (Part::TaskCatalog, Step::TaskCall),
    (Part::Evals, Step::EvalSet),
    (Part::Evals, Step::EvalRun),
    (Part::Evals, Step::ForgottenRun),
    (Part::Speech, Step::Synthesis),
    (Part::Speech, Step::Transcription),
    (Part::Comparison, Step::Roster),
    (Part::Comparison, Step::Comparison),
    (Part::Endpoints, Step::Deploy),
    (Part::Endpoints, Step::EndpointCall),
    (Part::Endpoints, Step::EndpointMetrics),
    (Part::Endpoints, Step::WarmUp),
    (Part::Endpoints, Step::Delete),
    (Part::Evals, Step::ForgottenRunIsKnown),
    (Part::Comparison, Step::AutoMetrics),
];

// === impl Part ===

impl Part {
    const fn title(self) -> &'static str {
        match self {
            Self::Inference => "inference",
            Self::AgentLane => "agent lane",
            Self::TaskCatalog => "task catalog",
            Self::Evals => "evals",
            Self::Speech => "speech",
            Self::Comparison => "metrics and frontier comparison",
            Self::Endpoints => "endpoints",
        }
    }
}

// === impl Step ===

impl Step {
    const fn title(self) -> &'static str {
        match self {
            Self::JsonCall => "a JSON call",
            Self::Stream => "a stream, shown as it arrives",
            Self::Structured => "an answer that follows a JSON Schema",
            Self::Escalation => "an escalation to the frontier",
            Self::Retries => "a call that needed two retries",
            Self::Embeddings => "embeddings",
            Self::Rerank => "rerank",
            Self::Image => "an image",
            Self::AgentLoop => "a loop with a tool, in one session",
            Self::TaskList => "what can be scored",
            Self::TaskMatch => "a task found by its description",
            Self::TaskCall => "that task, done",
            Self::EvalSet => "a set of recordings",
            Self::EvalRun => "a run on it, billed once",
            Self::ForgottenRun => "a run that its app forgets",
            Self::Synthesis => "text to speech",
            Self::Transcription => "that speech to text",
            Self::Roster => "the roster",
            Self::Comparison => "one prompt, auto and a vendor",
            Self::Deploy => "a deploy, event by event",
            Self::EndpointCall => "a call to it",
            Self::EndpointMetrics => "its five metrics",
            Self::WarmUp => "stopped, started, asked while it is cold",
            Self::Delete => "deleted",
            Self::ForgottenRunIsKnown => "bursar asked for the run itself",
            Self::AutoMetrics => "the service's own figures",
        }
    }
}

// === impl Played ===

impl Played {
    /// What went wrong, with the name of the step.
    pub fn wrong(&self) -> Vec<String> {
        let (part, step) = (self.part.title(), self.step.title());
        let named = |what| format!("{part}, {step}: {what}");
        self.wrong.iter().map(named).collect()
    }

    pub fn document(&self) -> Value {
        json!({
            "part": self.part as u8,
            "name": self.part.title(),
            "step": self.step.title(),
            "wrong": self.wrong,
        })
    }
}

// === impl Tour ===

impl<'a> Tour<'a> {
    pub fn new(scene: Scene<'a>) -> Self {
        Self {
            scene,
            task: None,
            eval_set: None,
            forgotten: None,
            recorded: None,
            roster: Vec::new(),
            endpoint: None,
        }
    }

    pub async fn play(&mut self) -> Result<Vec<Played>, CliError> {
        let mut played = Vec::new();
        for (part, step) in STORY {
            let stage = self.scene.stage;
            stage.line("")?;
            let number = format!("part {}/{PARTS}, {}", part as u8, part.title());
            stage.heading(format_args!("{number}: {}", step.title()))?;
            let wrong_before = self.scene.wrong_so_far();
            let ended = timeout(STEP_MAX, self.perform(step)).await;
            let wrong = self.scene.close(&number, wrong_before, ended)?;
            played.push(Played { part, step, wrong });
        }
        Ok(played)
    }

    async fn perform(&mut self, step: Step) -> Result<(), CliError> {
        let scene = &mut self.scene;
        match step {
            Step::JsonCall => calls::json_call(scene).await,
            Step::Stream => calls::stream(scene).await,
            Step::Structured => inference::structured(scene).await,
            Step::Escalation => calls::escalation(scene).await,
            Step::Retries => calls::retries(scene).await,
            Step::Embeddings => inference::embeddings(scene).await,
            Step::Rerank => inference::rerank(scene).await,
            Step::Image => inference::image(scene).await,
            Step::AgentLoop => agent::agent_loop(scene).await,
            Step::TaskList => catalog::task_list(scene).await,
            Step::TaskMatch => {
                self.task = Some(catalog::task_match(scene).await?);
                Ok(())
            }
            Step::TaskCall => {
                let task = left(self.task.as_ref(), "task")?;
                catalog::task_call(scene, task).await
            }
            Step::EvalSet => {
                self.eval_set = Some(recordings::make_eval_set(scene).await?);
                Ok(())
            }
            Step::EvalRun => {
                let set = left(self.eval_set.as_ref(), "eval set")?;
                evals::eval_run(scene, set).await
            }
            Step::ForgottenRun => {
                let task = left(self.task.as_ref(), "task")?;
                self.forgotten = Some(evals::forgotten_run(scene, task).await?);
                Ok(())
            }
            Step::Synthesis => {
                self.recorded = Some(speech::synthesis(scene).await?);
                Ok(())
            }
            Step::Transcription => {
                let recorded = left(self.recorded.as_ref(), "recording")?;
                speech::transcription(scene, recorded).await
            }
            Step::Roster => {
                self.roster = comparison::show_roster(scene).await?;
                Ok(())
            }
            Step::Comparison => {
                let model = left(self.roster.first(), "roster")?;
                comparison::comparison(scene, model).await
            }
            Step::Deploy => {
                self.endpoint = Some(deploys::deploy(scene).await?);
                Ok(())
            }
            Step::EndpointCall => {
                let id = left(self.endpoint.as_ref(), "endpoint")?;
                endpoints::endpoint_call(scene, id).await
            }
            Step::EndpointMetrics => {
                let id = left(self.endpoint.as_ref(), "endpoint")?;
                endpoints::endpoint_metrics(scene, id).await
            }
            Step::WarmUp => {
                let id = left(self.endpoint.as_ref(), "endpoint")?;
                endpoints::warm_up(scene, id).await
            }
            Step::Delete => {
                let id = left(self.endpoint.as_ref(), "endpoint")?;
                endpoints::delete(scene, id).await
            }
            Step::ForgottenRunIsKnown => {
                let (entry, run) = left(self.forgotten.as_ref(), "run that was forgotten")?;
                evals::forgotten_run_is_known(scene, *entry, run).await
            }
            Step::AutoMetrics => comparison::auto_metrics(scene).await,
        }
    }
}

/// What an earlier step should have left.
fn left<'a, T>(what: Option<&'a T>, name: &str) -> Result<&'a T, CliError> {
    what.ok_or_else(|| CliError::Failed(format!("an earlier step left no {name}")))
}
