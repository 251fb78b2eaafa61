//! OpenAI's form of a request for speech, which SDKs send and the service does not know: its own has other members.
//!
//! Promise: the request is relayed as it came (rule I8); only beside the service's own words of refusal stands how to
//! mend it.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::Relay;
use crate::protocol::Operation;

/// The members that tell the two forms apart.
#[derive(Deserialize)]
struct Speech {
    text: Option<IgnoredAny>,
    input: Option<IgnoredAny>,
}

impl Relay<'_> {
    /// OpenAI's `input` is the service's `text`.
    pub(super) fn speech_hint(&self, status: u16) -> Option<String> {
        let is_asked = self.admitted.route.operation == Operation::Speech
            && matches!(status, 400 | 422)
            && is_openais(&self.dispatch.outgoing.body);
        is_asked.then(|| {
            format!(
                "This is OpenAI's form of speech; the service has another: POST {{\"text\": …, \"voice\": …}} to \
                 {}{}, with no `input`, `model` or `response_format`. The answer is JSON with `audio_base64`.",
                self.app.downstream.base(),
                self.admitted.route.pattern
            )
        })
    }
}

fn is_openais(body: &[u8]) -> bool {
    serde_json::from_slice::<Speech>(body)
        .is_ok_and(|speech| speech.input.is_some() && speech.text.is_none())
}
