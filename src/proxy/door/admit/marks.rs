//! The session, the user and the tags of a request: headers that are for bursar's accounts alone.
//!
//! Promise: what the configuration names and cannot be read is refused before anything is sent; a session
//! goes upstream as the keyed hash of its id, never as the id, and the same for each attempt (rule I6).

use http::{HeaderMap, HeaderName, HeaderValue};

use super::single::single_value;
use crate::config::App;
use crate::ledger::marks::Marks;
use crate::protocol::Lane;
use crate::protocol::names::{SESSIONS, X_BURSAR_TAGS};
use crate::protocol::routes::Route;
use crate::protocol::tags::{Tags, VALUE_BYTES_MAX, is_value};
use crate::proxy::refuse::{Code, Refusal};
use crate::proxy::settings::Settings;

/// What an app says of a request. `own_session`: its `X-Service-Session`.
pub fn of(
    settings: &Settings,
    app: &App,
    headers: &HeaderMap,
    own_session: Option<&HeaderValue>,
) -> Result<Marks, Refusal> {
    let session = match own_session {
        Some(own) => Some(own.clone()),
        None => named_session(app, headers)?,
    };
    // What passed is printable.
    let session = session.as_ref().and_then(|value| value.to_str().ok());
    Ok(Marks {
        session: session.map(|id| settings.sessions.session(&app.name, id)),
        user: user(app, headers)?,
        tags: tags(app, headers)?,
    })
}

/// `X-Service-Session` of a request whose app names its session elsewhere. Only agent turns are pinned by it.
pub fn session_sent(route: &Route, marks: &Marks) -> Option<HeaderValue> {
    let is_turn = route.lane == Lane::Agent && route.is_metered();
    let session = marks.session.filter(|_| is_turn)?;
    HeaderValue::try_from(session.hash.to_string()).ok()
}

/// A header that a program uses for something else is no session, and no reason to refuse; the app's own is.
fn named_session(app: &App, headers: &HeaderMap) -> Result<Option<HeaderValue>, Refusal> {
    let known = SESSIONS
        .iter()
        .find_map(|name| single_value(headers, name).ok().flatten());
    match (&app.session_header, known) {
        (_, Some(known)) => Ok(Some(known)),
        (Some(name), None) => single_value(headers, name),
        (None, None) => Ok(None),
    }
}

fn user(app: &App, headers: &HeaderMap) -> Result<Option<String>, Refusal> {
    let Some(name) = &app.user_header else {
        return Ok(None);
    };
    let user = text(headers, name)?;
    match user {
        Some(user) if !is_value(&user) => Err(Refusal::saying(
            Code::HeaderRefused,
            format!(
                "The header {name} is longer than {VALUE_BYTES_MAX} characters ([[app]] user_header). Nothing was \
                 sent."
            ),
        )),
        user => Ok(user),
    }
}

fn tags(app: &App, headers: &HeaderMap) -> Result<Tags, Refusal> {
    let Some(value) = text(headers, &X_BURSAR_TAGS)? else {
        return Ok(Tags::default());
    };
    Tags::parse(&value, &app.tags).map_err(|why| {
        Refusal::saying(
            Code::HeaderRefused,
            format!("The header X-Bursar-Tags cannot be read: {why}. Nothing was sent."),
        )
    })
}

fn text(headers: &HeaderMap, name: &HeaderName) -> Result<Option<String>, Refusal> {
    let value = single_value(headers, name)?;
    let text = value.as_ref().and_then(|value| value.to_str().ok());
    Ok(text
        .map(str::trim)
        .filter(|text| !text.is_empty())
        .map(str::to_owned))
}
