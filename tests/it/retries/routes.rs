//! The interface's routes, spelled a second time: a row that disappears from `src` is noticed here.

use super::kinds::Kind;
use super::kinds::Kind::{Creates, Harmless, Keyed, Spends, StartsRun};
use bursar::protocol::routes::RouteTable;

/// One route with a concrete request.
pub struct Row {
    pub method: &'static str,
    pub pattern: &'static str,
    pub path: &'static str,
    pub body: Body,
    pub kind: Kind,
    /// Path and body that the service gets, where a request is translated.
    sent: Option<(&'static str, &'static str)>,
}

impl Row {
    /// Path and body that the service gets.
    pub fn sent(&self) -> (&'static str, &'static str) {
        self.sent.unwrap_or((self.path, self.body.content().1))
    }
}

#[derive(Clone, Copy)]
pub enum Body {
    Json(&'static str),
    Multipart,
    None,
}

impl Body {
    /// Media type and bytes.
    pub fn content(self) -> (&'static str, &'static str) {
        match self {
            Self::Json(text) => ("application/json", text),
            Self::Multipart => (
                "multipart/form-data; boundary=bound",
                "--bound\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\nread \u{fc}\r\n--bound--\r\n",
            ),
            Self::None => ("", ""),
        }
    }

    pub fn is_json(self) -> bool {
        matches!(self, Self::Json(_))
    }
}

const fn row(
    method: &'static str,
    pattern: &'static str,
    path: &'static str,
    body: Body,
    kind: Kind,
) -> Row {
    Row {
        method,
        pattern,
        path,
        body,
        kind,
        sent: None,
    }
}

/// A keyed route in another dialect.
const fn translated(
    path: &'static str,
    body: &'static str,
    sent: (&'static str, &'static str),
) -> Row {
    Row {
        sent: Some(sent),
        ..row("POST", path, path, Body::Json(body), Keyed)
    }
}

const fn get(pattern: &'static str, path: &'static str) -> Row {
    row("GET", pattern, path, Body::None, Harmless)
}

const CHAT: Body = Body::Json(r#"{"model":"auto","messages":[{"role":"user","content":"hi"}]}"#);
const PROMPT: Body = Body::Json(r#"{"model": "auto", "prompt": "a \u00fc"}"#);
const AUDIO: Body = Body::Json(r#"{"audio_base64":"UklGRg=="}"#);
const TEXT: Body = Body::Json(r#"{"text":"hi"}"#);
const RUN: Body = Body::Json(r#"{"eval_set_id":"e1","candidate_model_ids":["auto"]}"#);
const TASK: Body = Body::Json(r#"{"task":"extract"}"#);
const QUERY: Body = Body::Json(r#"{"query":"read invoices","top_k":5}"#);

pub static ROUTES: &[Row] = &[
    row(
        "POST",
        "/v1/chat/completions",
        "/v1/chat/completions",
        CHAT,
        Keyed,
    ),
    row(
        "POST",
        "/agent/v1/chat/completions",
        "/agent/v1/chat/completions",
        CHAT,
        Keyed,
    ),
    row("POST", "/v1/embeddings", "/v1/embeddings", PROMPT, Keyed),
    row("POST", "/v1/rerank", "/v1/rerank", PROMPT, Keyed),
    row(
        "POST",
        "/v1/images/generations",
        "/v1/images/generations",
        PROMPT,
        Keyed,
    ),
    row(
        "POST",
        "/v1/images/edits",
        "/v1/images/edits",
        Body::Multipart,
        Keyed,
    ),
    row(
        "POST",
        "/v1/audio/transcriptions",
        "/v1/audio/transcriptions",
        AUDIO,
        Spends,
    ),
    row("POST", "/v1/audio/speech", "/v1/audio/speech", TEXT, Spends),
    row(
        "POST",
        "/v1/playground/frontier",
        "/v1/playground/frontier",
        CHAT,
        Spends,
    ),
    row("POST", "/v1/endpoints", "/v1/endpoints", TASK, Spends),
    row(
        "POST",
        "/v1/endpoints/{}/chat/completions",
        "/v1/endpoints/x-1/chat/completions",
        CHAT,
        Spends,
    ),
    row("POST", "/v1/eval-runs", "/v1/eval-runs", RUN, StartsRun),
    row(
        "POST",
        "/v1/eval-sets",
        "/v1/eval-sets",
        Body::Multipart,
        Creates,
    ),
    row(
        "POST",
        "/v1/eval-sets/{}/attach-blob",
        "/v1/eval-sets/e1/attach-blob",
        Body::Multipart,
        Creates,
    ),
    row(
        "POST",
        "/v1/eval-sets/{}/blob-upload-complete",
        "/v1/eval-sets/e1/blob-upload-complete",
        TEXT,
        Creates,
    ),
    row(
        "POST",
        "/v1/eval-sets/{}/blob-upload-url",
        "/v1/eval-sets/e1/blob-upload-url",
        TEXT,
        Harmless,
    ),
    row(
        "POST",
        "/v1/tasks/match",
        "/v1/tasks/match",
        QUERY,
        Harmless,
    ),
    row(
        "POST",
        "/v1/endpoints/{}/start",
        "/v1/endpoints/x-1/start",
        Body::None,
        Harmless,
    ),
    row(
        "POST",
        "/v1/endpoints/{}/stop",
        "/v1/endpoints/x-1/stop",
        Body::None,
        Harmless,
    ),
    row(
        "DELETE",
        "/v1/endpoints/{}",
        "/v1/endpoints/x-1",
        Body::None,
        Harmless,
    ),
    row(
        "DELETE",
        "/v1/eval-sets/{}",
        "/v1/eval-sets/e1",
        Body::None,
        Harmless,
    ),
    get("/v1/models", "/v1/models"),
    get("/agent/v1/models", "/agent/v1/models"),
    get("/v1/tasks", "/v1/tasks"),
    get("/v1/tasks/{}", "/v1/tasks/t1?examples_n=2"),
    get("/v1/auto/metrics", "/v1/auto/metrics"),
    get(
        "/v1/eval/frontier-models",
        "/v1/eval/frontier-models?task=t1",
    ),
    get("/v1/eval-sets", "/v1/eval-sets"),
    get("/v1/eval-sets/{}", "/v1/eval-sets/e1"),
    get("/v1/eval-runs/{}", "/v1/eval-runs/r1"),
    get("/v1/endpoints", "/v1/endpoints"),
    get("/v1/endpoints/{}", "/v1/endpoints/x-1"),
    get(
        "/v1/endpoints/{}/performance",
        "/v1/endpoints/x-1/performance",
    ),
    get("/v1/endpoints/{}/uptime", "/v1/endpoints/x-1/uptime"),
    get("/v1/endpoints/{}/cost", "/v1/endpoints/x-1/cost"),
    get("/v1/endpoints/{}/quality", "/v1/endpoints/x-1/quality"),
    get("/v1/endpoints/{}/activity", "/v1/endpoints/x-1/activity"),
];

/// Requests in other dialects: sent as the chat completions that they become.
pub static TRANSLATED: &[Row] = &[
    translated(
        "/v1/responses",
        r#"{"model":"auto","input":"one"}"#,
        (
            "/v1/chat/completions",
            r#"{"model":"auto","messages":[{"role":"user","content":"one"}]}"#,
        ),
    ),
    translated(
        "/agent/v1/responses",
        r#"{"model":"auto","input":"two","stream":true}"#,
        (
            "/agent/v1/chat/completions",
            r#"{"model":"auto","messages":[{"role":"user","content":"two"}]}"#,
        ),
    ),
    translated(
        "/agent/v1/messages",
        r#"{"model":"auto","max_tokens":9,"messages":[{"role":"user","content":"three"}]}"#,
        (
            "/agent/v1/chat/completions",
            r#"{"model":"auto","messages":[{"role":"user","content":"three"}],"max_tokens":9}"#,
        ),
    ),
];

/// Both tables.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    ROUTES.iter().chain(TRANSLATED)
}

#[test]
fn the_table_of_these_tests_and_the_route_table_name_the_same_routes() {
    let table = RouteTable::untranslated(&[]);
    let mut known: Vec<_> = table
        .rows()
        .iter()
        .map(|row| {
            (
                row.method.as_str().to_owned(),
                row.pattern,
                row.keyed,
                row.is_metered(),
            )
        })
        .collect();
    let mut tested: Vec<_> = ROUTES
        .iter()
        .map(|row| {
            (
                row.method.to_owned(),
                row.pattern,
                row.kind == Keyed,
                row.kind.is_metered(),
            )
        })
        .collect();
    known.sort();
    tested.sort();
    assert_eq!(known, tested);
}
