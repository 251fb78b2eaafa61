use serde_json::{Value, json};

use super::*;

fn told(status: u16, text: &str) -> Value {
    serde_json::from_slice(&body(status, text.as_bytes())).unwrap()
}

#[test]
fn each_status_has_the_dialects_type() {
    let cases = [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (402, "billing_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (408, "timeout_error"),
        (409, "conflict_error"),
        (413, "request_too_large"),
        (415, "invalid_request_error"),
        (422, "invalid_request_error"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (502, "api_error"),
        (503, "overloaded_error"),
        (504, "timeout_error"),
        (529, "overloaded_error"),
    ];
    for (status, expected) in cases {
        assert_eq!(told(status, "{}")["error"]["type"], expected, "{status}");
    }
}

#[test]
fn every_form_of_an_error_keeps_its_words_and_its_code() {
    let ours =
        r#"{"detail":"No.","error":{"message":"No.","type":"bursar_error","code":"cap_reached"}}"#;
    let cases = [
        (ours, json!({"message": "No.", "code": "cap_reached"})),
        (
            r#"{"detail":"model not found"}"#,
            json!({"message": "model not found"}),
        ),
        (
            r#"{"detail":[{"loc":["body","messages"],"msg":"Field required","type":"missing"}]}"#,
            json!({"message": "body.messages Field required (missing)"}),
        ),
        (
            r#"{"error":{"message":"Bad.","code":null,"param":"tools[0]"}}"#,
            json!({"message": "Bad.", "param": "tools[0]"}),
        ),
        (r#"{"error":"plain"}"#, json!({"message": "plain"})),
        (
            "<html>",
            json!({"message": "The request failed with status 400."}),
        ),
        (
            "",
            json!({"message": "The request failed with status 400."}),
        ),
    ];
    for (text, mut expected) in cases {
        expected["type"] = "invalid_request_error".into();
        let expected = json!({"type": "error", "error": expected});
        assert_eq!(told(400, text), expected, "{text}");
    }
}

#[test]
fn the_id_to_ask_about_stands_where_programs_look_for_it() {
    let body = body(429, br#"{"detail":"Slow down.","request_id":"req_1"}"#);
    let expected = r#"{"type":"error","error":{"type":"rate_limit_error","message":"Slow down."},"request_id":"req_1"}"#;
    assert_eq!(String::from_utf8(body).unwrap(), expected);
}
