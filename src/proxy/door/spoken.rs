//! What an app speaks, so that whatever it is given, a refusal included, is in its own form.
//!
//! Promise: of a request that passes the door the route table is asked once; only one that is refused is looked up again.

use http::{HeaderMap, HeaderName};

use crate::protocol::routes::{Lookup, Route, anthropics};
use crate::protocol::{Dialect, Operation};
use crate::proxy::downstream::app_head::AppHead;
use crate::proxy::settings::Settings;

/// Anthropic's clients send it with every request.
const ANTHROPIC_VERSION: HeaderName = HeaderName::from_static("anthropic-version");

/// By the route; of the list of models, which has one path for both, by the header that asks for Anthropic's form.
pub fn on(settings: &Settings, route: &Route, headers: &HeaderMap) -> Dialect {
    let is_anthropics = route.operation == Operation::Models
        && settings.config.models.translate
        && headers.contains_key(ANTHROPIC_VERSION);
    match is_anthropics {
        true => Dialect::Messages,
        false => route.dialect(),
    }
}

/// Of a request that is refused, whatever for.
pub fn of_refused(settings: &Settings, head: &AppHead) -> Dialect {
    let path = head.path();
    match settings.table.look_up(&head.method, path) {
        Lookup::Found(route) => on(settings, route, &head.headers),
        Lookup::Unknown if anthropics::is_path(path) => Dialect::Messages,
        Lookup::OtherMethods(_) | Lookup::Unknown => settings.table.dialect(path),
    }
}
