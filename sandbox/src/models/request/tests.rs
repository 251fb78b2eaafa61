//! What a request is read as.

use super::*;

fn read(body: &Value, lane: Lane) -> ChatRequest {
    ChatRequest::parse(body.to_string().as_bytes(), lane).unwrap()
}

// Interface, Limits: default `max_tokens`, 8192, agent lane when omitted.
#[test]
fn a_turn_without_max_tokens_has_8192_and_a_request_of_the_other_lane_has_no_limit() {
    let body = json!({"model": "auto", "messages": [{"role": "user", "content": "hi"}]});
    let mut said = body.clone();
    said["max_tokens"] = json!(5);

    assert_eq!(read(&body, Lane::Agent).max_tokens, Some(8192));
    assert_eq!(read(&body, Lane::Inference).max_tokens, None);
    assert_eq!(read(&said, Lane::Agent).max_tokens, Some(5));
}
