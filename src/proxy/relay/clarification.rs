//! An answer 200 that asks for more input. An app that takes the first answer for its result would go
//! on with a question; for one that says so (`on_clarification = "error"`) it becomes an error.
//!
//! Promise: the receipt is recorded before, as for every answer; the service's headers and its whole
//! answer stand in the error. A stream passes as it is: its head has gone out by then.

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use pingora::http::ResponseHeader;
use serde_json::{Value, json};

use crate::config::{ApiKey, OnClarification};
use crate::protocol::names::{X_BURSAR_ERROR, X_SHOULD_RETRY};
use crate::protocol::receipt::Receipt;
use crate::proxy::refuse::{Code, Refusal};

/// Most of the service's question that stands in the text of the error.
const QUESTION_CHARS_MAX: usize = 500;

/// Makes head and body an error, when the answer is a question and the app wants none.
pub(super) fn clarified(
    on_clarification: OnClarification,
    key: &ApiKey,
    head: &mut ResponseHeader,
    body: &Bytes,
    receipt: &Receipt,
) -> Option<Bytes> {
    let wanted = receipt.input_required.as_deref()?;
    if on_clarification != OnClarification::Error || head.status != StatusCode::OK {
        return None;
    }
    let body = error_body(wanted, body, key);
    head.set_status(Code::Clarification.status()).ok()?;
    head.remove_header(&CONTENT_ENCODING);
    let code = HeaderValue::from_static(Code::Clarification.as_str());
    head.insert_header(X_BURSAR_ERROR, code).ok()?;
    head.insert_header(X_SHOULD_RETRY, HeaderValue::from_static("false"))
        .ok()?;
    head.insert_header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
        .ok()?;
    Some(body)
}

/// The refusal's two shapes, and beside them what the service said.
fn error_body(wanted: &str, body: &[u8], key: &ApiKey) -> Bytes {
    let answer: Option<Value> = serde_json::from_slice(body).ok();
    let question = answer
        .as_ref()
        .and_then(|answer| answer.pointer("/choices/0/message/content")?.as_str())
        .map(|question| match key.redacted(question.as_bytes()) {
            // Before it is cut: what is left of a cut key is not found.
            Some(clean) => String::from_utf8_lossy(&clean).into_owned(),
            None => question.to_owned(),
        })
        .map(|question| {
            question
                .chars()
                .take(QUESTION_CHARS_MAX)
                .collect::<String>()
        })
        .filter(|question| !question.trim().is_empty());
    let what = match question {
        Some(question) => format!("Input required ({wanted}): {question}"),
        None => format!("Input required ({wanted})."),
    };
    let refusal = Refusal::because(Code::Clarification, what);
    Bytes::from(
        json!({
            "detail": refusal.detail,
            "error": {
                "message": refusal.detail,
                "type": "bursar_error",
                "param": null,
                "code": refusal.code.as_str(),
            },
            "answer": answer,
        })
        .to_string(),
    )
}
