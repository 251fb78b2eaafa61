//! Slips in setting an app up: a base URL with its path missing, doubled or of another API, and the form
//! that another API gives its requests. What is refused stays refused; the text here says how to mend it.
//!
//! Promise: the address in a text is the one that this very app reached.

use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method};

use crate::protocol::Operation;
use crate::protocol::routes::{Lookup, Route, RouteTable};
use crate::proxy::downstream::Downstream;
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
    if is_of("responses") {
        return Refusal::saying(
            Code::ResponsesUnsupported,
            format!(
                "Of the Responses API bursar answers POST {base}/v1/responses and {base}/agent/v1/responses, where \
                 [models] translate is on; it keeps no responses. Otherwise use chat completions with the base URL \
                 {base}/v1."
            ),
        );
    }
    if is_of("messages") {
        return Refusal::saying(
            Code::RouteUnknown,
            format!(
                "Anthropic's messages are answered on the agent lane alone: set ANTHROPIC_BASE_URL to {base}/agent, \
                 so that requests go to {base}/agent/v1/messages. Tokens are not counted beforehand."
            ),
        );
    }
    Refusal::saying(
        Code::RouteUnknown,
        format!(
            "bursar does not relay this route. The base URL is {base}/v1 or {base}/agent/v1; routes of your own can \
             be listed in [upstream] extra_routes."
        ),
    )
}

/// A base URL with its path missing or doubled.
fn of_base(settings: &Settings, method: &Method, path: &str, base: &str) -> Option<Refusal> {
    if is_known(&settings.table, method, &format!("/v1{path}")) {
        return Some(Refusal::saying(
            Code::BasePathMissing,
            format!("The base URL lacks its path: set it to {base}/v1 (or {base}/agent/v1)."),
        ));
    }
    has_too_much(&settings.table, method, path).then(|| {
        Refusal::saying(
            Code::RouteUnknown,
            format!(
                "The base URL has its /v1 twice, or more than that in front of the route: set it to {base}/v1 \
                 (or {base}/agent/v1)."
            ),
        )
    })
}

/// A body of a type that the route does not take.
pub fn of_form(
    refusal: Refusal,
    route: &Route,
    headers: &HeaderMap,
    downstream: &Downstream,
) -> Refusal {
    let given = headers.get(CONTENT_TYPE).map(|value| value.as_bytes());
    let is_form = given.is_some_and(|value| value.starts_with(b"multipart/form-data"));
    if route.operation != Operation::Transcription || !is_form {
        return refusal;
    }
    Refusal::saying(
        refusal.code,
        format!(
            "This is OpenAI's form of a transcription; the service takes JSON: POST {{\"audio_base64\": …, \
             \"language\": …}} with Content-Type: application/json to {}{}. The answer is JSON with `text`.",
            downstream.base(),
            route.pattern
        ),
    )
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
