//! OpenAI's form of a request for speech, which SDKs send and the service does not know: its own has other members.
//!
//! Promise: the request is relayed as it came (rule I8); only beside the service's own words of refusal stands how to
//! mend it.

use http::StatusCode;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::protocol::Operation;
use crate::protocol::routes::Route;

/// The members by which the two forms differ.
#[derive(Deserialize)]
struct Speech {
    text: Option<IgnoredAny>,
    input: Option<IgnoredAny>,
}

/// OpenAI's `input` is the service's `text`. `base`: as apps reach this listener.
pub(super) fn hint(
    route: &Route,
    status: StatusCode,
    body: &[u8],
    base: impl FnOnce() -> String,
) -> Option<String> {
    let is_asked = route.operation == Operation::Speech
        && matches!(status.as_u16(), 400 | 422)
        && is_openais(body);
    is_asked.then(|| {
        format!(
            "This is OpenAI's form of speech; the service has another: POST {{\"text\": …, \"voice\": …}} to \
             {}{}, with no `input`, `model` or `response_format`. The answer is JSON with `audio_base64`.",
            base(),
            route.pattern
        )
    })
}

fn is_openais(body: &[u8]) -> bool {
    serde_json::from_slice::<Speech>(body)
        .is_ok_and(|speech| speech.input.is_some() && speech.text.is_none())
}
