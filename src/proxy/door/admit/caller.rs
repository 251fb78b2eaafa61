//! Whose request is this? The token is where SDKs put the API key (`Authorization`, or `x-api-key`); on a Unix socket the kernel
//! reports the user.
//!
//! Promise: asked behind Host and Origin and before anything else, so that a stranger learns nothing
//! of routes, apps or bodies; the text of a refusal is the same for every stranger, and only the log
//! distinguishes a slip from a token that no app has; a request with two tokens is no app's, also where one without a token may spend.

use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName};

use crate::apps::{Apps, Caller, Stranger};
use crate::proxy::refuse::{Code, Refusal};

/// Where Anthropic's clients put their key.
const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");

const SCHEME: &str = "bearer";

/// Whose a request is, at the monotonic time `now`.
pub fn of(
    apps: &Apps,
    headers: &HeaderMap,
    user: Option<u32>,
    now: Duration,
) -> Result<Caller, Refusal> {
    let caller = token(headers).and_then(|token| apps.caller(token, user, now));
    caller.map_err(|stranger| match stranger {
        Stranger::NoToken => Code::TokenMissing.into(),
        Stranger::Awaited => Code::RunAwaited.into(),
        Stranger::TwoTokens => refused("two", user),
        Stranger::WrongToken(form) => refused(form.as_str(), user),
    })
}

/// The one token that the headers show, wherever they do. Neither of two goes upstream.
fn token(headers: &HeaderMap) -> Result<Option<&[u8]>, Stranger> {
    let shown = only(headers, &AUTHORIZATION)?.and_then(bearer);
    let key = only(headers, &X_API_KEY)?;
    match (shown, key) {
        (Some(shown), Some(key)) if shown != key => Err(Stranger::TwoTokens),
        (shown, key) => Ok(shown.or(key)),
    }
}

/// The value of a header that stands once, unless it is empty.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a [u8]>, Stranger> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (_, Some(_)) => Err(Stranger::TwoTokens),
        (value, None) => {
            let value = value.map(|value| value.as_bytes().trim_ascii());
            Ok(value.filter(|value| !value.is_empty()))
        }
    }
}

/// The log alone has what was wrong.
fn refused(token: &str, user: Option<u32>) -> Refusal {
    tracing::info!(token, user, "a token was refused");
    Code::TokenRefused.into()
}

/// The token of `Bearer TOKEN`; another scheme, or none, shows no token.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = value.split_at_checked(SCHEME.len())?;
    let token = rest.trim_ascii();
    let is_bearer = scheme.eq_ignore_ascii_case(SCHEME.as_bytes())
        && rest.first().is_some_and(|byte| *byte == b' ')
        && !token.is_empty();
    is_bearer.then_some(token)
}

#[cfg(test)]
mod tests;
