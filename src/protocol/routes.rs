//! The route table: one row a route of the interface, and every decision about a route is a column
//! of it. Nothing else branches on paths.
//!
//! Promise: a path is matched on its raw bytes as they will be forwarded; what is not in the table
//! is not relayed.

pub mod anthropics;
mod model_id;

use std::fmt;

use http::Method;

use self::model_id::MODEL;
use crate::protocol::{Dialect, Lane, Operation};

/// The source of a route's receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiptFrom {
    /// Response headers, and comment lines where the answer is a stream.
    HeadersAndComments,
    /// `cost_micro_usd` of the JSON body.
    BodyCost,
    /// No amount in the interface; the JSON body contains `duration_s`.
    BodyDuration,
    /// Later, from the terminal state of the run that the answer names.
    RunLater,
    /// `run.cost_micro_usd` once the run is terminal, once per run id.
    TerminalRun,
    /// None.
    Nothing,
}

/// What a request may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Costs {
    /// Nothing, or less than before: reading, stopping, deleting.
    Nothing,
    /// No answer carries an amount, and nothing is billed for the request itself, but from then on
    /// something costs again that had been stopped. It makes no ledger entry; an app that may not
    /// spend may not send it either.
    FromThenOn,
    /// It makes a ledger entry.
    Metered,
}

/// How the answer is framed. Decides what is held back until the receipt is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerKind {
    /// One JSON document, or a data-only SSE stream when the service says so.
    JsonOrStream,
    /// One JSON document.
    Json,
    /// "a named-event SSE stream" (deploy).
    NamedEvents,
}

/// What a request's body must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyForm {
    /// `application/json` and nothing else: a page can send other types without a preflight.
    Json,
    Multipart,
    /// JSON, or the same in OpenAI's form, which is multipart (transcriptions).
    JsonOrForm,
    /// JSON, multipart or none (image edits, whose shape the interface does not show).
    Any,
    /// A body is not expected; one with a JSON type is passed.
    None,
}

/// May a failure of this kind be followed by another attempt? Columns of the design's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryRule {
    /// a: not sent.
    pub not_sent: bool,
    /// b: sent, no head.
    pub no_head: bool,
    /// c: 2xx head, body broke, nothing given to the app.
    pub broken: bool,
    /// 429 and 503: "nothing served or billed".
    pub busy: bool,
    /// 409.
    pub conflict: bool,
    /// 408, 500, 502, 504.
    pub transient: bool,
}

/// A route that the service does not have: its requests are translated to those of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Translation {
    pub dialect: Dialect,
    /// The service's route. A query that the app sent does not go there.
    pub to: &'static str,
}

/// One row of the table.
#[derive(Clone, Debug)]
pub struct Route {
    pub method: Method,
    /// Literal segments, `{}` for an id, and at the end `{model}` for that of a model.
    pub pattern: &'static str,
    pub lane: Lane,
    pub operation: Operation,
    /// "It is honored on …": Idempotency-Keys are minted and sent here only.
    pub keyed: bool,
    pub costs: Costs,
    pub receipt: ReceiptFrom,
    pub retry: RetryRule,
    pub answer: AnswerKind,
    pub body: BodyForm,
    /// "the literal `auto`": its `model` names no model, so aliases and their hint apply.
    pub auto_model: bool,
    /// `None`: relayed as it comes.
    pub translation: Option<Translation>,
}

// === impl ExtraRoute ===

impl fmt::Display for ExtraRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

// === impl Route ===

impl Route {
    /// Makes a ledger entry.
    pub fn is_metered(&self) -> bool {
        self.costs == Costs::Metered
    }

    /// The service's ceilings on requests in flight and per minute apply to it.
    ///
    /// Assumed: "inference" is what is billed on the lanes where models answer: chat, agent turns,
    /// embeddings, rerank, images, speech and the comparison. Reads, eval runs and deploys are not.
    pub fn is_inference(&self) -> bool {
        self.is_metered() && self.lane != Lane::Control
    }

    /// The id that this path has, of a route of one model.
    pub fn model_id(&self, path: &str) -> Option<String> {
        model_id::read(self.pattern, path)
    }

    /// What its requests are written in, and its answers.
    pub fn dialect(&self) -> Dialect {
        self.translation
            .map_or(Dialect::Chat, |translation| translation.dialect)
    }
}

/// A route that the interface does not name and the config lists (`[upstream] extra_routes`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtraRoute {
    pub method: Method,
    pub path: String,
}

/// The table's entry for a method and path.
#[derive(Clone, Debug)]
pub enum Lookup<'a> {
    Found(&'a Route),
    /// The path is known, the method is not; the methods that are, for `Allow`.
    OtherMethods(Vec<Method>),
    Unknown,
}

/// All routes: the interface's and the configured ones.
#[derive(Clone, Debug)]
pub struct RouteTable {
    rows: Vec<Route>,
    extra: Vec<(String, Route)>,
}

const ALWAYS: RetryRule = RetryRule {
    not_sent: true,
    no_head: true,
    broken: true,
    busy: true,
    conflict: true,
    transient: true,
};

/// Unkeyed and not harmless to repeat (rule I7): only what surely did not run.
const ONCE: RetryRule = RetryRule {
    not_sent: true,
    no_head: false,
    broken: false,
    busy: true,
    conflict: false,
    transient: false,
};

/// `POST /v1/eval-runs`: its 409 is "transient lock or contention".
const START_RUN: RetryRule = RetryRule {
    conflict: true,
    ..ONCE
};

const ONLY_NOT_SENT: RetryRule = RetryRule {
    busy: false,
    ..ONCE
};

/// The base URL picks the lane: agents use `…/agent/v1`, and Claude Code `…/agent`.
const TRANSLATIONS: [(&str, Translation); 5] = [
    (
        "/v1/responses",
        Translation {
            dialect: Dialect::Responses,
            to: "/v1/chat/completions",
        },
    ),
    (
        "/agent/v1/responses",
        Translation {
            dialect: Dialect::Responses,
            to: "/agent/v1/chat/completions",
        },
    ),
    (
        "/agent/v1/messages",
        Translation {
            dialect: Dialect::Messages,
            to: "/agent/v1/chat/completions",
        },
    ),
    // One model, which the service names in its list alone.
    (
        "/v1/models/{model}",
        Translation {
            dialect: Dialect::Chat,
            to: "/v1/models",
        },
    ),
    (
        "/agent/v1/models/{model}",
        Translation {
            dialect: Dialect::Chat,
            to: "/agent/v1/models",
        },
    ),
];

/// An id in a path: `[A-Za-z0-9._~-]{1,128}`, and not a dot segment.
/// Assumed: the interface does not say what ids look like.
const ID_BYTES_MAX: usize = 128;

// === impl RouteTable ===

impl RouteTable {
    /// The interface's routes, those that are translated to one of them, and the configured ones.
    pub fn new(extra_routes: &[ExtraRoute]) -> Self {
        let mut table = Self::untranslated(extra_routes);
        let translated: Vec<Route> = TRANSLATIONS
            .iter()
            .filter_map(|(pattern, translation)| {
                let to = table
                    .rows
                    .iter()
                    .find(|row| row.pattern == translation.to)?;
                // What the operator relays as it is stays so.
                let is_configured = |(path, row): &(String, Route)| {
                    row.method == to.method && matches(pattern, path)
                };
                if table.extra.iter().any(is_configured) {
                    return None;
                }
                Some(Route {
                    pattern,
                    // The service is asked for whole answers.
                    answer: AnswerKind::Json,
                    translation: Some(*translation),
                    ..to.clone()
                })
            })
            .collect();
        table.rows.extend(translated);
        let transcriptions = |row: &&mut Route| row.operation == Operation::Transcription;
        if let Some(row) = table.rows.iter_mut().find(transcriptions) {
            row.body = BodyForm::JsonOrForm;
        }
        table
    }

    /// Without the translated routes.
    pub fn untranslated(extra_routes: &[ExtraRoute]) -> Self {
        let extra = extra_routes
            .iter()
            .map(|extra| {
                let row = Route {
                    method: extra.method.clone(),
                    pattern: "",
                    lane: Lane::Control,
                    operation: Operation::Extra,
                    keyed: false,
                    costs: match extra.method {
                        Method::GET => Costs::Nothing,
                        _ => Costs::Metered,
                    },
                    receipt: ReceiptFrom::HeadersAndComments,
                    retry: ONLY_NOT_SENT,
                    answer: AnswerKind::JsonOrStream,
                    body: BodyForm::Any,
                    auto_model: false,
                    translation: None,
                };
                (extra.path.clone(), row)
            })
            .collect();
        Self {
            rows: interface_rows(),
            extra,
        }
    }

    /// What is spoken on a path, so that a refusal is too, whatever it refuses.
    pub fn dialect(&self, path: &str) -> Dialect {
        let row = self.rows.iter().find(|row| matches(row.pattern, path));
        row.map_or(Dialect::Chat, Route::dialect)
    }

    pub fn rows(&self) -> &[Route] {
        &self.rows
    }

    /// Looks a raw path (no query) up. HEAD is allowed where GET is.
    pub fn look_up(&self, method: &Method, path: &str) -> Lookup<'_> {
        let wanted = if method == Method::HEAD {
            &Method::GET
        } else {
            method
        };
        let mut others = Vec::new();
        let interface = self.rows.iter().filter(|row| matches(row.pattern, path));
        let configured = self
            .extra
            .iter()
            .filter(|(listed, _)| listed == path)
            .map(|(_, row)| row);
        for row in interface.chain(configured) {
            if row.method == *wanted {
                return Lookup::Found(row);
            }
            others.push(row.method.clone());
        }
        if others.is_empty() {
            Lookup::Unknown
        } else {
            Lookup::OtherMethods(others)
        }
    }
}

/// Where the id of a model begins in a path, if the path has one.
pub fn model_id_start(path: &[u8]) -> Option<usize> {
    let mut begins = TRANSLATIONS
        .iter()
        .filter_map(|(pattern, _)| pattern.strip_suffix(MODEL));
    let begin = begins.find(|begin| path.starts_with(begin.as_bytes()));
    begin.map(str::len)
}

/// `{}` stands for exactly one id segment.
fn matches(pattern: &str, path: &str) -> bool {
    if pattern.ends_with(MODEL) {
        return model_id::read(pattern, path).is_some();
    }
    let mut wanted = pattern.split('/');
    let mut given = path.split('/');
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return true,
            (Some("{}"), Some(segment)) if is_id(segment) => {}
            // A segment that is spelled like the placeholder of an id is not one.
            (Some(literal), Some(segment)) if literal == segment && literal != "{}" => {}
            _ => return false,
        }
    }
}

fn is_id(segment: &str) -> bool {
    (1..=ID_BYTES_MAX).contains(&segment.len())
        && segment != "."
        && segment != ".."
        && segment
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'~' | b'-'))
}

/// The interface's own routes, in the order of its table.
fn interface_rows() -> Vec<Route> {
    use AnswerKind::{Json, JsonOrStream, NamedEvents};
    use Lane::{Agent, Control, Inference};
    use Operation as Op;
    use ReceiptFrom::{BodyCost, BodyDuration, HeadersAndComments, Nothing, RunLater, TerminalRun};

    let keyed = |pattern, lane, operation, answer, body| Route {
        method: Method::POST,
        pattern,
        lane,
        operation,
        keyed: true,
        costs: Costs::Metered,
        receipt: HeadersAndComments,
        retry: ALWAYS,
        answer,
        body,
        auto_model: true,
        translation: None,
    };
    let unkeyed = |pattern, operation, receipt, retry, answer| Route {
        method: Method::POST,
        pattern,
        lane: if matches!(receipt, BodyDuration | BodyCost) {
            Inference
        } else {
            Control
        },
        operation,
        keyed: false,
        costs: Costs::Metered,
        receipt,
        retry,
        answer,
        body: BodyForm::Json,
        auto_model: false,
        translation: None,
    };
    let free = |method, pattern, lane, operation, retry, body| Route {
        method,
        pattern,
        lane,
        operation,
        keyed: false,
        costs: Costs::Nothing,
        receipt: Nothing,
        retry,
        answer: Json,
        body,
        auto_model: false,
        translation: None,
    };
    let get = |pattern, lane, operation| {
        free(
            Method::GET,
            pattern,
            lane,
            operation,
            ALWAYS,
            BodyForm::None,
        )
    };
    let endpoint = |method, pattern| {
        free(
            method,
            pattern,
            Control,
            Op::Endpoints,
            ALWAYS,
            BodyForm::None,
        )
    };
    let post = |pattern, operation, retry, body| {
        free(Method::POST, pattern, Control, operation, retry, body)
    };

    vec![
        keyed(
            "/v1/chat/completions",
            Inference,
            Op::Chat,
            JsonOrStream,
            BodyForm::Json,
        ),
        get("/v1/models", Inference, Op::Models),
        get("/agent/v1/models", Agent, Op::Models),
        keyed(
            "/agent/v1/chat/completions",
            Agent,
            Op::AgentTurn,
            JsonOrStream,
            BodyForm::Json,
        ),
        // Assumed: embeddings, rerank and images carry their price in the header, or not at all.
        keyed(
            "/v1/embeddings",
            Inference,
            Op::Embeddings,
            Json,
            BodyForm::Json,
        ),
        keyed("/v1/rerank", Inference, Op::Rerank, Json, BodyForm::Json),
        keyed(
            "/v1/images/generations",
            Inference,
            Op::ImageGeneration,
            Json,
            BodyForm::Json,
        ),
        keyed(
            "/v1/images/edits",
            Inference,
            Op::ImageEdit,
            Json,
            BodyForm::Any,
        ),
        get("/v1/tasks", Control, Op::Tasks),
        get("/v1/tasks/{}", Control, Op::Tasks),
        // "Task catalog reads (list, retrieve, match) are free."
        post("/v1/tasks/match", Op::Tasks, ALWAYS, BodyForm::Json),
        get("/v1/auto/metrics", Control, Op::AutoMetrics),
        unkeyed(
            "/v1/playground/frontier",
            Op::FrontierComparison,
            BodyCost,
            ONCE,
            Json,
        ),
        // "The audio routes ignore it: a retry runs and bills again."
        unkeyed(
            "/v1/audio/transcriptions",
            Op::Transcription,
            BodyDuration,
            ONCE,
            Json,
        ),
        unkeyed("/v1/audio/speech", Op::Speech, BodyDuration, ONCE, Json),
        get("/v1/eval/frontier-models", Control, Op::FrontierRoster),
        post("/v1/eval-sets", Op::EvalSets, ONCE, BodyForm::Multipart),
        get("/v1/eval-sets", Control, Op::EvalSets),
        get("/v1/eval-sets/{}", Control, Op::EvalSets),
        free(
            Method::DELETE,
            "/v1/eval-sets/{}",
            Control,
            Op::EvalSets,
            ALWAYS,
            BodyForm::None,
        ),
        post(
            "/v1/eval-sets/{}/attach-blob",
            Op::EvalSets,
            ONCE,
            BodyForm::Multipart,
        ),
        // "an unused URL costs nothing": harmless to repeat. Bodies: not shown by the interface.
        post(
            "/v1/eval-sets/{}/blob-upload-url",
            Op::EvalSets,
            ALWAYS,
            BodyForm::Any,
        ),
        post(
            "/v1/eval-sets/{}/blob-upload-complete",
            Op::EvalSets,
            ONCE,
            BodyForm::Any,
        ),
        unkeyed("/v1/eval-runs", Op::EvalRun, RunLater, START_RUN, Json),
        Route {
            receipt: TerminalRun,
            ..get("/v1/eval-runs/{}", Control, Op::EvalRunRead)
        },
        unkeyed("/v1/endpoints", Op::Deploy, Nothing, ONCE, NamedEvents),
        get("/v1/endpoints", Control, Op::Endpoints),
        get("/v1/endpoints/{}", Control, Op::Endpoints),
        // Assumed: a "resume" bills nothing itself; what a stop had paused costs again.
        Route {
            costs: Costs::FromThenOn,
            ..endpoint(Method::POST, "/v1/endpoints/{}/start")
        },
        endpoint(Method::POST, "/v1/endpoints/{}/stop"),
        endpoint(Method::DELETE, "/v1/endpoints/{}"),
        // Assumed: an endpoint's `url`, "the address for inference in OpenAI's format", is its own path,
        // as in the sandbox. It is not one of the routes that honor a key.
        Route {
            lane: Inference,
            ..unkeyed(
                "/v1/endpoints/{}/chat/completions",
                Op::EndpointChat,
                HeadersAndComments,
                ONCE,
                JsonOrStream,
            )
        },
        get("/v1/endpoints/{}/performance", Control, Op::Endpoints),
        get("/v1/endpoints/{}/uptime", Control, Op::Endpoints),
        get("/v1/endpoints/{}/cost", Control, Op::Endpoints),
        get("/v1/endpoints/{}/quality", Control, Op::Endpoints),
        get("/v1/endpoints/{}/activity", Control, Op::Endpoints),
    ]
}

#[cfg(test)]
mod tests;
