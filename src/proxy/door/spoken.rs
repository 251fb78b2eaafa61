//! What an app speaks, so that whatever it is given, a refusal included, is in its own form.

use http::HeaderName;

use crate::protocol::routes::Lookup;
use crate::protocol::{Dialect, Operation};
use crate::proxy::downstream::app_head::AppHead;
use crate::proxy::settings::Settings;

/// Anthropic's clients send it with every request.
const ANTHROPIC_VERSION: HeaderName = HeaderName::from_static("anthropic-version");

/// By the path; the list of models, which has one path for both, by the header that asks for Anthropic's form.
pub fn of(settings: &Settings, head: &AppHead) -> Dialect {
    let path = head.path();
    let table = &settings.table;
    let is_anthropics =
        settings.config.models.translate && head.headers.contains_key(ANTHROPIC_VERSION);
    match table.look_up(&head.method, path) {
        Lookup::Found(route) if route.operation == Operation::Models && is_anthropics => {
            Dialect::Messages
        }
        // Nobody else has such a path.
        Lookup::Unknown if path.split('/').any(|part| part == "messages") => Dialect::Messages,
        _ => table.dialect(path),
    }
}
