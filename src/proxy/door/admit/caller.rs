//! Whose request is this? The token is where SDKs put the API key (`Authorization`, or `x-api-key`); on a Unix socket the kernel
//! reports the user.
//!
//! Promise: asked behind Host and Origin and before anything else, so that a stranger learns nothing
//! of routes, apps or bodies; the text of a refusal is the same for every stranger, and only the log
//! distinguishes a slip from a token that no app has.

use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName};

use crate::apps::{Apps, Caller, Stranger};
use crate::proxy::refuse::{Code, Refusal};

/// Where Anthropic's clients put their key.
const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");

const SCHEME: &str = "bearer";

/// A text that is no token.
const NOBODYS: &[u8] = b"";

/// Whose a request is, at the monotonic time `now`.
pub fn of(
    apps: &Apps,
    headers: &HeaderMap,
    user: Option<u32>,
    now: Duration,
) -> Result<Caller, Refusal> {
    let only = |name: &HeaderName| {
        let mut values = headers.get_all(name).iter();
        match (values.next(), values.next()) {
            (Some(value), None) => {
                let value = value.as_bytes().trim_ascii();
                Some(value).filter(|value| !value.is_empty())
            }
            (None, _) => None,
            // Two of them are no app's. Neither goes upstream.
            (Some(_), Some(_)) => Some(NOBODYS),
        }
    };
    let shown = only(&AUTHORIZATION).and_then(|value| match value {
        NOBODYS => Some(NOBODYS),
        value => bearer(value),
    });
    let key = only(&X_API_KEY);
    let token = match (shown, key) {
        (Some(shown), Some(key)) if shown != key => Some(NOBODYS),
        (shown, key) => shown.or(key),
    };
    apps.caller(token, user, now)
        .map_err(|stranger| match stranger {
            Stranger::NoToken => Code::TokenMissing.into(),
            Stranger::Awaited => Code::RunAwaited.into(),
            Stranger::WrongToken(form) => {
                tracing::info!(token = form.as_str(), user, "a token was refused");
                Code::TokenRefused.into()
            }
        })
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
