//! Slips in setting an app up: a base URL with its path missing, doubled or of another API, and the form
//! that another API gives its requests. What is refused stays refused; the text here says how to mend it.
//!
//! Promise: the address in a text is the one that this very app reached; each slip has a code of its own, which
//! stays the same.

use http::header::{CONTENT_ENCODING, UPGRADE};
use http::{HeaderMap, Method};

use super::body::{BODY_BYTES_MAX, form_type};
use crate::protocol::body::RequestPeek;
use crate::protocol::routes::{Lookup, Route, RouteTable, anthropics};
use crate::protocol::{Lane, Operation};
use crate::proxy::downstream::Downstream;
use crate::proxy::downstream::app_head::AppHead;
use crate::proxy::refuse::{Code, Refusal};
use crate::proxy::settings::Settings;

/// Where the paths of the interface begin.
const BASES: [&str; 2] = ["/agent/v1/", "/v1/"];

/// A path outside the table.
pub fn of_path(
    refusal: Refusal,
    settings: &Settings,
    method: &Method,
    path: &str,
    downstream: &Downstream,
) -> Refusal {
    if refusal.code != Code::RouteUnknown {
        return refusal;
    }
    let base = downstream.base();
    let is_of =
        |name: &str| path.ends_with(&format!("/{name}")) || path.contains(&format!("/{name}/"));
    if let Some(refusal) = of_base(settings, method, path, &base) {
        return refusal;
    }
    let (code, words) = if is_of("responses") {
        (
            Code::ResponsesUnsupported,
            format!(
                "Of the Responses API bursar answers POST {base}/v1/responses and {base}/agent/v1/responses, where \
                 [models] translate is on; it keeps no responses. Otherwise use chat completions with the base URL \
                 {base}/v1."
            ),
        )
    } else if is_of("count_tokens") {
        (
            Code::CountTokensUnsupported,
            format!(
                "Tokens are not counted beforehand: the service has no route for it, and bursar guesses none. Messages \
                 go to {base}/agent/v1/messages (ANTHROPIC_BASE_URL={base}/agent); their answers have the service's \
                 own counts, and GET {base}/agent/v1/models has the size of the context."
            ),
        )
    } else if anthropics::is_path(path) {
        (Code::MessagesElsewhere, messages(path, &base))
    } else if is_of("realtime") {
        (Code::RealtimeUnsupported, realtime(&base))
    } else if path.ends_with("/completions") && !path.ends_with("/chat/completions") {
        (
            Code::CompletionsUnsupported,
            format!(
                "The service has no /completions route, which is the old form without messages. Use chat completions \
                 (client.chat.completions): POST {base}/v1/chat/completions. In an editor, that is the chat model and \
                 not the one that completes lines."
            ),
        )
    } else {
        (
            Code::RouteUnknown,
            format!(
                "bursar does not relay this route. The base URL is {base}/v1 or {base}/agent/v1; routes of your own \
                 can be listed in [upstream] extra_routes."
            ),
        )
    };
    Refusal::saying(code, words)
}

/// A base URL with its path missing or doubled, or that of the other lane.
fn of_base(settings: &Settings, method: &Method, path: &str, base: &str) -> Option<Refusal> {
    let table = &settings.table;
    if is_known(table, method, &format!("/v1{path}")) {
        return Some(Refusal::saying(
            Code::BasePathMissing,
            format!("The base URL lacks its path: set it to {base}/v1 (or {base}/agent/v1)."),
        ));
    }
    if let Some(here) = path.strip_prefix("/agent")
        && is_known(table, method, &format!("/agent/v1{here}"))
    {
        return Some(Refusal::saying(
            Code::BasePathMissing,
            format!(
                "The base URL lacks its /v1: set it to {base}/agent/v1. (Anthropic's clients alone put the /v1 there \
                 themselves: their base URL is {base}/agent.)"
            ),
        ));
    }
    if let Some(here) = path
        .strip_prefix("/agent")
        .filter(|here| here.starts_with("/v1/"))
        && is_known(table, method, here)
    {
        return Some(Refusal::saying(
            Code::OtherLane,
            format!(
                "The service has this route on {base}{here} alone: give the part of the app that asks for it the base \
                 URL {base}/v1. {base}/agent/v1 has chat completions and models."
            ),
        ));
    }
    has_too_much(table, method, path).then(|| {
        Refusal::saying(
            Code::BasePathDoubled,
            format!(
                "The base URL has its /v1 twice, or more than that in front of the route: set it to {base}/v1 \
                 (or {base}/agent/v1)."
            ),
        )
    })
}

/// A head that asks for another protocol.
pub fn of_framing(refusal: Refusal, head: &AppHead, downstream: &Downstream) -> Refusal {
    if refusal.code != Code::HeaderRefused || !head.headers.contains_key(UPGRADE) {
        return refusal;
    }
    let base = downstream.base();
    let asks_for = |name: &str| head.path().split('/').any(|part| part == name);
    if asks_for("realtime") {
        Refusal::saying(Code::RealtimeUnsupported, realtime(&base))
    } else if asks_for("responses") {
        Refusal::saying(
            Code::HeaderRefused,
            format!(
                "The Responses API is answered over HTTP, not over a WebSocket: POST {base}/agent/v1/responses. In \
                 Codex set supports_websockets = false in the [model_providers] table of this address."
            ),
        )
    } else {
        refusal
    }
}

/// A path of Anthropic's Messages API.
fn messages(path: &str, base: &str) -> String {
    // An app that asks for this has its base URL right.
    let mut words = if path.starts_with("/agent/v1/messages") {
        format!(
            "Of Anthropic's Messages API bursar answers POST {base}/agent/v1/messages alone, where [models] translate \
             is on."
        )
    } else {
        format!(
            "Anthropic's messages are answered on the agent lane alone: set ANTHROPIC_BASE_URL to {base}/agent, so \
             that requests go to {base}/agent/v1/messages, where [models] translate is on."
        )
    };
    if path.contains("/messages/batches") {
        words.push_str(" Batches are not answered: the service has none.");
    }
    words
}

fn realtime(base: &str) -> String {
    format!(
        "The service has no realtime route, and WebSockets are not relayed. Speech is POST {base}/v1/audio/speech and \
         {base}/v1/audio/transcriptions, text {base}/v1/chat/completions."
    )
}

/// A body of a type that the route does not take.
pub fn of_form(
    refusal: Refusal,
    route: &Route,
    headers: &HeaderMap,
    downstream: &Downstream,
) -> Refusal {
    if route.operation != Operation::Transcription || form_type(headers).is_none() {
        return refusal;
    }
    Refusal::saying(
        refusal.code,
        format!(
            "This is OpenAI's form of a transcription, which is answered where [models] translate is on; the service \
             takes JSON: POST {{\"audio_base64\": …, \"language\": …}} with Content-Type: application/json to {}{}. \
             The answer is JSON with `text`.",
            downstream.base(),
            route.pattern
        ),
    )
}

/// A body in a coding.
pub fn of_coding(refusal: Refusal, headers: &HeaderMap) -> Refusal {
    let is_zstd = |coding: &http::HeaderValue| coding.as_bytes().eq_ignore_ascii_case(b"zstd");
    if refusal.code != Code::ContentCodingRefused
        || !headers.get_all(CONTENT_ENCODING).iter().any(is_zstd)
    {
        return refusal;
    }
    refusal.and(
        "In Codex: enable_request_compression = false below [features] in config.toml, or `--disable \
         enable_request_compression`.",
    )
}

/// A body that is larger than any that the service takes: "request body over 30 MB; not to be retried". Of a
/// recording, which grows by a third, the largest file is named.
pub fn too_large(route: &Route, headers: &HeaderMap) -> Refusal {
    if route.operation != Operation::Transcription || form_type(headers).is_none() {
        return Code::BodyTooLarge.into();
    }
    let json_max = usize::try_from(BODY_BYTES_MAX).unwrap_or(usize::MAX);
    // Less what stands around the sound.
    of_recording(None, json_max.saturating_sub(64) / 4 * 3)
}

/// A recording that does not fit, of this size where that is known.
pub fn of_recording(file_bytes: Option<usize>, file_bytes_max: usize) -> Refusal {
    let megabytes = |bytes: usize| {
        let tenths = bytes / (1024 * 1024 / 10);
        format!("{}.{}", tenths / 10, tenths % 10)
    };
    let file = match file_bytes {
        Some(bytes) => format!("The recording has {} MB", megabytes(bytes)),
        None => "The recording is too large".to_owned(),
    };
    Refusal::saying(
        Code::BodyTooLarge,
        format!(
            "{file}: it goes to the service in base64, a third larger, and the service takes 30 MB. The largest file \
             has {file_bytes_max} bytes ({} MB). Nothing was sent; send it in parts, or in a denser format (mp3, m4a).",
            megabytes(file_bytes_max)
        ),
    )
}

/// A body of the Responses API on chat completions, as some editors send it.
pub fn check_body(
    route: &Route,
    peek: &RequestPeek,
    downstream: &Downstream,
) -> Result<(), Refusal> {
    let is_chat = matches!(
        route.operation,
        Operation::Chat | Operation::AgentTurn | Operation::EndpointChat
    );
    if !is_chat || !peek.is_of_responses {
        return Ok(());
    }
    let base = downstream.base();
    let lane = match route.lane {
        Lane::Agent => "/agent/v1",
        Lane::Inference | Lane::Control => "/v1",
    };
    Err(Refusal::saying(
        Code::ResponsesBody,
        format!(
            "This is a body of the Responses API (`input`, no `messages`) on chat completions, as Cursor sends it for \
             some models. Nothing was sent. Send it to {base}{lane}/responses, or choose a model name for which the \
             app sends `messages` to {base}{lane}/chat/completions (\"auto\")."
        ),
    )
    .about("input".to_owned()))
}

/// A known route with more in front of it: `/v1/v1/models`, `/v1/agent/v1/models`, `/openai/v1/models`.
fn has_too_much(table: &RouteTable, method: &Method, path: &str) -> bool {
    let behind = path.match_indices('/').filter_map(|(at, _)| path.get(at..));
    let mut routes = behind
        .skip(1)
        .filter(|rest| BASES.iter().any(|base| rest.starts_with(base)));
    routes.any(|route| is_known(table, method, route))
}

fn is_known(table: &RouteTable, method: &Method, path: &str) -> bool {
    !matches!(table.look_up(method, path), Lookup::Unknown)
}
